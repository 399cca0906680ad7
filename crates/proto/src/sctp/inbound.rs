//! Whole messages until their turn comes, and until the application takes them.

use std::collections::{BTreeMap, VecDeque};

use super::message::SctpMessage;
use super::number;

/// The messages of one stream.
#[derive(Clone, Debug)]
struct InboundStream {
    next: u64,
    waiting: BTreeMap<u64, SctpMessage>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Inbound {
    streams: BTreeMap<u16, InboundStream>,
    ready: VecDeque<SctpMessage>,
    bytes: u64,
    /// How many messages wait.
    messages: u64,
    /// Bytes and number of messages whose turn has come so far.
    pub(super) delivered: (u64, u64),
}

impl Inbound {
    /// Bytes that wait.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many messages wait.
    pub(super) const fn messages(&self) -> u64 {
        self.messages
    }

    /// Whether the application could take a message.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes a whole message. `is_short` says that its number has 16 bits.
    pub(super) fn arrive(&mut self, wire: u32, is_short: bool, message: SctpMessage) {
        if message.is_unordered {
            self.bytes += message.data.len() as u64;
            self.messages += 1;
            return self.deliver(message);
        }
        let stream = self.stream(message.stream);
        let at = expand(stream.next, wire, is_short);
        // A number that was there before is a message that was given up.
        if at < stream.next || stream.waiting.contains_key(&at) {
            return;
        }
        let (number, id) = (message.data.len() as u64, message.stream);
        stream.waiting.insert(at, message);
        self.bytes += number;
        self.messages += 1;
        self.release(id);
    }

    /// Messages of a stream up to this one are given up.
    pub(super) fn skip(&mut self, id: u16, wire: u32, is_short: bool) {
        let stream = self.stream(id);
        let next = expand(stream.next, wire, is_short) + 1;
        // Whole ones among them are delivered all the same.
        let later = stream.waiting.split_off(&next.max(stream.next));
        let early = core::mem::replace(&mut stream.waiting, later);
        stream.next = stream.next.max(next);
        early.into_values().for_each(|message| self.deliver(message));
        self.release(id);
    }

    /// The streams that messages have come on.
    pub(super) fn streams(&self) -> impl Iterator<Item = u16> {
        self.streams.keys().copied()
    }

    /// The messages of a stream are numbered anew. What still waits there waits for what was given
    /// up, and is given up too.
    pub(super) fn reset(&mut self, id: u16) {
        let Some(stream) = self.streams.remove(&id) else { return };
        for message in stream.waiting.into_values() {
            self.bytes -= message.data.len() as u64;
            self.messages -= 1;
        }
    }

    /// The next message for the application.
    pub(super) fn take(&mut self) -> Option<SctpMessage> {
        let message = self.ready.pop_front()?;
        self.bytes -= message.data.len() as u64;
        self.messages -= 1;
        Some(message)
    }

    fn stream(&mut self, id: u16) -> &mut InboundStream {
        let blank = || InboundStream { next: number::first(0), waiting: BTreeMap::new() };
        self.streams.entry(id).or_insert_with(blank)
    }

    fn release(&mut self, id: u16) {
        loop {
            let stream = self.stream(id);
            let Some(message) = stream.waiting.remove(&stream.next) else { return };
            stream.next += 1;
            self.deliver(message);
        }
    }

    fn deliver(&mut self, message: SctpMessage) {
        self.delivered.0 += message.data.len() as u64;
        self.delivered.1 += 1;
        self.ready.push_back(message);
    }
}

const fn expand(near: u64, wire: u32, is_short: bool) -> u64 {
    if is_short { number::expand_short(near, wire as u16) } else { number::expand(near, wire) }
}
