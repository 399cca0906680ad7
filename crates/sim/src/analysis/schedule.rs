//! Schedulers over several paths in a model without loss or queues (Sarwar 2014, chapter 7): each
//! path has a constant delay, and sends what fits that delay once in that time.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use fontis_base::Time;
use fontis_proto::scheduler::plan::{PlanPath, plan};
use fontis_proto::scheduler::{DataView, PathView, SchedulerKind};

use super::blocking::BlockingPath;

/// Paths, with delays in milliseconds and the packets that each sends in its delay, and the buffer
/// of the receiver in packets.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleModel {
    /// The paths.
    pub paths: Vec<PlanPath>,
    /// Packets that may wait at the receiver for others.
    pub buffer: u64,
}

/// Whose delay is taken for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misjudged {
    /// That of the slowest path. Its packets for a delay are those for the real one.
    Slowest,
    /// That of every path; their packets for a delay are those for the real one.
    All,
    /// That of every path, and the packets of each are counted for the delay that is believed.
    AllWithWindows,
}

/// Packets that leave together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSend {
    /// The path.
    pub path: usize,
    /// When they leave, and when they arrive.
    pub times: [u64; 2],
    /// Their numbers, from 1.
    pub units: Range<u64>,
}

/// The receiver after the arrivals of a millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInstant {
    /// Packets that the application gets.
    pub delivered: Range<u64>,
    /// Packets that wait for others.
    pub waiting: u64,
    /// Packets on their way.
    pub in_flight: u64,
}

/// What happened in a run of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRun {
    /// What left, in order.
    pub sends: Vec<ModelSend>,
    /// Each millisecond, from 0 to the run's last.
    pub instants: Vec<ModelInstant>,
}

/// A row of the thesis's Tables 7.1 and 7.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    /// When packets left, and when the row's packets arrived.
    pub times: [u64; 2],
    /// What each path sent.
    pub sends: Vec<Range<u64>>,
    /// What arrived on each path.
    pub arrivals: Vec<Range<u64>>,
    /// What the application got.
    pub delivered: Range<u64>,
    /// What waits in the buffer.
    pub waiting: u64,
}

/// A path of the model: the packets of so many bytes that it sends in its delay are C = B·D ÷ 8S.
pub fn model_path(path: &BlockingPath, bytes: u32) -> PlanPath {
    let units = path.rate * path.delay / (8.0 * f64::from(bytes));
    PlanPath { delay: ((path.delay * 1e3).round() as u64).max(1), units }
}

impl ScheduleModel {
    /// A run of so many milliseconds in which the paths send in turn what Equation 7.1 allows. The
    /// sender knows the receiver's buffer without a delay, as in Table 7.1; turns begin anew with
    /// the first path.
    pub fn round_robin(&self, span: u64) -> ModelRun {
        let mut carried = vec![0.0; self.paths.len()];
        let mut next = 1;
        self.run(span, |now, waiting, sends| {
            let window = self.buffer.saturating_sub(waiting);
            let mut views = Vec::with_capacity(self.paths.len());
            for (path, carried) in self.paths.iter().zip(&mut carried) {
                let is_due = now % path.delay == 0;
                *carried = if is_due { *carried % 1.0 + path.units } else { *carried };
                let most = if is_due { (*carried as u64).min(window) } else { 0 };
                views.push(PathView { window: most, is_usable: true, ..PathView::default() });
            }
            let mut scheduler = SchedulerKind::RoundRobin.start();
            // The peer's window limits each path, not all of them together.
            let data = |first| DataView {
                first,
                end: u64::MAX,
                unit: 1,
                credit: u64::MAX,
                ..DataView::default()
            };
            while let Some(chosen) = scheduler.next(Time::ZERO, &views, &data(next)) {
                views[chosen.path].in_flight += 1;
                sends.push((chosen.path, chosen.unit));
                next += 1;
            }
        })
    }

