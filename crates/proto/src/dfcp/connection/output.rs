use core::ops::Range;

use bytes::Bytes;
use fontis_base::{Ecn, Rate, Time};
use smallvec::smallvec;

use super::super::carrier::{Carrier, Pass};
use super::super::config::Redundancy;
use super::super::history::{Late, Sent};
use super::super::packet::{DfcpPacket, Frame, Frames, Live, LiveKind, SymbolsFrame};
use super::super::params::SYN_SIZE;
use super::super::path::{Path, PathState};
use super::super::sending::{SendChannel, symbols_in};
use super::super::trace::{TraceEvent, Traced};
use super::super::wire;
use super::{DfcpConnection, HINT_SIZES, Outgoing, State, early_limit};
use crate::dfcp::connection::channels::SendOptions;
use crate::rate::feedback::feedback_interval;
use crate::rate::kind::RateKind;

/// Bytes of the shortest status of a channel: with less room none need be made.
const LEAST_STATUS: usize = 5;
/// Statuses that are made although they do not fit, for one packet.
const MOST_LATE: usize = 4;
/// Bytes that a packet of symbols must have left for feedback to go along.
const ROOM_TO_RIDE: usize = 256;
/// Rates at which it is rather processors than the path that limit what is sent. The largest of all
/// says that none is known.
const FAST: Range<Rate> = Rate::from_mbps(2000)..Rate::MAX;

impl DfcpConnection {
    /// The next packet to send. Call it until it gives none after every other call, and when
    /// [`timeout`](Self::timeout) has come.
    pub fn poll(&mut self, now: Time) -> Option<Outgoing> {
        self.latest = self.latest.max(now);
        self.streams = false;
        self.on_timeout(now);
        self.look_at_paths(now);
        match self.state {
            State::Closed => None,
            State::Draining => {
                let answer = core::mem::take(&mut self.fin.answered);
                let main = self.paths.main(now);
                answer
                    .then(|| self.seal(now, main, smallvec![Frame::FinAck], Meta::UNCOUNTED))
                    .flatten()
            }
            State::Closing => {
                // A connection that is refused is one all the same: without the SYNACK the reason
                // could not be read.
                let answer = if self.unconfirmed { self.poll_handshake(now) } else { None };
                answer.or_else(|| self.poll_control(now))
            }
            State::Handshake => self.poll_handshake(now).or_else(|| self.poll_hint_train(now)),
            State::Established => {
                if self.unconfirmed
                    && let Some(packet) =
                        self.poll_handshake(now).or_else(|| self.poll_hint_train(now))
                {
                    return Some(packet);
                }
                self.collect_wants();
                self.advance_fin(now);
                if let packet @ Some(_) = self.poll_each(now, Self::poll_address) {
                    return packet;
                }
                if let packet @ Some(_) = self.poll_each(now, Self::poll_feedback) {
                    return packet;
                }
                if let packet @ Some(_) = self.poll_control(now) {
                    return packet;
                }
                if let packet @ Some(_) = self.poll_each(now, Self::poll_ping) {
                    return packet;
                }
                if let packet @ Some(_) = self.poll_symbols(now) {
                    return packet;
                }
                let packet = self.poll_each(now, Self::poll_mtu);
                if packet.is_none() {
                    // Choosing symbols may have found that repair symbols are wanted.
                    self.collect_wants();
                }
                packet
            }
        }
    }

    /// The batch form of [`poll`](Self::poll): the next packet of a burst that began with a call of
    /// it at the same time. It does not look again for frames that are more urgent than symbols,
    /// which are most packets of a fast path; frames that have become urgent since then wait for
    /// one packet.
    pub fn poll_again(&mut self, now: Time) -> Option<Outgoing> {
        if core::mem::take(&mut self.streams)
            && let packet @ Some(_) = self.poll_symbols(now)
        {
            return packet;
        }
        self.poll(now)
    }

    /// The first packet that a path has to send.
    fn poll_each(
        &mut self,
        now: Time,
        poll: fn(&mut Self, Time, usize) -> Option<Outgoing>,
    ) -> Option<Outgoing> {
        (0..self.paths.len()).find_map(|path| poll(self, now, path))
    }

