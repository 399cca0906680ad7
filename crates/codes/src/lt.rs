//! LT codes: which of n symbols each encoded symbol is the sum of.

#[cfg(feature = "std")]
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::degrees::{Distribution, Sampler};
use crate::taus88::Taus88;

/// Draws the graph of an LT code, row after row, all from one generator: one number for the degree,
/// then one for each neighbour, repeats rejected.
#[derive(Clone, Debug)]
pub(crate) struct RowGenerator {
    sampler: Arc<Sampler>,
    symbols: u32,
    generator: Taus88,
    /// A bit for each symbol that is in the row, to know repeats; zeros between rows.
    chosen: Vec<u64>,
}

impl RowGenerator {
    /// The rows over `symbols` symbols (1 to 65,536) that begin with this state of the generator.
    pub(crate) fn new(distribution: Distribution, symbols: usize, state: [u32; 3]) -> Self {
        Self {
            sampler: Arc::new(Sampler::new(distribution, symbols)),
            symbols: symbols as u32,
            generator: Taus88::new(state),
            chosen: vec![0; symbols.div_ceil(64)],
        }
    }

    /// The generator's state before the next row.
    pub(crate) fn state(&self) -> [u32; 3] {
        self.generator.state()
    }

    /// Goes on from this state.
    pub(crate) fn restart(&mut self, state: [u32; 3]) {
        self.generator = Taus88::new(state);
    }

    /// Appends the next row.
    pub(crate) fn draw(&mut self, row: &mut Vec<u16>) {
        let degree = self.sampler.draw(&mut self.generator);
        let start = row.len();
        while row.len() < start + degree {
            let symbol = self.generator.below(self.symbols);
            let (word, bit) = (&mut self.chosen[symbol as usize / 64], 1 << (symbol % 64));
            if *word & bit == 0 {
                *word |= bit;
                row.push(symbol as u16);
            }
        }
        for symbol in &row[start..] {
            self.chosen[usize::from(*symbol) / 64] = 0;
        }
    }
}

/// Rows in a chunk.
const CHUNK: u32 = 256;

/// Rows one after another.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// The generator's state before the first.
    state: [u32; 3],
    columns: Vec<u16>,
    ends: Vec<u32>,
}

impl Chunk {
    fn draw(generator: &mut RowGenerator) -> Self {
        let state = generator.state();
        let (mut columns, mut ends) = (Vec::new(), Vec::with_capacity(CHUNK as usize));
        for _ in 0..CHUNK {
            generator.draw(&mut columns);
            ends.push(columns.len() as u32);
        }
        columns.shrink_to_fit();
        Self { state, columns, ends }
    }

    #[cfg(feature = "std")]
    fn memory(&self) -> usize {
        size_of::<Self>() + 2 * self.columns.capacity() + 4 * self.ends.capacity()
    }

    /// The rows from number `first` of the chunk on.
    pub(crate) fn rows(&self, first: u32) -> impl Iterator<Item = &[u16]> {
        let first = first as usize;
        let start = first.checked_sub(1).map_or(0, |last| self.ends[last] as usize);
        let mut rest = &self.columns[start..];
        let mut before = start;
        self.ends[first..].iter().map(move |end| {
            let (row, after) = rest.split_at(*end as usize - before);
            (rest, before) = (after, *end as usize);
            row
        })
    }
}

/// The graph of an LT code. As rows come from one generator, they are cheap in order; chunks of
/// them are kept for all who share the graph, as far as a limit, and states on the way beyond it.
#[derive(Debug)]
pub(crate) struct LtGraph {
    begin: RowGenerator,
    /// Chunks that are kept.
    #[cfg(feature = "std")]
    limit: u32,
    #[cfg(feature = "std")]
    kept: std::sync::Mutex<Kept>,
}

#[cfg(feature = "std")]
#[derive(Debug)]
struct Kept {
    chunks: Vec<Arc<Chunk>>,
    /// By the generator's state before them.
    numbers: BTreeMap<[u32; 3], u32>,
    /// Before the chunk behind the last that is kept.
    generator: RowGenerator,
    memory: usize,
}

/// One who reads a graph.
#[derive(Clone, Debug)]
pub(crate) struct LtReader {
    graph: Arc<LtGraph>,
    chunk: Option<(u32, Arc<Chunk>)>,
    /// Beyond what is kept: states before every chunk as far as anybody has asked, and the
    /// generator behind the last of them.
    states: Vec<[u32; 3]>,
    generator: Option<RowGenerator>,
}

impl LtGraph {
    /// The graph over `symbols` symbols whose generator begins with this state.
    pub(crate) fn new(distribution: Distribution, symbols: usize, state: [u32; 3]) -> Self {
        let begin = RowGenerator::new(distribution, symbols, state);
        Self {
            // What a block needs at reasonable losses, and some packets.
            #[cfg(feature = "std")]
            limit: 4 + 2 * symbols as u32 / CHUNK,
            #[cfg(feature = "std")]
            kept: std::sync::Mutex::new(Kept {
                chunks: Vec::new(),
                numbers: BTreeMap::new(),
                generator: begin.clone(),
                memory: 0,
            }),
            begin,
        }
    }

    fn generator(&self, state: [u32; 3]) -> RowGenerator {
        RowGenerator { generator: Taus88::new(state), ..self.begin.clone() }
    }

    /// Bytes that it takes in memory now.
    #[cfg(feature = "std")]
    pub(crate) fn memory(&self) -> usize {
        self.lock().memory
    }

