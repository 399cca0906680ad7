//! The formulas of the DFCP works, for people.

mod energy;
mod estimator;
mod fairness;
mod multipath;
mod schedule;
mod table;

use clap::Subcommand;
use fontis_base::{Probability, Rate, Size};
use fontis_sim::analysis::fountain;
use fontis_sim::analysis::loss_model::LossModel;
use fontis_sim::analysis::share::{
    Demand, hop_by_hop_shares, max_min_network, max_min_shares, printed_shares,
};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::say;
use crate::text;

/// Compute the theory of fountains: packets to send, fair shares, goodput, redundancy, the accuracy
/// of the estimator; that of transfers over several paths at once; what is fair; and the energy of
/// a recorded run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print JSON, one object
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  How many packets to send so that 1000 arrive over bursty loss, with probability 0.99:
    fontis analyse n-star 1000 --loss 1% --recovery 25% --success 99%
  What a fair queue leaves three flows, and what a fountain makes of it:
    fontis analyse goodput 100Mbit/s 10Mbit/s 35Mbit/s 100Mbit/s --redundancy 5%";

#[derive(Debug, Subcommand)]
enum Command {
    NStar(NStar),
    Share(Share),
    Goodput(Goodput),
    Redundancy(Redundancy),
    Estimator(estimator::Estimator),
    Blocking(multipath::Blocking),
    Cmt(multipath::Cmt),
    Schedule(schedule::Schedule),
    Fairness(fairness::Fairness),
    Energy(energy::Energy),
}

/// The number of packets to send so that k arrive: by the central limit theorem and exactly
#[derive(Debug, clap::Args)]
struct NStar {
    /// Packets that must arrive
    #[arg(value_name = "K")]
    k: u32,
    /// The probability that a packet is lost after one that arrived
    #[arg(long, value_name = "P")]
    loss: Probability,
    /// The probability that a packet arrives after one that was lost [default: 1 − P, independent
    /// losses]
    #[arg(long, value_name = "Q")]
    recovery: Option<Probability>,
    /// The probability that k packets arrive
    #[arg(long, value_name = "P", default_value = "99%")]
    success: Probability,
}

/// The fair share of each flow: max-min, and as printed in the report of 2011
#[derive(Debug, clap::Args)]
struct Share {
    /// The rate of the bottleneck
    #[arg(value_name = "RATE")]
    bottleneck: Rate,
    /// The highest rate of each flow
    #[arg(value_name = "LIMIT", required = true)]
    limits: Vec<Rate>,
    /// A second bottleneck, which the first flow crosses too
    #[arg(long, value_name = "RATE")]
    second: Option<Rate>,
}

/// The goodput of fountains with fair shares
#[derive(Debug, clap::Args)]
struct Goodput {
    /// The rate of the bottleneck
    #[arg(value_name = "RATE")]
    bottleneck: Rate,
    /// The highest rate of each flow
    #[arg(value_name = "LIMIT", required = true)]
    limits: Vec<Rate>,
    /// Redundancy, as a share of the message
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    redundancy: Probability,
    /// Payload bytes of a packet
    #[arg(long, value_name = "BYTES", default_value_t = 1452)]
    payload: u32,
    /// Header bytes of a packet; 0 for goodput in encoded bytes
    #[arg(long, value_name = "BYTES", default_value_t = 48)]
    headers: u32,
}

/// The redundancy at which a fountain is as fast as a given transfer, and the gain with a practical
/// redundancy
#[derive(Debug, clap::Args)]
struct Redundancy {
    /// The rate of the bottleneck
    #[arg(value_name = "RATE")]
    bottleneck: Rate,
    /// The number of flows that shared it
    #[arg(value_name = "FLOWS")]
    flows: u32,
    /// The bytes that a flow transferred
    #[arg(value_name = "SIZE")]
    size: Size,
    /// The time of that transfer, as in 12.5s
    #[arg(value_name = "TIME")]
    time: fontis_base::Duration,
    /// The redundancy of a practical fountain
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    practical: Probability,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (value, lines) = match &args.command {
        Command::NStar(args) => n_star(args)?,
        Command::Share(args) => share(args)?,
        Command::Goodput(args) => goodput(args)?,
        Command::Redundancy(args) => redundancy(args)?,
        Command::Estimator(args) => estimator::evaluate(args)?,
        Command::Blocking(args) => multipath::blocking(args)?,
        Command::Cmt(args) => multipath::cmt(args)?,
        Command::Schedule(args) => schedule::schedule(args)?,
        Command::Fairness(args) => fairness::fairness(args)?,
        Command::Energy(args) => energy::energy(args)?,
    };
    if args.json {
        say(&value);
    } else {
        lines.iter().for_each(|line| say(line));
    }
    Ok(())
}

type Answer = (Value, Vec<String>);

