//! A plan replayed backwards: what every symbol of the extended source block contributes to an
//! encoding symbol.
//!
//! A replay is a linear map from inputs to intermediate symbols, and an encoding symbol is a sum of
//! these. Its coefficients follow by the transposed map: each step in reverse order, with what it
//! reads and what it writes exchanged.

use alloc::vec;
use alloc::vec::Vec;

use super::hdpc::CHUNK;
use super::plan::{Plan, Sums, instructions};
use crate::lines::Lines;
use crate::simd::lane::{LINE, Lane};
use crate::simd::{Kernel, Level};

type Line = [u8; LINE];

/// The coefficients of encoding symbols with these internal identifiers, at most [`LINE`] of them:
/// for each of the K' symbols of the extended source block a line, whose byte `i` is what it is
/// multiplied by in encoding symbol `i`.
pub(crate) fn coefficients(
    level: Level,
    plan: &Plan,
    isis: impl IntoIterator<Item = u32>,
) -> Vec<Line> {
    let p = &plan.parameters;
    let mut slots = Lines::zero(plan.slots());
    for (isi, index) in isis.into_iter().zip(0..LINE) {
        for column in p.neighbours(isi).all() {
            slots.get_mut()[usize::from(*column)][index] ^= 1;
        }
    }
    let mut inputs = vec![[0; LINE]; p.extended];
    level.run(Transposed { plan, slots: slots.get_mut(), inputs: &mut inputs });
    inputs
}

struct Transposed<'a> {
    plan: &'a Plan,
    slots: &'a mut [Line],
    inputs: &'a mut [Line],
}

impl Kernel for Transposed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lane>(self) {
        let Self { plan, slots, inputs } = self;
        let dense = &plan.dense;
        sums::<L>(&plan.backward, slots, inputs);
        free::<L>(plan, slots);
        tables::<L>(plan, slots);
        if !dense.free.is_empty() {
            hdpc::<L>(plan, slots);
        }
        for column in dense.solved.iter().chain(&dense.free) {
            slots[usize::from(*column)] = [0; LINE];
        }
        sums::<L>(&plan.forward, slots, inputs);
    }
}

#[inline(always)]
fn add<L: Lane>(target: &mut Line, value: L) {
    L::load(target).xor(value).store(target);
}

#[inline(always)]
fn take<L: Lane>(line: &mut Line) -> L {
    let value = L::load(line);
    L::zero().store(line);
    value
}

#[inline(always)]
fn sums<L: Lane>(program: &Sums, slots: &mut [Line], inputs: &mut [Line]) {
    let all: Vec<_> = instructions(&program.0).collect();
    for (target, input, columns) in all.into_iter().rev() {
        let value = take::<L>(&mut slots[usize::from(target)]);
        for column in columns {
            add(&mut slots[usize::from(*column)], value);
        }
        if let Some(line) = inputs.get_mut(input as usize) {
            add(line, value);
        }
    }
}

#[inline(always)]
fn free<L: Lane>(plan: &Plan, slots: &mut [Line]) {
    let dense = &plan.dense;
    let (columns, rest) = slots.split_at_mut(plan.parameters.intermediate);
    let hdpc = &mut rest[dense.solved.len()..][..plan.parameters.hdpc];
    for (bits, column) in dense.corrections.iter().zip(&dense.solved) {
        let value = L::load(&columns[usize::from(*column)]);
        let mut bits = *bits;
        while bits != 0 {
            let free = dense.free[bits.trailing_zeros() as usize];
            bits &= bits - 1;
            add(&mut columns[usize::from(free)], value);
        }
    }
    for (index, column) in dense.free.iter().enumerate() {
        let value = take::<L>(&mut columns[usize::from(*column)]);
        for (factor, equation) in dense.from_hdpc.row(index).iter().zip(&mut *hdpc) {
            add(equation, value.mul(L::factor(*factor)));
        }
        for (factor, solved) in dense.from_solved.row(index).iter().zip(&dense.solved) {
            add(&mut columns[usize::from(*solved)], value.mul(L::factor(*factor)));
        }
    }
}

