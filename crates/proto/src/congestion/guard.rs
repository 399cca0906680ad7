use fontis_base::Duration;

use super::hystart::HyStart;
use super::sample::Acknowledgement;

/// What keeps slow start from overshooting the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartGuard {
    /// Nothing.
    #[default]
    None,
    /// HyStart as Linux has it: it ends slow start when a queue seems to grow.
    HyStart,
    /// HyStart++ (RFC 9406): when the round-trip time grows, a quarter of the growth for five round
    /// trips, and then the end; all of it again if the growth was no queue's.
    HyStartPlus,
    /// Limited slow start (RFC 3742): above 100 segments the window grows by about 50 in a round
    /// trip.
    Limited,
}

/// How slow start goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardedStart {
    /// With one part in so many of its growth.
    Part(u64),
    /// Not at all.
    Over,
}

/// A guard at work.
#[derive(Clone, Debug)]
pub(super) enum Guard {
    HyStart(HyStart),
    Plus(HyStartPlus),
    Limited,
}

/// "max_ssthresh" (RFC 3742 section 2), in segments.
const LIMITED_ABOVE: u64 = 100;

impl SlowStartGuard {
    pub(super) fn start(self) -> Option<Box<Guard>> {
        let guard = match self {
            Self::None => return None,
            Self::HyStart => Guard::HyStart(HyStart::new()),
            Self::HyStartPlus => Guard::Plus(HyStartPlus::new()),
            Self::Limited => Guard::Limited,
        };
        Some(Box::new(guard))
    }
}

impl Guard {
    /// Takes an acknowledgement in slow start.
    pub(super) fn on_ack(&mut self, ack: &Acknowledgement, cwnd: u64, mss: u64) -> GuardedStart {
        match self {
            Self::HyStart(hystart) => match hystart.should_exit(ack, cwnd, mss) {
                true => GuardedStart::Over,
                false => GuardedStart::Part(1),
            },
            Self::Plus(hystart) => hystart.on_ack(ack),
            // "K = int(cwnd/(0.5 max_ssthresh))".
            Self::Limited if cwnd > LIMITED_ABOVE * mss => {
                GuardedStart::Part(cwnd / (LIMITED_ABOVE / 2 * mss))
            }
            Self::Limited => GuardedStart::Part(1),
        }
    }
}

/// HyStart++ (RFC 9406 section 4.2), for senders whose bursts are not bounded ("L = infinity").
#[derive(Clone, Debug)]
pub(super) struct HyStartPlus {
    /// The round ends when this position is acknowledged.
    round_end: u64,
    /// The least round-trip time of the round before, and of this one.
    last: Duration,
    current: Duration,
    samples: u32,
    /// In "Conservative Slow Start": the round-trip time at which it began, and rounds since.
    careful: Option<(Duration, u32)>,
}

/// "N_RTT_SAMPLE".
const SAMPLES: u32 = 8;
/// "MIN_RTT_DIVISOR".
const DIVISOR: u64 = 8;
/// "MIN_RTT_THRESH" and "MAX_RTT_THRESH".
const GROWTH: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];
/// "CSS_GROWTH_DIVISOR".
const CAREFUL_PART: u64 = 4;
/// "CSS_ROUNDS".
const CAREFUL_ROUNDS: u32 = 5;

impl HyStartPlus {
    const fn new() -> Self {
        Self {
            round_end: 0,
            last: Duration::MAX,
            current: Duration::MAX,
            samples: 0,
            careful: None,
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement) -> GuardedStart {
        if let Some(rtt) = ack.rtt {
            self.current = self.current.min(rtt);
            self.samples += 1;
        }
        if self.samples >= SAMPLES && self.last != Duration::MAX {
            let queue = (self.last / DIVISOR).clamp(GROWTH[0], GROWTH[1]);
            self.careful = match self.careful {
                None if self.current >= self.last + queue => Some((self.current, 0)),
                // The growth was no queue's.
                Some((baseline, _)) if self.current < baseline => None,
                same => same,
            };
        }
        if ack.acked_to >= self.round_end {
            self.round_end = ack.sent_to;
            self.last = self.current;
            self.current = Duration::MAX;
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.careful {
                *rounds += 1;
                if *rounds >= CAREFUL_ROUNDS {
                    return GuardedStart::Over;
                }
            }
        }
        GuardedStart::Part(if self.careful.is_some() { CAREFUL_PART } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    /// Acknowledges a round of so many segments with a round-trip time; what came of its last
    /// segment.
    fn round(guard: &mut Guard, at: &mut u64, segments: u64, rtt: u64) -> GuardedStart {
        let sent_to = (*at + 2 * segments) * MSS;
        let mut last = GuardedStart::Over;
        for _ in 0..segments {
            *at += 1;
            let sample = Acknowledgement { acked_to: *at * MSS, sent_to, ..ack(0, 1, rtt) };
            last = guard.on_ack(&sample, segments * MSS, MSS);
        }
        last
    }

    #[test]
    fn a_round_trip_that_grows_makes_hystart_plus_careful_for_five_rounds() {
        let mut guard = SlowStartGuard::HyStartPlus.start().expect("a guard");
        let mut at = 0;
        for rtt in [100, 100, 104] {
            assert_eq!(round(&mut guard, &mut at, 20, rtt), GuardedStart::Part(1));
        }
        let mut careful = 0;
        while round(&mut guard, &mut at, 20, 120) == GuardedStart::Part(CAREFUL_PART) {
            careful += 1;
        }
        assert!((4..=5).contains(&careful), "{careful}");
    }

    #[test]
    fn a_round_trip_that_shrinks_again_lets_hystart_plus_go_on() {
        let mut guard = SlowStartGuard::HyStartPlus.start().expect("a guard");
        let mut at = 0;
        let rounds = [100, 100, 130, 130, 100].map(|rtt| round(&mut guard, &mut at, 20, rtt));
        let [whole, part] = [GuardedStart::Part(1), GuardedStart::Part(CAREFUL_PART)];
        assert_eq!(rounds, [whole, whole, part, part, whole]);
    }

    #[test]
    fn fewer_than_eight_samples_say_nothing() {
        let mut guard = SlowStartGuard::HyStartPlus.start().expect("a guard");
        let mut at = 0;
        for rtt in [100, 100, 300, 900] {
            assert_eq!(round(&mut guard, &mut at, 7, rtt), GuardedStart::Part(1));
        }
    }

    #[test]
    fn limited_slow_start_adds_half_a_hundred_segments_a_round_trip() {
        let mut guard = SlowStartGuard::Limited.start().expect("a guard");
        for window in [10, 100] {
            assert_eq!(guard.on_ack(&ack(0, 1, 100), window * MSS, MSS), GuardedStart::Part(1));
        }
        for window in [101u64, 149, 150, 1000] {
            let GuardedStart::Part(parts) = guard.on_ack(&ack(0, 1, 100), window * MSS, MSS) else {
                panic!("it goes on")
            };
            assert_eq!(parts, window / 50);
            let grown = window / parts;
            assert!((50..75).contains(&grown), "{window}: {grown}");
        }
    }
}
