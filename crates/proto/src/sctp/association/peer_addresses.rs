//! Changes of the peer's addresses (RFC 5061 sections 5.2 to 5.4).

use core::net::IpAddr;

use bytes::Bytes;
use fontis_base::Time;
use smallvec::SmallVec;

use super::SctpAssociation;
use crate::sctp::addresses::{MOST_ADDRESSES, Turn, is_of_a_host};
use crate::sctp::chunk::{
    AddressAnswer, AddressChange, AddressParameter, AsconfAckChunk, AsconfChunk, SctpCause,
    SctpChunk,
};
use crate::sctp::message::SctpEvent;
use crate::sctp::packet::SctpPacket;
use crate::sctp::wire::write_change;

/// Events that wait for the application until the peer's addresses may not change.
const MOST_EVENTS: usize = 1024;
/// Bytes of answers in a packet at most: what any path carries, with its headers (rule E7).
const MOST_BYTES: usize = 480;

impl SctpAssociation {
    /// Takes the requests of a packet, and answers them where it came from (rule E6).
    pub(super) fn on_asconfs(&mut self, now: Time, ends: [IpAddr; 2], packet: &SctpPacket) {
        let mut answers: Vec<SctpChunk> = Vec::new();
        let mut is_first = true;
        for chunk in &packet.chunks {
            let SctpChunk::Asconf(asconf) = chunk else { continue };
            let answer = match self.addresses.turn(asconf.number) {
                Turn::Next => Some(self.on_asconf(now, ends[1], asconf, is_first)),
                Turn::Repeat => self.addresses.answer_to(asconf.number).cloned(),
                // It is old, or an attacker's (rule E5).
                Turn::Stray => None,
            };
            is_first = false;
            let Some(answer) = answer.map(SctpChunk::AsconfAck) else { continue };
            let bytes: usize = answers.iter().map(SctpChunk::size).sum();
            // The peer asks again for what does not fit.
            if answers.is_empty() || bytes + answer.size() <= MOST_BYTES {
                answers.push(answer);
            }
        }
        if !answers.is_empty() && self.replies.len() < 64 {
            // An address that this end has given up is no source any more (rule F4).
            let [local, peer] = ends;
            let addresses = &self.addresses;
            let stays =
                |own: &IpAddr| own.is_ipv4() == peer.is_ipv4() && !addresses.is_leaving(*own);
            let staying = || addresses.own.iter().copied().filter(stays);
            let source = staying().find(|own| *own == local).or_else(|| staying().next());
            let ends = [source.unwrap_or(local), peer];
            let path = self.path_of(ends);
            let tag = self.tags[1];
            self.replies.push_back(super::Reply { path, ends, tag, chunks: answers });
        }
    }

    /// Takes the next request; the answer to it.
    fn on_asconf(
        &mut self,
        now: Time,
        source: IpAddr,
        asconf: &AsconfChunk,
        is_first: bool,
    ) -> AsconfAckChunk {
        let mut answers: SmallVec<[AddressAnswer; 2]> = SmallVec::new();
        // Once an address was neither added nor removed no further one is (rule F11). What has no
        // answer has succeeded, but not behind a failure (rule A7).
        let mut failed: Option<u16> = None;
        for parameter in &asconf.parameters {
            match parameter {
                AddressParameter::Change { id, change } => {
                    let is_primary = matches!(change, AddressChange::Primary(_));
                    let outcome = match failed.filter(|_| !is_primary) {
                        Some(code) => Err(code),
                        None => self.change_peer(now, source, *change),
                    };
                    let causes = match outcome {
                        Ok(()) if answers.is_empty() => continue,
                        Ok(()) => Vec::new(),
                        Err(code) => vec![cause_of(code, *id, *change)],
                    };
                    failed = failed.or(outcome.err().filter(|_| !is_primary));
                    answers.push(AddressAnswer { id: *id, causes });
                }
                AddressParameter::Unknown { kind, value } => {
                    // The two highest bits of a type say what becomes of it (RFC 9260 section
                    // 3.2.1).
                    if kind & 0x4000 != 0 {
                        answers.push(unknown(*kind, value));
                    }
                    if kind & 0x8000 == 0 {
                        break;
                    }
                }
            }
        }
        let answer = AsconfAckChunk { number: asconf.number, answers };
        self.addresses.keep(answer.clone(), is_first);
        answer
    }

