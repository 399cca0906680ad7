use std::collections::VecDeque;

use fontis_base::{Duration, IntervalSet, Time};

use super::contract::{Assignment, DataView, PathView, Scheduler};
use super::plan::{PlanPath, period, plan};

/// The finest step in which delays are told apart.
const STEP: Duration = Duration::from_millis(1);
/// The longest plan, in delays of the slowest path.
const LONGEST: u64 = 4;
/// The longest plan, in delays of the fastest path: a peer whose echoes lie makes it no longer.
const MOST_ROUNDS: u64 = 4096;
/// A plan is made anew if a delay or a number of units has changed by this share of it.
const CHANGE: f64 = 0.25;
/// Packets that may wait on a path without its counting as full.
const BURST: u64 = 2;

/// Delay-aware packet scheduling (Sarwar 2014, chapter 7), planned anew where delays and windows
/// change, because the printed algorithm knows neither loss nor a change.
#[derive(Clone, Debug, Default)]
pub(super) struct Daps {
    /// The paths that the plan was made for; `None` for one that was not usable.
    paths: Vec<Option<PlanPath>>,
    /// The units that each path has still to send, in order.
    queues: Vec<VecDeque<u64>>,
    /// Units sent.
    sent: IntervalSet,
}

impl Daps {
    /// Whether the plan does not fit the paths any more.
    fn is_stale(&self, paths: &[Option<PlanPath>]) -> bool {
        let differs = |a: f64, b: f64| (a - b).abs() > CHANGE * a.max(1.0);
        let is_other = |(a, b): (&Option<PlanPath>, &Option<PlanPath>)| match (a, b) {
            (Some(a), Some(b)) => {
                differs(a.delay as f64, b.delay as f64) || differs(a.units, b.units)
            }
            (None, None) => false,
            _ => true,
        };
        self.paths.len() != paths.len() || self.paths.iter().zip(paths).any(is_other)
    }

    fn make(&mut self, paths: Vec<Option<PlanPath>>, first: u64) {
        let planned: Vec<(usize, PlanPath)> =
            paths.iter().enumerate().filter_map(|(at, path)| Some((at, (*path)?))).collect();
        let only: Vec<PlanPath> = planned.iter().map(|(_, path)| *path).collect();
        let slowest = only.iter().map(|path| path.delay).max().unwrap_or(1);
        let fastest = only.iter().map(|path| path.delay).min().unwrap_or(1);
        let horizon = period(&only, slowest.saturating_mul(LONGEST)).max(slowest);
        let horizon = horizon.min(fastest.saturating_mul(MOST_ROUNDS));
        self.queues = vec![VecDeque::new(); paths.len()];
        let mut unit = first;
        for block in plan(&only, 0, horizon) {
            for _ in block.units {
                // What was sent by an earlier plan needs no place in this one.
                unit = self.sent.first_missing(unit);
                self.queues[planned[block.path].0].push_back(unit);
                unit += 1;
            }
        }
        self.paths = paths;
    }

    /// The unit that leaves next, in the plan as it is.
    fn choose(&mut self, paths: &[PathView], data: &DataView) -> Option<Assignment> {
        let mut order: smallvec::SmallVec<[usize; 4]> =
            (0..paths.len()).filter(|path| paths[*path].has_room()).collect();
        order.sort_by_key(|path| paths[*path].delay);
        for path in order {
            let queue = self.queues.get_mut(path)?;
            while queue.front().is_some_and(|unit| self.sent.find(*unit).is_some()) {
                queue.pop_front();
            }
            match queue.front() {
                Some(unit) if *unit < data.end => {
                    let unit = *unit;
                    queue.pop_front();
                    return Some(Assignment { path, unit });
                }
                // The sender holds too little to send ahead: what it has leaves in order.
                Some(_) => return Some(Assignment { path, unit: data.first }),
                None => {}
            }
        }
        None
    }
}

/// The paths as a plan needs them: delays in steps, and what fits a delay.
fn plan_paths(paths: &[PathView], unit: u64) -> Vec<Option<PlanPath>> {
    let usable = || paths.iter().filter(|path| path.is_usable);
    let least = usable().map(|path| path.delay).min().unwrap_or(STEP);
    // A clock that differs from the peer's adds the same to every delay (spec 5.5).
    let base = usable().map(|path| path.rtt).min().unwrap_or(STEP) / 2;
    let path = |path: &PathView| {
        let delay = path.delay.as_nanos() - least.as_nanos() + base.as_nanos();
        let delay = (delay / STEP.as_nanos()).max(1);
        let share = delay as f64 * STEP.as_secs_f64() / path.rtt.as_secs_f64().max(1e-6);
        let units = path.window as f64 / unit.max(1) as f64 * share.min(1.0);
        path.is_usable.then_some(PlanPath { delay, units })
    };
    // Of a path that cannot be used the subtraction might run below zero.
    paths.iter().map(|view| if view.is_usable { path(view) } else { None }).collect()
}

/// The paths as they may be used: if the buffer is less than what avoids blocking (Equation 7.2:
/// all rates in the longest round trip), one that has a queue is full, because what waits there
/// takes room from the others and arrives no sooner.
fn without_queues(paths: &[PathView], data: &DataView) -> smallvec::SmallVec<[PathView; 4]> {
    let usable = || paths.iter().filter(|path| path.is_usable);
    let longest = usable().map(|path| path.rtt).max().unwrap_or(Duration::ZERO);
    let rate = |path: &PathView| path.window as f64 / path.rtt.as_secs_f64().max(1e-6);
    let needed = usable().map(rate).sum::<f64>() * longest.as_secs_f64();
    let is_scarce = needed > data.buffer as f64;
    let limited = |path: &PathView| {
        let queue = path.rtt - path.least;
        // Bursts of a few packets are no queue.
        let burst = path.rtt.mul_ratio(BURST * data.unit, path.in_flight.max(data.unit));
        let is_full = is_scarce && queue > path.least / 4 + burst;
        let window = if is_full { path.window.min(path.in_flight.max(1)) } else { path.window };
        PathView { window, ..*path }
    };
    paths.iter().map(limited).collect()
}

impl Scheduler for Daps {
    fn next(&mut self, _now: Time, paths: &[PathView], data: &DataView) -> Option<Assignment> {
        let paths = &without_queues(paths, data)[..];
        if data.first >= data.end || !paths.iter().any(PathView::has_room) {
            return None;
        }
        self.sent.remove_below(data.first);
        let seen = plan_paths(paths, data.unit);
        let is_hungry =
            |(view, queue): (&PathView, &VecDeque<u64>)| view.has_room() && queue.is_empty();
        if self.is_stale(&seen) || paths.iter().zip(&self.queues).any(is_hungry) {
            self.make(seen.clone(), data.first);
        }
        // A plan may give a path nothing; one that is made when others wait gives it something.
        let chosen = self.choose(paths, data).or_else(|| {
            let path = super::simple::shortest(paths, PathView::has_room)?;
            Some(Assignment { path, unit: data.first })
        })?;
        self.sent.insert(chosen.unit, chosen.unit + 1);
        Some(chosen)
    }

    fn copy(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}
