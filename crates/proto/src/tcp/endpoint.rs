mod departure;
mod handshake;

use std::sync::Arc;

use fontis_base::{Duration, Prefetch, Time, prefetch};

use super::config::TcpConfig;
use super::receiver::{Arrival, Receiver};
use super::scoreboard::{Blocks, Piece};
use super::segment::{Segment, TcpFlags, Timestamps, unwrap, wire};
use super::sender::PeerAck;
use super::sending::Sending;
use super::stats::{ReceiverStats, SenderStats};
use crate::congestion::sample::Phase;

/// One end of a TCP connection.
///
/// It takes segments and gives segments; after each call of [`handle`](Self::handle), of the
/// application, and when [`timeout`](Self::timeout) has come, the driver calls [`poll`](Self::poll)
/// until it gives nothing more. The stream's bytes are only counted.
#[derive(Clone, Debug)]
pub struct TcpEndpoint {
    config: Arc<TcpConfig>,
    state: TcpState,
    events: u8,
    options: Negotiated,
    reset: bool,
    /// Our initial sequence number and the peer's.
    isn: u32,
    peer_isn: u32,
    /// What the next segment echoes (RFC 7323 section 4.3).
    timestamp_recent: u32,
    /// What was decided to leave. It stands here and is in no value that is moved: that would be
    /// read in words of another size than it was written in, and wait for the memory.
    leaving: Leaving,
    sending: Sending,
    receiver: Receiver,
    /// The highest position that the peer's window admits, exclusive, and the positions of the
    /// segment that last told it.
    window_end: u64,
    window_told_by: (u64, u64),
    ends: Box<HandshakeState>,
}

/// State that only the handshake and the close need.
#[derive(Clone, Debug)]
struct HandshakeState {
    /// When the SYN or SYNACK leaves next, how often it has, and when it first did.
    syn_at: Time,
    syn_copies: u8,
    syn_sent_at: Time,
    time_wait_until: Time,
    /// The FIN left before the peer's arrived: this side waits in TIME-WAIT.
    closed_first: bool,
}

/// The states of RFC 9293 section 3.3.2, except LISTEN: an endpoint begins with the SYN that it
/// answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// A SYN was sent.
    SynSent,
    /// A SYN was answered.
    SynReceived,
    /// Data flow.
    Established,
    /// The FIN was sent.
    FinWait1,
    /// It was acknowledged; the peer may still send.
    FinWait2,
    /// Both sides closed at the same time.
    Closing,
    /// All is done; copies of the peer's last segment are still answered.
    TimeWait,
    /// The peer has closed.
    CloseWait,
    /// So have we, and wait for the acknowledgement.
    LastAck,
    /// The connection is over.
    Closed,
}

/// What has happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEvent {
    /// Data can be exchanged.
    Connected,
    /// All that the peer wrote has arrived.
    PeerFinished,
    /// All that was written has arrived, the end included.
    Delivered,
    /// It is over, as both sides wanted.
    Closed,
    /// The peer broke it off, or does not answer.
    Aborted,
}

const EVENTS: [TcpEvent; 5] = [
    TcpEvent::Connected,
    TcpEvent::PeerFinished,
    TcpEvent::Delivered,
    TcpEvent::Closed,
    TcpEvent::Aborted,
];

/// A segment to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The segment.
    pub segment: Segment,
    /// Whether routers may mark it instead of dropping it (RFC 3168 section 6.1.5: new data only).
    pub ecn_capable: bool,
}

/// A segment that leaves now. It holds the endpoint, which decides nothing else before the segment
/// is made; without that it counts as lost.
#[derive(Debug)]
#[must_use = "the segment is made by `transmit`"]
pub struct Departure<'a> {
    endpoint: &'a mut TcpEndpoint,
    now: Time,
}

/// The fields of a segment that leaves that not every segment has alike.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    seq: u32,
    flags: TcpFlags,
    len: u32,
    ecn_capable: bool,
    /// It is nothing but an acknowledgement.
    pure: bool,
}

/// What both sides have agreed on.
#[derive(Clone, Copy, Debug)]
struct Negotiated {
    timestamps: bool,
    sack: bool,
    ecn: bool,
    our_scale: u8,
    peer_scale: u8,
}

impl Prefetch for TcpEndpoint {
    /// How many pointers are followed: one leads to the sender, another to what it points to.
    type Part = u8;

    fn prefetch(&self, part: u8) {
        match part {
            0 => prefetch(self),
            _ => self.sending.prefetch(part),
        }
    }
}

impl TcpEndpoint {
    /// An endpoint that connects: its SYN leaves at once. Many may share a configuration.
    pub fn connect(now: Time, config: impl Into<Arc<TcpConfig>>, isn: u32) -> Self {
        Self::new(now, config.into(), isn, TcpState::SynSent)
    }

