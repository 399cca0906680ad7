//! How associations begin, and begin again.

use core::net::IpAddr;

use bytes::Bytes;
use fontis_base::Time;
use smallvec::SmallVec;

use super::auth::{own_offer, refusal, refusal_cause};
use super::{SctpAssociation, State};
use crate::sctp::arrivals::Arrivals;
use crate::sctp::chunk::{InitChunk, SctpCause, SctpChunk};
use crate::sctp::config::SctpConfig;
use crate::sctp::cookie::{BadCookie, Cookie};
use crate::sctp::features::Features;
use crate::sctp::flight::Flight;
use crate::sctp::inbound::Inbound;
use crate::sctp::message::SctpEvent;
use crate::sctp::number;
use crate::sctp::offer::{AuthOffer, AuthParameters};
use crate::sctp::outbox::Outbox;
use crate::sctp::packet::SctpPacket;
use crate::sctp::path::Path;
use crate::sctp::reassembly::Reassembly;
use crate::sctp::resets::Resets;

/// No association was there before.
const NO_TIES: [u32; 2] = [0; 2];

impl SctpAssociation {
    /// A client that connects at `now`, from an address of its own to one of the peer.
    pub fn connect(now: Time, config: SctpConfig, ends: [IpAddr; 2]) -> Self {
        let [tag, tsn] = fresh_numbers(&config, now, 1, ends);
        let mut client = Self::new(config, State::CookieWait, [tag, 0], [tsn, 0]);
        client.open_paths(now, ends, &[]);
        client.handshake.at = now;
        client
    }

    /// The server's end of an association, from the first packet of a client that has a cookie of
    /// [`respond_without_state`].
    ///
    /// # Errors
    /// If the packet makes no association; the answer to it, if it deserves one.
    pub fn accept(
        now: Time,
        config: SctpConfig,
        ends: [IpAddr; 2],
        packet: &SctpPacket,
    ) -> Result<Self, Option<SctpPacket>> {
        let mut chunks = packet.chunks.iter().skip_while(|chunk| is_auth(chunk));
        let Some(SctpChunk::CookieEcho(bytes)) = chunks.next() else { return Err(None) };
        let cookie = match Cookie::open(bytes, &config.secret, now, config.timers.cookie) {
            Ok(cookie) => cookie,
            Err(BadCookie::Forged) => return Err(None),
            Err(BadCookie::Stale(by)) => {
                let tag = stale_tag(bytes);
                return Err(Some(answer(packet, tag, stale(by))));
            }
        };
        if cookie.tags[0] != packet.tag || cookie.ports != [packet.source, packet.destination] {
            return Err(None);
        }
        let config = SctpConfig { ports: [packet.destination, packet.source], ..config };
        let mut server = Self::new(config, State::Established, cookie.tags, cookie.tsns);
        server.take_cookie(now, ends, &cookie);
        if !server.admits_cookie(packet) {
            return Err(None);
        }
        server.events.push_back(SctpEvent::Connected);
        server.handle(now, ends, packet, false);
        Ok(server)
    }

    /// Its own INIT or INIT ACK, without a cookie.
    pub(super) fn own_init(config: &SctpConfig, tag: u32, tsn: u32) -> InitChunk {
        let features = Features::of_config(config);
        // An only address is the packet's source: what names it again would not pass a NAT.
        let named = config.named_addresses();
        InitChunk {
            tag,
            window: config.receive_buffer,
            outbound: config.streams.max(1),
            inbound: config.streams.max(1),
            tsn,
            addresses: if named.len() > 1 { named.into() } else { SmallVec::new() },
            cookie: None,
            extensions: features.extensions(),
            forwards: features.partial,
            ecn: features.ecn,
            auth: own_offer(config, tag, tsn),
            unknown: Vec::new(),
        }
    }

    /// What both ends agreed on.
    fn take_features(&mut self, features: Features, auth: Option<&AuthParameters>) {
        self.features = features;
        if features.interleaving {
            self.outbox.interleave();
        }
        self.agree_on_auth(auth);
        self.begin_coding(features);
    }

    /// Takes over what a cookie says.
    fn take_cookie(&mut self, now: Time, ends: [IpAddr; 2], cookie: &Cookie) {
        self.open_paths(now, ends, &cookie.addresses);
        self.outbound = cookie.streams[0];
        self.peer_window = cookie.window.into();
        self.first_tsn = cookie.tsns[0];
        self.addresses.renumber(cookie.tsns);
        self.take_features(cookie.features, cookie.auth.as_deref());
    }

