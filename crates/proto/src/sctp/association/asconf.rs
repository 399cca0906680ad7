//! Changes of this end's addresses (RFC 5061 section 5.1).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fontis_base::Time;
use smallvec::SmallVec;

use super::{SctpAssociation, State};
use crate::sctp::addresses::{AddressRequest, MOST_ADDRESSES, is_of_a_host};
use crate::sctp::chunk::{AddressChange, AsconfAckChunk, SctpCause, SctpChunk};
use crate::sctp::config::DynamicAddresses;
use crate::sctp::message::{AbortReason, SctpAddressError, SctpEvent, SctpTransmit};

/// An address of zeros of the same family.
const fn unnamed(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

impl SctpAssociation {
    /// Tells the peer of a change of this end's addresses: that there is a further one, that one is
    /// gone, or at which one it would receive. [`SctpEvent::AddressChanged`] or
    /// [`SctpEvent::AddressRefused`] tells what became of it. Changes that wait together are asked
    /// for together, so that an only address may be replaced: the new one is added first.
    ///
    /// Nothing leaves from an address that is to be removed any more, and nothing but such requests
    /// from one that the peer has not agreed to (rules F1 and F4).
    ///
    /// # Errors
    /// If such a change is not possible.
    pub fn change_address(&mut self, change: AddressChange) -> Result<(), SctpAddressError> {
        if !self.is_connected() {
            return Err(SctpAddressError::Closing);
        }
        if !self.features.dynamic || self.addresses.is_refused {
            return Err(SctpAddressError::NotAgreed);
        }
        let address = change.address();
        let reaches = |peer: &IpAddr| peer.is_ipv4() == address.is_ipv4();
        if !is_of_a_host(address) || !self.addresses.peers.iter().any(reaches) {
            return Err(SctpAddressError::Unusable { address });
        }
        let planned = self.addresses.planned();
        let has = planned.contains(&address);
        let is_unnamed = self.config.dynamic == DynamicAddresses::Unnamed;
        match change {
            AddressChange::Add(_) if !has && planned.len() >= MOST_ADDRESSES => {
                return Err(SctpAddressError::TooMany { most: MOST_ADDRESSES });
            }
            AddressChange::Remove(_) | AddressChange::Primary(_) if !has => {
                return Err(SctpAddressError::Unknown { address });
            }
            AddressChange::Remove(_) if planned.len() == 1 => {
                return Err(SctpAddressError::Last { address });
            }
            AddressChange::Remove(_) if is_unnamed && planned.len() > 2 => {
                return Err(SctpAddressError::Unnamed);
            }
            _ => {}
        }
        if !self.addresses.has_room() {
            return Err(SctpAddressError::TooMany { most: MOST_ADDRESSES });
        }
        self.addresses.want(change);
        Ok(())
    }

    /// The addresses of this end that the peer knows.
    pub fn own_addresses(&self) -> &[IpAddr] {
        &self.addresses.own
    }

    /// The addresses of the peer. Those that have not answered carry no data.
    pub fn peer_addresses(&self) -> &[IpAddr] {
        &self.addresses.peers
    }

    /// Whether requests may leave, and be answered (section 5.1.1 rule C4).
    pub(super) const fn changes_addresses(&self) -> bool {
        matches!(
            self.state,
            State::Established
                | State::ShutdownPending
                | State::ShutdownReceived
                | State::ShutdownSent
        )
    }

    /// When a request must leave again (T4).
    pub(super) fn address_due(&self) -> Time {
        let request = self.addresses.request.as_ref().filter(|_| self.changes_addresses());
        // Without a way it waits until an address has answered.
        let request = request.filter(|request| self.ends_of_request(request).is_some());
        request.map_or(Time::MAX, |request| request.at)
    }

    /// The request that is due.
    pub(super) fn next_address_request(&mut self, now: Time) -> Option<SctpTransmit> {
        if !self.changes_addresses() {
            return None;
        }
        let is_unnamed = self.config.dynamic == DynamicAddresses::Unnamed;
        let name = |address| if is_unnamed { unnamed(address) } else { address };
        if self.addresses.begin_request(now, is_unnamed, name).is_some() {
            let addresses = &self.addresses;
            let own = addresses.own.iter().copied();
            let leaving: SmallVec<[IpAddr; 2]> =
                own.filter(|own| addresses.is_leaving(*own)).collect();
            self.close_paths(|[local, _]| leaving.contains(&local));
            self.pair_addresses(now);
        }
        let request = self.addresses.request.as_ref().filter(|request| request.at <= now)?;
        let (ends, path) = self.ends_of_request(request)?;
        let rto = path.map_or(self.config.timers.initial, |at| self.paths[at].estimator.rto);
        let most = self.config.timers.most;
        let request = self.addresses.request.as_mut()?;
        // Where no path is left the wait doubles, as that of a path does (rule B3).
        request.rto = if path.is_some() { rto } else { rto.max(request.rto * 2) }.min(most);
        request.at = now + request.rto;
        (request.path, request.sends) = (path, request.sends.saturating_add(1));
        let chunk = SctpChunk::Asconf(request.chunk.clone());
        let number = path.unwrap_or(self.primary) as u8;
        Some(self.transmit(number, ends, self.tags[1], vec![chunk]))
    }

    /// The addresses of a request, and its path if it takes one. It leaves from an address that the
    /// peer knows; each further time, from another one, of which one may be new (rules B4 and F1).
    fn ends_of_request(&self, request: &AddressRequest) -> Option<([IpAddr; 2], Option<usize>)> {
        let peer_of = |address: IpAddr| {
            let reaches = |peer: IpAddr| peer.is_ipv4() == address.is_ipv4();
            let primary = self.paths[self.primary].peer;
            let fits = || self.addresses.peers.iter().copied().filter(|peer| reaches(*peer));
            fits().find(|peer| *peer == primary).or_else(|| fits().next())
        };
        let added = |(_, change): &(u32, AddressChange)| match change {
            AddressChange::Add(address) => Some(([*address, peer_of(*address)?], None)),
            _ => None,
        };
        // One that the same request removes first would be refused as its source.
        let mut added: SmallVec<[([IpAddr; 2], Option<usize>); 4]> =
            request.changes.iter().filter_map(added).collect();
        let is_leaving = |[own, _]: [IpAddr; 2]| self.addresses.is_leaving(own);
        if added.iter().any(|(ends, _)| !is_leaving(*ends)) {
            added.retain(|(ends, _)| !is_leaving(*ends));
        }
        let known = self.paths.iter().enumerate().filter(|(_, path)| path.is_confirmed());
        let known = known.map(|(at, path)| ([path.local, path.peer], Some(at)));
        let mut ends: SmallVec<[([IpAddr; 2], Option<usize>); 4]> = SmallVec::new();
        let (_, change) = request.changes.first()?;
        match change {
            // The source of the packet is what is meant.
            AddressChange::Add(_) if self.config.dynamic == DynamicAddresses::Unnamed => {
                ends.extend(added);
            }
            AddressChange::Primary(own) if self.config.dynamic == DynamicAddresses::Unnamed => {
                ends.extend(known.filter(|([local, _], _)| local == own));
            }
            _ => {
                ends.extend(known);
                ends.sort_by_key(|(_, at)| *at != Some(self.primary));
                ends.extend(added);
            }
        }
        let count = ends.len().max(1);
        ends.get(request.sends as usize % count).copied()
    }

    /// The request was not answered in time (rules B1 to B3).
    pub(super) fn on_address_timeout(&mut self, now: Time) {
        let is_open = self.changes_addresses();
        let Some(request) = &mut self.addresses.request else { return };
        if request.at > now || request.sends == request.timeouts || !is_open {
            return;
        }
        request.timeouts = request.sends;
        match request.path.filter(|at| self.paths[*at].is_confirmed()) {
            Some(at) => {
                self.paths[at].estimator.back_off();
                self.on_failure(now, at, true);
            }
            None => self.count_failure(),
        }
    }

    /// The peer answers a request.
    pub(super) fn on_asconf_ack(&mut self, now: Time, ack: &AsconfAckChunk) {
        if !self.features.dynamic || !self.changes_addresses() {
            return;
        }
        let Some(ended) = self.addresses.end_request(ack.number) else {
            // Rule F0.
            let cause = SctpCause::of(SctpCause::ILLEGAL_ACK);
            return self.break_off(AbortReason::Violation("an answer without a request"), cause);
        };
        let Some(request) = ended else { return };
        self.failures = 0;
        if let Some(path) = request.path.and_then(|at| self.paths.get_mut(at)) {
            path.failures = 0;
        }
        // What follows a change that is refused is refused, too, unless the peer says that it is
        // done (rules A7 and A8).
        let mut failed = None;
        for (id, change) in request.changes {
            let answer = ack.answers.iter().find(|answer| answer.id == id);
            let cause = match answer {
                Some(answer) => answer.causes.first().map(|cause| cause.code),
                None => failed,
            };
            failed = failed.or(cause);
            match cause {
                None => self.note_changed(change),
                Some(code) => {
                    // Rule F3.
                    self.addresses.is_refused |= code == SctpCause::UNKNOWN_PARAMETERS;
                    self.events.push_back(SctpEvent::AddressRefused(change, code));
                }
            }
        }
        self.pair_addresses(now);
        self.choose_primary();
    }

    /// The peer has done what this end asked for.
    fn note_changed(&mut self, change: AddressChange) {
        let own = &mut self.addresses.own;
        match change {
            AddressChange::Add(address) if !own.contains(&address) => own.push(address),
            AddressChange::Remove(address) => own.retain(|own| *own != address),
            _ => {}
        }
        // A restart names the addresses that are there.
        self.config.addresses.clone_from(own);
        self.events.push_back(SctpEvent::AddressChanged(change));
    }

    /// The peer does not know the chunk (rule A9).
    pub(super) fn on_unknown_asconf(&mut self, now: Time) {
        if self.addresses.request.is_none() {
            return;
        }
        self.addresses.is_refused = true;
        for change in self.addresses.drop_requests() {
            let refused = SctpEvent::AddressRefused(change, SctpCause::UNKNOWN_CHUNK);
            self.events.push_back(refused);
        }
        self.pair_addresses(now);
        self.choose_primary();
    }
}
