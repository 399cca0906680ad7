//! Plans replayed on bytes.

use super::hdpc::CHUNK;
use super::plan::{Plan, instructions};
use super::shortcut::Shortcut;
use super::strips::{Inputs, Strip};
use crate::simd::lane::{LINE, Lane};
use crate::simd::{Kernel, Level};

/// Instructions between asking for an input and using it: inputs come from memory, in an order that
/// no processor guesses, while slots are in a cache.
const AHEAD: usize = 8;

/// Slots of a strip: each has the strip's lines.
type Slots<'a, const N: usize> = &'a mut [[[u8; LINE]; N]];

/// Computes the intermediate symbols in the first L slots of `slots`, or only as much of them as a
/// shortcut takes; `slots` must have the lines of a strip for all slots of the plan and for its
/// tables.
pub(crate) fn replay(
    level: Level,
    plan: &Plan,
    shortcut: Option<&Shortcut>,
    inputs: Inputs,
    strip: Strip,
    slots: &mut [[u8; LINE]],
) {
    inputs.whole_lines(strip, |inputs, offset| {
        level.run(Replay { plan, shortcut, inputs, offset, lines: strip.lines, slots });
    });
}

struct Replay<'a> {
    plan: &'a Plan,
    shortcut: Option<&'a Shortcut<'a>>,
    inputs: Inputs<'a>,
    offset: usize,
    lines: usize,
    slots: &'a mut [[u8; LINE]],
}

impl Kernel for Replay<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lane>(self) {
        match self.lines {
            8 => self.strip::<L, 8>(),
            4 => self.strip::<L, 4>(),
            2 => self.strip::<L, 2>(),
            _ => self.strip::<L, 1>(),
        }
    }
}

impl Replay<'_> {
    #[inline(always)]
    fn strip<L: Lane, const N: usize>(self) {
        let Self { plan, shortcut, inputs, offset, slots, .. } = self;
        let slots = slots.as_chunks_mut::<N>().0;
        let dense = &plan.dense;
        sums::<L, N>(&plan.forward.0, slots, inputs, offset);
        for column in dense.solved.iter().chain(&dense.free) {
            slots[usize::from(*column)] = [[0; LINE]; N];
        }
        if !dense.free.is_empty() {
            hdpc::<L, N>(plan, slots);
        }
        tables::<L, N>(plan, slots);
        free::<L, N>(plan, slots);
        match shortcut {
            Some(shortcut) => combinations::<L, N>(plan, shortcut, slots),
            None => sums::<L, N>(&plan.backward.0, slots, inputs, offset),
        }
    }
}

#[inline(always)]
pub(crate) fn load<L: Lane, const N: usize>(lines: &[[u8; LINE]; N]) -> [L; N] {
    let mut value = [L::zero(); N];
    for (value, line) in value.iter_mut().zip(lines) {
        *value = L::load(line);
    }
    value
}

#[inline(always)]
pub(crate) fn store<L: Lane, const N: usize>(lines: &mut [[u8; LINE]; N], value: [L; N]) {
    for (line, value) in lines.iter_mut().zip(value) {
        value.store(line);
    }
}

#[inline(always)]
pub(crate) fn xor<L: Lane, const N: usize>(sum: &mut [L; N], other: [L; N]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = sum.xor(other);
    }
}

/// The sum of an input and of slots.
#[inline(always)]
pub(crate) fn sum<L: Lane, const N: usize>(
    slots: &[[[u8; LINE]; N]],
    inputs: Inputs,
    offset: usize,
    input: u32,
    columns: &[u16],
) -> [L; N] {
    let mut sum = match inputs.lines::<N>(input, offset) {
        Some(lines) => load(lines),
        None => [L::zero(); N],
    };
    for column in columns {
        xor(&mut sum, load(&slots[usize::from(*column)]));
    }
    sum
}

#[inline(always)]
fn sums<L: Lane, const N: usize>(program: &[u16], slots: Slots<N>, inputs: Inputs, offset: usize) {
    let mut ahead = instructions(program).skip(AHEAD);
    for (target, input, columns) in instructions(program) {
        if let Some(lines) = ahead.next().and_then(|(_, input, _)| inputs.lines::<N>(input, offset))
        {
            lines.iter().for_each(L::prefetch);
        }
        let sum = sum::<L, N>(slots, inputs, offset, input, columns);
        store(&mut slots[usize::from(target)], sum);
    }
}

