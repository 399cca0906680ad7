use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Ecn, Rate, Time};
use fontis_proto::dfcp::{
    ChannelId, CloseReason, DfcpConnection as Machine, DfcpEvent, DfcpPacket, Frame, KnownPath,
    NO_ROOM, OpenError, ResetToken, SealError, Session, TOO_LONG,
};
use tokio::sync::oneshot;

use super::error::{CODE_REFUSED_KEY, CODE_REFUSED_MESSAGE, ConnectError};
use super::router::Router;
use super::shares::Shares;
use super::unconfirmed::Network;
use super::way::{Candidate, Way, overhead};
use crate::protection::{Initiator, Opened, Responder, SynMark};
use crate::qlog::Qlog;
use crate::random::random;

/// The shortest interval of new tokens of a connection.
const TOKEN_EVERY: Duration = Duration::from_secs(1);
/// By how much the rate has to change for a new token.
const WORTH_TELLING: f64 = 0.1;

/// Packet protection of either side.
pub(super) enum Protection {
    Initiator(Box<Initiator>),
    Responder(Box<Responder>),
}

impl Protection {
    pub(super) fn seal(&mut self, packet: &DfcpPacket, out: &mut Vec<u8>) -> Result<(), SealError> {
        match self {
            Self::Initiator(session) => session.seal(packet, out),
            Self::Responder(session) => session.seal(packet, out),
        }
    }

    pub(super) fn open_in_place(&mut self, datagram: &mut [u8]) -> Result<Opened, OpenError> {
        match self {
            Self::Initiator(session) => session.open_in_place(datagram),
            Self::Responder(session) => session.open_in_place(datagram),
        }
    }

    pub(super) fn open(&mut self, datagram: BytesMut) -> Result<DfcpPacket, OpenError> {
        match self {
            Self::Initiator(session) => session.open(datagram),
            Self::Responder(session) => session.open(datagram),
        }
    }
}

/// A connection in the driver's care.
pub(crate) struct Slot {
    pub(crate) machine: Machine,
    pub(crate) router: Router,
    pub(super) protection: Protection,
    /// By the numbers of the paths; none of a path whose first packet has not come.
    pub(super) ways: Vec<Option<Way>>,
    /// Whether paths over other interfaces are to be opened.
    pub(super) opens_paths: bool,
    /// The receiver of the handshake's result.
    pub(super) waiting: Option<Waiting>,
    /// The last time that the state machine got: its calls are in order.
    pub(super) latest: Time,
    /// The handshake that began it, so that copies of the SYN find it.
    pub(super) syn: Option<(SocketAddr, fontis_proto::dfcp::ConnectionId)>,
    /// The mark of that SYN, until the handshake is confirmed.
    pub(super) mark: Option<SynMark>,
    /// Somebody says that the peer cannot read the SYN, or sent an answer that does not open. It
    /// explains the end of an attempt and ends none, since anybody could say so.
    pub(super) is_doubted: bool,
    /// The caller of `connect`, who is told of that.
    pub(super) doubts: Option<oneshot::Sender<()>>,
    /// The time until which its initiator has to confirm; `None` if it has, or need not.
    pub(super) unconfirmed_until: Option<Time>,
    /// The time that it is scheduled for.
    pub(super) scheduled: Option<Time>,
    /// The token of its peer's resets, as it is indexed.
    pub(super) reset_token: Option<ResetToken>,
    /// Whether it counts as one that sends, and as one that receives.
    pub(super) flows: [bool; 2],
    /// The network that it counts for, if it is a client's and confirmed.
    pub(super) network: Option<Network>,
    /// Whether it ends when the peer refuses a message.
    pub(crate) ends_on_refusal: bool,
    /// The output of its trace.
    pub(super) qlog: Option<Qlog>,
    /// True if it counts as accepted, or is this side's own.
    pub(super) counted: bool,
    /// Datagrams dropped because they did not open.
    pub(super) forged: u64,
    /// Datagrams that arrived before the SYNACK, or instead of a lost one: without it they cannot
    /// be opened yet.
    pub(super) early: Vec<Early>,
    /// The peer's public key.
    pub(super) peer: [u8; 32],
    /// A token that came and is to be kept.
    pub(super) token: Option<Bytes>,
    /// The time of the last one kept.
    pub(super) token_kept: Option<Time>,
    /// The time of the last token, and its rate.
    pub(super) token_given: Option<(Time, Rate)>,
    /// Whether an object leaves beside it, over SCTP: then it has a share of the limit, too.
    pub(crate) carries: bool,
    /// Its limits for sending and receiving.
    pub(super) shares: Shares,
    /// Senders that wait until less of a channel is left.
    pub(super) writers: Vec<Writer>,
}

