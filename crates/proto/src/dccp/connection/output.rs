//! Packets that leave, and the times at which they do.

use fontis_base::Time;

use super::{DccpConnection, FIRST_REPEAT, MOST_REPEAT, MOST_REPEATS, State};
use crate::dccp::ccid::{CcidReceiver, CcidSender};
use crate::dccp::feature::Feature;
use crate::dccp::number::DccpSeq;
use crate::dccp::numbers::Numbers;
use crate::dccp::option::{self, DccpOption};
use crate::dccp::packet::{DccpBody, DccpData, DccpPacket, ResetCode};
use crate::rate::reorder::ReorderBuffer;

/// Round trips that a new Sequence Window holds: about five (RFC 4340 section 7.5.2) when the peer
/// has agreed to it, as the rate may have doubled until then.
const WINDOW_ROUND_TRIPS: u64 = 8;

/// Bytes that the other options of an acknowledgement of a client that is partly open may take.
const PART_OPEN_ROOM: u32 = 128;

impl DccpConnection {
    /// The next packet that leaves at `now`, if any.
    pub fn poll(&mut self, now: Time) -> Option<DccpPacket> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(self.packet(now, reply, DccpData::NONE));
        }
        match self.state {
            State::Closed => return None,
            State::TimeWait => {
                if self.repeat_at <= now {
                    self.end(State::Closed, Time::MAX);
                }
                return None;
            }
            State::Respond => {
                // The client has gone.
                if self.repeat_at <= now {
                    self.reset(ResetCode::Aborted, [0; 3]);
                }
                return None;
            }
            _ => {}
        }
        if let Some(sender) = &mut self.sender {
            if sender.timeout() <= now && !self.queue.is_empty() {
                self.packet_size.suspect();
            }
            sender.on_timeout(now);
        }
        if self.reorder.as_ref().is_some_and(|reorder| reorder.due() <= now) {
            self.release(now);
        }
        if self.repeat_at <= now {
            return self.repeat(now);
        }
        if self.state == State::Request {
            return None;
        }
        if !matches!(self.state, State::PartOpen | State::Open) {
            return None;
        }
        self.follow_window(now);
        if self.negotiate_at <= now {
            let is_pending = self.features.is_pending();
            self.negotiate_at = if is_pending { now + self.negotiate_after } else { Time::MAX };
            self.negotiate_after = (self.negotiate_after * 2).min(MOST_REPEAT);
            self.must_ack |= is_pending;
        }
        if let Some(packet) = self.poll_probe(now) {
            return Some(packet);
        }
        if let Some(packet) = self.poll_data(now) {
            return Some(packet);
        }
        if self.must_ack || self.receiver.as_ref().is_some_and(|receiver| receiver.due() <= now) {
            return Some(self.packet(now, self.ack(), DccpData::NONE));
        }
        if self.is_closing && self.queue.is_empty() && self.state == State::Open {
            let is_asking = self.is_server && self.config.server_asks_to_close;
            let next = if is_asking { State::CloseReq } else { State::Closing };
            self.begin_closing(now, next);
            return self.repeat(now);
        }
        None
    }

    /// When [`DccpConnection::poll`] has something next, and why.
    pub fn timeout(&self) -> Option<(Time, &'static str)> {
        if !self.replies.is_empty() {
            return Some((Time::ZERO, "reply"));
        }
        let is_open = matches!(self.state, State::PartOpen | State::Open);
        let has_data = is_open && !self.queue.is_empty();
        let sender = self.sender.as_ref();
        let receiver = self.receiver.as_ref().filter(|_| is_open);
        let closes = self.is_closing && self.queue.is_empty() && self.state == State::Open;
        let times = [
            (self.repeat_at, "repeat"),
            (if is_open { self.negotiate_at } else { Time::MAX }, "negotiation"),
            (sender.map_or(Time::MAX, CcidSender::timeout), "no feedback"),
            (sender.filter(|_| has_data).map_or(Time::MAX, CcidSender::ready_at), "pacing"),
            (receiver.map_or(Time::MAX, CcidReceiver::due), "feedback"),
            (self.reorder.as_ref().map_or(Time::MAX, ReorderBuffer::due), "reordering"),
            (self.probe_due(), "path MTU"),
            (if is_open && self.must_ack || closes { Time::ZERO } else { Time::MAX }, "answer"),
        ];
        times.into_iter().min_by_key(|(at, _)| *at).filter(|(at, _)| *at < Time::MAX)
    }

    /// When the path is to be tried with a large packet.
    fn probe_due(&self) -> Time {
        match self.state {
            State::Open => self.packet_size.due(),
            _ => Time::MAX,
        }
    }

    /// A Sync that is as long as the packet that the path is tried with (RFC 4340 section 14.1).
    /// Its answer shows that it has arrived.
    fn poll_probe(&mut self, now: Time) -> Option<DccpPacket> {
        if self.probe_due() > now {
            return None;
        }
        let before = self.packet_size.size();
        let size = self.packet_size.probe(now)?;
        if self.packet_size.size() < before
            && let Some(most) = self.most_data()
        {
            // What waits and is too long would have to be cut on its way.
            self.queue.keep_up_to(most);
        }
        let body = DccpBody::Sync { ack: self.numbers.gsr };
        let mut packet = self.packet(now, body, DccpData::NONE);
        let header = self.config.headers_below + packet.header_len() as u32;
        let padding = size.saturating_sub(header) as usize;
        packet.data = DccpData::Bytes(vec![0; padding].into());
        self.packet_size.sent(now, packet.seq, size, self.path().rtt);
        Some(packet)
    }

    /// Whether the data of the next packet leave room for an acknowledgement with all its options.
    fn has_room_for(&self, options: &[DccpOption], data: u32) -> bool {
        let Some(size) = self.packet_size.size() else { return true };
        let header = 24 + option::encoded_len(options) as u32;
        self.config.headers_below + header + data <= size
    }

    /// Data, if congestion control lets it leave.
    fn poll_data(&mut self, now: Time) -> Option<DccpPacket> {
        let len = self.queue.front_len()?;
        if self.state == State::PartOpen {
            // Acknowledgements of this state may leave data no room: these wait until it is over.
            let cookies: Vec<_> =
                self.cookies.iter().cloned().map(DccpOption::InitCookie).collect();
            if !self.has_room_for(&cookies, len + PART_OPEN_ROOM) {
                return None;
            }
        }
        let sender = self.sender.as_mut()?;
        // A packet more than this above the last one that arrived is not valid (section 7.5.1).
        sender.bound(self.features.local(Feature::SequenceWindow) / 4 * 3);
        if sender.ready_at() > now {
            sender.on_limited(now);
            return None;
        }
        let is_ack_due = self.receiver.as_ref().is_some_and(|receiver| receiver.due() <= now);
        // A client that is partly open acknowledges with every packet (section 8.1.5).
        let acknowledges =
            is_ack_due || self.must_ack || self.state == State::PartOpen || sender.wants_ack();
        let data = self.queue.pop()?;
        self.stats.data_sent += 1;
        let body = match acknowledges {
            true => DccpBody::DataAck { ack: self.numbers.gsr },
            false => DccpBody::Data,
        };
        Some(self.packet(now, body, data))
    }

    const fn ack(&self) -> DccpBody {
        DccpBody::Ack { ack: self.numbers.gsr }
    }

    /// Sends the handshake or the close again, or gives up.
    fn repeat(&mut self, now: Time) -> Option<DccpPacket> {
        let ack = self.numbers.gsr;
        let body = match self.state {
            State::Request => DccpBody::Request { service: self.config.service },
            State::PartOpen => self.ack(),
            State::CloseReq => DccpBody::CloseReq { ack },
            State::Closing => DccpBody::Close { ack },
            _ => {
                self.repeat_at = Time::MAX;
                return None;
            }
        };
        if self.repeats >= MOST_REPEATS {
            self.reset(ResetCode::Aborted, [0; 3]);
            return self.poll(now);
        }
        self.repeats += 1;
        self.repeat_at = now + self.repeat_after;
        self.repeat_after = (self.repeat_after * 2).min(MOST_REPEAT);
        Some(self.packet(now, body, DccpData::NONE))
    }

    pub(super) fn begin_closing(&mut self, now: Time, state: State) {
        self.state = state;
        let rtt = self.path().rtt.unwrap_or(FIRST_REPEAT);
        (self.repeats, self.repeat_after) = (0, (rtt * 2).max(super::PART_OPEN_REPEAT));
        self.repeat_at = now;
        self.must_ack = false;
    }

    fn packet(&mut self, now: Time, mut body: DccpBody, mut data: DccpData) -> DccpPacket {
        let seq = match body {
            // The peer has not acknowledged anything yet, or expects the number after its own.
            DccpBody::Reset { .. } if self.state == State::TimeWait => self.numbers.gss.next(),
            _ => self.numbers.advance(),
        };
        let mut options = Vec::new();
        if body != DccpBody::Data {
            self.append_steps(seq, body, &mut options);
        }
        if self.state == State::PartOpen {
            options.extend(self.cookies.iter().cloned().map(DccpOption::InitCookie));
        }
        if let DccpBody::Ack { .. } | DccpBody::DataAck { .. } = body {
            self.must_ack = false;
            if core::mem::take(&mut self.is_slow) {
                options.push(DccpOption::SlowReceiver);
            }
            if let Some(sender) = &mut self.sender {
                sender.on_acknowledging();
            }
            if let Some(receiver) = &mut self.receiver {
                receiver.acknowledge(now, seq, &mut options);
            }
        }
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if let DccpBody::DataAck { ack } = body
            && !self.has_room_for(&options, len)
        {
            // The acknowledgement leaves alone, and the data after it.
            self.queue.put_back(core::mem::replace(&mut data, DccpData::NONE));
            self.stats.data_sent -= 1;
            body = DccpBody::Ack { ack };
        }
        self.count_without_data(body, &mut options);
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let is_data = body.carries_data();
        let ccval = match &mut self.sender {
            Some(sender) => sender.on_sent(now, seq, is_data.then_some(len), &mut options),
            None => 0,
        };
        if let DccpBody::Response { .. } = body {
            self.response = Some(seq);
        }
        self.stats.sent += 1;
        let allows_short = self.features.local(Feature::AllowShortNumbers) == 1;
        let packet = DccpPacket {
            source: self.config.port,
            destination: self.peer_port,
            ccval,
            coverage: 0,
            is_short: allows_short && body.may_be_short() && self.state == State::Open,
            seq,
            body,
            options,
            data,
        };
        if len > 0 {
            let header = self.config.headers_below + packet.header_len() as u32;
            self.packet_size.used(header + len);
        }
        packet
    }

    /// Sends proposals again in a while, if any waits for its answer.
    pub(super) fn negotiate(&mut self, now: Time) {
        let rtt = self.sender.as_ref().and_then(CcidSender::rtt);
        self.negotiate_after = rtt.unwrap_or(FIRST_REPEAT).max(FIRST_REPEAT);
        let is_pending = self.features.is_pending();
        self.negotiate_at = if is_pending { now + self.negotiate_after } else { Time::MAX };
    }

    /// Widens the Sequence Window before a round trip holds more packets than it does (RFC 4340
    /// section 7.5.2): after a burst of losses the peer would take the next ones for forged.
    fn follow_window(&mut self, now: Time) {
        let Numbers { gss, gar, .. } = self.numbers;
        let packets = match self.sender.as_ref().and_then(CcidSender::rtt) {
            Some(rtt) => {
                let (begin, before) = *self.lap.get_or_insert((now, gss));
                if now.since(begin) < rtt {
                    return;
                }
                self.lap = Some((now, gss));
                gss.offset_from(before)
            }
            // Its own acknowledgements are acknowledged once in a round trip or so.
            None if self.receiver.as_ref().is_some_and(CcidReceiver::is_window) => {
                gss.offset_from(gar)
            }
            None => return,
        };
        let packets = packets.max(0).unsigned_abs();
        if 4 * packets > self.features.local(Feature::SequenceWindow)
            && self.features.widen(WINDOW_ROUND_TRIPS * packets)
        {
            self.must_ack = true;
            self.negotiate(now);
        }
    }

    /// Tells how many packets without data precede this one, if the peer asked for that (RFC 4340
    /// section 7.7).
    fn count_without_data(&mut self, body: DccpBody, options: &mut Vec<DccpOption>) {
        if self.without_data > 0 && self.features.local(Feature::SendNdpCount) == 1 {
            options.push(DccpOption::NdpCount(self.without_data));
        }
        let is_data = matches!(
            body,
            DccpBody::Request { .. }
                | DccpBody::Response { .. }
                | DccpBody::Data
                | DccpBody::DataAck { .. }
        );
        self.without_data = if is_data { 0 } else { self.without_data + 1 };
    }

    /// Appends the steps of negotiation where they have a place. A Reset ends all of that.
    fn append_steps(&mut self, seq: DccpSeq, body: DccpBody, options: &mut Vec<DccpOption>) {
        let has_place = !matches!(
            body,
            DccpBody::Reset { .. } | DccpBody::Close { .. } | DccpBody::CloseReq { .. }
        );
        if has_place {
            self.features.append(seq, options);
        }
    }
}
