use alloc::vec::Vec;

use super::echoes::Echoes;
use super::hdpc::CHUNK;
use super::parameters::Parameters;
use crate::matrix::Matrix;

/// What turns the symbols that are known into the intermediate symbols of a block: solved once from
/// which symbols these are, and replayed on their bytes as often as wanted.
///
/// It works on *slots* of one symbol (or a strip of one): the L intermediate symbols, then
/// `dense.rank` sums, then H more for the dense equations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) parameters: Parameters,
    /// Each peeled column from its equation, as if all inactive columns were zero; then the
    /// left-over equations.
    pub(crate) forward: Sums,
    pub(crate) dense: Dense,
    /// Each peeled column from its equation, with the true inactive ones.
    pub(crate) backward: Sums,
}

/// How the inactive columns follow from the left-over equations and the HDPC equations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dense {
    /// The columns that left-over equations determine, up to those in `free`.
    pub(crate) solved: Vec<u16>,
    /// Left-over equations that one table serves.
    pub(crate) table_bits: usize,
    /// For each table, for each solved column, which combination of the table's equations it takes.
    pub(crate) tables: Vec<u8>,
    /// The columns that need HDPC equations; at most H.
    pub(crate) free: Vec<u16>,
    /// Which HDPC equation takes which Y ([`schedule`](super::hdpc::schedule)); empty if `free` is.
    pub(crate) schedule: Vec<u8>,
    /// Free columns from HDPC equations.
    pub(crate) from_hdpc: Matrix,
    /// Free columns from solved ones.
    pub(crate) from_solved: Matrix,
    /// For each solved column, the free ones that it takes, as bits.
    pub(crate) corrections: Vec<u16>,
}

/// A list of instructions: slot `target` becomes the sum of an input (or nothing) and of some
/// slots.
///
/// Each takes 4 + n words of 16 bits: target, n, the input (low and high half), and n slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums(pub(crate) Vec<u16>);

impl Sums {
    /// Adds an instruction.
    pub(crate) fn push(&mut self, target: u16, input: u32, slots: &[u16]) {
        self.0.extend([target, slots.len() as u16, input as u16, (input >> 16) as u16]);
        self.0.extend_from_slice(slots);
    }
}

/// The instructions, one after another: target, input, slots.
#[inline(always)]
pub(crate) fn instructions(mut words: &[u16]) -> impl Iterator<Item = (u16, u32, &[u16])> {
    core::iter::from_fn(move || {
        let ([target, n, low, high], rest) = words.split_first_chunk::<4>()?;
        let (slots, rest) = rest.split_at_checked(usize::from(*n))?;
        words = rest;
        Some((*target, u32::from(*low) | u32::from(*high) << 16, slots))
    })
}

impl Plan {
    /// What each column takes of the inactive ones.
    pub(crate) fn echoes(&self) -> Echoes {
        let sums = instructions(&self.backward.0).map(|(target, _, columns)| (target, columns));
        Echoes::new(self.parameters.intermediate, self.dense.inactive().collect(), sums)
    }

    /// Slots that a replay works on, without those for tables.
    pub(crate) fn slots(&self) -> usize {
        self.parameters.intermediate + self.dense.solved.len() + self.parameters.hdpc
    }

    /// Slots for the largest table, and before it for a chunk of the HDPC equations.
    pub(crate) fn table_slots(&self) -> usize {
        (1 << self.dense.table_bits).max(CHUNK)
    }

    /// Bytes that the plan takes in memory.
    pub(crate) fn memory(&self) -> usize {
        let dense = &self.dense;
        let words = self.forward.0.capacity() + self.backward.0.capacity();
        let columns =
            dense.solved.capacity() + dense.free.capacity() + dense.corrections.capacity();
        size_of::<Self>()
            + 2 * (words + columns)
            + dense.schedule.capacity()
            + dense.tables.capacity()
            + dense.from_hdpc.cells.capacity()
            + dense.from_solved.cells.capacity()
    }
}

impl Dense {
    /// The inactive columns.
    pub(crate) fn inactive(&self) -> impl Iterator<Item = u16> {
        self.solved.iter().chain(&self.free).copied()
    }

    /// How many equations a table should serve: filling it costs 2^bits sums, using it one for each
    /// column.
    pub(crate) fn best_table_bits(equations: usize) -> usize {
        (1..=8)
            .min_by_key(|bits| equations.div_ceil(*bits) * ((1 << bits) + equations))
            .expect("there are eight sizes")
    }
}
