use std::collections::BTreeMap;

use bytes::Bytes;
use fixedbitset::FixedBitSet;
use fontis_codes::ReedSolomonPoints;

use super::alc::FecPayloadId;
use super::decoder::FecBlockDecoder;
use super::error::AlcError;
use super::oti::FecOti;

/// An object of which symbols come.
pub(super) struct IncomingObject {
    oti: FecOti,
    points: ReedSolomonPoints,
    open: BTreeMap<u32, Open>,
    done: FixedBitSet,
    /// Blocks that are not whole.
    left: u32,
    /// Bytes that all of this takes, about.
    held: usize,
}

/// What an object takes beside its blocks, about.
const COST: usize = 256;

/// A block that has begun.
struct Open {
    decoder: FecBlockDecoder,
    /// Its number among all that were begun.
    begun: u64,
}

/// What came of the symbols of a packet.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The number under which a block was begun.
    pub(super) begun: Option<u64>,
    /// The block that is whole: the number under which it was begun, its place and its bytes.
    pub(super) block: Option<(u64, u64, Bytes)>,
}

impl IncomingObject {
    pub(super) fn new(oti: FecOti, points: ReedSolomonPoints) -> Self {
        let (done, left) = (FixedBitSet::with_capacity(oti.blocks() as usize), oti.blocks());
        Self { oti, points, open: BTreeMap::new(), done, left, held: Self::least(&oti) }
    }

    /// Bytes that are taken before anything has come.
    pub(super) const fn least(oti: &FecOti) -> usize {
        oti.blocks() as usize / 8 + COST
    }

    pub(super) const fn oti(&self) -> FecOti {
        self.oti
    }

    pub(super) const fn held(&self) -> usize {
        self.held
    }

    pub(super) const fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Takes the symbols of a packet. A block that they begin gets the number `next`.
    pub(super) fn take(
        &mut self,
        id: FecPayloadId,
        symbols: &[u8],
        next: u64,
    ) -> Result<Taken, AlcError> {
        let FecPayloadId { block: number, esi } = id;
        let wrong = AlcError::Symbol { block: number, esi };
        let block = self.oti.block(number).ok_or(wrong.clone())?;
        if esi >= self.oti.max_symbols()
            || symbols.len() < block.symbol_len(self.oti.symbol_size(), esi)
        {
            return Err(if esi < self.oti.max_symbols() {
                AlcError::SymbolLength(symbols.len())
            } else {
                wrong
            });
        }
        let mut taken = Taken::default();
        if self.done.contains(number as usize) {
            return Ok(taken);
        }
        let mut open = match self.open.remove(&number) {
            Some(open) => open,
            None => {
                let decoder = FecBlockDecoder::new(&self.oti, block.clone(), self.points);
                taken.begun = Some(next);
                Open { decoder: decoder.ok_or(wrong)?, begun: next }
            }
        };
        let before = if taken.begun.is_some() { 0 } else { open.decoder.held() };
        for (esi, symbol) in (esi..).zip(symbols.chunks(usize::from(self.oti.symbol_size()))) {
            if let Some(bytes) = open.decoder.add(esi, symbol) {
                self.held -= before;
                self.done.insert(number as usize);
                self.left -= 1;
                taken.block = Some((open.begun, block.range.start, bytes));
                return Ok(taken);
            }
        }
        self.held += open.decoder.held() - before;
        self.open.insert(number, open);
        Ok(taken)
    }

    /// Forgets what came of a block.
    pub(super) fn forget(&mut self, number: u32) {
        if let Some(open) = self.open.remove(&number) {
            self.held -= open.decoder.held();
        }
    }

    /// The numbers of the blocks that were begun and are not whole.
    pub(super) fn begun(&self) -> impl Iterator<Item = u64> {
        self.open.values().map(|open| open.begun)
    }
}