#[inline(always)]
fn tables<L: Lane>(plan: &Plan, slots: &mut [Line]) {
    let dense = &plan.dense;
    let rank = dense.solved.len();
    let (columns, left) = slots.split_at_mut(plan.parameters.intermediate);
    let mut table = [[0; LINE]; 1 << 8];
    let groups = left[..rank].chunks_mut(dense.table_bits).zip(dense.tables.chunks(rank.max(1)));
    for (equations, choices) in groups {
        let table = &mut table[..1 << dense.table_bits];
        table.fill([0; LINE]);
        for (choice, column) in choices.iter().zip(&dense.solved) {
            add(&mut table[usize::from(*choice)], L::load(&columns[usize::from(*column)]));
        }
        for (bit, equation) in equations.iter_mut().enumerate().rev() {
            let (without, with) = table.split_at_mut(1 << bit);
            let mut sum = L::zero();
            for (without, with) in without.iter_mut().zip(with) {
                let with = L::load(with);
                sum = sum.xor(with);
                add(without, with);
            }
            sum.store(equation);
        }
    }
}

/// With Y[j] = α·Y[j−1] + C[j], what is taken from Y[j] is taken from C[j] and, times α, from
/// Y[j−1].
#[inline(always)]
fn hdpc<L: Lane>(plan: &Plan, slots: &mut [Line]) {
    let p = &plan.parameters;
    let (columns, rest) = slots.split_at_mut(p.intermediate);
    let sums = &rest[plan.dense.solved.len()..][..p.hdpc];
    let (last, most) = columns[..p.extended + p.ldpc].split_last_mut().expect("there are columns");
    // Some lines more than there are columns: a chunk's members are below CHUNK, whatever the plan
    // says.
    let mut taken = vec![[0; LINE]; most.len().next_multiple_of(CHUNK)];
    let mut schedule = plan.dense.schedule.as_slice();
    for taken in taken.chunks_exact_mut(CHUNK) {
        for sum in sums {
            let Some((n, rest)) = schedule.split_first() else { break };
            let Some((members, rest)) = rest.split_at_checked(usize::from(*n)) else { break };
            schedule = rest;
            let sum = L::load(sum);
            for member in members {
                add(&mut taken[usize::from(*member)], sum);
            }
        }
    }
    // Equation i takes αⁱ times the last one.
    let mut y = L::zero();
    for sum in sums.iter().rev() {
        y = y.times_alpha().xor(L::load(sum));
    }
    add(last, y);
    for (column, taken) in most.iter_mut().zip(&taken).rev() {
        y = y.times_alpha().xor(L::load(taken));
        add(column, y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::mix;
    use crate::gf256::mul;
    use crate::multiples::add_multiple;
    use crate::raptorq::encoding_plan::EncodingPlan;
    use crate::raptorq::intermediate::Intermediate;
    use crate::raptorq::strips::Inputs;

    #[test]
    fn encoding_symbols_are_sums_by_their_coefficients() {
        let (raptorq, raptor10): (&[u32], &[u32]) =
            if cfg!(miri) { (&[10], &[4]) } else { (&[10, 26, 101, 1002], &[4, 100]) };
        let plans = raptorq.iter().map(|k| EncodingPlan::new(*k).unwrap());
        for plan in plans.chain(raptor10.iter().map(|k| EncodingPlan::raptor10(*k).unwrap())) {
            let plan = &plan.plan;
            let k = plan.parameters.extended as u32;
            let data: Vec<u8> = (0..u64::from(k)).map(|i| mix(i) as u8).collect();
            let inputs = Inputs { symbol_size: 1, first: &data, second: &[] };
            let isis: Vec<u32> =
                (0..LINE as u32).map(|i| if i < 5 { i % k } else { k + 7 * i }).collect();
            for level in Level::all() {
                let mut symbols = vec![0; isis.len()];
                Intermediate::new(level, plan, k, inputs)
                    .symbols(isis.iter().copied(), &mut symbols);
                let lines = coefficients(level, plan, isis.iter().copied());
                let mut sums = vec![0; isis.len()];
                for (value, line) in data.iter().zip(&lines) {
                    add_multiple(&mut sums, line, *value);
                }
                assert_eq!(sums, symbols, "K' = {k}, {level:?}");
                // Of a source symbol it is all of that, and nothing else.
                for (j, line) in lines.iter().enumerate().take(20) {
                    assert_eq!(mul(line[1], 3), if j == 1 { 3 } else { 0 }, "K' = {k}, {level:?}");
                }
            }
        }
    }
}
