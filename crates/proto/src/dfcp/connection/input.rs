use fontis_base::{Ecn, Time};
use smallvec::SmallVec;
use subtle::ConstantTimeEq as _;

use super::super::event::{CloseReason, DfcpEvent};
use super::super::feedback_due::FeedbackDue;
use super::super::history::{Outcome, Untrue};
use super::super::packet::{
    BlockStatus, ChannelId, ConnectionId, DfcpPacket, Frame, Hello, LiveKind, SymbolsFrame,
};
use super::super::params::Params;
use super::super::path::PathState;
use super::super::paths::{MAX_PATHS, PathId};
use super::super::trace::{TraceEvent, Traced};
use super::{CODE_UNTRUE, DfcpConnection, State, THEIRS, UNTRUE, early_limit};
use crate::rate::feedback::feedback_interval;

/// Channels whose status answers a PING. Each costs more than the PING that asks for it.
const TOLD_AT_ONCE: usize = 16;
/// Packets whose feedback is not delayed when a connection begins.
const EAGER_PACKETS: u64 = 4;

impl DfcpConnection {
    /// Takes a packet that has been opened, with its bytes at the IP layer and its congestion
    /// notification.
    ///
    /// `arrived` may lie before the time of the last call: a packet may have waited while others
    /// were handled, which is no part of the path's delay.
    pub fn handle(&mut self, arrived: Time, packet: DfcpPacket, size: u32, ecn: Ecn) {
        let Some(now) = self.arrive(arrived, size) else { return };
        match packet {
            DfcpPacket::Syn { source, .. } => self.on_syn_copy(source, size),
            DfcpPacket::SynAck { source, hello, .. } => {
                if self.initiator {
                    self.note_received(now, 0, None, size, &hello.frames);
                }
                self.on_synack(now, source, hello);
            }
            DfcpPacket::Sealed { path, number, frames, .. } => {
                self.on_sealed(arrived, path, number, &frames, size, ecn);
            }
            DfcpPacket::Reset { token, .. } => {
                // In constant time, or a token could be found byte by byte.
                let is_true = |peer: &Params| bool::from(peer.reset_token().ct_eq(&token));
                if self.peer.as_ref().is_some_and(is_true) {
                    self.finish_with(CloseReason::Reset);
                }
            }
            DfcpPacket::VersionNegotiation { versions, .. } => {
                if self.initiator
                    && self.state == State::Handshake
                    && !versions.contains(&self.version)
                {
                    self.finish_with(CloseReason::Version);
                }
            }
        }
    }

    /// The batch form of [`handle`](Self::handle): takes the frames of a sealed packet from a
    /// buffer that the driver uses for all packets of a read. To build and move a packet takes
    /// longer than to read its frames.
    pub fn handle_frames(
        &mut self,
        arrived: Time,
        path: u8,
        number: u64,
        frames: &[Frame],
        size: u32,
        ecn: Ecn,
    ) {
        if self.arrive(arrived, size).is_some() {
            self.on_sealed(arrived, path, number, frames, size, ecn);
        }
    }

    /// Takes another copy of the SYN that began the connection, whose hello need not be opened
    /// again: it asks for another SYNACK.
    pub fn handle_syn_copy(&mut self, arrived: Time, source: ConnectionId, size: u32) {
        if self.arrive(arrived, size).is_some() {
            self.on_syn_copy(source, size);
        }
    }

    fn on_syn_copy(&mut self, source: ConnectionId, size: u32) {
        if self.unconfirmed && Some(source) == self.remote {
            self.received_before_validation += u64::from(size);
            self.handshake.again();
        }
    }

    /// A packet of `size` bytes has come; what is to be taken for the present, if anything of it
    /// matters still.
    fn arrive(&mut self, arrived: Time, size: u32) -> Option<Time> {
        if self.state == State::Closed {
            return None;
        }
        self.latest = self.latest.max(arrived);
        self.stats.bytes_received += u64::from(size);
        Some(self.latest)
    }

