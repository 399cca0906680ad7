use std::collections::VecDeque;

use bytes::Bytes;
use fontis_base::{Duration, Rate, Time};

use super::config::{Control, PublishedConfig};
use super::header::{PublishedFlags, PublishedHeader};
use super::packet::{Body, Parameters, PublishedPacket};
use super::receiver::Receiver;
use super::retry::Retry;
use super::sender::Sender;

/// One side of a connection.
///
/// Its driver hands in packets with [`handle`](Self::handle), then drains [`poll`](Self::poll) and
/// [`event`](Self::event), and comes back when [`timeout`](Self::timeout) says so.
pub struct PublishedEndpoint {
    config: PublishedConfig,
    state: PublishedState,
    seed: [u32; 3],
    retry: Option<Retry>,
    /// When the first SYN was sent, until its answer has come.
    asked: Option<Time>,
    /// The round-trip time that its answer showed.
    rtt: Duration,
    /// When marks last changed the rate.
    changed: Time,
    /// When TIME_WAIT is over.
    forget: Option<Time>,
    sender: Sender,
    receiver: Receiver,
    rate: Rate,
    /// When the next packet with data may leave.
    next: Time,
    /// Control packets to be sent.
    out: VecDeque<PublishedPacket>,
    events: VecDeque<PublishedEvent>,
    finish: bool,
}

/// The state of a connection (figures 3.6 and 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedState {
    /// It asked for a connection.
    SynSent,
    /// It was asked for one, and agreed.
    SynReceived,
    /// Data can be sent.
    Established,
    /// It said that it has no more to send.
    FinWait1,
    /// The peer has heard it.
    FinWait2,
    /// Both have said it; the peer might not have heard the answer.
    TimeWait,
    /// The peer has no more to send.
    CloseWait,
    /// Neither has, and the peer's answer is awaited.
    LastAck,
    /// It is over.
    Closed,
}

/// What an application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedEvent {
    /// Data can be exchanged.
    Connected,
    /// The peer has no more to send, and all of it was delivered.
    PeerFinished,
    /// The connection is over.
    Closed,
    /// It is over because the peer does not answer, or broke it off.
    Aborted,
}

/// What an endpoint has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishedStats {
    /// Packets with data sent.
    pub packets_sent: u64,
    /// Of these, beyond the first pass.
    pub repairs_sent: u64,
    /// Encoded bytes sent.
    pub bytes_sent: u64,
    /// Bytes of blocks sent and not acknowledged.
    pub in_flight: u64,
    /// Bytes of the message that the peer has acknowledged.
    pub acknowledged: u64,
    /// Packets with data received.
    pub packets_received: u64,
    /// Encoded bytes received.
    pub bytes_received: u64,
    /// Encoded bytes received of blocks that were done.
    pub bytes_wasted: u64,
    /// Bytes of the message delivered in order.
    pub delivered: u64,
    /// Packets beyond the window.
    pub packets_refused: u64,
    /// Blocks that the receiver held at a time, at most.
    pub most_blocks_held: u64,
}

impl PublishedEndpoint {
    fn new(config: PublishedConfig, seed: [u32; 3], state: PublishedState) -> Self {
        let luck = u64::from(seed[0]) << 32 | u64::from(seed[1]);
        Self {
            sender: Sender::new(config.clone()),
            receiver: Receiver::new(config.clone(), luck),
            rate: config.rate,
            config,
            state,
            seed,
            retry: None,
            asked: None,
            rtt: Duration::ZERO,
            changed: Time::ZERO,
            forget: None,
            next: Time::ZERO,
            out: VecDeque::new(),
            events: VecDeque::new(),
            finish: false,
        }
    }

    /// Asks for a connection. `seed` is the initial state of the generator.
    pub fn connect(now: Time, config: PublishedConfig, seed: [u32; 3]) -> Self {
        let mut endpoint = Self::new(config, seed, PublishedState::SynSent);
        endpoint.asked = Some(now);
        endpoint.send_and_wait(now, PublishedFlags::SYN);
        endpoint
    }

    /// Answers a SYN; `None` if the packet is none, or asks for blocks of another size.
    pub fn accept(
        now: Time,
        config: PublishedConfig,
        seed: [u32; 3],
        packet: &PublishedPacket,
    ) -> Option<Self> {
        let Body::Parameters(parameters) = &packet.body else { return None };
        if packet.header.flags != PublishedFlags::SYN || parameters.block != config.block {
            return None;
        }
        let mut endpoint = Self::new(config, seed, PublishedState::SynReceived);
        endpoint.send_and_wait(now, PublishedFlags::SYN.and(PublishedFlags::ACK));
        Some(endpoint)
    }

