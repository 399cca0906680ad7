use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis_base::{Probability, Stream};
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
use serde_json::json;

use crate::failure::Failure;
use crate::json;
use crate::text::round;

/// Measure how fast a code encodes and decodes on this machine, in one thread
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The code: raptorq, r10, lt, lt-ideal, legacy-byte, reed-solomon
    #[arg(long, default_value = "raptorq")]
    code: Code,
    /// Source symbols in the block
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    symbols: u32,
    /// Bytes in a symbol
    #[arg(long, value_name = "BYTES", default_value_t = 1280)]
    symbol_size: u16,
    /// Source symbols that are lost, and replaced by repair symbols
    #[arg(long, value_name = "PERCENT", default_value = "10%")]
    loss: Probability,
    /// Measure as JSON
    #[arg(long)]
    pub(super) json: bool,
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
    let len = args.symbols.checked_mul(u32::from(args.symbol_size));
    let len = len.ok_or_else(|| Failure::Usage("a block has less than 4 GiB".to_owned()))?;
    if !args.code.carries_bytes() {
        return Err(Failure::Usage(format!(
            "{} carries no bytes that could be measured",
            args.code
        )));
    }
    let shape = BlockShape::new(args.code, len, args.symbol_size)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let k = shape.source_symbols();
    let mut data = vec![0; len as usize];
    Stream::new(1, "bench").fill(&mut data);
    let data = Bytes::from(data);
    let encoder = BlockEncoder::new(shape, data.clone());
    let repair = (k / 10).max(1);
    let mut out = vec![0; repair as usize * usize::from(args.symbol_size)];
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
                    return Err(Failure::Failed(format!("{used} symbols did not suffice")));
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
            "symbol_size": args.symbol_size,
            "loss": args.loss.get(),
            "encode_megabytes_per_second": rate(encoding),
            "decode_megabytes_per_second": rate(decoding),
            "symbols_used": used,
        }));
    } else {
        println!("{}: {k} symbols of {} bytes", args.code, args.symbol_size);
        println!("encode, 10% repair symbols: {} MB/s", rate(encoding));
        println!("decode, {} lost: {} MB/s, from {used} symbols", args.loss, rate(decoding));
    }
    Ok(())
}