    /// A run of so many milliseconds by a plan that was made for paths as they are believed to be.
    /// The buffer does not limit it: if they are as believed, nothing waits.
    pub fn planned(&self, believed: &[PlanPath], span: u64) -> ModelRun {
        let longest = believed.iter().map(|path| path.delay).max().unwrap_or(0);
        let mut blocks: BTreeMap<u64, Vec<(usize, Range<u64>)>> = BTreeMap::new();
        for block in plan(believed, 1, span + longest) {
            blocks.entry(block.sent).or_default().push((block.path, block.units));
        }
        self.run(span, |now, _, sends| {
            for (path, units) in blocks.remove(&now).unwrap_or_default() {
                sends.extend(units.map(|unit| (path, unit)));
            }
        })
    }

    /// The paths as a sender sees them that takes delays for longer by this share of them.
    pub fn misjudged(&self, error: f64, whose: Misjudged) -> Vec<PlanPath> {
        let longest = self.paths.iter().map(|path| path.delay).max().unwrap_or(0);
        let believed = |path: &PlanPath| {
            let errs = whose != Misjudged::Slowest || path.delay == longest;
            let factor = if errs { 1.0 + error } else { 1.0 };
            let window = if whose == Misjudged::AllWithWindows { factor } else { 1.0 };
            let delay = (path.delay as f64 * factor).round() as u64;
            PlanPath { delay: delay.max(1), units: path.units * window }
        };
        self.paths.iter().map(believed).collect()
    }

    /// Runs; `send` is told the time and what waits, and says what leaves on which path.
    fn run(&self, span: u64, mut send: impl FnMut(u64, u64, &mut Vec<(usize, u64)>)) -> ModelRun {
        let mut run = ModelRun { sends: Vec::new(), instants: Vec::new() };
        let mut flying: BTreeMap<u64, Vec<Range<u64>>> = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        let (mut next, mut sent, mut arrived) = (1, 0, 0);
        let mut leaving = Vec::new();
        for now in 0..=span {
            for units in flying.remove(&now).unwrap_or_default() {
                arrived += units.end - units.start;
                waiting.extend(units);
            }
            let begin = next;
            while waiting.remove(&next) {
                next += 1;
            }
            if now < span {
                send(now, waiting.len() as u64, &mut leaving);
            }
            for (path, unit) in leaving.drain(..) {
                sent += 1;
                let times = [now, now + self.paths[path].delay];
                let last = run.sends.last_mut().filter(|last: &&mut ModelSend| {
                    (last.path, last.times, last.units.end) == (path, times, unit)
                });
                match last {
                    Some(last) => last.units.end += 1,
                    None => run.sends.push(ModelSend { path, times, units: unit..unit + 1 }),
                }
                flying.entry(times[1]).or_default().push(unit..unit + 1);
            }
            run.instants.push(ModelInstant {
                delivered: begin..next,
                waiting: waiting.len() as u64,
                in_flight: sent - arrived,
            });
        }
        run
    }
}

impl ModelRun {
    /// Packets that the application got by the end, in each millisecond.
    pub fn goodput(&self) -> f64 {
        let last = self.instants.last().map_or(1, |instant| instant.delivered.end);
        (last - 1) as f64 / self.span()
    }

    /// The mean of the packets that waited.
    pub fn mean_waiting(&self) -> f64 {
        self.instants.iter().map(|instant| instant.waiting as f64).sum::<f64>() / self.span()
    }

    /// The most packets that waited.
    pub fn most_waiting(&self) -> u64 {
        self.instants.iter().map(|instant| instant.waiting).max().unwrap_or(0)
    }

    /// The mean of the packets on their way.
    pub fn mean_in_flight(&self) -> f64 {
        self.instants.iter().map(|instant| instant.in_flight as f64).sum::<f64>() / self.span()
    }