    /// Puts a message into the SYN as the only block of channel 0, if it fits into one symbol.
    pub(super) fn queue_early(&mut self, message: Bytes) {
        let len = message.len() as u32;
        let id = self.send_message(message.clone(), SendOptions::default());
        if message.len() > early_limit(&self.config.params) {
            return;
        }
        let live = Live { kind: LiveKind::Message, block_len: len, fin: true };
        self.hello.frames.push(Frame::Symbols(SymbolsFrame {
            channel: id,
            block: 0,
            esi: 0,
            count: 1,
            live: Some(live),
            whole: false,
            long: false,
            len: len as u16,
            data: if self.code.carries_bytes() { message } else { Bytes::new() },
        }));
    }

    fn poll_handshake(&mut self, now: Time) -> Option<Outgoing> {
        if self.handshake.due() > now || (self.handshake.is_exhausted() && !self.initiator) {
            return None;
        }
        let (packet, size) = if self.initiator {
            let packet = DfcpPacket::Syn {
                version: self.version,
                source: self.local,
                hello: self.hello.clone(),
            };
            (packet, SYN_SIZE + self.config.overhead)
        } else {
            let hello = self.hello.clone();
            let len = (wire::SYNACK_OVERHEAD + wire::hello_len(&hello)) as u32;
            let size = len + self.config.overhead;
            if !self.within_amplification_limit(size) {
                self.handshake.sent(now);
                return None;
            }
            let packet =
                DfcpPacket::SynAck { destination: self.remote?, source: self.local, hello };
            (packet, size)
        };
        self.handshake.sent(now);
        if let DfcpPacket::Syn { hello, .. } | DfcpPacket::SynAck { hello, .. } = &packet {
            self.count(now, 0, None, size, &hello.frames);
        }
        Some(Outgoing { packet, size, path: 0, alone: true, probe: false, ecn: Ecn::NotEct })
    }

    /// A few padded packets right behind the SYNACK: their dispersion tells how fast the bottleneck
    /// is before the first byte of data leaves.
    fn poll_hint_train(&mut self, now: Time) -> Option<Outgoing> {
        if self.hint_train == 0 || !matches!(self.config.rate, RateKind::Auto) {
            return None;
        }
        let left = u32::from(self.hint_train) - 1;
        // Receive offload would hide the spacing of equal packets, and of one that a shorter one
        // follows.
        let (size, mtu_probe) = match self.paths[0].mtu.first_probe() {
            Some(size) if left == 0 => (size, true),
            Some(_) => (HINT_SIZES.1 - left, false),
            None => (HINT_SIZES.0 - left, false),
        };
        if !self.within_amplification_limit(size) {
            self.hint_train = 0;
            return None;
        }
        self.hint_train -= 1;
        let padding = self.padding_to(0, size)?;
        let number = self.paths[0].history.next_number();
        self.paths[0].trains.mark(number);
        let meta = Meta { alone: true, mtu_probe, ..Meta::UNCOUNTED };
        self.seal(now, 0, smallvec![Frame::Padding(padding)], meta)
    }

    /// The padding that makes a packet of `size` bytes at the IP layer, if it holds nothing else.
    fn padding_to(&self, path: usize, size: u32) -> Option<u16> {
        let overhead = PADDING_HEADER + wire::SEALED_OVERHEAD as u32 + self.paths[path].overhead;
        u16::try_from(size.checked_sub(overhead)?).ok()
    }

    /// Whether questions and answers may be sent on a path. Nobody has proved to be at the other
    /// end of one that a peer has just opened: it gets at most three times what came.
    pub(super) fn may_ask(&self, path: usize) -> bool {
        let Path { state, bytes, overhead, .. } = &self.paths[path];
        let size = u64::from(QUESTION_SIZE + *overhead);
        match state {
            PathState::Usable => true,
            PathState::Opening => self.initiator || bytes[0] + size <= 3 * bytes[1],
            PathState::Closed => false,
        }
    }