/// Y[j] from Y[j−1].
#[inline(always)]
fn step<L: Lane, const N: usize>(y: &mut [L; N], column: &[[u8; LINE]; N]) {
    for (y, line) in y.iter_mut().zip(column) {
        *y = y.times_alpha().xor(L::load(line));
    }
}

/// The right-hand sides of the HDPC equations, as far as peeled columns go, into the slots behind
/// the left-over sums.
#[inline(always)]
fn hdpc<L: Lane, const N: usize>(plan: &Plan, slots: Slots<N>) {
    let p = &plan.parameters;
    let (columns, rest) = slots.split_at_mut(p.intermediate);
    let (sums, scratch) = rest[plan.dense.solved.len()..].split_at_mut(p.hdpc);
    sums.fill([[0; LINE]; N]);
    let mut y = [L::zero(); N];
    let (last, most) = columns[..p.extended + p.ldpc].split_last().expect("there are columns");
    let mut schedule = plan.dense.schedule.as_slice();
    for chunk in most.chunks(CHUNK) {
        for (column, kept) in chunk.iter().zip(&mut *scratch) {
            step(&mut y, column);
            store(kept, y);
        }
        for sum in &mut *sums {
            let Some((n, rest)) = schedule.split_first() else { return };
            let Some((members, rest)) = rest.split_at_checked(usize::from(*n)) else { return };
            schedule = rest;
            let mut value = load::<L, N>(sum);
            for member in members {
                xor(&mut value, load(&scratch[usize::from(*member)]));
            }
            store(sum, value);
        }
    }
    step(&mut y, last);
    for sum in sums {
        let mut value = load::<L, N>(sum);
        xor(&mut value, y);
        store(sum, value);
        for y in &mut y {
            *y = y.times_alpha();
        }
    }
}

/// The solved columns, as if the free ones were zero, by the method of the four Russians.
#[inline(always)]
fn tables<L: Lane, const N: usize>(plan: &Plan, slots: Slots<N>) {
    let dense = &plan.dense;
    let rank = dense.solved.len();
    let (work, table) = slots.split_at_mut(plan.slots());
    let (columns, left) = work.split_at_mut(plan.parameters.intermediate);
    let groups = left[..rank].chunks(dense.table_bits).zip(dense.tables.chunks(rank.max(1)));
    for (equations, choices) in groups {
        table[0] = [[0; LINE]; N];
        for (bit, equation) in equations.iter().enumerate() {
            double::<L, N>(table, bit, load(equation));
        }
        for (choice, column) in choices.iter().zip(&dense.solved) {
            let column = &mut columns[usize::from(*column)];
            let mut value = load::<L, N>(column);
            xor(&mut value, load(&table[usize::from(*choice)]));
            store(column, value);
        }
    }
}

/// Adds a summand to a table of all sums of `bit` ones: the sum of those in `choice` is
/// `table[choice]`.
#[inline(always)]
fn double<L: Lane, const N: usize>(table: Slots<N>, bit: usize, summand: [L; N]) {
    let (done, new) = table.split_at_mut(1 << bit);
    for (done, new) in done.iter().zip(new) {
        let mut value = summand;
        xor(&mut value, load(done));
        store(new, value);
    }
}

/// The tables of a shortcut.
#[inline(always)]
fn combinations<L: Lane, const N: usize>(plan: &Plan, shortcut: &Shortcut, slots: Slots<N>) {
    let (columns, tables) = slots.split_at_mut(plan.slots());
    let (inactive, bits) = shortcut.tables();
    for (members, table) in inactive.chunks(bits).zip(tables.chunks_exact_mut(1 << bits)) {
        table[0] = [[0; LINE]; N];
        for (bit, column) in members.iter().enumerate() {
            double::<L, N>(table, bit, load(&columns[usize::from(*column)]));
        }
    }
}

