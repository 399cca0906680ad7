//! Schedulers over several paths at once.

use core::ops::Range;

use fontis_base::{Duration, Probability};
use fontis_proto::scheduler::plan::{PlanPath, period};
use fontis_sim::analysis::blocking::BlockingPath;
use fontis_sim::analysis::schedule::{Misjudged, ModelRun, ScheduleModel, ScheduleRow, model_path};
use serde_json::{Value, json};

use super::multipath::RatePath;
use crate::failure::Failure;

/// Who sends what when over several paths, by turns and by a plan that knows the delays, in a model
/// without loss or queues (Sarwar 2014, chapter 7)
#[derive(Debug, clap::Args)]
pub(super) struct Schedule {
    /// A path: its rate and its round-trip time, as in 1Mbit/s@20ms
    #[arg(value_name = "RATE@RTT", required = true, num_args = 1..=16)]
    paths: Vec<RatePath>,
    /// Bytes of a packet
    #[arg(long, value_name = "BYTES", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_535))]
    packet: u32,
    /// Packets that the receiver's buffer holds
    #[arg(long, value_name = "N", default_value_t = 10)]
    buffer: u64,
    /// How long the run is
    #[arg(long, value_name = "TIME", default_value = "5s")]
    span: Duration,
    /// By how much of it the plan takes a delay for longer than it is
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    error: Probability,
    /// Whose delay that is
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t = Whose::Slowest)]
    whose: Whose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Whose {
    /// The slowest path's
    Slowest,
    /// Every path's
    All,
    /// Every path's, with the packets of each counted for the longer delay
    AllWithWindows,
}

/// The longest run of the model, in milliseconds.
const LONGEST: u64 = 600_000;
/// Rows of a table at most.
const MOST_ROWS: usize = 40;

pub(super) fn schedule(args: &Schedule) -> Result<(Value, Vec<String>), Failure> {
    let span = args.span.as_nanos() / 1_000_000;
    if span == 0 || span > LONGEST {
        let text = format!("--span must be from 1 ms to {} s", LONGEST / 1000);
        return Err(Failure::Usage(text));
    }
    let path = |path: &RatePath| model_path(&path.0, args.packet);
    let mut paths: Vec<PlanPath> = args.paths.iter().map(path).collect();
    paths.sort_by_key(|path| path.delay);
    // What fits a millisecond may be a million packets: a model of those is of no use.
    let rates: f64 = args.paths.iter().map(|RatePath(BlockingPath { rate, .. })| rate).sum();
    let packets = rates * span as f64 * 1e-3 / (8.0 * f64::from(args.packet));
    if packets > 1e7 {
        let text = format!("{packets:.0} packets are too many: a shorter --span, or more bytes");
        return Err(Failure::Usage(text));
    }
    let whose = match args.whose {
        Whose::Slowest => Misjudged::Slowest,
        Whose::All => Misjudged::All,
        Whose::AllWithWindows => Misjudged::AllWithWindows,
    };
    let model = ScheduleModel { paths, buffer: args.buffer };
    let believed = model.misjudged(args.error.get(), whose);
    let runs =
        [("round robin", model.round_robin(span)), ("by the plan", model.planned(&believed, span))];
    let step = model.paths.first().map_or(1, |path| path.delay);
    let rows = (period(&model.paths, span).min(span) / step) as usize;
    let (mut lines, mut value) = (Vec::new(), json!({}));
    for (name, run) in &runs {
        let table = run.rows(model.paths.len(), step);
        let table = &table[..table.len().min(rows).min(MOST_ROWS)];
        let mbps = run.goodput() * f64::from(args.packet) * 8e-3;
        value[name.replace(' ', "_")] = json!({
            "goodput_mbps": mbps,
            "waiting": run.mean_waiting(),
            "most_waiting": run.most_waiting(),
            "in_flight": run.mean_in_flight(),
            "jitter_ms": run.jitter(),
            "rows": table.iter().map(row_json).collect::<Vec<_>>(),
        });
        lines.extend(row_lines(name, model.paths.len(), table));
        lines.extend(measures(run, mbps));
    }
    Ok((value, lines))
}

fn measures(run: &ModelRun, mbps: f64) -> [String; 2] {
    [
        format!("goodput  {mbps:.3} Mbit/s, jitter  {:.1} ms", run.jitter()),
        format!(
            "packets that wait  {:.1}, at most {}; on their way  {:.1}",
            run.mean_waiting(),
            run.most_waiting(),
            run.mean_in_flight()
        ),
    ]
}

fn row_lines(name: &str, paths: usize, rows: &[ScheduleRow]) -> Vec<String> {
    let heads = |what: &str| (1..=paths).map(move |path| format!("  {what} {path}")).collect();
    let [sent, got]: [String; 2] = [heads("sent"), heads("got")];
    let cells = |ranges: &[Range<u64>]| {
        ranges.iter().map(|range| format!("  {}", numbers(range))).collect::<String>()
    };
    let line = |row: &ScheduleRow| {
        format!(
            "{} ms{}  {} ms{}  {}  {}",
            row.times[0],
            cells(&row.sends),
            row.times[1],
            cells(&row.arrivals),
            numbers(&row.delivered),
            row.waiting
        )
    };
    let head = format!("{name}: at{sent}  until{got}  delivered  waiting");
    std::iter::once(head).chain(rows.iter().map(line)).collect()
}

fn numbers(range: &Range<u64>) -> String {
    if range.is_empty() { "-".to_owned() } else { format!("{}-{}", range.start, range.end - 1) }
}

fn row_json(row: &ScheduleRow) -> Value {
    let ends = |range: &Range<u64>| match range.is_empty() {
        true => Value::Null,
        false => json!([range.start, range.end - 1]),
    };
    json!({
        "sent_ms": row.times[0],
        "received_ms": row.times[1],
        "sends": row.sends.iter().map(ends).collect::<Vec<_>>(),
        "arrivals": row.arrivals.iter().map(ends).collect::<Vec<_>>(),
        "delivered": ends(&row.delivered),
        "waiting": row.waiting,
    })
}
