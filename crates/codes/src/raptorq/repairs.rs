use super::parameters::Parameters;
use super::rows::Rows;

/// Equations in a chunk.
const CHUNK: usize = 128;

/// The equations of the first K' repair symbols, a chunk of which is made when one of them is first
/// asked for: block after block is decoded from the same ones.
pub(crate) struct Repairs {
    #[cfg(feature = "std")]
    chunks: alloc::boxed::Box<[std::sync::OnceLock<Rows>]>,
}

impl Repairs {
    #[cfg(feature = "std")]
    pub(crate) fn new(p: &Parameters) -> Self {
        let chunks = (0..p.extended.div_ceil(CHUNK)).map(|_| std::sync::OnceLock::new());
        Self { chunks: chunks.collect() }
    }

    /// Without a lock nothing is kept.
    #[cfg(not(feature = "std"))]
    pub(crate) const fn new(_p: &Parameters) -> Self {
        Self {}
    }

    /// Adds the equation of the repair symbol with internal identifier `isi`, whose value is input
    /// `input`.
    pub(crate) fn push(&self, rows: &mut Rows, p: &Parameters, isi: u32, input: u32) {
        let number = isi as usize - p.extended;
        match self.chunk(p, number / CHUNK) {
            Some(chunk) => rows.push_row(chunk, number % CHUNK, input),
            None => rows.push(p, isi, input),
        }
    }

    #[cfg(feature = "std")]
    fn chunk(&self, p: &Parameters, number: usize) -> Option<&Rows> {
        let make = || {
            let mut rows = Rows::with_capacity(CHUNK);
            let first = (p.extended + number * CHUNK) as u32;
            (first..first + CHUNK as u32).for_each(|isi| rows.push(p, isi, super::rows::NO_INPUT));
            rows
        };
        Some(self.chunks.get(number)?.get_or_init(make))
    }

    #[cfg(not(feature = "std"))]
    const fn chunk(&self, _p: &Parameters, _number: usize) -> Option<&Rows> {
        None
    }

    /// Bytes that they may come to take in memory.
    pub(crate) fn memory(&self) -> usize {
        #[cfg(feature = "std")]
        return self.chunks.len()
            * (size_of::<std::sync::OnceLock<Rows>>() + Rows::bytes_of(CHUNK));
        #[cfg(not(feature = "std"))]
        0
    }
}
