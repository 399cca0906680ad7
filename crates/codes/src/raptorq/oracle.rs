//! A decoder as the RFC writes it down, slow and plain: all equations in one dense matrix over
//! GF(2⁸), and Gauss.

use alloc::vec;
use alloc::vec::Vec;

use super::cost::Kind;
use super::decoding::{Beginning, Decoding};
use super::intermediate::Intermediate;
use super::parameters::{Family, Parameters};
use super::received::Received;
use super::rows::Rows;
use super::strips::Inputs;
use super::tuple::rand;
use super::*;
use crate::block::BlockShape;
use crate::code::Code;
use crate::counting::mix;
use crate::decoder::{BlockDecoder, Decoded};
use crate::encoder::BlockEncoder;
use crate::gf256::{self, mul};
use crate::matrix::Matrix;
use crate::multiples::add_multiple;

/// G_HDPC | I_H, with MT and GAMMA written out (section 5.3.3.3).
fn hdpc(p: &Parameters) -> Matrix {
    let columns = p.extended + p.ldpc;
    let mut mt = Matrix::zero(p.hdpc, columns);
    let h = p.hdpc as u32;
    for j in 0..columns - 1 {
        let first = rand(j as u32 + 1, 6, h);
        let second = (first + rand(j as u32 + 1, 7, h - 1) + 1) % h;
        mt.row_mut(first as usize)[j] = 1;
        mt.row_mut(second as usize)[j] = 1;
    }
    for i in 0..p.hdpc {
        mt.row_mut(i)[columns - 1] = gf256::EXP[i];
    }
    let mut result = Matrix::zero(p.hdpc, p.intermediate);
    for i in 0..p.hdpc {
        for j in 0..columns {
            let terms = (j..columns).map(|k| mul(mt.row(i)[k], gf256::EXP[(k - j) % 255]));
            result.row_mut(i)[j] = terms.fold(0, |sum, term| sum ^ term);
        }
        result.row_mut(i)[columns + i] = 1;
    }
    result
}

/// The intermediate symbols from symbols (internal identifier, value of one byte); `None` if the
/// equations lack rank.
fn solve(p: &Parameters, known: &[(u32, u8)]) -> Option<Vec<u8>> {
    let sparse = Rows::precode(p);
    let mut rows: Vec<Vec<u8>> = Vec::new();
    let row = |columns: &[u16], value: u8| {
        let mut row = vec![0; p.intermediate + 1];
        columns.iter().for_each(|column| row[usize::from(*column)] ^= 1);
        row[p.intermediate] = value;
        row
    };
    rows.extend((0..sparse.len()).map(|i| row(sparse.all(i), 0)));
    rows.extend(known.iter().map(|(isi, value)| row(p.neighbours(*isi).all(), *value)));
    let dense = hdpc(p);
    rows.extend((0..p.hdpc).map(|i| [dense.row(i), &[0]].concat()));
    for column in 0..p.intermediate {
        let pivot = (column..rows.len()).find(|row| rows[*row][column] != 0)?;
        rows.swap(column, pivot);
        let scale = gf256::inverse(rows[column][column]);
        rows[column].iter_mut().for_each(|cell| *cell = mul(*cell, scale));
        let pivot = rows[column].clone();
        for (index, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if index != column && factor != 0 {
                add_multiple(row, &pivot, factor);
            }
        }
    }
    Some(rows[..p.intermediate].iter().map(|row| row[p.intermediate]).collect())
}

fn encode(p: &Parameters, c: &[u8], isi: u32) -> u8 {
    p.neighbours(isi).all().iter().fold(0, |sum, column| sum ^ c[usize::from(*column)])
}

#[test]
fn symbols_are_those_of_the_naive_encoder() {
    for k in [1u32, 10, 11, 26, 60, 101, 180] {
        let p = Parameters::for_source_symbols(k).unwrap();
        let data: Vec<u8> = (0..k).map(|i| mix(u64::from(i)) as u8).collect();
        let known: Vec<_> = (0..p.extended as u32)
            .map(|isi| (isi, data.get(isi as usize).copied().unwrap_or(0)))
            .collect();
        let c = solve(&p, &known).expect("the matrix of an encoder has full rank");
        let shape = BlockShape::new(Code::RaptorQ, k, 1).unwrap();
        let mut encoder = BlockEncoder::new(shape, data.clone().into());
        encoder.set_repair(encoder.repair_job().run());
        for esi in (k..k + 50).chain([(1 << 24) - 1]) {
            let isi = p.isi(k, esi);
            assert_eq!(encoder.symbol(esi).unwrap()[..], [encode(&p, &c, isi)], "k = {k}, {esi}");
        }
    }
}

#[test]
fn a_set_of_symbols_suffices_exactly_if_the_naive_decoder_says_so() {
    let (mut sufficed, mut lacked) = (0, 0);
    for seed in 0..1500u64 {
        let k = 10 + (mix(seed) % 3) as u32;
        let p = Parameters::for_source_symbols(k).unwrap();
        let data: Vec<u8> = (0..k).map(|i| mix(seed << 8 | u64::from(i)) as u8).collect();
        let shape = BlockShape::new(Code::RaptorQ, k, 1).unwrap();
        let mut encoder = BlockEncoder::new(shape, data.clone().into());
        encoder.set_repair(encoder.repair_job().run());
        let mut decoder = BlockDecoder::new(shape);
        let mut known: Vec<_> = (k..p.extended as u32).map(|isi| (isi, 0)).collect();
        let from = k + (mix(seed ^ 99) % 100_000) as u32;
        for i in 0..k {
            let esi = if mix(seed ^ u64::from(i) << 32) & 1 == 0 { i } else { from + i };
            let symbol = encoder.symbol(esi).unwrap();
            decoder.add(esi, &symbol).unwrap();
            known.push((p.isi(k, esi), symbol[0]));
        }
        let ours = match decoder.decode_job().run() {
            Decoded::Block(block) => Some(block),
            Decoded::Failed(_) => None,
        };
        let naive = solve(&p, &known);
        assert_eq!(ours.is_some(), naive.is_some(), "seed {seed}");
        match ours {
            Some(block) => {
                assert_eq!(block, data, "seed {seed}");
                sufficed += 1;
            }
            None => lacked += 1,
        }
    }
    assert!(sufficed > 1000 && lacked > 0, "{sufficed} sufficed, {lacked} lacked rank");
}

