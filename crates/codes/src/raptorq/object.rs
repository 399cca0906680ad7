use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use thiserror::Error;

use super::oti::{Oti, PayloadId, SourceBlock};
use crate::block::{BlockShape, ShapeError};
use crate::code::Code;
use crate::decoder::{BlockDecoder, Decoded, SymbolError};
use crate::encoder::BlockEncoder;

/// Encodes one source block of an object, whose symbols may consist of sub-symbols.
pub struct SourceBlockEncoder {
    encoder: BlockEncoder,
    number: u8,
}

/// Rebuilds an object from symbols of its source blocks, in any order.
pub struct ObjectDecoder {
    oti: Oti,
    decoders: BTreeMap<u8, BlockDecoder>,
    blocks: BTreeMap<u8, Bytes>,
}

/// What is wrong with a packet, or with an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// There is no such source block.
    #[error("source block {block} is not among the {blocks} of the object")]
    Block {
        /// The number that was given.
        block: u8,
        /// Z.
        blocks: u8,
    },
    /// A symbol does not belong to its block.
    #[error(transparent)]
    Symbol(#[from] SymbolError),
    /// A block is larger than this machine can hold.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A packet has a number of whole symbols.
    #[error("{0} bytes are not a payload identifier and whole symbols")]
    Packet(usize),
}

fn shape(oti: Oti, block: &SourceBlock) -> Result<BlockShape, ShapeError> {
    let symbol_size = oti.symbol_size();
    // With sub-blocks the padding is spread over the ends of sub-symbols, so that symbols are
    // whole.
    let len = if oti.sub_blocks() == 1 {
        block.range.end - block.range.start
    } else {
        u64::from(block.symbols) * u64::from(symbol_size)
    };
    let max = Code::RaptorQ.max_source_symbols();
    let too_large =
        ShapeError::TooManySymbols { code: Code::RaptorQ, len: u32::MAX, symbol_size, max };
    BlockShape::new(Code::RaptorQ, u32::try_from(len).map_err(|_| too_large)?, symbol_size)
}

/// Calls `copy` with the places in the block, and in its symbols, of each sub-symbol and its length
/// (section 4.4.1.2).
fn sub_symbols(oti: Oti, symbols: usize, mut copy: impl FnMut(usize, usize, usize)) {
    let (mut in_block, mut in_symbol) = (0, 0);
    for size in oti.sub_symbols() {
        for symbol in 0..symbols {
            copy(in_block, symbol * usize::from(oti.symbol_size()) + in_symbol, size);
            in_block += size;
        }
        in_symbol += size;
    }
}

impl SourceBlockEncoder {
    /// An encoder of a source block of an object; `data` are the block's bytes, without padding.
    /// They are copied only if the block has sub-blocks.
    ///
    /// # Panics
    /// If `data` has another length than the block.
    pub fn new(oti: Oti, number: u8, data: Bytes) -> Result<Self, ObjectError> {
        let blocks = oti.source_blocks();
        let block = oti.block(number).ok_or(ObjectError::Block { block: number, blocks })?;
        let len = (block.range.end - block.range.start) as usize;
        assert_eq!(data.len(), len, "a block's data has the length that its object says");
        let shape = shape(oti, &block)?;
        let data = if oti.sub_blocks() == 1 {
            data
        } else {
            let mut padded = data.to_vec();
            padded.resize(shape.len() as usize, 0);
            let mut symbols = vec![0; padded.len()];
            sub_symbols(oti, block.symbols as usize, |from, to, size| {
                symbols[to..][..size].copy_from_slice(&padded[from..][..size]);
            });
            Bytes::from(symbols)
        };
        let mut encoder = BlockEncoder::new(shape, data);
        if block.symbols > 0 {
            encoder.set_repair(encoder.repair_job().run());
        }
        Ok(Self { encoder, number })
    }

    /// A packet with symbol `esi`: payload identifier and symbol; the padding of a source symbol is
    /// not sent. `None` beyond 24 bits.
    pub fn packet(&self, esi: u32) -> Option<Bytes> {
        let id = PayloadId { block: self.number, esi }.to_bytes()?;
        let symbol = self.encoder.symbol(esi)?;
        let mut packet = Vec::with_capacity(id.len() + symbol.len());
        packet.extend_from_slice(&id);
        packet.extend_from_slice(&symbol);
        Some(Bytes::from(packet))
    }
}

