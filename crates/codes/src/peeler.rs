use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::lists::Lists;
use crate::simd::prefetch::prefetch;

/// Belief propagation over erasures: equations of one unknown give it, and it goes out of all
/// others. When nothing more follows, the state stays, and the next equation goes on from it.
pub(crate) struct Peeler {
    /// The equations of each unknown, whether they have come or not.
    lists: Arc<Lists>,
    /// For each unknown, the list of equations that have it and are not in `lists`: index into
    /// `links`. Made for the first of them.
    heads: Vec<u32>,
    links: Vec<(u32, u32)>,
    state: State,
}

/// Unknowns and equations.
struct State {
    symbol_size: usize,
    /// All unknowns' values; zero where unknown.
    values: Vec<u8>,
    is_known: Vec<bool>,
    /// Of the first `wanted` unknowns, how many are still unknown.
    wanted: usize,
    missing: usize,
    equations: Vec<Equation>,
    /// What the unknowns that are left of an equation sum to: one sum for each equation, or, if
    /// symbols are large, for those that came, and `places` says where.
    sums: Vec<u8>,
    places: Vec<u32>,
    /// What has become known and is still in equations.
    ripple: Vec<u16>,
}

/// It has at most 65,535 unknowns, as rows that are drawn have; one of 65,536 is dropped
/// ([`State::take`]).
#[derive(Clone, Copy)]
struct Equation {
    /// Unknowns left; none if the equation has not come.
    left: u16,
    /// The exclusive or of their numbers.
    numbers: u16,
}

const NOTHING: Equation = Equation { left: 0, numbers: 0 };

const END: u32 = u32::MAX;

/// Symbols that are larger are worth looking up where their sums are.
const LARGE: usize = 8;

/// Unknowns between asking for a list and using it.
const AHEAD: usize = 3;

impl Peeler {
    /// All symbols that these lists have are unknown; the first `wanted` are wanted.
    pub(crate) fn new(lists: Arc<Lists>, wanted: usize, symbol_size: usize) -> Self {
        let (unknowns, checks) = (lists.symbols(), lists.checks.len());
        let mut equations = vec![NOTHING; checks + lists.listed as usize];
        for (equation, (left, numbers)) in equations.iter_mut().zip(&lists.checks) {
            *equation = Equation { left: *left, numbers: *numbers };
        }
        let state = State {
            symbol_size,
            values: vec![0; unknowns * symbol_size],
            is_known: vec![false; unknowns],
            wanted,
            missing: wanted,
            sums: vec![0; if symbol_size > LARGE { checks } else { equations.len() } * symbol_size],
            places: if symbol_size > LARGE { (0..checks as u32).collect() } else { Vec::new() },
            equations,
            ripple: Vec::new(),
        };
        Self { lists, heads: Vec::new(), links: Vec::new(), state }
    }

    /// Bytes of a symbol.
    pub(crate) const fn symbol_size(&self) -> usize {
        self.state.symbol_size
    }

    /// Wanted symbols that are still unknown.
    pub(crate) const fn missing(&self) -> usize {
        self.state.missing
    }

    /// The wanted symbols.
    pub(crate) fn wanted(&self) -> &[u8] {
        &self.state.values[..self.state.wanted * self.state.symbol_size]
    }

    /// Takes the value of an unknown; one that is known already stays as it is.
    pub(crate) fn learn(&mut self, unknown: u16, value: &[u8]) {
        let (u, size) = (usize::from(unknown), self.state.symbol_size);
        if !self.state.is_known[u] {
            self.state.values[u * size..][..size].copy_from_slice(value);
            self.state.found(unknown);
            self.follow();
        }
    }

    /// Takes encoded symbol `index`, the sum of these unknowns.
    pub(crate) fn add(&mut self, index: u32, unknowns: &[u16], sum: &[u8]) {
        if index >= self.lists.listed {
            return self.add_other(unknowns, sum);
        }
        let number = self.lists.checks.len() + index as usize;
        if let Some(equation) = self.state.take(number, unknowns, sum) {
            self.state.equations[number] = equation;
        }
        self.follow();
    }

    /// Takes the equation that the sum of these unknowns is `sum`, when nothing lists it.
    pub(crate) fn add_other(&mut self, unknowns: &[u16], sum: &[u8]) {
        let number = self.state.equations.len();
        if let Some(equation) = self.state.take(number, unknowns, sum) {
            let Self { heads, links, state, .. } = self;
            state.equations.push(equation);
            heads.resize(state.is_known.len(), END);
            for unknown in unknowns {
                if !state.is_known[usize::from(*unknown)] {
                    let head = &mut heads[usize::from(*unknown)];
                    links.push((number as u32, *head));
                    *head = links.len() as u32 - 1;
                }
            }
        }
        self.follow();
    }

    /// Takes what has become known out of all equations.
    fn follow(&mut self) {
        if self.state.ripple.is_empty() {
            return;
        }
        // Symbols of one byte are so many that a loop over one costs as much as all else.
        if self.state.symbol_size == 1 {
            self.follow_by::<true>();
        } else {
            self.follow_by::<false>();
        }
    }