/// Who waits until less of a channel is left.
pub(super) struct Writer {
    channel: ChannelId,
    left: Left,
    most: u64,
    reply: oneshot::Sender<u64>,
}

/// What is left of a channel.
#[derive(Clone, Copy)]
pub(crate) enum Left {
    /// What the peer does not have.
    Undelivered,
    /// What has not been sent.
    Unsent,
}

/// A datagram that came before the keys that open it.
pub(super) struct Early {
    at: Time,
    ecn: Ecn,
    bytes: BytesMut,
}

/// The number that a responder sends before its SYNACK is acknowledged.
const MAX_EARLY_DATAGRAMS: usize = 8;

pub(super) enum Waiting {
    /// Tells the caller of `connect` the handshake's result.
    Connect(Box<dyn FnOnce(Result<(), ConnectError>) + Send>),
    /// Puts the connection into the queue of accepted ones.
    Accept(Box<dyn FnOnce() + Send>),
}

impl Slot {
    /// The peer's address on the first path.
    pub(super) fn remote(&self) -> SocketAddr {
        self.ways[0].as_ref().expect("a connection begins with a path").remote
    }

    /// Where the packets of a path go.
    pub(super) fn way(&self, path: u8) -> Option<&Way> {
        self.ways.get(usize::from(path))?.as_ref()
    }

    pub(super) fn set_way(&mut self, path: u8, way: Way) {
        let at = usize::from(path);
        if self.ways.len() <= at {
            self.ways.resize(at + 1, None);
        }
        self.ways[at] = Some(way);
    }

    /// A new packet of the peer came on a path from an address that is not known as the path's. An
    /// unproved address is challenged; when the peer has answered from there, packets go there.
    /// Only a responder follows its peer: an initiator connected to a fixed address.
    pub(super) fn follow(&mut self, now: Time, path: u8, from: Way) {
        let answered = self.machine.challenge_answered(path);
        if self.is_initiator() {
            return;
        }
        let Some(mut way) = self.way(path).copied() else {
            self.machine.challenge(path, overhead(from.remote), random());
            self.set_way(path, from);
            return;
        };
        let known = way.candidate.filter(|candidate| candidate.address == from.remote);
        if known.is_some_and(|candidate| answered == Some(candidate.token)) {
            // Another port is another mapping of the same path; another host is another path.
            if from.remote.ip() != way.remote.ip() {
                self.machine.path_changed(now, path);
                if path == 0 {
                    self.token_given = None;
                }
            }
            self.set_way(path, from);
            return;
        }
        // Who can guess the token can have a peer's packets sent to somebody else.
        let Way { remote, local_ip, .. } = from;
        let fresh = || Candidate { address: remote, local_ip, token: random() };
        let candidate = known.unwrap_or_else(fresh);
        self.machine.challenge(path, overhead(remote), candidate.token);
        way.candidate = Some(candidate);
        self.set_way(path, way);
    }

    /// A token that came, if it is time to keep it: a server that sends many has this side write
    /// few files, and the last one at the end.
    pub(super) fn token_to_keep(&mut self, now: Time) -> Option<Bytes> {
        let is_soon = self.token_kept.is_some_and(|kept| now.since(kept) < TOKEN_EVERY);
        if self.token.is_none() || is_soon && !self.machine.is_closed() {
            return None;
        }
        self.token_kept = Some(now);
        self.token.take()
    }

    /// Somebody says that the peer cannot read the SYN.
    pub(super) fn doubt(&mut self) {
        if matches!(self.waiting, Some(Waiting::Connect(..))) {
            self.is_doubted = true;
            if let Some(doubts) = self.doubts.take() {
                let _ = doubts.send(());
            }
        }
    }

    pub(crate) const fn is_initiator(&self) -> bool {
        matches!(self.protection, Protection::Initiator(_))
    }

    /// Passes the machine's events on.
    pub(super) fn route_events(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(event) = self.machine.event() {
            any = true;
            if let DfcpEvent::Token { token } = event {
                self.token = Some(token);
                continue;
            }
            if let DfcpEvent::Abandoned { channel, code: code @ (NO_ROOM | TOO_LONG) } = event
                && self.ends_on_refusal
                && !self.router.is_subscribed(channel)
                // What a responder cannot take is left to its sender, which learns why.
                && (self.is_initiator() || !channel.is_multiple_of(2))
            {
                let reason = if code == NO_ROOM { "no memory" } else { "too long" };
                let reason = format!("a message or object was refused: {reason}");
                self.machine.close(now, CODE_REFUSED_MESSAGE, &reason);
            }
            match (&event, self.waiting.take()) {
                (DfcpEvent::Connected, Some(Waiting::Connect(reply))) => reply(Ok(())),
                (DfcpEvent::Closed(reason), Some(Waiting::Connect(reply))) => {
                    reply(Err(self.explain(reason)));
                }
                // A request that came with the first packet is answered at once, before the client
                // has confirmed.
                (
                    DfcpEvent::Message { early: true, .. } | DfcpEvent::Connected,
                    Some(Waiting::Accept(accept)),
                ) => accept(),
                (_, waiting) => self.waiting = waiting,
            }
            if let Some(channel) = self.router.route(event) {
                self.machine.abandon(now, channel, NO_ROOM);
            }
        }
        any
    }

