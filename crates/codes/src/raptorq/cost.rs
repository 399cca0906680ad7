//! Which way of decoding or encoding is cheaper, by what its steps take, in hundredths of a
//! nanosecond.

use super::parameters::Parameters;
use crate::simd::Level;
use crate::simd::lane::LINE;

/// What a decoder's own plan takes for each intermediate symbol until it is made.
const SOLVE: usize = 7000;

/// Ways of decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sums of source symbols by the coefficients of the repair symbols.
    Direct,
    /// The encoding plan with zeros for what is missing, and a correction.
    Correction,
    /// A plan of its own.
    Solve,
}

/// What a plan's replay takes for each line of each intermediate symbol; in strips of one line it
/// takes twice that.
const fn replay(level: Level) -> usize {
    match level {
        Level::Portable => 3500,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => 1400,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => 1000,
        #[cfg(target_arch = "x86_64")]
        Level::Gfni => 750,
        // Not measured.
        #[cfg(target_arch = "aarch64")]
        Level::Neon => 1500,
    }
}

/// What a line takes that is multiplied by a factor and added.
const fn multiple(level: Level) -> usize {
    match level {
        Level::Portable => 2500,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => 80,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => 40,
        #[cfg(target_arch = "x86_64")]
        Level::Gfni => 25,
        // Not measured.
        #[cfg(target_arch = "aarch64")]
        Level::Neon => 100,
    }
}

/// A block that lacks symbols.
#[derive(Clone, Copy)]
pub(crate) struct Loss<'a> {
    pub(crate) level: Level,
    pub(crate) parameters: &'a Parameters,
    pub(crate) symbol_size: usize,
    pub(crate) missing: usize,
    /// The repair symbols that it is decoded from.
    pub(crate) repairs: usize,
}

impl Loss<'_> {
    fn lines(&self) -> usize {
        self.symbol_size.div_ceil(LINE)
    }

    fn replay(&self) -> usize {
        replay(self.level) * self.parameters.intermediate * self.lines()
    }

    /// The sums of source symbols in repair symbols.
    fn sums(&self) -> usize {
        self.repairs * self.parameters.extended * self.lines() * multiple(self.level)
    }

    /// The missing symbols from such sums of them as there are repair symbols.
    fn solution(&self) -> usize {
        let lines = (self.missing + self.repairs).div_ceil(LINE) + self.lines();
        self.missing * self.repairs * lines * multiple(self.level)
    }

    fn units(&self) -> usize {
        2 * replay(self.level) * self.parameters.intermediate * self.missing.div_ceil(LINE)
    }

    /// What a way costs.
    fn cost(&self, kind: Kind) -> usize {
        match kind {
            Kind::Direct if self.repairs > LINE => usize::MAX,
            Kind::Direct => self.sums() + self.solution(),
            Kind::Correction => self.units() + self.replay() + self.solution(),
            Kind::Solve => SOLVE * self.parameters.intermediate + self.replay(),
        }
    }

    /// The cheapest way.
    pub(crate) fn cheapest(&self) -> Kind {
        let kinds = [Kind::Direct, Kind::Correction, Kind::Solve];
        kinds.into_iter().min_by_key(|kind| self.cost(*kind)).expect("there are three")
    }

    /// Whether to replay the encoding plan before all symbols are there: it leaves half of the work
    /// at most, and what it saves is not little in comparison with the replay.
    pub(crate) fn is_corrected_ahead(&self) -> bool {
        let cost = self.cost(self.cheapest());
        2 * self.solution() < cost && self.replay() < 2 * cost
    }
}

/// Whether `count` encoding symbols are made from source symbols sooner than from intermediate
/// ones.
pub(crate) fn is_direct(
    level: Level,
    parameters: &Parameters,
    count: usize,
    symbol_size: usize,
) -> bool {
    let loss = Loss { level, parameters, symbol_size, missing: 0, repairs: count };
    count <= LINE && loss.sums() < loss.replay()
}