    /// Questions and answers about the peer's address.
    fn poll_address(&mut self, now: Time, path: usize) -> Option<Outgoing> {
        if !self.may_ask(path) {
            return None;
        }
        let Path { question, state, spare, .. } = &mut self.paths[path];
        if let Some(token) = question.answer() {
            return self.seal(now, path, smallvec![Frame::Response(token)], Meta::UNCOUNTED);
        }
        let token = question.challenge(now, *state == PathState::Opening)?;
        let mut frames: Frames = smallvec![Frame::Challenge(token)];
        if *spare && self.initiator {
            frames.push(Frame::Spare);
        }
        let outgoing = self.seal(now, path, frames, Meta::UNCOUNTED)?;
        Some(Outgoing { probe: true, alone: true, ..outgoing })
    }

    fn within_amplification_limit(&self, size: u32) -> bool {
        self.validated
            || self.sent_before_validation + u64::from(size) <= 3 * self.received_before_validation
    }

    fn poll_feedback(&mut self, now: Time, at: usize) -> Option<Outgoing> {
        let path = &self.paths[at];
        if path.feedback.at.is_none_or(|due| due > now) || path.state != PathState::Usable {
            return None;
        }
        let (mut frames, mut meta) = (Frames::new(), Meta::UNCOUNTED);
        self.tell(now, at, self.room(at), &mut frames, &mut meta);
        if frames.is_empty() {
            return None;
        }
        self.seal(now, at, frames, meta)
    }

    /// What a path's feedback tells, in at most `room` bytes.
    fn tell(&mut self, now: Time, at: usize, room: usize, frames: &mut Frames, meta: &mut Meta) {
        let path = &mut self.paths[at];
        path.feedback.at = None;
        if let Some(mut feedback) = path.receipts.feedback(now, path.id, path.rtt.smoothed()) {
            let room = room.min(path.feedback.most());
            feedback.shorten(|feedback| wire::feedback_len(feedback) <= room);
            path.feedback.spend(wire::feedback_len(&feedback));
            frames.push(Frame::Feedback(Box::new(feedback)));
        }
        let mut room = room.saturating_sub(wire::frames_len(frames) + 8);
        // A peer may have made thousands wait: hardly more are looked at than are told now.
        let mut late = Vec::new();
        while room >= LEAST_STATUS
            && frames.len() <= wire::MAX_FRAMES / 2
            && late.len() < MOST_LATE
            && let Some(channel) = self.paths[at].feedback.dirty.pop_first()
        {
            let Some(receiving) = self.recv.get_mut(&channel) else { continue };
            let frame = Frame::Blocks(Box::new(receiving.status()));
            let len = wire::frame_len(&frame);
            if len > room {
                late.push(channel);
                continue;
            }
            room -= len;
            frames.push(frame);
        }
        let path = &mut self.paths[at];
        path.feedback.dirty.extend(late);
        if !path.feedback.dirty.is_empty() {
            let interval = feedback_interval(path.rtt.smoothed());
            path.feedback.at = Some(path.feedback.at_once(now, interval));
        }
        if path.feedback.sent() || !path.rtt.is_known() {
            frames.push(Frame::Ping);
            meta.counted = true;
            room = room.saturating_sub(1);
        }
        self.take_along(now, at, room, frames, meta);
    }

    /// Frames about messages that leave with what a path carries anyway, in at most `room` bytes.
    fn take_along(
        &mut self,
        now: Time,
        at: usize,
        mut room: usize,
        frames: &mut Frames,
        meta: &mut Meta,
    ) {
        if at != self.paths.main(now) {
            return;
        }
        let patience = self.paths[at].rtt.timeout();
        while frames.len() < wire::MAX_FRAMES - 1
            && let Some((id, frame)) = self.control.ride(now, patience, room)
        {
            room = room.saturating_sub(wire::frame_len(&frame));
            frames.push(frame);
            meta.control.push(id);
            meta.counted = true;
        }
    }

    /// When feedback leaves that frames about messages may wait for.
    pub(super) fn next_feedback(&self, now: Time) -> Option<Time> {
        let main = &self.paths[self.paths.main(now)];
        let waits = self.state == State::Established && main.state == PathState::Usable;
        main.feedback.at.filter(|_| waits)
    }

