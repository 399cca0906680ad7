//! QUIC over several paths by the programs of the crate `tquic_tools`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration as Span, Instant};

use super::track::{Start, Track, wait};
use crate::testbed::command::CommandJob;
use crate::testbed::error::{TestbedError, system};
use crate::testbed::namespace::Namespace;

/// The interval of looking at what has arrived.
const TICK: Span = Span::from_millis(20);
/// The host in the URL, whose certificate the client does not check.
const NAME: &str = "sender";

/// Lets the server listen in a folder of its own, and the client ask when the race begins.
pub(super) fn start(
    track: Track,
    sides: [&Namespace; 2],
    start: Start,
) -> Result<Vec<JoinHandle<()>>, TestbedError> {
    let failed = |problem: String| TestbedError::Flow { flow: "tquic".to_owned(), problem };
    let [server, client] = [program("tquic_server")?, program("tquic_client")?];
    // Its files stand beside what arrives, and go with the folder.
    let folder = track.arrival.with_extension("tquic");
    let [www, dump] = ["www", "dump"].map(|name| folder.join(name));
    for made in [&www, &dump] {
        std::fs::create_dir_all(made).map_err(system("make a folder"))?;
    }
    let source = std::path::absolute(&track.file.path).map_err(system("find the file"))?;
    std::os::unix::fs::symlink(source, www.join("file")).map_err(system("link to the file"))?;
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]);
    let made = made.map_err(|error| failed(error.to_string()))?;
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&cert, made.cert.pem()).map_err(system("write a certificate"))?;
    std::fs::write(&key, made.signing_key.serialize_pem()).map_err(system("write a key"))?;
    let mut serve = quiet(&server);
    serve.arg("--listen").arg(track.from.to_string());
    serve.arg("--cert").arg(&cert).arg("--key").arg(&key).arg("--root").arg(&www);
    let [senders, receivers] = sides;
    let serving = CommandJob::start(senders, serve)?;
    let mut fetch = quiet(&client);
    let own: Vec<String> = track.to.iter().map(ToString::to_string).collect();
    fetch.arg("--connect-to").arg(track.from.to_string());
    fetch.arg("--local-addresses").arg(own.join(",")).arg("--dump-dir").arg(&dump);
    fetch.arg(format!("https://{NAME}/file"));
    let receivers = receivers.share()?;
    let body = move || {
        thread::sleep(wait(start));
        let begin = Instant::now();
        let hash = run(&track, &receivers, fetch, &dump.join("file"));
        track.arrived(begin.elapsed(), hash);
        while !track.is_over() {
            thread::sleep(TICK);
        }
        serving.handle().kill();
        let _ = serving.wait();
    };
    let fetching = thread::Builder::new().name("tquic".to_owned()).spawn(body);
    Ok(vec![fetching.map_err(system("start a thread"))?])
}

/// One of the programs, which say nothing and use several paths.
fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.args(["--congestion-control-algor", "BBR", "--send-udp-payload-size", "1472"]);
    command.args(["--enable-multipath", "--multipath-algor", "minrtt", "--active-cid-limit", "8"]);
    command
}

fn program(name: &str) -> Result<PathBuf, TestbedError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.into_iter().find(|file| file.is_file()).ok_or_else(|| {
        TestbedError::Unsupported(format!(
            "there is no program {name}: install it with cargo install tquic_tools, or leave tquic \
             out of --against"
        ))
    })
}

/// Runs the client until it ends or the race is over, and gives the hash of what it wrote down.
fn run(
    track: &Track,
    receivers: &Namespace,
    fetch: Command,
    arrival: &Path,
) -> Result<String, String> {
    let job = CommandJob::start(receivers, fetch).map_err(|error| error.to_string())?;
    // The client ends some time after the file is complete.
    let is_complete = || arrival.metadata().is_ok_and(|file| file.len() >= track.file.size);
    while !job.is_over() && !is_complete() {
        if track.is_over() {
            break;
        }
        track.moved(arrival.metadata().map_or(0, |file| file.len()));
        thread::sleep(TICK);
    }
    job.handle().kill();
    let status = job.wait().map_err(|error| error.to_string())?;
    let mut file = File::open(arrival)
        .map_err(|_| format!("its client wrote nothing down and ended with {status}"))?;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer).map_err(|error| error.to_string())? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            length => hasher.update(&buffer[..length]),
        };
    }
}
