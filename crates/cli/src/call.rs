//! Calls: voice in both directions.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fontis::transfer::Progress;
use fontis::{Endpoint, Secret};
use fontis_base::{Duration, Rate};
use fontis_call::{
    Audio, AudioError, CallError, CallEvent, CallOptions, CallReport, FRAME, Heard, Ringing,
    Speaker, VoiceCarrier, VoiceCodec, call, ring,
};
use fontis_proto::rate::RateKind;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::dial::dial;
use crate::failure::Failure;
use crate::json;
use crate::listen::{ListenArgs, address, announce, status, urls};
use crate::paths::PathArgs;
use crate::peer::{self, KeyArgs, Keys, SECURITY, positive};
use crate::runtime::{block_on, interrupted};
use crate::text::round;

/// The port to listen on by default.
const PORT: u16 = 4437;
/// The calls that a listener takes at once by default: each costs a codec.
const MOST_CALLS: u32 = 32;

/// Call somebody, or wait for a call
///
/// One side listens and prints URLs; the other calls one of them. Voice goes in both directions,
/// encrypted, from standard input or a file to standard output or a file. Each side shows how well
/// it hears the other: the rating factor and the mean opinion score of the E-model (ITU-T G.107).
/// The caller chooses the codec and what carries the voice. The call ends when both sides have
/// nothing more to say, or at Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The URL that the other side printed. Quote it: shells interpret ? and &. @FILE is the URL in
    /// a file, @- the one on standard input
    #[arg(required_unless_present = "listen", conflicts_with = "listen")]
    url: Option<String>,
    /// Wait for a call in place of making one; the address is as in 192.0.2.1:4437 [default: all
    /// addresses of the machine, port 4437]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, value_parser = address)]
    listen: Option<Option<SocketAddr>>,
    /// Accept only callers whose public keys are in this file, one a line as `fontis keygen` prints
    /// it
    #[arg(long, value_name = "FILE", requires = "listen", help_heading = SECURITY)]
    allow: Option<PathBuf>,
    /// The voice to send: a WAV file, or - for standard input, as WAV or as samples of 16 bits, one
    /// channel and the codec's rate [default: none, this side only listens]
    #[arg(long, short, value_name = "FILE", conflicts_with = "test")]
    input: Option<PathBuf>,
    /// Send a test sound for this time, as in 60s
    #[arg(long, value_name = "TIME", value_parser = positive)]
    test: Option<Duration>,
    /// Where the other's voice goes: a WAV file, or - for standard output, as samples of 16 bits
    /// [default: nowhere]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The codec: opus (16,000 samples a second; opus:RATE in bit/s, opus-fec with in-band FEC),
    /// g711, g711-alaw (8000 samples a second); g729-sized and speex-sized carry no voice and load
    /// a path as these codecs would
    #[arg(long, default_value_t = VoiceCodec::OPUS, conflicts_with = "listen")]
    codec: VoiceCodec,
    /// What carries the voice: dfcp (messages of the connection), dccp (CCID 4, over UDP), udp
    /// (without congestion control). The last two need a UDP port of their own at the listener
    #[arg(long, default_value_t, conflicts_with = "listen")]
    over: VoiceCarrier,
    /// Send at this rate over dfcp whatever is lost, as in 2mbit, and not as rate control finds
    /// right: for a path that is yours alone
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The most repair packets to add while the other side loses packets, as a share of the packets
    /// of voice; 0 turns repair off
    #[arg(long, value_name = "SHARE", default_value = "20%")]
    repair: fontis_base::Probability,
    /// Make so many calls at once in one connection, all with the same voice: a trunk [default: 1];
    /// with --listen, take at most so many [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    calls: Option<u32>,
    /// End the call after three seconds if the rating factor of either direction is below this, or
    /// if DCCP does not allow its rate: 50 is the least that most people accept
    #[arg(long, value_name = "R", value_parser = rating)]
    admit: Option<f64>,
    /// Write how the call is heard to this file, a line of JSON for each second
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Time to wait for an answer before giving up, as in 500ms; a number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = positive)]
    timeout: Duration,
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Wait for a call, and speak and hear through the sound card (Linux):
    arecord -t raw -f S16_LE -c 1 -r 16000 | fontis call --listen -i - -o - | aplay -t raw -f S16_LE -c 1 -r 16000
  Call, send a file, and keep what is heard:
    fontis call 'fontis://192.0.2.1:4437/?key=KEY&secret=SECRET' -i voice.wav -o heard.wav
  Measure a path as a telephone line, with thirty calls of G.711 over DCCP:
    fontis call URL --test 60s --codec g711 --over dccp --calls 30 --report seconds.jsonl";

