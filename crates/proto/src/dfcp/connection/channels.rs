use bytes::Bytes;
use fontis_base::Time;
use fontis_codes::Code;

use super::super::code::{DEADLINE_PASSED, NOT_ASKED_FOR};
use super::super::event::{CodingJob, DfcpEvent, JobDone};
use super::super::message_run::MessageRun;
use super::super::packet::{ChannelId, Frame, LiveKind, ObjectShape, Open};
use super::super::params::Params;
use super::super::receiving::window_blocks;
use super::super::resume::{Held, Kept};
use super::super::sending::{SendChannel, Want};
use super::super::shape::foreign_shape;
use super::receive::MAX_AHEAD;
use super::{DfcpConnection, State};

/// How often the end of a message is told again without waiting for a timeout.
const DONE_COPIES: u32 = 1;
/// How much of objects is held for the peer that is not done with it: so many times what is on its
/// way, or what leaves in a second within these bytes if that is more. Beyond that the peer is
/// slow, and the sender would only hold memory for it.
const AHEAD: u64 = 4;
const LEAST_AHEAD: (u64, u64) = (8 << 20, 32 << 20);

/// How something is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct SendOptions {
    /// Lower goes first; channels of equal priority take turns.
    pub priority: u8,
    /// When it is no longer wanted: what has not been delivered by then is given up, and so is,
    /// before that, what has waited so long that it cannot be.
    pub deadline: Option<Time>,
    /// Whether a message is delivered only after all ordered messages before it.
    pub ordered: bool,
    /// Whether no more symbols leave than there are, before the peer reports that some are missing.
    /// Else the last symbols are followed by repair symbols at once, as many as the measured loss
    /// asks for; for a message of one symbol these are copies.
    pub sparing: bool,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self { priority: 128, deadline: None, ordered: false, sparing: false }
    }
}

impl DfcpConnection {
    fn new_channel(&mut self) -> ChannelId {
        let id = self.next_channel;
        self.next_channel += 2;
        id
    }

    /// Blocks of `block_size` bytes that the peer takes before it has said more.
    fn initial_limit(&self, block_size: u32) -> u32 {
        window_blocks(self.peer_params().window(), block_size)
    }

    fn live(&mut self, kind: LiveKind, options: SendOptions) -> SendChannel {
        let id = self.new_channel();
        let most = self.peer.as_ref().map_or(self.config.live_block, Params::max_block);
        let block_size = self.config.live_block.min(most).max(1);
        let mut channel = SendChannel::live(
            id,
            kind,
            options.priority,
            options.deadline,
            self.code,
            self.config.params.symbol_size(),
            block_size,
            self.initial_limit(most),
        );
        (channel.sparing, channel.given) = (options.sparing, self.latest);
        channel
    }

    /// Sends a message.
    pub fn send_message(&mut self, data: Bytes, options: SendOptions) -> ChannelId {
        self.send_pieces([data], options)
    }

    /// The messages of priority 0, in no order, that the peer has not been known to take. A server
    /// that answers with such messages should not read more of a peer that takes none.
    pub fn untaken_messages(&self) -> usize {
        self.send.urgent_messages()
    }

    /// Sends a message that is in pieces, which are joined block by block.
    pub fn send_pieces(
        &mut self,
        pieces: impl IntoIterator<Item = Bytes>,
        options: SendOptions,
    ) -> ChannelId {
        let kind = if options.ordered {
            self.ordered_out += 1;
            LiveKind::Ordered { sequence: self.ordered_out - 1 }
        } else {
            LiveKind::Message
        };
        let mut channel = self.live(kind, options);
        pieces.into_iter().for_each(|piece| channel.write(piece));
        channel.finish();
        let id = channel.id;
        self.send.insert(channel);
        id
    }

    /// Opens a stream of bytes to the peer.
    pub fn open_stream(&mut self, options: SendOptions) -> ChannelId {
        let channel = self.live(LiveKind::Stream, options);
        let id = channel.id;
        self.send.insert(channel);
        id
    }

    /// Writes to a stream; false if there is no such stream open for writing.
    pub fn write(&mut self, channel: ChannelId, data: Bytes) -> bool {
        self.send.get_mut(channel).map(|channel| channel.write(data)).is_some()
    }

    /// Ends a stream: the peer will read to here and no further.
    pub fn finish_stream(&mut self, channel: ChannelId) {
        if let Some(channel) = self.send.get_mut(channel) {
            channel.finish();
        }
    }

    /// Bytes of a channel that the peer does not have yet and that are held here; zero when it is
    /// delivered.
    pub fn buffered(&self, channel: ChannelId) -> u64 {
        self.send.get(channel).map_or(0, SendChannel::buffered)
    }

