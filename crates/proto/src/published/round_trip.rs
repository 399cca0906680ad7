use fontis_base::{Duration, Time};

/// How long an acknowledgement is waited for: the recent round-trip time and a margin (D-13).
///
/// An acknowledgement names a block and no packet, so it is not known which pass over the block it
/// answers (Karn's ambiguity). But it cannot answer a packet that left later than the block's last
/// one: what has passed since then is never more than the round trip. It is all of it for the last
/// of a block's acknowledgements, which answers its last packet, whether that was needed or not. So
/// the longest of these times is the round trip, queues included, also while every repair is sent
/// too early.
pub(super) struct RoundTrip {
    /// That of the handshake.
    least: Duration,
    /// The longest time of this period, and of the period before.
    longest: Duration,
    before: Duration,
    /// When this period began. A period is as long as the patience in it.
    since: Time,
}

/// Longer than this no acknowledgement is waited for.
const MOST_PATIENCE: Duration = Duration::from_secs(2);

impl RoundTrip {
    /// The round trip that a handshake took.
    pub(super) fn new(rtt: Duration) -> Self {
        Self { least: rtt, longest: rtt, before: rtt, since: Time::ZERO }
    }

    /// An acknowledgement came so long after the last packet of its block.
    pub(super) fn sample(&mut self, now: Time, since_last: Duration) {
        if now >= self.since + self.patience() {
            self.before = self.longest;
            self.longest = self.least;
            self.since = now;
        }
        self.longest = self.longest.max(since_last);
    }

    /// How long after its last packet a block is repaired.
    pub(super) fn patience(&self) -> Duration {
        let rtt = self.longest.max(self.before);
        (rtt + rtt / 4 + Duration::from_millis(1)).min(MOST_PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn acknowledgements_of_repairs_in_vain_show_the_round_trip() {
        let mut round_trip = RoundTrip::new(Duration::from_millis(10));
        // A pass every 13 ms from 0 to 247 ms over a path that has come to take 250 ms: the first
        // acknowledgement stops them, and each of the others answers one of them.
        for pass in 0..20 {
            let now = 250 + 13 * pass;
            round_trip.sample(at(now), at(now).since(at(247)));
        }
        let patience = round_trip.patience();
        assert!((250..=350).contains(&patience.as_millis()), "{patience}");
    }

    #[test]
    fn a_queue_that_has_drained_is_forgotten_after_two_periods() {
        let mut round_trip = RoundTrip::new(Duration::from_millis(10));
        round_trip.sample(at(1000), Duration::from_millis(400));
        for now in 1001..3000 {
            round_trip.sample(at(now), Duration::from_millis(8));
        }
        assert_eq!(round_trip.patience(), RoundTrip::new(Duration::from_millis(10)).patience());
    }

    #[test]
    fn nothing_is_waited_for_longer_than_two_seconds() {
        assert_eq!(RoundTrip::new(Duration::from_secs(60)).patience(), MOST_PATIENCE);
    }
}
