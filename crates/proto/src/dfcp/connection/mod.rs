//! The connection: handshake, channels, feedback, timers. `input` takes packets, `output` makes
//! them, `timer` says when; `channels` is the application's side.

mod channels;
mod handshake;
mod input;
mod output;
mod paths;
mod receive;
mod timer;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use fontis_base::{Duration, Ecn, Rate, Time};
use fontis_codes::Code;

use super::budget::{Account, Charge};
use super::config::{DfcpConfig, KnownPath};
use super::control::Control;
use super::event::{CloseReason, CodingJob, DfcpEvent};
use super::ordered::OrderedWaiting;
use super::over::Over;
use super::packet::{ChannelId, ConnectionId, DfcpPacket, Frame, Hello};
use super::params::{Params, SYN_SIZE};
use super::path::{Path, PathState};
use super::paths::{PathId, PathSet, Paths};
use super::receiving::RecvChannel;
use super::redundancy::LossModel;
use super::resume::Kept;
use super::send_channels::SendChannels;
use super::stats::DfcpStats;
use super::trace::TraceEvent;
use crate::path_mtu::Mtu;
use crate::rate::shared::SharedBottlenecks;

pub use channels::SendOptions;
use handshake::Handshake;

/// Packets of the responder's first flight that measure the path beside the SYNACK.
const HINT_TRAIN: u8 = 4;
/// Their bytes: of each, and of all but the last if that one probes for packets of 1500 bytes. With
/// the SYNACK they stay below three times a SYN.
const HINT_SIZES: (u32, u32) = (860, 660);

/// Jobs that a connection has done at once.
const MAX_JOBS: usize = 8;
/// The code and the words for a peer that reports the arrival of packets that were never sent.
const CODE_UNTRUE: u32 = 6;
const UNTRUE: &str = "feedback on packets that were not sent";
/// The same for a peer that begins more than it takes answers for.
pub(super) const CODE_OVERRUN: u32 = 7;
pub(super) const OVERRUN: &str = "more was begun than answers were taken for";
/// Whose limit of the sending rate it is.
const OURS: usize = 0;
const THEIRS: usize = 1;

/// A packet to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The packet.
    pub packet: DfcpPacket,
    /// Its bytes at the IP layer.
    pub size: u32,
    /// The path that it leaves on.
    pub path: PathId,
    /// Whether it must be sent by itself, without segmentation offload, because its spacing is
    /// measured.
    pub alone: bool,
    /// Whether it goes to the address that [`challenge`](DfcpConnection::challenge) asked about.
    pub probe: bool,
    /// Congestion notification.
    pub ecn: Ecn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Initiator: SYN sent. Responder: SYNACK sent, address not proved.
    Handshake,
    Established,
    /// This side has closed; the peer is being told.
    Closing,
    /// The peer has closed, or both have finished: late packets are answered for a while.
    Draining,
    Closed,
}

