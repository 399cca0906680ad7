//! Messages that wait to be sent, and how they become chunks.

use std::collections::{BTreeMap, VecDeque};

use fontis_base::Time;

use super::chunk::DataChunk;
use super::data::SctpData;
use super::message::{Reliability, SctpSend};

/// How many messages the choice of stream looks at, where messages may interleave.
const LOOK: usize = 32;

/// A message, or the rest of it.
#[derive(Clone, Debug)]
struct Pending {
    id: u64,
    send: SctpSend,
    expires: Time,
    data: SctpData,
    /// Its number in its stream, once its first chunk is made.
    number: Option<u32>,
    fragment: u32,
}

/// What a chunk's sender must remember of its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkOrigin {
    /// The message.
    pub(super) message: u64,
    /// When it loses its use.
    pub(super) expires: Time,
    /// How often it may be sent again; `u32::MAX` without a limit.
    pub(super) repeats: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Outbox {
    queue: VecDeque<Pending>,
    /// The next numbers of ordered and unordered messages of each stream.
    numbers: BTreeMap<u16, [u32; 2]>,
    bytes: u64,
    chunks: u64,
    next_id: u64,
    /// Bytes of content in a chunk at most.
    piece: usize,
    is_interleaved: bool,
    last_stream: u16,
}

impl Outbox {
    pub(super) fn new(piece: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            numbers: BTreeMap::new(),
            bytes: 0,
            chunks: 0,
            next_id: 0,
            piece: piece.max(4),
            is_interleaved: false,
            last_stream: 0,
        }
    }

    /// Chunks are I-DATA from now on, which have larger headers: nothing may be pending in pieces.
    pub(super) fn interleave(&mut self) {
        if core::mem::replace(&mut self.is_interleaved, true) {
            return;
        }
        self.piece -= DataChunk::header(true) - DataChunk::header(false);
        let chunks = |pending: &Pending| pending.data.len().div_ceil(self.piece) as u64;
        self.chunks = self.queue.iter().map(chunks).sum();
    }

    pub(super) const fn piece(&self) -> usize {
        self.piece
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The chunks that its messages will become.
    pub(super) const fn chunks(&self) -> u64 {
        self.chunks
    }

    pub(super) fn push(&mut self, now: Time, send: SctpSend, data: SctpData) {
        self.bytes += data.len() as u64;
        self.chunks += data.len().div_ceil(self.piece) as u64;
        let expires = match send.reliability {
            Reliability::Lifetime(span) => now + span,
            _ => Time::MAX,
        };
        let id = self.next_id;
        self.next_id += 1;
        self.queue.push_back(Pending { id, send, expires, data, number: None, fragment: 0 });
    }

    /// Drops the messages that have lost their use before any of them was sent.
    pub(super) fn expire(&mut self, now: Time) -> u64 {
        let mut dropped = 0;
        while let Some(front) =
            self.queue.front().filter(|front| front.expires <= now && front.number.is_none())
        {
            self.bytes -= front.data.len() as u64;
            self.chunks -= front.data.len().div_ceil(self.piece) as u64;
            self.queue.pop_front();
            dropped += 1;
        }
        dropped
    }

    /// Drops the rest of a message. Whether there was a rest.
    pub(super) fn drop_message(&mut self, id: u64) -> bool {
        let at = self.queue.iter().take(LOOK).position(|pending| pending.id == id);
        let Some(pending) = at.and_then(|at| self.queue.remove(at)) else { return false };
        self.bytes -= pending.data.len() as u64;
        self.chunks -= pending.data.len().div_ceil(self.piece) as u64;
        true
    }

    /// Bytes of content in the next chunk; `None` if nothing waits.
    pub(super) fn next_len(&self) -> Option<usize> {
        let pending = self.queue.get(self.choice())?;
        Some(pending.data.len().min(self.piece))
    }

    /// The next chunk, without its TSN.
    pub(super) fn next_chunk(&mut self) -> Option<(DataChunk, ChunkOrigin)> {
        let at = self.choice();
        let pending = self.queue.get_mut(at)?;
        let SctpSend { stream, protocol, is_unordered, reliability, .. } = pending.send;
        let is_first = pending.number.is_none();
        let numbers = self.numbers.entry(stream).or_default();
        let number = *pending.number.get_or_insert_with(|| {
            // DATA does not number unordered messages.
            let next = &mut numbers[usize::from(is_unordered)];
            let number = *next;
            *next = if self.is_interleaved { next.wrapping_add(1) } else { (*next + 1) & 0xffff };
            if is_unordered && !self.is_interleaved { 0 } else { number }
        });
        let fragment = pending.fragment;
        pending.fragment += 1;
        let data = pending.data.split_to(self.piece);
        let is_last = pending.data.is_empty();
        let origin = ChunkOrigin {
            message: pending.id,
            expires: pending.expires,
            repeats: match reliability {
                Reliability::Repeats(most) => most,
                _ => u32::MAX,
            },
        };
        if is_last {
            self.queue.remove(at);
        }
        self.bytes -= data.len() as u64;
        self.chunks -= 1;
        self.last_stream = stream;
        let chunk = DataChunk {
            tsn: 0,
            stream,
            message: number,
            fragment: if self.is_interleaved { fragment } else { 0 },
            protocol: if self.is_interleaved && !is_first { 0 } else { protocol },
            is_interleaved: self.is_interleaved,
            is_first,
            is_last,
            is_unordered,
            is_immediate: false,
            data,
        };
        Some((chunk, origin))
    }

    /// The message whose chunk is next: the oldest; where messages may interleave, the oldest of
    /// another stream than the last if there is one.
    fn choice(&self) -> usize {
        if !self.is_interleaved {
            return 0;
        }
        let other = |pending: &Pending| pending.send.stream != self.last_stream;
        self.queue.iter().take(LOOK).position(other).unwrap_or(0)
    }
}
