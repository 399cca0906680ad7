//! Schedulers that may leave a slow path idle.

use fontis_base::{Duration, Time};

use super::contract::{Assignment, DataView, PathView, Scheduler};
use super::simple::shortest;

/// Earliest completion first (Lim et al., CoNEXT 2017, Algorithm 1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ecf {
    is_waiting: bool,
}

impl Scheduler for Ecf {
    fn next(&mut self, _now: Time, paths: &[PathView], data: &DataView) -> Option<Assignment> {
        if data.first >= data.end {
            return None;
        }
        let unit = data.first;
        let fast = shortest(paths, |path| path.is_usable)?;
        if paths[fast].has_room() {
            return Some(Assignment { path: fast, unit });
        }
        let slow = shortest(paths, PathView::has_room)?;
        let (f, s) = (&paths[fast], &paths[slow]);
        // Beta, the hysteresis, is 1/4 there.
        let beta = if self.is_waiting { 0.25 } else { 0.0 };
        let margin = f.deviation.max(s.deviation).as_secs_f64();
        let (rtt_fast, rtt_slow) = (f.rtt.as_secs_f64(), s.rtt.as_secs_f64());
        let windows = |path: &PathView| data.pending as f64 / path.window.max(1) as f64;
        let is_worth = (1.0 + windows(f)) * rtt_fast < (1.0 + beta) * (rtt_slow + margin);
        if is_worth && windows(s) * rtt_slow >= 2.0 * rtt_fast + margin {
            self.is_waiting = true;
            return None;
        }
        self.is_waiting &= is_worth;
        Some(Assignment { path: slow, unit })
    }

    fn copy(&self) -> Box<dyn Scheduler> {
        Box::new(*self)
    }
}

/// BLEST (Ferlin et al., IFIP Networking 2016): a slow path gets a unit only if the fast one can
/// send all that it will want to within the slow one's round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blest {
    /// The factor on the estimate of what the fast path will send.
    lambda: f64,
    /// When the factor was last changed, and whether the window has blocked since.
    changed: Time,
    is_blocked: bool,
}

/// The step of the factor.
const STEP: f64 = 0.01;

impl Default for Blest {
    fn default() -> Self {
        Self { lambda: 1.0, changed: Time::ZERO, is_blocked: false }
    }
}

impl Scheduler for Blest {
    fn next(&mut self, now: Time, paths: &[PathView], data: &DataView) -> Option<Assignment> {
        if data.first >= data.end {
            return None;
        }
        let unit = data.first;
        let fast = shortest(paths, |path| path.is_usable)?;
        let f = &paths[fast];
        self.is_blocked |= data.credit == 0;
        if now.since(self.changed) >= f.rtt.max(Duration::from_millis(1)) {
            self.lambda = if self.is_blocked { self.lambda + STEP } else { self.lambda - STEP };
            self.lambda = self.lambda.clamp(1.0, 2.0);
            (self.changed, self.is_blocked) = (now, false);
        }
        if f.has_room() {
            return Some(Assignment { path: fast, unit });
        }
        let slow = shortest(paths, PathView::has_room)?;
        let s = &paths[slow];
        let rounds = s.rtt.as_secs_f64() / f.rtt.as_secs_f64().max(1e-6);
        let unit_bytes = data.unit.max(1) as f64;
        let window = f.window as f64 / unit_bytes;
        // Congestion avoidance adds a packet in each of the rounds.
        let wanted = unit_bytes * (window + (rounds - 1.0) / 2.0) * rounds * self.lambda;
        let left = data.buffer as f64 - (s.in_flight as f64 + unit_bytes);
        (wanted <= left).then_some(Assignment { path: slow, unit })
    }

    fn copy(&self) -> Box<dyn Scheduler> {
        Box::new(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::SchedulerKind;
    use super::*;

    fn paths(fast_flight: u64) -> [PathView; 2] {
        let path = |rtt, window, in_flight| PathView {
            delay: Duration::from_millis(rtt / 2),
            rtt: Duration::from_millis(rtt),
            deviation: Duration::ZERO,
            least: Duration::from_millis(rtt),
            window,
            in_flight,
            is_usable: true,
        };
        [path(20, 10_000, fast_flight), path(200, 10_000, 0)]
    }

    fn next(kind: SchedulerKind, flight: u64, pending: u64, buffer: u64) -> Option<usize> {
        let data = DataView {
            end: pending / 1000,
            unit: 1000,
            pending,
            credit: buffer,
            buffer,
            ..DataView::default()
        };
        Some(kind.start().next(Time::ZERO, &paths(flight), &data)?.path)
    }

    #[test]
    fn ecf_waits_for_the_fast_path_if_little_is_left_and_not_if_much_is() {
        assert_eq!(next(SchedulerKind::Ecf, 0, 20_000, 1 << 20), Some(0));
        // 20 kB are three windows of the fast path: 60 ms, before the slow one's 200.
        assert_eq!(next(SchedulerKind::Ecf, 10_000, 20_000, 1 << 20), None);
        // 200 kB take it 420 ms.
        assert_eq!(next(SchedulerKind::Ecf, 10_000, 200_000, 1 << 20), Some(1));
    }

    #[test]
    fn blest_uses_the_slow_path_only_if_the_window_does_not_block() {
        assert_eq!(next(SchedulerKind::Blest, 0, 200_000, 64_000), Some(0));
        // The fast path sends (10 + 4.5) packets in each of ten rounds: 145 kB.
        assert_eq!(next(SchedulerKind::Blest, 10_000, 200_000, 145_000), None);
        assert_eq!(next(SchedulerKind::Blest, 10_000, 200_000, 146_000), Some(1));
    }
}