    /// Bytes of symbols of a channel that are still to leave, if no more are lost than expected;
    /// the most there can be while blocks wait to be begun.
    pub fn unsent(&self, channel: ChannelId) -> u64 {
        let left = |channel: &SendChannel| channel.bytes_left(self.answering).unwrap_or(u64::MAX);
        self.send.get(channel).map_or(0, left)
    }

    /// The code that objects may be sent with: one that both sides know.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The largest block that the peer accepts.
    pub fn peer_max_block(&self) -> u32 {
        self.peer_params().max_block()
    }

    /// Sends an object; its blocks are asked for by [`DfcpEvent::BlockWanted`]. `None` if the shape
    /// is impossible or larger than the peer accepts.
    pub fn send_object(
        &mut self,
        now: Time,
        shape: ObjectShape,
        label: Bytes,
        options: SendOptions,
    ) -> Option<ChannelId> {
        self.resume_object(now, shape, label, options, Held::default())
    }

    /// Sends the rest of an object of which the peer says that it holds `held`.
    pub fn resume_object(
        &mut self,
        now: Time,
        shape: ObjectShape,
        label: Bytes,
        options: SendOptions,
        held: Held,
    ) -> Option<ChannelId> {
        let code = Code::from_id(shape.code)?;
        let most = self.peer_max_block();
        if shape.blocks().is_none() || shape.block_size > most {
            return None;
        }
        foreign_shape(code, shape.block_size, shape.symbol_size)?;
        let id = self.new_channel();
        let window = self.initial_limit(shape.block_size);
        let SendOptions { priority, deadline, .. } = options;
        let mut channel = SendChannel::object(id, shape, code, priority, deadline, window, held);
        channel.given = now;
        self.control.push(now, Frame::Open(Box::new(Open { channel: id, object: shape, label })));
        self.send.insert(channel);
        Some(id)
    }

    /// Says what is there already of an object that the peer will send under `label`.
    pub fn expect_object(&mut self, label: Bytes, kept: Kept) {
        self.expected.insert(label, kept);
    }

    /// Hands out whole blocks alone from now on, no [checkpoints](super::super::Checkpoint).
    pub fn skip_checkpoints(&mut self) {
        self.config.checkpoint = None;
    }

    /// Supplies a block that was asked for; false if its length is not the block's.
    pub fn supply_block(&mut self, channel: ChannelId, block: u32, data: Bytes) -> bool {
        self.send.get_mut(channel).is_none_or(|channel| channel.supply(block, data))
    }

    /// Accepts a block of an object that is received: it has been checked and stored.
    pub fn release_block(&mut self, now: Time, channel: ChannelId, block: u32) {
        if let Some(receiving) = self.recv.get_mut(&channel) {
            receiving.release(block);
            self.mark_dirty(channel);
            self.feedback_once(now);
            self.close_if_complete(now, channel);
        }
    }

    /// Refuses a block of an object that is received: it will be collected anew.
    pub fn reject_block(&mut self, now: Time, channel: ChannelId, block: u32) {
        if let Some(receiving) = self.recv.get_mut(&channel) {
            receiving.reject(block);
            self.mark_dirty(channel);
            self.feedback_once(now);
        }
    }

    /// The next stretch of bytes of a stream by the peer, if one is there.
    pub fn read(&mut self, now: Time, channel: ChannelId) -> Option<Bytes> {
        let receiving = self.recv.get_mut(&channel)?;
        let data = receiving.take_ready()?;
        self.mark_dirty(channel);
        self.feedback_once(now);
        self.close_if_complete(now, channel);
        Some(data)
    }

    /// Whether a stream by the peer has been read to its end (or is not there).
    pub fn is_read(&self, channel: ChannelId) -> bool {
        !self.recv.contains_key(&channel)
    }

    /// Whether an object or a stream is being sent.
    pub fn is_sending(&self) -> bool {
        self.send.values().any(|channel| is_bulk(channel.kind()))
    }

    /// Whether an object or a stream is being received.
    pub fn is_receiving(&self) -> bool {
        self.recv.values().any(|channel| is_bulk(channel.kind()))
    }

    /// Gives up a channel of either side; the peer is told `code`.
    pub fn abandon(&mut self, now: Time, channel: ChannelId, code: u32) {
        let sent = self.send.remove(channel);
        let received = self.recv.remove(&channel);
        self.jobs.retain(|job| job.channel() != channel);
        if sent.is_none() && received.is_none() {
            return;
        }
        self.control.retract(|frame| matches!(frame, Frame::Open(open) if open.channel == channel));
        let kind = match &received {
            Some(received) => received.kind(),
            None => sent.and_then(|channel| channel.kind()),
        };
        if let Some(received) = received {
            self.stats.symbols_wasted += received.wasted;
            self.mark_over(channel);
        }
        self.tell_abandoned(now, channel, code, kind);
    }

