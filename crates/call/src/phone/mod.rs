//! A telephone at one end of a call: any program that speaks SIP and RTP, unmodified.
//!
//! [`PhoneBridge`] is an address that a telephone calls, or that calls a telephone. Its voice goes
//! into the call as it is coded, with the times that the telephone gives it, and what the call
//! brings is sent to it when it is to be heard.

mod agent;
mod control;
mod description;
mod dialog;
mod message;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration as Wait, Instant, SystemTime};

use bytes::Bytes;
use fontis_base::{Duration, Time};
use thiserror::Error;
use tokio::net::UdpSocket;

pub(crate) use self::agent::SipAgent;
use self::agent::{VoiceEnd, is_near};
use self::control::PhoneControl;
use crate::codec::{FRAME, VoiceCodec};
use crate::foreign::{Inlet, Outlet};
use crate::rtp::{RtpFrame, SideFormats};

/// The port of SIP.
const SIP_PORT: u16 = 5060;
/// How long an end waits for the telephone's agreement that the call is over.
const FAREWELL: Wait = Wait::from_secs(2);
/// The longest that nothing is looked at.
const LONGEST: Wait = Wait::from_secs(3600);
/// Packets of another length after which the telephone is not understood: a second.
const ODD: u32 = 50;
/// Ports that are tried for voice: it has an even one by custom (RFC 3550 section 11).
const TRIES: usize = 32;

/// The reason why a telephone cannot be used.
#[derive(Debug, Error)]
pub enum PhoneError {
    /// A socket failed.
    #[error("a socket for the telephone failed: {0}")]
    Io(#[from] io::Error),
    /// It has no codec that is spoken here, or not that of the call.
    #[error(
        "the telephone does not have the codec of the call ({0}): the caller chooses it with --codec"
    )]
    Codec(VoiceCodec),
    /// The address is none of SIP.
    #[error("{0:?} is no address of SIP: write sip:NAME@ADDRESS:PORT, as in sip:me@127.0.0.1:5062")]
    Uri(String),
    /// It is on another machine.
    #[error(
        "{0} is not on this machine: give the bridge an address that is not loopback, if its voice may cross the network without encryption"
    )]
    Far(SocketAddr),
    /// It has hung up, refuses the call, or does not answer.
    #[error("{0}")]
    Over(String),
    /// Its packets do not hold 20 ms.
    #[error(
        "the telephone sends packets of {0} bytes, and those of 20 ms have 160: set its packet time to 20 ms"
    )]
    FrameTime(usize),
}

/// The address of a telephone's other end.
pub struct PhoneBridge {
    sip: UdpSocket,
    voice: UdpSocket,
    /// The socket of reports, whose port is the next one.
    control: UdpSocket,
}

/// A telephone that calls or talks.
pub struct Phone {
    sip: UdpSocket,
    voice: UdpSocket,
    control: UdpSocket,
    agent: SipAgent,
    begin: Instant,
    /// The streams of voice, once it talks.
    streams: Option<PhoneStreams>,
    /// Packets of another length, and the last one's.
    odd: (u32, usize),
}

/// The two directions of a telephone's voice.
struct PhoneStreams {
    inlet: Inlet,
    outlet: Outlet,
    reports: PhoneControl,
}

