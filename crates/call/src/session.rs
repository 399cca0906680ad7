//! A call from its begin to its end.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration as Wait, Instant};

use bytes::Bytes;
use fontis::Connection;
use fontis_base::Time;
use fontis_proto::dfcp::SendOptions;
use tokio::time::MissedTickBehavior;

use crate::audio::Spoken;
use crate::carrier::VoiceCarrier;
use crate::codec::{FRAME, VoiceCodec};
use crate::copies::FrameCopies;
use crate::error::CallError;
use crate::heard::Heard;
use crate::hearer::Hearer;
use crate::line::{Line, wire_rate};
use crate::rtcp::{heard_there, is_control};
use crate::rtp::RtpFrame;
use crate::signal::{Report, Signal};
use crate::talker::{Talker, TalkerStats};
use crate::voice::{Voice, VoiceNews};

/// How long an end waits for the other's last report.
pub(crate) const FAREWELL: Wait = Wait::from_secs(3);
/// The time between a packet of voice and the repair packet behind it.
const APART: Wait = Wait::from_millis(5);
/// Frames between two reports.
const REPORT: u64 = 50;
/// Frames between two reports by RTCP (RFC 3550 section 6.2); a multiple of those between others.
const CONTROL: u64 = 250;
/// Frames after which a call is admitted or not.
const ADMISSION: u64 = 150;
/// Frames that are played after both ends are silent.
const DRAIN: u64 = 75;
/// Frames without a packet after which a peer that tells nothing has nothing more to say.
const QUIET: u64 = 150;
/// Frames that are sent in one turn at most, after turns that had none.
const MOST_AT_ONCE: usize = 3;
/// One-way delays above this, in milliseconds, leave no time for second repairs.
const FAR: f64 = 150.0;
/// A peer that loses less than this needs no repair packets.
const LITTLE_LOSS: f64 = 0.003;

/// The wishes of one end of a call.
#[derive(Clone, Debug)]
pub struct CallOptions {
    /// The form of the voice, which the caller chooses for both directions.
    pub codec: VoiceCodec,
    /// What carries the voice, which the caller chooses for both directions.
    pub carrier: VoiceCarrier,
    /// The most repair packets that this end adds to each packet of voice: .25 is one for four.
    /// They are sent while the peer reports losses.
    pub repair: f64,
    /// Copies of earlier frames that this end adds to each packet then.
    pub copies: Option<FrameCopies>,
    /// Whether this end sends no pauses. With Opus it never does.
    pub without_pauses: bool,
    /// Calls at once in the connection, which the caller chooses. All carry the same voice.
    pub calls: u32,
    /// The least rating factor of both directions; the call ends after three seconds if one is
    /// below it, or if congestion control does not allow its rate.
    pub admit: Option<f64>,
    /// Where a callee takes voice over DCCP and UDP; any port of all addresses otherwise.
    pub voice_at: Option<SocketAddr>,
}

