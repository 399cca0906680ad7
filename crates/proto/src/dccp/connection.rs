//! One end of a connection: the state machine of RFC 4340 section 8.

mod input;
mod output;

use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Time};
use thiserror::Error;

use super::ccid::{CcidReceiver, CcidSender, DccpPath};
use super::config::{Ccid, DccpConfig};
use super::feature::{Feature, Features};
use super::number::DccpSeq;
use super::numbers::Numbers;
use super::packet::{DccpBody, DccpData, DccpPacket, ResetCode};
use super::packet_size::PacketSize;
use super::queue::SendQueue;
use crate::rate::reorder::ReorderBuffer;

/// One end of a connection. It owns no socket and no clock: packets and times come in, packets and
/// the next deadline come out.
///
/// After [`DccpConnection::handle`], and at [`DccpConnection::timeout`], a driver calls
/// [`DccpConnection::poll`] until it returns nothing, then takes events and data.
#[derive(Clone, Debug)]
pub struct DccpConnection {
    config: DccpConfig,
    is_server: bool,
    state: State,
    peer_port: u16,
    numbers: Numbers,
    features: Features,
    queue: SendQueue,
    sender: Option<CcidSender>,
    receiver: Option<CcidReceiver>,
    reorder: Option<ReorderBuffer<Arrived>>,
    packet_size: PacketSize,
    /// Packets that wait to be sent before all others.
    replies: VecDeque<DccpBody>,
    /// When the handshake or the close is sent again, the time until then, and how often it was.
    repeat_at: Time,
    repeat_after: Duration,
    repeats: u32,
    /// When negotiation is sent again, and the time until then.
    negotiate_at: Time,
    negotiate_after: Duration,
    /// When the last round trip began, and the last number before it.
    lap: Option<(Time, DccpSeq)>,
    /// Packets without data since the last one with data.
    without_data: u64,
    /// When a Sync was last sent.
    synced_at: Option<Time>,
    /// The server's state that a client keeps for it, until the connection is open.
    cookies: Vec<Vec<u8>>,
    /// The last Response of a server.
    response: Option<DccpSeq>,
    /// Whether data have been dropped since the last acknowledgement, because the application did
    /// not take them.
    is_slow: bool,
    /// Whether an acknowledgement must leave, for the sake of negotiation or the handshake.
    must_ack: bool,
    /// Whether the application has closed.
    is_closing: bool,
    events: VecDeque<DccpEvent>,
    received: VecDeque<DccpData>,
    stats: DccpStats,
    /// The path as it was when the connection ended.
    last_path: DccpPath,
}

/// A packet in the reorder buffer.
#[derive(Clone, Debug)]
struct Arrived {
    at: Time,
    packet: DccpPacket,
    is_marked: bool,
}

/// The states of RFC 4340 section 8.1. LISTEN is no connection: [`DccpConnection::accept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Request,
    Respond,
    PartOpen,
    Open,
    CloseReq,
    Closing,
    TimeWait,
    Closed,
}

/// Data that are longer than a packet holds on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{len} bytes are more than a packet holds on this path: send at most {most} at once")]
pub struct DccpTooLarge {
    /// Bytes of the data.
    pub len: usize,
    /// Bytes that a packet holds.
    pub most: u32,
}

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DccpEvent {
    /// Data can be sent.
    Connected,
    /// The connection is over, as one of the ends wanted.
    Closed,
    /// The connection was broken off.
    Aborted(ResetCode),
}

/// Counters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DccpStats {
    /// Packets sent.
    pub sent: u64,
    /// Data packets sent.
    pub data_sent: u64,
    /// Packets received and valid.
    pub received: u64,
    /// Data packets received, and their bytes.
    pub data_received: u64,
    /// Bytes of data received.
    pub bytes_received: u64,
    /// Data packets that the queue dropped before they were sent.
    pub dropped: u64,
    /// Packets received whose numbers were not valid.
    pub invalid: u64,
    /// Syncs sent.
    pub syncs: u64,
}