impl PhoneBridge {
    /// Binds to an address for SIP; voice and its reports have two ports of it. On a loopback
    /// address nobody of another machine is heard.
    ///
    /// # Errors
    /// If the system has no such address, or the port is taken, or no two free ones are found.
    pub async fn bind(at: SocketAddr) -> io::Result<Self> {
        let sip = UdpSocket::bind(at).await?;
        let any = SocketAddr::new(at.ip(), 0);
        for _ in 0..TRIES {
            let voice = UdpSocket::bind(any).await?;
            let port = voice.local_addr()?.port();
            if !port.is_multiple_of(2) {
                continue;
            }
            if let Ok(control) = UdpSocket::bind(SocketAddr::new(at.ip(), port + 1)).await {
                return Ok(Self { sip, voice, control });
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Its address of SIP.
    ///
    /// # Errors
    /// If the socket has none.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.sip.local_addr()
    }

    /// Waits until a telephone calls and `wanted` completes; the telephone hears that it rings
    /// until [`Phone::accept`]. `opus` is the form of Opus that is spoken.
    ///
    /// # Errors
    /// If a socket fails.
    pub async fn wait(
        self,
        opus: VoiceCodec,
        wanted: impl Future<Output = ()>,
    ) -> Result<Phone, PhoneError> {
        let mut phone = self.phone(opus, true)?;
        let (mut wanted, mut is_wanted) = (std::pin::pin!(wanted), false);
        loop {
            if phone.agent.over().is_some() {
                // One that has hung up again is forgotten.
                phone.flush();
                phone.agent = agent(&phone.sip, &phone.voice, opus, true)?;
            }
            if is_wanted && phone.agent.caller().is_some() {
                return Ok(phone);
            }
            tokio::select! {
                _ = phone.step() => {}
                () = &mut wanted, if !is_wanted => is_wanted = true,
            }
        }
    }

    /// Calls the telephone `uri`, as in `sip:me@127.0.0.1:5062`, and waits until it answers.
    ///
    /// # Errors
    /// If it does not, or has no such codec.
    pub async fn ring(self, uri: &str, codec: VoiceCodec) -> Result<Phone, PhoneError> {
        let remote = address(uri).ok_or_else(|| PhoneError::Uri(uri.to_owned()))?;
        if !is_near(self.sip.local_addr()?.ip(), remote.ip()) {
            return Err(PhoneError::Far(remote));
        }
        let mut phone = self.phone(codec, false)?;
        phone.agent.ring(phone.now(), uri, remote, codec);
        while phone.agent.talking().is_none() {
            if let Some(reason) = phone.agent.over() {
                return Err(PhoneError::Over(reason.to_owned()));
            }
            phone.step().await;
        }
        phone.start()?;
        Ok(phone)
    }

    fn phone(self, opus: VoiceCodec, takes_calls: bool) -> Result<Phone, PhoneError> {
        let agent = agent(&self.sip, &self.voice, opus, takes_calls)?;
        let Self { sip, voice, control } = self;
        let begin = Instant::now();
        Ok(Phone { sip, voice, control, agent, begin, streams: None, odd: (0, 0) })
    }
}

fn agent(
    sip: &UdpSocket,
    voice: &UdpSocket,
    opus: VoiceCodec,
    takes_calls: bool,
) -> Result<SipAgent, PhoneError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    Ok(SipAgent::new(sip.local_addr()?, voice.local_addr()?, opus, key, takes_calls))
}

/// The socket of an address of SIP.
fn address(uri: &str) -> Option<SocketAddr> {
    let rest = uri.strip_prefix("sip:")?;
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.split(';').next()?.replace("localhost", "127.0.0.1");
    let is_clean = !uri.contains(|c: char| c.is_whitespace() || c.is_control() || "<>".contains(c));
    let at = host.parse().ok();
    at.or_else(|| Some(SocketAddr::new(host.parse().ok()?, SIP_PORT))).filter(|_| is_clean)
}

impl Phone {
    fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    /// The codecs of a telephone that calls, its favourite first.
    pub fn codecs(&self) -> Vec<VoiceCodec> {
        let voice = self.agent.caller();
        voice.map(|voice| voice.formats.iter().map(|one| one.codec).collect()).unwrap_or_default()
    }

    /// Answers a telephone that calls; one that was called has answered itself.
    ///
    /// # Errors
    /// If it has hung up, or does not have the codec.
    pub async fn accept(&mut self, codec: VoiceCodec) -> Result<(), PhoneError> {
        if self.streams.is_some() {
            return Ok(());
        }
        if let Some(reason) = self.agent.over() {
            return Err(PhoneError::Over(reason.to_owned()));
        }
        if !self.agent.accept(self.now(), codec) {
            return Err(PhoneError::Codec(codec));
        }
        self.flush();
        self.start()
    }

    fn start(&mut self) -> Result<(), PhoneError> {
        if let Some(VoiceEnd { format, side, .. }) = self.agent.talking() {
            let inlet = Inlet::new(format.codec, format.payload_type, side);
            let outlet = Outlet::new(format.payload_type, side)?;
            let clock = (u64::from(format.codec.ticks()) * 1_000_000_000 / FRAME.as_nanos()) as u32;
            let reports = PhoneControl::new(self.now(), clock, outlet.source());
            self.streams = Some(PhoneStreams { inlet, outlet, reports });
        }
        Ok(())
    }

    /// The next packet of its voice; `None` when it has hung up.
    pub(crate) async fn next(&mut self) -> Option<RtpFrame> {
        loop {
            if self.agent.over().is_some() || self.odd.0 >= ODD {
                self.flush();
                return None;
            }
            if let Some(packet) = self.step().await {
                return Some(packet);
            }
        }
    }

    /// What it takes beside voice.
    pub(crate) fn takes(&self) -> SideFormats {
        self.streams.as_ref().map(|streams| streams.outlet.side()).unwrap_or_default()
    }

