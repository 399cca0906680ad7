//! The flags of a call.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use fontis_base::{Duration, Rate};
use fontis_call::{
    Audio, AudioError, CallError, CallOptions, FRAME, FrameCopies, Speaker, Voice, VoiceCarrier,
    VoiceCodec,
};
use fontis_proto::rate::RateKind;

use crate::failure::Failure;
use crate::listen::address;
use crate::paths::PathArgs;
use crate::peer::{KeyArgs, SECURITY, positive};

/// The port to listen on by default.
pub(super) const PORT: u16 = 4437;
/// The heading of flags for telephones.
const SOFTPHONE: &str = "Softphone";
/// The port of calls without encryption (RFC 6773).
pub(super) const PLAIN_PORT: u16 = 6511;
/// The port of SIP at a bridge: that of SIP is a softphone's own.
pub(super) const BRIDGE_PORT: u16 = 5080;
/// The scheme of calls without encryption.
pub(super) const PLAIN_SCHEME: &str = "dccp://";
/// The calls that a listener takes at once by default: each costs a codec.
pub(super) const MOST_CALLS: u32 = 32;

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
    pub(super) url: Option<String>,
    /// Wait for a call in place of making one; the address is as in 192.0.2.1:4437 [default: all
    /// addresses of the machine, port 4437]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, value_parser = address)]
    pub(super) listen: Option<Option<SocketAddr>>,
    /// Accept only callers whose public keys are in this file, one a line as `fontis keygen` prints
    /// it
    #[arg(long, value_name = "FILE", requires = "listen", help_heading = SECURITY)]
    pub(super) allow: Option<PathBuf>,
    /// The voice to send: a WAV file, or - for standard input, as WAV or as samples of 16 bits, one
    /// channel and the codec's rate [default: none, this side only listens]
    #[arg(long, short, value_name = "FILE", conflicts_with = "test")]
    pub(super) input: Option<PathBuf>,
    /// Send a test sound for this time, as in 60s
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub(super) test: Option<Duration>,
    /// Where the other's voice goes: a WAV file, or - for standard output, as samples of 16 bits
    /// [default: nowhere]
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// The codec: opus (16,000 samples a second; opus:RATE in bit/s, opus-fec with in-band FEC),
    /// g711, g711-alaw (8000 samples a second); g729-sized and speex-sized carry no voice and load
    /// a path as these codecs would [default: opus; with --bridge, the softphone's favourite]
    #[arg(long)]
    pub(super) codec: Option<VoiceCodec>,
    /// What carries the voice: dfcp (messages of the connection), dccp (CCID 4, over UDP), udp
    /// (without congestion control). The last two need a UDP port of their own at the listener
    /// [default: dfcp; with --plain, dccp]
    #[arg(long, conflicts_with = "listen")]
    pub(super) over: Option<VoiceCarrier>,
    /// Call without encryption, or take such a call, with peers of any make: RTP in DCCP over UDP
    /// (RFC 5762, RFC 6773). Anybody on the path can listen and speak. The URL is dccp://HOST:PORT;
    /// both sides name the same --codec [default here: g711]
    #[arg(
        long,
        conflicts_with_all = ["allow", "calls", "rate", "psk_file", "identity"],
        help_heading = SECURITY
    )]
    pub(super) plain: bool,
    /// Let a softphone on this machine speak and hear: it calls sip:fontis@ADDR:PORT, and its call
    /// goes through this one [default address: 127.0.0.1:5080]. On an address that is not loopback
    /// its voice crosses the network without encryption
    #[arg(
        long,
        value_name = "ADDR:PORT",
        num_args = 0..=1,
        value_parser = address,
        conflicts_with_all = ["input", "test", "output", "calls"],
        help_heading = SOFTPHONE
    )]
    pub(super) bridge: Option<Option<SocketAddr>>,
    /// Let the softphone at this address ring when somebody calls, as in sip:me@127.0.0.1:5062, in
    /// place of waiting until it calls
    #[arg(long, value_name = "SIP", requires_all = ["bridge", "listen"], help_heading = SOFTPHONE)]
    pub(super) ring: Option<String>,
    /// The UDP port of voice over dccp and udp, for firewalls [default: any]
    #[arg(long, value_name = "PORT", requires = "listen", conflicts_with = "plain")]
    pub(super) voice_port: Option<u16>,
    /// Send at this rate over dfcp whatever is lost, as in 2mbit, and not as rate control finds
    /// right: for a path that is yours alone
    #[arg(long, value_name = "RATE")]
    pub(super) rate: Option<Rate>,
    /// The most repair packets to add while the other side loses packets, as a share of the packets
    /// of voice; 0 turns repair off
    #[arg(long, value_name = "SHARE", default_value = "25%")]
    pub(super) repair: fontis_base::Probability,
    /// In the place of repair packets, send the N frames before each once more with it while the
    /// other side loses packets (RFC 2198): as they are, or those of G.711 as Opus at RATE bit/s,
    /// as in 1:12000
    #[arg(long, value_name = "N[:RATE]", conflicts_with = "repair")]
    pub(super) copies: Option<FrameCopies>,
    /// Send no pauses of your voice but a description of their noise, once a second (RFC 3389): a
    /// pause is quiet, and has no voice in it, for 200 ms. Opus never sends them
    #[arg(long, conflicts_with = "bridge")]
    pub(super) dtx: bool,
    /// Make so many calls at once in one connection, all with the same voice: a trunk [default: 1];
    /// with --listen, take at most so many [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) calls: Option<u32>,
    /// End the call after three seconds if the rating factor of either direction is below this, or
    /// if DCCP does not allow its rate: 50 is the least that most people accept
    #[arg(long, value_name = "R", value_parser = rating)]
    pub(super) admit: Option<f64>,
    /// Write how the call is heard to this file, a line of JSON for each second
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Time to wait for an answer before giving up, as in 500ms; a number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = positive)]
    pub(super) timeout: Duration,
    #[command(flatten)]
    pub(super) paths: PathArgs,
    #[command(flatten)]
    pub(super) keys: KeyArgs,
    /// Print JSON, one event a line, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Wait for a call, and speak and hear through the sound card (Linux):
    arecord -t raw -f S16_LE -c 1 -r 16000 | fontis call --listen -i - -o - |
      aplay -t raw -f S16_LE -c 1 -r 16000
  Call, send a file, and keep what is heard:
    fontis call 'fontis://192.0.2.1:4437/?key=KEY&secret=SECRET' -i voice.wav -o heard.wav
  Telephone with a softphone at each end, which has an account without registration:
    fontis call --listen --bridge --ring sip:me@127.0.0.1:5062
    fontis call URL --bridge        # then the softphone calls sip:fontis@127.0.0.1:5080
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

