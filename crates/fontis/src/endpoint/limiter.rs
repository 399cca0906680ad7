use fontis_base::{Duration, Time};

/// The time whose work may be done at once.
const BURST: Duration = Duration::from_secs(1);

/// A limiter of work for strangers.
#[derive(Debug)]
pub(super) struct Limiter {
    /// The number a second, and at once.
    per_second: u64,
    /// The time at which the work so far is due; no earlier than now, if there was none for long.
    next: Time,
}

impl Limiter {
    pub(super) const fn new(per_second: u64) -> Self {
        Self { per_second, next: Time::ZERO }
    }

    pub(super) fn allows(&mut self, now: Time) -> bool {
        self.next = self.next.max(now);
        let allowed = self.is_free(now);
        if allowed {
            self.next += BURST / self.per_second;
        }
        allowed
    }

    /// Whether [`allows`](Self::allows) would allow one.
    pub(super) fn is_free(&self, now: Time) -> bool {
        self.next <= now + BURST
    }

    /// Whether it allows as many at once as a new one.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.next <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_second_of_an_endpoint_is_as_good_as_any_other() {
        let mut limiter = Limiter::new(100);
        let allowed = (0..1000).filter(|_| limiter.allows(Time::ZERO)).count();
        assert!((100..=101).contains(&allowed), "{allowed} at once");
    }

    #[test]
    fn answers_to_strangers_are_bounded() {
        let mut limiter = Limiter::new(200);
        let start = Time::ZERO + Duration::from_secs(10);
        let mut allowed = 0;
        for millisecond in 0..5000 {
            for _ in 0..10 {
                allowed += u64::from(limiter.allows(start + Duration::from_millis(millisecond)));
            }
        }
        assert!((1100..=1210).contains(&allowed), "{allowed} in five seconds, 200 of them at once");
    }
}
