use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use fontis_codes::raptorq::ObjectDecoder;
use serde_json::json;

use super::symbol_file::{Object, records};
use crate::failure::Failure;
use crate::json;

/// Rebuild a file from symbols: folders, symbol files, streams
///
/// Damaged symbols, and bytes between symbols, are skipped. The file gets its name when it is
/// complete and verified.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Symbol files, recorded streams, folders of them, or - for standard input
    #[arg(value_name = "SYMBOLS", required = true)]
    symbols: Vec<PathBuf>,
    /// The file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The symbols of the object so far.
#[derive(Default)]
struct Reading {
    decoder: Option<(Object, ObjectDecoder)>,
    /// The payload identifiers so far.
    symbols: HashSet<[u8; 4]>,
    foreign: u64,
}

impl Reading {
    /// Takes the symbols of a file; returns true if no more are needed.
    fn take(&mut self, bytes: &[u8]) -> bool {
        for (object, packet) in records(bytes) {
            let (of, decoder) =
                self.decoder.get_or_insert_with(|| (object, ObjectDecoder::new(object.oti)));
            if *of == object && decoder.add(packet).is_ok() {
                self.symbols.extend(packet.first_chunk::<4>());
            } else {
                self.foreign += 1;
            }
        }
        self.decoder.as_ref().is_some_and(|(_, decoder)| decoder.needed() == 0)
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let failed =
        |what: &Path, error: io::Error| Failure::Failed(format!("{}: {error}", what.display()));
    if args.out.exists() {
        return Err(Failure::Failed(format!("{} exists already", args.out.display())));
    }
    let mut reading = Reading::default();
    'paths: for path in &args.symbols {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
            if reading.take(&bytes) {
                break;
            }
            continue;
        }
        for file in files(path).map_err(|error| failed(path, error))? {
            let bytes = fs::read(&file).map_err(|error| failed(&file, error))?;
            if reading.take(&bytes) {
                break 'paths;
            }
        }
    }
    let Reading { decoder, symbols, foreign } = reading;
    let symbols = symbols.len();
    let Some((object, decoder)) = decoder else {
        return Err(Failure::Failed(
            "there is no undamaged symbol in what was given: give the folder or the stream that `fontis code encode` wrote"
                .to_owned(),
        ));
    };
    let blocks = decoder.finish().map_err(|decoder| {
        let other = if foreign > 0 {
            format!("; {foreign} belong to another file, whose symbols should be in another folder")
        } else {
            String::new()
        };
        let needed = decoder.needed();
        Failure::Failed(format!(
            "{needed} more symbols are needed beside the {symbols} that are there{other}"
        ))
    })?;
    let mut hasher = blake3::Hasher::new();
    for block in &blocks {
        hasher.update(block);
    }
    if hasher.finalize().as_bytes() != &object.hash {
        return Err(Failure::Failed(
            "the symbols do not make the file that they say they are of".to_owned(),
        ));
    }
    // Under its name it appears whole or not at all.
    let mut part = args.out.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut file = File::create_new(&part).map_err(|error| failed(&part, error))?;
    let written = blocks
        .iter()
        .try_for_each(|block| file.write_all(block))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, &args.out));
    if let Err(error) = written {
        let _ = fs::remove_file(&part);
        return Err(failed(&args.out, error));
    }
    let bytes = object.oti.transfer_length();
    if args.json {
        json::say(
            &json!({ "event": "decoded", "bytes": bytes, "symbols": symbols, "foreign": foreign }),
        );
    } else {
        println!("{bytes} bytes from {symbols} symbols in {}", args.out.display());
    }
    Ok(())
}

/// The file, or the files of the folder, in order.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir()? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
