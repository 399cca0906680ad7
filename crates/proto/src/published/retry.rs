use fontis_base::{Duration, Time};

/// The timer of handshake and close: 1 s at first, doubled with each retransmission, of which there
/// are five (section 3.3.2). Whether the first copy counts is open (D-09); here it does not, so
/// that an attempt ends after 63 s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    pub(super) at: Time,
    interval: Duration,
    retries: u32,
}

const FIRST: Duration = Duration::from_secs(1);
const MOST: u32 = 5;

impl Retry {
    /// The first copy was sent.
    pub(super) fn new(now: Time) -> Self {
        Self { at: now + FIRST, interval: FIRST, retries: 0 }
    }

    /// The time has come: whether there is another copy, or none any more.
    pub(super) fn again(&mut self, now: Time) -> bool {
        if self.retries >= MOST {
            return false;
        }
        self.retries += 1;
        self.interval = self.interval + self.interval;
        self.at = now + self.interval;
        true
    }
}
