//! Schedulers over the paths of scenario T7 (Sarwar 2014, chapter 7), in the model without loss or
//! queues.

use core::ops::Range;

use fontis_proto::scheduler::plan::{PlanBlock, period, plan};
use fontis_sim::analysis::blocking::BlockingPath;
use fontis_sim::analysis::schedule::{Misjudged, ModelRun, ScheduleModel, ScheduleRow, model_path};

use super::super::value::Value;

/// Milliseconds of a run whose means count.
const LONG: u64 = 100_000;
/// Milliseconds that the thesis shows.
const SHOWN: u64 = 5000;
/// Bytes of a packet.
const PACKET: u32 = 1000;
/// The errors of a delay that Figures 7.8 and 7.9 show, of which the text names the ends.
const ERRORS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

fn t7() -> ScheduleModel {
    let path = |rate, delay| model_path(&BlockingPath { rate, delay }, PACKET);
    ScheduleModel { paths: vec![path(1.6e6, 0.01), path(4e5, 0.1)], buffer: 10 }
}

/// The blocks of a period's plan.
fn blocks(model: &ScheduleModel) -> Vec<PlanBlock> {
    plan(&model.paths, 1, period(&model.paths, LONG))
}

/// A run by turns, or by the plan with exact delays.
fn run(by_turns: bool, span: u64) -> ModelRun {
    let model = t7();
    if by_turns { model.round_robin(span) } else { model.planned(&model.paths, span) }
}

/// First and last of a range, zeros for none.
fn ends(range: &Range<u64>) -> [f64; 2] {
    if range.is_empty() { [0.0; 2] } else { [range.start as f64, range.end as f64 - 1.0] }
}

/// When packets left and what each path sent, when they arrived and what came on each path, what
/// the application got, and what waits.
fn numbers(row: &ScheduleRow) -> Vec<f64> {
    let of = |ranges: &[Range<u64>]| ranges.iter().flat_map(ends).collect::<Vec<f64>>();
    let [sent, received] = row.times.map(|time| time as f64);
    let waiting = vec![row.waiting as f64];
    let delivered = ends(&row.delivered).to_vec();
    [vec![sent], of(&row.sends), vec![received], of(&row.arrivals), delivered, waiting].concat()
}

/// What a run is judged by: goodput in Mbit/s, the mean of the packets that wait, of those on their
/// way, and the jitter in ms.
fn measures(run: &ModelRun) -> Vec<f64> {
    vec![mbps(run), run.mean_waiting(), run.mean_in_flight(), run.jitter()]
}

fn mbps(run: &ModelRun) -> f64 {
    run.goodput() * f64::from(PACKET) * 8e-3
}

/// A measure at each error of Figures 7.8 and 7.9.
fn with_errors(whose: &str, span: u64, of: impl Fn(&ModelRun) -> f64) -> Option<Value> {
    let whose = match whose {
        "slowest" => Misjudged::Slowest,
        "all" => Misjudged::All,
        "all with windows" => Misjudged::AllWithWindows,
        _ => return None,
    };
    let model = t7();
    let at = |error| of(&model.planned(&model.misjudged(error, whose), span));
    Some(Value::List(ERRORS.into_iter().map(at).collect()))
}

/// Packets that the application has at each of the shown milliseconds, less those of another run.
/// The least and the greatest difference.
fn lead(of: &ModelRun, over: &ModelRun) -> [f64; 2] {
    let ends = |run: &ModelRun| -> Vec<f64> {
        run.instants.iter().map(|instant| instant.delivered.end as f64).collect()
    };
    let pairs = ends(of).into_iter().zip(ends(over)).map(|(a, b)| a - b);
    pairs.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], lead| {
        [low.min(lead), high.max(lead)]
    })
}

/// The share of the shown milliseconds, from the second period on, at which a plan that errs has
/// delivered no less than turns and no more than the exact plan.
fn between(run: &ModelRun) -> f64 {
    let model = t7();
    let (turns, exact) = (model.round_robin(SHOWN), model.planned(&model.paths, SHOWN));
    let end = |run: &ModelRun, at: usize| run.instants[at].delivered.end;
    let from = 2 * period(&model.paths, SHOWN) as usize;
    let fits = |at: &usize| (end(&turns, *at)..=end(&exact, *at)).contains(&end(run, *at));
    let all = from..=SHOWN as usize;
    let count = all.clone().count() as f64;
    all.filter(fits).count() as f64 / count
}

/// The result of the probe of this name.
pub(super) fn probe(name: &str) -> Option<Value> {
    let (by_turns, rest) = match name.split_once(' ')? {
        ("turns", rest) => (true, rest),
        ("plan", rest) => (false, rest),
        ("goodput", whose) => return with_errors(whose, LONG, mbps),
        ("waiting", whose) => return with_errors(whose, LONG, ModelRun::mean_waiting),
        ("most", whose) => return with_errors(whose, LONG, |run| run.most_waiting() as f64),
        ("between", whose) => return with_errors(whose, SHOWN, between),
        _ => return None,
    };
    let model = t7();
    Some(match rest {
        "measures" => Value::List(measures(&run(by_turns, LONG))),
        "waiting" => Value::Number(run(by_turns, LONG).most_waiting() as f64),
        "lead" => Value::List(lead(&run(by_turns, SHOWN), &run(!by_turns, SHOWN)).to_vec()),
        "silence" => {
            Value::List(run(by_turns, SHOWN).longest_silence().map(|at| at as f64).to_vec())
        }
        "order" => {
            Value::List(blocks(&model).iter().map(|block| block.path as f64 + 1.0).collect())
        }
        "arrivals" => {
            let at = |block: &PlanBlock| (block.sent + model.paths[block.path].delay) as f64;
            Value::List(blocks(&model).iter().map(at).collect())
        }
        "units" => Value::Number(
            blocks(&model).iter().map(|block| (block.units.end - block.units.start) as f64).sum(),
        ),
        "paths" => {
            let of = |path: usize| {
                let mine = blocks(&model).into_iter().filter(move |block| block.path == path);
                mine.map(|block| block.units).reduce(|a, b| a.start..b.end).unwrap_or(0..0)
            };
            Value::List([of(0), of(1)].iter().flat_map(ends).collect())
        }
        row => {
            let row: usize = row.strip_prefix("row ")?.parse().ok()?;
            Value::List(numbers(run(by_turns, 1000).rows(2, 10).get(row.checked_sub(1)?)?))
        }
    })
}