    /// An endpoint that answers a SYN; `None` if the segment is none.
    pub fn accept(
        now: Time,
        config: impl Into<Arc<TcpConfig>>,
        isn: u32,
        syn: &Segment,
    ) -> Option<Self> {
        let options =
            syn.syn().filter(|_| syn.flags.has(TcpFlags::SYN) && !syn.flags.has(TcpFlags::ACK))?;
        let mut endpoint = Self::new(now, config.into(), isn, TcpState::SynReceived);
        endpoint.on_syn(syn, options);
        Some(endpoint)
    }

    fn new(now: Time, config: Arc<TcpConfig>, isn: u32, state: TcpState) -> Self {
        let options = Negotiated {
            timestamps: config.timestamps,
            sack: config.sack,
            ecn: config.ecn,
            our_scale: config.window_scale(),
            peer_scale: 0,
        };
        let segment_len = config.segment_len(config.timestamps);
        Self {
            sending: Sending::new(segment_len, config.sack, isn),
            receiver: Receiver::new(segment_len),
            config,
            state,
            events: 0,
            options,
            reset: false,
            isn,
            peer_isn: 0,
            timestamp_recent: 0,
            leaving: Leaving::default(),
            window_end: 0,
            window_told_by: (0, 0),
            ends: Box::new(HandshakeState {
                syn_at: now,
                syn_copies: 0,
                syn_sent_at: now,
                time_wait_until: Time::MAX,
                closed_first: false,
            }),
        }
    }

    /// Adds so many bytes to the stream.
    pub fn write(&mut self, bytes: u64) {
        if !self.sender_finished() {
            self.sending.write(&self.config, bytes);
        }
    }

    /// HandshakeState the stream: a FIN follows what was written.
    pub fn finish(&mut self) {
        self.sending.finish(&self.config);
    }

    /// Takes at most `most` bytes of those that have arrived in order; how many. Needed only
    /// without [`auto_read`](TcpConfig::auto_read).
    pub fn read(&mut self, most: u64) -> u64 {
        self.receiver.read(most, &self.config)
    }

    /// Bytes that wait to be read.
    pub fn unread(&self) -> u64 {
        self.receiver.unread()
    }

    /// Breaks the connection off: a RST leaves.
    pub fn abort(&mut self) {
        if self.state != TcpState::Closed {
            self.reset = true;
        }
    }

    /// Whether anything has happened that [`event`](Self::event) has not told.
    #[inline]
    pub const fn has_events(&self) -> bool {
        self.events != 0
    }

    /// What has happened, in the order of [`TcpEvent`].
    #[inline]
    pub fn event(&mut self) -> Option<TcpEvent> {
        if self.events == 0 {
            return None;
        }
        let bit = self.events.trailing_zeros();
        self.events &= self.events - 1;
        EVENTS.get(bit as usize).copied()
    }

    /// Where the connection stands.
    pub const fn state(&self) -> TcpState {
        self.state
    }

    /// Whether the connection is over.
    pub fn is_closed(&self) -> bool {
        self.state == TcpState::Closed
    }