    /// Tells the peer that the deadline of a channel has passed, of this kind if it is no object.
    pub(super) fn give_up(&mut self, now: Time, channel: ChannelId, kind: Option<LiveKind>) {
        if is_bulk(kind) {
            let frame = Frame::Abandon { channel, code: DEADLINE_PASSED, sequence: None };
            return self.control.push(now, frame);
        }
        if let Some(LiveKind::Ordered { sequence }) = kind
            && let Some(run) = MessageRun::new(true, sequence, 1)
        {
            let after = self.send.place_before(channel);
            self.control.give_up(now, run, after);
        }
        if let Some(run) = MessageRun::new(false, channel, 1) {
            let after = self.send.before(channel);
            self.control.give_up(now, run, after);
        }
    }

    /// Tells the peer that a channel was given up, of this kind if it is no object.
    pub(super) fn tell_abandoned(
        &mut self,
        now: Time,
        channel: ChannelId,
        code: u32,
        kind: Option<LiveKind>,
    ) {
        // The receiver's messages behind an ordered one wait for that.
        let sequence = match kind {
            Some(LiveKind::Ordered { sequence }) if self.is_ours(channel) => Some(sequence),
            _ => None,
        };
        let frame = Frame::Abandon { channel, code, sequence };
        // Who offers what nobody asked for need not know it at once.
        match sequence.is_some() || (is_bulk(kind) && code != NOT_ASKED_FOR) {
            true => self.control.push(now, frame),
            false => self.control.gather(now, frame, 0),
        }
    }

    /// Takes back a job that has been done.
    pub fn job_done(&mut self, now: Time, done: JobDone) {
        self.jobs_out = self.jobs_out.saturating_sub(1);
        match done {
            JobDone::Repair { channel, block, symbols } => {
                if let Some(sending) = self.send.get_mut(channel) {
                    sending.set_repair(block, symbols);
                }
            }
            JobDone::Decode { channel, block, decoded } => {
                self.on_decoded(now, channel, block, decoded);
            }
        }
    }

    /// Asks channels what they want next.
    pub(super) fn collect_wants(&mut self) {
        let (wide, room) = (self.wide_symbol(), self.least_symbol_room());
        let paths = || self.paths.usable().map(|(_, path)| path);
        let in_flight = paths().map(|path| path.history.in_flight()).sum::<u64>();
        let bits = paths().fold(0, |sum: u64, path| sum.saturating_add(path.rate().as_bps()));
        let ahead = (AHEAD * in_flight).max((bits / 8).clamp(LEAST_AHEAD.0, LEAST_AHEAD.1));
        let Self { send, loss, events, jobs, account, .. } = self;
        send.admit();
        let held = send.values().map(SendChannel::held).sum::<u64>();
        let mut left = ahead.saturating_sub(held);
        for channel in send.values_mut() {
            channel.prepare(loss, wide, room, account, &mut left);
            while let Some(want) = channel.next_want() {
                match want {
                    Want::Data { block } => {
                        events.push_back(DfcpEvent::BlockWanted { channel: channel.id, block });
                    }
                    Want::Repair { block, job } => {
                        jobs.push_back(CodingJob::Repair { channel: channel.id, block, job });
                    }
                }
            }
        }
    }

    /// A channel that has been received completely is over: the peer is told, reliably.
    pub(super) fn close_if_complete(&mut self, now: Time, channel: ChannelId) {
        if self.recv.get(&channel).is_some_and(|receiving| receiving.is_complete()) {
            let Some(receiving) = self.recv.remove(&channel) else { return };
            self.stats.symbols_wasted += receiving.wasted;
            self.mark_clean(channel);
            self.mark_over(channel);
            match is_bulk(receiving.kind()) {
                true => self.control.push(now, Frame::Done { channel }),
                false => self.control.gather(now, Frame::Done { channel }, DONE_COPIES),
            }
        }
    }

    pub(super) fn mark_over(&mut self, channel: ChannelId) {
        // The peer's channels have the other parity than ours; ours never come here.
        self.over.insert(channel / 2..channel / 2 + 1);
    }

    pub(super) fn is_over(&self, channel: ChannelId) -> bool {
        self.over.contains(channel / 2)
    }

    /// Whether a channel of the peer that is not over lies too far ahead of those that are.
    pub(super) const fn is_far_ahead(&self, channel: ChannelId) -> bool {
        channel / 2 - self.over.floor() > MAX_AHEAD
    }

    pub(super) fn is_ours(&self, channel: ChannelId) -> bool {
        channel % 2 == u32::from(!self.initiator)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Handshake | State::Established)
    }
}

/// Whether a channel carries more than a message.
const fn is_bulk(kind: Option<LiveKind>) -> bool {
    matches!(kind, None | Some(LiveKind::Stream))
}
