use alloc::vec::Vec;

use super::cache;
use super::parameters::Parameters;
use crate::simd::Level;

/// Identifiers of encoding symbols have 24 bits (RFC 6330, section 3.2).
const IDENTIFIERS: u32 = 1 << 24;

/// What each of a block's `k` source symbols is multiplied by in the repair symbol `esi`, whose sum
/// that is: for a protocol whose symbols have lengths of their own. `None` if there is no such
/// block or symbol.
pub fn repair_factors(k: u32, esi: u32) -> Option<Vec<u8>> {
    if k == 0 || !(k..IDENTIFIERS).contains(&esi) {
        return None;
    }
    let parameters = Parameters::for_source_symbols(k)?;
    // The padding has the identifiers between (RFC 6330, section 5.3.1).
    let isi = esi + (parameters.extended as u32 - k);
    let plan = cache::plan(&parameters);
    let coefficients = plan.coefficients(Level::detect(), core::iter::once(isi));
    let column = usize::from(*coefficients.columns.first()?);
    let lines = coefficients.lines.iter().take(k as usize);
    Some(lines.map(|line| line[column]).collect())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::block::BlockShape;
    use crate::code::Code;
    use crate::encoder::BlockEncoder;
    use crate::window::add_to_sum;

    proptest! {
        #[test]
        fn a_repair_symbol_is_the_sum_with_these_factors(
            k in 1_u32..200,
            more in 0_u32..300,
            data in prop::collection::vec(any::<u8>(), 16 * 200),
        ) {
            let data = Bytes::from(data).slice(..16 * k as usize);
            let shape = BlockShape::new(Code::RaptorQ, 16 * k, 16).unwrap();
            let mut encoder = BlockEncoder::new(shape, data.clone());
            encoder.set_repair(encoder.repair_job().run());
            let mut sum = vec![0; 16];
            let factors = repair_factors(k, k + more).unwrap();
            prop_assert_eq!(factors.len(), k as usize);
            for (symbol, factor) in data.chunks(16).zip(factors) {
                add_to_sum(&mut sum, symbol, factor);
            }
            prop_assert_eq!(encoder.symbol(k + more).unwrap(), sum);
        }
    }

    #[test]
    fn what_is_no_repair_symbol_has_no_factors() {
        for (k, esi) in [(0, 0), (10, 9), (10, IDENTIFIERS), (60_000, 70_000), (1, u32::MAX)] {
            assert_eq!(repair_factors(k, esi), None, "{k} {esi}");
        }
        assert!(repair_factors(10, IDENTIFIERS - 1).is_some());
    }
}
