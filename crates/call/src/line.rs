use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::{Duration as Wait, Instant};

use bytes::Bytes;
use fontis::Connection;
use fontis::dccp::{DccpEndpoint, DccpListener, DccpStream};
use fontis::protection::Seal;
use fontis_base::{Duration, Time};
use fontis_proto::dccp::{Ccid, DccpConfig, QueueDrop};
use fontis_proto::dfcp::SendOptions;
use fontis_proto::rate::tfrc::{FeedbackCount, SlowStart, TfrcConfig};
use tokio::net::UdpSocket;

use crate::carrier::VoiceCarrier;
use crate::codec::{FRAME, VoiceCodec};
use crate::error::CallError;
use crate::foreign::{Inlet, Outlet};
use crate::keys::KEY_CLOCK;
use crate::rtcp::is_control;
use crate::rtp::{KEYS_TYPE, KeyFormat, RtpFrame, SideFormats};

/// The purposes of the keys of sealed voice.
const CALLER: &str = "fontis 2026-11-26 voice of the caller";
const CALLEE: &str = "fontis 2026-11-26 voice of the callee";
/// The service code of voice over DCCP, as IANA lists none for sealed RTP: "FTSC".
const SERVICE: u32 = 0x4654_5343;
/// The service code of RTP with voice (RFC 5762 section 5.2): "RTPA".
const PLAIN_SERVICE: u32 = 0x5254_5041;
/// Packets of other payload types after which the peer is not understood: a second.
const STRANGE: u64 = 50;
/// The ports of DCCP, which are those of RTP by custom.
const PORT: u16 = 5004;
/// A message of voice is of no use after this.
const USEFUL: Wait = Wait::from_millis(400);
/// How long an end waits for the other's agreement that the line is closed.
const FAREWELL: Wait = Wait::from_secs(3);
/// How long a callee waits for a caller's connection of DCCP.
const PATIENCE: Wait = Wait::from_secs(30);

/// The way of the voice.
pub(crate) enum Line {
    Messages(Connection),
    Sealed { seal: Box<StdMutex<Seal>>, way: Way },
    Plain(Box<PlainLine>),
    Closed,
}

/// RTP in DCCP as it is, for peers of any make.
pub(crate) struct PlainLine {
    stream: DccpStream,
    begin: Instant,
    inlet: StdMutex<Inlet>,
    outlet: Outlet,
}

impl PlainLine {
    fn new(stream: DccpStream, codec: VoiceCodec) -> Result<Self, CallError> {
        let payload_type = codec.payload_type();
        // Without words of the ends, keys have the number that most telephones give them.
        let keys = Some(KeyFormat { payload_type: KEYS_TYPE, clock: KEY_CLOCK });
        let has_noise = matches!(codec, VoiceCodec::Mulaw | VoiceCodec::Alaw);
        let side = SideFormats { keys, has_noise };
        let inlet = StdMutex::new(Inlet::new(codec, payload_type, side));
        let outlet = Outlet::new(payload_type, side)?;
        Ok(Self { stream, begin: Instant::now(), inlet, outlet })
    }
}

/// A way outside the connection.
pub(crate) enum Way {
    Dccp(Box<DccpStream>),
    /// The peer's address is known to a callee when the first datagram has come.
    Udp {
        socket: UdpSocket,
        peer: StdMutex<Option<SocketAddr>>,
    },
}

/// A callee's end of a line before the caller has come.
pub(crate) enum Opening {
    Messages,
    Dccp(DccpListener),
    Udp(UdpSocket),
}

fn dccp(codec: VoiceCodec, calls: u32) -> DccpConfig {
    DccpConfig {
        ccid: Ccid::Four,
        tfrc: TfrcConfig {
            small_packets: true,
            slow_start: SlowStart::Standard,
            faster_restart: true,
            feedback: FeedbackCount::Fixed(1),
            ..TfrcConfig::default()
        },
        // A tenth of a second: what waits longer is no voice.
        queue: 5 * calls as usize,
        queue_drop: QueueDrop::Oldest,
        service: SERVICE,
        port: PORT,
        peer_port: PORT,
        packet_size: codec.most_bytes() as u32 + 12,
        // No packet of voice is longer: the path need not be tried with more.
        most_packet: 576,
        sequence_window: 1000,
        time_wait: Duration::from_secs(4),
        ..DccpConfig::default()
    }
}

fn plain(codec: VoiceCodec) -> DccpConfig {
    DccpConfig { service: PLAIN_SERVICE, ..dccp(codec, 1) }
}

