//! A call from its offer to its end.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration as Wait, Instant};

use bytes::Bytes;
use fontis::{Connection, Secret};
use fontis_base::Time;
use fontis_proto::dfcp::SendOptions;
use tokio::time::MissedTickBehavior;

use crate::audio::{Audio, AudioError, Speaker, Spoken};
use crate::carrier::VoiceCarrier;
use crate::codec::{FRAME, VoiceCodec};
use crate::error::CallError;
use crate::hearer::{Heard, Hearer};
use crate::line::{Line, Opening, wire_rate};
use crate::refusal::Refusal;
use crate::rtp::RtpFrame;
use crate::signal::{Offer, Report, Signal, VERSION};
use crate::talker::{Talker, TalkerStats};

/// How long an end waits for the other's answer.
const PATIENCE: Wait = Wait::from_secs(20);
/// How long an end waits for the other's last report.
const FAREWELL: Wait = Wait::from_secs(3);
/// Frames between two reports.
const REPORT: u64 = 50;
/// Frames after which a call is admitted or not.
const ADMISSION: u64 = 150;
/// Frames that are played after both ends are silent.
const DRAIN: u64 = 75;
/// Frames that are sent in one turn at most, after turns that had none.
const MOST_AT_ONCE: usize = 3;
/// A peer that loses less than this needs no repair packets.
const LITTLE_LOSS: f64 = 0.003;

/// The wishes of one end of a call.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// The form of the voice, which the caller chooses for both directions.
    pub codec: VoiceCodec,
    /// What carries the voice, which the caller chooses for both directions.
    pub carrier: VoiceCarrier,
    /// The most repair packets that this end adds to each packet of voice: .2 is one for five. They
    /// are sent while the peer reports losses.
    pub repair: f64,
    /// Calls at once in the connection, which the caller chooses. All carry the same voice.
    pub calls: u32,
    /// The least rating factor of both directions; the call ends after three seconds if one is
    /// below it, or if congestion control does not allow its rate.
    pub admit: Option<f64>,
}

impl Default for CallOptions {
    fn default() -> Self {
        let (codec, carrier) = (VoiceCodec::OPUS, VoiceCarrier::Dfcp);
        Self { codec, carrier, repair: 0.2, calls: 1, admit: None }
    }
}

/// News of a call.
#[derive(Clone, Debug)]
pub enum CallEvent {
    /// It was agreed on.
    Begun {
        /// The form of the voice.
        codec: VoiceCodec,
        /// What carries it.
        carrier: VoiceCarrier,
        /// Calls at once.
        calls: u32,
    },
    /// A second has passed.
    Second(Box<CallReport>),
}

/// A call up to a time, or up to its end.
#[derive(Clone, Copy, Debug)]
pub struct CallReport {
    /// Time since its begin, in seconds.
    pub seconds: f64,
    /// The form of the voice.
    pub codec: VoiceCodec,
    /// What carried it.
    pub carrier: VoiceCarrier,
    /// Calls at once.
    pub calls: u32,
    /// How this end heard the peer: the call that was heard worst.
    pub here: Heard,
    /// How the peer heard this end, as it says.
    pub there: Option<Heard>,
    /// What this end has sent in all calls.
    pub sent: TalkerStats,
    /// Bytes of UDP that the connection has sent: all of a call over DFCP, else what the two ends
    /// tell each other.
    pub connection_bytes: u64,
}

/// Calls the peer at the other end of `connection`. `secret` is the URL's. The call lasts until
/// both ends have nothing more to say, one hangs up, or `stop` completes.
///
/// # Errors
/// If it is refused, not admitted, or breaks.
pub async fn call(
    connection: &Connection,
    secret: Option<&Secret>,
    options: &CallOptions,
    (audio, speaker): (Audio, Speaker),
    tell: impl FnMut(CallEvent),
    stop: impl Future<Output = ()>,
) -> Result<CallReport, CallError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let (codec, rate) = options.codec.to_wire();
    let offer = Offer {
        version: VERSION,
        secret: secret.map(|secret| secret.as_bytes().to_vec()).unwrap_or_default(),
        codec,
        rate,
        carrier: options.carrier.to_wire(),
        calls: options.calls,
        key,
    };
    say(connection, &Signal::Offer(offer));
    let answer = tokio::time::timeout(PATIENCE, next_signal(connection)).await;
    let port = match answer.map_err(|_| CallError::NoAnswer)?.ok_or(CallError::Lost)? {
        Signal::Answer { port } => port,
        Signal::Refused(refusal) => {
            connection.close(0, "the call is over");
            return Err(CallError::Refused(refusal));
        }
        _ => return Err(CallError::NoAnswer),
    };
    let peer = SocketAddr::new(connection.remote_addr().ip(), port);
    let form = (options.codec, options.calls);
    let line = Line::connect(options.carrier, connection, peer, &key, form);
    let line = tokio::time::timeout(PATIENCE, line).await.map_err(|_| CallError::NoVoice)??;
    Session::new(connection, line, options, true)?.run(audio, speaker, tell, stop).await
}

