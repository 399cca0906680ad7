use alloc::vec::Vec;

use super::hdpc;
use super::parameters::Parameters;
use super::repairs::Repairs;
use super::rows::{NO_INPUT, Rows};

/// The equations that all blocks of K' symbols have in common, whichever symbols of them are known.
pub(crate) struct Template {
    pub(crate) parameters: Parameters,
    /// The relations among intermediate symbols.
    pub(crate) precode: Rows,
    /// One equation for each of the K' symbols of the extended source block, without inputs.
    pub(crate) sources: Rows,
    pub(crate) repairs: Repairs,
    /// The two HDPC equations of each column, and the same by equation; both empty where there is
    /// none.
    pub(crate) targets: Vec<[u8; 2]>,
    pub(crate) schedule: Vec<u8>,
}

impl Template {
    pub(crate) fn new(parameters: Parameters) -> Self {
        let mut sources = Rows::with_capacity(parameters.extended);
        (0..parameters.extended as u32).for_each(|isi| sources.push(&parameters, isi, NO_INPUT));
        let targets = if parameters.hdpc > 0 { hdpc::targets(&parameters) } else { Vec::new() };
        let schedule = hdpc::schedule(&parameters, &targets);
        let precode = Rows::precode(&parameters);
        let repairs = Repairs::new(&parameters);
        Self { parameters, precode, sources, repairs, targets, schedule }
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        let hdpc = 2 * self.targets.capacity() + self.schedule.capacity();
        let equations = self.precode.memory() + self.sources.memory() + self.repairs.memory();
        size_of::<Self>() + equations + hdpc
    }
}