pub(super) fn is_dash(path: Option<&PathBuf>) -> bool {
    path.is_some_and(|path| path.as_os_str() == "-")
}

impl Args {
    /// What is wrong with the flags together.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.json && is_dash(self.output.as_ref()) {
            return Err(
                "standard output is either JSON or voice: leave out --json, or name a file after -o",
            );
        }
        if self.url.as_deref() == Some("@-") && is_dash(self.input.as_ref()) {
            return Err(
                "standard input is either the URL or the voice: put the URL into a file, as @FILE",
            );
        }
        if self.plain && self.over.is_some_and(|over| over != VoiceCarrier::Dccp) {
            return Err("calls without encryption go over dccp: leave out --over, or --plain");
        }
        if self.listen.is_some() && !self.plain && self.codec.is_some() {
            return Err("the caller chooses the codec: leave out --codec");
        }
        let is_load = matches!(self.codec, Some(VoiceCodec::G729Sized | VoiceCodec::SpeexSized));
        if self.bridge.is_some() && is_load {
            return Err("no softphone has this codec: choose opus, g711 or g711-alaw");
        }
        if self.bridge.flatten().is_some_and(|at| at.ip().is_unspecified()) {
            return Err(
                "a softphone must be told one address: name one of this machine after --bridge",
            );
        }
        let is_plain = self.url.as_deref().is_some_and(|url| url.starts_with(PLAIN_SCHEME));
        match (is_plain, self.plain, &self.url) {
            (true, false, _) => Err(
                "this listener is not encrypted: with --plain the call is made all the same, and anybody on the path can listen",
            ),
            (false, true, Some(_)) => Err(
                "a call without encryption needs a URL as in dccp://192.0.2.1:6511: leave out --plain to call an encrypted listener",
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn options(&self) -> CallOptions {
        let (codec, carrier) = match self.plain {
            true => (VoiceCodec::Mulaw, VoiceCarrier::Dccp),
            false => (VoiceCodec::OPUS, VoiceCarrier::Dfcp),
        };
        CallOptions {
            codec: self.codec.unwrap_or(codec),
            carrier: self.over.unwrap_or(carrier),
            repair: if self.copies.is_some() { 0.0 } else { self.repair.get() },
            copies: self.copies,
            without_pauses: self.dtx,
            calls: self.calls.unwrap_or(1),
            admit: self.admit,
            voice_at: self.voice_port.map(|port| {
                let at = self.listen.flatten().map_or(Ipv4Addr::UNSPECIFIED.into(), |at| at.ip());
                SocketAddr::new(at, port)
            }),
        }
    }

    /// The rate of this side's connection.
    pub(super) fn rate(&self) -> RateKind {
        self.rate.map_or(RateKind::Auto, RateKind::Fixed)
    }

    /// Opens the input and the output.
    pub(super) fn sound(&self, codec: VoiceCodec) -> Result<Voice, CallError> {
        Ok(self.files(codec).map(|(audio, speaker)| Voice::Sound(audio, speaker))?)
    }

    fn files(&self, codec: VoiceCodec) -> Result<(Audio, Speaker), AudioError> {
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