/// A call that somebody makes and nobody has answered.
pub struct Ringing {
    connection: Connection,
    offer: Offer,
    form: (VoiceCodec, VoiceCarrier, u32),
}

/// Waits for the call that comes over `connection`. The caller must know `secret`, if there is one,
/// and may make `most` calls at once.
///
/// # Errors
/// If there is no call, or a wrong one, which is refused.
pub async fn ring(
    connection: Connection,
    secret: Option<&Secret>,
    most: u32,
) -> Result<Ringing, CallError> {
    let offer = tokio::time::timeout(PATIENCE, next_signal(&connection)).await;
    let Signal::Offer(offer) = offer.map_err(|_| CallError::NoAnswer)?.ok_or(CallError::Lost)?
    else {
        return Err(CallError::NoAnswer);
    };
    match check(&offer, secret, most) {
        Ok(form) => Ok(Ringing { connection, offer, form }),
        Err(refusal) => {
            refuse(&connection, refusal).await;
            Err(CallError::Refused(refusal))
        }
    }
}

impl Ringing {
    /// Refuses the call, because this end is in another.
    pub async fn refuse_busy(self) {
        refuse(&self.connection, Refusal::Busy).await;
    }

    /// Answers the call. `voice` opens this end's input and output for the codec that the caller
    /// chose.
    ///
    /// # Errors
    /// If it is not admitted, or breaks.
    pub async fn answer(
        self,
        options: &CallOptions,
        voice: impl FnOnce(VoiceCodec) -> Result<(Audio, Speaker), AudioError>,
        tell: impl FnMut(CallEvent),
        stop: impl Future<Output = ()>,
    ) -> Result<CallReport, CallError> {
        let Self { connection, offer, form: (codec, carrier, calls) } = self;
        let (audio, speaker) = match voice(codec) {
            Ok(voice) => voice,
            Err(error) => {
                refuse(&connection, Refusal::Voice).await;
                return Err(error.into());
            }
        };
        let peer = connection.remote_addr().ip();
        let (opening, port) = match Opening::open(carrier, peer, codec, calls).await {
            Ok(opening) => opening,
            Err(error) => {
                refuse(&connection, Refusal::Socket).await;
                return Err(error.into());
            }
        };
        say(&connection, &Signal::Answer { port });
        let line = opening.accept(&connection, &offer.key).await?;
        let options = CallOptions { codec, carrier, calls, ..options.clone() };
        Session::new(&connection, line, &options, false)?.run(audio, speaker, tell, stop).await
    }
}

/// What an offer asks for, if whoever makes it may call.
fn check(
    offer: &Offer,
    secret: Option<&Secret>,
    most: u32,
) -> Result<(VoiceCodec, VoiceCarrier, u32), Refusal> {
    if secret.is_some_and(|secret| !secret.is(&offer.secret)) {
        return Err(Refusal::Secret);
    }
    let form = offer.check()?;
    if form.2 > most { Err(Refusal::TooMany) } else { Ok(form) }
}

/// Refuses a call, and waits until the caller knows it.
async fn refuse(connection: &Connection, refusal: Refusal) {
    say(connection, &Signal::Refused(refusal));
    let _ = tokio::time::timeout(FAREWELL, connection.closed()).await;
}

fn say(connection: &Connection, signal: &Signal) {
    let options = SendOptions { ordered: true, priority: 0, ..SendOptions::default() };
    connection.send_message(signal.encode(), options);
}

async fn next_signal(connection: &Connection) -> Option<Signal> {
    loop {
        let message = connection.recv_message().await?;
        if let Some(signal) = Signal::decode(&message.data) {
            return Some(signal);
        }
    }
}

