use std::collections::VecDeque;

use bytes::Bytes;
use fontis_codes::{SparseDecoder, prototype_overhead};

use super::config::{Coding, Need, PublishedConfig};
use super::header::{PublishedFlags, PublishedHeader};
use super::packet::{Body, PublishedPacket, PublishedSymbols};
use super::sender::code;

/// The blocks of one direction, at the end that receives them.
pub(super) struct Receiver {
    config: PublishedConfig,
    seed: u64,
    /// The next block to be delivered; all before are.
    next: u32,
    /// Blocks from `next` on.
    blocks: VecDeque<Block>,
    /// Acknowledgements to be sent.
    acks: VecDeque<PublishedPacket>,
    /// Bytes ready to be read, with real bytes.
    ready: VecDeque<Bytes>,
    pub(super) delivered: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Encoded bytes of blocks that were done.
    pub(super) wasted: u64,
    pub(super) refused: u64,
    /// Blocks begun and not delivered, at most.
    pub(super) most_held: usize,
}

#[derive(Default)]
struct Block {
    received: u32,
    packets: u32,
    marked: u32,
    message: u32,
    is_done: bool,
    decoder: Option<Box<SparseDecoder>>,
    data: Bytes,
}

impl Receiver {
    pub(super) fn new(config: PublishedConfig, seed: u64) -> Self {
        Self {
            config,
            seed,
            next: 1,
            blocks: VecDeque::new(),
            acks: VecDeque::new(),
            ready: VecDeque::new(),
            delivered: 0,
            packets: 0,
            bytes: 0,
            wasted: 0,
            refused: 0,
            most_held: 0,
        }
    }

    pub(super) fn poll(&mut self) -> Option<PublishedPacket> {
        self.acks.pop_front()
    }

    pub(super) fn has_acks(&self) -> bool {
        !self.acks.is_empty()
    }

    pub(super) fn read(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }

    /// Encoded bytes that a block needs.
    fn needed(&self, number: u32) -> u32 {
        match self.config.need {
            Need::Redundancy => self.config.encoded(),
            Need::Code => {
                let overhead = prototype_overhead(self.seed ^ u64::from(number) << 20);
                libm::ceil(f64::from(self.config.block) * (1.0 + overhead)) as u32
            }
        }
    }

    pub(super) fn handle(
        &mut self,
        header: &PublishedHeader,
        symbols: &PublishedSymbols,
        marked: bool,
    ) {
        let number = header.block;
        self.packets += 1;
        self.bytes += u64::from(symbols.len);
        let Some(index) = number.checked_sub(self.next).map(|index| index as usize) else {
            self.wasted += u64::from(symbols.len);
            return self.acknowledge(number, 1, u32::from(marked));
        };
        if number == 0 || index >= self.config.window as usize {
            self.refused += 1;
            return;
        }
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, Block::default);
            self.most_held = self.most_held.max(self.blocks.len());
        }
        let needed = self.needed(number);
        let block = &mut self.blocks[index];
        if block.is_done {
            self.wasted += u64::from(symbols.len);
            return self.acknowledge(number, 1, u32::from(marked));
        }
        block.received = block.received.saturating_add(symbols.len);
        block.packets += 1;
        block.marked += u32::from(marked);
        block.message = symbols.message;
        let is_counted = self.config.coding == Coding::Counting || !self.config.decode;
        let has_enough = block.received >= needed;
        let is_known = if is_counted {
            has_enough
        } else {
            let is_short = header.flags.has(PublishedFlags::PSH);
            block.take(&self.config, header.state, &symbols.bytes, is_short)
                && (self.config.need == Need::Code || has_enough)
        };
        if !is_known {
            return;
        }
        block.is_done = true;
        block.decoder = None;
        let (packets, marked) = (block.packets, block.marked);
        self.acknowledge(number, packets, marked);
        while self.blocks.front().is_some_and(|block| block.is_done) {
            let block = self.blocks.pop_front().expect("there is a first");
            self.next += 1;
            self.delivered += u64::from(block.message);
            if !block.data.is_empty() {
                self.ready.push_back(block.data);
            }
        }
    }

    fn acknowledge(&mut self, block: u32, packets: u32, marked: u32) {
        if !self.config.acknowledge || block == 0 {
            return;
        }
        let header =
            PublishedHeader { block, flags: PublishedFlags::ACK, ..PublishedHeader::default() };
        let body = match self.config.control {
            super::Control::Marks { .. } => Body::Marks { packets, marked },
            super::Control::Told => Body::None,
        };
        self.acks.push_back(PublishedPacket { header, body });
    }
}

impl Block {
    /// Takes encoded bytes; whether the block is known.
    fn take(
        &mut self,
        config: &PublishedConfig,
        state: [u32; 3],
        bytes: &[u8],
        is_short: bool,
    ) -> bool {
        if !self.data.is_empty() {
            return true;
        }
        let len = config.block as usize;
        let new = || Box::new(SparseDecoder::new(&code(config.block), 1, len));
        let decoder = self.decoder.get_or_insert_with(new);
        decoder.add_from(state, bytes);
        if decoder.missing() > 0 {
            return false;
        }
        let whole = &decoder.message()[..len];
        let message = match whole.split_last_chunk::<4>() {
            Some((_, length)) if is_short => u32::from_be_bytes(*length).min(config.block),
            _ => config.block,
        };
        self.message = message;
        self.data = Bytes::copy_from_slice(&whole[..message as usize]);
        self.decoder = None;
        true
    }
}
