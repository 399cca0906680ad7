//! Resets of streams under way (RFC 6525).

use std::collections::BTreeMap;

use fontis_base::Time;
use smallvec::SmallVec;

/// The most streams of one request.
const MOST: usize = 64;

/// A request of this end.
#[derive(Clone, Debug)]
pub(super) struct ResetRequest {
    pub(super) number: u32,
    /// The last TSN before.
    pub(super) last: u32,
    pub(super) streams: SmallVec<[u16; 4]>,
    /// When it leaves, or leaves again.
    pub(super) at: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Resets {
    /// Streams that are to be reset. With the TSN that the first chunk after their last one has, if
    /// that is known: the peer must have all before it.
    wanted: BTreeMap<u16, Option<u64>>,
    /// The one request that waits for its answer.
    pub(super) request: Option<ResetRequest>,
    /// The number of the next request.
    next: u32,
    /// The number of the peer's next request.
    pub(super) expected: u32,
    /// What became of the peer's last request.
    pub(super) result: u32,
}

impl Resets {
    /// Nothing is reset; these are the first TSNs of this end and the peer, which are the numbers
    /// of the first requests too (section 4.1).
    pub(super) const fn new([own, peer]: [u32; 2]) -> Self {
        Self { wanted: BTreeMap::new(), request: None, next: own, expected: peer, result: 0 }
    }

    /// Whether a stream is to be reset.
    pub(super) fn is_wanted(&self, stream: u16) -> bool {
        self.wanted.contains_key(&stream)
    }

    pub(super) fn want(&mut self, stream: u16) {
        self.wanted.entry(stream).or_insert(None);
    }

    /// Whether streams wait for their request.
    pub(super) fn is_idle(&self) -> bool {
        self.request.is_some() || self.wanted.is_empty()
    }

    /// Makes the request for the streams of which nothing is under way: `has_waiting` says whether
    /// messages of one wait, `flight` is the first TSN that the peer has not and the next one.
    pub(super) fn begin(&mut self, now: Time, has_waiting: impl Fn(u16) -> bool, flight: [u64; 2]) {
        let [first, end] = flight;
        for (stream, known) in &mut self.wanted {
            if known.is_none() && !has_waiting(*stream) {
                *known = Some(end);
            }
        }
        let is_ready = |known: &Option<u64>| known.is_some_and(|known| known <= first);
        let ready = self.wanted.iter().filter(|(_, known)| is_ready(known));
        let streams: SmallVec<[u16; 4]> = ready.map(|(stream, _)| *stream).take(MOST).collect();
        if !streams.is_empty() {
            let last = end.wrapping_sub(1) as u32;
            self.request = Some(ResetRequest { number: self.next, last, streams, at: now });
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Ends the request, if it has this number; its streams.
    pub(super) fn end(&mut self, number: u32) -> SmallVec<[u16; 4]> {
        let Some(request) = self.request.take_if(|request| request.number == number) else {
            return SmallVec::new();
        };
        for stream in &request.streams {
            self.wanted.remove(stream);
        }
        request.streams
    }
}
