use std::collections::VecDeque;
use std::time::Duration;

/// Times that are kept, and those without which nothing is usual.
const KEPT: usize = 32;
const FEW: usize = 4;

/// How long the latest blocks took.
#[derive(Debug, Default)]
pub(super) struct Times(VecDeque<Duration>);

impl Times {
    pub(super) fn add(&mut self, took: Duration) {
        self.0.push_back(took);
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// The median, once there are some.
    pub(super) fn usual(&self) -> Option<Duration> {
        let mut times: Vec<Duration> = self.0.iter().copied().collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().filter(|_| times.len() >= FEW)
    }

    /// Whether a block that has taken so long takes much longer than others; five seconds are much
    /// while nothing is usual.
    pub(super) fn is_late(&self, so_far: Duration) -> bool {
        const LATE: u32 = 4;
        so_far > self.usual().map_or(Duration::from_secs(5), |usual| usual * LATE)
    }

    /// How long a block may take at all.
    pub(super) fn patience(&self) -> Duration {
        const AT_FIRST: Duration = Duration::from_secs(600);
        const LEAST: Duration = Duration::from_secs(30);
        const MUCH: u32 = 8;
        self.usual().map_or(AT_FIRST, |usual| (usual * MUCH).max(LEAST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_depends_on_the_latest_blocks() {
        let mut times = Times::default();
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        assert!(!times.is_late(second) && times.is_late(minute));
        assert!(times.patience() > minute);
        (0..FEW).for_each(|_| times.add(Duration::from_millis(100)));
        assert!(times.is_late(second) && times.patience() == Duration::from_secs(30));
        (0..KEPT).for_each(|_| times.add(minute));
        assert!(!times.is_late(2 * minute) && times.patience() == 8 * minute);
    }
}
