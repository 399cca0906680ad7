use bytes::Bytes;
use fontis_codes::{BlockEncoder, BlockShape, ReedSolomonPoints, SmallReedSolomon};

use super::oti::{FecBlock, FecOti, FecScheme};

/// Makes the symbols of one source block.
pub struct FecBlockEncoder {
    block: FecBlock,
    symbol_size: u16,
    data: Bytes,
    repair: Repair,
}

enum Repair {
    None,
    /// All repair symbols there are, made when the first is wanted.
    Small(SmallReedSolomon, Option<Bytes>),
    Fountain(Box<BlockEncoder>),
}

impl FecBlockEncoder {
    /// An encoder of a block, whose bytes are `data`; none if they are not as many, or this machine
    /// cannot encode such a block.
    pub fn new(
        oti: &FecOti,
        block: FecBlock,
        data: Bytes,
        points: ReedSolomonPoints,
    ) -> Option<Self> {
        if data.len() as u64 != block.range.end - block.range.start {
            return None;
        }
        let repair = match (oti.scheme(), oti.scheme().fountain()) {
            (_, Some(code)) => {
                let shape =
                    BlockShape::new(code, u32::try_from(data.len()).ok()?, oti.symbol_size());
                Repair::Fountain(Box::new(BlockEncoder::new(shape.ok()?, data.clone())))
            }
            (FecScheme::ReedSolomon, _) => {
                Repair::Small(SmallReedSolomon::new(block.symbols, points)?, None)
            }
            _ => Repair::None,
        };
        Some(Self { block, symbol_size: oti.symbol_size(), data, repair })
    }

    /// Symbol `esi`, without the padding of the last source symbol; none if there is no such one.
    pub fn symbol(&mut self, esi: u32) -> Option<Bytes> {
        let size = usize::from(self.symbol_size);
        if esi < self.block.symbols {
            let length = self.block.symbol_len(self.symbol_size, esi);
            let start = esi as usize * size;
            return Some(self.data.slice(start..start + length));
        }
        match &mut self.repair {
            Repair::None => None,
            Repair::Small(code, made) => {
                let (first, end) = (self.block.symbols, SmallReedSolomon::MAX_SYMBOLS);
                let made =
                    made.get_or_insert_with(|| code.repair(size, &self.data, first..end).into());
                let start = (esi - first) as usize * size;
                (esi < end).then(|| made.slice(start..start + size))
            }
            Repair::Fountain(encoder) => {
                if !encoder.has_repair() {
                    encoder.set_repair(encoder.repair_job().run());
                }
                encoder.symbol(esi)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decoder::FecBlockDecoder;
    use super::*;

    fn oti(scheme: FecScheme, length: u64, size: u16) -> Option<FecOti> {
        match scheme {
            FecScheme::NoCode => FecOti::no_code(length, size, 300).ok(),
            FecScheme::Raptor => FecOti::raptor(length, size, 2, 1).ok(),
            FecScheme::ReedSolomon => FecOti::reed_solomon(length, size, 120, 200).ok(),
            FecScheme::RaptorQ => FecOti::raptorq(length, size, 2, 1).ok(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn symbols_in_any_order_rebuild_a_block(
            scheme in prop::sample::select(FecScheme::ALL.to_vec()),
            length in 1u64..40_000,
            size in 1u16..600,
            seed: u64,
            is_padded: bool,
        ) {
            prop_assume!(length / u64::from(size) < 400);
            let Some(oti) = oti(scheme, length, size) else { return Ok(()) };
            let block = oti.block(oti.blocks() - 1).unwrap();
            let bytes: Vec<u8> =
                (block.range.clone()).map(|at| (at.wrapping_mul(seed | 1) >> 7) as u8).collect();
            let points = ReedSolomonPoints::Reference;
            let new = FecBlockEncoder::new(&oti, block.clone(), bytes.clone().into(), points);
            let mut encoder = new.unwrap();
            let mut decoder = FecBlockDecoder::new(&oti, block.clone(), points).unwrap();
            // A permutation of the symbols; without a code all are needed.
            let all = match scheme {
                FecScheme::NoCode => block.symbols,
                FecScheme::ReedSolomon => 200,
                _ => block.symbols * 2 + 40,
            };
            let step = (1..).map(|i| seed as u32 % all + i).find(|step| coprime(*step, all));
            let mut done = None;
            for at in 0..all {
                let esi = (u64::from(at) * u64::from(step.unwrap()) % u64::from(all)) as u32;
                let mut symbol = encoder.symbol(esi).unwrap().to_vec();
                prop_assert_eq!(decoder.add(esi, &symbol[..symbol.len() - 1]), None, "short");
                if is_padded {
                    symbol.resize(usize::from(size), 0);
                }
                done = decoder.add(esi, &symbol);
                if done.is_some() {
                    break;
                }
            }
            prop_assert_eq!(done.as_deref(), Some(&bytes[..]));
        }
    }

    fn coprime(a: u32, b: u32) -> bool {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    }

    #[test]
    fn symbols_that_a_block_does_not_have_are_refused() {
        for scheme in FecScheme::ALL {
            let oti = oti(scheme, 5000, 100).unwrap();
            let block = oti.block(0).unwrap();
            let points = ReedSolomonPoints::Reference;
            let mut decoder = FecBlockDecoder::new(&oti, block, points).unwrap();
            let empty = decoder.held();
            assert_eq!(decoder.add(1 << 25, &[0; 100]), None);
            assert_eq!(decoder.add(0, &[0; 99]), None);
            assert_eq!(decoder.held(), empty, "{scheme}");
            decoder.add(0, &[0; 100]);
            let one = decoder.held();
            assert!(one >= empty + 100, "{scheme}");
            decoder.add(0, &[1; 100]);
            assert_eq!(decoder.held(), one, "{scheme}");
        }
    }
}
