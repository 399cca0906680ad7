//! The sequence numbers of a connection, and the packets that they admit (RFC 4340 section 7.5).

use super::number::DccpSeq;
use super::packet::{DccpBody, DccpPacket};

/// The sequence number variables of one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// The first number sent, and the last.
    pub(super) iss: DccpSeq,
    pub(super) gss: DccpSeq,
    /// The first number received, and the greatest of a valid packet.
    pub(super) isr: DccpSeq,
    pub(super) gsr: DccpSeq,
    /// The greatest valid acknowledgement number.
    pub(super) gar: DccpSeq,
    /// Whether the numbers received, and those sent, are so few that the first one bounds them. It
    /// must not when they have wrapped (section 7.5.1).
    is_first_received: bool,
    is_first_sent: bool,
}

/// What the numbers of a packet show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    Valid,
    /// It is to be answered by a Sync of this number.
    Sync(DccpSeq),
    /// It is to be dropped without an answer.
    Drop,
}

impl Numbers {
    pub(super) const fn new(iss: DccpSeq) -> Self {
        let zero = DccpSeq::new(0);
        // The number before the first, so that the first packet gets `iss`.
        Self {
            iss,
            gss: iss.minus(1),
            isr: zero,
            gsr: zero,
            gar: iss,
            is_first_received: true,
            is_first_sent: true,
        }
    }

    /// The number of the packet that leaves next.
    pub(super) const fn advance(&mut self) -> DccpSeq {
        self.gss = self.gss.next();
        self.gss
    }

    /// Notes the peer's first packet.
    pub(super) const fn begin(&mut self, seq: DccpSeq) {
        self.isr = seq;
        self.gsr = seq;
    }

    /// The least and greatest number that a packet may have, under the peer's Sequence Window.
    fn window(&self, theirs: u64) -> (DccpSeq, DccpSeq) {
        let low = self.gsr.next().minus(theirs / 4);
        let low = if self.is_first_received { low.latest(self.isr) } else { low };
        (low, self.gsr.plus(3 * theirs.div_ceil(4)))
    }

    /// The least acknowledgement number that a packet may have, under this end's Sequence Window.
    fn least_ack(&self, ours: u64) -> DccpSeq {
        let least = self.gss.next().minus(ours);
        if self.is_first_sent { least.latest(self.iss) } else { least }
    }

    /// Checks a packet, and moves the greatest numbers if it is valid (section 8.5, steps 5 and 6).
    pub(super) fn admit(&mut self, packet: &DccpPacket, ours: u64, theirs: u64) -> Validity {
        self.is_first_received &= self.gsr.offset_from(self.isr).unsigned_abs() <= theirs;
        self.is_first_sent &= self.gss.offset_from(self.iss).unsigned_abs() <= ours;
        let (low, high) = self.window(theirs);
        let least_ack = self.least_ack(ours);
        let is_ack_within = |ack: DccpSeq, low| ack.is_within(low, self.gss);
        if let DccpBody::Sync { ack } | DccpBody::SyncAck { ack } = packet.body {
            if !is_ack_within(ack, least_ack) || low.is_after(packet.seq) {
                return Validity::Drop;
            }
            self.gsr = self.gsr.latest(packet.seq);
            return Validity::Valid;
        }
        let is_end = matches!(
            packet.body,
            DccpBody::CloseReq { .. } | DccpBody::Close { .. } | DccpBody::Reset { .. }
        );
        let (low, least_ack) = if is_end { (self.gsr.next(), self.gar) } else { (low, least_ack) };
        let is_valid = packet.seq.is_within(low, high)
            && packet.ack().is_none_or(|ack| is_ack_within(ack, least_ack));
        if !is_valid {
            return Validity::Sync(match packet.body {
                DccpBody::Reset { .. } => self.gsr,
                _ => packet.seq,
            });
        }
        self.gsr = self.gsr.latest(packet.seq);
        if let Some(ack) = packet.ack() {
            self.gar = self.gar.latest(ack);
        }
        Validity::Valid
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::DccpData;
    use super::*;

    const WINDOW: u64 = 100;

    fn numbers() -> Numbers {
        let mut numbers = Numbers::new(DccpSeq::new(1000));
        numbers.gss = DccpSeq::new(1050);
        numbers.isr = DccpSeq::new(1);
        numbers.gsr = DccpSeq::new(500);
        numbers.gar = DccpSeq::new(1040);
        numbers
    }

    fn packet(seq: u64, body: DccpBody) -> DccpPacket {
        DccpPacket {
            source: 1,
            destination: 2,
            ccval: 0,
            coverage: 0,
            is_short: false,
            seq: DccpSeq::new(seq),
            body,
            options: Vec::new(),
            data: DccpData::NONE,
        }
    }

    fn admit(seq: u64, body: DccpBody) -> Validity {
        numbers().admit(&packet(seq, body), WINDOW, WINDOW)
    }

    #[test]
    fn both_edges_of_the_sequence_window() {
        let sync = |seq| Validity::Sync(DccpSeq::new(seq));
        assert_eq!(admit(475, DccpBody::Data), sync(475));
        assert_eq!(admit(476, DccpBody::Data), Validity::Valid);
        assert_eq!(admit(575, DccpBody::Data), Validity::Valid);
        assert_eq!(admit(576, DccpBody::Data), sync(576));
        let ack = |ack| DccpBody::Ack { ack: DccpSeq::new(ack) };
        // Never below the first number that was sent.
        assert_eq!(admit(501, ack(999)), sync(501));
        assert_eq!(admit(501, ack(1000)), Validity::Valid);
        assert_eq!(admit(501, ack(1050)), Validity::Valid);
        assert_eq!(admit(501, ack(1051)), sync(501));
    }

    #[test]
    fn the_first_numbers_bound_the_window_at_the_beginning_alone() {
        let admit_with = |numbers: &mut Numbers, seq| {
            let data = packet(seq, DccpBody::Data);
            numbers.admit(&data, WINDOW, WINDOW) == Validity::Valid
        };
        let mut numbers = numbers();
        assert!(admit_with(&mut numbers, 501), "more than a window after the first");
        // Once round: the numbers below the first one are those of now.
        numbers.gsr = DccpSeq::new(5);
        assert!(admit_with(&mut numbers, (1 << 48) - 10));
        let mut first = Numbers::new(DccpSeq::new(1000));
        first.begin(DccpSeq::new(5));
        assert!(!admit_with(&mut first, 4) && admit_with(&mut first, 6));
    }

    #[test]
    fn an_end_must_be_newer_than_all_before() {
        let close = |ack| DccpBody::Close { ack: DccpSeq::new(ack) };
        assert_eq!(admit(500, close(1045)), Validity::Sync(DccpSeq::new(500)));
        assert_eq!(admit(501, close(1039)), Validity::Sync(DccpSeq::new(501)));
        assert_eq!(admit(501, close(1040)), Validity::Valid);
        // A Reset is answered with the greatest number received, so that no loop begins.
        let reset = DccpBody::Reset {
            ack: DccpSeq::new(0),
            code: super::super::packet::ResetCode::Aborted,
            details: [0; 3],
        };
        assert_eq!(admit(501, reset), Validity::Sync(DccpSeq::new(500)));
    }

    #[test]
    fn a_sync_may_be_far_ahead_and_must_acknowledge_something_sent() {
        let sync = |ack| DccpBody::Sync { ack: DccpSeq::new(ack) };
        assert_eq!(admit(90_000, sync(1045)), Validity::Valid);
        assert_eq!(admit(90_000, sync(1051)), Validity::Drop);
        assert_eq!(admit(400, sync(1045)), Validity::Drop);
    }
}
