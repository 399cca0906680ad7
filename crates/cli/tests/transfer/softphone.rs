//! Two unmodified softphones speak through two bridges and a bad path.

use std::f64::consts::TAU;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bench, Running};

/// Samples a second of G.711.
const RATE: u32 = 8000;
const MODULES: &str = "/usr/lib/baresip/modules";

/// A WAV file of one channel with a tone.
fn tone(hertz: f64, seconds: u32) -> Vec<u8> {
    let samples = (0..RATE * seconds).flat_map(|at| {
        let wave = (TAU * hertz * f64::from(at) / f64::from(RATE)).sin();
        ((9000.0 * wave) as i16).to_le_bytes()
    });
    let samples: Vec<u8> = samples.collect();
    let len = samples.len() as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + len).to_le_bytes());
    file.extend(b"WAVEfmt ");
    for number in [16, 1 | 1 << 16, RATE, 2 * RATE, 2 | 16 << 16] {
        file.extend(number.to_le_bytes());
    }
    file.extend(b"data");
    file.extend(len.to_le_bytes());
    file.extend(samples);
    file
}

/// The tenths of a second in a WAV file of one channel that are a tone.
fn tenths_of_tone(file: &[u8], hertz: f64) -> usize {
    let samples: Vec<f64> = file[44..]
        .chunks_exact(2)
        .map(|pair| f64::from(i16::from_le_bytes([pair[0], pair[1]])))
        .collect();
    let is_tone = |part: &&[f64]| {
        let all: f64 = part.iter().map(|sample| sample.powi(2)).sum();
        let (mut cosine, mut sine) = (0.0, 0.0);
        for (at, sample) in part.iter().enumerate() {
            let (s, c) = (TAU * hertz * at as f64 / f64::from(RATE)).sin_cos();
            cosine += sample * c;
            sine += sample * s;
        }
        let share = 2.0 * (cosine * cosine + sine * sine) / (part.len() as f64 * all.max(1.0));
        all > 1e6 * part.len() as f64 && share > 0.7
    };
    samples.chunks_exact(RATE as usize / 10).filter(is_tone).count()
}

/// A softphone that runs until it is dropped.
struct Softphone(Child);

impl Drop for Softphone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a softphone that says a tone, and keeps what it hears in its folder.
fn start(
    bench: &Bench,
    name: &str,
    (port, control): (u16, u16),
    hertz: f64,
    more: &[&str],
) -> Option<Softphone> {
    let folder = bench.path(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("in.wav"), tone(hertz, 20)).unwrap();
    let place = folder.display();
    let mut config = format!(
        "sip_listen 127.0.0.1:{port}\naudio_player aubridge,none\n\
         audio_source aufile,{place}/in.wav\naudio_path {place}\nsnd_path {place}\n\
         ausrc_srate {RATE}\nauplay_srate {RATE}\nausrc_channels 1\nauplay_channels 1\n\
         module_path {MODULES}\nctrl_tcp_listen 127.0.0.1:{control}\n"
    );
    for module in ["stdio", "g711", "aufile", "aubridge", "sndfile"] {
        config += &format!("module {module}.so\n");
    }
    config += "module_tmp account.so\nmodule_app menu.so\nmodule_app ctrl_tcp.so\n";
    fs::write(folder.join("config"), config).unwrap();
    let account =
        format!("<sip:{name}@127.0.0.1:{port}>;regint=0;answermode=auto;audio_codecs=pcmu,pcma\n");
    fs::write(folder.join("accounts"), account).unwrap();
    fs::write(folder.join("contacts"), "").unwrap();
    let mut command = Command::new("baresip");
    command.arg("-f").arg(&folder).args(more).current_dir(&folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok().map(Softphone)
}

/// Collects what a softphone tells whoever connects to its port of control, until it ends.
fn events(control: u16) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut told = Vec::new();
        for _ in 0..100 {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", control)) {
                // It ends with the softphone, in any way.
                let _ = stream.read_to_end(&mut told);
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        String::from_utf8_lossy(&told).into_owned()
    })
}

/// The keys among the events of a softphone, one for each press.
fn keys(events: &str) -> String {
    let begins = events.split("CALL_DTMF_START").skip(1);
    let key = |rest: &str| rest.split_once("\"param\":\"")?.1.chars().next();
    begins.filter_map(key).collect()
}

/// A port of UDP that nobody has.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

fn heard(bench: &Bench, name: &str, hertz: f64) -> usize {
    let entries = fs::read_dir(bench.path(name)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let dump = |path: &Path| path.to_string_lossy().ends_with("dec.wav");
    let path = paths.into_iter().find(|path| dump(path)).expect("what was heard");
    tenths_of_tone(&fs::read(path).unwrap(), hertz)
}

#[test]
fn two_softphones_hear_each_other_through_bridges_over_a_lossy_path() {
    if Command::new("baresip").arg("-h").output().is_err() || !Path::new(MODULES).exists() {
        eprintln!("skipped: there is no baresip here (Debian's package baresip-core)");
        return;
    }
    let bench = Bench::new();
    let (anna, bert) = (free_port(), free_port());
    let (control, other) = (free_port(), free_port());
    let Some(bert_runs) = start(&bench, "bert", (bert, control), 1000.0, &[]) else { return };
    let told = events(control);
    let ring = format!("sip:bert@127.0.0.1:{bert}");
    let listener = bench.listen_for_a_call(&["--json", "--bridge", "127.0.0.1:0", "--ring", &ring]);
    let relay = bench.relay(
        "127.0.0.1",
        listener.port,
        &["--delay", "40ms", "--loss", "5%", "--loss-up", "5%"],
    );
    let url = listener.url_with("127.0.0.1", relay.port, "");
    let mut caller =
        Running::start(bench.command(&["call", &url, "--json", "--bridge", "127.0.0.1:0"]));
    let bridge = caller.event("bridge")["sip"].as_str().unwrap().to_owned();
    let dial = format!("/dial {bridge}");
    let begin = Instant::now();
    let Some(mut anna) = start(&bench, "anna", (anna, other), 440.0, &["-e", &dial, "-t", "5"])
    else {
        return;
    };
    let begun: Value = caller.event("begun");
    assert_eq!(begun["codec"], "g711", "the softphone's favourite");
    // The softphone takes a key for released after a moment.
    let mut keyboard = anna.0.stdin.take().unwrap();
    for key in ["5", "#", "9"] {
        std::thread::sleep(Duration::from_millis(900));
        keyboard.write_all(key.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }
    // The softphone hangs up, and both bridges end.
    anna.0.wait().unwrap();
    let (here, there) = (caller.event("done"), listener.event("done"));
    assert!(begin.elapsed() < Duration::from_secs(20));
    for end in [&here, &there] {
        assert!(end["here"]["played"].as_u64().unwrap() > 100, "{end}");
    }
    drop(bert_runs);
    let told = told.join().unwrap();
    assert_eq!(keys(&told), "5#9", "keys that were pressed at the other end: {told}");
    assert!(heard(&bench, "anna", 1000.0) > 15, "{here}");
    assert!(heard(&bench, "bert", 440.0) > 15, "{there}");
}
