//! The sender of a cast.

use core::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use fontis_base::{Address, Duration, Ecn, Node, Packet, PacketId, Port, Rate, Time};
use fontis_proto::cast::{
    Carousel, CarouselConfig, CarouselTransmit, CastConfig, CastSender, CastSymbol, CastTransmit,
    ReceiptBook,
};
use fontis_proto::rate::PathDeparture;

use crate::host::cast::layout::CastLayout;
use crate::host::cast::packet::{CastPacket, CastWord};
use crate::host::identity::EndpointIdentity;
use crate::host::payload::Payload;
use crate::host::{Counters, Host, Milestones};

/// How a cast is sent.
#[derive(Clone, Copy, Debug)]
pub enum CastMode {
    /// Receivers say what they lack.
    Answered(CastConfig),
    /// Receivers cannot answer.
    OneWay(CarouselConfig),
}

/// The state machine of a sender.
enum Sender {
    Answered(Box<CastSender>),
    OneWay {
        carousel: Box<Carousel>,
        rate: Rate,
        /// The number of the next packet.
        number: u64,
    },
}

/// The sender of a cast.
pub struct CastSource {
    identity: EndpointIdentity,
    layout: CastLayout,
    sender: Sender,
    book: ReceiptBook,
    /// When it takes the first receiver in.
    start: Time,
    /// It begins to send when so many are there.
    wait_for: usize,
    joined: BTreeSet<u32>,
    out: VecDeque<(Address, CastPacket)>,
    wire: bool,
    packets: u64,
    symbols: u64,
    repairs: u64,
    group_bytes: u64,
    report_bytes: u64,
    /// When it was last asked for a packet in vain.
    asked: Option<Time>,
}

/// The digest of packet `number`. Nobody forges here, so the number says all.
pub(super) const fn digest(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl CastSource {
    /// A sender of a flow that begins when `wait_for` receivers are there, at `start` or later.
    pub fn new(
        identity: EndpointIdentity,
        layout: CastLayout,
        mode: CastMode,
        start: Time,
        wait_for: usize,
    ) -> Self {
        let sender = match mode {
            CastMode::Answered(config) => {
                Sender::Answered(Box::new(CastSender::new(config, layout.shape)))
            }
            CastMode::OneWay(config) => Sender::OneWay {
                carousel: Box::new(Carousel::new(config, layout.shape)),
                rate: config.rate,
                number: 0,
            },
        };
        Self {
            identity,
            layout,
            sender,
            book: ReceiptBook::default(),
            start,
            wait_for,
            joined: BTreeSet::new(),
            out: VecDeque::new(),
            wire: false,
            packets: 0,
            symbols: 0,
            repairs: 0,
            group_bytes: 0,
            report_bytes: 0,
            asked: None,
        }
    }

    /// The same sender, each of whose packets passes through its bytes and back if `wire` says so.
    pub fn with_wire(self, wire: bool) -> Self {
        Self { wire, ..self }
    }

    /// Sends packet `number`, and what is due of receipts after it.
    fn say(&mut self, number: u64, word: CastWord, now: Time) {
        if let CastWord::Symbol(CastSymbol { block, esi, .. }) = word {
            self.symbols += 1;
            self.repairs += u64::from(esi >= self.layout.shape.source_symbols(block));
        }
        let rate = match &self.sender {
            Sender::Answered(sender) => sender.rate(),
            Sender::OneWay { rate, .. } => *rate,
        };
        self.book.note(number, digest(number), rate, now);
        self.out.push_back((self.identity.peer, CastPacket::Group(number, word)));
    }

    /// Sends a receipt, if one is due. `is_idle` says that no symbol follows soon.
    fn vouch(&mut self, is_idle: bool, now: Time) {
        if let Some(receipt) = self.book.poll(now, is_idle) {
            let number = match &mut self.sender {
                Sender::Answered(sender) => sender.number(now),
                Sender::OneWay { number, .. } => next(number),
            };
            self.book.note_receipt(number, digest(number));
            let packet = CastPacket::Group(number, CastWord::Receipt(receipt));
            self.out.push_back((self.identity.peer, packet));
        }
    }

    /// Puts the next packets out, if some are due.
    fn work(&mut self, now: Time) {
        match &mut self.sender {
            Sender::Answered(sender) => {
                if let Some((number, transmit)) = sender.poll(now) {
                    let word = match transmit {
                        CastTransmit::State(state) => CastWord::State(state),
                        CastTransmit::Symbol { visit, block, esi, timing } => {
                            symbol(visit, block, esi, timing)
                        }
                    };
                    self.say(number, word, now);
                }
                let Sender::Answered(sender) = &self.sender else { return };
                let is_idle = sender.is_idle();
                self.vouch(is_idle, now);
            }
            Sender::OneWay { carousel, .. } => {
                if let Some(transmit) = carousel.poll(now) {
                    let (word, is_last) = match transmit {
                        CarouselTransmit::Announcement(state) => {
                            (CastWord::Announcement(state), state.is_end)
                        }
                        CarouselTransmit::Symbol { round, block, esi } => {
                            (symbol(round, block, esi, None), false)
                        }
                    };
                    // What nobody has vouched for must be vouched for before the end.
                    self.vouch(is_last, now);
                    let Sender::OneWay { number, .. } = &mut self.sender else { return };
                    let number = next(number);
                    self.say(number, word, now);
                }
                self.vouch(false, now);
            }
        }
    }

    /// Answers what a receiver says.
    fn hear(&mut self, now: Time, from: Address, packet: &CastPacket, size: u32) {
        let Sender::Answered(sender) = &mut self.sender else { return };
        match packet {
            CastPacket::Join(member, is_invited) => {
                if *is_invited && self.joined.insert(*member) {
                    sender.join(*member, now);
                    if self.joined.len() >= self.wait_for {
                        sender.start(now);
                    }
                }
                self.out.push_back((from, CastPacket::Invite));
            }
            CastPacket::Leave(member) => {
                sender.leave(*member);
                self.out.push_back((from, CastPacket::Left));
            }
            CastPacket::Report(member, report) => {
                self.report_bytes += u64::from(size);
                sender.report(*member, report, now);
            }
            CastPacket::Group(..) | CastPacket::Invite | CastPacket::Left => {}
        }
    }
}

fn next(number: &mut u64) -> u64 {
    *number += 1;
    *number - 1
}

/// A symbol that is counted.
const fn symbol(visit: u32, block: u32, esi: u32, timing: Option<PathDeparture>) -> CastWord {
    CastWord::Symbol(CastSymbol { visit, block, esi, timing, data: Bytes::new() })
}

impl Node<Payload> for CastSource {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        if let Payload::Cast(inner) = &packet.payload
            && !packet.corrupt
        {
            self.asked = None;
            self.hear(now, packet.src, inner, packet.size);
        }
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if self.out.is_empty() && now >= self.start {
            self.work(now);
        }
        let Some((to, packet)) = self.out.pop_front() else {
            self.asked = Some(now);
            return None;
        };
        if matches!(packet, CastPacket::Group(..)) {
            self.group_bytes += u64::from(packet.size());
        }
        Some((0, outgoing(self.identity, to, &mut self.packets, packet, self.wire)))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        if !self.out.is_empty() {
            return Some((Time::ZERO, "packets"));
        }
        let next = match &self.sender {
            Sender::Answered(sender) => sender.timeout(),
            Sender::OneWay { carousel, .. } => carousel.timeout(),
        };
        let next = next.min(self.book.timeout()).max(self.start);
        (next < Time::MAX).then(|| (after(self.asked, next), "cast"))
    }
}