fn rating(text: &str) -> Result<f64, String> {
    let form = "write a rating factor from 0 to 100, as in 50";
    match text.parse::<f64>() {
        Ok(r) if (0.0..=100.0).contains(&r) => Ok(r),
        Ok(_) => Err(form.to_owned()),
        Err(error) => Err(format!("{error}; {form}")),
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.json && is_dash(args.output.as_ref()) {
        let text =
            "standard output is either JSON or voice: leave out --json, or name a file after -o";
        return Err(Failure::Usage(text.to_owned()));
    }
    if args.url.as_deref() == Some("@-") && is_dash(args.input.as_ref()) {
        let text =
            "standard input is either the URL or the voice: put the URL into a file, as @FILE";
        return Err(Failure::Usage(text.to_owned()));
    }
    let keys = args.keys.load()?;
    let monitor = Monitor::new(args)?;
    let report = match &args.listen {
        Some(at) => block_on(&keys, listen(args, &keys, *at, &monitor)),
        None => block_on(&keys, make(args, &keys, &monitor)),
    }?;
    monitor.end(&report);
    Ok(())
}

fn is_dash(path: Option<&PathBuf>) -> bool {
    path.is_some_and(|path| path.as_os_str() == "-")
}

/// Calls the URL.
async fn make(args: &Args, keys: &Keys, monitor: &Monitor) -> Result<CallReport, Failure> {
    let url = peer::url_of_argument(args.url.as_deref().unwrap_or_default())?;
    let options = args.options();
    // Its files are opened before anybody's telephone rings.
    let voice = RefCell::new(Some(args.voice(options.codec).map_err(CallError::from)?));
    dial(&url, args.timeout.into(), async |remote, answered| {
        let endpoint = keys.bind_towards(remote, &url.key, args.rate(), &args.paths)?;
        let _follower = args.paths.follow(&endpoint, remote);
        let connection = endpoint.connect(remote, *url.key.as_bytes(), None).await;
        let connection = connection
            .map_err(|error| Failure::from(fontis::transfer::TransferError::from(error)))?;
        answered.see(&Progress::Connected { remote });
        // An address that answered is the only one.
        let Some(voice) = voice.take() else { return Err(CallError::Lost.into()) };
        let tell = |event| monitor.see(&event);
        Ok(call(&connection, url.secret.as_ref(), &options, voice, tell, interrupted()).await?)
    })
    .await
}

/// Waits for a call. Others that come during it hear that the line is busy.
async fn listen(
    args: &Args,
    keys: &Keys,
    at: Option<SocketAddr>,
    monitor: &Monitor,
) -> Result<CallReport, Failure> {
    let listen = ListenArgs { listen: at, allow: args.allow.clone() };
    let endpoint = listen.bind(PORT, keys, args.rate())?;
    let secret = Secret::generate();
    announce_to(&urls(&endpoint, Some(&secret)), args);
    status(&"waiting for a call; Ctrl-C ends it");
    let (sender, mut rings) = mpsc::channel(1);
    let most = args.calls.unwrap_or(MOST_CALLS);
    let accepting = tokio::spawn(accept(endpoint, secret, most, sender));
    let ringing = tokio::select! {
        ringing = rings.recv() => ringing,
        () = interrupted() => {
            return Err(Failure::Failed("interrupted: nobody called".to_owned()));
        }
    };
    let Some(ringing) = ringing else {
        return Err(Failure::Failed("the socket failed".to_owned()));
    };
    let busy = tokio::spawn(async move {
        while let Some(other) = rings.recv().await {
            other.refuse_busy().await;
        }
    });
    let voice = |codec| args.voice(codec);
    let tell = |event| monitor.see(&event);
    let report = ringing.answer(&args.options(), voice, tell, interrupted()).await;
    accepting.abort();
    busy.abort();
    Ok(report?)
}

/// Hands on the calls of those who know the secret. Others cannot keep them waiting.
async fn accept(endpoint: Endpoint, secret: Secret, most: u32, rings: mpsc::Sender<Ringing>) {
    while let Some(connection) = endpoint.accept().await {
        let (secret, rings) = (secret.clone(), rings.clone());
        tokio::spawn(async move {
            let remote = connection.remote_addr();
            match ring(connection, Some(&secret), most).await {
                Ok(ringing) => drop(rings.send(ringing).await),
                Err(error) => status(&format_args!("{remote}: {error}")),
            }
        });
    }
}

/// Prints the URLs; on standard error, if standard output is voice.
fn announce_to(urls: &[String], args: &Args) {
    if is_dash(args.output.as_ref()) {
        urls.iter().for_each(|url| status(url));
    } else {
        announce(urls, args.json);
    }
}

impl Args {
    fn options(&self) -> CallOptions {
        CallOptions {
            codec: self.codec,
            carrier: self.over,
            repair: self.repair.get(),
            calls: self.calls.unwrap_or(1),
            admit: self.admit,
        }
    }

    /// The rate of this side's connection.
    fn rate(&self) -> RateKind {
        self.rate.map_or(RateKind::Auto, RateKind::Fixed)
    }

    /// Opens the input and the output.
    fn voice(&self, codec: VoiceCodec) -> Result<(Audio, Speaker), AudioError> {
        let audio = match (&self.input, self.test) {
            (Some(_), _) if is_dash(self.input.as_ref()) => Audio::stdin(codec),
            (Some(path), _) => Audio::file(path, codec)?,
            (None, Some(time)) => Audio::test(time.as_nanos().div_ceil(FRAME.as_nanos()), codec),
            (None, None) => Audio::none(),
        };
        let speaker = match &self.output {
            Some(_) if is_dash(self.output.as_ref()) => Speaker::stdout(),
            Some(path) => Speaker::file(path, codec)?,
            None => Speaker::none(),
        };
        Ok((audio, speaker))
    }
}

/// Shows how a call goes.
struct Monitor {
    as_json: bool,
    report: Option<(PathBuf, RefCell<File>)>,
}

impl Monitor {
    fn new(args: &Args) -> Result<Self, Failure> {
        let open = |path: &PathBuf| match File::create(path) {
            Ok(file) => Ok((path.clone(), RefCell::new(file))),
            Err(error) => Err(Failure::Failed(format!("cannot write {}: {error}", path.display()))),
        };
        let report = args.report.as_ref().map(open).transpose()?;
        Ok(Self { as_json: args.json, report })
    }

    fn see(&self, event: &CallEvent) {
        match event {
            CallEvent::Begun { codec, carrier, calls } => {
                if self.as_json {
                    let (codec, over) = (codec.to_string(), carrier.to_string());
                    json::say(&json!({
                        "event": "begun", "codec": codec, "over": over, "calls": calls,
                    }));
                }
                let many = if *calls == 1 { String::new() } else { format!(", {calls} calls") };
                status(&format_args!("the call has begun: {codec} over {carrier}{many}"));
            }
            CallEvent::Second(report) => {
                self.write(&line("second", report));
                if self.as_json {
                    json::say(&line("second", report));
                } else if (report.seconds as u64).is_multiple_of(5) {
                    status(&format_args!("{:3.0} s: {}", report.seconds, both(report)));
                }
            }
        }
    }

    fn end(&self, report: &CallReport) {
        self.write(&line("done", report));
        if self.as_json {
            json::say(&line("done", report));
        } else {
            let sent = report.sent;
            let share = 100.0 * sent.repair_bytes as f64 / (sent.bytes as f64).max(1.0);
            status(&format_args!(
                "the call is over after {:.1} s: {}",
                report.seconds,
                both(report)
            ));
            status(&format_args!(
                "sent {} packets of voice, and {} repair packets with {share:.0} % of their bytes",
                sent.packets, sent.repair_packets
            ));
        }
    }

    fn write(&self, line: &Value) {
        let Some((path, file)) = &self.report else { return };
        if let Err(error) = writeln!(file.borrow_mut(), "{line}") {
            status(&format_args!("cannot write {}: {error}", Path::new(path).display()));
        }
    }
}

/// Both directions, for people.
fn both(report: &CallReport) -> String {
    let one = |heard: &Heard| {
        format!(
            "MOS {:.2}, R {:.0}, {:.1} % lost, {:.0} ms",
            heard.mos,
            heard.r,
            100.0 * heard.loss,
            heard.delay
        )
    };
    let is_heard = |heard: &&Heard| heard.played + heard.missed > 0;
    let here = Some(&report.here).filter(is_heard).map_or("nothing".to_owned(), one);
    let there = report.there.as_ref().filter(is_heard).map_or("nothing".to_owned(), one);
    format!("heard here {here}; heard there {there}")
}

/// Both directions, for programs.
fn line(event: &str, report: &CallReport) -> Value {
    let one = |heard: &Heard| {
        json!({
            "mos": round(heard.mos),
            "r": round(heard.r),
            "loss": round(heard.loss),
            "network_loss": round(heard.network_loss),
            "delay_ms": round(heard.delay),
            "jitter_ms": round(heard.jitter),
            "received": heard.received,
            "restored": heard.restored,
            "played": heard.played,
            "missed": heard.missed,
            "late": heard.late,
        })
    };
    json!({
        "event": event,
        "seconds": round(report.seconds),
        "codec": report.codec.to_string(),
        "over": report.carrier.to_string(),
        "calls": report.calls,
        "here": one(&report.here),
        "there": report.there.as_ref().map(one),
        "packets_sent": report.sent.packets,
        "bytes_sent": report.sent.bytes,
        "repair_packets_sent": report.sent.repair_packets,
        "repair_bytes_sent": report.sent.repair_bytes,
        "connection_bytes_sent": report.connection_bytes,
    })
}
