use alloc::vec;
use alloc::vec::Vec;

use crate::taus88::Taus88;

/// Sparse checks of a message: which checks each of its symbols is in. A check is a symbol of its
/// own, behind those of the message: the sum of its members and of itself is zero.
#[derive(Debug)]
pub(crate) struct Precode {
    message: usize,
    /// Checks that a symbol of the message is in.
    degree: usize,
    /// These checks, symbol after symbol; then each check itself.
    checks: Vec<u16>,
    /// For each check, how many symbols it ties together, and the exclusive or of their numbers.
    pub(crate) sums: Vec<(u16, u16)>,
    /// The generator's state behind the draws.
    pub(crate) state: [u32; 3],
}

impl Precode {
    /// Draws `degree` distinct checks of `checks` for each symbol of the message, in order.
    ///
    /// # Panics
    /// If message and checks are more than 65,535 symbols together with a check, 65,536 without.
    pub(crate) fn new(message: usize, checks: usize, degree: usize, seed: [u32; 3]) -> Self {
        let limit = if checks == 0 { 1 << 16 } else { (1 << 16) - 1 };
        assert!(message <= limit && message + checks <= 1 << 16, "symbols have 16 bits");
        let mut generator = Taus88::new(seed);
        let degree = degree.min(checks);
        let mut all: Vec<u16> = Vec::with_capacity(message * degree + checks);
        let mut sums = vec![(1, 0); checks];
        for (check, sum) in sums.iter_mut().enumerate() {
            sum.1 = (message + check) as u16;
        }
        for symbol in 0..message {
            let start = all.len();
            while all.len() < start + degree {
                let check = generator.below(checks as u32) as u16;
                if !all[start..].contains(&check) {
                    all.push(check);
                    let (members, numbers) = &mut sums[usize::from(check)];
                    *members += 1;
                    *numbers ^= symbol as u16;
                }
            }
        }
        all.extend((0..checks).map(|check| check as u16));
        Self { message, degree, checks: all, sums, state: generator.state() }
    }

    /// Bytes that it takes in memory.
    #[cfg(feature = "std")]
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + 2 * self.checks.capacity() + 4 * self.sums.capacity()
    }

    /// Symbols of the message, and checks.
    pub(crate) const fn symbols(&self) -> usize {
        self.message + self.sums.len()
    }

    /// The checks that a symbol is in.
    #[inline(always)]
    pub(crate) fn of(&self, symbol: usize) -> &[u16] {
        if symbol < self.message {
            &self.checks[symbol * self.degree..][..self.degree]
        } else {
            let own = self.message * self.degree + (symbol - self.message);
            &self.checks[own..=own]
        }
    }

    /// For each symbol of the message, the checks that it is in.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u16]> {
        (0..self.message).map(|symbol| self.of(symbol))
    }
}
