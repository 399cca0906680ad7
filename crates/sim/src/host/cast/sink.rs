//! A receiver of a cast.

use core::any::Any;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;

use fontis_base::{Duration, Node, Packet, Port, Stream, Time};
use fontis_proto::cast::{CastGate, CastOrigin, CastReceiver, CastReceiverConfig};

use crate::host::cast::layout::CastLayout;
use crate::host::cast::packet::{CastPacket, CastWord};
use crate::host::cast::source::{after, digest, outgoing};
use crate::host::identity::{EndpointIdentity, Stay};
use crate::host::payload::Payload;
use crate::host::{Counters, Host, Milestones};

/// Where a receiver stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not begun.
    Away,
    /// It has asked.
    Asking,
    /// It knows of the cast and says so; it listens.
    Joining,
    Receiving,
    /// It has everything or gives up, and has said so.
    Leaving,
    Gone,
}

/// A receiver of a cast.
pub struct CastSink {
    identity: EndpointIdentity,
    layout: CastLayout,
    gate: CastGate,
    member: u32,
    stay: Stay,
    /// Whether the sender takes no answers.
    is_one_way: bool,
    phase: Phase,
    /// When to say again what was not answered.
    retry_at: Time,
    stream: Stream,
    out: VecDeque<CastPacket>,
    wire: bool,
    /// Blocks of the body that were decoded before the head.
    early: Vec<u32>,
    /// Blocks of the head that are decoded.
    head: Vec<bool>,
    /// When the sender was last heard, where it takes no answers.
    heard_at: Option<Time>,
    heard: Heard,
    packets: u64,
    received: u64,
    symbols: u64,
    wasted: u64,
    milestones: Milestones,
    asked: Option<Time>,
}

/// What a receiver counts of its group's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    packets: u64,
    /// The first number and the highest.
    numbers: Option<(u64, u64)>,
    /// The last state: when it came, and whether it named the receiver as the limiting one.
    state: Option<(Time, bool)>,
    /// The time since the first state, and how much of it the receiver was that.
    known: Duration,
    limiting: Duration,
}

impl Heard {
    fn number(&mut self, number: u64) {
        self.packets += 1;
        let (first, last) = self.numbers.unwrap_or((number, number));
        self.numbers = Some((first.min(number), last.max(number)));
    }

    fn state(&mut self, now: Time, is_limiting: bool) {
        if let Some((since, was_limiting)) = self.state {
            let time = now.since(since);
            self.known += time;
            self.limiting += if was_limiting { time } else { Duration::ZERO };
        }
        self.state = Some((now, is_limiting));
    }

    /// The share of packets that did not come.
    fn loss(&self) -> Option<f64> {
        let (first, last) = self.numbers?;
        Some(1.0 - (self.packets as f64 / (last - first + 1) as f64).min(1.0))
    }
}

