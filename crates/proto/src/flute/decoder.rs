use std::collections::BTreeMap;

use bytes::Bytes;
use fontis_codes::{BlockDecoder, BlockShape, Decoded, ReedSolomonPoints, SmallReedSolomon};

use super::oti::{FecBlock, FecOti, FecScheme};

/// Rebuilds one source block. It keeps what has arrived, and little more.
pub struct FecBlockDecoder {
    block: FecBlock,
    symbol_size: u16,
    max_symbols: u32,
    kept: Kept,
    /// Bytes that it takes, about.
    held: usize,
}

/// What a decoder, and a symbol that is kept, take beside the symbol's bytes, about.
const COST: usize = 512;
const SYMBOL_COST: usize = 64;

enum Kept {
    /// The fountain codes; none while a decoding runs.
    Fountain(Option<Box<BlockDecoder>>),
    /// Symbols by themselves, and the code if there is one.
    Symbols(BTreeMap<u32, Bytes>, Option<SmallReedSolomon>),
}

impl FecBlockDecoder {
    /// A decoder that holds nothing; none if this machine cannot hold such a block.
    pub fn new(oti: &FecOti, block: FecBlock, points: ReedSolomonPoints) -> Option<Self> {
        let length = u32::try_from(block.range.end - block.range.start).ok()?;
        let kept = match oti.scheme().fountain() {
            Some(code) => {
                let shape = BlockShape::new(code, length, oti.symbol_size()).ok()?;
                Kept::Fountain(Some(Box::new(BlockDecoder::new(shape))))
            }
            None => {
                let code = match oti.scheme() {
                    FecScheme::ReedSolomon => Some(SmallReedSolomon::new(block.symbols, points)?),
                    _ => None,
                };
                Kept::Symbols(BTreeMap::new(), code)
            }
        };
        let (symbol_size, max_symbols) = (oti.symbol_size(), oti.max_symbols());
        Some(Self { block, symbol_size, max_symbols, kept, held: COST })
    }

    /// Bytes that it takes, about: at least those of the symbols that are kept.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Takes a symbol, and yields the block if that was the last one needed. A symbol that is of no
    /// use changes nothing: one that is there, that the block does not have, or that has the wrong
    /// length. The padding of the last source symbol may be there or not.
    pub fn add(&mut self, esi: u32, symbol: &[u8]) -> Option<Bytes> {
        let length = self.block.symbol_len(self.symbol_size, esi);
        let symbol = symbol.get(..length)?;
        match &mut self.kept {
            Kept::Fountain(kept) => {
                let mut decoder = kept.take()?;
                if decoder.add(esi, symbol) == Ok(true) {
                    self.held += usize::from(self.symbol_size) + SYMBOL_COST;
                }
                if decoder.needed() > 0 {
                    *kept = Some(decoder);
                    return None;
                }
                match decoder.decode_job().run() {
                    Decoded::Block(block) => Some(block),
                    Decoded::Failed(decoder) => {
                        *kept = Some(Box::new(decoder));
                        None
                    }
                }
            }
            Kept::Symbols(symbols, code) => {
                let limit = if code.is_some() { self.max_symbols } else { self.block.symbols };
                if esi >= limit || symbols.contains_key(&esi) {
                    return None;
                }
                symbols.insert(esi, Bytes::copy_from_slice(symbol));
                self.held += length + SYMBOL_COST;
                let is_enough = symbols.len() >= self.block.symbols as usize;
                is_enough.then(|| solve(&self.block, self.symbol_size, symbols, code.as_ref()))?
            }
        }
    }
}

/// The block from as many symbols as it has.
fn solve(
    block: &FecBlock,
    symbol_size: u16,
    symbols: &BTreeMap<u32, Bytes>,
    code: Option<&SmallReedSolomon>,
) -> Option<Bytes> {
    let size = usize::from(symbol_size);
    let mut data = vec![0; block.symbols as usize * size];
    let mut missing = Vec::new();
    for esi in 0..block.symbols {
        match symbols.get(&esi) {
            Some(symbol) => {
                data[esi as usize * size..][..symbol.len()].copy_from_slice(symbol);
            }
            None => missing.push(esi),
        }
    }
    if !missing.is_empty() {
        let repairs = symbols.range(block.symbols..);
        let repairs: Vec<_> = repairs.map(|(esi, symbol)| (*esi, &symbol[..])).collect();
        if !code?.restore(size, &mut data, &missing, &repairs) {
            return None;
        }
    }
    data.truncate((block.range.end - block.range.start) as usize);
    Some(data.into())
}
