use core::ops::Range;

use bytes::Bytes;
use fontis_base::Time;
use fontis_codes::{Code, Decoded};

use super::super::budget::{ENTRY, Full, block_cost};
use super::super::code::{DEADLINE_PASSED, NO_ROOM, NOT_ASKED_FOR, TOO_LONG};
use super::super::event::{CloseReason, CodingJob, DfcpEvent};
use super::super::message_run::MessageRun;
use super::super::ordered::Ordered;
use super::super::packet::{ChannelId, Frame, LiveKind, Open, SymbolsFrame};
use super::super::receiving::{Asked, Limits, Received, RecvChannel};
use super::super::shape::foreign_shape;
use super::{CODE_OVERRUN, DfcpConnection, OVERRUN};

/// Symbols kept for channels that are not open yet.
const EARLY_SYMBOLS: usize = 256;
/// Channels of the peer that may be open at once.
const MAX_CHANNELS: usize = 1024;
/// How far a channel may lie ahead of those that are over, and an ordered message ahead of those
/// that have been delivered: beyond, a peer only wants memory.
pub(super) const MAX_AHEAD: u32 = 1 << 16;
/// Messages that the application may not have taken yet, however short they are: each has costs of
/// its own.
const MAX_UNREAD: usize = 16_384;
/// Control frames that may wait for the peer's word that they have arrived. Each channel that ends
/// causes one, so a peer that never says so opens no more; if it goes on all the same, the
/// connection ends.
const MAX_CONTROL: usize = 4096;
const FAR_TOO_MANY: usize = 2 * MAX_CONTROL;
/// The same where objects were offered that nobody asked for.
const TOO_MANY_UNASKED: usize = 256;

/// What the peer's channels bring.
impl DfcpConnection {
    pub(super) fn on_abandon(
        &mut self,
        now: Time,
        channel: ChannelId,
        code: u32,
        sequence: Option<u32>,
    ) {
        if self.is_ours(channel) {
            if self.send.remove(channel).is_some() {
                self.control
                    .retract(|frame| matches!(frame, Frame::Open(open) if open.channel == channel));
                self.events.push_back(DfcpEvent::Abandoned { channel, code });
            }
            return;
        }
        if self.is_over(channel) || self.is_far_ahead(channel) {
            return;
        }
        self.recv.remove(&channel);
        self.jobs.retain(|job| job.channel() != channel);
        self.mark_clean(channel);
        self.mark_over(channel);
        self.events.push_back(DfcpEvent::Abandoned { channel, code });
        if let Some(sequence) = sequence {
            self.account_for(now, sequence..sequence.saturating_add(1));
        }
        self.answer_fin(now);
    }

    pub(super) fn on_given_up(&mut self, now: Time, run: MessageRun) {
        if run.is_ordered() {
            self.account_for(now, run.first()..run.end());
            return;
        }
        if self.is_ours(run.first()) {
            self.stats.violations += 1;
            return;
        }
        let first = run.first().max(2 * self.over.floor());
        if first >= run.end() || self.is_far_ahead(first) {
            return;
        }
        let gone: Vec<_> = self.recv.range(first..run.end()).map(|(channel, _)| *channel).collect();
        for channel in gone {
            self.on_abandon(now, channel, DEADLINE_PASSED, None);
        }
        self.over.insert(run.first() / 2..run.first() / 2 + run.count());
        self.answer_fin(now);
    }

