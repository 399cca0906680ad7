//! A folder to work in, and the command running there.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take in these tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that no code repeats by accident.
pub(crate) fn content(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new().update(&size.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// The BLAKE3 hash of a file.
pub(crate) fn hash(path: &Path) -> String {
    blake3::hash(&fs::read(path).unwrap()).to_hex().to_string()
}

/// What a measurement gives that has to hold in one of three runs: other tests run beside it, and
/// they can only make it slower. Nothing where it cannot be measured.
pub(crate) fn one_of_three<T: std::fmt::Debug>(
    mut measure: impl FnMut() -> Option<T>,
    holds: impl Fn(&T) -> bool,
) {
    let mut measured = Vec::new();
    for _ in 0..3 {
        let Some(value) = measure() else { return };
        println!("{value:?}");
        if holds(&value) {
            return;
        }
        measured.push(value);
    }
    panic!("none of three runs holds: {measured:?}");
}

/// A folder of its own for a test, with a folder `served` in it and a configuration folder.
pub(crate) struct Bench {
    temp: TempDir,
}

/// What a command that has ended did.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Whether it failed as it should: exit code 1, one line, with this in it.
    pub(crate) fn failed_with(&self, hint: &str) -> bool {
        let mut lines = self.stderr.lines();
        let line = lines.next().unwrap_or_default();
        self.code == 1
            && line.starts_with("fontis: ")
            && line.contains(hint)
            && lines.next().is_none()
    }

    /// The events on standard output.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["served", "run"] {
            fs::create_dir(temp.path().join(folder)).unwrap();
        }
        Self { temp }
    }

    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.temp.path().join(inside)
    }

    /// The command in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fontis"));
        command.args(arguments).current_dir(self.temp.path());
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    /// Runs to the end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let output = self.command(arguments).stdin(Stdio::null()).output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What a script prints that has this folder, new network namespaces and the command as `$0`:
    /// on standard output, and on standard error. None where it cannot have what it needs.
    pub(crate) fn in_namespaces(&self, script: &str, words: &[&str]) -> Option<(String, String)> {
        let fontis = self.command(&[]);
        let mut command = Command::new("timeout");
        command.args(["100", "unshare", "-rn", "bash", "-c", script]);
        command.arg(fontis.get_program()).args(words).current_dir(self.temp.path());
        command.envs(fontis.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if output.status.code() == Some(77) || stderr.starts_with("unshare: ") {
            eprintln!("skipped: no network namespaces here: {stderr}");
            return None;
        }
        Some((stdout, stderr))
    }

    /// Serves the folder `served` on IPv4 loopback.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Listener {
        self.serve_on("127.0.0.1:0", arguments)
    }

    pub(crate) fn serve_on(&self, address: &str, arguments: &[&str]) -> Listener {
        Listener::start(self, &[&["serve", "served", "--listen", address], arguments].concat())
    }

    /// Receives into the folder `inbox`.
    pub(crate) fn receive(&self, arguments: &[&str]) -> Listener {
        self.receive_on("127.0.0.1:0", arguments)
    }

    pub(crate) fn receive_on(&self, address: &str, arguments: &[&str]) -> Listener {
        Listener::start(self, &[&["receive", "inbox", "--listen", address], arguments].concat())
    }

    /// Waits for a call on IPv4 loopback.
    pub(crate) fn listen_for_a_call(&self, arguments: &[&str]) -> Listener {
        Listener::start(self, &[&["call", "--listen", "127.0.0.1:0"], arguments].concat())
    }

    /// A relay in front of a port of this machine, on the same loopback address.
    pub(crate) fn relay(&self, host: &str, to: u16, arguments: &[&str]) -> Relay {
        self.relay_between(&format!("{host}:0"), &format!("{host}:{to}"), arguments)
    }

    /// A relay from one address to another.
    pub(crate) fn relay_between(&self, listen: &str, to: &str, arguments: &[&str]) -> Relay {
        let ends = ["relay", "--json", "--to", to, "--listen", listen];
        let command = self.command(&[&ends, arguments].concat());
        let mut running = Running::start(command);
        let first: Value = serde_json::from_str(&running.line()).unwrap();
        let port = first["listening"].as_str().unwrap().rsplit(':').next().unwrap();
        Relay { port: port.parse().unwrap(), running }
    }

    /// What an incomplete transfer would leave: hidden files.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let names = fs::read_dir(self.temp.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let known = ["cache", "config", "run", "served", "file", "name", "there", "new"];
        names.filter(|name| !known.contains(&name.as_str())).collect()
    }
}

/// A command that runs until it is dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout: BufReader<ChildStdout> = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The next line on standard output.
    pub(crate) fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(error) => {
                let _ = self.child.kill();
                let mut text = String::new();
                let _ = self.child.stderr.take().map(|mut err| err.read_to_string(&mut text));
                panic!("no line on standard output ({error}); on standard error: {text}")
            }
        }
    }

    /// The next event of this kind.
    pub(crate) fn event(&mut self, name: &str) -> Value {
        loop {
            let event: Value = serde_json::from_str(&self.line()).unwrap();
            if event["event"] == name {
                return event;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Presses Ctrl-C.
    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }

    /// Waits for the end; the exit code and standard error.
    #[cfg(unix)]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A relay, and where it listens.
pub(crate) struct Relay {
    pub(crate) port: u16,
    running: Running,
}

impl Relay {
    /// The command itself.
    pub(crate) fn into_running(self) -> Running {
        self.running
    }
}

/// A server or a receiver, and what it printed first.
pub(crate) struct Listener {
    pub(crate) url: String,
    pub(crate) port: u16,
    pub(crate) key: String,
    /// The first event, with `--json`.
    pub(crate) first: Value,
    running: std::sync::Mutex<Running>,
}

impl Listener {
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let mut running = Running::start(bench.command(arguments));
        let line = running.line();
        let first: Value = serde_json::from_str(&line).unwrap_or_default();
        let url = first["urls"][0].as_str().map_or(line, str::to_owned);
        // Who has no key ends with the port.
        let (place, query) = url.split_once("/?key=").unwrap_or((&url, ""));
        let port = place.rsplit(':').next().unwrap().parse().unwrap();
        let key = query.split('&').next().unwrap().to_owned();
        Self { port, key, first, running: std::sync::Mutex::new(running), url }
    }

    /// The URL of a path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        self.url.replace("/?", &format!("/{path}?"))
    }

    /// The URL of a path at another place.
    pub(crate) fn url_with(&self, host: &str, port: u16, path: &str) -> String {
        let (_, query) = self.url.split_once("/?").unwrap();
        format!("fontis://{host}:{port}/{path}?{query}")
    }

    /// Reads and forgets what it says on standard error, so that it never waits for its reader.
    pub(crate) fn forget_errors(&self) {
        let stderr = self.running.lock().unwrap().child.stderr.take();
        std::thread::spawn(|| {
            stderr.map(|mut from| std::io::copy(&mut from, &mut std::io::sink()))
        });
    }

    /// What it says on standard error until it ends.
    pub(crate) fn errors(&self) -> String {
        let stderr = self.running.lock().unwrap().child.stderr.take();
        let mut text = String::new();
        stderr.map(|mut from| from.read_to_string(&mut text)).unwrap().unwrap();
        text
    }

    /// The process's number.
    pub(crate) fn id(&self) -> u32 {
        self.running.lock().unwrap().id()
    }

    /// The next event of this kind, with `--json`.
    pub(crate) fn event(&self, name: &str) -> Value {
        self.running.lock().unwrap().event(name)
    }
}
