use fontis_base::Duration;

use super::sample::Acknowledgement;

/// Round trips, and the least round-trip time in each: what algorithms that follow delay act on.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// The round ends when this position is acknowledged.
    end: u64,
    least: Duration,
    samples: u32,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self { end: 0, least: Duration::MAX, samples: 0 }
    }

    /// Takes an acknowledgement; if a round ends with it, the least round-trip time in it. A round
    /// with fewer than three samples says nothing: a delayed acknowledgement could have made it up.
    pub(super) fn on_ack(&mut self, ack: &Acknowledgement) -> Option<Duration> {
        if let Some(rtt) = ack.rtt {
            self.least = self.least.min(rtt);
            self.samples += 1;
        }
        if ack.acked_to < self.end {
            return None;
        }
        let least = (self.samples >= 3).then_some(self.least);
        *self = Self { end: ack.sent_to, ..Self::new() };
        least
    }
}