    /// Bytes written and not yet acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.sending.written() - self.sending.acknowledged()
    }

    /// The sending half's counters.
    pub fn sender_stats(&self) -> SenderStats {
        self.sending.stats(&self.config)
    }

    /// The receiving half's counters.
    pub fn receiver_stats(&self) -> ReceiverStats {
        self.receiver.stats()
    }

    /// Whether a segment is a copy of what has arrived in order.
    #[inline]
    pub fn has_all_of(&self, segment: &Segment) -> bool {
        let end = segment.seq.wrapping_add(segment.len);
        self.peer_wire(self.receiver.next()).wrapping_sub(end) as i32 >= 0
    }

    /// How the sender takes the path to be.
    pub fn phase(&self) -> Phase {
        self.sending.phase()
    }

    /// Takes a segment; `marked` if its packet came with congestion experienced.
    pub fn handle(&mut self, now: Time, segment: &Segment, marked: bool) {
        match self.state {
            TcpState::Closed => {}
            TcpState::SynSent => self.handle_in_syn_sent(now, segment),
            _ => self.handle_synchronised(now, segment, marked),
        }
    }

    fn handle_synchronised(&mut self, now: Time, segment: &Segment, marked: bool) {
        let start = self.peer_position(segment.seq);
        let next = self.receiver.next() as i64;
        if segment.flags.has(TcpFlags::RST) {
            // Only what lies in the window may end a connection (RFC 5961 section 3.2).
            if start == next {
                self.end(TcpEvent::Aborted);
            }
            return;
        }
        if segment.flags.has(TcpFlags::SYN) {
            // A copy of the handshake: our answer to it was lost.
            if self.state == TcpState::SynReceived {
                self.ends.syn_at = now;
            } else {
                self.receiver.acknowledge_now();
            }
            return;
        }
        if !segment.flags.has(TcpFlags::ACK) {
            return;
        }
        if self.state == TcpState::SynReceived {
            if segment.ack != self.isn.wrapping_add(1) {
                return;
            }
            self.establish(now, segment);
        }
        self.handle_ack(now, segment, start);
        if self.state == TcpState::Closed {
            return;
        }
        let fin = segment.flags.has(TcpFlags::FIN);
        if segment.has_timestamps && start <= self.receiver.acknowledged() as i64 {
            self.timestamp_recent = segment.timestamps.value;
        }
        if segment.len > 0 || fin {
            let Ok(start) = u64::try_from(start) else {
                self.receiver.acknowledge_now();
                return;
            };
            let was_done = self.receiver.is_done();
            self.receiver.on_segment(
                now,
                Arrival {
                    start,
                    len: u64::from(segment.len),
                    fin,
                    marked: marked && self.options.ecn,
                    cwr: segment.flags.has(TcpFlags::CWR),
                },
                &self.config,
            );
            if self.receiver.is_done() && !was_done {
                self.raise(TcpEvent::PeerFinished);
            }
        } else if start < next {
            // Unacceptable: a window probe, or late (RFC 9293 section 3.10.7.4).
            self.receiver.acknowledge_now();
        }
        self.settle(now);
    }

    fn handle_ack(&mut self, now: Time, segment: &Segment, start: i64) {
        let (una, nxt) = (self.sending.una(), self.sending.nxt());
        let base = self.isn.wrapping_add(1);
        let ack = unwrap(una, base, segment.ack);
        if ack > nxt as i64 {
            // It acknowledges what was never sent.
            self.receiver.acknowledge_now();
            return;
        }
        if ack < una as i64 {
            return;
        }
        let ack = ack as u64;
        let told_by = (start.max(0) as u64, ack);
        let mut window_moved = false;
        if told_by >= self.window_told_by {
            self.window_told_by = told_by;
            let window_end = ack + (u64::from(segment.window) << self.options.peer_scale);
            window_moved = window_end > core::mem::replace(&mut self.window_end, window_end);
        }
        let timestamp_rtt = segment
            .timestamps()
            .filter(|timestamps| timestamps.echo != 0)
            .map(|Timestamps { echo, .. }| timestamp(now).wrapping_sub(echo))
            .map(|elapsed| Duration::from_millis(u64::from(elapsed)));
        let pure = segment.len == 0 && !segment.flags.has(TcpFlags::FIN);
        let ece = self.options.ecn && segment.flags.has(TcpFlags::ECE);
        let peer = PeerAck { ack, window_moved, ece, pure, timestamp_rtt };
        let blocks = Blocks { wire: segment.sack(), base };
        self.sending.on_ack(now, peer, blocks, &self.config);
    }

    /// Moves through the states of the close.
    fn settle(&mut self, now: Time) {
        let (ours, theirs) = (self.sending.is_done(), self.receiver.is_done());
        if ours && matches!(self.state, TcpState::FinWait1 | TcpState::Closing | TcpState::LastAck)
        {
            self.raise(TcpEvent::Delivered);
        }
        self.state = match (self.sending.fin_sent(), ours, theirs) {
            _ if matches!(self.state, TcpState::TimeWait | TcpState::Closed) => return,
            (false, _, false) => TcpState::Established,
            (false, _, true) => TcpState::CloseWait,
            (true, false, false) => TcpState::FinWait1,
            (true, true, false) => TcpState::FinWait2,
            (true, false, true) if self.ends.closed_first => TcpState::Closing,
            (true, false, true) => TcpState::LastAck,
            (true, true, true) if self.ends.closed_first => {
                self.ends.time_wait_until = now + self.config.time_wait;
                TcpState::TimeWait
            }
            (true, true, true) => return self.end(TcpEvent::Closed),
        };
    }

    /// Gives the next segment that leaves at `now`.
    pub fn poll(&mut self, now: Time) -> Option<Transmit> {
        self.leave(now).map(Departure::transmit)
    }

    /// Decides what leaves next at `now`. A driver that has the segment
    /// [made](Departure::transmit) where it goes does not wait for it to reach the memory on the
    /// way.
    #[inline]
    pub fn leave(&mut self, now: Time) -> Option<Departure<'_>> {
        self.decide(now).then_some(Departure { endpoint: self, now })
    }

    /// Returns true if something leaves, and notes what.
    fn decide(&mut self, now: Time) -> bool {
        match self.state {
            _ if self.reset => self.leave_reset(),
            TcpState::Closed => false,
            TcpState::SynSent | TcpState::SynReceived => self.leave_syn(now),
            _ => self.leave_synchronised(now),
        }
    }

    #[cold]
    fn leave_reset(&mut self) -> bool {
        self.reset = false;
        self.end(TcpEvent::Aborted);
        let (seq, flags) = (self.wire(self.sending.nxt()), TcpFlags::RST | TcpFlags::ACK);
        self.leaving = Leaving { seq, flags, len: 0, ecn_capable: false, pure: false };
        true
    }

    #[inline]
    fn leave_synchronised(&mut self, now: Time) -> bool {
        if self.state == TcpState::TimeWait && now >= self.ends.time_wait_until {
            self.end(TcpEvent::Closed);
            return false;
        }
        if !self.sending.on_time(now, self.window_end, &self.config) {
            self.end(TcpEvent::Aborted);
            return false;
        }
        let before = self.sending.nxt();
        if let Some(Piece { start, len, fin }) =
            self.sending.next(now, self.window_end, &self.config)
        {
            let mut flags = TcpFlags::ACK;
            if fin {
                flags |= TcpFlags::FIN;
                if start >= before {
                    self.ends.closed_first = !self.receiver.is_done();
                    self.settle(now);
                }
            }
            if fin || start + u64::from(len) >= self.sending.written() {
                flags |= TcpFlags::PSH;
            }
            // Copies are not marked, or a router could hide that they were lost (RFC 3168 section
            // 6.1.5).
            let is_new = start >= before;
            if is_new && self.sending.take_cwr() {
                flags |= TcpFlags::CWR;
            }
            let ecn_capable = self.options.ecn && is_new;
            let seq = self.wire(start);
            self.leaving = Leaving { seq, flags, len, ecn_capable, pure: false };
            return true;
        }
        let seq = if self.sending.take_window_probe() {
            // An old position makes the peer answer (as Linux does it).
            self.wire(self.sending.una()).wrapping_sub(1)
        } else if self.receiver.wants_ack(now) {
            self.wire(self.sending.nxt())
        } else {
            return false;
        };
        let flags = TcpFlags::ACK;
        self.leaving = Leaving { seq, flags, len: 0, ecn_capable: false, pure: true };
        true
    }

    /// What a segment that leaves now says of the time, if that was agreed on.
    fn timestamps(&self, now: Time, echo: u32) -> Option<Timestamps> {
        self.options.timestamps.then(|| Timestamps { value: timestamp(now), echo })
    }

    /// When the endpoint next has something to do if nothing arrives, and why.
    pub fn timeout(&self) -> Option<(Time, &'static str)> {
        let next = self.next();
        (next.0 < Time::MAX).then_some(next)
    }

    /// When the endpoint next has something to do if nothing arrives; [`Time::MAX`] if nothing.
    pub fn deadline(&self) -> Time {
        self.next().0
    }

    // Who does not ask why need not have it found out.
    #[inline(always)]
    fn next(&self) -> (Time, &'static str) {
        match self.state {
            TcpState::Closed => (Time::MAX, ""),
            _ if self.reset => (Time::ZERO, "reset"),
            TcpState::SynSent | TcpState::SynReceived => (self.ends.syn_at, "handshake"),
            TcpState::TimeWait => {
                let ack = (self.receiver.ack_at(), "acknowledgement");
                ack.min((self.ends.time_wait_until, "TIME-WAIT"))
            }
            _ => {
                let (send, ack) = (self.sending.timeout(), self.receiver.ack_at());
                if ack < send.0 { (ack, "acknowledgement") } else { send }
            }
        }
    }

    fn sender_finished(&self) -> bool {
        self.sending.is_finished() || self.state == TcpState::Closed
    }

    fn raise(&mut self, event: TcpEvent) {
        self.events |= 1 << event as u8;
    }

    fn end(&mut self, event: TcpEvent) {
        self.state = TcpState::Closed;
        self.raise(event);
    }

    fn wire(&self, position: u64) -> u32 {
        wire(self.isn.wrapping_add(1), position)
    }

    fn peer_wire(&self, position: u64) -> u32 {
        wire(self.peer_isn.wrapping_add(1), position)
    }

    /// The position in the peer's stream of a sequence number; negative before its beginning.
    fn peer_position(&self, seq: u32) -> i64 {
        unwrap(self.receiver.next(), self.peer_isn.wrapping_add(1), seq)
    }
}

/// The clock of timestamps: milliseconds, as in Linux.
fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
