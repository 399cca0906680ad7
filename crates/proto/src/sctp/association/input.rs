//! What comes from the peer.

use core::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Time};

use super::{SctpAssociation, State};
use crate::sctp::chunk::{InitChunk, SctpCause, SctpChunk, StampEcho};
use crate::sctp::message::{AbortReason, SctpEvent, SctpPathState};
use crate::sctp::packet::SctpPacket;
use crate::sctp::wire::{encode_chunks, kind};

/// Bytes of a heartbeat's content: its path, when it left, and a nonce.
const HEARTBEAT: usize = 1 + 8 + 8;

impl SctpAssociation {
    /// Takes a packet that came to an address of this end from one of the peer (`ends`).
    pub fn handle(&mut self, now: Time, ends: [IpAddr; 2], packet: &SctpPacket, is_marked: bool) {
        if self.state == State::Closed || packet.chunks.is_empty() {
            return;
        }
        let admitted = self.admit(ends, packet);
        let packet = admitted.as_ref();
        let asks = packet.chunks.iter().any(|chunk| matches!(chunk, SctpChunk::Asconf(_)));
        // What an address that the peer has lost still sends is not the peer's (RFC 5061 rule F13).
        let is_gone = self.addresses.is_gone(ends[1]) && !asks;
        if is_gone || !self.takes(now, ends, packet) {
            return;
        }
        self.stats.received += 1;
        if asks && self.features.dynamic && self.changes_addresses() {
            self.on_asconfs(now, ends, packet);
        }
        let path = self.path_of(ends);
        let mut has_data = false;
        let echo = packet.chunks.iter().find_map(|chunk| match chunk {
            SctpChunk::Echo(echo) => Some(*echo),
            _ => None,
        });
        let stamp = packet.chunks.iter().rev().find_map(|chunk| match chunk {
            SctpChunk::Stamp(stamp) => Some(*stamp),
            _ => None,
        });
        let is_data = |chunk: &SctpChunk| matches!(chunk, SctpChunk::Data(_));
        let last_data = packet.chunks.iter().rposition(is_data);
        for chunk in &packet.chunks {
            if let SctpChunk::Restored(tsns) = chunk {
                self.on_restored(tsns);
            }
        }
        for (at, chunk) in packet.chunks.iter().enumerate() {
            if self.state == State::Closed {
                return;
            }
            match chunk {
                SctpChunk::Data(data) => {
                    let is_last = last_data == Some(at);
                    has_data |= self.put_in_order(now, data, path, stamp, is_last);
                    if is_marked {
                        self.marks.echo.get_or_insert(data.tsn);
                    }
                }
                SctpChunk::Stamp(_) => {}
                chunk => self.on_chunk(now, ends, path, chunk, echo),
            }
        }
        let has_restored = self.restore(now);
        if has_data || has_restored {
            if let Some(stamp) = stamp {
                self.acks.stamp = Some((stamp, now));
            }
            self.after_data(now, path);
        }
        self.release_in_order(now);
        self.advance_shutdown(now);
    }

    /// Whether a packet belongs to this association (RFC 9260 section 8.5); what begins one is
    /// handled here.
    fn takes(&mut self, now: Time, ends: [IpAddr; 2], packet: &SctpPacket) -> bool {
        let [own, peer] = self.tags;
        match packet.chunks.first() {
            Some(SctpChunk::Init(init)) => {
                if packet.tag == 0 {
                    self.on_init(now, ends, packet, init);
                }
                false
            }
            Some(SctpChunk::CookieEcho(cookie)) => {
                let is_own = packet.tag == own
                    && self.state == State::Established
                    && self.stats.received == 0;
                // The first packet of an association that was just accepted.
                if is_own {
                    self.reply(self.path_of(ends), vec![SctpChunk::CookieAck]);
                    return true;
                }
                self.on_cookie(now, ends, packet, cookie)
            }
            // Its sender knows already what this end has just asked for (RFC 5061 section 5.3.1).
            Some(SctpChunk::Abort { .. }) if self.addresses.is_leaving(ends[0]) => false,
            // So does a peer that answers what was on its way to an address that it has just lost.
            Some(SctpChunk::Abort { is_reflected: true, .. })
                if now < self.addresses.strays_until =>
            {
                false
            }
            Some(
                SctpChunk::Abort { is_reflected, .. }
                | SctpChunk::ShutdownComplete { is_reflected },
            ) => packet.tag == if *is_reflected { peer } else { own },
            Some(_) => packet.tag == own,
            None => false,
        }
    }

