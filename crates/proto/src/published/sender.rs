use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Time};
use fontis_codes::{SparseCode, SparseEncoder};

use super::config::{Coding, Config, Sending};
use super::header::{Flags, Header};
use super::packet::{Body, Packet, Symbols};

/// The blocks of one direction, at the end that sends them.
pub(super) struct Sender {
    config: Config,
    /// Bytes written and not yet in a block; with real bytes, these.
    unsent: u64,
    queue: VecDeque<Bytes>,
    /// The number of the first block in `blocks`.
    base: u32,
    blocks: VecDeque<Block>,
    /// Blocks that are not acknowledged.
    open: usize,
    /// Blocks whose first pass is over, the one that waits longest first; some may be acknowledged by now.
    waiting: VecDeque<u32>,
    /// The round trip of the handshake, and how long an acknowledgement is waited for.
    min_rtt: Duration,
    patience: Duration,
    pub(super) sent_bytes: u64,
    pub(super) packets: u64,
    pub(super) repairs: u64,
    pub(super) acknowledged: u64,
}

struct Block {
    acknowledged: bool,
    /// Bytes of the message in it.
    message: u32,
    /// Encoded bytes sent so far.
    sent: u32,
    last_sent: Time,
    /// Whether anything followed the first pass.
    repaired: bool,
    encoder: Option<Box<SparseEncoder>>,
}

/// Longer than this no acknowledgement is waited for.
const MOST_PATIENCE: Duration = Duration::from_secs(2);