impl ObjectDecoder {
    /// A decoder that holds nothing. It never holds more than the object and, for each block that
    /// is not complete, what [`BlockDecoder::new`] says.
    pub fn new(oti: Oti) -> Self {
        Self { oti, decoders: BTreeMap::new(), blocks: BTreeMap::new() }
    }

    /// Takes a packet: a payload identifier, and the symbol with that identifier and those after
    /// it. True if that completed a block.
    pub fn add(&mut self, packet: &[u8]) -> Result<bool, ObjectError> {
        let (id, mut symbols) =
            packet.split_first_chunk::<4>().ok_or(ObjectError::Packet(packet.len()))?;
        let PayloadId { block: number, mut esi } = PayloadId::from_bytes(*id);
        let blocks = self.oti.source_blocks();
        let block = self.oti.block(number).ok_or(ObjectError::Block { block: number, blocks })?;
        if symbols.is_empty() {
            return Err(ObjectError::Packet(packet.len()));
        }
        if block.symbols == 0 {
            // An empty object is complete.
            return Ok(false);
        }
        let shape = shape(self.oti, &block)?;
        let mut is_complete = false;
        while !symbols.is_empty() && !is_complete {
            // The padding of the last source symbol may or may not be there.
            let sent = usize::from(shape.symbol_size()).min(symbols.len());
            let (symbol, rest) = symbols.split_at(sent);
            let symbol = &symbol[..shape.symbol_len(esi).min(sent)];
            is_complete = self.add_symbol(number, shape, esi, symbol)?;
            symbols = rest;
            esi += 1;
        }
        Ok(is_complete)
    }

    fn add_symbol(
        &mut self,
        number: u8,
        shape: BlockShape,
        esi: u32,
        symbol: &[u8],
    ) -> Result<bool, ObjectError> {
        if self.blocks.contains_key(&number) {
            return Ok(false);
        }
        let known = self.decoders.remove(&number);
        let is_new = known.is_none();
        let mut decoder = known.unwrap_or_else(|| BlockDecoder::new(shape));
        let added = decoder.add(esi, symbol);
        if decoder.needed() > 0 || added.is_err() {
            // A block of which nothing true came leaves no trace.
            if added.is_ok() || !is_new {
                self.decoders.insert(number, decoder);
            }
            return added.map(|_| false).map_err(ObjectError::from);
        }
        match decoder.decode_job().run() {
            Decoded::Block(symbols) => {
                let block = self.in_order(number, symbols);
                self.blocks.insert(number, block);
                Ok(true)
            }
            Decoded::Failed(decoder) => {
                self.decoders.insert(number, decoder);
                Ok(false)
            }
        }
    }

    /// The bytes of a block from its symbols.
    fn in_order(&self, number: u8, symbols: Bytes) -> Bytes {
        let Some(block) = self.oti.block(number) else { return symbols };
        if self.oti.sub_blocks() == 1 {
            return symbols;
        }
        let mut bytes = vec![0; symbols.len()];
        sub_symbols(self.oti, block.symbols as usize, |to, from, size| {
            bytes[to..][..size].copy_from_slice(&symbols[from..][..size]);
        });
        bytes.truncate((block.range.end - block.range.start) as usize);
        Bytes::from(bytes)
    }

    /// How many more symbols are needed, of all blocks together.
    pub fn needed(&self) -> u64 {
        let blocks =
            (0..self.oti.source_blocks()).filter(|number| !self.blocks.contains_key(number));
        let needed = |number| match self.decoders.get(&number) {
            Some(decoder) => decoder.needed(),
            None => self.oti.block(number).map_or(0, |block| block.symbols),
        };
        blocks.map(|number| u64::from(needed(number))).sum()
    }

    /// The blocks of the object in order, once all are there.
    pub fn finish(self) -> Result<Vec<Bytes>, Self> {
        if self.needed() > 0 { Err(self) } else { Ok(self.blocks.into_values().collect()) }
    }
}
