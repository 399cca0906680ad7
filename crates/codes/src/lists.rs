use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::lt::{LtGraph, LtReader};
use crate::precode::Precode;

/// The equations that each symbol is in: the checks, and the first encoded symbols. They are the
/// same for every message of a code.
#[derive(Debug)]
pub(crate) struct Lists {
    /// For each check, which is an equation that always holds, how many symbols it ties together,
    /// and the exclusive or of their numbers. They are the first equations; encoded symbol i is the
    /// ith behind them.
    pub(crate) checks: Vec<(u16, u16)>,
    /// Encoded symbols that are listed.
    pub(crate) listed: u32,
    starts: Vec<u32>,
    equations: Vec<u16>,
}

impl Lists {
    /// The lists of `symbols` symbols.
    pub(crate) fn new(precode: &Precode, graph: &Arc<LtGraph>, symbols: usize) -> Self {
        let checks = precode.sums.len();
        // What a block needs without loss, and some more, if 16 bits can number them.
        let listed = (symbols + symbols / 4).min((1 << 16) - checks) as u32;
        let mut reader = LtReader::new(Arc::clone(graph));
        let mut starts = vec![0; symbols + 1];
        reader.each(0..listed, |_, row| {
            row.iter().for_each(|symbol| starts[usize::from(*symbol)] += 1);
        });
        let mut total = 0;
        for (symbol, start) in starts[..symbols].iter_mut().enumerate() {
            // Ends, until all but the checks are in.
            total += *start + precode.of(symbol).len() as u32;
            *start = total;
        }
        starts[symbols] = total;
        let mut equations = vec![0; total as usize];
        reader.each(0..listed, |index, row| {
            for symbol in row {
                let place = &mut starts[usize::from(*symbol)];
                *place -= 1;
                equations[*place as usize] = (checks + index as usize) as u16;
            }
        });
        for (symbol, start) in starts[..symbols].iter_mut().enumerate() {
            let checks = precode.of(symbol);
            *start -= checks.len() as u32;
            equations[*start as usize..][..checks.len()].copy_from_slice(checks);
        }
        Self { checks: precode.sums.clone(), listed, starts, equations }
    }

    /// Bytes that they take in memory.
    #[cfg(feature = "std")]
    pub(crate) fn memory(&self) -> usize {
        4 * (self.checks.capacity() + self.starts.capacity()) + 2 * self.equations.capacity()
    }

    /// The symbols that there are.
    pub(crate) const fn symbols(&self) -> usize {
        self.starts.len() - 1
    }

    /// The equations that a symbol is in.
    #[inline(always)]
    pub(crate) fn of(&self, symbol: u16) -> &[u16] {
        let symbol = usize::from(symbol);
        &self.equations[self.starts[symbol] as usize..self.starts[symbol + 1] as usize]
    }
}
