use fontis_base::Time;

use super::contract::{Assignment, DataView, PathView, Scheduler};

/// Each path in turn fills its window (Sarwar 2014, Equation 7.1).
#[derive(Clone, Debug, Default)]
pub(super) struct RoundRobin {
    turn: usize,
}

impl Scheduler for RoundRobin {
    fn next(&mut self, _now: Time, paths: &[PathView], data: &DataView) -> Option<Assignment> {
        if data.first >= data.end {
            return None;
        }
        let mut order = (0..paths.len()).map(|n| (self.turn + n) % paths.len());
        let path = order.find(|path| paths[*path].has_room())?;
        // A turn ends when the path's window is full, or the peer's.
        let is_last = data.credit < 2 * data.unit;
        self.turn = (path + usize::from(is_last)) % paths.len();
        Some(Assignment { path, unit: data.first })
    }

    fn copy(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

/// The path with the least round-trip time of those with room.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowestDelay;

impl Scheduler for LowestDelay {
    fn next(&mut self, _now: Time, paths: &[PathView], data: &DataView) -> Option<Assignment> {
        let path = shortest(paths, PathView::has_room)?;
        (data.first < data.end).then_some(Assignment { path, unit: data.first })
    }

    fn copy(&self) -> Box<dyn Scheduler> {
        Box::new(*self)
    }
}

/// The path with the least round-trip time of those that are asked for.
pub(super) fn shortest(paths: &[PathView], is_asked: impl Fn(&PathView) -> bool) -> Option<usize> {
    let asked = paths.iter().enumerate().filter(|(_, path)| is_asked(path));
    asked.min_by_key(|(_, path)| path.rtt).map(|(at, _)| at)
}

/// Everything on every path.
#[derive(Clone, Debug, Default)]
pub(super) struct Redundant {
    /// The next unit of each path.
    next: Vec<u64>,
}

impl Scheduler for Redundant {
    fn next(&mut self, _now: Time, paths: &[PathView], data: &DataView) -> Option<Assignment> {
        self.next.resize(paths.len(), data.lowest);
        for (next, path) in self.next.iter_mut().zip(paths) {
            // A path that comes back begins with what is new.
            *next = (*next).max(if path.is_usable { data.lowest } else { data.first });
        }
        let ready = |path: &usize| paths[*path].has_room() && self.next[*path] < data.end;
        // The one that is behind, so that what is new leaves first where there is room for it.
        let path = (0..paths.len()).filter(ready).max_by_key(|path| self.next[*path])?;
        let unit = self.next[path];
        self.next[path] += 1;
        Some(Assignment { path, unit })
    }

    fn copy(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Duration;

    use super::super::kind::SchedulerKind;
    use super::*;

    fn path(rtt: u64, window: u64) -> PathView {
        let rtt = Duration::from_millis(rtt);
        PathView { delay: rtt / 2, rtt, window, is_usable: true, ..PathView::default() }
    }

    /// The paths of the units that leave, until none may.
    fn fill(kind: SchedulerKind, mut paths: Vec<PathView>, end: u64) -> Vec<(usize, u64)> {
        let mut scheduler = kind.start();
        let view = DataView { end, unit: 1000, credit: 1 << 20, ..DataView::default() };
        let (mut data, mut sent) = (view, Vec::new());
        while let Some(Assignment { path, unit }) = scheduler.next(Time::ZERO, &paths, &data) {
            assert!(paths[path].has_room(), "{kind}");
            paths[path].in_flight += data.unit;
            data.first = data.first.max(unit + 1);
            sent.push((path, unit));
        }
        sent
    }

    #[test]
    fn round_robin_fills_one_window_after_the_other() {
        let sent = fill(SchedulerKind::RoundRobin, vec![path(20, 2000), path(200, 3000)], 99);
        assert_eq!(sent, [(0, 0), (0, 1), (1, 2), (1, 3), (1, 4)]);
    }

    #[test]
    fn a_turn_ends_with_the_peers_window() {
        let mut scheduler = SchedulerKind::RoundRobin.start();
        let paths = [path(20, 9000), path(200, 9000)];
        let data = DataView { end: 99, unit: 1000, credit: 1500, ..DataView::default() };
        let mut turn = || scheduler.next(Time::ZERO, &paths, &data).map(|chosen| chosen.path);
        assert_eq!([turn(), turn(), turn()], [Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn the_lowest_delay_goes_first() {
        let sent = fill(SchedulerKind::LowestDelay, vec![path(200, 1000), path(20, 2000)], 99);
        assert_eq!(sent, [(1, 0), (1, 1), (0, 2)]);
    }

    #[test]
    fn redundant_sends_every_unit_on_every_path() {
        let mut sent = fill(SchedulerKind::Redundant, vec![path(20, 9000), path(200, 9000)], 3);
        sent.sort_unstable();
        assert_eq!(sent, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn no_scheduler_sends_where_there_is_no_room_or_nothing_to_send() {
        for kind in SchedulerKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
            assert!(fill(*kind, vec![path(20, 0), path(200, 0)], 9).is_empty(), "{kind}");
            assert!(fill(*kind, vec![path(20, 5000), path(200, 5000)], 0).is_empty(), "{kind}");
            let broken = PathView { is_usable: false, ..path(20, 5000) };
            let sent = fill(*kind, vec![broken, path(200, 5000)], 9);
            assert!(!sent.is_empty() && sent.iter().all(|(path, _)| *path == 1), "{kind}");
        }
    }
}
