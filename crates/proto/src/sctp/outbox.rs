//! Messages that wait to be sent, and how they become chunks.

use std::collections::{BTreeMap, VecDeque};

use fontis_base::Time;

use super::chunk::DataChunk;
use super::config::StreamTurns;
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
    streams: BTreeMap<u16, StreamState>,
    bytes: u64,
    chunks: u64,
    next_id: u64,
    /// Bytes of content in a chunk at most.
    piece: usize,
    is_interleaved: bool,
    turns: StreamTurns,
    last_stream: u16,
}

/// A stream to the peer.
#[derive(Clone, Copy, Debug, Default)]
struct StreamState {
    /// The next numbers of its ordered and unordered messages.
    numbers: [u32; 2],
    /// Bytes that wait, and bytes that were sent since none waited.
    waiting: u64,
    sent: u64,
}

impl Outbox {
    pub(super) fn new(piece: usize, turns: StreamTurns) -> Self {
        Self {
            queue: VecDeque::new(),
            streams: BTreeMap::new(),
            bytes: 0,
            chunks: 0,
            next_id: 0,
            piece: piece.max(4),
            is_interleaved: false,
            turns,
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

    /// Leaves room for a header of so many bytes in place of that of DATA: nothing may be pending
    /// in pieces.
    pub(super) fn leave_room(&mut self, header: usize) {
        let more = header.saturating_sub(DataChunk::header(self.is_interleaved));
        self.piece = self.piece.saturating_sub(more).max(4);
        let chunks = |pending: &Pending| pending.data.len().div_ceil(self.piece) as u64;
        self.chunks = self.queue.iter().map(chunks).sum();
    }

    /// Pieces are so many bytes longer, or shorter.
    pub(super) fn resize(&mut self, by: i64) {
        self.piece = (self.piece as i64 + by).max(4) as usize;
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
        let stream = self.streams.entry(send.stream).or_default();
        if stream.waiting == 0 {
            stream.sent = 0;
        }
        stream.waiting += data.len() as u64;
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
            let (stream, len) = (front.send.stream, front.data.len());
            self.queue.pop_front();
            self.forget(stream, len);
            dropped += 1;
        }
        dropped
    }

    /// So many bytes of a stream are not sent after all.
    fn forget(&mut self, stream: u16, len: usize) {
        self.bytes -= len as u64;
        self.chunks -= len.div_ceil(self.piece) as u64;
        self.streams.entry(stream).or_default().waiting -= len as u64;
    }

    /// Drops the rest of a message. Whether there was a rest.
    pub(super) fn drop_message(&mut self, id: u64) -> bool {
        let at = self.queue.iter().take(LOOK).position(|pending| pending.id == id);
        let Some(pending) = at.and_then(|at| self.queue.remove(at)) else { return false };
        self.forget(pending.send.stream, pending.data.len());
        true
    }

    /// Whether messages of a stream wait.
    pub(super) fn has_waiting(&self, stream: u16) -> bool {
        self.streams.get(&stream).is_some_and(|stream| stream.waiting > 0)
    }

    /// The streams that messages were sent on.
    pub(super) fn streams(&self) -> impl Iterator<Item = u16> {
        self.streams.keys().copied()
    }

    /// The messages of a stream, of which none waits, are numbered anew.
    pub(super) fn reset(&mut self, stream: u16) {
        self.streams.remove(&stream);
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
        let state = self.streams.entry(stream).or_default();
        let number = *pending.number.get_or_insert_with(|| {
            // DATA does not number unordered messages.
            let next = &mut state.numbers[usize::from(is_unordered)];
            let number = *next;
            *next = if self.is_interleaved { next.wrapping_add(1) } else { (*next + 1) & 0xffff };
            if is_unordered && !self.is_interleaved { 0 } else { number }
        });
        let fragment = pending.fragment;
        pending.fragment += 1;
        let data = pending.data.split_to(self.piece);
        state.waiting -= data.len() as u64;
        state.sent += data.len() as u64;
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

    /// What was sent of the shortest of the streams that have something to send, since each was at
    /// rest; of the last one if nothing waits.
    pub(super) fn shortest(&self) -> u64 {
        let waiting = self.queue.iter().take(LOOK).map(|pending| self.length(pending)).min();
        let last = || self.streams.get(&self.last_stream).map_or(0, |stream| stream.sent);
        waiting.unwrap_or_else(last)
    }

    fn length(&self, pending: &Pending) -> u64 {
        self.streams.get(&pending.send.stream).map_or(0, |stream| stream.sent)
    }

    /// The message whose chunk is next: the oldest; where messages may interleave, by the streams'
    /// turns.
    fn choice(&self) -> usize {
        if !self.is_interleaved {
            return 0;
        }
        let mut queue = self.queue.iter().take(LOOK).enumerate();
        match self.turns {
            // The oldest of another stream than the last if there is one.
            StreamTurns::Rotation => {
                let is_other =
                    |(_, pending): &(usize, &Pending)| pending.send.stream != self.last_stream;
                queue.find(is_other).map_or(0, |(at, _)| at)
            }
            StreamTurns::Shortest => {
                queue.min_by_key(|(_, pending)| self.length(pending)).map_or(0, |(at, _)| at)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 1000;

    /// The streams of the chunks of a long message, and of two short ones that come when six of its
    /// pieces have left.
    fn streams(turns: StreamTurns) -> Vec<u16> {
        let mut outbox = Outbox::new(PIECE + 4, turns);
        outbox.interleave();
        let push = |outbox: &mut Outbox, stream, pieces: u32| {
            let send = SctpSend { stream, ..SctpSend::default() };
            outbox.push(Time::ZERO, send, SctpData::Counted(pieces * PIECE as u32));
        };
        push(&mut outbox, 0, 10);
        let next = |outbox: &mut Outbox| outbox.next_chunk().map(|(chunk, _)| chunk.stream);
        let mut order: Vec<u16> = (0..6).filter_map(|_| next(&mut outbox)).collect();
        push(&mut outbox, 1, 2);
        push(&mut outbox, 2, 2);
        assert_eq!(outbox.shortest(), 0);
        order.extend(std::iter::from_fn(|| next(&mut outbox)));
        assert_eq!((outbox.bytes(), outbox.chunks()), (0, 0));
        order
    }

    #[test]
    fn streams_take_turns_or_the_one_that_has_sent_least_is_next() {
        let first = [0; 6];
        let rotation = [first.as_slice(), &[1, 0, 1, 0, 2, 0, 2, 0]].concat();
        assert_eq!(streams(StreamTurns::Rotation), rotation);
        let shortest = [first.as_slice(), &[1, 2, 1, 2, 0, 0, 0, 0]].concat();
        assert_eq!(streams(StreamTurns::Shortest), shortest);
    }

    #[test]
    fn the_length_of_a_stream_begins_anew_when_it_was_at_rest() {
        let mut outbox = Outbox::new(PIECE, StreamTurns::Shortest);
        let send = SctpSend::default();
        for _ in 0..2 {
            outbox.push(Time::ZERO, send, SctpData::Counted(3 * PIECE as u32));
            assert_eq!(outbox.shortest(), 0);
            while outbox.next_chunk().is_some() {}
            assert_eq!(outbox.shortest(), 3 * PIECE as u64);
        }
    }
}
