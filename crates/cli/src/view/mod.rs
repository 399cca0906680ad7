//! Every packet's life, in the browser: files in, a page out.

mod page;
mod server;
mod source;

use std::io::Write;
use std::path::{Path, PathBuf};

use fontis_base::{Duration, Time};
use fontis_trace::Detail;
use fontis_trace::figure::{Figure, MOST_PACKETS};

use self::source::Source;
use crate::failure::Failure;
use crate::json::say;

/// Show every packet's life in the browser: of a simulation, a capture, a qlog, or an ns-2 trace
///
/// Opens a page on a local port, which loads nothing from elsewhere. Two captures of the same
/// packets count as both ends of one path and are put on one clock; other files are shown side by
/// side. Every packet is analysed; of very many packets the ordinary ones are thinned out, and
/// --from and --until show a part in full.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Up to four of packets.trace, pcap, pcapng, qlog, an ns-2 trace, or a folder, of which the
    /// newest file counts; without any, the playground
    #[arg(value_name = "FILE", num_args = 0..=4)]
    files: Vec<PathBuf>,
    /// Write one page that needs nothing else, instead of showing it
    #[arg(long, value_name = "OUT.html")]
    export: Option<PathBuf>,
    /// Write a figure of the first file, instead of showing it
    #[arg(long, value_name = "OUT.svg", requires = "files")]
    svg: Option<PathBuf>,
    /// Show two captures side by side even if they hold the same packets
    #[arg(long)]
    compare: bool,
    /// Follow a growing file: a capture, or the folder of a transfer's --qlog or of the recordings
    /// of fontis sim --packets. Waits for the first packets
    #[arg(long, conflicts_with_all = ["export", "svg"], requires = "files")]
    live: bool,
    /// Packets from this time on, in seconds after the first
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    from: f64,
    /// Packets until this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    until: Option<f64>,
    /// The approximate number of packets to keep one by one
    #[arg(long, value_name = "N", default_value_t = Detail::default().most, value_parser = most)]
    most: usize,
    /// Show the playground, which simulates in the page
    #[arg(long, conflicts_with_all = ["files", "svg", "live"])]
    playground: bool,
    /// The port of the page [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Print the URL of the page, and open no browser
    #[arg(long)]
    no_open: bool,
}

const EXAMPLES: &str = "\
Examples:
  Why is this slow? Capture it, then look:
    tcpdump -i any -w slow.pcap tcp port 443; fontis view slow.pcap
  DFCP beside CUBIC on the same path:
    fontis sim scenario.toml --packets && fontis view recordings/ID/00000 recordings/ID/00001
  One page to send to somebody:
    fontis view client.pcap server.pcap --export both-ends.html
  A transfer of Fontis, its blocks and symbols; --qlog goes with get, send, serve and receive:
    fontis get --qlog logs URL && fontis view logs
  The same while it is under way:
    fontis get --qlog logs URL & fontis view --live logs";

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "write seconds, as in 1.5".to_owned())?;
    if (0.0..1e9).contains(&value) { Ok(value) } else { Err("it must be zero or more".to_owned()) }
}

fn most(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(most) if (100..=50_000_000).contains(&most) => Ok(most),
        _ => Err("write a number from 100 to 50000000".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let until = args.until.map_or(Duration::MAX, Duration::from_secs_f64);
    let detail = Detail { most: args.most, from: Duration::from_secs_f64(args.from), until };
    if until <= detail.from {
        return Err(Failure::Usage("--until must be later than --from".to_owned()));
    }
    let sources = if args.live {
        wait(args, detail)
    } else {
        source::sources(&args.files, args.compare, false)?
    };
    if let Some(path) = &args.svg {
        return draw(&sources[0], detail, path);
    }
    if let Some(path) = &args.export {
        let page = match sources.is_empty() {
            true => page::export_playground()?,
            false => page::export(&sources, detail)?,
        };
        write(path, &page)?;
        say(&format!("wrote {}: {} bytes", path.display(), page.len()));
        return Ok(());
    }
    page::view()?;
    let settings = server::Settings {
        port: args.port,
        live: args.live,
        playground: args.playground,
        browser: !args.no_open,
    };
    server::serve(sources, detail, &settings)
}

/// The interval of looking for a file to follow.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);

/// The files to follow, when they are there.
fn wait(args: &Args, detail: Detail) -> Vec<Source> {
    let mut told = false;
    loop {
        let sources = source::sources(&args.files, args.compare, true);
        // What has just begun may have nothing yet that can be shown.
        let ready = sources.and_then(|sources| {
            sources.iter().try_for_each(|source| source.read(detail).map(|_| ()))?;
            Ok(sources)
        });
        match ready {
            Ok(sources) => return sources,
            Err(error) if !told => {
                eprintln!("fontis: waiting; up to now: {error}");
                told = true;
            }
            Err(_) => {}
        }
        std::thread::sleep(LOOK);
    }
}

fn draw(source: &Source, detail: Detail, path: &Path) -> Result<(), Failure> {
    let trace = source.read(detail)?;
    let mut figure = Figure::of(&trace);
    figure.from = Time::ZERO + detail.from;
    figure.until = trace.end.min(Time::ZERO + detail.until);
    // A recording is read whole.
    let drawn = trace.packets.iter().filter(|p| p.sent >= figure.from && p.sent <= figure.until);
    let drawn = drawn.count();
    if drawn > MOST_PACKETS {
        let text = "a figure has room for 20000 packets: choose fewer with --from and --until";
        return Err(Failure::Usage(format!("{}: {drawn} packets; {text}", source.title)));
    }
    write(path, figure.draw(&trace).as_bytes())?;
    say(&format!("wrote {}: {drawn} packets", path.display()));
    Ok(())
}

/// Writes a file that gets its name when it is complete.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    // As any file that is written here: who may read it is the user's setting.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder.unwrap_or(Path::new("."))).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}
