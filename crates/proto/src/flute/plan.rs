use fontis_codes::ReedSolomonPoints;
use thiserror::Error;

use super::error::FecOtiError;
use super::oti::{FecBlock, FecOti, FecScheme};

/// How a sender protects what it sends. One that exists suits its scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FecPlan {
    scheme: FecScheme,
    symbol_size: u16,
    block_symbols: u32,
    repair: u32,
    points: ReedSolomonPoints,
}

/// A plan that its scheme cannot carry out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FecPlanError {
    /// Symbols are too small or too large.
    #[error("symbols of {0} bytes are impossible: write 4 to 65000, and a multiple of 4")]
    SymbolSize(u16),
    /// Without a code nothing can be repaired.
    #[error("without a code there are no repair symbols: leave the repair out, or choose a code")]
    NoRepair,
    /// Repair is beyond reason.
    #[error("{0} % of repair is too much: write 1000 at most")]
    Repair(u32),
    /// Blocks do not suit the code.
    #[error(
        "blocks of {symbols} symbols are impossible with this code and {repair} % of repair: it takes {least} to {most}"
    )]
    Block {
        /// What was asked for.
        symbols: u32,
        /// The repair symbols, in percent of the source symbols.
        repair: u32,
        /// The fewest symbols.
        least: u32,
        /// The most.
        most: u32,
    },
}

/// Source symbols of a block where the user does not say: blocks of some megabytes.
const BLOCK: u32 = 1024;
/// Symbols of a block of R10 at least, so that none of several has fewer than 4.
const LEAST_OF_RAPTOR: u32 = 8;

impl FecPlan {
    /// A plan: symbols of `symbol_size` bytes, blocks of at most `block_symbols` source symbols,
    /// and `repair` percent of repair symbols. An object that is too long for so many blocks has
    /// larger ones.
    ///
    /// # Errors
    /// [`FecPlanError`], if the scheme cannot do that.
    pub fn new(
        scheme: FecScheme,
        symbol_size: u16,
        block_symbols: Option<u32>,
        repair: u32,
    ) -> Result<Self, FecPlanError> {
        if !(4..=65_000).contains(&symbol_size) || !symbol_size.is_multiple_of(4) {
            return Err(FecPlanError::SymbolSize(symbol_size));
        }
        if repair > 1000 {
            return Err(FecPlanError::Repair(repair));
        }
        let (least, most) = match scheme {
            FecScheme::NoCode if repair > 0 => return Err(FecPlanError::NoRepair),
            FecScheme::NoCode => (1, 1 << 16),
            FecScheme::Raptor => (LEAST_OF_RAPTOR, 8192),
            // Of 255 symbols so many are source symbols.
            FecScheme::ReedSolomon => (1, 255 * 100 / (100 + repair)),
            FecScheme::RaptorQ => (1, 56_403),
        };
        let symbols = block_symbols.unwrap_or(BLOCK.min(most));
        if !(least..=most).contains(&symbols) {
            return Err(FecPlanError::Block { symbols, repair, least, most });
        }
        let points = ReedSolomonPoints::Reference;
        Ok(Self { scheme, symbol_size, block_symbols: symbols, repair, points })
    }

    /// The same with other points of Reed-Solomon.
    pub const fn with_points(self, points: ReedSolomonPoints) -> Self {
        Self { points, ..self }
    }

    /// The scheme.
    pub const fn scheme(&self) -> FecScheme {
        self.scheme
    }

    /// The bytes of a symbol.
    pub const fn symbol_size(&self) -> u16 {
        self.symbol_size
    }

    /// The points of Reed-Solomon.
    pub const fn points(&self) -> ReedSolomonPoints {
        self.points
    }

    /// The same for an FDT instance, without which a receiver has nothing: half of its symbols are
    /// repair at least.
    pub(super) fn of_fdt(self) -> Self {
        let repair = match self.scheme {
            FecScheme::NoCode => 0,
            _ => self.repair.max(100),
        };
        Self::new(self.scheme, self.symbol_size, None, repair)
            .map_or(self, |plan| plan.with_points(self.points))
    }

