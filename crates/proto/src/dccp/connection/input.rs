//! Packets that arrive (RFC 4340 section 8.5).

use fontis_base::{Duration, Rate, Time};

use super::{Arrived, DccpConnection, DccpEvent, MOST_RECEIVED, PART_OPEN_REPEAT, State};
use crate::dccp::ccid::{CcidReceiver, Incoming};
use crate::dccp::feature::Feature;
use crate::dccp::number::DccpSeq;
use crate::dccp::numbers::Validity;
use crate::dccp::option::DccpOption;
use crate::dccp::packet::{DccpBody, DccpPacket, ResetCode};

/// Between two Syncs that answer invalid packets (RFC 4340 section 7.5.4 asks for a limit).
const SYNC_INTERVAL: Duration = Duration::from_millis(125);
/// Init Cookies that a header holds with all else.
const MOST_COOKIES: usize = 3;
/// Replies that may wait.
const MOST_REPLIES: usize = 8;

impl DccpConnection {
    /// Takes a packet that has arrived; `is_marked` says that it carries a congestion mark.
    pub fn handle(&mut self, now: Time, packet: &DccpPacket, is_marked: bool) {
        if packet.is_short {
            if self.features.remote(Feature::AllowShortNumbers) == 0 {
                return;
            }
            let mut long = packet.clone();
            long.extend(self.numbers.gsr, self.numbers.gss);
            return self.handle_long(now, &long, is_marked);
        }
        self.handle_long(now, packet, is_marked);
    }

    fn handle_long(&mut self, now: Time, packet: &DccpPacket, is_marked: bool) {
        match self.state {
            State::Closed | State::TimeWait => return self.refuse(packet),
            State::Request => return self.handle_answer(now, packet),
            _ => {}
        }
        let ours = self.features.local(Feature::SequenceWindow);
        let theirs = self.features.remote(Feature::SequenceWindow);
        match self.numbers.admit(packet, ours, theirs) {
            Validity::Valid => {}
            Validity::Drop => {
                self.stats.invalid += 1;
                return;
            }
            Validity::Sync(seq) => {
                self.stats.invalid += 1;
                return self.sync(now, seq);
            }
        }
        self.stats.received += 1;
        if self.is_unexpected(packet.body) {
            return self.sync(now, packet.seq);
        }
        if let DccpBody::Reset { code, .. } = packet.body {
            return self.handle_reset(now, code);
        }
        // Data carries no negotiation.
        if packet.body != DccpBody::Data
            && let Err((code, details)) =
                self.features.read(packet.seq, packet.ack(), &packet.options)
        {
            return self.reset(code, details);
        }
        self.must_ack |= self.features.has_answers();
        let answer = match packet.body {
            DccpBody::SyncAck { ack } => Some(ack),
            _ => None,
        };
        self.packet_size.heard(now, answer);
        match packet.body {
            DccpBody::Request { .. } => {
                // The Response was lost.
                self.reply(DccpBody::Response { ack: packet.seq, service: self.config.service });
                return;
            }
            DccpBody::Response { .. } => {
                // The acknowledgement of the first one was lost. That of this one has its cookies.
                self.keep_cookies(packet);
                self.must_ack = true;
                return;
            }
            DccpBody::CloseReq { .. } => return self.handle_close_request(now),
            DccpBody::Close { .. } => return self.reset(ResetCode::Closed, [0; 3]),
            DccpBody::Sync { .. } => self.reply(DccpBody::SyncAck { ack: packet.seq }),
            _ => {}
        }
        // A client that has seen no more than a Response waits for another packet to open.
        if let (DccpBody::Ack { ack }, Some(response)) = (packet.body, self.response) {
            self.must_ack |= !ack.is_after(response);
        }
        self.open(now, packet.body);
        self.exchange(now, packet, is_marked);
    }

    /// Whether a packet's type has no place in the state (section 8.5, step 7).
    fn is_unexpected(&self, body: DccpBody) -> bool {
        match body {
            DccpBody::Response { .. } => self.is_server || self.state != State::PartOpen,
            DccpBody::Request { .. } => !self.is_server || self.state != State::Respond,
            DccpBody::CloseReq { .. } => self.is_server,
            DccpBody::Data => self.state == State::Respond,
            _ => false,
        }
    }

    /// The answer to a Request (section 8.5, step 4).
    fn handle_answer(&mut self, now: Time, packet: &DccpPacket) {
        let is_ours = packet.ack().is_some_and(|ack| {
            let (first, last) = (self.numbers.iss, self.numbers.gss);
            last.offset_from(first) >= 0 && ack.is_within(first, last)
        });
        match packet.body {
            DccpBody::Response { .. } if is_ours => {}
            DccpBody::Reset { code, .. } if is_ours => return self.handle_reset(now, code),
            DccpBody::Response { .. } | DccpBody::Reset { .. } => return,
            _ => return self.refuse(packet),
        }
        self.stats.received += 1;
        self.numbers.begin(packet.seq);
        if let Err((code, details)) = self.features.read(packet.seq, packet.ack(), &packet.options)
        {
            return self.reset(code, details);
        }
        self.keep_cookies(packet);
        self.state = State::PartOpen;
        self.start_ccids(now);
        self.must_ack = true;
        (self.repeat_after, self.repeats) = (PART_OPEN_REPEAT, 0);
        self.repeat_at = now + PART_OPEN_REPEAT;
        self.events.push_back(DccpEvent::Connected);
    }

