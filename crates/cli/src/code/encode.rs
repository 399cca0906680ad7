use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fontis_base::Probability;
use fontis_codes::raptorq::{MAX_SOURCE_SYMBOLS, Oti, SourceBlockEncoder};
use serde_json::json;

use super::symbol_file::Object;
use crate::failure::Failure;
use crate::json;

/// Write a file as symbols: a folder of symbol files, or a stream
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder for symbol files, made if needed [default: FILE.symbols]
    #[arg(long, value_name = "FOLDER", conflicts_with = "stream")]
    out: Option<PathBuf>,
    /// Write all symbols to standard output, one after another
    #[arg(long)]
    stream: bool,
    /// Bytes in a symbol, from 1 to 65535
    #[arg(long, value_name = "BYTES", default_value_t = 1280)]
    symbol_size: u16,
    /// Repair symbols, as a share of the source symbols; 100% or more is allowed
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = redundancy)]
    redundancy: f64,
    /// The most symbols in a source block, up to 56403; larger blocks code better and take more
    /// memory
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    block_symbols: u32,
    /// Print the result as JSON
    #[arg(long, conflicts_with = "stream")]
    pub(super) json: bool,
}

/// Reads "10%", "250 %" or "2.5".
fn redundancy(text: &str) -> Result<f64, String> {
    if let Ok(part) = text.parse::<Probability>() {
        return Ok(part.get());
    }
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=1e6).contains(&number) => Ok(number / scale),
        _ => Err("write a part of the source symbols, as in 10% or 1.5".to_owned()),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let failed =
        |what: &Path, error: io::Error| Failure::Failed(format!("{}: {error}", what.display()));
    if args.file.is_dir() {
        return Err(Failure::Failed(format!(
            "{} is a folder: pack it into one file first, as with tar",
            args.file.display()
        )));
    }
    if args.symbol_size == 0 {
        return Err(Failure::Usage("--symbol-size must be from 1 to 65535".to_owned()));
    }
    let mut file = File::open(&args.file).map_err(|error| failed(&args.file, error))?;
    let mut hasher = blake3::Hasher::new();
    let length = io::copy(&mut file, &mut hasher).map_err(|error| failed(&args.file, error))?;
    if args.block_symbols == 0 || args.block_symbols > MAX_SOURCE_SYMBOLS {
        let message = format!("--block-symbols must be from 1 to {MAX_SOURCE_SYMBOLS}");
        return Err(Failure::Usage(message));
    }
    let oti = cut(length, args)?;
    let object = Object { oti, hash: *hasher.finalize().as_bytes() };

    let mut file = File::open(&args.file).map_err(|error| failed(&args.file, error))?;
    let folder = args.out.clone().unwrap_or_else(|| {
        let mut name = args.file.clone().into_os_string();
        name.push(".symbols");
        PathBuf::from(name)
    });
    if !args.stream {
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        // Left-over symbols of another file would be taken for this one's.
        let has_symbols = |entry: fs::DirEntry| entry.path().extension() == Some("symbol".as_ref());
        let mut entries = fs::read_dir(&folder).map_err(|error| failed(&folder, error))?;
        if entries.any(|entry| entry.is_ok_and(has_symbols)) {
            return Err(Failure::Failed(format!(
                "{} has symbols already: remove them, or choose another folder with --out",
                folder.display()
            )));
        }
    }
    let mut symbols = 0u64;
    for number in 0..oti.source_blocks() {
        let Some(block) = oti.block(number) else { continue };
        let mut data = vec![0; (block.range.end - block.range.start) as usize];
        file.read_exact(&mut data).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Failure::Failed(format!(
                "{} has become shorter while it was read: encode it again",
                args.file.display()
            )),
            _ => failed(&args.file, error),
        })?;
        let encoder = SourceBlockEncoder::new(oti, number, Bytes::from(data))
            .map_err(|error| Failure::Failed(error.to_string()))?;
        let repair = (f64::from(block.symbols) * args.redundancy).ceil() as u32;
        // An empty file has no symbols, but one record says that it is empty.
        for esi in 0..block.symbols.max(1).saturating_add(repair) {
            // Beyond 24 bits there are no more symbols.
            let Some(packet) = encoder.packet(esi) else { break };
            let record = object.record(&packet);
            if args.stream {
                let written = io::stdout().lock().write_all(&record);
                written.map_err(|error| failed(Path::new("standard output"), error))?;
            } else {
                let path = folder.join(format!("{number:03}-{esi:08}.symbol"));
                fs::write(&path, record).map_err(|error| failed(&path, error))?;
            }
            symbols += 1;
        }
    }
    if args.json {
        json::say(&json!({
            "event": "encoded",
            "bytes": length,
            "blocks": oti.source_blocks(),
            "symbols": symbols,
            "symbol_size": oti.symbol_size(),
            "folder": folder.to_string_lossy(),
        }));
    } else if !args.stream {
        println!("{symbols} symbols in {}", folder.display());
    }
    Ok(())
}

/// The blocks of the file: as few as the limit allows, of about the same size.
fn cut(length: u64, args: &Args) -> Result<Oti, Failure> {
    let symbols = length.div_ceil(u64::from(args.symbol_size));
    let blocks = symbols.div_ceil(u64::from(args.block_symbols)).max(1);
    let blocks = u8::try_from(blocks).map_err(|_| {
        Failure::Usage(format!(
            "{length} bytes make {blocks} blocks, and 255 are possible: choose a larger --symbol-size or --block-symbols"
        ))
    })?;
    Oti::new(length, args.symbol_size, blocks, 1, 1)
        .map_err(|error| Failure::Usage(error.to_string()))
}