    /// The peer answers the INIT.
    pub(super) fn on_init_ack(&mut self, now: Time, ends: [IpAddr; 2], init: &InitChunk) {
        if self.state != State::CookieWait {
            return;
        }
        let Some(cookie) = init.cookie.clone() else {
            return self.violate("an INIT ACK without a cookie");
        };
        self.tags[1] = init.tag;
        if let Some(why) = refusal(&self.config, init) {
            return self.violate(why);
        }
        self.arrivals = Arrivals::new(number::first(init.tsn));
        self.resets = Resets::new([self.handshake.init.tsn, init.tsn]);
        self.outbound = self.config.streams.min(init.inbound);
        self.peer_window = init.window.into();
        let unknown = report_of(&init.unknown);
        let rto = self.handshake.rto;
        self.open_paths(now, ends, &init.addresses);
        self.paths[0].estimator.rto = rto;
        self.addresses.renumber([self.handshake.init.tsn, init.tsn]);
        let auth = parameters_of(init);
        let features = Features::of_config(&self.config).and(Features::of_init(init));
        self.take_features(features, auth);
        self.handshake.cookie = Some(cookie);
        self.handshake.repeats = 0;
        self.handshake.at = now;
        self.state = State::CookieEchoed;
        if let Some(cause) = unknown {
            self.reply(None, vec![SctpChunk::Error(vec![cause])]);
        }
    }

