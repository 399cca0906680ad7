//! Transfers over several paths at once.

use core::str::FromStr;

use fontis_base::{Duration, Probability, Rate};
use fontis_sim::analysis::blocking::{
    BlockingPath, blocking_time, round_robin_arrivals, unblocked_buffer,
};
use fontis_sim::analysis::concurrent::{
    ConcurrentModel, ConcurrentPath, redundancy, residual_loss,
};
use serde_json::{Value, json};

use crate::failure::Failure;

/// How long packets wait at a receiver for those on a slower path, and the buffer that avoids it
/// (Sarwar 2014, Equations 6.2, 6.3 and 7.2)
#[derive(Debug, clap::Args)]
pub(super) struct Blocking {
    /// A path: its rate and its round-trip time, as in 1Mbit/s@20ms
    #[arg(value_name = "RATE@RTT", required = true, num_args = 1..=16)]
    paths: Vec<RatePath>,
    /// Bytes of a packet
    #[arg(long, value_name = "BYTES", default_value_t = 1460)]
    packet: u32,
    /// Packets on each path
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,
}

/// The goodput of concurrent multipath transfer as a formula of loss (Sarwar 2014, Equations 8.6 to
/// 8.11)
#[derive(Debug, clap::Args)]
pub(super) struct Cmt {
    /// A path: its round-trip time and its loss, as in 100ms@2%
    #[arg(value_name = "RTT@LOSS", required = true, num_args = 1..=16)]
    paths: Vec<LossPath>,
    /// Bytes of data in a packet
    #[arg(long, value_name = "BYTES", default_value_t = 1468)]
    packet: u32,
    /// Packets that a SACK answers
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    per_ack: u32,
    /// The retransmission timeout
    #[arg(long, value_name = "TIME", default_value = "1s")]
    timeout: Duration,
    /// Bytes of the receiver's window
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    window: u32,
    /// What all paths carry together at most
    #[arg(long, value_name = "RATE")]
    most: Option<Rate>,
    /// A block code of N packets, K of them data, repairs first, as in 10,9
    #[arg(long, value_name = "N,K")]
    code: Option<BlockCode>,
}

/// Two parts of an argument.
fn parts<A: FromStr, B: FromStr>(text: &str, mark: char, form: &str) -> Result<(A, B), String> {
    let parsed = text.split_once(mark).and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.ok_or_else(|| format!("{text:?} must be {form}"))
}

/// A rate and a round-trip time.
#[derive(Clone, Debug)]
pub(super) struct RatePath(pub(super) BlockingPath);

impl FromStr for RatePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "a rate and a round-trip time, as in 1Mbit/s@20ms";
        let (rate, rtt): (Rate, Duration) = parts(text, '@', form)?;
        if rate == Rate::ZERO {
            return Err(format!("{text:?}: the rate must be more than zero"));
        }
        let delay = rtt.as_secs_f64() / 2.0;
        Ok(Self(BlockingPath { rate: rate.as_bps() as f64, delay }))
    }
}

#[derive(Clone, Debug)]
struct LossPath(ConcurrentPath);

impl FromStr for LossPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "a round-trip time and a loss, as in 100ms@2%";
        let (rtt, loss): (Duration, Probability) = parts(text, '@', form)?;
        if rtt == Duration::ZERO || loss.get() >= 1.0 {
            return Err(format!("{text:?}: it takes some time, and less than 100 % is lost"));
        }
        Ok(Self(ConcurrentPath { rtt: rtt.as_secs_f64(), loss: loss.get() }))
    }
}

#[derive(Clone, Copy, Debug)]
struct BlockCode {
    n: u32,
    k: u32,
}

impl FromStr for BlockCode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (n, k) = parts(text, ',', "two numbers, as in 10,9")?;
        if k == 0 || k > n || n > 255 {
            return Err(format!("{text:?}: N is at most 255, and K is from 1 to N"));
        }
        Ok(Self { n, k })
    }
}

pub(super) fn blocking(args: &Blocking) -> Result<(Value, Vec<String>), Failure> {
    let mut paths: Vec<BlockingPath> = args.paths.iter().map(|path| path.0).collect();
    // The worst order of a round: what takes longest is first in the data.
    let time = |path: &BlockingPath| path.delay + f64::from(args.packet) * 8.0 / path.rate;
    paths.sort_by(|a, b| time(b).total_cmp(&time(a)));
    let time = blocking_time(&round_robin_arrivals(&paths, args.packet, args.rounds));
    let buffer = unblocked_buffer(&paths);
    Ok((
        json!({ "blocking_s": time, "buffer_bytes": buffer }),
        vec![
            format!("longest wait for a packet before  {:.2} ms", time * 1e3),
            format!("receive buffer that avoids blocking  {:.1} kB", buffer * 1e-3),
        ],
    ))
}

pub(super) fn cmt(args: &Cmt) -> Result<(Value, Vec<String>), Failure> {
    if args.packet == 0 || args.window < args.packet {
        let text = "--packet must be more than zero, and --window at least a packet";
        return Err(Failure::Usage(text.to_owned()));
    }
    let repaired = |path: &LossPath| {
        let loss = |code: BlockCode| residual_loss(code.n, code.k, path.0.loss);
        ConcurrentPath { loss: args.code.map_or(path.0.loss, loss), ..path.0 }
    };
    let paths: Vec<ConcurrentPath> = args.paths.iter().map(repaired).collect();
    let model = ConcurrentModel {
        per_ack: f64::from(args.per_ack),
        timeout: args.timeout.as_secs_f64(),
        window: f64::from(args.window) / f64::from(args.packet),
    };
    // Of the packets of a code K of N are data.
    let share = 1.0 - args.code.map_or(0.0, |code| redundancy(code.n, code.k));
    let mbps = |packets: f64| packets * f64::from(args.packet) * 8e-6 * share;
    let rates: Vec<f64> = model.rates(&paths).into_iter().map(mbps).collect();
    let most = args.most.map_or(f64::INFINITY, |most| most.as_mbps_f64());
    let sum = rates.iter().sum::<f64>().min(most);
    let losses: Vec<f64> = paths.iter().map(|path| path.loss).collect();
    let line = |(path, (rate, loss)): (usize, (&f64, &f64))| {
        format!("path {path}  {rate:.3} Mbit/s with {:.3} % of loss", loss * 100.0)
    };
    let mut lines: Vec<String> = (1..).zip(rates.iter().zip(&losses)).map(line).collect();
    lines.push(format!("together  {sum:.3} Mbit/s"));
    Ok((json!({ "goodput_mbps": sum, "paths_mbps": rates, "loss": losses }), lines))
}
