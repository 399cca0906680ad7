use fontis_base::{Duration, Time};

/// How long a minimum is trusted: half of it while a new one is gathered.
const HALF_WINDOW: Duration = Duration::from_secs(10);

/// The least one-way delay of the last ten to twenty seconds: the path without its queue.
#[derive(Clone, Debug, Default)]
pub(super) struct BaseDelay {
    current: Option<i64>,
    previous: Option<i64>,
    since: Time,
    /// What a delay exceeds the least by without a queue, in nanoseconds.
    jitter: i64,
}

impl BaseDelay {
    /// Takes a delay. By how much it is less than the least that was known.
    pub(super) fn observe(&mut self, now: Time, one_way_ns: i64) -> Duration {
        let known = self.least().unwrap_or(one_way_ns);
        if now.since(self.since) > HALF_WINDOW {
            self.previous = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(one_way_ns, |least| least.min(one_way_ns)));
        nanoseconds(known.saturating_sub(one_way_ns))
    }

    /// The least delay of late.
    fn least(&self) -> Option<i64> {
        [self.current, self.previous].into_iter().flatten().min()
    }

    /// The path has become longer: this is its delay.
    pub(super) fn accept(&mut self, now: Time, one_way_ns: i64) {
        *self = Self { current: Some(one_way_ns), previous: None, since: now, ..*self };
    }

    /// Delays are so much longer at times without a queue.
    pub(super) fn set_jitter(&mut self, jitter: Duration) {
        self.jitter = jitter.as_nanos() as i64;
    }

    /// The queueing delay of a packet with this delay: what it exceeds the least and the jitter by.
    pub(super) fn queueing(&self, one_way_ns: i64) -> Duration {
        self.waiting(one_way_ns.saturating_sub(self.jitter))
    }

    /// What a packet with this delay has waited, in a queue or otherwise: what it exceeds the least
    /// by.
    pub(super) fn waiting(&self, one_way_ns: i64) -> Duration {
        nanoseconds(one_way_ns.saturating_sub(self.least().unwrap_or(one_way_ns)))
    }
}

/// So many nanoseconds, or none if they are fewer.
fn nanoseconds(count: i64) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_path_is_believed_after_a_while() {
        let mut base = BaseDelay::default();
        let at = |s| Time::ZERO + Duration::from_secs(s);
        base.observe(at(11), -500);
        base.observe(at(12), 500);
        assert_eq!((base.queueing(-500), base.queueing(500).as_nanos()), (Duration::ZERO, 1000));
        base.observe(at(22), 500);
        base.observe(at(33), 500);
        assert_eq!(base.queueing(500), Duration::ZERO);
    }
}