    fn poll_control(&mut self, now: Time) -> Option<Outgoing> {
        let mut frames = Frames::new();
        let mut meta = Meta { counted: true, ..Meta::UNCOUNTED };
        let at = self.paths.main(now);
        let (mut room, patience) = (self.room(at), self.paths[at].rtt.timeout());
        let gathering = self.control.gathering(self.next_feedback(now));
        while frames.len() < wire::MAX_FRAMES
            && let Some((id, frame)) = self.control.take(now, patience, room, gathering)
        {
            room = room.saturating_sub(wire::frame_len(&frame));
            frames.push(frame);
            meta.control.push(id);
        }
        if frames.is_empty() {
            return None;
        }
        self.seal(now, at, frames, meta)
    }

    fn poll_ping(&mut self, now: Time, at: usize) -> Option<Outgoing> {
        let path = &mut self.paths[at];
        if path.pings == 0 || path.state != PathState::Usable {
            return None;
        }
        path.pings -= 1;
        self.seal(now, at, smallvec![Frame::Ping], Meta { counted: true, ..Meta::UNCOUNTED })
    }

    fn poll_symbols(&mut self, now: Time) -> Option<Outgoing> {
        if self.paths.len() == 1 {
            return self.poll_symbols_on(now, 0);
        }
        self.paths.by_delay().into_iter().find_map(|path| self.poll_symbols_on(now, path))
    }

    fn poll_symbols_on(&mut self, now: Time, at: usize) -> Option<Outgoing> {
        let size = self.data_packet_size(at);
        let Some(alone) = self.paths[at].may_send(now, size) else {
            // Held back by pacing is as fast as the path goes; held back by the allowance is not.
            self.paths[at].starved = !self.has_symbols(at);
            return None;
        };
        let Some((mut symbols, k, pass)) = self.next_symbols(at) else {
            self.paths[at].found_nothing(now, !self.send.is_empty());
            return None;
        };
        // A block that begins leaves room for another to be prepared.
        self.streams = symbols.esi > 0 && !self.unconfirmed;
        // With a header of eight bytes the frame is whole blocks of the cipher: two or three bytes
        // more cost a fast path less than a last block that is not full.
        symbols.long = FAST.contains(&self.paths[at].rate())
            && (symbols.live, symbols.count, symbols.len % 16) == (None, 1, 8);
        self.stats.data_packets_sent += 1;
        self.stats.symbols_sent += u64::from(symbols.count);
        let repair = (symbols.esi + u32::from(symbols.count)).saturating_sub(k.max(symbols.esi));
        self.stats.repair_symbols_sent += u64::from(repair);
        if symbols.esi == 0 {
            self.stats.symbols_needed += u64::from(k);
        }
        let mut meta = Meta {
            counted: true,
            alone,
            data: true,
            idle: pass == Pass::Probe,
            symbols: Some((symbols.channel, symbols.block, symbols.count)),
            ..Meta::UNCOUNTED
        };
        let symbols = Frame::Symbols(symbols);
        let mut frames = Frames::new();
        // Feedback and frames about messages that wait for their time go along with a short one.
        let has_feedback = self.paths[at].feedback.at.is_some();
        if !alone && (has_feedback || !self.control.is_empty()) {
            let ride = if has_feedback { Self::tell } else { Self::take_along };
            let room = self.room(at).saturating_sub(wire::frame_len(&symbols));
            (room >= ROOM_TO_RIDE).then(|| ride(self, now, at, room, &mut frames, &mut meta));
        }
        frames.push(symbols);
        self.seal(now, at, frames, meta)
    }

    fn poll_mtu(&mut self, now: Time, at: usize) -> Option<Outgoing> {
        // Only a transfer that lasts is worth probing for, and only after its first round trips.
        let path = &mut self.paths[at];
        if path.history.unresolved() == 0 || path.state != PathState::Usable {
            return None;
        }
        let size = path.mtu.probe(now, self.stats.data_packets_sent)?;
        let padding = self.padding_to(at, size - 1)?;
        let meta = Meta { counted: true, mtu_probe: true, alone: true, ..Meta::UNCOUNTED };
        self.seal(now, at, smallvec![Frame::Ping, Frame::Padding(padding)], meta)
    }

