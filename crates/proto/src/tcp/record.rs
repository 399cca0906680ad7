use fontis_base::Time;

/// What is known of a segment that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) start: u64,
    /// When it was last sent.
    pub(super) sent_at: Time,
    /// Bytes of payload.
    pub(super) len: u32,
    /// Of the bits below.
    pub(super) state: u8,
}

/// It ends with a FIN, which takes a sequence number.
pub(super) const FIN: u8 = 1;
/// The peer said that it holds it.
pub(super) const SACKED: u8 = 2;
/// The original is believed lost.
pub(super) const LOST: u8 = 4;
/// A retransmission is believed to be in the network.
pub(super) const RESENT: u8 = 8;
/// It was sent more than once.
pub(super) const TWICE: u8 = 16;
/// The sender had nothing more to send when it left.
pub(super) const APP_LIMITED: u8 = 32;

impl Record {
    /// The retransmission is lost too, or whatever was sent.
    pub(super) fn lose(&mut self) {
        self.state = self.state & !RESENT | LOST;
    }

    pub(super) fn sequence_len(&self) -> u64 {
        u64::from(self.len) + u64::from(self.state & FIN)
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.sequence_len()
    }

    pub(super) fn is(&self, bits: u8) -> bool {
        self.state & bits != 0
    }

    /// Whether it is lost and was not sent again since.
    pub(super) fn is_pending(&self) -> bool {
        self.state & (SACKED | LOST | RESENT) == LOST
    }

    pub(super) fn is_lost(&self) -> bool {
        self.state & (SACKED | LOST) == LOST
    }

    /// How much of the pipe it takes: once for the original, once for the retransmission
    /// ("SetPipe").
    pub(super) fn in_pipe(&self) -> u64 {
        let copies = match self.state & (SACKED | LOST | RESENT) {
            0 => 1,
            RESENT => 2,
            state if state & SACKED != 0 => 0,
            state if state & RESENT != 0 => 1,
            _ => 0,
        };
        copies * self.sequence_len()
    }
}

/// The scoreboard's counters when a segment was last sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knowledge {
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    pub(super) first_sent_at: Time,
}