/// One end of a call that was agreed on.
struct Session<'a> {
    connection: &'a Connection,
    line: Line,
    options: CallOptions,
    is_caller: bool,
    talkers: Vec<Talker>,
    hearers: Vec<Hearer>,
    begin: Instant,
    frames: u64,
    /// Frames that this end has said.
    spoken: u64,
    /// This end, and the peer, have nothing more to say.
    is_silent: bool,
    peer_is_silent: bool,
    /// Frames left when both are silent.
    drain: u64,
    there: Option<Heard>,
    connection_bytes: u64,
    is_over: bool,
}

impl<'a> Session<'a> {
    fn new(
        connection: &'a Connection,
        line: Line,
        options: &CallOptions,
        is_caller: bool,
    ) -> Result<Self, CallError> {
        let numbers = 0..options.calls;
        Ok(Self {
            connection,
            line,
            is_caller,
            talkers: numbers
                .clone()
                .map(|number| Talker::new(options.codec, number))
                .collect::<Result<_, _>>()?,
            hearers: numbers
                .map(|number| Hearer::new(options.codec, number))
                .collect::<Result<_, _>>()?,
            options: options.clone(),
            begin: Instant::now(),
            frames: 0,
            spoken: 0,
            is_silent: false,
            peer_is_silent: false,
            drain: DRAIN,
            there: None,
            connection_bytes: 0,
            is_over: false,
        })
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    async fn run(
        mut self,
        mut audio: Audio,
        speaker: Speaker,
        mut tell: impl FnMut(CallEvent),
        stop: impl Future<Output = ()>,
    ) -> Result<CallReport, CallError> {
        let CallOptions { codec, carrier, calls, .. } = self.options;
        tell(CallEvent::Begun { codec, carrier, calls });
        let mut ticks = tokio::time::interval(FRAME.into());
        // A machine that was away for a while has turns to make up for.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut stop = std::pin::pin!(stop);
        let mut pcm = vec![0; codec.samples()];
        while !self.is_over {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    self.talk(&mut audio).await?;
                    let is_heard = self.play(&speaker, &mut pcm);
                    self.frames += 1;
                    if self.frames.is_multiple_of(REPORT) {
                        self.report(&mut tell).await;
                    }
                    if self.frames == ADMISSION {
                        self.admit()?;
                    }
                    if !is_heard || self.has_drained() {
                        break;
                    }
                }
                message = self.connection.recv_message() => {
                    let Some(message) = message else { return Err(CallError::Lost) };
                    self.take(&message.data);
                }
                datagram = self.line.recv() => {
                    let Some(datagram) = datagram else { return Err(CallError::Lost) };
                    self.hear(&datagram);
                }
                () = &mut stop => break,
            }
        }
        self.hang_up().await;
        speaker.finish()?;
        Ok(self.summary())
    }

    fn summary(&self) -> CallReport {
        let CallOptions { codec, carrier, calls, .. } = self.options;
        let seconds = self.begin.elapsed().as_secs_f64();
        let (here, there, sent) = (self.heard(), self.there, self.sent());
        let connection_bytes = self.connection_bytes;
        CallReport { seconds, codec, carrier, calls, here, there, sent, connection_bytes }
    }

    /// Sends the next frame of each call.
    async fn talk(&mut self, audio: &mut Audio) -> Result<(), CallError> {
        // A callee learns a caller's address from what comes; mappings on the way stay open.
        if self.frames.is_multiple_of(REPORT) || (self.is_caller && self.frames < 10) {
            self.line.knock().await?;
        }
        // What came too late for its own turn follows now, so that voice keeps to the clock.
        for _ in 0..MOST_AT_ONCE {
            if self.spoken > self.frames {
                break;
            }
            match audio.next() {
                Spoken::Frame(frame) => {
                    self.spoken += 1;
                    for talker in &mut self.talkers {
                        for packet in talker.talk(&frame)? {
                            self.line.send(packet).await?;
                        }
                    }
                }
                Spoken::Late => break,
                Spoken::End if !self.is_silent => {
                    self.is_silent = true;
                    say(self.connection, &Signal::Silent);
                }
                Spoken::End => break,
                Spoken::Failed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Plays the next frame of each call; the first one is heard. False if nobody listens any more.
    fn play(&mut self, speaker: &Speaker, pcm: &mut [i16]) -> bool {
        let now = self.now();
        let mut is_heard = true;
        for (number, hearer) in self.hearers.iter_mut().enumerate() {
            hearer.play(now, pcm);
            if number == 0 {
                is_heard = speaker.play(pcm);
            }
        }
        is_heard
    }

    fn hear(&mut self, datagram: &Bytes) {
        let now = self.now();
        let Some(frame) = RtpFrame::decode(datagram) else { return };
        if let Some(hearer) = self.hearers.get_mut(frame.source as usize) {
            hearer.hear_frame(now, &frame);
        }
    }

    fn take(&mut self, message: &Bytes) {
        if RtpFrame::is_likely(message) {
            return self.hear(message);
        }
        match Signal::decode(message) {
            Some(Signal::Report(report)) => self.there = Some(report.heard()),
            Some(Signal::Silent) => self.peer_is_silent = true,
            Some(Signal::Bye(report)) => {
                self.there = Some(report.heard());
                self.is_over = true;
            }
            _ => {}
        }
    }

    /// Whether both ends have said all, and this one has heard it.
    fn has_drained(&mut self) -> bool {
        if !(self.is_silent && self.peer_is_silent) {
            return false;
        }
        self.drain = self.drain.saturating_sub(1);
        // The caller hangs up; a callee waits a little for that.
        self.drain == 0 && self.is_caller
    }

    fn heard(&self) -> Heard {
        let heard = self.hearers.iter().map(Hearer::heard);
        heard.min_by(|a, b| a.r.total_cmp(&b.r)).unwrap_or_default()
    }

    fn sent(&self) -> TalkerStats {
        let mut sum = TalkerStats::default();
        for stats in self.talkers.iter().map(Talker::stats) {
            sum.packets += stats.packets;
            sum.bytes += stats.bytes;
            sum.repair_packets += stats.repair_packets;
            sum.repair_bytes += stats.repair_bytes;
        }
        sum
    }

    /// Tells the user and the peer how the call is heard, and adapts to what the peer says.
    async fn report(&mut self, tell: &mut impl FnMut(CallEvent)) {
        if let Some(stats) = self.connection.stats().await {
            self.connection_bytes = stats.bytes_sent;
            let way = stats.srtt.as_secs_f64() * 500.0;
            self.hearers.iter_mut().for_each(|hearer| hearer.set_way(way));
        }
        let here = self.heard();
        say(self.connection, &Signal::Report(here.into()));
        if let Some(there) = self.there {
            let needed = there.network_loss > LITTLE_LOSS;
            let share = if needed { self.options.repair } else { 0.0 };
            let loss = there.network_loss;
            self.talkers.iter_mut().for_each(|talker| talker.set_repair(share, loss));
        }
        tell(CallEvent::Second(Box::new(self.summary())));
    }

    /// Whether the path carries the call, after its first seconds.
    fn admit(&self) -> Result<(), CallError> {
        let Some(least) = self.options.admit else { return Ok(()) };
        let refused = |text: String| {
            say(self.connection, &Signal::Bye(self.heard().into()));
            Err(CallError::NotAdmitted(text))
        };
        if let Some((allowed, loss)) = self.line.allowance().filter(|_| self.spoken > 0) {
            let needed = wire_rate(self.options.codec, self.options.calls);
            if allowed < needed {
                return refused(format!(
                    "congestion control allows {:.0} kbit/s at a loss event rate of {:.2} %, and it needs {:.0}",
                    allowed / 1e3,
                    100.0 * loss,
                    needed / 1e3
                ));
            }
        }
        let here = Some(self.heard()).filter(|heard| heard.played + heard.missed > 0);
        let there = self.there.filter(|heard| heard.played + heard.missed > 0);
        for (heard, end) in [(here, "here"), (there, "at the other end")] {
            if let Some(heard) = heard.filter(|heard| heard.r < least) {
                return refused(format!(
                    "the rating factor {end} is {:.0}, below {least:.0}: {:.1} % lost, {:.0} ms from mouth to ear",
                    heard.r,
                    100.0 * heard.loss,
                    heard.delay
                ));
            }
        }
        Ok(())
    }

    /// Ends the call, and waits for the peer's last report.
    async fn hang_up(&mut self) {
        say(self.connection, &Signal::Bye(Report::from(self.heard())));
        let connection = self.connection;
        let farewell = async {
            if self.is_over {
                // The peer has hung up, and closes when it has this end's last report.
                connection.closed().await;
                return;
            }
            while let Some(signal) = next_signal(connection).await {
                if let Signal::Bye(report) = signal {
                    self.there = Some(report.heard());
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
        self.connection.close(0, "the call is over");
    }
}