    /// Does what the peer asks for; the code of the cause if it is refused.
    fn change_peer(&mut self, now: Time, source: IpAddr, change: AddressChange) -> Result<(), u16> {
        let is_source = change.address().is_unspecified();
        let address = if is_source { source } else { change.address() };
        let is_known = self.addresses.peers.contains(&address);
        if !is_of_a_host(address) {
            return Err(SctpCause::INVALID_PARAMETER);
        }
        if self.events.len() >= MOST_EVENTS {
            return Err(SctpCause::ADDRESS_SHORTAGE);
        }
        match change {
            AddressChange::Add(_) if is_known => return Ok(()),
            AddressChange::Add(_) => {
                let reaches = |own: &IpAddr| own.is_ipv4() == address.is_ipv4();
                if !self.addresses.own.iter().any(reaches) {
                    return Err(SctpCause::UNUSABLE_ADDRESS);
                }
                if self.addresses.peers.len() >= MOST_ADDRESSES || !self.has_room_for_path() {
                    return Err(SctpCause::ADDRESS_SHORTAGE);
                }
                self.addresses.add_peer(address);
                self.pair_addresses(now);
            }
            // All but the source.
            AddressChange::Remove(_) if is_source => {
                if !is_known {
                    return Err(SctpCause::LAST_ADDRESS);
                }
                let peers = self.addresses.peers.clone();
                for other in peers.into_iter().filter(|peer| *peer != source) {
                    self.lose_peer(now, other);
                }
                return Ok(());
            }
            // It is as the peer wants it.
            AddressChange::Remove(_) if !is_known => return Ok(()),
            AddressChange::Remove(_) => {
                if self.addresses.peers.len() == 1 {
                    return Err(SctpCause::LAST_ADDRESS);
                }
                if address == source {
                    return Err(SctpCause::SOURCE_ADDRESS);
                }
                self.lose_peer(now, address);
                return Ok(());
            }
            AddressChange::Primary(_) => {
                if !is_known {
                    return Err(SctpCause::UNUSABLE_ADDRESS);
                }
                self.addresses.wanted_primary = Some(address);
                self.choose_primary();
            }
        }
        self.events.push_back(SctpEvent::PeerAddress(change.at(address)));
        Ok(())
    }

    /// The peer has lost an address (rule F13).
    fn lose_peer(&mut self, now: Time, address: IpAddr) {
        self.addresses.remove_peer(address);
        let rto = self.paths[self.primary].estimator.rto;
        self.addresses.strays_until = now + rto * 2;
        self.close_paths(|[_, peer]| peer == address);
        self.replies.retain(|reply| reply.ends[1] != address);
        self.pair_addresses(now);
        self.choose_primary();
        self.events.push_back(SctpEvent::PeerAddress(AddressChange::Remove(address)));
    }
}

/// A cause with the parameter that it refuses (section 4.3).
fn cause_of(code: u16, id: u32, change: AddressChange) -> SctpCause {
    let mut details = Vec::new();
    write_change(id, change, &mut details);
    SctpCause { code, details: details.into() }
}

/// The report of a parameter that is not known (rule V2). Its number is where changes have theirs.
fn unknown(kind: u16, value: &Bytes) -> AddressAnswer {
    let number = value.first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
    let mut details = kind.to_be_bytes().to_vec();
    details.extend_from_slice(&((4 + value.len()) as u16).to_be_bytes());
    details.extend_from_slice(&value[..value.len().min(64)]);
    let cause = SctpCause { code: SctpCause::UNKNOWN_PARAMETERS, details: details.into() };
    AddressAnswer { id: number, causes: vec![cause] }
}
