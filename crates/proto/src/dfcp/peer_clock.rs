use fontis_base::{Duration, Time};

/// Feedback may be late for so long: of each such time, what came soonest counts.
const LATE: Duration = Duration::from_secs(4);
/// How far a peer's clock may fall behind this side's at once, and the share of the time, as one of
/// so many, by which it may go on to do so.
const BEHIND: Duration = Duration::from_secs(1);
const DRIFT: u64 = 20;

/// Whether a peer's clock can be believed.
///
/// A rate is bytes over time, and a queue is a delay that grows, so that a peer whose clock runs
/// slowly looks as if more arrived and nothing waited. The two clocks differ by a constant, and
/// honest ones do not part for good.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerClock {
    /// The least that the peer's clock is ahead of this side's, in nanoseconds, and when that was
    /// brought up to date; behind is less than zero.
    ahead: Option<(i64, Time)>,
    /// The most of late, and since when.
    latest: Option<(i64, Time)>,
    is_untrue: bool,
}

impl PeerClock {
    /// Whether the clock has not been found to run slowly.
    pub(super) const fn is_believed(&self) -> bool {
        !self.is_untrue
    }

    /// Takes the time of an arrival that the peer tells at `now`.
    pub(super) fn observe(&mut self, now: Time, told: Time) {
        let ahead = (told.as_nanos() as i64).saturating_sub(now.as_nanos() as i64);
        let (most, since) = self.latest.unwrap_or((ahead, now));
        let most = most.max(ahead);
        if now.since(since) < LATE {
            self.latest = Some((most, since));
            return;
        }
        self.latest = None;
        let (least, at) = self.ahead.unwrap_or((most, now));
        let least = least.saturating_sub((now.since(at).as_nanos() / DRIFT) as i64);
        self.is_untrue |= most < least.saturating_sub(BEHIND.as_nanos() as i64);
        self.ahead = Some((least.max(most), now));
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Stream;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_honest_clock_is_believed_whatever_it_shows_and_however_late() {
        for seed in 0..20 {
            let s = &mut Stream::new(seed, "clocks");
            let (mut clock, offset) = (PeerClock::default(), s.below(5_000_000));
            let (mut now, mut stalled) = (0, 0);
            while now < 120_000 {
                now += 1 + s.below(40);
                // A clock that is slower by a thousandth, feedback that waits for a second and a
                // half now and then, all that comes meanwhile with it.
                if now > stalled && s.below(200) == 0 {
                    stalled = now + 1_500;
                }
                let told = offset + now * 999 / 1000;
                clock.observe(at(now.max(stalled) + s.below(300)), at(told));
                assert!(clock.is_believed(), "{seed}");
            }
        }
    }

    #[test]
    fn a_clock_that_runs_slowly_is_found_out() {
        for percent in [50, 80, 90] {
            let mut clock = PeerClock::default();
            let left = (0..120_000).step_by(20).find(|ms| {
                clock.observe(at(*ms), at(ms * percent / 100));
                !clock.is_believed()
            });
            println!("a clock at {percent} % is found out after {left:?} ms");
            assert!(left.is_some_and(|ms| ms < 60_000), "{percent} %: {left:?}");
        }
    }

    #[test]
    fn any_times_are_taken() {
        let mut clock = PeerClock::default();
        let s = &mut Stream::new(1, "times");
        for _ in 0..10_000 {
            let time = |s: &mut Stream| Time::from_nanos(s.next_u64() >> s.below(64));
            let (now, told) = (time(s), time(s));
            clock.observe(now, told);
        }
    }
}
