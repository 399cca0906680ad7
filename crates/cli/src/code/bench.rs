use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis_base::{Probability, Stream};
use fontis_codes::{BlockDecoder, BlockEncoder, Code, Decoded};
use serde_json::json;

use super::block::{default_symbols, shape};
use crate::failure::Failure;
use crate::json;
use crate::text::round;

/// Measure the speed of a code on this machine, in one thread
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value = "raptorq", help = format!("The code: {}", measurable(", ")))]
    code: Code,
    /// Source symbols in the block [default: 1000; legacy-byte: 63536]
    #[arg(long, value_name = "NUMBER")]
    symbols: Option<u32>,
    /// Bytes in a symbol [default: 1280; legacy-byte: 1]
    #[arg(long, value_name = "BYTES")]
    symbol_size: Option<u16>,
    /// Lost source symbols, which repair symbols replace
    #[arg(long, value_name = "PERCENT", default_value = "10%")]
    loss: Probability,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The names of the codes that carry bytes.
fn measurable(separator: &str) -> String {
    let codes = Code::ALL.into_iter().filter(|code| code.carries_bytes());
    codes.map(Code::name).collect::<Vec<_>>().join(separator)
}

/// The median of a second of runs; the first is not counted.
fn median(mut run: impl FnMut() -> Result<(), Failure>) -> Result<Duration, Failure> {
    run()?;
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) || times.len() < 3 {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if !args.code.carries_bytes() {
        return Err(Failure::Usage(format!(
            "{} carries no bytes that could be measured: choose {}",
            args.code,
            measurable(" or ")
        )));
    }
    let is_prototype = args.code == Code::LegacyByte;
    let symbol_size = args.symbol_size.unwrap_or(if is_prototype { 1 } else { 1280 });
    let shape =
        shape(args.code, args.symbols.unwrap_or(default_symbols(args.code, 1000)), symbol_size)?;
    let (k, len) = (shape.source_symbols(), shape.len());
    let mut data = vec![0; len as usize];
    Stream::new(1, "bench").fill(&mut data);
    let data = Bytes::from(data);
    let encoder = BlockEncoder::new(shape, data.clone());
    let repair = (k / 10).max(1);
    let mut out = vec![0; repair as usize * usize::from(symbol_size)];
    let encoding = median(|| {
        encoder.repair_job().write(k..k + repair, &mut out);
        Ok(())
    })?;

    let mut encoder = encoder;
    encoder.set_repair(encoder.repair_job().run());
    let mut stream = Stream::new(2, "loss");
    let kept = (0..k).filter(|_| !stream.chance(args.loss)).collect::<Vec<_>>();
    // Enough for any code that can be decoded at all.
    let more = (k..shape.esi_limit()).take(k as usize * 3 + 100);
    let symbols: Vec<_> = kept
        .into_iter()
        .chain(more)
        .map(|esi| (esi, encoder.symbol(esi).unwrap_or_default()))
        .collect();
    let mut used = 0;
    let decoding = median(|| {
        let mut decoder = BlockDecoder::new(shape);
        used = 0;
        loop {
            while decoder.needed() > 0 {
                let Some((esi, symbol)) = symbols.get(used) else {
                    return Err(Failure::Failed(format!(
                        "{used} symbols, all that were made, did not suffice: choose a smaller --loss than {}",
                        args.loss
                    )));
                };
                decoder.add(*esi, symbol).map_err(|error| Failure::Failed(error.to_string()))?;
                used += 1;
            }
            match decoder.decode_job().run() {
                Decoded::Block(block) if block == data => return Ok(()),
                Decoded::Block(_) => return Err(Failure::Failed("the block is wrong".to_owned())),
                Decoded::Failed(again) => decoder = again,
            }
        }
    })?;
    let rate = |time: Duration| round(f64::from(len) / 1e6 / time.as_secs_f64());
    if args.json {
        json::say(&json!({
            "event": "bench",
            "code": args.code.name(),
            "symbols": k,
            "symbol_size": symbol_size,
            "loss": args.loss.get(),
            "encode_megabytes_per_second": rate(encoding),
            "decode_megabytes_per_second": rate(decoding),
            "symbols_used": used,
        }));
    } else {
        println!("{}: {k} symbols of {} bytes", args.code, symbol_size);
        println!("encode, 10% repair symbols: {} MB/s", rate(encoding));
        println!("decode, {} lost: {} MB/s, from {used} symbols", args.loss, rate(decoding));
    }
    Ok(())
}
