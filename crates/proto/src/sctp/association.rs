//! One end of an association: the state machine of RFC 9260 section 4.

mod acks;
mod asconf;
mod auth;
mod coding;
mod handshake;
mod input;
mod losses;
mod mtu;
mod output;
mod pathset;
mod peer_addresses;
mod rack;
mod receive;
mod reconfig;
mod reordering;
mod sending;
mod timers;

pub use handshake::{refuse_without_state, respond_without_state};

use core::net::IpAddr;
use std::collections::VecDeque;

use fontis_base::{Duration, Time};
use smallvec::SmallVec;

use super::addresses::Addresses;
use super::arrivals::Arrivals;
use super::auth::Authentication;
use super::chunk::{DataChunk, InitChunk, SctpCause, SctpChunk, Stamp};
use super::config::SctpConfig;
use super::data::SctpData;
use super::features::Features;
use super::flight::Flight;
use super::held::{Held, Restored};
use super::inbound::Inbound;
use super::message::{
    AbortReason, SctpEvent, SctpMessage, SctpPath, SctpPathState, SctpSend, SctpSendError,
    SctpStats,
};
use super::number;
use super::outbox::Outbox;
use super::packet::SctpPacket;
use super::path::Path;
use super::reassembly::Reassembly;
use super::reordering::{Reordering, reordering_of};
use super::repairs::Repairs;
use super::resets::Resets;
use super::restorer::Restorer;
use super::waits::Waits;
use crate::scheduler::contract::Scheduler;

/// The most paths of an association.
pub const MOST_PATHS: usize = 16;
/// Bytes of the common header.
const HEADER: usize = 12;
/// Bytes of memory that a fragment or a message takes beside its content, about.
const PIECE: u64 = 96;
/// How many times the memory of contents all that waits may take, with those.
const MOST_COST: u64 = 4;
/// Bytes of a stamp chunk.
const STAMP: usize = 16;

/// One end of an association. It owns no socket and no clock: packets and times come in, packets
/// and the next deadline come out.
///
/// After [`SctpAssociation::handle`], and at [`SctpAssociation::timeout`], a driver calls
/// [`SctpAssociation::poll`] until it returns nothing, then takes events and messages.
#[derive(Clone, Debug)]
pub struct SctpAssociation {
    config: SctpConfig,
    state: State,
    /// The tag that packets to this end bear, and that of packets to the peer.
    tags: [u32; 2],
    /// The first TSN of this end.
    first_tsn: u32,
    features: Features,
    /// The keys by which chunks are authenticated, if they are.
    auth: Option<Authentication>,
    addresses: Addresses,
    paths: Vec<Path>,
    /// The path that control chunks and, without CMT, data use.
    primary: usize,
    /// The packets that chunks are made for: what all paths carry.
    fitted: u32,
    handshake: Handshake,
    outbox: Outbox,
    flight: Flight,
    scheduler: Option<Box<dyn Scheduler>>,
    /// Streams that the peer takes.
    outbound: u16,
    /// The window that the peer last told.
    peer_window: u64,
    /// The largest that it has told.
    peer_buffer: u64,
    /// Departures so far.
    order: u64,
    /// Failures of all paths in a row.
    failures: u32,
    /// The TSN beyond which the newest SACK had no room to tell of any, where time tells losses.
    told: u64,
    /// The number of the newest SACK, if SACKs are numbered.
    newest_ack: Option<u32>,
    /// When FORWARD-TSN is due.
    forward_at: Time,
    /// What arrives goes through it first, if there is one.
    reordering: Option<Box<Reordering>>,
    arrivals: Arrivals,
    reassembly: Reassembly,
    restorer: Restorer,
    /// Those that this end sends, if it does.
    repairs: Option<Repairs>,
    /// Copies that wait for their repairs.
    held: Vec<Held>,
    /// Chunks that the peer has restored and that may be late instead of lost.
    restored: Vec<Restored>,
    inbound: Inbound,
    waits: Waits,
    acks: AckState,
    marks: Marks,
    resets: Resets,
    /// Packets that wait to be sent before all others: the path, and the chunks.
    replies: VecDeque<Reply>,
    events: VecDeque<SctpEvent>,
    closing: Closing,
    /// Whether its driver has asked for packets since the last acknowledgement.
    has_polled: bool,
    /// When the peer's window, and nothing else, began to keep this end from sending.
    blocked_since: Option<Time>,
    stats: SctpStats,
}