    fn on_sealed(
        &mut self,
        arrived: Time,
        path: PathId,
        number: u64,
        frames: &[Frame],
        size: u32,
        ecn: Ecn,
    ) {
        if self.initiator && self.state == State::Handshake {
            return;
        }
        let at = usize::from(path);
        if !self.has_path(at) {
            self.stats.violations += 1;
            return;
        }
        let path = &mut self.paths[at];
        if path.state == PathState::Closed {
            return;
        }
        if !path.receipts.receive(arrived, number, size, ecn) {
            self.stats.duplicates += 1;
            return;
        }
        let now = self.latest;
        path.received = now;
        path.bytes[1] += u64::from(size);
        path.feedback.earn(size);
        self.stats.packets_received += 1;
        self.last_heard = now;
        self.note_received(now, at, Some(number), size, frames);
        if at == 0 {
            self.validate(now);
        }
        self.on_frames(now, at, frames);
    }

    /// Whether there is this path. A responder's come to be when the initiator uses them, in the
    /// order of their numbers.
    fn has_path(&mut self, at: usize) -> bool {
        let may_grow = !self.initiator && !self.unconfirmed && at < MAX_PATHS;
        while may_grow && at >= self.paths.len() {
            if self.add_path().is_none() {
                return false;
            }
        }
        at < self.paths.len()
    }

    pub(super) fn note_received(
        &mut self,
        now: Time,
        at: usize,
        number: Option<u64>,
        size: u32,
        frames: &[Frame],
    ) {
        if self.config.trace {
            let frames = frames.iter().map(Frame::traced).collect();
            let (path, what) = (self.paths[at].id, Traced::Received { number, size, frames });
            self.trace.push_back(TraceEvent { time: now, path, what });
        }
    }

    fn on_synack(&mut self, now: Time, source: ConnectionId, hello: Hello) {
        if !self.initiator {
            return;
        }
        if self.state != State::Handshake {
            // The confirmation was lost: its copies are on their way.
            return;
        }
        self.last_heard = now;
        self.remote = Some(source);
        self.paths[0].rtt.guess(now.since(self.handshake.began()));
        if !self.agree(hello.params) {
            self.finish_with(CloseReason::NoCommonCode);
            return;
        }
        self.state = State::Established;
        self.control.push(now, Frame::Confirm);
        let path = &mut self.paths[0];
        path.feedback.at = Some(now + feedback_interval(path.rtt.smoothed()) / 4);
        // What travelled in the SYN has arrived with it.
        let sent = core::mem::take(&mut self.hello.frames);
        if sent.iter().any(|frame| matches!(frame, Frame::Symbols(_))) {
            self.deliver(0);
        }
        self.events.push_back(DfcpEvent::Connected);
        for frame in &hello.frames {
            self.on_frame(now, 0, frame);
        }
    }

    /// A sealed packet from the initiator proves its address and its keys.
    fn validate(&mut self, now: Time) {
        if !core::mem::take(&mut self.unconfirmed) {
            return;
        }
        self.validated = true;
        self.hint_train = 0;
        self.paths[0].rtt.guess(now.since(self.handshake.began()));
        if matches!(self.state, State::Handshake | State::Established) {
            self.state = State::Established;
            self.events.push_back(DfcpEvent::Connected);
        }
    }

    /// Takes the early message of a SYN, if there is exactly one and it is whole.
    ///
    /// A SYN may be a stranger's or a replay. A message in one symbol is decoded at once, so that
    /// an early message never leaves a half-filled block behind.
    pub(super) fn on_early_frames(&mut self, now: Time, frames: &[Frame]) {
        let mut symbols = frames.iter().filter_map(|frame| match frame {
            Frame::Symbols(symbols) => Some(symbols),
            _ => None,
        });
        let Some(first) = symbols.next() else { return };
        if symbols.next().is_none() && self.is_early_message(first) {
            self.on_symbols(now, first);
        } else {
            self.stats.violations += 1;
        }
    }

    /// Whether these symbols are a whole message that may travel in a SYN.
    fn is_early_message(&self, symbols: &SymbolsFrame) -> bool {
        let Some(live) = symbols.live else { return false };
        let most = early_limit(self.peer_params());
        live.kind == LiveKind::Message
            && live.fin
            && live.block_len as usize <= most
            && (symbols.block, symbols.esi, symbols.count) == (0, 0, 1)
            && symbols.data.len() <= most
    }