impl Sender {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            unsent: 0,
            queue: VecDeque::new(),
            base: 1,
            blocks: VecDeque::new(),
            open: 0,
            waiting: VecDeque::new(),
            min_rtt: Duration::from_secs(1),
            patience: Duration::from_secs(1),
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
        self.min_rtt = rtt;
        self.patience = rtt + rtt / 4 + Duration::from_millis(1);
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
        if self.has_new() || self.is_window_full() && self.open > 0 {
            return Some(Time::ZERO);
        }
        match self.config.sending {
            _ if self.open == 0 => None,
            Sending::RoundRobin | Sending::UntilAcknowledged => Some(Time::ZERO),
            Sending::TwoPhase => self
                .waiting
                .iter()
                .find_map(|number| self.get(*number))
                .map(|block| block.last_sent + self.patience),
        }
    }

    /// Whether a first pass is under way, or can begin.
    fn has_new(&self) -> bool {
        let passing = self.blocks.back().is_some_and(|block| !self.is_passed(block));
        passing || self.unsent > 0 && !self.is_window_full()
    }

    fn is_window_full(&self) -> bool {
        self.blocks.len() >= self.config.window as usize
    }

    fn is_passed(&self, block: &Block) -> bool {
        let length = match self.config.sending {
            Sending::TwoPhase => self.config.first_pass(),
            // The others know no passes: the first packet is as good as any other.
            _ if self.config.acknowledge => 1,
            _ => self.config.first_pass(),
        };
        block.acknowledged || block.sent >= length
    }

    /// A block that is not acknowledged.
    fn get(&self, number: u32) -> Option<&Block> {
        let index = number.checked_sub(self.base)? as usize;
        self.blocks.get(index).filter(|block| !block.acknowledged)
    }

    /// The next packet, if there is one.
    pub(super) fn poll(&mut self, now: Time) -> Option<Packet> {
        let number = self.pick(now)?;
        let index = (number - self.base) as usize;
        let (length, payload) = (self.config.first_pass(), self.config.payload);
        let two_phase = self.config.sending == Sending::TwoPhase;
        let block = &mut self.blocks[index];
        let first = block.sent;
        let len = if two_phase && first < length { payload.min(length - first) } else { payload };
        block.repaired |= first >= length;
        self.repairs += u64::from(first >= length);
        block.sent = first.saturating_add(len);
        block.last_sent = now;
        let (state, bytes) = match &block.encoder {
            None => ([first, 0, 0], Bytes::new()),
            Some(encoder) => {
                let mut bytes = BytesMut::zeroed(len as usize);
                encoder.write(first, &mut bytes);
                (encoder.state(first), bytes.freeze())
            }
        };
        let message = block.message;
        let flags = if message < self.config.block { Flags::PSH } else { Flags::default() };
        self.sent_bytes += u64::from(len);
        self.packets += 1;
        let ended = self.is_passed(&self.blocks[index]);
        if ended {
            if self.config.acknowledge {
                self.waiting.push_back(number);
            } else {
                self.acknowledge(now, number, None);
            }
        }
        let header = Header { block: number, state, flags, ..Header::default() };
        Some(Packet { header, body: Body::Symbols(Symbols { len, bytes, message }) })
    }

    /// The block of which the next packet carries some.
    fn pick(&mut self, now: Time) -> Option<u32> {
        while self.waiting.front().is_some_and(|number| self.get(*number).is_none()) {
            self.waiting.pop_front();
        }
        let oldest = self.waiting.front().copied();
        match self.config.sending {
            Sending::TwoPhase => {
                let overdue = |number: &u32| {
                    self.get(*number).is_some_and(|block| now >= block.last_sent + self.patience)
                };
                if oldest.filter(overdue).is_some() {
                    return self.waiting.pop_front();
                }
                if let Some(number) = self.new_block() {
                    return Some(number);
                }
                if self.is_window_full() { self.waiting.pop_front() } else { None }
            }
            Sending::RoundRobin => {
                // New blocks first: that is the first round.
                self.new_block().or_else(|| self.waiting.pop_front())
            }
            Sending::UntilAcknowledged => {
                if let Some(number) = oldest {
                    // It stays the oldest until it is acknowledged.
                    self.waiting.clear();
                    return Some(number);
                }
                self.new_block()
            }
        }
    }

    /// The block whose first pass is under way, or begins.
    fn new_block(&mut self) -> Option<u32> {
        let last = || self.base + self.blocks.len() as u32 - 1;
        if self.blocks.back().is_some_and(|block| !self.is_passed(block)) {
            return Some(last());
        }
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
        self.open += 1;
        self.blocks.push_back(Block {
            acknowledged: false,
            message,
            sent: 0,
            last_sent: Time::ZERO,
            repaired: false,
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

    /// A block is acknowledged; `arrival` is when the acknowledgement came, if one did.
    pub(super) fn acknowledge(&mut self, now: Time, number: u32, arrival: Option<Time>) {
        let Some(index) = number.checked_sub(self.base).map(|index| index as usize) else { return };
        let Some(block) = self.blocks.get_mut(index).filter(|block| !block.acknowledged) else {
            return;
        };
        if arrival.is_some() {
            let waited = now.since(block.last_sent);
            // What comes sooner after the last packet than any round trip answers an earlier one: that packet was sent in
            // vain, for want of patience. Rising by a sixteenth and falling by a 64th, one in five does.
            self.patience = if block.repaired && waited < self.min_rtt {
                (self.patience + self.patience / 16).min(MOST_PATIENCE)
            } else {
                let least = self.min_rtt + Duration::from_millis(1);
                if block.repaired {
                    (self.patience - self.patience / 64).max(least)
                } else {
                    self.patience.max(waited + waited / 8).min(MOST_PATIENCE)
                }
            };
        }
        block.acknowledged = true;
        block.encoder = None;
        self.acknowledged += u64::from(block.message);
        self.open -= 1;
        while self.blocks.front().is_some_and(|block| block.acknowledged) {
            self.blocks.pop_front();
            self.base += 1;
        }
    }
}

/// The 2015 code for blocks of so many bytes; all but the prototype's own have checks in the same proportion.
pub(super) fn code(block: u32) -> SparseCode {
    let prototype = SparseCode::PROTOTYPE;
    if block as usize == prototype.message {
        return prototype;
    }
    let checks = (block as usize * prototype.checks).div_ceil(prototype.message).max(3);
    SparseCode { message: block as usize, checks, ..prototype }
}
