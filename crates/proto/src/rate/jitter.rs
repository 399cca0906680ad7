use std::collections::VecDeque;

use fontis_base::{Duration, Time};

/// Packets that came so many times closer together than they were sent did not wait in a queue for
/// each other.
const CLOSER: i64 = 8;
/// Packets that make a bunch: of two, others' may just not have come between, unless they are no
/// further apart than this, in nanoseconds.
const BUNCH: u64 = 3;
const AT_ONCE: i64 = 50_000;
/// The last packet of those that come at once has waited, too.
const OF_BUNCH: i64 = 2;
/// A path keeps the order of packets if they overtake others by so many times less than what they
/// wait.
const IN_ORDER: i64 = 4;
/// Packets that one is compared with.
const RECENT: usize = 32;
/// Windows that a statement goes by; a quarter of them showed at least as much.
const WINDOWS: usize = 16;
/// A window lasts a round trip, and so long at least.
const LEAST_WINDOW: Duration = Duration::from_millis(20);
/// Packets come at once after less than this, in nanoseconds, by what hosts and others' bursts in a
/// short queue do.
const LEAST: i64 = 4_000_000;
/// The most that is believed, in nanoseconds: a receiver may say what it likes.
const MOST: i64 = 250_000_000;
/// Less makes no difference.
const NEGLIGIBLE: Duration = Duration::from_micros(500);
/// The seconds in which a half is forgotten: so many times as many as it has been shown for, within
/// these bounds. Hosts pause while a transfer begins, and a path is not to pay for that for long.
const LASTS: f64 = 5.0;
const MEMORY: (f64, f64) = (1.0, 30.0);
/// Of what it has been shown for, so much is forgotten of each second that does not show it.
const FORGOTTEN: f64 = 0.1;

/// By how much a path holds back some packets longer than others, other than by a queue.
///
/// A queue that packets leave in their order lets none overtake another, and they leave it one
/// after the other. Where a packet came before one that was sent before it, or nearly at the same
/// time as one that was sent long before it, the difference of their delays is none of queues. The
/// paths of radios are so: they send again what was lost, and in bursts when it is their turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jitter {
    /// When the last packets were sent, and their one-way delays, in nanoseconds.
    recent: VecDeque<(u64, i64, i64)>,
    /// What the last windows showed, in nanoseconds, the oldest first.
    windows: VecDeque<i64>,
    /// The longest time of the present window by which a packet overtook another, and the greatest
    /// difference of the delays of packets that came at once.
    overtaken: i64,
    bunched: i64,
    since: Time,
    known: f64,
    /// The seconds for which at least half of that has been shown.
    shown_for: f64,
}