    fn on_frames(&mut self, now: Time, at: usize, frames: &[Frame]) {
        let mut eliciting = false;
        let mut data = false;
        let mut told = false;
        for frame in frames {
            // Each goes through what was sent: a packet needs one.
            if matches!(frame, Frame::Feedback(_)) && core::mem::replace(&mut told, true) {
                self.stats.violations += 1;
                continue;
            }
            eliciting |= !matches!(
                frame,
                Frame::Feedback(_)
                    | Frame::Blocks(_)
                    | Frame::FinAck
                    | Frame::Padding(_)
                    | Frame::Spare
                    | Frame::Challenge(_)
                    | Frame::Response(_)
            );
            data |= matches!(frame, Frame::Symbols(_));
            self.on_frame(now, at, frame);
        }
        if data {
            self.stats.data_packets_received += 1;
        }
        if eliciting && self.is_open() {
            let path = &mut self.paths[at];
            let interval = feedback_interval(path.rtt.smoothed());
            let interval = match data {
                _ if path.receipts.packets() <= EAGER_PACKETS => interval / 4,
                true => interval,
                // Only the end of its repetition waits for it, and a timeout allows for so much.
                false => interval * 2,
            };
            path.feedback.by(now + interval);
        }
    }

    fn on_frame(&mut self, now: Time, at: usize, frame: &Frame) {
        if matches!(self.state, State::Closing | State::Draining) {
            self.on_frame_at_end(now, frame);
            return;
        }
        match frame {
            Frame::Ping => self.on_ping(now, at),
            Frame::Padding(_) | Frame::Confirm => {}
            Frame::Challenge(token) => self.paths[at].question.is_asked(*token),
            Frame::Response(token) => self.on_response(now, at, *token),
            Frame::Spare => {
                // The first path is always there; a side of its own accord makes none spare.
                if !self.initiator && at > 0 {
                    self.paths[at].spare = true;
                }
            }
            Frame::PathClosed { path } => {
                let at = usize::from(*path);
                if self.paths.get(*path).is_some_and(|path| path.state != PathState::Closed)
                    && self.paths.has_others(at)
                {
                    self.end_path(now, at);
                }
            }
            Frame::Symbols(symbols) => self.on_symbols(now, symbols),
            Frame::Feedback(feedback) => self.on_feedback(now, feedback),
            Frame::Blocks(status) => self.on_status(status),
            Frame::Open(open) => self.on_open(now, open),
            Frame::Done { channel } => self.deliver(*channel),
            Frame::Abandon { channel, code, sequence } => {
                self.on_abandon(now, *channel, *code, *sequence);
            }
            Frame::GivenUp(run) => self.on_given_up(now, *run),
            Frame::Token(token) => {
                if self.initiator {
                    self.events.push_back(DfcpEvent::Token { token: token.clone() });
                }
            }
            Frame::Limit { sequence, rate } => {
                if *sequence > self.limit_heard {
                    self.limit_heard = *sequence;
                    self.set_limit(now, THEIRS, *rate);
                }
            }
            Frame::Fin => {
                self.fin.received = true;
                self.answer_fin(now);
            }
            Frame::FinAck => {
                if self.fin.sent {
                    self.drain(now, CloseReason::Finished);
                }
            }
            Frame::Close { code, reason } => {
                self.drain(now, CloseReason::Peer { code: *code, reason: reason.clone() });
                self.fin.answered = true;
            }
        }
    }

    /// The peer asks for the status of channels: it may have missed some. It gets that of a few,
    /// and of the next few when it asks again.
    fn on_ping(&mut self, now: Time, path: usize) {
        let path = &mut self.paths[path];
        let interval = feedback_interval(path.rtt.smoothed());
        let at = path.feedback.at_once(now, interval);
        if at > now {
            path.feedback.by(at);
            return;
        }
        path.feedback.at = Some(now);
        let FeedbackDue { dirty, next_told, .. } = &mut path.feedback;
        let behind = self.recv.range(..*next_told);
        let mut channels = self.recv.range(*next_told..).chain(behind).map(|(id, _)| *id);
        dirty.extend(channels.by_ref().take(TOLD_AT_ONCE));
        *next_told = channels.next().unwrap_or(0);
    }