    fn keep_cookies(&mut self, response: &DccpPacket) {
        let cookies = response.options.iter().filter_map(|option| match option {
            DccpOption::InitCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        self.cookies = cookies.take(MOST_COOKIES).collect();
    }

    /// Opens the connection at the first packet that shows the peer's agreement.
    fn open(&mut self, now: Time, body: DccpBody) {
        let has_heard = matches!(body, DccpBody::Ack { .. } | DccpBody::DataAck { .. });
        match self.state {
            State::Respond if has_heard => {
                self.state = State::Open;
                self.start_ccids(now);
                self.events.push_back(DccpEvent::Connected);
            }
            // Only an open server sends anything but a Response.
            State::PartOpen if has_heard || body == DccpBody::Data => {
                self.state = State::Open;
                self.cookies.clear();
            }
            _ => return,
        }
        self.repeat_at = Time::MAX;
        self.negotiate(now);
    }

    /// Congestion control and data.
    fn exchange(&mut self, now: Time, packet: &DccpPacket, is_marked: bool) {
        if let (Some(ack), Some(sender)) = (packet.ack(), &mut self.sender) {
            // A Sync acknowledges a packet that may have been invalid: no state follows from it.
            if !matches!(packet.body, DccpBody::Sync { .. }) {
                sender.on_ack(now, ack, &packet.options);
                if let Some(receiver) = &mut self.receiver {
                    receiver.on_known(ack);
                }
            }
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.on_arrival(now, packet.seq);
        }
        let Some(reorder) = &mut self.reorder else {
            return self.take(now, now, packet, is_marked);
        };
        let number = packet.seq.minus(self.numbers.isr.get()).get();
        let len = u32::try_from(packet.data.len()).unwrap_or(u32::MAX);
        let arrived = Arrived { at: now, packet: packet.clone(), is_marked };
        reorder.push(now, number, len, arrived);
        self.release(now);
    }

    /// Hands on what the reorder buffer gives.
    pub(super) fn release(&mut self, now: Time) {
        while let Some(reorder) = &mut self.reorder {
            if let Some(rate) = self.receiver.as_ref().and_then(CcidReceiver::rate)
                && rate > Rate::ZERO
            {
                reorder.resize(rate);
            }
            let Some((_, arrived)) = reorder.pop(now) else { break };
            self.take(now, arrived.at, &arrived.packet, arrived.is_marked);
        }
    }

    /// Gives a packet that arrived at `arrived` to congestion control and to the application.
    fn take(&mut self, now: Time, arrived: Time, packet: &DccpPacket, is_marked: bool) {
        let is_data = packet.body.carries_data();
        let len = u32::try_from(packet.data.len()).unwrap_or(u32::MAX);
        if let Some(receiver) = &mut self.receiver {
            receiver.set_ack_ratio(self.features.remote(Feature::AckRatio));
            receiver.handle(
                now,
                &Incoming {
                    arrived,
                    seq: packet.seq,
                    ccval: packet.ccval,
                    data: is_data.then_some(len),
                    is_marked,
                    options: &packet.options,
                },
            );
        }
        if !is_data || packet.data.is_empty() {
            return;
        }
        self.stats.data_received += 1;
        self.stats.bytes_received += u64::from(len);
        if self.received.len() < MOST_RECEIVED {
            self.received.push_back(packet.data.clone());
        } else {
            self.is_slow = true;
        }
    }

    fn handle_reset(&mut self, now: Time, code: ResetCode) {
        // A peer that has forgotten the connection has closed it.
        let is_closing = matches!(self.state, State::Closing | State::CloseReq);
        let was_wanted = code == ResetCode::Closed || is_closing;
        self.events.push_back(match was_wanted {
            true => DccpEvent::Closed,
            false => DccpEvent::Aborted(code),
        });
        self.replies.clear();
        self.end(State::TimeWait, now + self.config.time_wait);
    }

    fn handle_close_request(&mut self, now: Time) {
        if self.state != State::Closing {
            self.queue.clear();
            self.begin_closing(now, State::Closing);
        } else {
            // The Close was lost.
            self.repeat_at = now;
        }
    }

    /// Answers a packet that no connection fits.
    fn refuse(&mut self, packet: &DccpPacket) {
        if let Some(DccpPacket { body, .. }) = super::no_connection(packet) {
            let DccpBody::Reset { ack, details, .. } = body else { return };
            let is_new = self.state == State::Request;
            let code = if is_new { ResetCode::PacketError } else { ResetCode::NoConnection };
            self.reply(DccpBody::Reset { ack, code, details });
        }
    }

    fn sync(&mut self, now: Time, ack: DccpSeq) {
        if self.synced_at.is_none_or(|at| now.since(at) >= SYNC_INTERVAL) {
            self.synced_at = Some(now);
            self.stats.syncs += 1;
            self.reply(DccpBody::Sync { ack });
        }
    }

    fn reply(&mut self, body: DccpBody) {
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back(body);
        }
    }
}