impl Jitter {
    /// Takes a packet that a feedback reports: when it was sent, and its one-way delay, both in
    /// nanoseconds.
    pub(crate) fn observe(&mut self, number: u64, sent: i64, delay: i64) {
        for (other, other_sent, other_delay) in &self.recent {
            let (apart, shorter) = if number > *other {
                (sent.saturating_sub(*other_sent), other_delay.saturating_sub(delay))
            } else {
                (other_sent.saturating_sub(sent), delay.saturating_sub(*other_delay))
            };
            // So long after the one sent before it came the other.
            let gap = apart.saturating_sub(shorter);
            self.overtaken = self.overtaken.max(gap.saturating_neg().min(MOST));
            let far = number.abs_diff(*other) >= BUNCH;
            if (0..=apart / CLOSER).contains(&gap) && (far || gap <= AT_ONCE) {
                self.bunched = self.bunched.max(shorter.min(MOST / OF_BUNCH));
            }
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((number, sent, delay));
    }

    /// Time has passed: a window may end.
    pub(crate) fn end_window(&mut self, now: Time, srtt: Duration) {
        let passed = now.since(self.since);
        if passed >= srtt.max(LEAST_WINDOW) {
            self.since = now;
            if self.windows.len() == WINDOWS {
                self.windows.pop_front();
            }
            let overtaken = core::mem::take(&mut self.overtaken);
            let bunched = core::mem::take(&mut self.bunched);
            let in_order = overtaken * IN_ORDER < bunched;
            let of_bunch = OF_BUNCH * bunched;
            let shown = if !in_order {
                overtaken
            } else if of_bunch > LEAST {
                of_bunch
            } else {
                0
            };
            self.windows.push_back(shown);
            let mut sorted: Vec<i64> = self.windows.iter().copied().collect();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let shown = sorted[(sorted.len() / 4).max(1).min(sorted.len() - 1)] as f64;
            let passed = passed.as_secs_f64();
            let is_shown = shown > 0.0 && shown >= self.known / 2.0;
            let change = if is_shown { passed } else { -FORGOTTEN * passed };
            self.shown_for = (self.shown_for + change).clamp(0.0, MEMORY.1);
            let memory = (LASTS * self.shown_for).clamp(MEMORY.0, MEMORY.1);
            let kept = self.known * libm::exp2(-passed / memory);
            self.known = shown.max(kept);
        }
    }

    /// The difference of delays that is usual; zero if it makes no difference.
    pub(crate) fn get(&self) -> Duration {
        let known = Duration::from_nanos(self.known as u64);
        if known < NEGLIGIBLE { Duration::ZERO } else { known }
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Stream;

    use super::*;

    /// What is shown of 400 packets, one each millisecond, that come at these times in nanoseconds.
    fn shown(mut comes: impl FnMut(u64) -> i64) -> Duration {
        let mut jitter = Jitter::default();
        for number in 0..400 {
            let sent = number as i64 * 1_000_000;
            jitter.observe(number, sent, comes(number) - sent);
            jitter.end_window(Time::from_nanos(sent as u64), Duration::from_millis(20));
        }
        jitter.get()
    }

    fn close(shown: Duration, ms: f64) -> bool {
        (0.7..1.3).contains(&(shown.as_secs_f64() * 1e3 / ms))
    }

    #[test]
    fn packets_that_overtake_others_show_how_long_those_are_held_back() {
        let mut random = Stream::new(7, "overtaken");
        let delays = shown(|number| (number + random.below(15)) as i64 * 1_000_000);
        assert!(close(delays, 14.0), "{delays}");
    }

    #[test]
    fn packets_that_come_at_once_show_how_long_the_first_waited() {
        // Every ten milliseconds those of the last ten leave.
        let delays = shown(|number| (number as i64 / 10 + 1) * 10_000_000);
        assert!(close(delays, 2.0 * 9.0), "{delays}");
    }

    #[test]
    fn a_queue_that_grows_and_is_emptied_is_no_jitter() {
        // It grows by half a millisecond with each packet, and then shrinks so.
        let delays = shown(|number| {
            let phase = (number % 100) as i64;
            number as i64 * 1_000_000 + phase.min(100 - phase) * 500_000
        });
        assert_eq!(delays, Duration::ZERO);
    }

    /// What is known when packets have come in bunches of ten for some milliseconds, and then as
    /// they were sent, of one each millisecond.
    fn known_after(bunched: u64, calm: u64) -> Duration {
        let mut jitter = Jitter::default();
        for number in 0..bunched + calm {
            let sent = number as i64 * 1_000_000;
            let comes = (number as i64 / 10 + 1) * 10_000_000;
            let delay = if number < bunched { comes - sent } else { 0 };
            jitter.observe(number, sent, delay);
            jitter.end_window(Time::from_nanos(sent as u64), Duration::from_millis(20));
        }
        jitter.get()
    }

    #[test]
    fn what_was_shown_for_a_moment_is_forgotten_soon_and_what_was_shown_for_long_is_not() {
        assert!(close(known_after(300, 20), 18.0));
        assert!(known_after(300, 10_000) < Duration::from_millis(2));
        assert!(close(known_after(30_000, 10_000), 15.0));
    }

    #[test]
    fn a_pause_of_the_path_is_none_either() {
        // Once all of twenty milliseconds comes at once.
        let delays = shown(
            |number| if (200..220).contains(&number) { 220 } else { number } as i64 * 1_000_000,
        );
        assert_eq!(delays, Duration::ZERO);
    }
}
