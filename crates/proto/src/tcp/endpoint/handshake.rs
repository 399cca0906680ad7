use fontis_base::Time;

use super::super::receiver::Receiver;
use super::super::segment::{Options, Segment, SynOptions, TIMESTAMPS, TcpFlags, Timestamps};
use super::{Leaving, Negotiated, TcpEndpoint, TcpEvent, TcpState, Transmit};

/// How often a SYN is sent again ("tcp_syn_retries" of Linux).
const SYN_RETRIES: u8 = 6;

impl TcpEndpoint {
    pub(super) fn handle_in_syn_sent(&mut self, now: Time, segment: &Segment) {
        let acks_us = segment.flags.has(TcpFlags::ACK) && segment.ack == self.isn.wrapping_add(1);
        if segment.flags.has(TcpFlags::ACK) && !acks_us {
            return;
        }
        if segment.flags.has(TcpFlags::RST) {
            if acks_us {
                self.end(TcpEvent::Aborted);
            }
            return;
        }
        let Some(options) = segment.syn().filter(|_| segment.flags.has(TcpFlags::SYN)) else {
            return;
        };
        self.on_syn(segment, options);
        if acks_us {
            self.establish(now, segment);
            self.receiver.acknowledge_now();
        } else {
            // Both sides connect at the same time (RFC 9293 section 3.5).
            self.state = TcpState::SynReceived;
            self.ends.syn_at = now;
            self.ends.syn_copies = 0;
        }
    }

    /// Settles what both sides understand.
    pub(super) fn on_syn(&mut self, segment: &Segment, options: SynOptions) {
        self.peer_isn = segment.seq;
        let echoes = if segment.flags.has(TcpFlags::ACK) {
            segment.flags.has(TcpFlags::ECE) && !segment.flags.has(TcpFlags::CWR)
        } else {
            segment.flags.has(TcpFlags::ECE | TcpFlags::CWR)
        };
        let config = &self.config;
        self.options = Negotiated {
            timestamps: config.timestamps && segment.has_timestamps,
            sack: config.sack && options.sack_permitted,
            ecn: config.ecn && echoes,
            our_scale: options.window_scale.map_or(0, |_| config.window_scale()),
            peer_scale: options.window_scale.unwrap_or(0).min(14),
        };
        if let Some(Timestamps { value, .. }) = segment.timestamps() {
            self.timestamp_recent = value;
        }
        let timestamps = self.options.timestamps;
        let taken = if timestamps { TIMESTAMPS } else { 0 };
        let theirs = u32::from(options.mss).saturating_sub(taken).max(1);
        let len = config.segment_len(timestamps).min(theirs);
        self.sending.agree(config, len, self.options.sack, self.isn);
        self.receiver = Receiver::new(len);
        self.window_end = 0;
    }

    pub(super) fn establish(&mut self, now: Time, segment: &Segment) {
        self.state = TcpState::Established;
        self.ends.syn_at = Time::MAX;
        let scale = if segment.flags.has(TcpFlags::SYN) { 0 } else { self.options.peer_scale };
        // A handshake that needed copies measures nothing and begins with one segment (RFC 5681
        // section 3.1).
        let rtt = (self.ends.syn_copies == 1).then(|| now.since(self.ends.syn_sent_at));
        self.window_end = u64::from(segment.window) << scale;
        self.sending.on_handshake(self.ends.syn_copies > 1, rtt);
        self.raise(TcpEvent::Connected);
    }

    /// Decides whether a SYN or SYNACK leaves at `now`.
    #[cold]
    pub(super) fn leave_syn(&mut self, now: Time) -> bool {
        let ends = &mut self.ends;
        if now < ends.syn_at {
            return false;
        }
        if ends.syn_copies > SYN_RETRIES {
            self.end(TcpEvent::Aborted);
            return false;
        }
        if ends.syn_copies == 0 {
            ends.syn_sent_at = now;
        }
        ends.syn_at = now + self.config.initial_rto * (1 << ends.syn_copies);
        ends.syn_copies += 1;
        let flags = match self.state {
            TcpState::SynSent if self.config.ecn => TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR,
            TcpState::SynReceived if self.options.ecn => {
                TcpFlags::SYN | TcpFlags::ACK | TcpFlags::ECE
            }
            TcpState::SynReceived => TcpFlags::SYN | TcpFlags::ACK,
            _ => TcpFlags::SYN,
        };
        self.leaving = Leaving { seq: self.isn, flags, len: 0, ecn_capable: false, pure: false };
        true
    }

    /// The SYN or SYNACK that leaves.
    #[cold]
    pub(super) fn syn_segment(&mut self, now: Time) -> Transmit {
        let Leaving { seq, flags, ecn_capable, .. } = self.leaving;
        let (config, options) = (&self.config, self.options);
        let answer = flags.has(TcpFlags::ACK);
        let syn = SynOptions {
            mss: config.mss(),
            // An answer offers only what was offered; ours is zero then.
            window_scale: (!answer || options.our_scale > 0 || options.peer_scale > 0)
                .then(|| config.window_scale()),
            sack_permitted: options.sack,
        };
        let window = self.receiver.offer(0, config);
        let (ack, echo) = if answer { (self.peer_wire(0), self.timestamp_recent) } else { (0, 0) };
        let timestamps = self.timestamps(now, echo);
        let segment = Segment { seq, ack, window, flags, ..Segment::default() };
        let segment = segment.with_timestamps(timestamps).with_options(Options::Syn(syn));
        Transmit { segment, ecn_capable }
    }
}