    /// The association is up.
    pub(super) fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.handshake.at = Time::MAX;
        self.handshake.cookie = None;
        self.failures = 0;
        self.events.push_back(SctpEvent::Connected);
        if self.closing.is_wanted {
            self.advance_shutdown(now);
        }
    }

    /// An INIT comes although the association is there (RFC 9260 sections 5.2.1 and 5.2.2): the
    /// peer begins anew, or both began at once.
    pub(super) fn on_init(
        &mut self,
        now: Time,
        ends: [IpAddr; 2],
        packet: &SctpPacket,
        init: &InitChunk,
    ) {
        if self.state == State::Closed {
            return;
        }
        if self.state == State::ShutdownAckSent {
            return self.reply(self.path_of(ends), vec![SctpChunk::ShutdownAck]);
        }
        let is_setting_up = matches!(self.state, State::CookieWait | State::CookieEchoed);
        let peers = &self.addresses.peers;
        let knows = |address: &IpAddr| peers.contains(address);
        let is_from_elsewhere = !init.addresses.iter().chain([&ends[1]]).all(knows);
        if !is_setting_up && is_from_elsewhere {
            // A restart must not take the association to other addresses.
            let cause = SctpCause::of(SctpCause::NEW_ADDRESSES);
            let chunk = SctpChunk::Abort { is_reflected: false, causes: vec![cause] };
            return self.answer_at(ends, init.tag, vec![chunk]);
        }
        if let Some(cause) = refusal_cause(&self.config, init) {
            let chunk = SctpChunk::Abort { is_reflected: false, causes: vec![cause] };
            return self.answer_at(ends, init.tag, vec![chunk]);
        }
        let numbers = if is_setting_up {
            [self.tags[0], self.handshake.init.tsn]
        } else {
            fresh_numbers(&self.config, now, init.tag, ends)
        };
        let ties = if self.state == State::CookieWait { NO_TIES } else { self.tags };
        let reply = init_ack(now, &self.config, ends, packet, init, numbers, ties);
        self.answer_at(ends, init.tag, reply.chunks);
    }

    fn answer_at(&mut self, ends: [IpAddr; 2], tag: u32, chunks: Vec<SctpChunk>) {
        if self.replies.len() < 64 {
            let path = self.path_of(ends);
            self.replies.push_back(super::Reply { path, ends, tag, chunks });
        }
    }

    /// A cookie comes although the association is there (RFC 9260 section 5.2.4).
    pub(super) fn on_cookie(
        &mut self,
        now: Time,
        ends: [IpAddr; 2],
        packet: &SctpPacket,
        bytes: &[u8],
    ) -> bool {
        let opened = Cookie::open(bytes, &self.config.secret, now, self.config.timers.cookie);
        let cookie = match opened {
            Ok(cookie) => cookie,
            // A copy of the cookie that this association began with proves nothing and harms
            // nothing, however old it is.
            Err(_) => return packet.tag == self.tags[0],
        };
        if cookie.tags[0] != packet.tag || cookie.ports != [packet.source, packet.destination] {
            return false;
        }
        let same = [cookie.tags[0] == self.tags[0], cookie.tags[1] == self.tags[1]];
        match same {
            // D: it is the same association.
            [true, true] => {
                if matches!(self.state, State::CookieEchoed | State::CookieWait) {
                    self.establish(now);
                }
            }
            // A: the peer has begun anew.
            [false, false] if cookie.ties == self.tags && cookie.ties != NO_TIES => {
                if self.state == State::ShutdownAckSent {
                    self.reply(None, vec![SctpChunk::ShutdownAck]);
                    return false;
                }
                self.restart(now, ends, &cookie);
                self.events.push_back(SctpEvent::Restarted);
            }
            // B: both began at once.
            [true, false] => {
                let was_waiting = matches!(self.state, State::CookieEchoed | State::CookieWait);
                self.tags = cookie.tags;
                self.arrivals = Arrivals::new(number::first(cookie.tsns[1]));
                self.resets = Resets::new(cookie.tsns);
                if was_waiting {
                    self.take_cookie(now, ends, &cookie);
                    self.establish(now);
                } else {
                    self.addresses.renumber(cookie.tsns);
                    self.agree_on_auth(cookie.auth.as_deref());
                }
            }
            // C: it is late, and there is nothing else to say of it.
            _ => return false,
        }
        self.reply(self.path_of(ends), vec![SctpChunk::CookieAck]);
        true
    }

    /// Begins anew with what a cookie says.
    fn restart(&mut self, now: Time, ends: [IpAddr; 2], cookie: &Cookie) {
        let first = number::first(cookie.tsns[0]);
        self.state = State::Established;
        self.tags = cookie.tags;
        self.flight = Flight::new(first);
        self.arrivals = Arrivals::new(number::first(cookie.tsns[1]));
        self.reassembly = Reassembly::default();
        self.inbound = Inbound::default();
        self.outbox = Outbox::new(Self::first_piece(&self.config), self.config.turns);
        self.features = Features::default();
        self.auth = None;
        self.newest_ack = None;
        self.forward_at = Time::MAX;
        self.acks.at = Time::MAX;
        self.acks.told = self.config.receive_buffer.into();
        self.marks = super::Marks::default();
        self.resets = Resets::new(cookie.tsns);
        self.failures = 0;
        self.scheduler = self.config.cmt().map(|cmt| cmt.scheduler.start());
        self.take_cookie(now, ends, cookie);
    }

    /// Whether a packet of the handshake may leave, and which.
    pub(super) fn handshake_chunk(&mut self, now: Time) -> Option<(u32, SctpChunk)> {
        if self.handshake.at > now {
            return None;
        }
        if self.handshake.repeats > self.config.timers.init_repeats {
            self.end(SctpEvent::Aborted(crate::sctp::message::AbortReason::Silence));
            return None;
        }
        // The timer starts at its first value and doubles (rule E2).
        let rto = self.handshake.rto;
        let factor = 1 << self.handshake.repeats.min(16);
        self.handshake.at = now + (rto * factor).min(self.config.timers.most);
        self.handshake.repeats += 1;
        match (self.state, &self.handshake.cookie) {
            (State::CookieWait, _) => {
                Some((0, SctpChunk::Init(Box::new(self.handshake.init.clone()))))
            }
            (State::CookieEchoed, Some(cookie)) => {
                Some((self.tags[1], SctpChunk::CookieEcho(cookie.clone())))
            }
            _ => {
                self.handshake.at = Time::MAX;
                None
            }
        }
    }

    /// The cookie was too old: the client asks for a new one.
    pub(super) fn on_stale_cookie(&mut self, now: Time) {
        if self.state == State::CookieEchoed {
            self.state = State::CookieWait;
            self.handshake.cookie = None;
            self.handshake.at = now;
            let Path { local, peer, .. } = self.paths[0];
            self.open_paths(now, [local, peer], &[]);
        }
    }
}

/// The answer to a packet for which there is no association (RFC 9260 sections 5.1 and 8.4).
/// Nothing is kept: an INIT gets an INIT ACK whose cookie holds all.
pub fn respond_without_state(
    now: Time,
    config: &SctpConfig,
    ends: [IpAddr; 2],
    packet: &SctpPacket,
) -> Option<SctpPacket> {
    match packet.chunks.first()? {
        SctpChunk::Init(init) if packet.tag == 0 => {
            if let Some(cause) = refusal_cause(config, init) {
                let abort = SctpChunk::Abort { is_reflected: false, causes: vec![cause] };
                return Some(answer(packet, init.tag, abort));
            }
            let numbers = fresh_numbers(config, now, init.tag, ends);
            Some(init_ack(now, config, ends, packet, init, numbers, NO_TIES))
        }
        _ => refuse_without_state(packet),
    }
}

