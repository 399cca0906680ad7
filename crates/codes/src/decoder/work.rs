//! What a decoder makes of the symbols that it holds.

use alloc::boxed::Box;

use super::{Begun, BlockDecoder};
use crate::counting::fails;
use crate::raptorq::decoding::{Beginning, Decoding};
use crate::raptorq::parameters::Family;
use crate::raptorq::received::Received;
use crate::reed_solomon;
use crate::sparse::{SparseCode, SparseDecoder};

impl BlockDecoder {
    /// Restores the missing source symbols; yields how many more symbols are needed, zero if it is
    /// done.
    pub(super) fn decode(&mut self) -> usize {
        let (code, k) = (self.shape.code(), self.shape.source_symbols());
        let symbol_size = usize::from(self.shape.symbol_size());
        if !code.carries_bytes() {
            let luck = *self.luck.get_or_insert(self.digest);
            let failed = fails(luck, code.failure_probability(k, self.held() - k));
            return if failed { code.step(k) as usize } else { 0 };
        }
        self.sources.fill(self.shape);
        if let Some(code) = code.sparse(k) {
            let decoder = self.peel(&code);
            if decoder.missing() > 0 {
                return self.shape.code().step(k) as usize;
            }
            let Some(Begun::Sparse(decoder, _)) = self.decoding.take() else { return 0 };
            self.sources.data_mut().copy_from_slice(&decoder.message()[..self.shape.padded_len()]);
            return 0;
        }
        let missing = self.sources.missing(k);
        let Some(family) = code.family() else {
            let (esis, repair) = (&self.repairs.esis, &self.repairs.symbols);
            let data = self.sources.data_mut();
            let done = reed_solomon::decode(k, symbol_size, data, &missing, esis, repair);
            return usize::from(!done);
        };
        let (received, begun) = self.received(family, &missing);
        if !matches!(begun, Some(Begun::Raptor(_))) {
            *begun = Decoding::new(&received).map(|new| Begun::Raptor(Box::new(new)));
        }
        let Some(Begun::Raptor(decoding)) = begun else { return k as usize / 64 + 1 };
        if decoding.run(received) { 0 } else { decoding.lacking().max(1) }
    }

    /// What is there for decoding, and what was begun.
    fn received<'a>(
        &'a mut self,
        family: Family,
        missing: &'a [u32],
    ) -> (Received<'a>, &'a mut Option<Begun>) {
        let received = Received {
            family,
            k: self.shape.source_symbols(),
            symbol_size: usize::from(self.shape.symbol_size()),
            data: self.sources.data_mut(),
            missing,
            esis: &self.repairs.esis,
            repairs: &self.repairs.symbols,
        };
        (received, &mut self.decoding)
    }

    /// Does what can be done of the decoding with the symbols that came, so that less is left to do
    /// when the last one comes: for one who has time between symbols, and calls it after each or
    /// after some. As long as nothing but source symbols came, or less than a quarter of the block,
    /// it does nothing.
    ///
    /// LT codes and the prototype's are decoded as far as symbols go. For the Raptor codes it is
    /// one of two things: with few missing symbols, all that the others contribute; with many, when
    /// the last ones are about to come, how the intermediate symbols follow.
    pub fn advance(&mut self) {
        let (code, k) = (self.shape.code(), self.shape.source_symbols());
        if !code.carries_bytes() || self.repairs.esis.is_empty() || self.is_systematic() {
            return;
        }
        // Decoding takes as much memory as the whole block, which must not depend on what was
        // announced alone.
        if u64::from(self.held()) * 4 < u64::from(k) {
            return;
        }
        if let Some(code) = code.sparse(k) {
            self.sources.fill(self.shape);
            self.peel(&code);
            return;
        }
        let Some(family) = code.family() else { return };
        if self.decoding.is_none() {
            let (missing, needed) = ((k - self.sources.count()) as usize, self.needed() as usize);
            let symbol_size = usize::from(self.shape.symbol_size());
            let Some(beginning) = Beginning::of(family, k, symbol_size, missing, needed) else {
                return;
            };
            self.sources.fill(self.shape);
            let missing = self.sources.missing(k);
            let (received, begun) = self.received(family, &missing);
            let decoding = Decoding::ahead(&received, beginning).map(Box::new);
            *begun = Some(decoding.map_or(Begun::Refused, Begun::Raptor));
        }
        // Only a beginning must know what is missing.
        if let (received, Some(Begun::Raptor(decoding))) = self.received(family, &[]) {
            decoding.advance(&received);
        }
    }

    /// Decodes LT symbols as far as they go.
    fn peel(&mut self, code: &SparseCode) -> &SparseDecoder {
        let k = self.shape.source_symbols();
        let size = usize::from(self.shape.symbol_size());
        if !matches!(self.decoding, Some(Begun::Sparse(..))) {
            let mut decoder = SparseDecoder::new(code, size, k as usize);
            for esi in (0..k).filter(|esi| self.sources.is_placed(*esi)) {
                decoder.add_source(esi, &self.sources.data()[esi as usize * size..][..size]);
            }
            self.decoding = Some(Begun::Sparse(Box::new(decoder), 0));
        }
        let Some(Begun::Sparse(decoder, given)) = &mut self.decoding else {
            unreachable!("it was just begun")
        };
        let new = self.repairs.esis[*given..].iter();
        new.zip(self.repairs.symbols.chunks_exact(size).skip(*given))
            .for_each(|(esi, symbol)| decoder.add(esi - k, symbol));
        *given = self.repairs.esis.len();
        decoder
    }
}
