//! Addresses of both ends, and changes of them under way (RFC 5061).

use core::net::IpAddr;
use std::collections::VecDeque;

use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::chunk::{AddressChange, AddressParameter, AsconfAckChunk, AsconfChunk};

/// Addresses of an end at most, and requests that wait.
pub(super) const MOST_ADDRESSES: usize = 16;
/// Answers that may be asked for again, at most.
const MOST_ANSWERS: usize = 8;

/// The addresses of an association. There is at least one of each end once its paths are open.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    /// Those of this end that the peer knows, and those of the peer.
    pub(super) own: SmallVec<[IpAddr; 2]>,
    pub(super) peers: SmallVec<[IpAddr; 2]>,
    /// Changes that wait for their request.
    wanted: VecDeque<AddressChange>,
    /// The one request that waits for its answer.
    pub(super) request: Option<AddressRequest>,
    /// The number of the next request, and that of the next change.
    next: u32,
    next_id: u32,
    /// The number of the peer's next request.
    expected: u32,
    /// The newest answers to the peer, the last one at the end.
    answers: VecDeque<AsconfAckChunk>,
    /// Addresses that the peer has removed, the last one at the end.
    gone: VecDeque<IpAddr>,
    /// Until when a packet that was on its way to a lost address may be answered with an ABORT.
    pub(super) strays_until: Time,
    /// The address that the peer would receive at, and that has not answered yet.
    pub(super) wanted_primary: Option<IpAddr>,
    /// Whether the peer has said that it knows no such requests.
    pub(super) is_refused: bool,
}

/// A request of this end.
#[derive(Clone, Debug)]
pub(super) struct AddressRequest {
    pub(super) chunk: AsconfChunk,
    /// The changes, and the numbers that the answers bear.
    pub(super) changes: SmallVec<[(u32, AddressChange); 2]>,
    /// When it leaves, or leaves again.
    pub(super) at: Time,
    /// How often it has left, and of these how often before its last timeout; the path that it took
    /// last, and how long it waits.
    pub(super) sends: u32,
    pub(super) timeouts: u32,
    pub(super) path: Option<usize>,
    pub(super) rto: Duration,
}

/// A place in the sequence of the peer's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is the next one.
    Next,
    /// It was there before.
    Repeat,
    /// It is none of these.
    Stray,
}

impl Addresses {
    /// Nothing changes; `own` and `peer` are the first TSNs, which are the first numbers of
    /// requests too (section 5.1 rule A2).
    pub(super) const fn new([own, peer]: [u32; 2]) -> Self {
        Self {
            own: SmallVec::new_const(),
            peers: SmallVec::new_const(),
            wanted: VecDeque::new(),
            request: None,
            next: own,
            next_id: 0,
            expected: peer,
            answers: VecDeque::new(),
            gone: VecDeque::new(),
            strays_until: Time::ZERO,
            wanted_primary: None,
            is_refused: false,
        }
    }

    /// Begins anew with these first TSNs and the same addresses.
    pub(super) fn renumber(&mut self, tsns: [u32; 2]) {
        let (own, peers) = (core::mem::take(&mut self.own), core::mem::take(&mut self.peers));
        *self = Self { own, peers, ..Self::new(tsns) };
    }

    /// Takes the addresses of paths.
    pub(super) fn begin(&mut self, pairs: &[[IpAddr; 2]]) {
        self.own.clear();
        self.peers.clear();
        for [own, peer] in pairs {
            for (address, all) in [(own, &mut self.own), (peer, &mut self.peers)] {
                if !all.contains(address) {
                    all.push(*address);
                }
            }
        }
    }

    /// The addresses of this end once all that is wanted is done.
    pub(super) fn planned(&self) -> SmallVec<[IpAddr; 2]> {
        let mut planned = self.own.clone();
        let asked = self.request.iter().flat_map(|request| &request.changes);
        for change in asked.map(|(_, change)| change).chain(&self.wanted) {
            match change {
                AddressChange::Add(address) if !planned.contains(address) => planned.push(*address),
                AddressChange::Remove(address) => planned.retain(|own| own != address),
                _ => {}
            }
        }
        planned
    }

    /// Whether another change may wait.
    pub(super) fn has_room(&self) -> bool {
        self.wanted.len() < MOST_ADDRESSES
    }

