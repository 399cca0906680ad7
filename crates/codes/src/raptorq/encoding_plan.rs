use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::echoes::Echoes;
use super::parameters::{Family, Parameters};
use super::plan::Plan;
use super::solver::Solver;
use super::template::Template;
use super::transposed;
use crate::simd::Level;
use crate::simd::lane::LINE;

/// How the intermediate symbols of a block follow from its source symbols. It depends on K' alone
/// and is made once for all blocks of a size; threads may share it.
#[derive(Clone, Debug)]
pub struct EncodingPlan {
    pub(crate) plan: Plan,
    /// Coefficients of the first repair symbols; made when they are first wanted.
    #[cfg(feature = "std")]
    repairs: std::sync::OnceLock<Vec<[u8; LINE]>>,
    #[cfg(feature = "std")]
    echoes: std::sync::OnceLock<Echoes>,
}

/// What encoding symbols take of each symbol of the extended source block.
pub(crate) struct Coefficients<'a> {
    /// For each symbol of the extended source block a line.
    pub(crate) lines: Cow<'a, [[u8; LINE]]>,
    /// Which byte of a line is the coefficient in each encoding symbol.
    pub(crate) columns: Vec<u16>,
}

impl PartialEq for EncodingPlan {
    fn eq(&self, other: &Self) -> bool {
        self.plan == other.plan
    }
}

impl Eq for EncodingPlan {}

impl EncodingPlan {
    /// The plan for blocks of `k` source symbols; `None` for more than
    /// [`MAX_SOURCE_SYMBOLS`](super::MAX_SOURCE_SYMBOLS).
    pub fn new(k: u32) -> Option<Self> {
        Parameters::for_source_symbols(k).map(Self::solve)
    }

    /// The plan of R10 for blocks of `k` source symbols; `None` outside of
    /// [`RAPTOR10_SOURCE_SYMBOLS`](super::RAPTOR10_SOURCE_SYMBOLS).
    pub fn raptor10(k: u32) -> Option<Self> {
        Parameters::of(Family::Raptor10, k).map(Self::solve)
    }

    pub(crate) fn solve(parameters: Parameters) -> Self {
        let known: Vec<_> = (0..parameters.extended as u32).map(|isi| (isi, isi)).collect();
        let template = Arc::new(Template::new(parameters));
        let plan = Solver::new(template, &known).and_then(|mut solver| solver.plan());
        // The systematic indices were chosen so that it is (RFC 6330, section 5.3.3.4.2).
        Self::from(plan.expect("the source symbols determine the intermediate symbols"))
    }

    /// K': the plan serves every block whose symbols are extended to so many.
    pub const fn extended_symbols(&self) -> usize {
        self.plan.parameters.extended
    }

    /// Bytes that the plan takes in memory, or may come to take.
    pub fn memory(&self) -> usize {
        let lines = self.extended_symbols() * LINE;
        let inactive = self.plan.dense.inactive().count();
        let echoes = Echoes::memory(self.plan.parameters.intermediate, inactive);
        let kept = if cfg!(feature = "std") { lines + echoes } else { 0 };
        self.plan.memory() + kept
    }

    /// What each column takes of the inactive ones.
    pub(crate) fn echoes(&self) -> Cow<'_, Echoes> {
        #[cfg(feature = "std")]
        return Cow::Borrowed(self.echoes.get_or_init(|| self.plan.echoes()));
        #[cfg(not(feature = "std"))]
        Cow::Owned(self.plan.echoes())
    }

    /// The coefficients of encoding symbols with these internal identifiers, at most [`LINE`] of
    /// them.
    pub(crate) fn coefficients(
        &self,
        level: Level,
        isis: impl Iterator<Item = u32> + Clone,
    ) -> Coefficients<'_> {
        #[cfg(feature = "std")]
        {
            let first = self.plan.parameters.extended as u32;
            if isis.clone().all(|isi| (first..first + LINE as u32).contains(&isi)) {
                let make = || transposed::coefficients(level, &self.plan, (first..).take(LINE));
                let lines = Cow::Borrowed(self.repairs.get_or_init(make).as_slice());
                let columns = isis.map(|isi| (isi - first) as u16).collect();
                return Coefficients { lines, columns };
            }
        }
        let columns = (0..isis.clone().count() as u16).collect();
        let lines = Cow::Owned(transposed::coefficients(level, &self.plan, isis));
        Coefficients { lines, columns }
    }
}

impl From<Plan> for EncodingPlan {
    fn from(plan: Plan) -> Self {
        Self {
            plan,
            #[cfg(feature = "std")]
            repairs: std::sync::OnceLock::new(),
            #[cfg(feature = "std")]
            echoes: std::sync::OnceLock::new(),
        }
    }
}
