use fontis_base::{Duration, Time};

use super::sample::Acknowledgement;

/// HyStart (Ha and Rhee, 2011) as Linux has it: leaves slow start when the acknowledgements of a
/// round come as a train of half the round-trip time, or when the round-trip time has grown by an
/// eighth.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// The round ends when this position is acknowledged.
    round_end: u64,
    round_start: Time,
    last_ack: Time,
    samples: u32,
    round_rtt: Duration,
}

/// Windows below this many segments are too small to be measured ("hystart_low_window").
const LOW_WINDOW: u64 = 16;
/// Round-trip times that make a round's sample ("HYSTART_MIN_SAMPLES").
const MIN_SAMPLES: u32 = 8;
/// Acknowledgements so close belong to one train ("hystart_ack_delta_us").
const ACK_GAP: Duration = Duration::from_millis(2);
/// The bounds of the growth in round-trip time that is taken for a queue ("HYSTART_DELAY_MIN",
/// "HYSTART_DELAY_MAX").
const DELAY: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];

impl HyStart {
    pub(super) const fn new() -> Self {
        Self {
            round_end: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            samples: 0,
            round_rtt: Duration::MAX,
        }
    }

    /// Whether slow start should end with this acknowledgement.
    pub(super) fn should_exit(&mut self, ack: &Acknowledgement, cwnd: u64, mss: u64) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        if ack.acked_to > self.round_end || self.round_start == Time::ZERO {
            self.round_end = ack.sent_to;
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.samples = 0;
            self.round_rtt = Duration::MAX;
        }
        if cwnd < LOW_WINDOW * mss {
            return false;
        }
        if ack.now.since(self.last_ack) <= ACK_GAP {
            self.last_ack = ack.now;
            if ack.now.since(self.round_start) > ack.min_rtt / 2 {
                return true;
            }
        }
        self.round_rtt = self.round_rtt.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_rtt > ack.min_rtt + (ack.min_rtt / 8).clamp(DELAY[0], DELAY[1])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    /// Acknowledges windows that double, spread over the round trip up to the rate that a segment a
    /// `gap_us` is, with the round-trip time growing as given; the window in segments at which slow
    /// start ended.
    fn run(gap_us: u64, rtt: impl Fn(u64) -> u64) -> Option<u64> {
        let mut hystart = HyStart::new();
        let (mut window, mut now, mut una) = (10u64, Time::ZERO + ms(1), 0);
        while window < 100_000 {
            let (nxt, begin) = (una + window * MSS, now);
            for n in 0..window {
                now = begin + Duration::from_micros(gap_us) * n;
                una += MSS;
                let sample = Acknowledgement {
                    now,
                    acked_to: una,
                    sent_to: nxt,
                    min_rtt: ms(100),
                    rtt: Some(ms(rtt(window))),
                    ..ack(0, 1, 100)
                };
                if hystart.should_exit(&sample, window * MSS, MSS) {
                    return Some(window);
                }
            }
            window *= 2;
            now = now.max(begin + ms(100));
        }
        None
    }

    #[test]
    fn a_train_of_half_the_round_trip_ends_slow_start() {
        // 100 µs a segment and 100 ms hold 1000 segments: a train of 50 ms is 500 of them.
        assert_eq!(run(100, |_| 100), Some(640));
    }

    #[test]
    fn a_growing_round_trip_time_ends_slow_start() {
        assert_eq!(run(1, |window| if window >= 160 { 113 } else { 100 }), Some(160));
    }
}