fn n_star(args: &NStar) -> Result<Answer, Failure> {
    let p = args.loss.get();
    let model = match args.recovery {
        None => LossModel::Bernoulli { p },
        Some(q) => LossModel::Gilbert { p, q: q.get() },
    };
    let success = args.success.get();
    if !model.is_valid() {
        return Err(Failure::Usage("nothing ever arrives over such loss".to_owned()));
    }
    if success >= 1.0 {
        return Err(Failure::Usage("--success must be less than 100%".to_owned()));
    }
    let (mean, deviation) = model.sent(args.k);
    let (clt, exact) = (model.n_star_clt(args.k, success), model.n_star_exact(args.k, success));
    let shown = exact.map_or(format!("more than {}", LossModel::MOST), |n| n.to_string());
    Ok((
        json!({
            "k": args.k, "mean": mean, "deviation": deviation, "stationary_loss": model.stationary_loss(),
            "n_star_clt": clt, "n_star_exact": exact,
        }),
        vec![
            format!("long-run loss  {:.4} %", 100.0 * model.stationary_loss()),
            format!("sent on average  {mean:.1} ± {deviation:.1} packets"),
            format!("n* by the central limit theorem  {clt} packets"),
            format!("n* exactly  {shown} packets"),
        ],
    ))
}

fn share(args: &Share) -> Result<Answer, Failure> {
    let (capacity, limits) = checked(args.bottleneck, &args.limits)?;
    let max_min = max_min_shares(capacity, &limits);
    let printed = printed_shares(capacity, &limits);
    let mut value = json!({ "max_min_mbps": max_min, "printed_mbps": printed });
    let mut lines = vec![table("flow  max-min  as printed (Mbit/s)", &[&max_min, &printed])];
    if let Some(second) = args.second {
        let capacities = [capacity, second.as_mbps_f64()];
        let demands: Vec<Demand> = limits
            .iter()
            .enumerate()
            .map(|(flow, limit)| Demand {
                limit: *limit,
                links: if flow == 0 { vec![0, 1] } else { vec![0] },
            })
            .collect();
        let blind = hop_by_hop_shares(&capacities, &demands);
        let best = max_min_network(&capacities, &demands);
        let efficiency = fountain::hop_by_hop_efficiency(&capacities, &demands);
        value["hop_by_hop_mbps"] = json!(blind);
        value["max_min_mbps"] = json!(best);
        value["efficiency"] = json!(efficiency);
        lines = vec![
            table("flow  max-min  hop by hop (Mbit/s)", &[&best, &blind]),
            format!(
                "fair queues that know nothing of one another carry {:.1} % of it",
                100.0 * efficiency
            ),
        ];
    }
    Ok((value, lines))
}

fn goodput(args: &Goodput) -> Result<Answer, Failure> {
    let (capacity, limits) = checked(args.bottleneck, &args.limits)?;
    if args.payload == 0 {
        return Err(Failure::Usage("--payload must be more than zero".to_owned()));
    }
    let redundancy = args.redundancy.get();
    let efficiency = fountain::header_efficiency(f64::from(args.payload), f64::from(args.headers));
    let shares = max_min_shares(capacity, &limits);
    let goodputs: Vec<f64> =
        shares.iter().map(|share| fountain::goodput(share * efficiency, redundancy)).collect();
    let sent: Vec<f64> = limits
        .iter()
        .zip(&shares)
        .map(|(limit, share)| {
            fountain::transmission_redundancy(fountain::success_ratio(*limit, *share))
        })
        .collect();
    Ok((
        json!({
            "share_mbps": shares, "goodput_mbps": goodputs, "transmission_redundancy": sent,
            "redundancy_cost": fountain::redundancy_cost(redundancy),
        }),
        vec![
            table(
                "flow  share (Mbit/s)  goodput (Mbit/s)  transmission redundancy",
                &[&shares, &goodputs, &sent],
            ),
            format!(
                "redundancy takes {:.2} % of a share",
                100.0 * fountain::redundancy_cost(redundancy)
            ),
        ],
    ))
}

fn redundancy(args: &Redundancy) -> Result<Answer, Failure> {
    if args.size.as_bytes() == 0 || args.flows == 0 {
        return Err(Failure::Usage("FLOWS and SIZE must be more than zero".to_owned()));
    }
    let bits = args.size.as_bytes() as f64 * 8.0;
    let capacity = args.bottleneck.as_bps() as f64;
    let seconds = args.time.as_secs_f64();
    let equivalent =
        fountain::equivalent_redundancy(seconds, capacity, bits, f64::from(args.flows));
    let increase = fountain::rate_increase(equivalent, args.practical.get());
    Ok((
        json!({ "equivalent_redundancy": equivalent, "rate_increase": increase }),
        vec![
            format!("equivalent redundancy  {}", text::round(equivalent)),
            format!("rate increase of a fountain  {:.1} %", 100.0 * increase),
        ],
    ))
}

/// Rates in Mbit/s.
fn checked(bottleneck: Rate, limits: &[Rate]) -> Result<(f64, Vec<f64>), Failure> {
    if bottleneck == Rate::ZERO || limits.contains(&Rate::ZERO) {
        return Err(Failure::Usage("rates must be more than zero".to_owned()));
    }
    Ok((bottleneck.as_mbps_f64(), limits.iter().map(|limit| limit.as_mbps_f64()).collect()))
}

fn table(heading: &str, columns: &[&[f64]]) -> String {
    let mut lines = vec![heading.to_owned()];
    for row in 0..columns[0].len() {
        let cells: Vec<String> =
            columns.iter().map(|column| text::round(column[row]).to_string()).collect();
        lines.push(format!("{}  {}", row + 1, cells.join("  ")));
    }
    lines.join("\n")
}