    /// The mean difference in milliseconds of the gaps before two successive packets, as the
    /// application gets them (Sarwar 2014, section 4.4).
    pub fn jitter(&self) -> f64 {
        let (mut last, mut gap): (Option<u64>, Option<u64>) = (None, None);
        let (mut sum, mut count) = (0, 0u64);
        for (now, instant) in (0..).zip(&self.instants) {
            for _ in instant.delivered.clone() {
                let next = last.map(|last| now - last);
                if let (Some(gap), Some(next)) = (gap, next) {
                    sum += next.abs_diff(gap);
                    count += 1;
                }
                (last, gap) = (Some(now), next);
            }
        }
        sum as f64 / count.max(1) as f64
    }

    /// The longest time in which nothing leaves: from a departure to the next one.
    pub fn longest_silence(&self) -> [u64; 2] {
        let pairs = self.sends.windows(2).map(|pair| [pair[0].times[0], pair[1].times[0]]);
        // Of equal ones the first.
        let longer = |a: [u64; 2], b: [u64; 2]| if b[1] - b[0] > a[1] - a[0] { b } else { a };
        pairs.reduce(longer).unwrap_or_default()
    }

    /// The first rows of a table of so many paths with a row for each `step` milliseconds.
    pub fn rows(&self, paths: usize, step: u64) -> Vec<ScheduleRow> {
        let step = step.max(1);
        let last = self.instants.len() as u64 - 1;
        let of = |path: usize, is_in: &dyn Fn(&ModelSend) -> bool| {
            let mine = self.sends.iter().filter(|send| send.path == path && is_in(send));
            let ranges = mine.map(|send| send.units.clone());
            ranges.reduce(|a, b| a.start..b.end).unwrap_or(0..0)
        };
        let row = |row: u64| {
            let [from, to] = [row * step, (row + 1) * step];
            let leaves = |send: &ModelSend| (from..to).contains(&send.times[0]);
            let arrives = |send: &ModelSend| send.times[1] > from && send.times[1] <= to;
            let instants = &self.instants[from as usize + 1..=to as usize];
            let delivered = instants.iter().map(|instant| instant.delivered.clone());
            ScheduleRow {
                times: [from, to],
                sends: (0..paths).map(|path| of(path, &leaves)).collect(),
                arrivals: (0..paths).map(|path| of(path, &arrives)).collect(),
                delivered: delivered.reduce(|a, b| a.start..b.end).unwrap_or(0..0),
                waiting: instants.last().map_or(0, |instant| instant.waiting),
            }
        };
        (0..last / step).map(row).collect()
    }