    #[inline(always)]
    fn follow_by<const BYTES: bool>(&mut self) {
        let (size, wanted) = (self.state.symbol_size, self.state.wanted);
        let State { values, is_known, missing, equations, sums, places, ripple, .. } =
            &mut self.state;
        // Slices, so that nothing is looked up again behind every write.
        let (values, is_known) = (&mut values[..], &mut is_known[..]);
        let (equations, sums) = (&mut equations[..], &mut sums[..]);
        let places = &places[..];
        let mut remove = |ripple: &mut Vec<u16>, unknown: u16, index: usize| {
            if equations[index].left == 0 {
                return;
            }
            if BYTES {
                sums[index] ^= values[usize::from(unknown)];
            } else {
                let value = &values[usize::from(unknown) * size..][..size];
                add(&mut sums[place(places, index, size)], value);
            }
            let equation = &mut equations[index];
            equation.left -= 1;
            equation.numbers ^= unknown;
            if equation.left == 1 {
                let last = usize::from(equation.numbers);
                if !core::mem::replace(&mut is_known[last], true) {
                    if BYTES {
                        values[last] = sums[index];
                    } else {
                        values[last * size..][..size]
                            .copy_from_slice(&sums[place(places, index, size)]);
                    }
                    *missing -= usize::from(last < wanted);
                    ripple.push(last as u16);
                }
            }
        };
        let mut next = 0;
        while let Some(unknown) = ripple.get(next).copied() {
            next += 1;
            if let Some(ahead) = ripple.get(next + AHEAD) {
                self.lists.of(*ahead).first().map(prefetch);
            }
            for number in self.lists.of(unknown) {
                remove(ripple, unknown, usize::from(*number));
            }
            let mut link = self.heads.get(usize::from(unknown)).copied().unwrap_or(END);
            while link != END {
                let (number, next) = self.links[link as usize];
                remove(ripple, unknown, number as usize);
                link = next;
            }
        }
        ripple.clear();
    }
}

/// Where the sum of an equation is.
#[inline(always)]
fn place(places: &[u32], number: usize, size: usize) -> Range<usize> {
    let at = if places.is_empty() { number } else { places[number] as usize };
    at * size..(at + 1) * size
}

impl State {
    /// What is left of the equation that the sum of these unknowns is `sum`, which is put in its
    /// place. `None` if that is no more than one unknown, which thereby is known, or if they are
    /// too many to count.
    #[inline(always)]
    fn take(&mut self, number: usize, unknowns: &[u16], sum: &[u8]) -> Option<Equation> {
        if unknowns.len() > usize::from(u16::MAX) {
            return None;
        }
        let size = self.symbol_size;
        let start = self.sums.len();
        let place = if size <= LARGE && number < self.equations.len() {
            let place = number * size;
            self.sums[place..place + size].copy_from_slice(sum);
            place
        } else {
            self.sums.extend_from_slice(sum);
            start
        };
        let kept = &mut self.sums[place..place + size];
        let mut equation = NOTHING;
        for unknown in unknowns {
            let u = usize::from(*unknown);
            if self.is_known[u] {
                add(kept, &self.values[u * size..][..size]);
            } else {
                equation.left += 1;
                equation.numbers ^= *unknown;
            }
        }
        if equation.left > 1 {
            if size > LARGE {
                self.places.resize(self.places.len().max(number + 1), 0);
                self.places[number] = (place / size) as u32;
            }
            return Some(equation);
        }
        if equation.left == 1 {
            let u = usize::from(equation.numbers);
            self.values[u * size..][..size].copy_from_slice(kept);
            self.found(equation.numbers);
        }
        self.sums.truncate(start);
        None
    }

    #[inline(always)]
    fn found(&mut self, unknown: u16) {
        self.is_known[usize::from(unknown)] = true;
        self.missing -= usize::from(usize::from(unknown) < self.wanted);
        self.ripple.push(unknown);
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
    use crate::degrees::Distribution;
    use crate::lt::LtGraph;
    use crate::precode::Precode;

    fn peeler(unknowns: usize, wanted: usize) -> Peeler {
        let precode = Precode::new(unknowns, 0, 0, [0; 3]);
        let graph = Arc::new(LtGraph::new(Distribution::Shokrollahi, unknowns, [0; 3]));
        Peeler::new(Arc::new(Lists::new(&precode, &graph, unknowns)), wanted, 1)
    }

    #[test]
    fn equations_solve_each_other_in_any_order() {
        // x0 = 1, x0 + x1 = 3, x1 + x2 = 6, and x3 in nothing that follows.
        let equations: [(&[u16], u8); 4] = [(&[1, 2], 6), (&[0, 1], 3), (&[2, 3, 4], 9), (&[0], 1)];
        for rotation in 0..4 {
            let mut peeler = peeler(5, 3);
            for i in 0..4 {
                let (unknowns, sum) = equations[(i + rotation) % 4];
                peeler.add_other(unknowns, &[sum]);
            }
            assert_eq!((peeler.missing(), peeler.wanted()), (0, &[1, 2, 4][..]));
        }
    }

    #[test]
    fn an_equation_of_all_symbols_is_not_counted_wrongly() {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let mut peeler = peeler(1 << 16, 1 << 16);
        peeler.add_other(&all, &[1]);
        peeler.add_other(&all[1..], &[1]);
        assert_eq!(peeler.missing(), 1 << 16);
        for unknown in &all[2..] {
            peeler.learn(*unknown, &[0]);
        }
        assert_eq!((peeler.missing(), &peeler.wanted()[..3]), (1, &[0, 1, 0][..]));
    }

    #[test]
    fn repeats_and_contradictions_change_nothing() {
        let mut peeler = peeler(2, 2);
        peeler.add_other(&[0, 1], &[3]);
        peeler.add_other(&[0, 1], &[3]);
        assert_eq!(peeler.missing(), 2);
        peeler.add_other(&[0], &[1]);
        peeler.add_other(&[0], &[7]);
        peeler.add_other(&[], &[5]);
        assert_eq!((peeler.missing(), peeler.wanted()), (0, &[1, 2][..]));
    }
}