/// Bytes of DCCP's header before the data of a packet: with long numbers and an acknowledgement,
/// and with the options of data.
const HEADERS: u32 = 24 + 16;
/// The service code that stands for none (RFC 4340 section 8.1.2).
const NO_SERVICE: u32 = u32::MAX;
/// Until a Request is sent again; doubled each time.
const FIRST_REPEAT: Duration = Duration::from_secs(1);
/// Until an acknowledgement of a client that is partly open is sent again.
const PART_OPEN_REPEAT: Duration = Duration::from_millis(200);
const MOST_REPEAT: Duration = Duration::from_secs(64);
/// Requests, and later Closes, that are sent before an end gives up.
const MOST_REPEATS: u32 = 8;
/// Packets that a reorder buffer holds before a rate is measured.
const FIRST_REORDER: u64 = 5;
/// Data that the application has not taken is dropped beyond this.
const MOST_RECEIVED: usize = 1024;

impl DccpConnection {
    /// A client that connects at `now`. `first` is its first sequence number, which must be hard to
    /// guess.
    pub fn connect(now: Time, config: DccpConfig, first: u64) -> Self {
        let peer_port = config.peer_port;
        let mut client = Self::new(config, false, State::Request, first, peer_port);
        client.repeat_at = now;
        client
    }

    /// A server's end, made by a Request. A Request for another service gets a Reset, and its end
    /// is over with that; any other packet makes no end.
    pub fn accept(now: Time, config: DccpConfig, first: u64, request: &DccpPacket) -> Option<Self> {
        let DccpBody::Request { service } = request.body else { return None };
        let wanted = config.service;
        let mut server = Self::new(config, true, State::Respond, first, request.source);
        server.numbers.begin(request.seq);
        if service != wanted || service == NO_SERVICE {
            server.reset(ResetCode::BadServiceCode, [0; 3]);
        } else if let Err((code, details)) =
            server.features.read(request.seq, None, &request.options)
        {
            server.reset(code, details);
        } else {
            server.replies.push_back(DccpBody::Response { ack: request.seq, service });
            server.repeat_at = now + MOST_REPEAT * 4;
        }
        Some(server)
    }

    fn new(config: DccpConfig, is_server: bool, state: State, first: u64, peer_port: u16) -> Self {
        let features = Features::new(&config, is_server);
        let queue = SendQueue::new(config.queue, config.queue_drop);
        Self {
            is_server,
            state,
            peer_port,
            numbers: Numbers::new(DccpSeq::new(first)),
            features,
            queue,
            sender: None,
            receiver: None,
            reorder: None,
            packet_size: PacketSize::new(config.most_packet),
            replies: VecDeque::new(),
            repeat_at: Time::MAX,
            repeat_after: FIRST_REPEAT,
            repeats: 0,
            negotiate_at: Time::MAX,
            negotiate_after: FIRST_REPEAT,
            lap: None,
            without_data: 0,
            synced_at: None,
            cookies: Vec::new(),
            response: None,
            is_slow: false,
            must_ack: false,
            is_closing: false,
            events: VecDeque::new(),
            received: VecDeque::new(),
            stats: DccpStats::default(),
            last_path: DccpPath::default(),
            config,
        }
    }

    /// Hands over a datagram. False if the queue had no room, and dropped it or an older one; or if
    /// the connection is closing.
    ///
    /// # Errors
    /// If it is longer than the path carries ([`DccpConnection::most_data`]): it is not sent.
    pub fn send(&mut self, data: DccpData) -> Result<bool, DccpTooLarge> {
        if self.is_closing || matches!(self.state, State::TimeWait | State::Closed) {
            return Ok(false);
        }
        match self.most_data() {
            Some(most) if data.len() > most as usize => Err(DccpTooLarge { len: data.len(), most }),
            _ => Ok(self.queue.push(data)),
        }
    }

    /// The maximum packet size: bytes of data that a packet holds on this path, as far as it is
    /// known (RFC 4340 section 14). `None` if the configuration sets no limit.
    pub fn most_data(&self) -> Option<u32> {
        let below = self.config.headers_below + HEADERS;
        Some(self.packet_size.size()?.saturating_sub(below).max(1))
    }

    /// Datagrams that the queue has room for.
    pub fn room(&self) -> usize {
        self.queue.room()
    }

    /// The next datagram that has arrived.
    pub fn receive(&mut self) -> Option<DccpData> {
        self.received.pop_front()
    }

    /// Notes that the application did not take data in time: the next acknowledgement tells the
    /// peer that its receiver is slow (RFC 4340 section 11.6).
    pub const fn on_slow(&mut self) {
        self.is_slow = true;
    }

