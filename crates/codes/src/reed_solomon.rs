//! A maximum-distance-separable block code of fixed rate: `reed-solomon-simd` behind our contract.

use alloc::vec::Vec;

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

/// Source symbols that a block may have.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = 32_768;

/// Repair symbols that there are for `k` source symbols: the least power of two that is not less
/// than k, at least 2.
pub(crate) fn repair_symbols(k: u32) -> u32 {
    k.next_power_of_two().max(2)
}

/// All repair symbols of a block. `data` is the block with its padding.
pub(crate) fn encode(k: u32, symbol_size: usize, data: &[u8]) -> Vec<u8> {
    let count = repair_symbols(k);
    let result =
        ReedSolomonEncoder::new(k as usize, count as usize, symbol_size).and_then(|mut encoder| {
            for symbol in data.chunks_exact(symbol_size) {
                encoder.add_original_shard(symbol)?;
            }
            let result = encoder.encode()?;
            Ok(result.recovery_iter().flatten().copied().collect())
        });
    result.expect("the shape was checked")
}

/// Restores the missing symbols in place; false if too few symbols are there.
pub(crate) fn decode(
    k: u32,
    symbol_size: usize,
    data: &mut [u8],
    missing: &[u32],
    esis: &[u32],
    repairs: &[u8],
) -> bool {
    let mut is_missing = alloc::vec![false; k as usize];
    missing.iter().for_each(|esi| is_missing[*esi as usize] = true);
    let result = ReedSolomonDecoder::new(k as usize, repair_symbols(k) as usize, symbol_size)
        .and_then(|mut decoder| {
            for (esi, symbol) in
                data.chunks_exact(symbol_size).enumerate().filter(|(esi, _)| !is_missing[*esi])
            {
                decoder.add_original_shard(esi, symbol)?;
            }
            for (esi, symbol) in esis.iter().zip(repairs.chunks_exact(symbol_size)) {
                decoder.add_recovery_shard((esi - k) as usize, symbol)?;
            }
            let result = decoder.decode()?;
            for (esi, symbol) in result.restored_original_iter() {
                data[esi * symbol_size..][..symbol_size].copy_from_slice(symbol);
            }
            Ok(())
        });
    result.is_ok()
}