#[test]
fn both_ways_of_decoding_agree_at_every_level() {
    use crate::simd::Level;
    for seed in 0..40u64 {
        let k = 40 + (mix(seed) % 400) as u32;
        let symbol_size = 1 + (mix(seed ^ 5) % 700) as usize;
        let data: Vec<u8> =
            (0..u64::from(k) * symbol_size as u64).map(|i| mix(seed << 40 ^ i) as u8).collect();
        let plan = EncodingPlan::new(k).unwrap();
        let inputs = Inputs { symbol_size, first: &data, second: &[] };
        let missing: Vec<u32> =
            (0..k).filter(|esi| mix(seed ^ u64::from(*esi) << 20) & 3 == 0).collect();
        let esis: Vec<u32> = (k..).take(missing.len() + 2).collect();
        let mut symbols = Vec::new();
        for level in Level::all() {
            let intermediate = Intermediate::new(level, &plan.plan, k, inputs);
            let mut out = vec![0; esis.len() * symbol_size];
            intermediate.symbols(esis.iter().copied(), &mut out);
            symbols.push(out);
        }
        assert!(symbols.iter().all(|other| other == &symbols[0]), "seed {seed}: levels agree");
        let mut holes = data.clone();
        for esi in &missing {
            holes[*esi as usize * symbol_size..][..symbol_size].fill(0);
        }
        for kind in [Kind::Direct, Kind::Correction, Kind::Solve] {
            for level in Level::all() {
                let mut work = holes.clone();
                let received = Received {
                    family: Family::RaptorQ,
                    k,
                    symbol_size,
                    data: &mut work,
                    missing: &missing,
                    esis: &esis,
                    repairs: &symbols[0],
                };
                let mut decoding = Decoding::by(level, kind, &received).unwrap();
                assert!(decoding.run(received), "seed {seed}");
                assert!(work == data, "seed {seed}, {kind:?}, {level:?}");
            }
        }
    }
}

#[test]
fn a_decoding_begun_early_restores_the_block() {
    use crate::simd::Level;
    for seed in 0..60u64 {
        let family = if seed % 4 == 0 { Family::Raptor10 } else { Family::RaptorQ };
        let k = 40 + (mix(seed) % 200) as u32;
        let symbol_size = 1 + (mix(seed ^ 5) % 300) as usize;
        let data: Vec<u8> =
            (0..u64::from(k) * symbol_size as u64).map(|i| mix(seed << 40 ^ i) as u8).collect();
        let plan = EncodingPlan::solve(Parameters::of(family, k).unwrap());
        let inputs = Inputs { symbol_size, first: &data, second: &[] };
        let mut missing: Vec<u32> =
            (0..k).filter(|esi| mix(seed ^ u64::from(*esi) << 20) & 7 == 0).collect();
        let all: Vec<u32> = (k..).step_by(3).take(missing.len() + 20).collect();
        let mut repairs = vec![0; all.len() * symbol_size];
        Intermediate::new(Level::detect(), &plan.plan, k, inputs)
            .symbols(all.iter().copied(), &mut repairs);
        let mut work = data.clone();
        for esi in &missing {
            work[*esi as usize * symbol_size..][..symbol_size].fill(0);
        }
        let mut decoding = None;
        let mut late = mix(seed ^ 1) % 5;
        for count in 2.. {
            let (esis, repairs) = (&all[..count], &repairs[..count * symbol_size]);
            let beginning = [Beginning::Correction, Beginning::Solve][seed as usize % 2];
            let received = Received {
                family,
                k,
                symbol_size,
                data: &mut work,
                missing: &missing,
                esis,
                repairs,
            };
            let decoding =
                decoding.get_or_insert_with(|| Decoding::ahead(&received, beginning).unwrap());
            decoding.advance(&received);
            if late > 0 && missing.len() > 2 {
                late -= 1;
                let esi = missing.remove(1);
                let range = esi as usize * symbol_size..(esi as usize + 1) * symbol_size;
                work[range.clone()].copy_from_slice(&data[range]);
                decoding.came(esi);
            }
            let data = &mut work;
            // One that cannot succeed yet changes nothing.
            let received =
                Received { family, k, symbol_size, data, missing: &missing, esis, repairs };
            if decoding.run(received) {
                assert!(count >= missing.len(), "seed {seed}");
                break;
            }
        }
        assert!(work == data, "seed {seed}");
    }
}

#[test]
fn symbols_chosen_to_make_work_are_refused_in_time() {
    // Only symbols of many neighbours: nothing peels.
    let k = 20_000;
    let p = Parameters::for_source_symbols(k).unwrap();
    let heavy = (k..).filter(|esi| p.neighbours(p.isi(k, *esi)).all().len() > 27);
    let shape = BlockShape::new(Code::RaptorQ, k, 1).unwrap();
    let mut decoder = BlockDecoder::new(shape);
    for esi in heavy.take(k as usize) {
        decoder.add(esi, &[0]).unwrap();
    }
    assert_eq!(decoder.needed(), 0);
    let Decoded::Failed(decoder) = decoder.decode_job().run() else { panic!("too much work") };
    assert!(decoder.needed() > 100);
}