    /// What the next symbols on a path go by.
    fn carrier(&self, path: usize) -> Carrier {
        let (room, answering) = (self.symbol_room(path), self.answering);
        Carrier { path, room, answering, early: self.paths.as_early_as(path, answering) }
    }

    /// Whether a path takes part: it answers, does not rest, and what it brings comes before the
    /// others have delivered all that there is.
    fn takes_part(&self, path: usize) -> bool {
        if self.paths.len() == 1 {
            return true;
        }
        if !self.answering.contains(path) || self.paths.rests(path, self.latest) {
            return false;
        }
        let mut left = (!self.send.has_waiting()).then_some(0);
        for channel in self.send.values() {
            left = left.zip(channel.bytes_left(self.answering)).map(|(sum, bytes)| sum + bytes);
        }
        left.is_none_or(|left| !self.paths.deliver_before(path, self.answering, left))
    }

    /// The next symbols of whichever channel is to be served, the most urgent, equals in turn; and
    /// how many source symbols their block has.
    fn next_symbols(&mut self, at: usize) -> Option<(SymbolsFrame, u32, Pass)> {
        let carrier = self.carrier(at);
        let mut passes = [Some(Pass::Mean), Some(Pass::Tail), None];
        if self.config.redundancy == Redundancy::UntilAcknowledged {
            passes[2] = Some(Pass::Endless);
        }
        if !self.takes_part(at) {
            passes = [None; 3];
        }
        for pass in passes.into_iter().flatten() {
            if let Some((symbols, k)) = self.next_symbols_in(pass, carrier) {
                self.last_served = symbols.channel;
                return Some((symbols, k, pass));
            }
        }
        if core::mem::take(&mut self.paths[at].probe_symbols) {
            // Something is missing and nobody says what: a symbol of the oldest block is more use
            // than a ping.
            let mut channels = self.send.values_mut();
            let symbols = channels.find_map(|channel| channel.next_symbols(Pass::Probe, carrier));
            return symbols.map(|(symbols, k)| (symbols, k, Pass::Probe));
        }
        None
    }

    fn next_symbols_in(&mut self, pass: Pass, carrier: Carrier) -> Option<(SymbolsFrame, u32)> {
        let last = self.last_served;
        let key = |channel: &SendChannel| (channel.priority, channel.id <= last, channel.id);
        let lacking = |channel: &&SendChannel| channel.may_lack(pass, carrier);
        // The first can give some nearly always, and there may be thousands.
        let (.., first) = self.send.values().filter(lacking).map(key).min()?;
        if let symbols @ Some(_) = self.send.get_mut(first)?.next_symbols(pass, carrier) {
            return symbols;
        }
        let mut order: Vec<_> = self.send.values().filter(lacking).map(key).collect();
        order.sort_unstable();
        let mut others = order.into_iter().map(|(.., id)| id).filter(|id| *id != first);
        others.find_map(|id| self.send.get_mut(id)?.next_symbols(pass, carrier))
    }

    /// Whether a symbol could be sent on a path as soon as pacing allows it.
    pub(super) fn has_symbols(&self, path: usize) -> bool {
        let endless = self.config.redundancy == Redundancy::UntilAcknowledged;
        let carrier = self.carrier(path);
        let mut channels = self.send.values();
        channels.any(|channel| channel.has_symbols(endless, carrier)) && self.takes_part(path)
    }

    /// Bytes of frames that fit into a packet of a path.
    fn room(&self, path: usize) -> usize {
        let path = &self.paths[path];
        (path.mtu.size() - path.overhead) as usize - wire::SEALED_OVERHEAD
    }

    /// Bytes of symbols that fit into a packet of a path.
    fn symbol_room(&self, path: usize) -> usize {
        self.room(path).saturating_sub(SYMBOL_HEADER)
    }

    /// The same of the path with the smallest packets.
    pub(super) fn least_symbol_room(&self) -> usize {
        if self.paths.len() == 1 {
            return self.symbol_room(0);
        }
        let rooms = self.paths.usable().map(|(path, _)| self.symbol_room(path));
        rooms.min().unwrap_or_else(|| self.symbol_room(0))
    }

