//! Chunks that have a TSN and that the peer has not acknowledged without a gap.

use std::collections::VecDeque;

use fontis_base::Time;
use smallvec::SmallVec;

use super::chunk::DataChunk;
use super::data::SctpData;
use super::outbox::ChunkOrigin;

/// A chunk under way.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) chunk: DataChunk,
    pub(super) origin: ChunkOrigin,
    pub(super) state: ChunkState,
    /// Its copies in flight.
    pub(super) live: SmallVec<[Departure; 1]>,
    /// How often it was sent.
    pub(super) sends: u32,
    /// Reports that say that it is missing.
    pub(super) missing: u32,
    /// Whether reports have had it sent again.
    pub(super) was_fast: bool,
    /// The path of its last copy.
    pub(super) path: u8,
}

/// A copy of a chunk in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) path: u8,
    /// Its place in the order of all departures of the association.
    pub(super) order: u64,
    pub(super) at: Time,
    /// Whether it has left the network, come or lost: what left later has come, and no SACK had
    /// room to tell of this one.
    pub(super) is_out: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// It has a TSN and was never sent.
    Planned,
    /// A copy is in flight.
    InFlight,
    /// It counts as lost, and must be sent again.
    Lost,
    /// The peer has it, beyond a gap.
    Arrived,
    /// It is given up.
    Abandoned,
}

#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// The TSN of the first chunk.
    base: u64,
    chunks: VecDeque<Outstanding>,
    /// Bytes of all chunks.
    bytes: u64,
    lost: usize,
    /// The lowest TSN that was never sent is not below this one.
    unsent: u64,
}

impl Flight {
    pub(super) const fn new(first: u64) -> Self {
        Self { base: first, chunks: VecDeque::new(), bytes: 0, lost: 0, unsent: first }
    }

    /// The lowest TSN that the peer has not acknowledged.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// The TSN of the next chunk that is made.
    pub(super) fn end(&self) -> u64 {
        self.base + self.chunks.len() as u64
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn get(&self, tsn: u64) -> Option<&Outstanding> {
        self.chunks.get(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }

    pub(super) fn get_mut(&mut self, tsn: u64) -> Option<&mut Outstanding> {
        self.chunks.get_mut(usize::try_from(tsn.checked_sub(self.base)?).ok()?)
    }

    /// The chunks and their TSNs, the lowest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Outstanding)> {
        (self.base..).zip(&self.chunks)
    }

    /// Gives a chunk the next TSN.
    pub(super) fn push(&mut self, mut chunk: DataChunk, origin: ChunkOrigin) -> u64 {
        let tsn = self.end();
        chunk.tsn = tsn as u32;
        self.bytes += chunk.data.len() as u64;
        self.chunks.push_back(Outstanding {
            chunk,
            origin,
            state: ChunkState::Planned,
            live: SmallVec::new(),
            sends: 0,
            missing: 0,
            was_fast: false,
            path: 0,
        });
        tsn
    }

    /// The lowest TSN that was never sent; [`Flight::end`] if there is none.
    pub(super) fn first_unsent(&mut self) -> u64 {
        self.unsent = self.unsent.max(self.base);
        while self.get(self.unsent).is_some_and(|chunk| chunk.state != ChunkState::Planned) {
            self.unsent += 1;
        }
        self.unsent
    }

    /// The lowest TSN from `from` on that must be sent again.
    pub(super) fn next_lost(&self, from: u64) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        let skip = from.saturating_sub(self.base) as usize;
        let lost = |(_, chunk): &(usize, &Outstanding)| chunk.state == ChunkState::Lost;
        let (at, _) = self.chunks.iter().enumerate().skip(skip).find(lost)?;
        Some(self.base + at as u64)
    }

    /// Changes the state of a chunk.
    pub(super) fn set(&mut self, tsn: u64, state: ChunkState) {
        let Some(chunk) = self.get_mut(tsn) else { return };
        let before = core::mem::replace(&mut chunk.state, state);
        self.lost += usize::from(state == ChunkState::Lost);
        self.lost -= usize::from(before == ChunkState::Lost);
    }

    /// Notes that a copy leaves.
    pub(super) fn depart(&mut self, tsn: u64, departure: Departure) {
        self.set(tsn, ChunkState::InFlight);
        let Some(chunk) = self.get_mut(tsn) else { return };
        chunk.live.push(departure);
        chunk.sends = chunk.sends.saturating_add(1);
        chunk.missing = 0;
        chunk.path = departure.path;
    }

    /// Frees the memory of a chunk that the peer will not drop any more.
    pub(super) fn release(&mut self, tsn: u64) {
        let Some(chunk) = self.get_mut(tsn) else { return };
        let data = core::mem::replace(&mut chunk.chunk.data, SctpData::Counted(0));
        self.bytes -= data.len() as u64;
    }

    /// Takes the first chunk away.
    pub(super) fn pop(&mut self) -> Option<Outstanding> {
        let chunk = self.chunks.pop_front()?;
        self.base += 1;
        self.bytes -= chunk.chunk.data.len() as u64;
        self.lost -= usize::from(chunk.state == ChunkState::Lost);
        Some(chunk)
    }

    /// The TSN before which all is given up or has arrived, counted from the first chunk: what the
    /// peer may be told to forward to.
    pub(super) fn advanced(&self) -> u64 {
        let given_up = |chunk: &&Outstanding| chunk.state == ChunkState::Abandoned;
        self.base + self.chunks.iter().take_while(given_up).count() as u64
    }
}