/// The states of RFC 9260 section 4. CLOSED without an association is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    CookieWait,
    CookieEchoed,
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
    Closed,
}

/// What sets an association up.
#[derive(Clone, Debug)]
struct Handshake {
    init: InitChunk,
    cookie: Option<bytes::Bytes>,
    /// When INIT or COOKIE ECHO leaves again.
    at: Time,
    repeats: u32,
    rto: Duration,
}

/// What takes an association down.
#[derive(Clone, Copy, Debug)]
struct Closing {
    /// Whether the application has closed.
    is_wanted: bool,
    /// When SHUTDOWN or SHUTDOWN ACK leaves again.
    at: Time,
    /// The path of the last one, if that was not answered: the next one tries another.
    path: Option<usize>,
    /// When the end comes, whatever the peer does (T5).
    end: Time,
}

/// A packet that answers another.
#[derive(Clone, Debug)]
struct Reply {
    path: Option<u8>,
    ends: [IpAddr; 2],
    tag: u32,
    chunks: Vec<SctpChunk>,
}

/// When and where the next SACK leaves.
#[derive(Clone, Debug)]
struct AckState {
    /// Data packets since the last one.
    packets: u32,
    /// When it must leave; [`Time::MAX`] if none must.
    at: Time,
    /// The path of the newest data.
    path: u8,
    /// The window that was last told.
    told: u64,
    /// The newest stamp, and when it came.
    stamp: Option<(Stamp, Time)>,
    /// TSNs that were restored and not told yet.
    restored: Vec<u32>,
    number: u32,
}

/// Marks of congestion, of both directions.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// The lowest TSN in the marked packets that the peer has not answered.
    echo: Option<u32>,
    /// The answer that is owed to the peer's echo.
    answer: Option<u32>,
}

impl SctpAssociation {
    /// Hands over a message.
    ///
    /// # Errors
    /// If it cannot be sent, at present or at all.
    pub fn send(&mut self, now: Time, send: SctpSend, data: SctpData) -> Result<(), SctpSendError> {
        let is_open =
            matches!(self.state, State::CookieWait | State::CookieEchoed | State::Established);
        if !is_open || self.closing.is_wanted {
            return Err(SctpSendError::Closing);
        }
        if data.is_empty() {
            return Err(SctpSendError::Empty);
        }
        if send.stream >= self.outbound {
            return Err(SctpSendError::NoStream { stream: send.stream, streams: self.outbound });
        }
        if self.resets.is_wanted(send.stream) {
            return Err(SctpSendError::Resetting { stream: send.stream });
        }
        let (len, buffer) = (data.len(), self.config.send_buffer);
        // A message longer than the buffer may have it alone.
        if self.buffered() > 0 && self.room() < len as u64 {
            return Err(SctpSendError::NoRoom { len, buffer });
        }
        self.outbox.push(now, send, data);
        Ok(())
    }

    /// Bytes of messages that the peer has not acknowledged.
    pub fn buffered(&self) -> u64 {
        self.outbox.bytes() + self.flight.bytes()
    }

    /// Bytes that the send buffer has room for.
    pub fn room(&self) -> u64 {
        u64::from(self.config.send_buffer).saturating_sub(self.buffered())
    }

    /// The next message that has arrived.
    pub fn receive(&mut self, now: Time) -> Option<SctpMessage> {
        self.waits.read(now, self.held());
        let message = self.inbound.take()?;
        self.reopen_window(now);
        Some(message)
    }

    /// The next event.
    pub fn event(&mut self) -> Option<SctpEvent> {
        self.events.pop_front()
    }

    /// Closes the association when the peer has all messages.
    pub fn close(&mut self, now: Time) {
        if matches!(self.state, State::CookieWait | State::CookieEchoed | State::Established) {
            self.closing.is_wanted = true;
            self.advance_shutdown(now);
        }
    }

    /// Breaks the association off.
    pub fn abort(&mut self) {
        if self.state != State::Closed {
            self.break_off(AbortReason::Application, SctpCause::of(SctpCause::USER));
        }
    }

