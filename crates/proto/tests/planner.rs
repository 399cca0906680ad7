//! The plan of delay-aware scheduling against the thesis, in a model without loss or queues.
//!
//! Paths have constant delays and send their windows once a delay (Sarwar 2014, chapter 7); the
//! sender of the round robin knows the receiver's state without a delay, as Table 7.1 assumes.

use std::collections::BTreeSet;

use fontis_base::{Duration, Stream, Time};
use fontis_proto::scheduler::plan::{PlanBlock, PlanPath, period, plan};
use fontis_proto::scheduler::{DataView, PathView, SchedulerKind};

/// A row of the tables: when, what each path sent and what arrived on it, what the application got,
/// and what waits.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    sent: u64,
    sends: [Vec<u64>; 2],
    arrivals: [Vec<u64>; 2],
    delivered: Vec<u64>,
    waiting: usize,
}

/// Units that arrived, and those that wait for others.
#[derive(Default)]
struct Receiver {
    next: u64,
    waiting: BTreeSet<u64>,
}

impl Receiver {
    fn take(&mut self, units: &[u64]) -> Vec<u64> {
        self.waiting.extend(units);
        let begin = self.next;
        while self.waiting.remove(&(self.next + 1)) {
            self.next += 1;
        }
        (begin + 1..=self.next).collect()
    }
}

/// The table of the paths of scenario T7: 10 ms and two packets, 100 ms and five.
fn table(mut sends: impl FnMut(u64, &Receiver) -> [Vec<u64>; 2]) -> Vec<Row> {
    let mut receiver = Receiver::default();
    let mut slow: Vec<u64> = Vec::new();
    (0..10u64)
        .map(|step| {
            let sends = sends(step, &receiver);
            if step == 0 {
                slow.clone_from(&sends[1]);
            }
            let second = if step == 9 { slow.clone() } else { Vec::new() };
            let arrivals = [sends[0].clone(), second];
            let delivered = receiver.take(&[&arrivals[0][..], &arrivals[1]].concat());
            let waiting = receiver.waiting.len();
            Row { sent: step * 10, sends, arrivals, delivered, waiting }
        })
        .collect()
}

fn row(sent: u64, sends: [&[u64]; 2], second: &[u64], delivered: &[u64], waiting: usize) -> Row {
    let sends = sends.map(<[u64]>::to_vec);
    let arrivals = [sends[0].clone(), second.to_vec()];
    Row { sent, sends, arrivals, delivered: delivered.to_vec(), waiting }
}

