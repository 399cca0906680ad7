//! LT codes: which of n symbols each encoded symbol is the sum of.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::degrees::{Distribution, Sampler};
use crate::taus88::Taus88;

/// Encoded symbols between states that are kept.
const INTERVAL: u32 = 256;

/// The graph of an LT code, symbol after symbol. All draws come from one generator (one for the degree, then one for
/// each neighbour, repeats rejected), so symbols are cheap in order; states on the way are kept for others.
#[derive(Clone, Debug)]
pub(crate) struct LtGraph {
    sampler: Arc<Sampler>,
    symbols: u32,
    /// The generator before every [`INTERVAL`]th symbol, as far as anybody has asked.
    states: Vec<Taus88>,
    /// The generator before symbol `next`.
    generator: Taus88,
    next: u32,
    neighbours: Vec<u16>,
    /// A bit for each symbol that is among the neighbours, to know repeats.
    chosen: Vec<u64>,
}

impl LtGraph {
    /// The graph over `symbols` symbols (1 to 65,536) that begins with this state of the generator.
    pub(crate) fn new(distribution: Distribution, symbols: usize, seed: [u32; 3]) -> Self {
        let generator = Taus88::new(seed);
        Self {
            sampler: Arc::new(Sampler::new(distribution, symbols)),
            symbols: symbols as u32,
            states: vec![generator],
            generator,
            next: 0,
            neighbours: Vec::new(),
            chosen: vec![0; symbols.div_ceil(64)],
        }
    }

    /// The symbols that encoded symbol `index` is the sum of.
    pub(crate) fn neighbours(&mut self, index: u32) -> &[u16] {
        let known = (index / INTERVAL).min(self.states.len() as u32 - 1);
        if index < self.next || known * INTERVAL > self.next {
            self.next = known * INTERVAL;
            self.generator = self.states[known as usize];
        }
        while self.next <= index {
            self.advance();
        }
        &self.neighbours
    }

    /// The generator's state before encoded symbol `index`.
    pub(crate) fn state(&mut self, index: u32) -> [u32; 3] {
        if index == 0 {
            return self.states[0].state();
        }
        self.neighbours(index - 1);
        self.generator.state()
    }

    /// Goes on from this state, as the one before symbol 0.
    pub(crate) fn restart(&mut self, state: [u32; 3]) {
        self.generator = Taus88::new(state);
        self.states.truncate(1);
        self.states[0] = self.generator;
        self.next = 0;
    }

    fn advance(&mut self) {
        let degree = self.sampler.draw(&mut self.generator);
        for symbol in self.neighbours.drain(..) {
            self.chosen[usize::from(symbol) / 64] = 0;
        }
        while self.neighbours.len() < degree {
            let symbol = self.generator.below(self.symbols);
            let (word, bit) = (&mut self.chosen[symbol as usize / 64], 1 << (symbol % 64));
            if *word & bit == 0 {
                *word |= bit;
                self.neighbours.push(symbol as u16);
            }
        }
        self.next += 1;
        if self.next.is_multiple_of(INTERVAL) && self.next / INTERVAL == self.states.len() as u32 {
            self.states.push(self.generator);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_the_same_in_any_order() {
        let graph = || LtGraph::new(Distribution::Shokrollahi, 500, [1, 2, 3]);
        let mut in_order = graph();
        let all: Vec<Vec<u16>> = (0..2000).map(|i| in_order.neighbours(i).to_vec()).collect();
        let mut other = graph();
        for i in [1999, 3, 4, 300, 255, 256, 257, 1024, 0, 1023] {
            assert_eq!(other.neighbours(i), all[i as usize], "symbol {i}");
        }
        for neighbours in &all {
            let mut sorted = neighbours.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), neighbours.len(), "neighbours are distinct");
        }
    }
}