    /// After the end only two things matter: that the peer learns of it, and that this side learns
    /// that it has.
    fn on_frame_at_end(&mut self, now: Time, frame: &Frame) {
        match frame {
            Frame::Close { .. } | Frame::FinAck if self.state == State::Closing => {
                self.finish_with(self.closing.clone());
            }
            Frame::Close { .. } | Frame::Fin => self.fin.answered = true,
            Frame::Feedback(feedback) => self.on_feedback(now, feedback),
            _ => {}
        }
        if self.state == State::Closing && self.control.is_empty() {
            self.finish_with(self.closing.clone());
        }
    }

    /// Both sides end together: a FIN is answered when this side has ended too.
    pub(super) fn answer_fin(&mut self, now: Time) {
        if self.fin.received && self.fin.wanted && self.send.is_empty() && self.recv.is_empty() {
            self.fin.answered = true;
            self.drain(now, CloseReason::Finished);
        }
    }

    fn on_feedback(&mut self, now: Time, feedback: &super::super::feedback::Feedback) {
        let at = usize::from(feedback.path);
        if at >= self.paths.len() {
            self.stats.violations += 1;
            return;
        }
        let Self { paths, loss, send, control, stats, config, trace, .. } = self;
        let path = &mut paths[at];
        let id = path.id;
        let mut arrived = 0;
        let mut sizes = SmallVec::<[(u32, bool); 32]>::new();
        let taken = path.on_feedback(now, feedback, loss, |number, sent, outcome| {
            if config.trace && outcome == Outcome::Lost {
                trace.push_back(TraceEvent { time: now, path: id, what: Traced::Lost { number } });
            }
            if let Some((channel, block, count)) = sent.symbols
                && let Some(channel) = send.get_mut(channel)
                && outcome != Outcome::Late
            {
                channel.resolved(at, block, count, outcome == Outcome::Received);
            }
            for id in &sent.control {
                match outcome {
                    Outcome::Received | Outcome::Late => control.delivered(*id),
                    Outcome::Lost | Outcome::Forgotten => control.lost(now, *id),
                }
            }
            let (size, came) =
                (u32::from(sent.size), matches!(outcome, Outcome::Received | Outcome::Late));
            match sent.mtu_probe {
                true if came => arrived = arrived.max(size),
                true => {}
                false => sizes.push((size, came)),
            }
        });
        if let Err(untrue) = taken {
            stats.violations += 1;
            if untrue == Untrue::LeftOut {
                self.close_for(now, CloseReason::Untrue, CODE_UNTRUE, UNTRUE);
            }
            return;
        }
        path.mtu.arrived(arrived);
        let met = path.met.take();
        // Feedback tells of packets from the highest down.
        let holes =
            sizes.iter().rev().filter(|(size, came)| path.mtu.decided(*size, *came)).count();
        let proved = paths.iter().map(|path| path.controller.proved_loss().unwrap_or(1.0));
        loss.bound(proved.fold(0.0, f64::max));
        for channel in send.values_mut() {
            channel.retarget(loss);
        }
        if let Some(met) = met {
            self.couple(now, at, met);
        }
        if holes > 0 {
            let room = self.least_symbol_room();
            for channel in self.send.values_mut() {
                channel.refit(room, &self.loss);
            }
        }
        if self.config.trace {
            let path = &self.paths[at];
            let what = Traced::Metrics {
                srtt: path.rtt.smoothed(),
                rate: path.rate(),
                in_flight: path.history.in_flight(),
                loss: path.loss.loss(),
                state: path.controller.state(),
            };
            self.trace.push_back(TraceEvent { time: now, path: id, what });
        }
    }

    fn on_status(&mut self, status: &BlockStatus) {
        let Some(channel) = self.send.get_mut(status.channel) else { return };
        if !channel.on_status(status) {
            return;
        }
        channel.retarget(&self.loss);
        if channel.is_complete() {
            self.deliver(status.channel);
        }
    }

    /// The peer has all of a channel.
    fn deliver(&mut self, channel: ChannelId) {
        let Some(mut sending) = self.send.remove(channel) else { return };
        sending.on_done();
        self.control.retract(|frame| matches!(frame, Frame::Open(open) if open.channel == channel));
        self.events.push_back(DfcpEvent::Delivered { channel });
    }
}
