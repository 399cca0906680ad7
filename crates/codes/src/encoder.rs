use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

use bytes::Bytes;

use crate::raptorq::{EncodingPlan, Inputs, Intermediate, shared_plan};
use crate::simd::Level;
use crate::{BlockShape, Code};

/// Makes the symbols of one block. The source data is borrowed from the caller's buffer, never copied.
pub struct BlockEncoder {
    shape: BlockShape,
    data: Bytes,
    repair: Option<RepairSymbols>,
}

/// The work of preparing a block's repair symbols; run it on any thread.
pub struct RepairJob {
    shape: BlockShape,
    data: Bytes,
}

/// What makes the repair symbols of one block.
pub struct RepairSymbols(Repair);

enum Repair {
    RaptorQ(Box<Intermediate>),
    Counting,
}

impl BlockEncoder {
    /// An encoder of `data`, whose length must be the shape's (a counting code takes no data).
    ///
    /// # Panics
    /// If the length is another.
    pub fn new(shape: BlockShape, data: Bytes) -> Self {
        let expected = if shape.code().carries_bytes() { shape.len() as usize } else { 0 };
        assert_eq!(data.len(), expected, "a block's data has the length of its shape");
        Self { shape, data, repair: None }
    }

    /// How the block is cut.
    pub const fn shape(&self) -> BlockShape {
        self.shape
    }

    /// The block's data.
    pub const fn data(&self) -> &Bytes {
        &self.data
    }

    /// The work that must be done, and given to [`set_repair`](Self::set_repair), before repair symbols can be had.
    pub fn repair_job(&self) -> RepairJob {
        RepairJob { shape: self.shape, data: self.data.clone() }
    }

    /// Makes repair symbols available.
    pub fn set_repair(&mut self, repair: RepairSymbols) {
        self.repair = Some(repair);
    }

    /// Whether repair symbols can be had.
    pub const fn has_repair(&self) -> bool {
        self.repair.is_some()
    }

    /// Symbol `esi`: a slice of the block for a source symbol (the last one without its padding). `None` for a
    /// repair symbol that is not available yet, and beyond the code's limit.
    pub fn symbol(&self, esi: u32) -> Option<Bytes> {
        if esi < self.shape.source_symbols() {
            let range = self.shape.source_range(esi);
            return Some(if self.shape.code().carries_bytes() {
                self.data.slice(range)
            } else {
                Bytes::new()
            });
        }
        if esi >= self.shape.code().esi_limit() {
            return None;
        }
        self.repair.as_ref().map(|repair| match &repair.0 {
            Repair::RaptorQ(intermediate) => {
                let mut symbol = vec![0; usize::from(self.shape.symbol_size())];
                intermediate.symbols([esi], &mut symbol);
                Bytes::from(symbol)
            }
            Repair::Counting => Bytes::new(),
        })
    }
}

impl RepairJob {
    /// Does the work, with an encoding plan from the process's cache.
    pub fn run(self) -> RepairSymbols {
        match self.shape.code() {
            Code::RaptorQ => {
                let plan = shared_plan(self.shape.source_symbols());
                self.raptorq(&plan.expect("the shape's code has so many source symbols"))
            }
            Code::Counting => RepairSymbols(Repair::Counting),
        }
    }

    /// Does the work with this plan, which must be for blocks of so many symbols; other codes than RaptorQ need none.
    pub fn run_with(self, plan: &Arc<EncodingPlan>) -> RepairSymbols {
        match self.shape.code() {
            Code::RaptorQ => self.raptorq(plan),
            _ => self.run(),
        }
    }

    fn raptorq(&self, plan: &EncodingPlan) -> RepairSymbols {
        let symbol_size = usize::from(self.shape.symbol_size());
        let (whole, rest) = self.data.split_at(self.data.len() / symbol_size * symbol_size);
        // The last symbol, if it is short, is the only one that is copied.
        let mut last = vec![0; if rest.is_empty() { 0 } else { symbol_size }];
        last[..rest.len()].copy_from_slice(rest);
        let inputs = Inputs { symbol_size, first: whole, second: &last };
        let k = self.shape.source_symbols();
        let intermediate = Intermediate::new(Level::detect(), &plan.0, k, inputs);
        RepairSymbols(Repair::RaptorQ(Box::new(intermediate)))
    }
}
