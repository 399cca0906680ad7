use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use crate::block::BlockShape;
use crate::code::Code;
use crate::raptorq::cache;
use crate::raptorq::encoding_plan::EncodingPlan;
use crate::raptorq::intermediate::{Intermediate, encode_once};
use crate::raptorq::parameters::Parameters;
use crate::raptorq::strips::Inputs;
use crate::reed_solomon;
use crate::simd::Level;
use crate::sparse::SparseEncoder;

/// Makes the symbols of one block. The source data is borrowed from the caller's buffer, never
/// copied.
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
pub struct RepairSymbols {
    shape: BlockShape,
    repair: Repair,
}

enum Repair {
    Raptor(Box<Intermediate>),
    Sparse(Box<SparseEncoder>),
    /// All repair symbols there are.
    Block(Vec<u8>),
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

    /// The work that must be done, and given to [`set_repair`](Self::set_repair), before repair
    /// symbols can be had.
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

    /// Symbol `esi`: a slice of the block for a source symbol (the last one without its padding).
    /// `None` for a repair symbol that is not available yet, and beyond the code's limit.
    pub fn symbol(&self, esi: u32) -> Option<Bytes> {
        if esi < self.shape.source_symbols() {
            let range = self.shape.source_range(esi);
            return Some(if self.shape.code().carries_bytes() {
                self.data.slice(range)
            } else {
                Bytes::new()
            });
        }
        if esi >= self.shape.esi_limit() {
            return None;
        }
        let repair = self.repair.as_ref()?;
        let mut symbol = vec![0; self.shape.repair_len()];
        repair.write(esi..esi + 1, &mut symbol);
        Some(Bytes::from(symbol))
    }

    /// Writes repair symbols, one after another, into the caller's buffer, which must have room for
    /// just these; false if they are not available: before [`set_repair`](Self::set_repair), and
    /// outside k..limit.
    ///
    /// # Panics
    /// If the buffer has another size.
    pub fn write_repair(&self, esis: Range<u32>, out: &mut [u8]) -> bool {
        assert_eq!(out.len(), esis.len() * self.shape.repair_len(), "the symbols fill the buffer");
        let is_valid =
            esis.start >= self.shape.source_symbols() && esis.end <= self.shape.esi_limit();
        match &self.repair {
            Some(repair) if is_valid => {
                repair.write(esis, out);
                true
            }
            _ => false,
        }
    }
}

impl RepairSymbols {
    /// How the block is cut that these symbols belong to.
    pub const fn shape(&self) -> BlockShape {
        self.shape
    }

    fn write(&self, esis: Range<u32>, out: &mut [u8]) {
        let first = esis.start - self.shape.source_symbols();
        match &self.repair {
            Repair::Raptor(intermediate) => intermediate.symbols(esis, out),
            Repair::Sparse(encoder) => encoder.write(first, out),
            Repair::Block(symbols) => {
                let start = first as usize * self.shape.repair_len();
                out.copy_from_slice(&symbols[start..][..out.len()]);
            }
            Repair::Counting => {}
        }
    }
}

impl RepairJob {
    /// Does the work; if the code has encoding plans, with one from the process's cache.
    pub fn run(self) -> RepairSymbols {
        let (shape, k) = (self.shape, self.shape.source_symbols());
        let symbol_size = usize::from(shape.symbol_size());
        let repair = if let Some(parameters) = self.parameters() {
            return self.run_with(&cache::plan(&parameters));
        } else if let Some(code) = shape.code().sparse(k) {
            Repair::Sparse(Box::new(SparseEncoder::new(&code, symbol_size, &self.data)))
        } else if shape.code() == Code::ReedSolomon {
            let mut data = self.data.to_vec();
            data.resize(shape.padded_len(), 0);
            Repair::Block(reed_solomon::encode(k, symbol_size, &data))
        } else {
            Repair::Counting
        };
        RepairSymbols { shape, repair }
    }

    /// Does the work with this plan, which must be of the code for blocks of so many symbols; a
    /// code without plans ignores it.
    ///
    /// # Panics
    /// If the plan is another block's.
    pub fn run_with(self, plan: &EncodingPlan) -> RepairSymbols {
        let Some(parameters) = self.parameters() else { return self.run() };
        let (shape, k) = (self.shape, self.shape.source_symbols());
        assert_eq!(plan.plan.parameters, parameters, "the plan is for such blocks");
        let intermediate =
            self.with_inputs(|inputs| Intermediate::new(Level::detect(), &plan.plan, k, inputs));
        RepairSymbols { shape, repair: Repair::Raptor(Box::new(intermediate)) }
    }

    /// Writes these repair symbols into the caller's buffer, which must have room for just these,
    /// and keeps nothing. With the Raptor codes this is quicker, and takes far less memory, than
    /// [`run`](Self::run) for one who knows what is wanted.
    ///
    /// # Panics
    /// If the buffer has another size, or one of the symbols is no repair symbol of the block.
    pub fn write(self, esis: Range<u32>, out: &mut [u8]) {
        self.check(&esis, out.len());
        match self.parameters() {
            Some(parameters) => self.write_with(&cache::plan(&parameters), esis, out),
            None => self.run().write(esis, out),
        }
    }

    /// Like [`write`](Self::write), with this plan, which must be of the code for blocks of so many
    /// symbols.
    ///
    /// # Panics
    /// As [`write`](Self::write), and if the plan is another block's.
    pub fn write_with(self, plan: &EncodingPlan, esis: Range<u32>, out: &mut [u8]) {
        self.check(&esis, out.len());
        let Some(parameters) = self.parameters() else { return self.write(esis, out) };
        assert_eq!(plan.plan.parameters, parameters, "the plan is for such blocks");
        let k = self.shape.source_symbols();
        self.with_inputs(|inputs| encode_once(Level::detect(), plan, k, inputs, esis, out));
    }

    fn parameters(&self) -> Option<Parameters> {
        Parameters::of(self.shape.code().family()?, self.shape.source_symbols())
    }

    fn check(&self, esis: &Range<u32>, len: usize) {
        let shape = self.shape;
        assert_eq!(len, esis.len() * shape.repair_len(), "the symbols fill the buffer");
        let is_valid = esis.start >= shape.source_symbols() && esis.end <= shape.esi_limit();
        assert!(is_valid, "{esis:?} are not all repair symbols of the block");
    }

    fn with_inputs<R>(&self, work: impl FnOnce(Inputs) -> R) -> R {
        let symbol_size = usize::from(self.shape.symbol_size());
        let (whole, rest) = self.data.split_at(self.data.len() / symbol_size * symbol_size);
        // The last symbol, if it is short, is the only one that is copied.
        let mut last = vec![0; if rest.is_empty() { 0 } else { symbol_size }];
        last[..rest.len()].copy_from_slice(rest);
        work(Inputs { symbol_size, first: whole, second: &last })
    }
}