/// The answer to a packet for a port that accepts no associations and has none with its sender.
pub fn refuse_without_state(packet: &SctpPacket) -> Option<SctpPacket> {
    if packet.chunks.iter().any(|chunk| matches!(chunk, SctpChunk::Abort { .. })) {
        return None;
    }
    // A packet out of the blue is what it is without its AUTH chunk (RFC 4895 section 6.3).
    match packet.chunks.iter().find(|chunk| !is_auth(chunk))? {
        SctpChunk::Init(init) if packet.tag == 0 => {
            let abort = SctpChunk::Abort { is_reflected: false, causes: Vec::new() };
            Some(answer(packet, init.tag, abort))
        }
        SctpChunk::Init(_)
        | SctpChunk::InitAck(_)
        | SctpChunk::CookieEcho(_)
        | SctpChunk::CookieAck
        | SctpChunk::ShutdownComplete { .. } => None,
        SctpChunk::Error(causes)
            if causes.iter().any(|cause| cause.code == SctpCause::STALE_COOKIE) =>
        {
            None
        }
        SctpChunk::ShutdownAck => {
            let complete = SctpChunk::ShutdownComplete { is_reflected: true };
            Some(answer(packet, packet.tag, complete))
        }
        _ => {
            let abort = SctpChunk::Abort { is_reflected: true, causes: Vec::new() };
            Some(answer(packet, packet.tag, abort))
        }
    }
}

const fn is_auth(chunk: &SctpChunk) -> bool {
    matches!(chunk, SctpChunk::Auth(_))
}

/// What the sender of an INIT says of authentication.
fn parameters_of(init: &InitChunk) -> Option<&AuthParameters> {
    match &init.auth {
        AuthOffer::Given(parameters) => Some(parameters),
        _ => None,
    }
}

fn answer(packet: &SctpPacket, tag: u32, chunk: SctpChunk) -> SctpPacket {
    let SctpPacket { source: destination, destination: source, .. } = *packet;
    SctpPacket { source, destination, tag, chunks: vec![chunk] }
}

fn stale(by: fontis_base::Duration) -> SctpChunk {
    let by = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
    let details = Bytes::copy_from_slice(&by.to_be_bytes());
    SctpChunk::Error(vec![SctpCause { code: SctpCause::STALE_COOKIE, details }])
}

/// The peer's tag in a cookie that this end has sealed.
fn stale_tag(cookie: &[u8]) -> u32 {
    cookie.get(16..20).map_or(0, |tag| u32::from_be_bytes([tag[0], tag[1], tag[2], tag[3]]))
}

/// A tag that is not zero and a first TSN.
fn fresh_numbers(config: &SctpConfig, now: Time, peer: u32, ends: [IpAddr; 2]) -> [u32; 2] {
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() as u64 ^ (address.to_bits() >> 64) as u64,
    };
    let [a, b] = config.ports;
    let ports = u64::from(a) << 16 | u64::from(b);
    let parts = [now.as_nanos(), peer.into(), address(ends[0]), address(ends[1]), ports];
    let number = config.secret.number(&parts);
    [(number as u32).max(1), (number >> 32) as u32]
}

fn init_ack(
    now: Time,
    config: &SctpConfig,
    ends: [IpAddr; 2],
    packet: &SctpPacket,
    init: &InitChunk,
    [tag, tsn]: [u32; 2],
    ties: [u32; 2],
) -> SctpPacket {
    let others = init.addresses.iter().copied().filter(|address| *address != ends[1]);
    let addresses: SmallVec<[IpAddr; 2]> = core::iter::once(ends[1]).chain(others).collect();
    let features = Features::of_config(config).and(Features::of_init(init));
    let cookie = Cookie {
        made: now,
        ports: [packet.source, packet.destination],
        tags: [tag, init.tag],
        tsns: [tsn, init.tsn],
        ties,
        window: init.window,
        streams: [config.streams.min(init.inbound), config.streams.min(init.outbound)],
        features,
        auth: parameters_of(init).filter(|_| features.auth).cloned().map(Box::new),
        addresses,
    };
    let mut chunk = SctpAssociation::own_init(config, tag, tsn);
    chunk.cookie = Some(cookie.seal(&config.secret));
    chunk.unknown.clone_from(&init.unknown);
    answer(packet, init.tag, SctpChunk::InitAck(Box::new(chunk)))
}

/// The report of parameters that are not known.
fn report_of(unknown: &[(u16, Bytes)]) -> Option<SctpCause> {
    if unknown.is_empty() {
        return None;
    }
    let mut details = Vec::new();
    for (kind, value) in unknown {
        details.extend_from_slice(&kind.to_be_bytes());
        details.extend_from_slice(&((4 + value.len()) as u16).to_be_bytes());
        details.extend_from_slice(value);
        details.resize(details.len().next_multiple_of(4), 0);
    }
    Some(SctpCause { code: SctpCause::UNKNOWN_PARAMETERS, details: details.into() })
}