    fn on_chunk(
        &mut self,
        now: Time,
        ends: [IpAddr; 2],
        path: Option<u8>,
        chunk: &SctpChunk,
        echo: Option<StampEcho>,
    ) {
        match chunk {
            SctpChunk::InitAck(init) => self.on_init_ack(now, ends, init),
            SctpChunk::Sack(sack) => self.on_sack(now, sack, echo),
            SctpChunk::Heartbeat(info) => {
                self.reply(path, vec![SctpChunk::HeartbeatAck(info.clone())]);
            }
            SctpChunk::HeartbeatAck(info) => self.on_heartbeat_ack(now, info),
            SctpChunk::Abort { causes, .. } => {
                self.replies.clear();
                self.end(SctpEvent::Aborted(AbortReason::Peer(causes.clone())));
            }
            SctpChunk::Error(causes) => {
                if causes.iter().any(|cause| cause.code == SctpCause::STALE_COOKIE) {
                    self.on_stale_cookie(now);
                }
                let is_asconf = |cause: &SctpCause| {
                    cause.code == SctpCause::UNKNOWN_CHUNK
                        && cause.details.first() == Some(&kind::ASCONF)
                };
                if causes.iter().any(is_asconf) {
                    self.on_unknown_asconf(now);
                }
            }
            SctpChunk::CookieAck => {
                if self.state == State::CookieEchoed {
                    self.establish(now);
                }
            }
            SctpChunk::Shutdown { cumulative } => self.on_shutdown(now, *cumulative),
            SctpChunk::ShutdownAck => self.on_shutdown_ack(path),
            SctpChunk::ShutdownComplete { .. } => {
                if self.state == State::ShutdownAckSent {
                    self.end(SctpEvent::Closed);
                }
            }
            SctpChunk::EcnEcho(tsn) => self.on_mark_echo(now, *tsn),
            SctpChunk::WindowReduced(_) => self.marks.echo = None,
            SctpChunk::Forward(forward) => self.on_forward(now, forward),
            SctpChunk::Repair(repair) => self.on_repair(repair),
            SctpChunk::Reconfig(parameters) => {
                parameters.iter().for_each(|parameter| self.on_reconfig(now, path, parameter));
            }
            SctpChunk::AsconfAck(ack) => self.on_asconf_ack(now, ack),
            SctpChunk::Asconf(_) if !self.features.dynamic => {
                let [kind, flags, _, _, value @ ..] =
                    &encode_chunks(core::slice::from_ref(chunk))[..]
                else {
                    return;
                };
                self.report_unknown(path, *kind, *flags, value);
            }
            // Taken before the rest.
            SctpChunk::Asconf(_) | SctpChunk::Restored(_) => {}
            SctpChunk::Unknown { kind, flags, value } if kind & 0x40 != 0 => {
                self.report_unknown(path, *kind, *flags, value);
            }
            SctpChunk::Data(_)
            | SctpChunk::Init(_)
            | SctpChunk::CookieEcho(_)
            | SctpChunk::Auth(_)
            | SctpChunk::Stamp(_)
            | SctpChunk::Echo(_)
            | SctpChunk::Unknown { .. } => {}
        }
    }