    pub(super) fn on_open(&mut self, now: Time, open: &Open) {
        if self.is_ours(open.channel)
            || self.is_over(open.channel)
            || self.is_far_ahead(open.channel)
            || self.recv.contains_key(&open.channel)
        {
            return;
        }
        let shape = open.object;
        let code = Code::from_id(shape.code).filter(|code| self.config.params.decodes(*code));
        let valid = code.is_some_and(|code| {
            shape.blocks().is_some()
                && shape.block_size <= self.config.params.max_block()
                && foreign_shape(code, shape.block_size, shape.symbol_size).is_some()
        });
        let (Some(code), true) = (code, valid) else {
            self.stats.violations += 1;
            return;
        };
        let kept = self.expected.remove(&open.label);
        if kept.is_none() && self.refuses_unasked {
            self.refuse(now, open.channel, NOT_ASKED_FOR);
            return;
        }
        let cost = foreign_shape(code, shape.block_size, shape.symbol_size).map(block_cost);
        let fits = self.account.take(cost.unwrap_or_default()).err() != Some(Full::Refused);
        if !fits || self.recv.len() >= MAX_CHANNELS || self.control.len() >= MAX_CONTROL {
            self.refuse(now, open.channel, NO_ROOM);
            if kept.is_some() {
                // The application waits for it.
                let channel = open.channel;
                self.events.push_back(DfcpEvent::Abandoned { channel, code: NO_ROOM });
            }
            return;
        }
        // The application's label must not keep the packet that it came in.
        let asked = Asked { label: Bytes::copy_from_slice(&open.label), is: kept.is_some() };
        let (window, kept) = (self.config.params.window(), kept.unwrap_or_default());
        let channel =
            RecvChannel::object(open.channel, shape, code, window, kept, asked, &self.account);
        self.recv.insert(open.channel, channel);
        self.mark_dirty(open.channel);
        self.events.push_back(DfcpEvent::ObjectOpened {
            channel: open.channel,
            shape,
            label: open.label.clone(),
        });
        self.close_if_complete(now, open.channel);
        let (mine, rest) = core::mem::take(&mut self.early_symbols)
            .into_iter()
            .partition(|(symbols, _)| symbols.channel == open.channel);
        self.early_symbols = rest;
        for (symbols, _) in mine {
            self.on_symbols(now, &symbols);
        }
    }

    pub(super) fn on_symbols(&mut self, now: Time, symbols: &SymbolsFrame) {
        let id = symbols.channel;
        self.stats.symbols_received += u64::from(symbols.count);
        if self.is_ours(id) {
            self.stats.violations += 1;
            return;
        }
        if self.is_over(id) {
            self.stats.symbols_wasted += u64::from(symbols.count);
            return;
        }
        if self.is_far_ahead(id) {
            self.stats.violations += 1;
            return;
        }
        if !self.recv.contains_key(&id) {
            let Some(live) = symbols.live else {
                // The frame that opens the channel was lost or is late; its copies follow.
                if self.early_symbols.len() < EARLY_SYMBOLS
                    && let Ok(charge) = self.account.take(ENTRY + symbols.data.len() as u64)
                {
                    // Each could otherwise keep a whole read's memory.
                    let data = Bytes::copy_from_slice(&symbols.data);
                    self.early_symbols.push((SymbolsFrame { data, ..*symbols }, charge));
                } else {
                    self.stats.symbols_wasted += u64::from(symbols.count);
                }
                return;
            };
            if self.recv.len() >= MAX_CHANNELS || self.control.len() >= MAX_CONTROL {
                self.stats.violations += 1;
                return;
            }
            if self.unread.len() >= MAX_UNREAD && !matches!(live.kind, LiveKind::Stream) {
                self.stats.symbols_wasted += u64::from(symbols.count);
                return;
            }
            let ours = &self.config.params;
            let code = self.peer_code();
            let channel = RecvChannel::live(
                id,
                live,
                code,
                self.peer.as_ref().unwrap_or(ours).symbol_size(),
                ours.max_block(),
                ours.window(),
            );
            self.recv.insert(id, channel);
        }
        let longest_message = u64::from(self.config.longest_message);
        let mut limits = Limits { account: &self.account, must: false, longest_message };
        let Some(channel) = self.recv.get_mut(&id) else { return };
        let mut received = channel.receive(symbols, &limits);
        if matches!(received, Received::Full(Full::Connection)) && self.must_go_on(id) {
            limits = Limits { account: &self.account, must: true, longest_message };
            let Some(channel) = self.recv.get_mut(&id) else { return };
            received = channel.receive(symbols, &limits);
        }
        match received {
            Received::Full(full) => return self.on_full(now, symbols, full),
            Received::TooLong => return self.refuse(now, id, TOO_LONG),
            Received::Nothing | Received::Violation | Received::Decode(_) => {}
        }
        let Some(channel) = self.recv.get_mut(&id) else { return };
        if let Some(every) = self.config.checkpoint
            && let Some(checkpoint) = channel.checkpoint(now, symbols.block, every)
        {
            self.events.push_back(DfcpEvent::Checkpoint { channel: id, checkpoint });
        }
        self.mark_dirty(id);
        match received {
            Received::Nothing | Received::Full(_) | Received::TooLong => {}
            Received::Violation => self.stats.violations += 1,
            Received::Decode(job) => {
                self.stats.symbols_needed += u64::from(job.shape().source_symbols());
                // Enough has come: say so before decoding, so that the sender stops.
                self.feedback_by(now);
                if job.is_trivial() {
                    self.on_decoded(now, id, symbols.block, job.run());
                } else {
                    self.stats.blocks_decoded += 1;
                    self.jobs.push_back(CodingJob::Decode {
                        channel: id,
                        block: symbols.block,
                        job,
                    });
                }
            }
        }
    }