    /// The next event.
    pub fn event(&mut self) -> Option<DccpEvent> {
        self.events.pop_front()
    }

    /// Closes the connection when the queue is empty.
    pub const fn close(&mut self) {
        self.is_closing = true;
    }

    /// Breaks the connection off.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::TimeWait | State::Closed) {
            self.reset(ResetCode::Aborted, [0; 3]);
        }
    }

    /// Whether nothing is left to do or to remember.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && self.replies.is_empty()
    }

    /// Whether data can be exchanged.
    pub const fn is_connected(&self) -> bool {
        matches!(self.state, State::PartOpen | State::Open)
    }

    /// Whether a server still waits for its client's answer to the Response.
    pub fn is_waiting(&self) -> bool {
        self.state == State::Respond
    }

    /// Whether packets with data may be sent as ones that routers mark in place of dropping them.
    pub fn may_be_marked(&self) -> bool {
        self.config.ecn && self.features.remote(Feature::EcnIncapable) == 0
    }

    /// The state of the path that this end sends over; the last one if the connection is over.
    pub fn path(&self) -> DccpPath {
        self.sender.as_ref().map_or(self.last_path, CcidSender::path)
    }

    /// Its counters.
    pub fn stats(&self) -> DccpStats {
        DccpStats { dropped: self.queue.dropped(), ..self.stats }
    }

    /// The congestion control of the packets that this end sends, once it is negotiated.
    pub fn ccid(&self) -> Option<Ccid> {
        self.sender.as_ref()?;
        Ccid::of(self.features.local(Feature::Ccid))
    }

    /// Starts both directions' congestion control with the values that were negotiated.
    fn start_ccids(&mut self, now: Time) {
        let ccid = |number| Ccid::of(number).unwrap_or(Ccid::Two);
        let ours = ccid(self.features.local(Feature::Ccid));
        let theirs = ccid(self.features.remote(Feature::Ccid));
        let mut config = self.config.clone();
        config.tells_rtt = self.features.local(Feature::SendRttEstimate) == 1;
        self.sender = Some(CcidSender::new(ours, &config, now));
        self.receiver = Some(CcidReceiver::new(theirs, &config, self.numbers.isr));
        // Ack Vectors name what has arrived: a buffer below them would only delay.
        let reorder = self.config.reorder.filter(|_| theirs != Ccid::Two);
        self.reorder = reorder.map(|(mode, delay)| {
            let packets = u64::from(self.config.packet_size) * FIRST_REORDER;
            let buffer = ReorderBuffer::new(mode, delay, Rate::from_bytes_over(packets, delay));
            match self.config.reorder_packets {
                Some(packets) => buffer.with_packets(packets),
                None => buffer,
            }
        });
    }

    /// Ends the connection with a Reset.
    fn reset(&mut self, code: ResetCode, details: [u8; 3]) {
        let ack = self.numbers.gsr;
        self.replies.clear();
        self.replies.push_back(DccpBody::Reset { ack, code, details });
        let is_end = code == ResetCode::Closed;
        self.events.push_back(if is_end { DccpEvent::Closed } else { DccpEvent::Aborted(code) });
        self.end(State::Closed, Time::MAX);
    }

    fn end(&mut self, state: State, until: Time) {
        self.state = state;
        self.repeat_at = until;
        self.negotiate_at = Time::MAX;
        self.must_ack = false;
        self.queue.clear();
        self.last_path = self.path();
        self.sender = None;
        self.receiver = None;
        self.reorder = None;
    }
}

/// The Reset that answers a packet for which there is no connection (RFC 4340 section 8.3.1). A
/// Reset gets none.
pub fn no_connection(packet: &DccpPacket) -> Option<DccpPacket> {
    if matches!(packet.body, DccpBody::Reset { .. }) {
        return None;
    }
    Some(DccpPacket {
        source: packet.destination,
        destination: packet.source,
        ccval: 0,
        coverage: 0,
        is_short: false,
        seq: packet.ack().map_or_else(DccpSeq::default, DccpSeq::next),
        body: DccpBody::Reset { ack: packet.seq, code: ResetCode::NoConnection, details: [0; 3] },
        options: Vec::new(),
        data: DccpData::NONE,
    })
}
