mod sources;
mod work;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;
use thiserror::Error;

use crate::block::BlockShape;
use crate::counting::mix;
use crate::esi_set::EsiSet;
use crate::huge_pages;
use crate::raptorq::decoding::Decoding;
use crate::sparse::SparseDecoder;
use sources::{Sources, room};

/// Rebuilds one block from its symbols.
///
/// ```
/// use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
///
/// let block = bytes::Bytes::from(vec![7; 5000]);
/// let shape = BlockShape::new(Code::RaptorQ, 5000, 1000)?;
/// let mut encoder = BlockEncoder::new(shape, block.clone());
/// let repair = encoder.repair_job().run();
/// encoder.set_repair(repair);
///
/// let mut decoder = BlockDecoder::new(shape);
/// for esi in [0, 2, 5, 8, 13, 21] {
///     decoder.add(esi, &encoder.symbol(esi).unwrap())?;
/// }
/// assert_eq!(decoder.needed(), 0);
/// let Decoded::Block(decoded) = decoder.decode_job().run() else { panic!("six of five suffice") };
/// assert_eq!(decoded, block);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlockDecoder {
    shape: BlockShape,
    sources: Sources,
    repairs: Box<Repairs>,
    /// A decoding that was begun early, or lacked rank, and goes on with what came since.
    decoding: Option<Begun>,
    /// Symbols demanded beyond k: one more after each decode that lacked rank.
    extra: u32,
    /// Hash of the set of symbols, and what it was at the first decoding, for the counting codes.
    digest: u64,
    luck: Option<u64>,
}

/// The repair symbols that have arrived, in order of arrival.
#[derive(Default)]
struct Repairs {
    symbols: Vec<u8>,
    esis: Vec<u32>,
    /// The same identifiers, without order.
    set: EsiSet,
}

enum Begun {
    Raptor(Box<Decoding>),
    /// With the number of repair symbols that it has been given.
    Sparse(Box<SparseDecoder>, usize),
    /// Beginning early would take too long.
    Refused,
}

/// The work of decoding a block; run it on any thread.
pub struct DecodeJob(BlockDecoder);

/// What came of a decoding.
pub enum Decoded {
    /// The block.
    Block(Bytes),
    /// The equations lacked rank. The decoder is handed back and wants one symbol more.
    Failed(BlockDecoder),
}

/// A symbol that does not belong to the block.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SymbolError {
    /// The encoding symbol identifier is beyond the code's limit.
    #[error("encoding symbol identifier {0} is beyond the code's limit")]
    Identifier(u32),
    /// The symbol has the wrong number of bytes.
    #[error("symbol {esi} has {got} bytes instead of {expected}")]
    Length {
        /// Which symbol.
        esi: u32,
        /// The bytes that it should have.
        expected: usize,
        /// The bytes that it has.
        got: usize,
    },
}

/// Runs of symbols: the first of each, and how many.
pub type Runs = Vec<(u32, u32)>;

impl BlockDecoder {
    /// A decoder that holds nothing. What it keeps grows with what has arrived: a block's announced
    /// length alone costs nothing. It keeps at most the padded block and k + k/4 + 64 further
    /// symbols, whatever comes, and as much again while it decodes, which
    /// [`advance`](Self::advance) may begin.
    pub fn new(shape: BlockShape) -> Self {
        Self {
            shape,
            sources: Sources::new(),
            repairs: Box::default(),
            decoding: None,
            extra: shape.code().least_extra(shape.source_symbols()),
            digest: u64::from(shape.len()),
            luck: None,
        }
    }