/// Any port of the family of `peer`.
pub(crate) fn any(peer: IpAddr) -> SocketAddr {
    match peer {
        IpAddr::V4(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
        IpAddr::V6(_) => SocketAddr::from(([0; 8], 0)),
    }
}

impl Opening {
    /// Opens a callee's end at an address. Returns it with the UDP port that the caller must know.
    pub(crate) async fn open(
        carrier: VoiceCarrier,
        at: SocketAddr,
        codec: VoiceCodec,
        calls: u32,
    ) -> std::io::Result<(Self, u16)> {
        match carrier {
            VoiceCarrier::Dfcp => Ok((Self::Messages, 0)),
            VoiceCarrier::Udp => {
                let socket = UdpSocket::bind(at).await?;
                let port = socket.local_addr()?.port();
                Ok((Self::Udp(socket), port))
            }
            VoiceCarrier::Dccp => {
                let endpoint = DccpEndpoint::bind(at)?;
                let port = endpoint.local_addr()?.port();
                Ok((Self::Dccp(endpoint.listen(dccp(codec, calls))?), port))
            }
        }
    }

    /// Waits for the caller.
    pub(crate) async fn accept(
        self,
        connection: &Connection,
        key: &[u8; 32],
    ) -> Result<Line, CallError> {
        let seal = Box::new(StdMutex::new(Seal::new(key, [CALLEE, CALLER])));
        Ok(match self {
            Self::Messages => Line::Messages(connection.clone()),
            Self::Udp(socket) => {
                Line::Sealed { seal, way: Way::Udp { socket, peer: StdMutex::new(None) } }
            }
            Self::Dccp(mut listener) => {
                let stream = tokio::time::timeout(PATIENCE, listener.accept()).await;
                let stream = stream.ok().flatten().ok_or(CallError::NoVoice)?;
                Line::Sealed { seal, way: Way::Dccp(Box::new(stream)) }
            }
        })
    }
}

impl Line {
    /// A caller's end of a line without encryption to the endpoint at `peer`.
    pub(crate) async fn connect_plain(
        peer: SocketAddr,
        codec: VoiceCodec,
    ) -> Result<Self, CallError> {
        let endpoint = DccpEndpoint::bind(any(peer.ip()))?;
        let stream = endpoint.connect(peer, plain(codec)).await?;
        Ok(Self::Plain(Box::new(PlainLine::new(stream, codec)?)))
    }

    /// A callee's end of a line without encryption, when somebody calls `endpoint`. Later callers
    /// are refused.
    pub(crate) async fn accept_plain(
        endpoint: &DccpEndpoint,
        codec: VoiceCodec,
    ) -> Result<Self, CallError> {
        let mut listener = endpoint.listen(plain(codec))?;
        let stream = listener.accept().await.ok_or(CallError::NoVoice)?;
        Ok(Self::Plain(Box::new(PlainLine::new(stream, codec)?)))
    }

    /// A caller's end of a line to the callee at `peer`.
    pub(crate) async fn connect(
        carrier: VoiceCarrier,
        connection: &Connection,
        peer: SocketAddr,
        key: &[u8; 32],
        (codec, calls): (VoiceCodec, u32),
    ) -> Result<Self, CallError> {
        let seal = Box::new(StdMutex::new(Seal::new(key, [CALLER, CALLEE])));
        Ok(match carrier {
            VoiceCarrier::Dfcp => Self::Messages(connection.clone()),
            VoiceCarrier::Udp => {
                let socket = UdpSocket::bind(any(peer.ip())).await?;
                Self::Sealed { seal, way: Way::Udp { socket, peer: StdMutex::new(Some(peer)) } }
            }
            VoiceCarrier::Dccp => {
                let endpoint = DccpEndpoint::bind(any(peer.ip()))?;
                let stream = endpoint.connect(peer, dccp(codec, calls)).await?;
                Self::Sealed { seal, way: Way::Dccp(Box::new(stream)) }
            }
        })
    }

    /// Sends a datagram. What cannot leave at once is lost: voice does not wait.
    pub(crate) async fn send(&self, datagram: Bytes) -> Result<(), CallError> {
        match self {
            Self::Messages(connection) => {
                // Repair packets of the call do what copies would, and cost less.
                let options = SendOptions { sparing: true, ..SendOptions::default() };
                connection.send_message_within(datagram, USEFUL, options);
                Ok(())
            }
            Self::Plain(line) => {
                let Some(packet) = RtpFrame::decode(&datagram) else { return Ok(()) };
                // The peer's close shows in what is received.
                if let Some(packet) = line.outlet.put(&packet) {
                    let _ = line.stream.send(packet);
                }
                Ok(())
            }
            Self::Closed => Ok(()),
            Self::Sealed { seal, way } => {
                let sealed = lock(seal).seal(&datagram);
                match way {
                    Way::Dccp(stream) => stream.send(sealed).map(drop).map_err(CallError::from),
                    Way::Udp { socket, peer } => {
                        let peer = *lock(peer);
                        if let Some(peer) = peer {
                            // Errors of UDP answer earlier datagrams: the connection tells
                            // whether the peer is there.
                            let _ = socket.send_to(&sealed, peer).await;
                        }
                        Ok(())
                    }
                }
            }
        }
    }

    /// Whether packets that are sent at once share a datagram.
    pub(crate) const fn joins(&self) -> bool {
        matches!(self, Self::Messages(_))
    }

    /// Shows this end's address to the peer, where that is needed.
    pub(crate) async fn knock(&self) -> Result<(), CallError> {
        match self {
            Self::Sealed { way: Way::Udp { .. }, .. } => self.send(Bytes::new()).await,
            _ => Ok(()),
        }
    }

    /// The next datagram that does not come over the connection; `None` when there are no more.
    pub(crate) async fn recv(&self) -> Option<Bytes> {
        let (seal, way) = match self {
            Self::Sealed { seal, way } => (seal, way),
            Self::Plain(line) => return line.recv().await,
            Self::Messages(_) | Self::Closed => return std::future::pending().await,
        };
        match way {
            Way::Dccp(stream) => loop {
                let sealed = stream.recv().await?;
                let opened = lock(seal).open(&sealed);
                if let Some((datagram, _)) = opened {
                    return Some(datagram);
                }
            },
            Way::Udp { socket, peer } => {
                let mut buffer = [0; 2048];
                loop {
                    let Ok((len, from)) = socket.recv_from(&mut buffer).await else {
                        tokio::task::yield_now().await;
                        continue;
                    };
                    let opened = lock(seal).open(&buffer[..len]);
                    if let Some((datagram, is_newest)) = opened {
                        if is_newest {
                            *lock(peer) = Some(from);
                        }
                        return Some(datagram);
                    }
                }
            }
        }
    }

    /// The rate in bit/s that congestion control allows and the loss event rate, if DCCP carries
    /// the voice.
    pub(crate) fn allowance(&self) -> Option<(f64, f64)> {
        let path = match self {
            Self::Sealed { way: Way::Dccp(stream), .. } => stream.path(),
            Self::Plain(line) => line.stream.path(),
            _ => return None,
        };
        Some((path.rate.as_bps() as f64, path.loss_event_rate))
    }

    /// The round-trip time, if no connection beside this line tells it.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        let Self::Plain(line) = self else { return None };
        line.stream.path().rtt
    }

    /// The payload type of the peer's packets, if it sends no others than those that this end does
    /// not expect.
    pub(crate) fn misunderstood(&self) -> Option<u8> {
        let Self::Plain(line) = self else { return None };
        lock(&line.inlet).strange(STRANGE)
    }

    /// The sources of this end and of the peer, on a line where the ends tell each other how they
    /// hear by RTCP.
    pub(crate) fn sources(&self) -> Option<(u32, u32)> {
        let Self::Plain(line) = self else { return None };
        Some((line.outlet.source(), lock(&line.inlet).source()?))
    }

    /// Sends a packet of RTCP on such a line, where it crosses with the voice (RFC 5761).
    pub(crate) fn report(&self, report: Bytes) {
        if let Self::Plain(line) = self {
            let _ = line.stream.send(report);
        }
    }

    /// Closes a line that nothing else closes.
    pub(crate) async fn close(&mut self) {
        if let Self::Plain(line) = std::mem::replace(self, Self::Closed) {
            let _ = tokio::time::timeout(FAREWELL, line.stream.close()).await;
        }
    }
}

impl PlainLine {
    async fn recv(&self) -> Option<Bytes> {
        loop {
            let datagram = self.stream.recv().await?;
            let now = Time::from_nanos(self.begin.elapsed().as_nanos() as u64);
            if is_control(&datagram) {
                return Some(datagram);
            }
            let Some(packet) = RtpFrame::decode(&datagram) else { continue };
            if let Some(packet) = lock(&self.inlet).take(now, &packet) {
                return Some(packet.encode());
            }
            if lock(&self.inlet).strange(STRANGE).is_some() {
                // Nothing is heard of it, and its caller looks why.
                return Some(Bytes::new());
            }
        }
    }
}

fn lock<T>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bits a second on the wire of a call over this carrier: voice, RTP, seal and headers.
pub(crate) fn wire_rate(codec: VoiceCodec, calls: u32) -> f64 {
    let packet = f64::from(codec.rate()) * FRAME.as_secs_f64() / 8.0 + 12.0 + 24.0;
    packet * 8.0 / FRAME.as_secs_f64() * f64::from(calls)
}