    #[cfg(feature = "std")]
    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A chunk that is kept; `None` beyond the limit.
    #[cfg(feature = "std")]
    fn chunk(&self, number: u32) -> Option<Arc<Chunk>> {
        if number >= self.limit {
            return None;
        }
        let mut kept = self.lock();
        let Kept { chunks, numbers, generator, memory } = &mut *kept;
        while chunks.len() <= number as usize {
            let chunk = Chunk::draw(generator);
            numbers.insert(chunk.state, chunks.len() as u32);
            *memory += chunk.memory();
            chunks.push(Arc::new(chunk));
        }
        Some(Arc::clone(&chunks[number as usize]))
    }

    /// The number of the encoded symbol whose row the generator makes from `state`; `None` if it is
    /// not among those of kept chunks.
    #[cfg(feature = "std")]
    fn find(&self, state: [u32; 3]) -> Option<u32> {
        let mut generator = self.generator(state);
        let mut row = Vec::new();
        let kept = self.lock();
        (0..CHUNK).find_map(|before| {
            let number = kept.numbers.get(&generator.state());
            row.clear();
            generator.draw(&mut row);
            (number? * CHUNK).checked_sub(before)
        })
    }

    /// Without a lock nothing is kept.
    #[cfg(not(feature = "std"))]
    fn chunk(&self, _number: u32) -> Option<Arc<Chunk>> {
        None
    }

    #[cfg(not(feature = "std"))]
    fn find(&self, _state: [u32; 3]) -> Option<u32> {
        None
    }
}

impl LtReader {
    pub(crate) const fn new(graph: Arc<LtGraph>) -> Self {
        Self { graph, chunk: None, states: Vec::new(), generator: None }
    }

    /// Draws the graph's rows from a state on.
    pub(crate) fn generator(&self, state: [u32; 3]) -> RowGenerator {
        self.graph.generator(state)
    }

    /// The symbols that encoded symbol `index` is the sum of.
    pub(crate) fn row(&mut self, index: u32) -> &[u16] {
        self.chunk(index / CHUNK).rows(index % CHUNK).next().expect("a chunk has all of its rows")
    }

    /// Calls `work` with each of these encoded symbols, and the symbols that it is the sum of.
    #[inline(always)]
    pub(crate) fn each(&mut self, indices: Range<u32>, mut work: impl FnMut(u32, &[u16])) {
        let mut index = indices.start;
        while index < indices.end {
            let rows = self.chunk(index / CHUNK).rows(index % CHUNK);
            let end = indices.end.min((index / CHUNK + 1) * CHUNK);
            (index..end).zip(rows).for_each(|(index, row)| work(index, row));
            index = end;
        }
    }

    /// The number of the encoded symbol whose row the generator makes from `state`, if that is
    /// cheap to say.
    pub(crate) fn find(&self, state: [u32; 3]) -> Option<u32> {
        self.graph.find(state)
    }

    /// The generator's state before encoded symbol `index`.
    pub(crate) fn state(&mut self, index: u32) -> [u32; 3] {
        let state = self.chunk(index / CHUNK).state;
        let mut generator = self.graph.generator(state);
        let mut row = Vec::new();
        (0..index % CHUNK).for_each(|_| {
            row.clear();
            generator.draw(&mut row);
        });
        generator.state()
    }

    fn chunk(&mut self, number: u32) -> &Chunk {
        let known = self.chunk.take().filter(|(known, _)| *known == number);
        let chunk = known
            .map(|(_, chunk)| chunk)
            .or_else(|| self.graph.chunk(number))
            .unwrap_or_else(|| Arc::new(self.draw(number)));
        &self.chunk.insert((number, chunk)).1
    }

    /// A chunk that nobody keeps.
    fn draw(&mut self, number: u32) -> Chunk {
        let generator = self.generator.get_or_insert_with(|| self.graph.begin.clone());
        if let Some(state) = self.states.get(number as usize) {
            generator.restart(*state);
            return Chunk::draw(generator);
        }
        if let Some(last) = self.states.last() {
            generator.restart(*last);
            Chunk::draw(generator);
        }
        loop {
            self.states.push(generator.state());
            let chunk = Chunk::draw(generator);
            if self.states.len() > number as usize {
                return chunk;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_the_same_in_any_order_and_from_any_state() {
        let graph = || Arc::new(LtGraph::new(Distribution::Shokrollahi, 500, [1, 2, 3]));
        let mut generator = RowGenerator::new(Distribution::Shokrollahi, 500, [1, 2, 3]);
        let (mut all, mut states) = (Vec::new(), Vec::new());
        for _ in 0..3000 {
            states.push(generator.state());
            let mut row = Vec::new();
            generator.draw(&mut row);
            all.push(row);
        }
        let mut reader = LtReader::new(graph());
        // What is kept ends in between.
        for i in [2999, 1791, 3, 4, 300, 255, 256, 257, 1024, 0, 1023, 1792, 2600, 2000, 2047, 2048]
        {
            assert_eq!(reader.row(i), all[i as usize], "symbol {i}");
            assert_eq!(reader.state(i), states[i as usize], "symbol {i}");
            let found = reader.find(states[i as usize]);
            assert_eq!(found, (i <= 1536).then_some(i), "symbol {i}");
        }
        let mut next = 700;
        LtReader::new(graph()).each(700..2900, |i, row| {
            assert_eq!((i, row), (next, &all[i as usize][..]));
            next += 1;
        });
        assert_eq!(next, 2900);
        for row in &all {
            let mut sorted = row.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), row.len(), "neighbours are distinct");
        }
    }
}