    pub(super) fn want(&mut self, change: AddressChange) {
        self.wanted.push_back(change);
    }

    /// Makes the request for what waits; for one change alone if `is_alone`. `name` says how the
    /// peer is told of an address.
    pub(super) fn begin_request(
        &mut self,
        now: Time,
        is_alone: bool,
        name: impl Fn(IpAddr) -> IpAddr,
    ) -> Option<&AddressRequest> {
        if self.request.is_some() || self.wanted.is_empty() {
            return None;
        }
        let count = if is_alone { 1 } else { self.wanted.len() };
        let mut changes: SmallVec<[(u32, AddressChange); 2]> = SmallVec::new();
        for change in self.wanted.drain(..count) {
            changes.push((self.next_id, change));
            self.next_id = self.next_id.wrapping_add(1);
        }
        let parameters = changes.iter().map(|(id, change)| {
            let change = change.at(name(change.address()));
            AddressParameter::Change { id: *id, change }
        });
        let lookup = name(*self.own.first()?);
        let chunk = AsconfChunk { number: self.next, lookup, parameters: parameters.collect() };
        self.next = self.next.wrapping_add(1);
        let rto = Duration::ZERO;
        let request =
            AddressRequest { chunk, changes, at: now, sends: 0, timeouts: 0, path: None, rto };
        Some(self.request.insert(request))
    }

    /// Whether an address of this end is about to be gone: nothing leaves from there any more
    /// (section 5.3 rule F4).
    pub(super) fn is_leaving(&self, address: IpAddr) -> bool {
        let mut changes = self.request.iter().flat_map(|request| &request.changes);
        changes.any(|(_, change)| *change == AddressChange::Remove(address))
    }

    /// Ends the request, if it has this number. `None` if the number is none that was given yet:
    /// the peer answers what nobody asked for.
    pub(super) fn end_request(&mut self, number: u32) -> Option<Option<AddressRequest>> {
        let ended = self.request.take_if(|request| request.chunk.number == number);
        let is_ahead = number.wrapping_sub(self.next) < 1 << 31;
        (ended.is_some() || !is_ahead).then_some(ended)
    }

    /// All changes that wait or are asked for; none is any more.
    pub(super) fn drop_requests(&mut self) -> Vec<AddressChange> {
        let asked = self.request.take().into_iter().flat_map(|request| request.changes);
        asked.map(|(_, change)| change).chain(self.wanted.drain(..)).collect()
    }

    /// The turn of a request of the peer (section 5.2 rules E1 to E5).
    pub(super) fn turn(&self, number: u32) -> Turn {
        if number == self.expected {
            return Turn::Next;
        }
        let is_known = self.answers.iter().any(|answer| answer.number == number);
        if is_known { Turn::Repeat } else { Turn::Stray }
    }

    /// The answer that was given to a request.
    pub(super) fn answer_to(&self, number: u32) -> Option<&AsconfAckChunk> {
        self.answers.iter().find(|answer| answer.number == number)
    }

    /// Keeps an answer to the request that was next. The peer has the answers to all before it if
    /// it `is_first` in its packet.
    pub(super) fn keep(&mut self, answer: AsconfAckChunk, is_first: bool) {
        if is_first || self.answers.len() == MOST_ANSWERS {
            self.answers.clear();
        }
        self.expected = self.expected.wrapping_add(1);
        self.answers.push_back(answer);
    }

    /// The peer has a further address.
    pub(super) fn add_peer(&mut self, address: IpAddr) {
        self.gone.retain(|gone| *gone != address);
        self.peers.push(address);
    }

    /// The peer has lost an address.
    pub(super) fn remove_peer(&mut self, address: IpAddr) {
        self.peers.retain(|peer| *peer != address);
        if self.gone.len() == MOST_ADDRESSES {
            self.gone.pop_front();
        }
        self.gone.push_back(address);
        self.wanted_primary.take_if(|wanted| *wanted == address);
    }

    /// Whether the peer has lost an address and has not got it back.
    pub(super) fn is_gone(&self, address: IpAddr) -> bool {
        self.gone.contains(&address)
    }
}

/// Whether an address can be that of one host.
pub(super) const fn is_of_a_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || is_broadcast)
}