/// The free columns, and what the solved ones take from them.
#[inline(always)]
fn free<L: Lane, const N: usize>(plan: &Plan, slots: Slots<N>) {
    let dense = &plan.dense;
    let (columns, rest) = slots.split_at_mut(plan.parameters.intermediate);
    let hdpc = &rest[dense.solved.len()..][..plan.parameters.hdpc];
    for (index, column) in dense.free.iter().enumerate() {
        let mut sum = [L::zero(); N];
        for (factor, equation) in dense.from_hdpc.row(index).iter().zip(hdpc) {
            add_multiple(&mut sum, *factor, equation);
        }
        for (factor, solved) in dense.from_solved.row(index).iter().zip(&dense.solved) {
            add_multiple(&mut sum, *factor, &columns[usize::from(*solved)]);
        }
        store(&mut columns[usize::from(*column)], sum);
    }
    for (bits, column) in dense.corrections.iter().zip(&dense.solved) {
        let mut sum = load::<L, N>(&columns[usize::from(*column)]);
        let mut bits = *bits;
        while bits != 0 {
            let free = dense.free[bits.trailing_zeros() as usize];
            bits &= bits - 1;
            xor(&mut sum, load(&columns[usize::from(free)]));
        }
        store(&mut columns[usize::from(*column)], sum);
    }
}

#[inline(always)]
fn add_multiple<L: Lane, const N: usize>(sum: &mut [L; N], factor: u8, lines: &[[u8; LINE]; N]) {
    let factor = L::factor(factor);
    for (sum, line) in sum.iter_mut().zip(lines) {
        *sum = sum.xor(L::load(line).mul(factor));
    }
}

/// Sums of slots, written as symbols: row `target` of `out` from `strip.offset` on.
pub(crate) struct Gather<'a> {
    pub(crate) program: &'a [u16],
    pub(crate) slots: &'a [[u8; LINE]],
    pub(crate) strip: Strip,
    pub(crate) symbol_size: usize,
    pub(crate) out: &'a mut [u8],
}

impl Kernel for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lane>(self) {
        match self.strip.lines {
            8 => self.strip::<L, 8>(),
            4 => self.strip::<L, 4>(),
            2 => self.strip::<L, 2>(),
            _ => self.strip::<L, 1>(),
        }
    }
}

impl Gather<'_> {
    #[inline(always)]
    fn strip<L: Lane, const N: usize>(self) {
        let slots = self.slots.as_chunks::<N>().0;
        let nothing = Inputs { symbol_size: 0, first: &[], second: &[] };
        for (target, input, columns) in instructions(self.program) {
            let sum = sum::<L, N>(slots, nothing, 0, input, columns);
            let start = usize::from(target) * self.symbol_size + self.strip.offset;
            let out = &mut self.out[start..][..self.strip.len];
            match out.as_chunks_mut::<LINE>().0.first_chunk_mut::<N>() {
                Some(out) => store(out, sum),
                None => {
                    let mut line = [[0; LINE]; N];
                    store(&mut line, sum);
                    out.copy_from_slice(&line.as_flattened()[..self.strip.len]);
                }
            }
        }
    }
}

/// Sums of an input and of slots: row `target` of `out`.
pub(crate) struct Residuals<'a> {
    pub(crate) program: &'a [u16],
    pub(crate) slots: &'a [[u8; LINE]],
    pub(crate) inputs: Inputs<'a>,
    pub(crate) offset: usize,
    pub(crate) lines: usize,
    pub(crate) out: &'a mut [[u8; LINE]],
}

impl Kernel for Residuals<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lane>(self) {
        match self.lines {
            8 => self.strip::<L, 8>(),
            4 => self.strip::<L, 4>(),
            2 => self.strip::<L, 2>(),
            _ => self.strip::<L, 1>(),
        }
    }
}

impl Residuals<'_> {
    #[inline(always)]
    fn strip<L: Lane, const N: usize>(self) {
        let slots = self.slots.as_chunks::<N>().0;
        let out = self.out.as_chunks_mut::<N>().0;
        for (target, input, columns) in instructions(self.program) {
            let sum = sum::<L, N>(slots, self.inputs, self.offset, input, columns);
            store(&mut out[usize::from(target)], sum);
        }
    }
}
