use std::fmt::Write as _;

use bytes::Bytes;
use fontis_base::{Probability, Stream};
use fontis_codes::{BlockDecoder, BlockEncoder, Code, Decoded};
use serde_json::json;

use super::block::{default_symbols, shape};
use crate::failure::Failure;
use crate::json;

/// Measure the share of blocks for which k symbols and some more do not suffice
///
/// The table is also plot data, as for gnuplot. The bounds are those of a 95 % confidence interval
/// (Wilson).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The code, by the name that an error lists
    #[arg(long, default_value = "raptorq")]
    code: Code,
    /// Source symbols in the block [default: 100; those of legacy-byte: 63536]
    #[arg(long, value_name = "NUMBER")]
    symbols: Option<u32>,
    /// Blocks to decode
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    trials: u32,
    /// Lost source symbols; 100% leaves encoded symbols alone
    #[arg(long, value_name = "PERCENT", default_value = "100%")]
    loss: Probability,
    /// The seed of all randomness
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print JSON, a line for each row
    #[arg(long)]
    pub(super) json: bool,
}

/// The most rows of the table.
const ROWS: usize = 60;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.trials == 0 {
        return Err(Failure::Usage("--trials must be more than zero".to_owned()));
    }
    // Two bytes serve every code; the one of bytes takes one.
    let size: u16 = if args.code == Code::LegacyByte { 1 } else { 2 };
    let shape = shape(args.code, args.symbols.unwrap_or(default_symbols(args.code, 100)), size)?;
    let len = shape.len();
    let mut stream = Stream::new(args.seed, "curve");
    let mut data = vec![0; if args.code.carries_bytes() { len as usize } else { 0 }];
    stream.fill(&mut data);
    let mut encoder = BlockEncoder::new(shape, Bytes::from(data));
    encoder.set_repair(encoder.repair_job().run());
    let mut extras = Vec::new();
    for _ in 0..args.trials {
        extras.push(extra(args, &encoder, &mut stream)?);
    }
    extras.sort_unstable();
    print(args, shape.source_symbols(), &extras);
    Ok(())
}

/// The number of symbols beyond k that a block needed.
fn extra(args: &Args, encoder: &BlockEncoder, stream: &mut Stream) -> Result<u32, Failure> {
    let shape = encoder.shape();
    let k = shape.source_symbols();
    let mut decoder = BlockDecoder::new(shape);
    let mut held = 0;
    let mut take = |decoder: &mut BlockDecoder, esi| {
        let symbol = encoder.symbol(esi).unwrap_or_default();
        let added =
            decoder.add(esi, &symbol).map_err(|error| Failure::Failed(error.to_string()))?;
        held += u32::from(added);
        Ok::<u32, Failure>(held)
    };
    for esi in 0..k {
        if !stream.chance(args.loss) {
            take(&mut decoder, esi)?;
        }
    }
    // A random place, with room behind it for thrice as many symbols; a block code has but one
    // place.
    let room = (shape.esi_limit() - k).saturating_sub(3 * k + 100);
    let mut esi = k + stream.below(u64::from(room.min(100_000)) + 1) as u32;
    let mut all = 0;
    loop {
        while decoder.needed() > 0 {
            if esi >= shape.esi_limit() {
                return Err(Failure::Failed(format!(
                    "{} has too few symbols for that loss",
                    args.code
                )));
            }
            all = take(&mut decoder, esi)?;
            esi += 1;
        }
        match decoder.decode_job().run() {
            Decoded::Block(_) => return Ok(all.saturating_sub(k)),
            Decoded::Failed(again) => decoder = again,
        }
    }
}

fn print(args: &Args, k: u32, extras: &[u32]) {
    let most = extras.last().copied().unwrap_or(0);
    // Every value, or evenly spaced ones from the first that changes anything.
    let least = extras.first().copied().unwrap_or(0).saturating_sub(1);
    let first = if (most as usize) < ROWS { 0 } else { least };
    let step = ((most - first) as usize / ROWS + 1) as u32;
    let mut table = String::new();
    let _ = writeln!(table, "# {}, k = {k}, {} trials, seed {}", args.code, args.trials, args.seed);
    let _ = writeln!(table, "# extra  overhead_%  failure_probability  low  high");
    let mut extra = first;
    loop {
        // It failed with so many symbols if it needed more.
        let failed = extras.len() - extras.partition_point(|needed| *needed <= extra);
        let overhead = f64::from(extra) / f64::from(k) * 100.0;
        let (p, low, high) = wilson(failed as f64, extras.len() as f64);
        if args.json {
            json::say(&json!({
                "event": "point",
                "code": args.code.name(),
                "symbols": k,
                "extra": extra,
                "overhead": overhead / 100.0,
                "failure_probability": p,
                "low": low,
                "high": high,
            }));
        }
        let _ = writeln!(table, "{extra:7}  {overhead:10.3}  {p:19.6}  {low:.6}  {high:.6}");
        if extra >= most {
            break;
        }
        extra += step;
    }
    if !args.json {
        print!("{table}");
    }
}

/// A proportion and its 95 % confidence interval (Wilson).
fn wilson(hits: f64, n: f64) -> (f64, f64, f64) {
    const Z: f64 = 1.96;
    let p = hits / n;
    let centre = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    (p, (centre - half).max(0.0), (centre + half).min(1.0))
}