    fn report_unknown(&mut self, path: Option<u8>, kind: u8, flags: u8, value: &[u8]) {
        let mut details = vec![kind, flags];
        details.extend_from_slice(&((value.len() + 4) as u16).to_be_bytes());
        details.extend_from_slice(&value[..value.len().min(64)]);
        let cause = SctpCause { code: SctpCause::UNKNOWN_CHUNK, details: details.into() };
        self.reply(path, vec![SctpChunk::Error(vec![cause])]);
    }

    /// The content of a heartbeat on a path.
    pub(super) fn heartbeat_info(path: u8, now: Time, nonce: u64) -> Bytes {
        let mut info = Vec::with_capacity(HEARTBEAT);
        info.push(path);
        info.extend_from_slice(&now.as_nanos().to_be_bytes());
        info.extend_from_slice(&nonce.to_be_bytes());
        info.into()
    }

    fn on_heartbeat_ack(&mut self, now: Time, info: &Bytes) {
        if info.len() != HEARTBEAT {
            return;
        }
        let number =
            |at: usize| info[at..at + 8].iter().fold(0, |n: u64, b| n << 8 | u64::from(*b));
        let (id, nonce) = (info[0], number(9));
        if self.is_mtu_answer(id.into(), nonce) {
            return;
        }
        let Some(path) = self.paths.get_mut(usize::from(id)) else { return };
        let answered = path.heartbeat.filter(|(expected, _)| *expected == nonce);
        let Some((_, sent)) = answered else { return };
        path.heartbeat = None;
        // One that is not padded is small.
        path.mtu.decided(0, true);
        path.estimator.sample(now.since(sent).max(Duration::from_nanos(1)));
        path.failures = 0;
        self.failures = 0;
        self.path_answers(id.into());
        self.schedule_heartbeat(now, id.into());
    }

    /// A path has answered.
    pub(super) fn path_answers(&mut self, at: usize) {
        let before = core::mem::replace(&mut self.paths[at].state, SctpPathState::Active);
        if matches!(before, SctpPathState::Unconfirmed | SctpPathState::Inactive) {
            self.events.push_back(SctpEvent::PathUp(at as u8));
        }
        if before == SctpPathState::Unconfirmed {
            self.after_confirmation();
        }
    }

    fn on_shutdown(&mut self, now: Time, cumulative: u32) {
        self.acknowledge_to(now, cumulative);
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.events.push_back(SctpEvent::PeerFinished);
            }
            // Both closed at once.
            State::ShutdownSent => self.send_shutdown_ack(now),
            _ => {}
        }
    }

    fn on_shutdown_ack(&mut self, path: Option<u8>) {
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            let complete = SctpChunk::ShutdownComplete { is_reflected: false };
            self.reply(path, vec![complete]);
            self.end(SctpEvent::Closed);
        }
    }

    /// Goes on with the end of the association, if all that must come before it is done.
    pub(super) fn advance_shutdown(&mut self, now: Time) {
        let is_done = self.outbox.bytes() == 0 && self.flight.is_empty();
        match self.state {
            State::Established if self.closing.is_wanted => {
                self.state = State::ShutdownPending;
                self.advance_shutdown(now);
            }
            State::ShutdownPending if is_done => {
                self.state = State::ShutdownSent;
                self.closing.at = now;
                // T5, recommended as five times the longest timeout (section 9.2).
                self.closing.end = now + self.config.timers.most * 5;
            }
            State::ShutdownReceived if is_done => {
                self.send_shutdown_ack(now);
                self.closing.end = now + self.config.timers.most * 5;
            }
            _ => {}
        }
    }

    const fn send_shutdown_ack(&mut self, now: Time) {
        self.state = State::ShutdownAckSent;
        self.closing.at = now;
    }

    /// What the peer sent is against the protocol.
    pub(super) fn violate(&mut self, what: &'static str) {
        let details = Bytes::from_static(what.as_bytes());
        let cause = SctpCause { code: SctpCause::VIOLATION, details };
        self.break_off(AbortReason::Violation(what), cause);
    }

    /// The INIT that this end sends.
    pub const fn init(&self) -> &InitChunk {
        &self.handshake.init
    }
}