    /// How the block is cut.
    pub const fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Takes symbol `esi`; true if it was of use. A symbol that is already there, and one beyond
    /// what [`needed`](Self::needed) asked for, is of none.
    pub fn add(&mut self, esi: u32, symbol: &[u8]) -> Result<bool, SymbolError> {
        if esi >= self.shape.esi_limit() {
            return Err(SymbolError::Identifier(esi));
        }
        let expected =
            if self.shape.code().carries_bytes() { self.shape.symbol_len(esi) } else { 0 };
        if symbol.len() != expected {
            return Err(SymbolError::Length { esi, expected, got: symbol.len() });
        }
        if esi < self.shape.source_symbols() {
            if !self.sources.insert(self.shape, esi, symbol) {
                return Ok(false);
            }
            // What was begun took this symbol to be missing.
            match &mut self.decoding {
                Some(Begun::Raptor(decoding)) => decoding.came(esi),
                Some(Begun::Sparse(decoder, _)) => {
                    let size = usize::from(self.shape.symbol_size());
                    decoder.add_source(esi, &self.sources.data()[esi as usize * size..][..size]);
                }
                Some(Begun::Refused) | None => {}
            }
        } else {
            let needed = self.needed();
            if needed == 0 || !self.repairs.set.insert(esi - self.shape.source_symbols()) {
                return Ok(false);
            }
            let held = self.held();
            let Repairs { symbols, esis, .. } = &mut *self.repairs;
            if symbols.capacity() - symbols.len() < expected {
                // Room for all that may come, so that nothing is moved; what does not come is never
                // touched. Of a block that has hardly begun less may come.
                symbols.reserve_exact(needed.min(room(held)) as usize * expected);
                huge_pages::prefer(symbols.spare_capacity_mut());
            }
            esis.push(esi);
            symbols.extend_from_slice(symbol);
        }
        self.digest = self.digest.wrapping_add(mix(u64::from(esi)));
        Ok(true)
    }

    /// How many more symbols are needed before a decoding is worth trying.
    pub fn needed(&self) -> u32 {
        let k = self.shape.source_symbols();
        if self.sources.count() == k {
            return 0;
        }
        (k + self.extra).saturating_sub(self.held())
    }

    fn held(&self) -> u32 {
        self.sources.count() + self.repairs.esis.len() as u32
    }

    /// Starts anew with the source symbols: so many symbols beyond k fail only when somebody chose
    /// them to.
    fn forget_repair(&mut self) {
        *self.repairs = Repairs::default();
        self.decoding = None;
        self.extra = self.shape.code().least_extra(self.shape.source_symbols());
    }

    /// The bytes of the source symbols in a range, and which of them are there: the first of each
    /// run, and how many. What lies between the runs is nothing. A symbol far beyond all others is
    /// left out. `None` if none of them is there, and with a counting code.
    pub fn source_span(&self, esis: Range<u32>) -> Option<(&[u8], Runs)> {
        let esis = esis.start..esis.end.min(self.shape.source_symbols());
        let mut runs = Runs::new();
        for esi in esis.clone().filter(|esi| self.sources.is_placed(*esi)) {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == esi => *count += 1,
                _ => runs.push((esi, 1)),
            }
        }
        let (last, count) = runs.last()?;
        let start = self.shape.source_range(esis.start).start;
        let end = self.shape.source_range(last + count - 1).end;
        Some((self.sources.data().get(start..end)?, runs))
    }

    /// The probability that a decoding fails once [`needed`](Self::needed) more symbols came; one
    /// symbol more makes it some hundred times smaller for RaptorQ.
    pub fn failure_probability(&self) -> f64 {
        if self.is_systematic() {
            0.0
        } else {
            self.shape.code().failure_probability(self.shape.source_symbols(), self.extra)
        }
    }

    /// Whether all source symbols are there, so that decoding is no more than handing out the
    /// buffer.
    pub fn is_systematic(&self) -> bool {
        self.sources.count() == self.shape.source_symbols()
    }

    /// The work of decoding what is there; sensible once [`needed`](Self::needed) is zero.
    pub const fn decode_job(self) -> DecodeJob {
        DecodeJob(self)
    }
}

impl DecodeJob {
    /// How the block is cut.
    pub const fn shape(&self) -> BlockShape {
        self.0.shape()
    }

    /// Whether the job is no more than handing out the buffer.
    pub fn is_trivial(&self) -> bool {
        self.0.is_systematic()
    }