    /// Whether nothing is left to do.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && self.replies.is_empty()
    }

    /// Whether messages can be sent.
    pub const fn is_connected(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending)
    }

    /// Bytes of content in a chunk at most.
    pub const fn piece(&self) -> usize {
        self.outbox.piece()
    }

    /// The tag that packets for this end bear.
    pub const fn tag(&self) -> u32 {
        self.tags[0]
    }

    /// Its paths.
    pub fn paths(&self) -> impl Iterator<Item = SctpPath> {
        self.paths.iter().map(Path::view)
    }

    /// The number of the path that control chunks and, without CMT, data use.
    pub const fn primary(&self) -> usize {
        self.primary
    }

    /// Its counters.
    pub fn stats(&self) -> SctpStats {
        let (bytes_received, messages_received) = self.inbound.delivered;
        let Waits { peak: held_peak, count: out_of_order, total: waited, longest, .. } = self.waits;
        SctpStats {
            bytes_received,
            messages_received,
            held: self.held(),
            held_peak,
            held_mean: self.waits.mean(),
            out_of_order,
            waited,
            longest_wait: longest,
            ..self.stats
        }
    }

    /// Whether data leave in the present state.
    const fn sends_data(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    /// Whether data are taken in the present state.
    const fn takes_data(&self) -> bool {
        matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownSent)
    }

    /// Bytes that wait at this end.
    fn held(&self) -> u64 {
        self.reassembly.bytes() + self.inbound.bytes()
    }

    /// Bytes of contents that this end holds at most.
    fn budget(&self) -> u64 {
        u64::from(self.config.receive_buffer) + u64::from(self.config.max_message)
    }

    /// Bytes of memory that may be taken yet: content of few bytes takes many times as much.
    fn memory_left(&self) -> u64 {
        let pieces = self.reassembly.pieces() + self.inbound.messages();
        (MOST_COST * self.budget()).saturating_sub(self.held() + PIECE * pieces)
    }

    /// The window for the peer.
    fn window(&self) -> u64 {
        let begun = self.reassembly.begun(self.arrivals.cumulative());
        u64::from(self.config.receive_buffer)
            .saturating_sub(self.held().saturating_sub(begun))
            .min(self.memory_left())
    }

    /// Bytes in flight on all paths.
    fn in_flight(&self) -> u64 {
        self.paths.iter().map(|path| path.in_flight).sum()
    }

    /// An association in its first state.
    fn new(config: SctpConfig, state: State, tags: [u32; 2], tsns: [u32; 2]) -> Self {
        let piece = Self::first_piece(&config);
        let init = Self::own_init(&config, tags[0], tsns[0]);
        let scheduler = config.cmt().map(|cmt| cmt.scheduler.start());
        Self {
            state,
            tags,
            first_tsn: tsns[0],
            features: Features::default(),
            auth: None,
            addresses: Addresses::new(tsns),
            paths: Vec::new(),
            primary: 0,
            fitted: config.mtu,
            handshake: Handshake {
                init,
                cookie: None,
                at: Time::MAX,
                repeats: 0,
                rto: config.timers.initial,
            },
            outbox: Outbox::new(piece, config.turns),
            flight: Flight::new(number::first(tsns[0])),
            scheduler,
            outbound: config.streams,
            peer_window: 0,
            peer_buffer: 0,
            order: 0,
            failures: 0,
            told: u64::MAX,
            newest_ack: None,
            forward_at: Time::MAX,
            reordering: reordering_of(&config),
            arrivals: Arrivals::new(number::first(tsns[1])),
            reassembly: Reassembly::default(),
            restorer: Restorer::default(),
            repairs: None,
            held: Vec::new(),
            restored: Vec::new(),
            inbound: Inbound::default(),
            waits: Waits::new(Time::ZERO),
            acks: AckState {
                packets: 0,
                at: Time::MAX,
                path: 0,
                told: u64::from(config.receive_buffer),
                stamp: None,
                restored: Vec::new(),
                number: 0,
            },
            marks: Marks::default(),
            resets: Resets::new(tsns),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            closing: Closing { is_wanted: false, at: Time::MAX, path: None, end: Time::MAX },
            has_polled: true,
            blocked_since: None,
            stats: SctpStats::default(),
            config,
        }
    }

    /// Bytes of content in a DATA chunk that fills a packet.
    fn first_piece(config: &SctpConfig) -> usize {
        let headers = config.overhead as usize + HEADER + DataChunk::header(false);
        let stamp = if config.stamps { STAMP } else { 0 };
        (config.mtu as usize).saturating_sub(headers + stamp) / 4 * 4
    }

    /// Ends the association with an ABORT.
    fn break_off(&mut self, reason: AbortReason, cause: SctpCause) {
        let chunk = SctpChunk::Abort { is_reflected: false, causes: vec![cause] };
        self.replies.clear();
        // Before the peer's tag is known there is nobody to be told.
        if self.tags[1] != 0 {
            self.reply(None, vec![chunk]);
        }
        self.end(SctpEvent::Aborted(reason));
    }

    fn end(&mut self, event: SctpEvent) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.events.push_back(event);
        self.outbox = Outbox::new(4, self.config.turns);
        self.flight = Flight::new(self.flight.end());
        self.restorer = Restorer::default();
        self.held.clear();
        self.restored.clear();
        self.handshake.at = Time::MAX;
        self.closing.at = Time::MAX;
        self.closing.end = Time::MAX;
        self.forward_at = Time::MAX;
        self.acks.at = Time::MAX;
        self.blocked_since = None;
        for path in &mut self.paths {
            (path.expires, path.in_flight, path.untold) = (None, 0, 0);
            path.heartbeat = None;
            path.stop_rack();
            path.settle_repairs(u64::MAX);
        }
    }

    /// Queues a packet on a path; without one, on the primary path.
    fn reply(&mut self, path: Option<u8>, chunks: Vec<SctpChunk>) {
        let at = path.map_or(self.primary, usize::from).min(self.paths.len().saturating_sub(1));
        let is_there = |at: &usize| self.paths.get(*at).is_some_and(Path::is_there);
        let at = Some(at).filter(is_there).unwrap_or(self.primary);
        let Some(Path { local, peer, .. }) = self.paths.get(at) else { return };
        // A peer that asks much gets no more answers than this at a time.
        if self.replies.len() < 64 {
            let ends = [*local, *peer];
            self.replies.push_back(Reply { path: Some(at as u8), ends, tag: self.tags[1], chunks });
        }
    }

    /// The pairs of addresses of an association whose handshake used `ends`.
    fn pairs(
        config: &SctpConfig,
        ends: [IpAddr; 2],
        peers: &[IpAddr],
    ) -> SmallVec<[[IpAddr; 2]; 2]> {
        let rest = |first: IpAddr, all: &[IpAddr]| -> SmallVec<[IpAddr; 4]> {
            let others = all.iter().copied().filter(|other| *other != first);
            core::iter::once(first).chain(others).collect()
        };
        let (locals, peers) = (rest(ends[0], config.named_addresses()), rest(ends[1], peers));
        let count = locals.len().max(peers.len()).min(MOST_PATHS);
        let pair = |at: usize| [locals[at.min(locals.len() - 1)], peers[at.min(peers.len() - 1)]];
        (0..count).map(pair).collect()
    }

    /// Makes the paths, of which the first is that of the handshake.
    fn open_paths(&mut self, now: Time, ends: [IpAddr; 2], peers: &[IpAddr]) {
        let pairs = Self::pairs(&self.config, ends, peers);
        self.addresses.begin(&pairs);
        self.paths = pairs
            .into_iter()
            .map(|[local, peer]| Path::new(now, local, peer, &self.config))
            .collect();
        self.paths[0].state = SctpPathState::Active;
        let interval = self.config.timers.heartbeat + self.paths[0].estimator.rto;
        self.paths[0].heartbeat_at = now + interval;
        self.primary = 0;
        self.waits = Waits::new(now);
    }

    /// The path between two addresses; if there is none, that to the peer's address.
    fn path_of(&self, ends: [IpAddr; 2]) -> Option<u8> {
        let find = |is: &dyn Fn(&Path) -> bool| {
            self.paths.iter().position(|path| path.is_there() && is(path))
        };
        let exact = find(&|path| [path.local, path.peer] == ends);
        let near = || find(&|path| path.peer == ends[1]);
        exact.or_else(near).map(|at| at as u8)
    }

    /// A packet to the peer.
    fn packet(&self, tag: u32, chunks: Vec<SctpChunk>) -> SctpPacket {
        let [source, destination] = self.config.ports;
        SctpPacket { source, destination, tag, chunks }
    }
}