    fn span(&self) -> f64 {
        (self.instants.len() as f64 - 1.0).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario T7: 1.6 Mbit/s and 20 ms beside 400 kbit/s and 200 ms, packets of 1000 bytes.
    fn t7() -> ScheduleModel {
        let path = |rate, delay| model_path(&BlockingPath { rate, delay }, 1000);
        ScheduleModel { paths: vec![path(1.6e6, 0.01), path(4e5, 0.1)], buffer: 10 }
    }

    /// A row with numbers of packets as the tables print them, first and last; zeros are none.
    fn row(
        sent: u64,
        sends: [[u64; 2]; 2],
        second: [u64; 2],
        delivered: [u64; 2],
        waiting: u64,
    ) -> ScheduleRow {
        let range = |[first, last]: [u64; 2]| if last == 0 { 0..0 } else { first..last + 1 };
        ScheduleRow {
            times: [sent, sent + 10],
            sends: sends.map(range).to_vec(),
            arrivals: vec![range(sends[0]), range(second)],
            delivered: range(delivered),
            waiting,
        }
    }

    fn same(rows: &[ScheduleRow], wanted: &[ScheduleRow]) {
        let plain = |row: &ScheduleRow| ScheduleRow {
            // Nothing is delivered: where the next begins is of no matter.
            delivered: if row.delivered.is_empty() { 0..0 } else { row.delivered.clone() },
            ..row.clone()
        };
        assert_eq!(rows.iter().map(plain).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn round_robin_gives_table_7_1() {
        let none = [0, 0];
        let mut wanted = vec![row(0, [[1, 2], [3, 7]], none, [1, 2], 0)];
        for step in 1..=5 {
            let first = 6 + step * 2;
            wanted.push(row(step * 10, [[first, first + 1], none], none, none, step * 2));
        }
        wanted.extend((6..=8).map(|step| row(step * 10, [none; 2], none, none, 10)));
        wanted.push(row(90, [none; 2], [3, 7], [3, 17], 0));
        let run = t7().round_robin(100);
        same(&run.rows(2, 10), &wanted);
        assert_eq!(t7().round_robin(1000).longest_silence(), [50, 100]);
    }

    #[test]
    fn the_plan_gives_table_7_2() {
        let none = [0, 0];
        let mut wanted = vec![row(0, [[1, 2], [21, 25]], none, [1, 2], 0)];
        for step in 1..=8 {
            let units = [1 + step * 2, 2 + step * 2];
            wanted.push(row(step * 10, [units, none], none, units, 0));
        }
        wanted.push(row(90, [[19, 20], none], [21, 25], [19, 25], 0));
        let model = t7();
        same(&model.planned(&model.paths, 100).rows(2, 10), &wanted);
    }

    /// Mbit/s of packets of 1000 bytes.
    fn mbps(run: &ModelRun) -> f64 {
        run.goodput() * 8.0
    }

    #[test]
    fn round_robin_carries_two_thirds_of_what_the_plan_carries_and_more_waits() {
        let model = t7();
        let (turns, planned) = (model.round_robin(10_000), model.planned(&model.paths, 10_000));
        assert!((mbps(&turns) - 1.36).abs() < 1e-9, "{}", mbps(&turns));
        assert!((mbps(&planned) - 2.0).abs() < 1e-9, "{}", mbps(&planned));
        assert_eq!((planned.most_waiting(), turns.most_waiting()), (0, 10));
        // Two packets are on their way over the first path at all times, and five over the other.
        assert!((planned.mean_in_flight() - 7.0).abs() < 0.01, "{}", planned.mean_in_flight());
        assert!((turns.mean_in_flight() - 6.2).abs() < 0.01, "{}", turns.mean_in_flight());
        assert!((turns.mean_waiting() - 6.0).abs() < 0.01, "{}", turns.mean_waiting());
        // A burst changes the gap by 10 ms twice: 20 bursts among 50 packets.
        assert!((planned.jitter() - 8.0).abs() < 0.1, "{}", planned.jitter());
        assert!((turns.jitter() - 200.0 / 17.0).abs() < 0.1, "{}", turns.jitter());
    }

    #[test]
    fn an_error_of_the_slow_path_alone_costs_what_that_path_carries_less() {
        for error in [0.0, 0.1, 0.25, 0.5, 1.0] {
            let model = t7();
            let run = model.planned(&model.misjudged(error, Misjudged::Slowest), 100_000);
            let wanted = 1.6 + 0.4 / (1.0 + error);
            assert!((mbps(&run) - wanted).abs() < 0.01, "error {error}: {}", mbps(&run));
            assert!(run.most_waiting() <= 10, "error {error}: {}", run.most_waiting());
        }
    }

    #[test]
    fn an_error_of_all_slows_all_and_with_windows_counted_anew_nothing() {
        for error in [0.1, 0.5, 1.0] {
            let model = t7();
            let goodput = |whose| mbps(&model.planned(&model.misjudged(error, whose), 100_000));
            let (kept, anew) = (goodput(Misjudged::All), goodput(Misjudged::AllWithWindows));
            assert!((kept - 2.0 / (1.0 + error)).abs() < 0.01, "error {error}: {kept}");
            assert!((anew - 2.0).abs() < 0.01, "error {error}: {anew}");
        }
    }
}
