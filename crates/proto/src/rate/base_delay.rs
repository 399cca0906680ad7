use fontis_base::{Duration, Time};

/// How long a minimum is trusted: half of it while a new one is gathered.
const HALF_WINDOW: Duration = Duration::from_secs(6);

/// The least one-way delay of the last six to twelve seconds: the path without its queue.
#[derive(Clone, Debug, Default)]
pub(super) struct BaseDelay {
    current: Option<i64>,
    previous: Option<i64>,
    since: Time,
}

impl BaseDelay {
    /// Takes a delay and returns the queueing delay: what it exceeds the least by.
    pub(super) fn queueing(&mut self, now: Time, one_way_ns: i64) -> Duration {
        if now.since(self.since) > HALF_WINDOW {
            self.previous = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(one_way_ns, |least| least.min(one_way_ns)));
        let base = [self.current, self.previous].into_iter().flatten().min().unwrap_or(one_way_ns);
        Duration::from_nanos(u64::try_from(one_way_ns.saturating_sub(base)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_path_is_believed_after_a_while() {
        let mut base = BaseDelay::default();
        let at = |s| Time::ZERO + Duration::from_secs(s);
        assert_eq!(base.queueing(at(7), -500), Duration::ZERO);
        assert_eq!(base.queueing(at(8), 500).as_nanos(), 1000);
        base.queueing(at(14), 500);
        assert_eq!(base.queueing(at(21), 500), Duration::ZERO);
    }
}