    /// Whether a channel may begin another block although the connection is full: it is the message
    /// that ends next. Messages that are begun together could otherwise fill the connection, so
    /// that none of them ever ends.
    fn must_go_on(&self, id: ChannelId) -> bool {
        let kinds = self.recv.values().map(|channel| (channel.id, channel.kind()));
        let mut messages = kinds.filter_map(|(id, kind)| Some((id, kind?)));
        match self.recv.get(&id).and_then(RecvChannel::kind) {
            Some(LiveKind::Ordered { sequence }) => sequence == self.ordered_in.floor(),
            Some(LiveKind::Message) => {
                let first = messages.find(|(_, kind)| *kind == LiveKind::Message);
                self.unread.is_empty() && first.is_some_and(|(first, _)| first == id)
            }
            Some(LiveKind::Stream) | None => false,
        }
    }

    /// There was no room for the block that these symbols begin.
    fn on_full(&mut self, now: Time, symbols: &SymbolsFrame, full: Full) {
        let id = symbols.channel;
        let Some(channel) = self.recv.get(&id) else { return };
        let waits = channel.has_begun() && !matches!(channel.kind(), Some(LiveKind::Message));
        if full == Full::Refused && !waits {
            self.refuse(now, id, NO_ROOM);
            return;
        }
        if !channel.has_begun() && channel.kind().is_some() {
            self.recv.remove(&id);
        }
        self.stats.symbols_wasted += u64::from(symbols.count);
    }

    /// Gives up a channel of the peer, and tells the peer why.
    fn refuse(&mut self, now: Time, channel: ChannelId, code: u32) {
        let most = if code == NOT_ASKED_FOR { TOO_MANY_UNASKED } else { FAR_TOO_MANY };
        if self.control.len() >= most {
            self.close_for(now, CloseReason::Overrun, CODE_OVERRUN, OVERRUN);
            return;
        }
        let kind = self.recv.remove(&channel).map(|receiving| receiving.kind());
        self.stats.refused += 1;
        self.mark_clean(channel);
        self.early_symbols.retain(|(symbols, _)| symbols.channel != channel);
        self.jobs.retain(|job| job.channel() != channel);
        self.mark_over(channel);
        self.tell_abandoned(now, channel, code, kind.flatten());
        if matches!(kind, Some(None | Some(LiveKind::Stream))) {
            self.events.push_back(DfcpEvent::Abandoned { channel, code });
        }
        if let Some(Some(LiveKind::Ordered { sequence })) = kind {
            self.account_for(now, sequence..sequence.saturating_add(1));
        }
        self.answer_fin(now);
    }