    /// The bytes of a data packet on a path, at the IP layer.
    pub(super) fn data_packet_size(&self, path: usize) -> u32 {
        let room = self.symbol_room(path);
        let symbol = usize::from(self.wide_symbol().unwrap_or(self.config.params.symbol_size()));
        let frames = symbols_in(room, symbol) * symbol + SYMBOL_HEADER;
        (frames + wire::SEALED_OVERHEAD) as u32 + self.paths[path].overhead
    }

    /// The symbol that fills the packets that every path carries, if that is worth it.
    pub(super) fn wide_symbol(&self) -> Option<u16> {
        let room = self.least_symbol_room();
        let base = usize::from(self.config.params.symbol_size());
        let count = symbols_in(room, base);
        let wide = if count == 1 { room } else { room / count } & !7;
        (wide >= base + base / 16).then(|| u16::try_from(wide).ok()).flatten()
    }

    fn advance_fin(&mut self, now: Time) {
        if self.fin.wanted && !self.fin.sent && self.send.is_empty() {
            self.fin.sent = true;
            self.control.push(now, Frame::Fin);
        }
        self.answer_fin(now);
    }

    fn seal(&mut self, now: Time, at: usize, frames: Frames, meta: Meta) -> Option<Outgoing> {
        let path = &mut self.paths[at];
        let len = wire::SEALED_OVERHEAD + wire::frames_len(&frames);
        let size = len as u32 + path.overhead;
        let mut sent = Sent::new(now, u16::try_from(size).unwrap_or(u16::MAX));
        sent.symbols = meta.symbols;
        sent.control = meta.control;
        sent.counted = meta.counted;
        sent.mtu_probe = meta.mtu_probe;
        sent.late = match (meta.counted, meta.idle) {
            (false, _) => None,
            (true, true) => Some(Late::Starved),
            (true, false) => path.lateness(now, meta.data),
        };
        let number = path.sent(now, sent);
        if meta.data {
            path.data_sent(now, number, size, meta.alone);
        }
        let path = path.id;
        self.count(now, at, Some(number), size, &frames);
        let packet = DfcpPacket::Sealed { destination: self.remote?, path, number, frames };
        let ecn = if meta.data
            && matches!(self.config.rate, RateKind::Auto | RateKind::Friendly | RateKind::Fld)
        {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        };
        Some(Outgoing { packet, size, path, alone: meta.alone, probe: false, ecn })
    }

    fn count(&mut self, now: Time, at: usize, number: Option<u64>, size: u32, frames: &[Frame]) {
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += u64::from(size);
        self.paths[at].bytes[0] += u64::from(size);
        if !self.validated {
            self.sent_before_validation += u64::from(size);
        }
        if self.config.trace {
            let frames = frames.iter().map(Frame::traced).collect();
            let (path, what) = (self.paths[at].id, Traced::Sent { number, size, frames });
            self.trace.push_back(TraceEvent { time: now, path, what });
        }
    }
}

/// Bytes of a challenge or a response in a datagram.
const QUESTION_SIZE: u32 = 1 + 8 + wire::SEALED_OVERHEAD as u32;
/// Bytes of a padding frame before its zeros.
const PADDING_HEADER: u32 = 3;
/// Bytes of a symbols frame before its symbols, at most (two-byte channel, four-byte block and
/// identifier).
const SYMBOL_HEADER: usize = 11;

/// What the history remembers of a packet.
struct Meta {
    counted: bool,
    data: bool,
    /// Sent because there was nothing else to send.
    idle: bool,
    alone: bool,
    mtu_probe: bool,
    symbols: Option<super::super::history::SentSymbols>,
    control: smallvec::SmallVec<[super::super::control::ControlId; 1]>,
}

impl Meta {
    const UNCOUNTED: Self = Self {
        counted: false,
        data: false,
        idle: false,
        alone: false,
        mtu_probe: false,
        symbols: None,
        control: smallvec::SmallVec::new_const(),
    };
}