    /// The contents of the next token, if the estimates of the path have changed and it is time for
    /// one.
    pub(super) fn news_for_token(&mut self, now: Time) -> Option<KnownPath> {
        if self.is_initiator() || !self.machine.is_established() {
            return None;
        }
        if self.token_given.is_some_and(|(at, _)| now.since(at) < TOKEN_EVERY) {
            return None;
        }
        let known = self.machine.known_path();
        let rate = known.rate?;
        let said = self.token_given.map_or(0.0, |(_, rate)| rate.as_bps() as f64);
        if (rate.as_bps() as f64 / said - 1.0).abs() < WORTH_TELLING {
            return None;
        }
        self.token_given = Some((now, rate));
        Some(known)
    }

    fn explain(&self, reason: &CloseReason) -> ConnectError {
        match reason {
            CloseReason::NoAnswer | CloseReason::IdleTimeout if self.is_doubted => {
                ConnectError::WrongKey(self.remote())
            }
            CloseReason::NoAnswer | CloseReason::IdleTimeout => {
                ConnectError::NoAnswer(self.remote())
            }
            CloseReason::Local if self.is_doubted => ConnectError::WrongKey(self.remote()),
            CloseReason::Peer { code: CODE_REFUSED_KEY, .. } => {
                ConnectError::RefusedKey(self.remote())
            }
            other => ConnectError::Closed(self.remote(), other.clone()),
        }
    }

    /// Answers `reply` as soon as no more than `most` bytes of a channel are left.
    pub(crate) fn when_below(
        &mut self,
        channel: ChannelId,
        left: Left,
        most: u64,
        reply: oneshot::Sender<u64>,
    ) {
        self.writers.push(Writer { channel, left, most, reply });
        self.wake_writers();
    }

    pub(super) fn wake_writers(&mut self) {
        let mut index = 0;
        while let Some(&Writer { channel, left, most, .. }) = self.writers.get(index) {
            let left = match left {
                Left::Undelivered => self.machine.buffered(channel),
                Left::Unsent => self.machine.unsent(channel),
            };
            if left <= most {
                let _ = self.writers.swap_remove(index).reply.send(left);
            } else {
                index += 1;
            }
        }
    }

    /// Writes the trace; a failing disk ends the trace, not the connection.
    pub(super) fn write_trace(&mut self) {
        while let Some(event) = self.machine.trace() {
            if self.qlog.as_mut().is_some_and(|qlog| qlog.event(&event).is_err()) {
                self.qlog = None;
            }
        }
    }

    /// The time of the connection's next work.
    pub(super) fn due(&self) -> Option<Time> {
        let next = self.machine.timeout().map(|(at, _)| at);
        [next, self.unconfirmed_until].into_iter().flatten().min()
    }

    /// Keeps what cannot be opened before the SYNACK has come; false if that is not why.
    pub(super) fn keep_early(&mut self, at: Time, ecn: Ecn, bytes: &[u8]) -> bool {
        let connects = matches!(self.waiting, Some(Waiting::Connect(..)));
        let keeps = connects && self.early.len() < MAX_EARLY_DATAGRAMS;
        if keeps {
            self.early.push(Early { at, ecn, bytes: bytes.into() });
        }
        keeps
    }

    /// Handles the early datagrams, at the times of their arrival: they measure the path before any
    /// data.
    pub(super) fn take_early(&mut self, overhead: u32) {
        for Early { at, ecn, bytes } in std::mem::take(&mut self.early) {
            let size = bytes.len() as u32 + overhead;
            match self.protection.open(bytes) {
                Ok(packet) => self.handle(at, packet, size, ecn),
                Err(_) => self.forged += 1,
            }
        }
    }

    /// Takes an opened packet's frames.
    pub(super) fn handle_frames(
        &mut self,
        at: Time,
        opened: Opened,
        frames: &[Frame],
        size: u32,
        ecn: Ecn,
    ) {
        self.latest = self.latest.max(at);
        self.machine.handle_frames(at, opened.path(), opened.number(), frames, size, ecn);
    }

    /// Takes an opened packet.
    pub(super) fn handle(&mut self, at: Time, packet: DfcpPacket, size: u32, ecn: Ecn) {
        self.latest = self.latest.max(at);
        self.machine.handle(at, packet, size, ecn);
    }
}