    /// Refuses the objects that the application has not
    /// [asked for](DfcpConnection::expect_object), from now on and those that have begun.
    pub fn refuse_unasked(&mut self, now: Time) {
        self.refuses_unasked = true;
        let Self { recv, expected, .. } = self;
        let unasked = recv.values_mut().filter_map(|channel| {
            let asked = channel.asked.as_mut().filter(|asked| !asked.is)?;
            asked.is = expected.remove(&asked.label).is_some();
            (!asked.is).then_some(channel.id)
        });
        for channel in unasked.collect::<Vec<_>>() {
            self.refuse(now, channel, NOT_ASKED_FOR);
        }
    }

    /// The application has taken a message: it counts as held no longer. Only with
    /// [`holds_messages`](super::super::DfcpConfig::holds_messages).
    pub fn message_taken(&mut self) {
        if self.config.holds_messages {
            self.unread.pop_front();
        }
    }

    /// The code that the peer uses for messages and streams: the first of its list that this side
    /// knows.
    fn peer_code(&self) -> Code {
        let peer = self.peer.as_ref();
        peer.and_then(|peer| peer.codes().find(|code| self.config.params.decodes(*code)))
            .unwrap_or(self.code)
    }

    pub(super) fn on_decoded(&mut self, now: Time, id: ChannelId, block: u32, decoded: Decoded) {
        if !self.recv.contains_key(&id) {
            return;
        }
        if matches!(decoded, Decoded::Failed(_)) {
            self.stats.decode_failures += 1;
        }
        self.mark_dirty(id);
        self.feedback_by(now);
        let Some(channel) = self.recv.get_mut(&id) else { return };
        if let Some(data) = channel.decoded(block, decoded) {
            self.events.push_back(DfcpEvent::Block { channel: id, block, data });
            return;
        }
        match channel.kind() {
            Some(LiveKind::Stream) if channel.is_readable() => {
                self.events.push_back(DfcpEvent::Readable { channel: id });
            }
            Some(kind) => {
                let Some((data, charge)) = channel.take_message() else { return };
                self.close_if_complete(now, id);
                if let LiveKind::Ordered { sequence } = kind {
                    self.deliver_ordered(now, sequence, (id, data, charge));
                } else {
                    let early = self.unconfirmed;
                    self.events.push_back(DfcpEvent::Message { channel: id, data, early });
                    self.unread.push_back(charge);
                }
                self.answer_fin(now);
            }
            None => {}
        }
    }

    /// Delivers ordered messages as far as they follow each other.
    fn deliver_ordered(&mut self, now: Time, sequence: u32, message: Ordered) {
        let floor = self.ordered_in.floor();
        if self.ordered_in.contains(sequence) {
            self.stats.messages_late += 1;
        } else if sequence - floor <= MAX_AHEAD {
            self.ordered_waiting.push(now, sequence, message);
            self.account_for(now, sequence..sequence.saturating_add(1));
        }
    }

    /// Ordered messages at these places have come, or were given up: none waits for them any more.
    fn account_for(&mut self, now: Time, places: Range<u32>) {
        if places.start.saturating_sub(self.ordered_in.floor()) > MAX_AHEAD {
            return;
        }
        self.ordered_in.insert(places);
        self.release_ordered(now);
    }

    /// Delivers the ordered messages that wait for nothing, or have waited for long enough.
    pub(super) fn release_ordered(&mut self, now: Time) {
        while let Some((place, (channel, data, charge))) =
            self.ordered_waiting.pop(now, self.ordered_in.floor())
        {
            self.events.push_back(DfcpEvent::Message { channel, data, early: false });
            self.unread.push_back(charge);
            self.ordered_in.insert(0..place.saturating_add(1));
        }
    }
}