    /// Sends a packet of the call to it. What cannot leave at once is lost.
    pub(crate) fn send(&mut self, packet: &RtpFrame) {
        let now = self.now();
        let (Some(streams), Some(end)) = (&mut self.streams, self.agent.talking()) else { return };
        let Some(bytes) = streams.outlet.put(packet) else { return };
        let timestamp = streams.outlet.timestamp(packet.timestamp);
        streams.reports.say(now, timestamp, packet.payload.len());
        let _ = self.voice.try_send_to(&bytes, end.at);
    }

    /// Tells it how its packets come, when that is due. What cannot leave at once is lost.
    fn report(&mut self) {
        let now = self.now();
        let (Some(streams), Some(end)) = (&mut self.streams, self.agent.talking()) else { return };
        if let Some(report) = streams.reports.poll(now, since_1970()) {
            let _ = self.control.try_send_to(&report, end.control);
        }
    }

    /// Hangs up, and waits until the telephone knows it.
    ///
    /// # Errors
    /// If it could not be understood.
    pub async fn hang_up(mut self) -> Result<(), PhoneError> {
        let now = self.now();
        if let (Some(streams), Some(end)) = (&mut self.streams, self.agent.talking()) {
            let goodbye = streams.reports.goodbye(now, since_1970());
            let _ = self.control.try_send_to(&goodbye, end.control);
        }
        self.agent.hang_up(now);
        let farewell = async {
            while self.agent.over().is_none() {
                self.step().await;
            }
            self.flush();
        };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
        match self.odd {
            (ODD.., len) => Err(PhoneError::FrameTime(len)),
            _ => Ok(()),
        }
    }

    /// Sends what there is to say. What cannot leave at once is said again.
    fn flush(&mut self) {
        let now = self.now();
        while let Some((to, message)) = self.agent.poll(now) {
            let _ = self.sip.try_send_to(&message, to);
        }
    }

    /// Waits for the next thing to happen. Returns a packet of voice if it is one. It may be
    /// dropped at any time.
    async fn step(&mut self) -> Option<RtpFrame> {
        self.flush();
        self.report();
        let due = self.agent.timeout();
        let reports = self.streams.as_ref().filter(|_| self.agent.talking().is_some());
        let due = due.into_iter().chain(reports.map(|streams| streams.reports.due())).min();
        let wait = due.map_or(LONGEST, |at| at.since(self.now()).into());
        let (mut words, mut sound) = ([0; message::LONGEST + 1], [0; 2048]);
        let mut report = [0; 2048];
        tokio::select! {
            // Errors of UDP answer earlier datagrams.
            Ok((len, from)) = self.sip.recv_from(&mut words) => {
                let now = self.now();
                self.agent.handle(now, from, &Bytes::copy_from_slice(&words[..len]));
                self.flush();
                None
            }
            Ok((len, from)) = self.voice.recv_from(&mut sound) => self.hear(from, &sound[..len]),
            Ok((len, from)) = self.control.recv_from(&mut report) => {
                let now = self.now();
                let end = self.agent.talking().filter(|end| end.at.ip() == from.ip());
                if let Some(streams) = self.streams.as_mut().filter(|_| end.is_some()) {
                    streams.reports.take(now, &report[..len]);
                }
                None
            }
            () = tokio::time::sleep(wait) => None,
            else => None,
        }
    }

    fn hear(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<RtpFrame> {
        let end = self.agent.talking().filter(|end| end.at.ip() == from.ip())?;
        let packet = RtpFrame::decode(&Bytes::copy_from_slice(datagram))?;
        let now = self.now();
        let streams = self.streams.as_mut()?;
        let is_key = end.side.keys.is_some_and(|keys| keys.payload_type == packet.payload_type);
        streams.reports.hear(now, &packet, is_key);
        let packet = streams.inlet.take(now, &packet)?;
        if packet.payload_type != end.format.codec.payload_type() {
            return Some(packet);
        }
        let len = packet.payload.len();
        let is_whole = match end.format.codec {
            VoiceCodec::Opus { .. } => len > 0,
            codec => len == codec.samples(),
        };
        if !is_whole {
            self.odd = (self.odd.0 + 1, len);
        }
        is_whole.then_some(packet)
    }
}

/// The time of the machine.
fn since_1970() -> Duration {
    let passed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(passed.as_nanos().min(u128::from(u64::MAX)) as u64)
}

impl Drop for Phone {
    fn drop(&mut self) {
        // Whoever forgets a telephone leaves it with a dead line otherwise.
        let now = self.now();
        self.agent.hang_up(now);
        self.flush();
    }
}

#[cfg(test)]
mod tests;
