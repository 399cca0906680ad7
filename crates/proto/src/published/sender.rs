use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Time};
use fontis_codes::{SparseCode, SparseEncoder};

use super::config::{Coding, Plan, PublishedConfig, Sending};
use super::header::{PublishedFlags, PublishedHeader};
use super::packet::{Body, PublishedPacket, PublishedSymbols};
use super::round_trip::RoundTrip;

/// The blocks of one direction, at the end that sends them.
pub(super) struct Sender {
    config: PublishedConfig,
    /// Bytes written and not yet in a block; with real bytes, these.
    unsent: u64,
    queue: VecDeque<Bytes>,
    /// The number of the first block in `blocks`.
    base: u32,
    blocks: VecDeque<Block>,
    /// When the last packets of the blocks right before `base` left, of no more than a window.
    retired: VecDeque<Time>,
    /// Blocks that are not acknowledged.
    open: usize,
    /// The block whose pass is under way.
    current: u32,
    /// Blocks whose pass is over, the one that waits longest first; some may be acknowledged by
    /// now.
    waiting: VecDeque<u32>,
    /// Bytes of a first pass.
    plan: u32,
    round_trip: RoundTrip,
    pub(super) sent_bytes: u64,
    pub(super) packets: u64,
    pub(super) repairs: u64,
    pub(super) acknowledged: u64,
}

struct Block {
    acknowledged: bool,
    /// Bytes of the message in it.
    message: u32,
    /// Encoded bytes sent so far, and how many there will be when its pass is over.
    sent: u32,
    goal: u32,
    /// Encoded bytes of its first pass.
    first: u32,
    last_sent: Time,
    /// Passes after the first.
    repairs: u32,
    encoder: Option<Box<SparseEncoder>>,
}

impl Sender {
    pub(super) fn new(config: PublishedConfig) -> Self {
        Self {
            plan: config.first_pass(),
            config,
            unsent: 0,
            queue: VecDeque::new(),
            base: 1,
            blocks: VecDeque::new(),
            retired: VecDeque::new(),
            open: 0,
            current: 0,
            waiting: VecDeque::new(),
            round_trip: RoundTrip::new(Duration::from_secs(1)),
            sent_bytes: 0,
            packets: 0,
            repairs: 0,
            acknowledged: 0,
        }
    }

    pub(super) fn write(&mut self, bytes: u64) {
        self.unsent = self.unsent.saturating_add(bytes);
    }

    pub(super) fn write_data(&mut self, data: Bytes) {
        self.unsent = self.unsent.saturating_add(data.len() as u64);
        self.queue.push_back(data);
    }

    /// What the handshake measured.
    pub(super) fn set_rtt(&mut self, rtt: Duration) {
        self.round_trip = RoundTrip::new(rtt);
    }