/// One side of a DFCP connection.
pub struct DfcpConnection {
    config: DfcpConfig,
    initiator: bool,
    state: State,
    local: ConnectionId,
    remote: Option<ConnectionId>,
    version: u32,
    hello: Hello,
    peer: Option<Params>,
    /// The code in use towards the peer.
    code: Code,
    handshake: Handshake,
    paths: Paths,
    /// The loss of all paths together, as symbols meet it.
    loss: LossModel,
    /// The paths whose packets on their way are counted upon.
    answering: PathSet,
    /// Which of the paths wait in one queue.
    bottlenecks: SharedBottlenecks,
    /// What this side and the peer allow all paths together.
    limits: [Option<Rate>; 2],
    /// The memory of blocks and messages.
    account: Account,
    send: SendChannels,
    recv: BTreeMap<ChannelId, RecvChannel>,
    /// Peer's channels that are over, by halves of their numbers.
    over: Over,
    next_channel: ChannelId,
    last_served: ChannelId,
    /// What is there of objects that the peer is to send, by their labels.
    expected: BTreeMap<Bytes, Kept>,
    /// Symbols that came before the frame that opens their channel.
    early_symbols: Vec<(super::packet::SymbolsFrame, Charge)>,
    ordered_out: u32,
    /// The peer's ordered messages that were delivered or given up, and those that wait.
    ordered_in: Over,
    ordered_waiting: OrderedWaiting,
    /// Messages whose events, or which themselves, the application has not taken yet.
    unread: VecDeque<Charge>,
    /// Whether objects that the application did not ask for are refused.
    refuses_unasked: bool,
    /// Whether the application waits for the peer as long as the connection is there.
    awaits_peer: bool,
    /// Whether it is to outlive silence.
    stays: bool,
    control: Control,
    events: VecDeque<DfcpEvent>,
    jobs: VecDeque<CodingJob>,
    /// Jobs that were handed out and are not done.
    jobs_out: usize,
    /// Whether the peer's address is proved; until then the responder sends at most three times
    /// what it received.
    validated: bool,
    /// Of a responder: nothing has opened yet that proves the initiator to hold its keys.
    unconfirmed: bool,
    received_before_validation: u64,
    sent_before_validation: u64,
    hint_train: u8,
    /// The number of the last limit told to the peer, and of the newest that it told.
    limits_told: u32,
    limit_heard: u32,
    /// Whether nothing but symbols was found to send at the time of the last call.
    streams: bool,
    fin: Fin,
    /// The time of the latest call.
    latest: Time,
    last_heard: Time,
    drain_until: Time,
    /// Why this side closes.
    closing: CloseReason,
    stats: DfcpStats,
    trace: VecDeque<TraceEvent>,
}

#[derive(Default)]
struct Fin {
    wanted: bool,
    sent: bool,
    answered: bool,
    received: bool,
}

impl DfcpConnection {
    /// The initiating side. `early` is a message that travels in the SYN if it fits into one symbol
    /// and has at most [`MAX_EARLY`] bytes: it can be replayed and is not forward-secret, so it may
    /// only ask for something that changes nothing. A longer message follows the handshake.
    pub fn connect(
        now: Time,
        config: DfcpConfig,
        local: ConnectionId,
        early: Option<Bytes>,
    ) -> Self {
        let mut connection = Self::new(now, config, true, local);
        connection.version = super::params::VERSION;
        if let Some(message) = early {
            connection.queue_early(message);
        }
        connection.handshake.begin(now);
        connection
    }

    /// The responding side, made when a SYN by a peer that may connect has been opened. `size` is
    /// the SYN packet's bytes at the IP layer.
    pub fn accept(
        now: Time,
        config: DfcpConfig,
        local: ConnectionId,
        remote: ConnectionId,
        version: u32,
        hello: &Hello,
        size: u32,
    ) -> Self {
        let mut connection = Self::new(now, config, false, local);
        connection.version = version;
        connection.remote = Some(remote);
        connection.received_before_validation = u64::from(size);
        connection.agree(hello.params.clone());
        connection.hint_train = HINT_TRAIN;
        connection.handshake.begin(now);
        if let Some(known) = connection.config.known {
            connection.validated = true;
            connection.state = State::Established;
            connection.paths[0].recall(known);
            if known.rate.is_some() {
                // Only the packet that tries the larger size has anything to tell.
                connection.hint_train = 1;
            }
        }
        connection.note_received(now, 0, None, size, &hello.frames);
        connection.on_early_frames(now, &hello.frames);
        connection
    }