    /// The state.
    pub const fn state(&self) -> PublishedState {
        self.state
    }

    /// Whether it is over.
    pub fn is_closed(&self) -> bool {
        self.state == PublishedState::Closed
    }

    /// Has so many bytes to send, which are only counted.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// Has these bytes to send.
    pub fn write_data(&mut self, data: Bytes) {
        self.sender.write_data(data);
    }

    /// Bytes that arrived, in order; nothing if they are only counted.
    pub fn read(&mut self) -> Option<Bytes> {
        self.receiver.read()
    }

    /// Has no more to send. The peer is told when all is acknowledged (D-11).
    pub fn finish(&mut self) {
        self.finish = true;
    }

    /// Sends as fast as this from now on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        if self.rate == Rate::ZERO {
            self.next = self.next.max(now);
        }
        self.rate = rate;
    }

    /// How fast it sends.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// What was counted.
    pub fn stats(&self) -> PublishedStats {
        let (sender, receiver) = (&self.sender, &self.receiver);
        PublishedStats {
            packets_sent: sender.packets,
            repairs_sent: sender.repairs,
            bytes_sent: sender.sent_bytes,
            in_flight: sender.in_flight(),
            acknowledged: sender.acknowledged,
            packets_received: receiver.packets,
            bytes_received: receiver.bytes,
            bytes_wasted: receiver.wasted,
            delivered: receiver.delivered,
            packets_refused: receiver.refused,
            most_blocks_held: receiver.most_held as u64,
        }
    }

    /// The next thing that an application should know.
    pub fn event(&mut self) -> Option<PublishedEvent> {
        self.events.pop_front()
    }

    /// Takes a packet; `marked` says whether the network marked it.
    pub fn handle(&mut self, now: Time, packet: &PublishedPacket, marked: bool) {
        let flags = packet.header.flags;
        if self.state == PublishedState::Closed {
            return;
        }
        if flags.has(PublishedFlags::RST) {
            return self.end(PublishedEvent::Aborted);
        }
        if let Body::Symbols(symbols) = &packet.body
            && flags.carry_data()
        {
            if self.state == PublishedState::SynReceived {
                // Whoever sends data has had the answer (D-11).
                self.establish();
            }
            if !matches!(self.state, PublishedState::SynSent | PublishedState::TimeWait) {
                self.receiver.handle(&packet.header, symbols, marked);
            }
        } else if flags.has(PublishedFlags::SYN) {
            self.on_syn(now, flags);
        } else if flags.has(PublishedFlags::FIN) {
            self.on_fin(now, flags);
        } else if flags.has(PublishedFlags::ACK) {
            self.on_ack(now, packet);
        }
        self.advance(now);
    }

    fn on_syn(&mut self, now: Time, flags: PublishedFlags) {
        if flags.has(PublishedFlags::ACK) {
            match self.state {
                PublishedState::SynSent => {
                    if let Some(asked) = self.asked.take() {
                        self.rtt = now.since(asked);
                        self.sender.set_rtt(self.rtt);
                    }
                    self.establish();
                    self.acknowledge();
                }
                // The acknowledgement was lost.
                PublishedState::SynReceived | PublishedState::TimeWait => {}
                _ => self.acknowledge(),
            }
        }
    }

    fn on_fin(&mut self, now: Time, flags: PublishedFlags) {
        match self.state {
            PublishedState::Established | PublishedState::CloseWait
                if !flags.has(PublishedFlags::ACK) =>
            {
                if self.state == PublishedState::Established {
                    self.state = PublishedState::CloseWait;
                    self.events.push_back(PublishedEvent::PeerFinished);
                }
                self.acknowledge();
            }
            // The acknowledgement of our own FIN was lost: the answer to it says as much.
            PublishedState::FinWait1 | PublishedState::FinWait2 | PublishedState::TimeWait => {
                if self.state != PublishedState::TimeWait {
                    self.events.push_back(PublishedEvent::PeerFinished);
                    self.state = PublishedState::TimeWait;
                    self.retry = None;
                    self.forget = Some(now + self.config.time_wait);
                }
                self.acknowledge();
            }
            _ => {}
        }
    }

    fn on_ack(&mut self, now: Time, packet: &PublishedPacket) {
        if packet.header.block > 0 {
            self.sender.acknowledge(now, packet.header.block, true);
            if let (Body::Marks { packets, marked }, Control::Marks { gain }) =
                (&packet.body, self.config.control)
            {
                // What was sent before a change says nothing of it: one in two round trips.
                if now < self.changed + self.rtt + self.rtt {
                    return;
                }
                self.changed = now;
                let share = f64::from(*marked) / f64::from((*packets).max(1));
                let factor = if *marked == 0 { 1.02 } else { 1.0 - gain * share };
                self.rate = self.rate.scale(factor).clamp(LEAST, self.config.rate.max(LEAST));
            }
            return;
        }
        match self.state {
            PublishedState::SynReceived => self.establish(),
            PublishedState::FinWait1 => {
                self.state = PublishedState::FinWait2;
                self.retry = None;
            }
            PublishedState::LastAck => self.end(PublishedEvent::Closed),
            _ => {}
        }
    }

    fn establish(&mut self) {
        self.state = PublishedState::Established;
        self.retry = None;
        self.events.push_back(PublishedEvent::Connected);
    }

    /// Says that there is nothing more, when there is nothing more.
    fn advance(&mut self, now: Time) {
        if !self.finish || !self.sender.is_done() {
            return;
        }
        match self.state {
            PublishedState::Established => {
                self.state = PublishedState::FinWait1;
                self.send_and_wait(now, PublishedFlags::FIN);
            }
            PublishedState::CloseWait => {
                self.state = PublishedState::LastAck;
                self.send_and_wait(now, PublishedFlags::FIN.and(PublishedFlags::ACK));
            }
            _ => {}
        }
    }

    fn acknowledge(&mut self) {
        self.control(PublishedFlags::ACK);
    }

    fn send_and_wait(&mut self, now: Time, flags: PublishedFlags) {
        self.retry = Some(Retry::new(now));
        self.control(flags);
    }

    fn control(&mut self, flags: PublishedFlags) {
        let is_syn = flags.has(PublishedFlags::SYN);
        let body = if is_syn {
            Body::Parameters(Parameters {
                block: self.config.block,
                window: self.config.window,
                redundancy: (self.config.redundancy * 1e6) as u32,
            })
        } else {
            Body::None
        };
        let state = if is_syn { self.seed } else { [0; 3] };
        self.out.push_back(PublishedPacket {
            header: PublishedHeader { flags, state, ..PublishedHeader::default() },
            body,
        });
    }

    fn end(&mut self, event: PublishedEvent) {
        self.state = PublishedState::Closed;
        self.retry = None;
        self.forget = None;
        self.events.push_back(event);
    }

    fn on_timer(&mut self, now: Time) {
        if self.forget.is_some_and(|at| now >= at) {
            return self.end(PublishedEvent::Closed);
        }
        let Some(retry) = self.retry.as_mut().filter(|retry| now >= retry.at) else { return };
        let goes_on = retry.again(now);
        match self.state {
            PublishedState::SynSent if goes_on => self.control(PublishedFlags::SYN),
            PublishedState::SynReceived if goes_on => {
                self.control(PublishedFlags::SYN.and(PublishedFlags::ACK));
            }
            PublishedState::FinWait1 if goes_on => self.control(PublishedFlags::FIN),
            PublishedState::LastAck if goes_on => {
                self.control(PublishedFlags::FIN.and(PublishedFlags::ACK));
            }
            PublishedState::SynReceived => {
                self.control(PublishedFlags::RST);
                self.end(PublishedEvent::Aborted);
            }
            PublishedState::SynSent => self.end(PublishedEvent::Aborted),
            // What could be said was said.
            _ => self.end(PublishedEvent::Closed),
        }
    }

    fn may_send_data(&self) -> bool {
        matches!(self.state, PublishedState::Established | PublishedState::CloseWait)
            && self.rate > Rate::ZERO
    }

    /// The next packet to be sent, if one is due.
    pub fn poll(&mut self, now: Time) -> Option<PublishedPacket> {
        if self.timer().is_some_and(|at| now >= at) {
            self.on_timer(now);
        }
        self.advance(now);
        if let Some(packet) = self.out.pop_front().or_else(|| self.receiver.poll()) {
            return Some(packet);
        }
        if !self.may_send_data() || now < self.next {
            return None;
        }
        let packet = self.sender.poll(now)?;
        // A sender that had nothing to send may not make up for it.
        self.next = self.next.max(now) + self.rate.time_for(u64::from(packet.size()));
        Some(packet)
    }

    fn timer(&self) -> Option<Time> {
        [self.retry.as_ref().map(|retry| retry.at), self.forget].into_iter().flatten().min()
    }

    /// When it next has something to do if nothing arrives, and why.
    pub fn timeout(&self) -> Option<(Time, &'static str)> {
        if !self.out.is_empty() || self.receiver.has_acks() {
            return Some((Time::ZERO, "packet"));
        }
        let data = if self.may_send_data() { self.sender.due() } else { None };
        let data = data.map(|at| (at.max(self.next), "data"));
        let timer = self.timer().map(|at| (at, "timer"));
        [data, timer].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// No mark makes a sender slower than this.
const LEAST: Rate = Rate::from_bps(100_000);