    /// Whether all that was written is acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.unsent == 0 && self.open == 0
    }

    /// Bytes of blocks that are sent and not acknowledged.
    pub(super) fn in_flight(&self) -> u64 {
        self.open as u64 * u64::from(self.config.block)
    }

    /// When there is something to send; `None` if not before an acknowledgement comes.
    pub(super) fn due(&self) -> Option<Time> {
        let is_under_way = self.get(self.current).is_some_and(|block| block.sent < block.goal);
        let can_begin = self.unsent > 0 && !self.is_window_full();
        if is_under_way || can_begin || self.is_window_full() && self.open > 0 {
            return Some(Time::ZERO);
        }
        match self.config.sending {
            _ if self.open == 0 => None,
            Sending::RoundRobin | Sending::UntilAcknowledged => Some(Time::ZERO),
            Sending::TwoPhase => self
                .waiting
                .iter()
                .find_map(|number| self.get(*number))
                .map(|block| block.last_sent + self.round_trip.patience()),
        }
    }

    fn is_window_full(&self) -> bool {
        self.blocks.len() >= self.config.window as usize
    }

    /// A block that is not acknowledged.
    fn get(&self, number: u32) -> Option<&Block> {
        let index = number.checked_sub(self.base)? as usize;
        self.blocks.get(index).filter(|block| !block.acknowledged)
    }

    /// The next packet, if there is one.
    pub(super) fn poll(&mut self, now: Time) -> Option<PublishedPacket> {
        let is_under_way = self.get(self.current).is_some_and(|block| block.sent < block.goal);
        if !is_under_way {
            self.current = self.begin_pass(now)?;
        }
        let number = self.current;
        let payload = self.config.payload;
        let block = &mut self.blocks[(number - self.base) as usize];
        let first = block.sent;
        let len = payload.min(block.goal.saturating_sub(first)).max(1);
        block.sent = first.saturating_add(len);
        block.last_sent = now;
        self.repairs += u64::from(block.repairs > 0);
        let (state, bytes) = match &block.encoder {
            None => ([first, 0, 0], Bytes::new()),
            Some(encoder) => {
                let mut bytes = BytesMut::zeroed(len as usize);
                encoder.write(first, &mut bytes);
                (encoder.state(first), bytes.freeze())
            }
        };
        let message = block.message;
        let is_over = block.sent >= block.goal;
        let flags = if message < self.config.block {
            PublishedFlags::PSH
        } else {
            PublishedFlags::default()
        };
        self.sent_bytes += u64::from(len);
        self.packets += 1;
        if is_over && self.config.acknowledge {
            self.waiting.push_back(number);
        } else if is_over {
            self.acknowledge(now, number, false);
        }
        let header = PublishedHeader { block: number, state, flags, ..PublishedHeader::default() };
        Some(PublishedPacket {
            header,
            body: Body::Symbols(PublishedSymbols { len, bytes, message }),
        })
    }

    /// Begins a pass: over a new block, or over one that waits for its acknowledgement.
    fn begin_pass(&mut self, now: Time) -> Option<u32> {
        while self.waiting.front().is_some_and(|number| self.get(*number).is_none()) {
            self.waiting.pop_front();
        }
        let oldest = self.waiting.front().copied();
        let again = match self.config.sending {
            Sending::TwoPhase => {
                let block = oldest.and_then(|number| self.get(number));
                block.is_some_and(|block| now >= block.last_sent + self.round_trip.patience())
            }
            Sending::RoundRobin => false,
            Sending::UntilAcknowledged => oldest.is_some(),
        };
        if !again && let Some(number) = self.new_block() {
            return Some(number);
        }
        let may_repeat =
            again || self.is_window_full() || self.config.sending == Sending::RoundRobin;
        let number = oldest.filter(|_| may_repeat)?;
        self.waiting.pop_front();
        let more = self.repair_bytes(number);
        let block = &mut self.blocks[(number - self.base) as usize];
        block.goal = block.sent.saturating_add(more);
        block.repairs += 1;
        Some(number)
    }

    /// Bytes of the next repair pass: what brings about one packet, and twice as much with each
    /// pass that was in vain. So a path that loses most of what is sent is known after a few round
    /// trips.
    fn repair_bytes(&self, number: u32) -> u32 {
        let (payload, first) = (self.config.payload, self.config.first_pass().max(1));
        if self.config.plan == Plan::Fixed || self.config.sending != Sending::TwoPhase {
            return payload;
        }
        let repairs = self.get(number).map_or(0, |block| block.repairs);
        let packets = self.plan.div_ceil(first) << repairs.saturating_sub(2).min(12);
        packets.min(self.plan.div_ceil(4 * payload)).saturating_mul(payload)
    }

    /// The next block, if there is one and room for it.
    fn new_block(&mut self) -> Option<u32> {
        if self.unsent == 0 || self.is_window_full() {
            return None;
        }
        // A block that is not full ends with its length.
        let full = self.config.block;
        let message = if self.unsent >= u64::from(full) {
            full
        } else {
            self.unsent.min(u64::from(full.saturating_sub(4))) as u32
        };
        self.unsent -= u64::from(message);
        let encoder = (self.config.coding == Coding::Real).then(|| {
            let mut bytes = self.take(message as usize);
            if message < full {
                bytes.resize(full as usize - 4, 0);
                bytes.extend_from_slice(&message.to_be_bytes());
            }
            Box::new(SparseEncoder::new(&code(full), 1, &bytes))
        });
        let goal = match self.config.sending {
            Sending::TwoPhase => self.plan,
            // These know no passes: the first packet is as good as any other.
            _ if self.config.acknowledge => self.config.payload,
            _ => self.config.first_pass(),
        };
        self.open += 1;
        self.blocks.push_back(Block {
            acknowledged: false,
            message,
            sent: 0,
            goal,
            first: goal,
            last_sent: Time::ZERO,
            repairs: 0,
            encoder,
        });
        Some(self.base + self.blocks.len() as u32 - 1)
    }

    /// The next bytes that were written.
    fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let Some(front) = self.queue.front_mut() else { break };
            let part = front.split_to(front.len().min(len - bytes.len()));
            bytes.extend_from_slice(&part);
            if front.is_empty() {
                self.queue.pop_front();
            }
        }
        bytes.resize(len, 0);
        bytes
    }

    /// A block is acknowledged: by the peer, or because nobody acknowledges.
    ///
    /// The peer acknowledges a block again for each of its packets that comes too late (section
    /// 3.3.5).
    pub(super) fn acknowledge(&mut self, now: Time, number: u32, by_peer: bool) {
        if let (Some(sent), true) = (self.last_sent(number), by_peer) {
            self.round_trip.sample(now, now.since(sent));
        }
        let Some(index) = number.checked_sub(self.base).map(|index| index as usize) else { return };
        let Some(block) = self.blocks.get_mut(index).filter(|block| !block.acknowledged) else {
            return;
        };
        block.acknowledged = true;
        block.encoder = None;
        let repaired = block.repairs > 0;
        let (first, sent) = (block.first, block.sent);
        self.acknowledged += u64::from(block.message);
        self.open -= 1;
        if by_peer {
            self.learn_plan(repaired, first, sent);
        }
        while let Some(block) = self.blocks.pop_front_if(|block| block.acknowledged) {
            self.base += 1;
            self.retired.push_back(block.last_sent);
        }
        let excess = self.retired.len().saturating_sub(self.config.window as usize);
        self.retired.drain(..excess);
    }

    /// When the last packet of a block left, acknowledged or not.
    fn last_sent(&self, number: u32) -> Option<Time> {
        let age = self.base.checked_sub(number).filter(|age| *age > 0);
        match age {
            Some(age) => {
                let index = self.retired.len().checked_sub(age as usize)?;
                self.retired.get(index).copied()
            }
            None => Some(self.blocks.get((number - self.base) as usize)?.last_sent),
        }
    }

    /// The plan follows what blocks turn out to need, and stays below it by what six packets bring:
    /// what is short is repaired packet by packet, what is long was sent in vain. A block that
    /// needed no repair may have needed much less.
    fn learn_plan(&mut self, repaired: bool, first: u32, sent: u32) {
        if self.config.plan == Plan::Fixed {
            return;
        }
        let least = self.config.first_pass();
        let one = u64::from(self.plan) * u64::from(self.config.payload) / u64::from(least.max(1));
        let needed = if repaired {
            u64::from(sent).saturating_sub(6 * one)
        } else {
            u64::from(first).saturating_sub(8 * one)
        };
        self.plan = ((u64::from(self.plan) * 15 + needed) / 16).min(u64::from(u32::MAX)) as u32;
        self.plan = self.plan.max(least);
    }
}

/// The 2015 code for blocks of so many bytes; all but the prototype's own have checks in the same
/// proportion.
pub(super) fn code(block: u32) -> SparseCode {
    let prototype = SparseCode::PROTOTYPE;
    if block as usize == prototype.message {
        return prototype;
    }
    let checks = (block as usize * prototype.checks).div_ceil(prototype.message).max(3);
    SparseCode { message: block as usize, checks, ..prototype }
}
