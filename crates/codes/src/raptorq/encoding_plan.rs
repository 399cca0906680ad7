use alloc::sync::Arc;
use alloc::vec::Vec;

use super::parameters::{Family, Parameters};
use super::plan::Plan;
use super::solver::Solver;
use super::template::Template;

/// How the intermediate symbols of a block follow from its source symbols. It depends on K' alone and is made once
/// for all blocks of a size; threads may share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodingPlan(pub(crate) Plan);

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
        Self(plan.expect("the source symbols determine the intermediate symbols"))
    }

    /// K': the plan serves every block whose symbols are extended to so many.
    pub const fn extended_symbols(&self) -> usize {
        self.0.parameters.extended
    }

    /// Bytes that the plan takes in memory.
    pub fn memory(&self) -> usize {
        self.0.memory()
    }
}