    fn new(now: Time, config: DfcpConfig, initiator: bool, local: ConnectionId) -> Self {
        let frames = config.token.iter().map(|token| Frame::Token(token.clone())).collect();
        let hello = Hello { params: config.params.clone(), frames };
        let least = config.packet_size.max(SYN_SIZE + config.overhead);
        let mtu = Mtu::new(least, config.max_packet_size);
        let code = config.params.codes().next().unwrap_or(Code::RaptorQ);
        let mut first = Path::new(0, config.rate, mtu, config.overhead, None);
        first.leave_numbers_out(config.left_out);
        first.state = PathState::Usable;
        Self {
            paths: Paths::new(first),
            loss: LossModel::new(),
            answering: PathSet::ALL,
            bottlenecks: SharedBottlenecks::default(),
            limits: [None; 2],
            account: Account::new(&config.params, config.budget.clone()),
            code,
            handshake: Handshake::new(config.timers),
            initiator,
            state: State::Handshake,
            local,
            remote: None,
            version: 0,
            hello,
            peer: None,
            send: SendChannels::default(),
            recv: BTreeMap::new(),
            over: Over::default(),
            next_channel: u32::from(!initiator),
            last_served: 0,
            expected: BTreeMap::new(),
            early_symbols: Vec::new(),
            ordered_out: 0,
            ordered_in: Over::default(),
            ordered_waiting: OrderedWaiting::new(config.order_within),
            unread: VecDeque::new(),
            refuses_unasked: false,
            awaits_peer: false,
            stays: false,
            control: Control::default(),
            events: VecDeque::new(),
            jobs: VecDeque::new(),
            jobs_out: 0,
            validated: initiator,
            unconfirmed: !initiator,
            received_before_validation: 0,
            sent_before_validation: 0,
            hint_train: 0,
            limits_told: 0,
            limit_heard: 0,
            streams: false,
            fin: Fin::default(),
            latest: now,
            last_heard: now,
            drain_until: Time::MAX,
            closing: CloseReason::Local,
            stats: DfcpStats::default(),
            trace: VecDeque::new(),
            config,
        }
    }

    /// This side's identifier: packets that name it are for this connection.
    pub const fn local_id(&self) -> ConnectionId {
        self.local
    }

    /// What the peer's reset would carry, once the handshake has told.
    pub fn peer_reset_token(&self) -> Option<super::params::ResetToken> {
        self.peer.as_ref().map(Params::reset_token)
    }

    /// Limits the rate of this side's data packets, together, whatever the rate controller finds;
    /// zero pauses, none lifts the limit.
    pub fn limit(&mut self, now: Time, rate: Option<Rate>) {
        self.set_limit(now, OURS, rate);
    }

    /// Asks the peer to limit the rate of its data packets.
    pub fn limit_peer(&mut self, now: Time, rate: Option<Rate>) {
        self.limits_told += 1;
        self.control.push(now, Frame::Limit { sequence: self.limits_told, rate });
    }

    /// Whether the connection is over and can be dropped.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether the handshake is complete and nobody has closed.
    pub fn is_established(&self) -> bool {
        self.state == State::Established && !self.unconfirmed
    }

    /// Gives the initiator a token, instead of those that it was given before.
    pub fn give_token(&mut self, now: Time, token: Bytes) {
        self.control.push(now, Frame::Token(token));
    }

    /// What a later connection to the same peer may begin with on its first path.
    pub fn known_path(&self) -> KnownPath {
        KnownPath {
            rate: self.paths[0].controller.confirmed(),
            rtt: self.paths[0].rtt.is_known().then(|| self.paths[0].rtt.least()),
        }
    }

    /// The next event.
    pub fn event(&mut self) -> Option<DfcpEvent> {
        let event = self.events.pop_front()?;
        if matches!(event, DfcpEvent::Message { .. }) && !self.config.holds_messages {
            self.unread.pop_front();
        }
        Some(event)
    }

    /// The next piece of work that the connection wants done. Of a connection that has much of it
    /// the rest waits until some is done, so that a peer cannot fill the workers' queue.
    pub fn job(&mut self) -> Option<CodingJob> {
        if self.jobs_out >= MAX_JOBS {
            return None;
        }
        let job = self.jobs.pop_front()?;
        self.jobs_out += 1;
        Some(job)
    }

