use alloc::vec;
use alloc::vec::Vec;

/// Belief propagation over erasures: equations of one unknown give it, and it goes out of all others. When nothing
/// more follows, the state stays, and the next equation goes on from it.
pub(crate) struct Peeler {
    symbol_size: usize,
    /// All unknowns' values; zero where unknown.
    values: Vec<u8>,
    is_known: Vec<bool>,
    /// Of the first `wanted` unknowns, how many are still unknown.
    wanted: usize,
    missing: usize,
    /// For each unknown, the list of equations that have it: index into `links`.
    heads: Vec<u32>,
    links: Vec<(u32, u32)>,
    equations: Vec<Equation>,
    sums: Vec<u8>,
    ripple: Vec<u32>,
}

struct Equation {
    /// Unknowns left.
    left: u32,
    /// The exclusive or of their numbers.
    numbers: u32,
}

const END: u32 = u32::MAX;

impl Peeler {
    /// `unknowns` symbols, of which the first `wanted` are wanted.
    pub(crate) fn new(unknowns: usize, wanted: usize, symbol_size: usize) -> Self {
        Self {
            symbol_size,
            values: vec![0; unknowns * symbol_size],
            is_known: vec![false; unknowns],
            wanted,
            missing: wanted,
            heads: vec![END; unknowns],
            links: Vec::new(),
            equations: Vec::new(),
            sums: Vec::new(),
            ripple: Vec::new(),
        }
    }

    /// Bytes of a symbol.
    pub(crate) fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Wanted symbols that are still unknown.
    pub(crate) fn missing(&self) -> usize {
        self.missing
    }

    /// The wanted symbols.
    pub(crate) fn wanted(&self) -> &[u8] {
        &self.values[..self.wanted * self.symbol_size]
    }

    /// Takes the equation that the sum of these unknowns is `sum`.
    pub(crate) fn add(&mut self, unknowns: &[u16], sum: &[u8]) {
        let (index, start, first_link) =
            (self.equations.len() as u32, self.sums.len(), self.links.len());
        self.sums.extend_from_slice(sum);
        let (mut left, mut numbers) = (0, 0);
        for unknown in unknowns {
            let u = usize::from(*unknown);
            if self.is_known[u] {
                add(&mut self.sums[start..], &self.values[u * self.symbol_size..]);
            } else {
                left += 1;
                numbers ^= u32::from(*unknown);
                self.links.push((index, self.heads[u]));
                self.heads[u] = self.links.len() as u32 - 1;
            }
        }
        if left > 1 {
            self.equations.push(Equation { left, numbers });
            return;
        }
        // Nothing of it need be kept.
        if let Some((_, next)) = self.links.get(first_link).copied() {
            self.heads[numbers as usize] = next;
            self.links.truncate(first_link);
            let (values, size) = (&mut self.values, self.symbol_size);
            values[numbers as usize * size..][..size].copy_from_slice(&self.sums[start..]);
            self.found(numbers);
        }
        self.sums.truncate(start);
        self.follow();
    }

    fn found(&mut self, unknown: u32) {
        self.is_known[unknown as usize] = true;
        self.missing -= usize::from((unknown as usize) < self.wanted);
        self.ripple.push(unknown);
    }

    fn follow(&mut self) {
        let size = self.symbol_size;
        while let Some(unknown) = self.ripple.pop() {
            let mut link = self.heads[unknown as usize];
            while link != END {
                let (index, next) = self.links[link as usize];
                link = next;
                let equation = &mut self.equations[index as usize];
                if equation.left == 0 {
                    continue;
                }
                equation.left -= 1;
                equation.numbers ^= unknown;
                let (last, is_last) = (equation.numbers, equation.left == 1);
                let start = index as usize * size;
                let sum = &mut self.sums[start..start + size];
                add(sum, &self.values[unknown as usize * size..]);
                if is_last {
                    equation.left = 0;
                    if !self.is_known[last as usize] {
                        self.values[last as usize * size..][..size].copy_from_slice(sum);
                        self.found(last);
                    }
                }
            }
        }
    }
}

/// Adds a symbol of `sum`'s size.
#[inline(always)]
pub(crate) fn add(sum: &mut [u8], other: &[u8]) {
    // Symbols of one byte are so many that a loop over one costs as much as all else.
    if let ([sum], [other, ..]) = (&mut *sum, other) {
        *sum ^= other;
        return;
    }
    sum.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_solve_each_other_in_any_order() {
        // x0 = 1, x0 + x1 = 3, x1 + x2 = 6, and x3 in nothing that follows.
        let equations: [(&[u16], u8); 4] = [(&[1, 2], 6), (&[0, 1], 3), (&[2, 3, 4], 9), (&[0], 1)];
        for rotation in 0..4 {
            let mut peeler = Peeler::new(5, 3, 1);
            for i in 0..4 {
                let (unknowns, sum) = equations[(i + rotation) % 4];
                peeler.add(unknowns, &[sum]);
            }
            assert_eq!((peeler.missing(), peeler.wanted()), (0, &[1, 2, 4][..]));
        }
    }

    #[test]
    fn repeats_and_contradictions_change_nothing() {
        let mut peeler = Peeler::new(2, 2, 1);
        peeler.add(&[0, 1], &[3]);
        peeler.add(&[0, 1], &[3]);
        assert_eq!(peeler.missing(), 2);
        peeler.add(&[0], &[1]);
        peeler.add(&[0], &[7]);
        peeler.add(&[], &[5]);
        assert_eq!((peeler.missing(), peeler.wanted()), (0, &[1, 2][..]));
    }
}