    /// Does the work.
    pub fn run(self) -> Decoded {
        let mut decoder = self.0;
        let shape = decoder.shape;
        let len = shape.len() as usize;
        let finish = |mut data: Vec<u8>| {
            data.truncate(len);
            Decoded::Block(Bytes::from(data))
        };
        if decoder.is_systematic() {
            return finish(decoder.sources.into_data());
        }
        let held = decoder.held();
        let k = shape.source_symbols();
        if held < k {
            return Decoded::Failed(decoder);
        }
        let lacking = decoder.decode();
        if lacking == 0 {
            return finish(decoder.sources.into_data());
        }
        decoder.extra = held - k + lacking as u32;
        if decoder.extra > shape.code().most_extra(k) {
            decoder.forget_repair();
        }
        Decoded::Failed(decoder)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::code::Code;
    use crate::encoder::BlockEncoder;

    fn encoder(code: Code, len: u32, symbol_size: u16) -> (BlockEncoder, Bytes) {
        let shape = BlockShape::new(code, len, symbol_size).unwrap();
        let data: Bytes = if code.carries_bytes() {
            (0..len).map(|i| (mix(u64::from(i)) & 0xff) as u8).collect()
        } else {
            Bytes::new()
        };
        let mut encoder = BlockEncoder::new(shape, data.clone());
        let repair = encoder.repair_job().run();
        encoder.set_repair(repair);
        (encoder, data)
    }

    #[test]
    fn without_loss_nothing_is_decoded() {
        let (encoder, data) = encoder(Code::RaptorQ, 2500, 1000);
        let mut decoder = BlockDecoder::new(encoder.shape());
        for esi in 0..3 {
            assert!(decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap());
        }
        let job = decoder.decode_job();
        assert!(job.is_trivial());
        let Decoded::Block(block) = job.run() else { panic!() };
        assert_eq!(block, data);
    }

    #[test]
    fn what_a_thread_kept_changes_nothing() {
        for (code, k, symbol_size) in
            [(Code::RaptorQ, 1000, 1280), (Code::RaptorQ, 700, 90), (Code::Raptor10, 900, 300)]
        {
            let (encoder, data) = encoder(code, k * u32::from(symbol_size), symbol_size);
            // Few losses and many: the two ways to decode.
            for (lost, round) in [(7, 0), (7, 1), (k / 2, 0), (k / 2, 1)] {
                let mut decoder = BlockDecoder::new(encoder.shape());
                let mut esis = lost..;
                let block = loop {
                    while decoder.needed() > 0 {
                        let esi = esis.next().unwrap();
                        decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap();
                    }
                    let soiled = crate::lines::soil();
                    assert!(soiled > 0 || round == 0, "nothing was kept, and nothing is tested");
                    match decoder.decode_job().run() {
                        Decoded::Block(block) => break block,
                        Decoded::Failed(again) => decoder = again,
                    }
                };
                assert!(block == data, "{code} {k} {lost}");
            }
        }
    }

    #[test]
    fn symbols_of_the_wrong_length_or_identifier_are_refused() {
        let shape = BlockShape::new(Code::RaptorQ, 2500, 1000).unwrap();
        let mut decoder = BlockDecoder::new(shape);
        assert!(matches!(decoder.add(0, &[0; 999]), Err(SymbolError::Length { .. })));
        assert!(matches!(
            decoder.add(2, &[0; 1000]),
            Err(SymbolError::Length { expected: 500, .. })
        ));
        assert!(matches!(decoder.add(1 << 24, &[0; 1000]), Err(SymbolError::Identifier(_))));
        assert_eq!(decoder.needed(), 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_symbols_rebuild_the_block(
            len in 1u32..40_000,
            symbol_size in prop::sample::select(vec![1u16, 64, 500, 1192]),
            // The others need so many symbols more that they have tests of their own.
            code in prop::sample::select(
                Code::ALL.into_iter().filter(|code| !matches!(code, Code::LegacyByte | Code::LtIdeal)).collect::<Vec<_>>(),
            ),
            seed: u64,
            loss in 0.0f64..0.9,
        ) {
            prop_assume!(len / u32::from(symbol_size) < 300);
            prop_assume!(BlockShape::new(code, len, symbol_size).is_ok());
            let (encoder, data) = encoder(code, len, symbol_size);
            let mut decoder = BlockDecoder::new(encoder.shape());
            let mut esi = 0;
            let block = loop {
                while decoder.needed() > 0 {
                    let survives = (mix(seed ^ u64::from(esi)) >> 11) as f64 / (1u64 << 53) as f64 >= loss;
                    // A block code has no more symbols; then nothing is lost on a second round.
                    let round = esi / encoder.shape().esi_limit();
                    if survives || round > 0 {
                        let esi = esi % encoder.shape().esi_limit();
                        decoder.add(esi, &encoder.symbol(esi).unwrap()).unwrap();
                    }
                    esi += 1;
                }
                match decoder.decode_job().run() {
                    Decoded::Block(block) => break block,
                    Decoded::Failed(again) => {
                        prop_assert!(again.needed() >= 1);
                        decoder = again;
                    }
                }
            };
            prop_assert_eq!(block, data);
        }
    }
}