fn range(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

#[test]
fn round_robin_gives_table_7_1() {
    const BUFFER: usize = 10;
    let mut scheduler = SchedulerKind::RoundRobin.start();
    let mut next = 1;
    let rows = table(|step, receiver| {
        let windows = [2, if step == 0 { 5 } else { 0 }];
        let mut paths = windows.map(|window| PathView {
            window,
            is_usable: true,
            rtt: Duration::from_millis(20),
            ..PathView::default()
        });
        let mut sends: [Vec<u64>; 2] = Default::default();
        // A blocked sender: the receiver's buffer holds no more.
        if receiver.waiting.len() >= BUFFER {
            return sends;
        }
        loop {
            let view = DataView { first: next, end: u64::MAX, unit: 1, ..DataView::default() };
            let data = DataView { credit: 100, ..view };
            let Some(chosen) = scheduler.next(Time::ZERO, &paths, &data) else { return sends };
            paths[chosen.path].in_flight += 1;
            sends[chosen.path].push(chosen.unit);
            next += 1;
        }
    });
    let mut wanted = vec![row(0, [&[1, 2], &range(3, 7)], &[], &[1, 2], 0)];
    for step in 1..=5 {
        let first = 6 + step * 2;
        let units = [first, first + 1];
        wanted.push(row(step * 10, [&units, &[]], &[], &[], step as usize * 2));
    }
    for step in 6..=8 {
        wanted.push(row(step * 10, [&[], &[]], &[], &[], 10));
    }
    wanted.push(row(90, [&[], &[]], &range(3, 7), &range(3, 17), 0));
    assert_eq!(rows, wanted);
}

const T7: [PlanPath; 2] = [PlanPath { delay: 10, units: 2.0 }, PlanPath { delay: 100, units: 5.0 }];

#[test]
fn the_plan_gives_table_7_2() {
    let blocks = plan(&T7, 1, period(&T7, 1000));
    let order: Vec<usize> = blocks.iter().map(|block| block.path).collect();
    assert_eq!(order, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let of = |path, sent| {
        let block = |block: &&PlanBlock| block.path == path && block.sent == sent;
        blocks.iter().find(block).map_or_else(Vec::new, |block| block.units.clone().collect())
    };
    let rows = table(|step, _| [of(0, step * 10), if step == 0 { of(1, 0) } else { Vec::new() }]);
    let mut wanted = vec![row(0, [&[1, 2], &range(21, 25)], &[], &[1, 2], 0)];
    for step in 1..=8 {
        let units = [1 + step * 2, 2 + step * 2];
        wanted.push(row(step * 10, [&units, &[]], &[], &units, 0));
    }
    wanted.push(row(90, [&[19, 20], &[]], &range(21, 25), &range(19, 25), 0));
    assert_eq!(rows, wanted);
}

/// What arrives if the plan is made with estimates and the paths are as they are: the times of
/// arrivals, and the units. A block leaves when the plan says.
fn arrivals(estimates: &[PlanPath], real: &[u64], until: u64) -> Vec<(u64, u64)> {
    let blocks = plan(estimates, 1, until).into_iter();
    let at = |block: PlanBlock| {
        let at = block.sent + real[block.path];
        block.units.map(move |unit| (at, unit))
    };
    let mut all: Vec<(u64, u64)> = blocks.flat_map(at).collect();
    all.sort_unstable();
    all
}

/// Units delivered in order by `until`.
fn in_order(arrivals: &[(u64, u64)], until: u64) -> u64 {
    let mut receiver = Receiver::default();
    for (_, unit) in arrivals.iter().take_while(|(at, _)| *at <= until) {
        receiver.take(&[*unit]);
    }
    receiver.next
}

#[test]
fn an_error_of_the_slow_paths_delay_costs_what_that_path_carries_less() {
    const SPAN: u64 = 100_000;
    for error in [0.0, 0.1, 0.25, 0.5, 1.0] {
        let mut estimates = T7;
        // The window is that of the real delay: what is sent in the delay that is believed.
        estimates[1].delay = (100.0 * (1.0 + error)) as u64;
        let all = arrivals(&estimates, &[10, 100], SPAN);
        // The slow path's blocks come early and wait; it sends fewer of them than it could.
        let units = in_order(&all, SPAN) as f64;
        // A packet of 1000 bytes in each millisecond is 8 Mbit/s.
        let goodput = units * 8.0 / SPAN as f64;
        let wanted = 1.6 + 0.4 / (1.0 + error);
        assert!((goodput - wanted).abs() < 0.01, "error {error}: {goodput} and {wanted}");
    }
}

#[test]
fn an_error_of_both_delays_without_new_windows_slows_both_and_with_them_nothing() {
    const SPAN: u64 = 100_000;
    for error in [0.1, 0.5, 1.0] {
        let scaled = |window: f64| {
            T7.map(|path| PlanPath {
                delay: (path.delay as f64 * (1.0 + error)) as u64,
                units: path.units * window,
            })
        };
        let goodput = |paths: &[PlanPath]| {
            let last = plan(paths, 1, SPAN).last().map_or(0, |block| block.units.end - 1);
            last as f64 * 8.0 / SPAN as f64
        };
        let wanted = 2.0 / (1.0 + error);
        let (kept, again) = (goodput(&scaled(1.0)), goodput(&scaled(1.0 + error)));
        assert!((kept - wanted).abs() < 0.01, "error {error}: {kept} and {wanted}");
        assert!((again - 2.0).abs() < 0.01, "error {error}, windows anew: {again}");
    }
}

#[test]
fn with_exact_delays_everything_arrives_in_order_over_any_paths() {
    for seed in 0..300 {
        let mut stream = Stream::new(seed, "planner");
        let path = |stream: &mut Stream| PlanPath {
            delay: 1 + stream.below(60),
            units: stream.below(8) as f64 + if stream.below(2) == 0 { stream.unit() } else { 0.0 },
        };
        let paths: Vec<PlanPath> = (0..1 + stream.below(4)).map(|_| path(&mut stream)).collect();
        let horizon = period(&paths, 5000);
        let first = 1 + stream.below(100);
        let blocks = plan(&paths, first, horizon);
        let mut next = first;
        let (mut last, mut units) = (0, vec![0.0; paths.len()]);
        for PlanBlock { path, sent, units: block } in blocks {
            let arrival = sent + paths[path].delay;
            assert!(arrival >= last && arrival <= horizon, "seed {seed}: {paths:?}");
            assert_eq!(sent % paths[path].delay, 0, "seed {seed}");
            assert_eq!(block.start, next, "seed {seed}: a unit is planned once");
            units[path] += (block.end - block.start) as f64;
            (next, last) = (block.end, arrival);
        }
        // N is the sum of T · C / D, up to what is carried.
        for (path, units) in paths.iter().zip(units) {
            let wanted = path.units * (horizon / path.delay) as f64;
            assert!((units - wanted).abs() < 1.0 + 1e-6, "seed {seed}: {units} and {wanted}");
        }
    }
}