/// When to ask a state machine that names a time and gave nothing when it was last asked.
pub(super) fn after(asked: Option<Time>, next: Time) -> Time {
    asked.map_or(next, |asked| next.max(asked + Duration::from_micros(1)))
}

/// A packet of a host, the next of its own.
pub(super) fn outgoing(
    identity: EndpointIdentity,
    to: Address,
    packets: &mut u64,
    packet: CastPacket,
    wire: bool,
) -> Packet<Payload> {
    *packets += 1;
    let size = packet.size();
    let packet = if wire { packet.pass_wire() } else { packet };
    Packet {
        id: PacketId(u64::from(identity.number) << 40 | *packets),
        src: identity.local,
        dst: to,
        flow: identity.flow,
        size,
        segments: 1,
        ecn: Ecn::NotEct,
        corrupt: false,
        class: identity.class,
        payload: Payload::Cast(Arc::new(packet)),
    }
}

impl Host for CastSource {
    fn counters(&self) -> Counters {
        let srtt = match &self.sender {
            Sender::Answered(sender) => {
                let limiting = sender.limiting();
                let mut members = sender.members();
                let limiting = members.find(|(member, _)| Some(*member) == limiting);
                limiting.and_then(|(_, member)| member.round_trip)
            }
            Sender::OneWay { .. } => None,
        };
        Counters { sent: self.packets, retransmitted: self.repairs, srtt, ..Counters::default() }
    }

    fn milestones(&self) -> Milestones {
        // A receiver's time begins when it asks.
        Milestones::default()
    }

    fn metrics(&self, _now: Time) -> Vec<(&'static str, f64)> {
        let needed = self.layout.shape.all_symbols().max(1);
        let mut metrics = Vec::new();
        // Before, it would say how far the sender has come.
        if self.symbols >= needed {
            metrics.push(("symbols_sent", self.symbols as f64 / needed as f64));
        }
        if matches!(self.sender, Sender::Answered(_)) && self.group_bytes > 0 {
            metrics.push(("report_share", self.report_bytes as f64 / self.group_bytes as f64));
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