/// The time after which a request is repeated, with up to as much at random: longer than most round
/// trips.
const RETRY: Duration = Duration::from_millis(500);
/// The longest silence of a sender that takes no answers, as `fontis join` has it.
const SILENCE: Duration = Duration::from_secs(10);
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl CastSink {
    /// Receiver `member` of a flow.
    pub fn new(
        identity: EndpointIdentity,
        layout: CastLayout,
        member: u32,
        stay: Stay,
        is_one_way: bool,
        mut stream: Stream,
    ) -> Self {
        let config = CastReceiverConfig::default();
        let receiver = CastReceiver::new(config, layout.shape, member, stream.next_u64());
        Self {
            identity,
            layout,
            gate: CastGate::new(receiver),
            member,
            stay,
            is_one_way,
            phase: Phase::Away,
            retry_at: Time::MAX,
            stream,
            out: VecDeque::new(),
            wire: false,
            early: Vec::new(),
            head: vec![false; layout.shape.head_blocks() as usize],
            heard_at: None,
            heard: Heard::default(),
            packets: 0,
            received: 0,
            symbols: 0,
            wasted: 0,
            milestones: Milestones::default(),
            asked: None,
        }
    }

    /// The same receiver, each of whose packets passes through its bytes and back if `wire` says
    /// so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// Says something that is to be answered.
    fn ask(&mut self, now: Time, phase: Phase) {
        self.phase = phase;
        self.out.push_back(match phase {
            Phase::Leaving => CastPacket::Leave(self.member),
            _ => CastPacket::Join(self.member, phase == Phase::Joining),
        });
        self.retry_at =
            now + RETRY + Duration::from_secs_f64(RETRY.as_secs_f64() * self.stream.unit());
    }

    /// It is over, with everything or without.
    fn end(&mut self, now: Time) {
        self.heard.state(now, false);
        match self.gate.receiver().is_complete() {
            true => self.milestones.completed = Some(now),
            false => self.milestones.aborted = true,
        }
        match self.is_one_way {
            true => self.phase = Phase::Gone,
            false => self.ask(now, Phase::Leaving),
        }
    }

    /// Takes what the group gets.
    fn hear(&mut self, now: Time, number: u64, word: &CastWord) {
        self.heard.number(number);
        let origin = CastOrigin { number, digest: digest(number), source: NOBODY, at: now };
        match word {
            CastWord::Announcement(announcement) => {
                self.heard_at = Some(now);
                self.milestones.connected.get_or_insert(now);
                if announcement.is_end {
                    self.end(now);
                }
                return;
            }
            // Before an announcement nobody knows what the symbols are of.
            _ if self.is_one_way && self.heard_at.is_none() => return,
            CastWord::Symbol(symbol) => {
                self.symbols += 1;
                self.wasted += u64::from(self.gate.receiver().has(symbol.block));
                self.milestones.first_data.get_or_insert(now);
                self.milestones.last_data = Some(now);
                self.gate.symbol(origin, symbol.clone());
            }
            CastWord::State(state) => {
                self.heard.state(now, state.limiting == Some(self.member));
                self.gate.state(origin, state.clone());
            }
            CastWord::Receipt(receipt) => {
                self.heard_at = self.is_one_way.then_some(now);
                self.gate.receipt(origin, receipt);
            }
        }
        self.decode();
        if self.gate.receiver().is_complete() {
            // The last report says so.
            self.report(now);
            self.end(now);
        }
    }

    /// Decodes what is complete, in no time. The body counts when the head is there.
    fn decode(&mut self) {
        while let Some((block, job)) = self.gate.receiver_mut().take_job() {
            if self.gate.receiver_mut().decoded(block, job.run()).is_none() {
                continue;
            }
            match self.head.get_mut(block as usize) {
                Some(is_there) => *is_there = true,
                None => self.early.push(block),
            }
            if self.head.iter().all(|is_there| *is_there) {
                for block in (0..self.head.len() as u32).chain(self.early.drain(..)) {
                    if !self.gate.receiver().has(block) {
                        let (is_body, _) = self.layout.shape.place(block);
                        let len = u64::from(self.layout.shape.len(block));
                        self.received += if is_body { len } else { 0 };
                        self.gate.receiver_mut().accept(block);
                    }
                }
            }
        }
    }

    fn report(&mut self, now: Time) {
        while let Some(report) = self.gate.receiver_mut().poll(now) {
            self.out.push_back(CastPacket::Report(self.member, report));
        }
    }

    /// Does what is due.
    fn act(&mut self, now: Time) {
        let gives_up = self.stay.to.is_some_and(|to| to <= now);
        match self.phase {
            Phase::Away if self.stay.from <= now => {
                self.milestones.first_sent = Some(now);
                match self.is_one_way {
                    true => self.phase = Phase::Receiving,
                    false => self.ask(now, Phase::Asking),
                }
            }
            Phase::Asking | Phase::Joining | Phase::Receiving if gives_up => self.end(now),
            Phase::Asking | Phase::Joining | Phase::Leaving if self.retry_at <= now => {
                self.ask(now, self.phase);
            }
            Phase::Receiving => {
                let is_silent = self.heard_at.is_some_and(|at| at + SILENCE <= now);
                match is_silent {
                    true => self.end(now),
                    false => self.report(now),
                }
            }
            Phase::Away | Phase::Asking | Phase::Joining | Phase::Leaving | Phase::Gone => {}
        }
    }
}

impl Node<Payload> for CastSink {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        let Payload::Cast(inner) = &packet.payload else { return };
        if packet.corrupt {
            return;
        }
        self.asked = None;
        match (&**inner, self.phase) {
            (CastPacket::Group(number, word), Phase::Joining | Phase::Receiving) => {
                self.hear(now, *number, word);
            }
            (CastPacket::Invite, Phase::Asking) => {
                self.milestones.connected = Some(now);
                self.ask(now, Phase::Joining);
            }
            (CastPacket::Invite, Phase::Joining) => self.phase = Phase::Receiving,
            (CastPacket::Left, Phase::Leaving) => {
                // Of one that gave up it would say that all had come.
                self.milestones.closed = self.milestones.completed.map(|_| now);
                self.phase = Phase::Gone;
            }
            _ => {}
        }
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if self.out.is_empty() {
            self.act(now);
        }
        let Some(packet) = self.out.pop_front() else {
            self.asked = Some(now);
            return None;
        };
        let to = self.identity.peer;
        Some((0, outgoing(self.identity, to, &mut self.packets, packet, self.wire)))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        if !self.out.is_empty() {
            return Some((Time::ZERO, "packets"));
        }
        let gives_up = self.stay.to.unwrap_or(Time::MAX);
        let next = match self.phase {
            Phase::Away => self.stay.from,
            Phase::Asking | Phase::Joining => self.retry_at.min(gives_up),
            Phase::Receiving => {
                let silence = self.heard_at.map_or(Time::MAX, |at| at + SILENCE);
                self.gate.receiver().timeout().min(silence).min(gives_up)
            }
            Phase::Leaving => self.retry_at,
            Phase::Gone => Time::MAX,
        };
        (next < Time::MAX).then(|| (after(self.asked, next), "cast"))
    }
}

impl Host for CastSink {
    fn counters(&self) -> Counters {
        Counters {
            received: self.received,
            wasted: self.wasted,
            symbols: self.symbols,
            ..Counters::default()
        }
    }

    fn milestones(&self) -> Milestones {
        self.milestones
    }

    fn metrics(&self, _now: Time) -> Vec<(&'static str, f64)> {
        let mut metrics = Vec::new();
        let Milestones { first_sent, completed, .. } = self.milestones;
        if let (Some(begin), Some(end)) = (first_sent, completed) {
            let seconds = end.since(begin).as_secs_f64().max(1e-9);
            metrics.push(("object_rate", self.layout.size as f64 * 8e-6 / seconds));
        }
        metrics.extend(self.heard.loss().map(|loss| ("group_loss", loss)));
        if self.heard.known > Duration::ZERO {
            let share = self.heard.limiting.as_secs_f64() / self.heard.known.as_secs_f64();
            metrics.push(("limiting_share", share));
        }
        metrics
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
