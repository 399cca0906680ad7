use fontis_base::{Duration, Rate, Time};

/// The longest burst, in time at the pacing rate: short against any queue, long enough for
/// segmentation offload.
const BURST: Duration = Duration::from_micros(500);
/// How much lateness of the driver is made up for by sending faster afterwards, at least.
const CATCH_UP: Duration = Duration::from_millis(4);
/// The most, for drivers that are always late: some systems wake a thread only every 16 ms.
const MOST_CATCH_UP: Duration = Duration::from_millis(25);

/// Spreads packets in time: bursts bounded in time, and no packet early by more than a burst.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// When all that was sent would have left at the pacing rate.
    next: Time,
    /// Whether a burst is under way.
    open: bool,
    /// How late bursts begin, smoothed.
    usual: Duration,
}

impl Pacer {
    pub(super) const fn new() -> Self {
        Self { next: Time::ZERO, open: false, usual: Duration::ZERO }
    }

    /// Whether a packet may leave now.
    pub(super) fn ready(&mut self, now: Time) -> bool {
        if self.next <= now {
            if !self.open && self.has_begun() {
                let late = now.since(self.next).min(MOST_CATCH_UP);
                self.usual = (self.usual * 7 + late) / 8;
            }
            self.open = true;
        } else if self.next > now + BURST {
            self.open = false;
        }
        self.open
    }

    /// How much lateness is made up for. A pause once in a while is not: what would have left
    /// meanwhile would meet others' packets in a queue all at once.
    pub(super) fn catch_up(&self) -> Duration {
        (self.usual + self.usual / 4).clamp(CATCH_UP, MOST_CATCH_UP)
    }

    /// When the next burst may begin.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// Whether anything has left yet.
    pub(super) fn has_begun(&self) -> bool {
        self.next > Time::ZERO
    }

    /// A packet of `size` bytes left.
    pub(super) fn sent(&mut self, now: Time, size: u32, rate: Rate) {
        let earliest = now - self.catch_up();
        self.next =
            self.next.max(earliest) + rate.time_for(u64::from(size)).min(Duration::from_secs(10));
        if self.next > now + BURST {
            self.open = false;
        }
    }

    /// The rate turns out to be another than what was sent so far was charged at: what is still
    /// owed is charged anew.
    pub(super) fn recharge(&mut self, now: Time, before: Rate, after: Rate) {
        if self.next > now {
            let owed = before.bytes_in(self.next.since(now));
            self.next = now + after.time_for(owed).min(Duration::from_secs(10));
        }
    }

    /// Forgets credit and debt: sending starts anew after a pause.
    pub(super) fn restart(&mut self, now: Time) {
        self.next = self.next.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_second_holds_the_rate() {
        let rate = Rate::from_mbps(100);
        let mut pacer = Pacer::new();
        let (mut now, mut bytes) = (Time::ZERO, 0u64);
        while now < Time::ZERO + Duration::from_secs(1) {
            while pacer.ready(now) {
                pacer.sent(now, 1250, rate);
                bytes += 1250;
            }
            now = pacer.next();
        }
        let expected = rate.bytes_in(Duration::from_secs(1));
        assert!(bytes.abs_diff(expected) <= 10 * 1250, "{bytes} of {expected}");
    }

    #[test]
    fn a_driver_that_is_always_late_holds_the_rate_all_the_same() {
        let rate = Rate::from_mbps(100);
        for tick in [1, 5, 10, 16, 20] {
            let mut pacer = Pacer::new();
            let (mut now, mut bytes) = (Time::ZERO, 0u64);
            let mut second = |bytes: &mut u64| {
                let end = now + Duration::from_secs(1);
                while now < end {
                    while pacer.ready(now) {
                        pacer.sent(now, 1250, rate);
                        *bytes += 1250;
                    }
                    now += Duration::from_millis(tick);
                }
            };
            // In the first the driver becomes known.
            second(&mut bytes);
            bytes = 0;
            second(&mut bytes);
            let expected = rate.bytes_in(Duration::from_secs(1));
            assert!(bytes.abs_diff(expected) <= expected / 50, "{tick} ms: {bytes} of {expected}");
        }
    }

    #[test]
    fn lateness_is_made_up_for_only_so_far() {
        let rate = Rate::from_mbps(100);
        let mut pacer = Pacer::new();
        pacer.sent(Time::ZERO, 1250, rate);
        let now = Time::ZERO + Duration::from_secs(1);
        let mut burst = 0;
        while pacer.ready(now) {
            pacer.sent(now, 1250, rate);
            burst += 1;
        }
        assert!((40..=50).contains(&burst), "4.5 ms at 100 µs a packet, not {burst}");
    }
}