impl Default for CallOptions {
    fn default() -> Self {
        let (codec, carrier) = (VoiceCodec::OPUS, VoiceCarrier::Dfcp);
        Self {
            codec,
            carrier,
            repair: 0.25,
            copies: None,
            without_pauses: false,
            calls: 1,
            admit: None,
            voice_at: None,
        }
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

/// One end of a call that was agreed on.
pub(crate) struct Session {
    /// What the ends tell each other, if they do.
    connection: Option<Connection>,
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
    /// The frame at which the peer was heard last.
    heard_at: u64,
    there: Option<Heard>,
    /// Packets that leave a little later.
    later: VecDeque<(Instant, Bytes)>,
    connection_bytes: u64,
    is_over: bool,
}

impl Session {
    pub(crate) fn new(
        connection: Option<Connection>,
        line: Line,
        options: &CallOptions,
        is_caller: bool,
    ) -> Result<Self, CallError> {
        let numbers = 0..options.calls.max(1);
        let talker = |number| {
            let talker = Talker::with_copies(options.codec, number, options.copies)?;
            Ok(if options.without_pauses { talker.without_pauses() } else { talker })
        };
        Ok(Self {
            connection,
            line,
            is_caller,
            talkers: numbers.clone().map(talker).collect::<Result<_, CallError>>()?,
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
            heard_at: 0,
            there: None,
            later: VecDeque::new(),
            connection_bytes: 0,
            is_over: false,
        })
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    pub(crate) async fn run(
        mut self,
        mut voice: Voice,
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
        let control = self.connection.clone();
        while !self.is_over {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    self.talk(&mut voice).await?;
                    let is_heard = self.play(&mut voice, &mut pcm);
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
                message = next_message(control.as_ref()) => {
                    let Some(message) = message else {
                        return self.fail(voice, CallError::Lost).await;
                    };
                    self.take(&message);
                }
                datagram = self.line.recv() => match datagram {
                    Some(datagram) => self.hear(&datagram),
                    // Without words of the ends, one hangs up by closing the line.
                    None if control.is_none() => break,
                    None => return self.fail(voice, CallError::Lost).await,
                },
                () = until(self.later.front().map(|(at, _)| *at)) => {
                    if let Some((_, packet)) = self.later.pop_front() {
                        self.line.send(packet).await?;
                    }
                }
                news = voice.news() => match news {
                    VoiceNews::Packet(packet) => {
                        self.spoken += 1;
                        let packets = self.talkers[0].forward(packet);
                        self.send(packets).await?;
                    }
                    VoiceNews::HungUp => break,
                },
                () = &mut stop => break,
            }
            if let Some(payload_type) = self.line.misunderstood() {
                return self.fail(voice, CallError::PayloadType(payload_type)).await;
            }
        }
        self.hang_up().await;
        voice.finish().await?;
        Ok(self.summary())
    }

    /// Ends a call that has failed.
    async fn fail(&self, voice: Voice, error: CallError) -> Result<CallReport, CallError> {
        let _ = voice.finish().await;
        Err(error)
    }

    fn summary(&self) -> CallReport {
        let CallOptions { codec, carrier, calls, .. } = self.options;
        let seconds = self.begin.elapsed().as_secs_f64();
        let (here, there, sent) = (self.heard(), self.there, self.sent());
        let connection_bytes = self.connection_bytes;
        CallReport { seconds, codec, carrier, calls, here, there, sent, connection_bytes }
    }

    /// Sends the next frame of each call.
    async fn talk(&mut self, voice: &mut Voice) -> Result<(), CallError> {
        // A callee learns a caller's address from what comes; mappings on the way stay open.
        if self.frames.is_multiple_of(REPORT) || (self.is_caller && self.frames < 10) {
            self.line.knock().await?;
        }
        // What came too late for its own turn follows now, so that voice keeps to the clock.
        for _ in 0..MOST_AT_ONCE {
            if self.spoken > self.frames {
                break;
            }
            match voice.next() {
                Spoken::Frame(frame) => {
                    self.spoken += 1;
                    let mut packets = Vec::new();
                    for talker in &mut self.talkers {
                        packets.extend(talker.talk(&frame)?);
                    }
                    self.send(packets).await?;
                }
                Spoken::Late => break,
                Spoken::End if !self.is_silent => {
                    self.is_silent = true;
                    self.say(&Signal::Silent);
                }
                Spoken::End => break,
                Spoken::Failed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Sends packets. Repair packets wait a little, where they would leave in one datagram with the
    /// voice that they repair, and be lost with it.
    async fn send(&mut self, packets: Vec<Bytes>) -> Result<(), CallError> {
        for packet in packets {
            if self.line.joins() && RtpFrame::is_repair(&packet) {
                self.later.push_back((Instant::now() + APART, packet));
            } else {
                self.line.send(packet).await?;
            }
        }
        Ok(())
    }

    /// Plays the next frame of each call; the first one is heard. False if nobody listens any more.
    fn play(&mut self, voice: &mut Voice, pcm: &mut [i16]) -> bool {
        let now = self.now();
        let (first, others) = self.hearers.split_first_mut().expect("a session has a call");
        let is_heard = voice.play(now, first, pcm);
        others.iter_mut().for_each(|hearer| hearer.play(now, pcm));
        is_heard
    }

    fn hear(&mut self, datagram: &Bytes) {
        let now = self.now();
        if self.connection.is_none() && is_control(datagram) {
            self.there = heard_there(datagram).or(self.there);
            return;
        }
        let Some(frame) = RtpFrame::decode(datagram) else { return };
        self.heard_at = self.frames;
        if let Some(hearer) = self.hearers.get_mut(frame.call() as usize) {
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
        if self.connection.is_none() && self.spoken > 0 {
            self.peer_is_silent = self.frames - self.heard_at > QUIET;
        }
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
        let mut srtt = self.line.rtt();
        if let Some(connection) = &self.connection
            && let Some(stats) = connection.stats().await
        {
            self.connection_bytes = stats.bytes_sent;
            srtt = Some(stats.srtt);
        }
        if let Some(srtt) = srtt {
            let way = srtt.as_secs_f64() * 500.0;
            self.hearers.iter_mut().for_each(|hearer| hearer.set_way(way));
            self.talkers.iter_mut().for_each(|talker| talker.set_far(way > FAR));
        }
        self.say(&Signal::Report(self.heard().into()));
        if self.frames.is_multiple_of(CONTROL)
            && let Some((own, peer)) = self.line.sources()
        {
            self.line.report(self.hearers[0].report(own, peer).encode());
        }
        if let Some(there) = self.there {
            let needed = there.network_loss > LITTLE_LOSS;
            let share = if needed { self.options.repair } else { 0.0 };
            let loss = if needed { there.network_loss } else { 0.0 };
            self.talkers.iter_mut().for_each(|talker| talker.set_repair(share, loss));
        }
        tell(CallEvent::Second(Box::new(self.summary())));
    }

    /// Whether the path carries the call, after its first seconds.
    fn admit(&self) -> Result<(), CallError> {
        let Some(least) = self.options.admit else { return Ok(()) };
        let refused = |text: String| {
            self.say(&Signal::Bye(self.heard().into()));
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
        self.say(&Signal::Bye(Report::from(self.heard())));
        let Some(connection) = &self.connection else { return self.line.close().await };
        let mut there = None;
        let farewell = async {
            if self.is_over {
                // The peer has hung up, and closes when it has this end's last report.
                connection.closed().await;
                return;
            }
            while let Some(signal) = next_signal(connection).await {
                if let Signal::Bye(report) = signal {
                    there = Some(report.heard());
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
        connection.close(0, "the call is over");
        self.there = there.or(self.there);
    }

    fn say(&self, signal: &Signal) {
        if let Some(connection) = &self.connection {
            say(connection, signal);
        }
    }
}

pub(crate) fn say(connection: &Connection, signal: &Signal) {
    let options = SendOptions { ordered: true, priority: 0, ..SendOptions::default() };
    connection.send_message(signal.encode(), options);
}

/// Waits until a time, if there is one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// The next message of a connection, if there is one.
async fn next_message(connection: Option<&Connection>) -> Option<Bytes> {
    match connection {
        Some(connection) => Some(connection.recv_message().await?.data),
        None => std::future::pending().await,
    }
}

pub(crate) async fn next_signal(connection: &Connection) -> Option<Signal> {
    loop {
        let message = connection.recv_message().await?;
        if let Some(signal) = Signal::decode(&message.data) {
            return Some(signal);
        }
    }
}