    /// The next entry of the trace, if the configuration asked for one.
    pub fn trace(&mut self) -> Option<TraceEvent> {
        self.trace.pop_front()
    }

    /// What has been counted so far.
    pub fn stats(&self) -> DfcpStats {
        let main = &self.paths[self.paths.main(self.latest)];
        let usable = || self.paths.usable().map(|(_, path)| path);
        let all = self.paths.iter();
        DfcpStats {
            paths: usable().count() as u32,
            srtt: main.rtt.smoothed(),
            min_rtt: main.rtt.least(),
            rate: usable().fold(Rate::ZERO, |sum, path| sum.saturating_add(path.rate())),
            state: main.controller.state(),
            loss: self.loss.loss(),
            incoming_loss: main.receipts.loss(),
            in_flight: usable().map(|path| path.history.in_flight()).sum(),
            packet_size: main.mtu.size(),
            packets_lost: all.map(|path| path.packets_lost).sum(),
            symbols_wasted: self.stats.symbols_wasted
                + self.recv.values().map(|channel| channel.wasted).sum::<u64>(),
            ..self.stats
        }
    }

    /// Ends the connection at once; the peer is told `code` and `reason` (at most 255 bytes of it).
    pub fn close(&mut self, now: Time, code: u32, reason: &str) {
        self.close_for(now, CloseReason::Local, code, reason);
    }

    /// The same, for a reason that this side's application is told.
    fn close_for(&mut self, now: Time, closing: CloseReason, code: u32, reason: &str) {
        match self.state {
            State::Closing | State::Draining | State::Closed => return,
            State::Handshake if self.initiator => {
                self.finish_with(CloseReason::Local);
                return;
            }
            State::Handshake | State::Established => {}
        }
        self.state = State::Closing;
        self.closing = closing;
        self.drain_until = now + (self.patience(now) * 5).max(Duration::from_millis(500));
        self.control.retract(|_| true);
        self.control.push(now, Frame::Close { code, reason: reason.to_owned() });
        self.drop_channels();
    }

    /// Ends the connection when everything sent has been delivered and the peer has finished too.
    pub fn finish(&mut self) {
        self.fin.wanted = true;
    }

    fn finish_with(&mut self, reason: CloseReason) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.drop_channels();
            self.events.push_back(DfcpEvent::Closed(reason));
        }
    }

    fn drop_channels(&mut self) {
        self.send.clear();
        self.recv.clear();
        self.early_symbols.clear();
        self.ordered_waiting.clear();
        self.jobs.clear();
    }

    /// The peer has ended the connection: tell the application, and answer late packets for a
    /// while.
    fn drain(&mut self, now: Time, reason: CloseReason) {
        self.finish_with(reason);
        self.state = State::Draining;
        self.drain_until = now + (self.patience(now) * 3).max(Duration::from_millis(100));
    }

    /// Takes the peer's parameters; false if there is no code in common.
    fn agree(&mut self, params: Params) -> bool {
        // The sender picks: the first of its own codes that the receiver decodes.
        let code = self.config.params.codes().find(|code| params.decodes(*code));
        self.peer = Some(params);
        match code {
            Some(code) => {
                self.code = code;
                true
            }
            None => false,
        }
    }

    fn idle_timeout(&self) -> Duration {
        self.config.params.idle_timeout().min(self.peer_params().idle_timeout())
    }

    /// The peer's parameters; before the handshake has told them, a guess: this side's own.
    fn peer_params(&self) -> &Params {
        self.peer.as_ref().unwrap_or(&self.config.params)
    }
}

/// The longest message that fits into a SYN.
pub const MAX_EARLY: usize = 900;

/// The longest early message of a side with these parameters: it must fit into one symbol.
fn early_limit(params: &Params) -> usize {
    MAX_EARLY.min(usize::from(params.symbol_size()))
}