    /// How an object of `length` bytes is cut.
    ///
    /// # Errors
    /// [`FecOtiError`], if it is too long.
    pub fn oti(&self, length: u64) -> Result<FecOti, FecOtiError> {
        let symbols = length.div_ceil(u64::from(self.symbol_size));
        let size = self.symbol_size;
        let blocks = symbols.div_ceil(u64::from(self.block_symbols));
        match self.scheme {
            FecScheme::NoCode => {
                // The least that is enough for the number of blocks, too.
                let most = u64::from(self.block_symbols).max(symbols.div_ceil(1 << 16));
                let most = u32::try_from(most).map_err(|_| FecOtiError::TransferLength(length))?;
                FecOti::no_code(length, size, most)
            }
            FecScheme::ReedSolomon => {
                let all = self.block_symbols + self.repair_of(self.block_symbols);
                FecOti::reed_solomon(length, size, self.block_symbols, all.min(255))
            }
            FecScheme::RaptorQ => FecOti::raptorq(length, size, blocks.min(255) as u8, 4),
            FecScheme::Raptor if symbols < 4 => match length / 4 {
                // Four symbols at least, as the code wants; of less than four bytes none.
                0 => FecOti::no_code(length, size, 1),
                own => FecOti::raptor(length, own as u16, 1, 1),
            },
            FecScheme::Raptor => FecOti::raptor(length, size, blocks.min(65_535) as u16, 4),
        }
    }

    /// The symbols of a block that are sent in a round.
    pub fn symbols(&self, oti: &FecOti, block: &FecBlock) -> u32 {
        let repair = match oti.scheme() {
            FecScheme::NoCode => 0,
            _ => self.repair_of(block.symbols),
        };
        (block.symbols + repair).min(oti.max_symbols())
    }

    fn repair_of(&self, symbols: u32) -> u32 {
        (u64::from(symbols) * u64::from(self.repair)).div_ceil(100) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plans_that_a_scheme_cannot_carry_out_are_refused() {
        let new = FecPlan::new;
        assert_eq!(new(FecScheme::RaptorQ, 1401, None, 0), Err(FecPlanError::SymbolSize(1401)));
        assert_eq!(new(FecScheme::NoCode, 1400, None, 1), Err(FecPlanError::NoRepair));
        let refused = new(FecScheme::ReedSolomon, 1400, Some(213), 20).unwrap_err();
        assert!(matches!(refused, FecPlanError::Block { most: 212, .. }), "{refused}");
        assert!(new(FecScheme::ReedSolomon, 1400, Some(212), 20).is_ok());
        assert!(new(FecScheme::Raptor, 1400, Some(7), 20).is_err());
    }

    proptest! {
        #[test]
        fn every_object_of_reasonable_length_is_cut(
            scheme in prop::sample::select(FecScheme::ALL.to_vec()),
            length in 0u64..1 << 36,
            shift in 0u32..37,
            repair in 0u32..100,
        ) {
            let length = length >> shift;
            let repair = if scheme == FecScheme::NoCode { 0 } else { repair };
            let plan = FecPlan::new(scheme, 1400, None, repair).unwrap();
            for plan in [plan, plan.of_fdt()] {
                let oti = plan.oti(length);
                if scheme == FecScheme::RaptorQ && length > 255 * 56_403 * 1400 {
                    prop_assert!(oti.is_err());
                    continue;
                }
                let oti = oti.unwrap();
                prop_assert_eq!(oti.transfer_length(), length);
                for number in [0, oti.blocks().saturating_sub(1)] {
                    let Some(block) = oti.block(number) else { continue };
                    let symbols = plan.symbols(&oti, &block);
                    prop_assert!(symbols >= block.symbols && symbols <= oti.max_symbols());
                    let is_protected = oti.scheme() != FecScheme::NoCode && repair > 0;
                    prop_assert_eq!(symbols > block.symbols, is_protected || symbols > block.symbols);
                }
            }
        }
    }
}
