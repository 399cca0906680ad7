//! Plans as bytes, for those who keep them on a disk. Bytes from elsewhere make a plan that harms
//! nobody, or none.

use alloc::vec::Vec;

use thiserror::Error;

use super::encoding_plan::EncodingPlan;
use super::hdpc::CHUNK;
use super::parameters::{Family, Parameters};
use super::peeling::MAX_INACTIVE;
use super::plan::{Dense, Plan, Sums};
use crate::matrix::Matrix;

/// Bytes that are no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// They are something else, or another version of it.
    #[error("the bytes are no encoding plan of this version")]
    Format,
    /// They end too early, or too late.
    #[error("the encoding plan has another length than it says")]
    Length,
    /// An instruction of it names what is not there.
    #[error("the encoding plan names a symbol that its block does not have")]
    Content,
}

/// The format and its version; the version changes whenever plans do.
const HEAD: &[u8; 5] = b"FPLN\x01";

impl EncodingPlan {
    /// The plan as bytes, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Plan { parameters, forward, dense, backward } = &self.plan;
        let mut bytes = HEAD.to_vec();
        bytes.push(match parameters.family {
            Family::RaptorQ => 0,
            Family::Raptor10 => 1,
        });
        bytes.push(dense.table_bits as u8);
        let counts = [
            parameters.extended,
            forward.0.len(),
            backward.0.len(),
            dense.solved.len(),
            dense.free.len(),
            dense.schedule.len(),
        ];
        for count in counts {
            bytes.extend((count as u32).to_le_bytes());
        }
        for words in [&forward.0, &backward.0, &dense.solved, &dense.free, &dense.corrections] {
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        bytes.extend_from_slice(&dense.schedule);
        bytes.extend_from_slice(&dense.tables);
        bytes.extend_from_slice(&dense.from_hdpc.cells);
        bytes.extend_from_slice(&dense.from_solved.cells);
        bytes
    }

    /// The plan that [`to_bytes`](Self::to_bytes) wrote. That it stays inside of its block is
    /// checked; that it computes the right symbols is not, so do not take plans from strangers.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PlanError> {
        let rest = bytes.strip_prefix(HEAD).ok_or(PlanError::Format)?;
        let mut reader = Reader(rest);
        let family = match reader.take(1)? {
            [0] => Family::RaptorQ,
            [1] => Family::Raptor10,
            _ => return Err(PlanError::Format),
        };
        let table_bits = usize::from(reader.take(1)?[0]);
        let mut counts = [0usize; 6];
        for count in &mut counts {
            let four = reader.take(4)?.try_into().map_err(|_| PlanError::Length)?;
            *count = u32::from_le_bytes(four) as usize;
        }
        let [extended, forward, backward, rank, free, schedule] = counts;
        let parameters = Parameters::of(family, extended as u32).ok_or(PlanError::Content)?;
        let is_valid = parameters.extended == extended
            && (1..=8).contains(&table_bits)
            && rank + free <= MAX_INACTIVE
            && free <= parameters.hdpc;
        if !is_valid {
            return Err(PlanError::Content);
        }
        let forward = Sums(reader.words(forward)?);
        let backward = Sums(reader.words(backward)?);
        let (solved, free_columns) = (reader.words(rank)?, reader.words(free)?);
        let corrections = reader.words(rank)?;
        let schedule = reader.take(schedule)?.to_vec();
        let tables = reader.take(rank.div_ceil(table_bits) * rank)?.to_vec();
        let mut matrix = |rows: usize, columns: usize| {
            reader.take(rows * columns).map(|cells| Matrix { columns, cells: cells.to_vec() })
        };
        let (from_hdpc, from_solved) = if free > 0 {
            (matrix(free, parameters.hdpc)?, matrix(free, rank)?)
        } else {
            (matrix(0, 0)?, matrix(0, 0)?)
        };
        if !reader.0.is_empty() {
            return Err(PlanError::Length);
        }
        let dense = Dense {
            solved,
            table_bits,
            tables,
            free: free_columns,
            schedule,
            from_hdpc,
            from_solved,
            corrections,
        };
        let plan = Plan { parameters, forward, dense, backward };
        if is_inside(&plan) { Ok(Self::from(plan)) } else { Err(PlanError::Content) }
    }
}

/// Whether a plan names nothing but what is there.
fn is_inside(plan: &Plan) -> bool {
    let columns = plan.parameters.intermediate;
    let dense = &plan.dense;
    let sums_are = |sums: &Sums, slots: usize| {
        let mut words = sums.0.as_slice();
        while let Some(([target, n, ..], rest)) = words.split_first_chunk::<4>() {
            let Some((terms, rest)) = rest.split_at_checked(usize::from(*n)) else { return false };
            if terms.iter().chain([target]).any(|slot| usize::from(*slot) >= slots) {
                return false;
            }
            words = rest;
        }
        words.is_empty()
    };
    let mut inactive = dense.solved.iter().chain(&dense.free);
    let tables_are = dense.tables.iter().all(|choice| usize::from(*choice) < 1 << dense.table_bits);
    let corrections_are =
        dense.corrections.iter().all(|bits| u32::from(*bits) < 1 << dense.free.len());
    let mut schedule = dense.schedule.as_slice();
    while let Some((n, rest)) = schedule.split_first() {
        let Some((members, rest)) = rest.split_at_checked(usize::from(*n)) else { return false };
        if members.iter().any(|member| usize::from(*member) >= CHUNK) {
            return false;
        }
        schedule = rest;
    }
    sums_are(&plan.forward, columns + dense.solved.len())
        && sums_are(&plan.backward, columns)
        && inactive.all(|column| usize::from(*column) < columns)
        && tables_are
        && corrections_are
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], PlanError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(PlanError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn words(&mut self, count: usize) -> Result<Vec<u16>, PlanError> {
        let bytes = self.take(count.checked_mul(2).ok_or(PlanError::Length)?)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u16::from_le_bytes(*word)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockShape;
    use crate::code::Code;
    use crate::counting::mix;
    use crate::encoder::BlockEncoder;

    #[test]
    fn plans_are_read_as_they_were_written() {
        for plan in [10, 101, 3000].into_iter().filter_map(EncodingPlan::new) {
            assert_eq!(EncodingPlan::from_bytes(&plan.to_bytes()).as_ref(), Ok(&plan));
        }
        let plan = EncodingPlan::raptor10(50).unwrap();
        assert_eq!(EncodingPlan::from_bytes(&plan.to_bytes()), Ok(plan));
    }

    #[test]
    fn damaged_plans_are_refused_or_harmless() {
        let plan = EncodingPlan::new(20).unwrap();
        let good = plan.to_bytes();
        for len in 0..good.len() {
            assert!(EncodingPlan::from_bytes(&good[..len]).is_err(), "{len}");
        }
        assert_eq!(EncodingPlan::from_bytes(&[&good[..], &[0]].concat()), Err(PlanError::Length));
        let shape = BlockShape::new(Code::RaptorQ, 20 * 70, 70).unwrap();
        let mut harmless = 0;
        for seed in 0..20_000u64 {
            let mut bytes = good.clone();
            let at = mix(seed) as usize % bytes.len();
            bytes[at] ^= 1 << (mix(seed ^ 1 << 40) % 8);
            if let Ok(plan) = EncodingPlan::from_bytes(&bytes) {
                if plan.extended_symbols() == 20 && seed % 10 == 0 {
                    let job = BlockEncoder::new(shape, alloc::vec![7; 1400].into()).repair_job();
                    job.write_with(&plan, 20..25, &mut [0; 350]);
                }
                harmless += 1;
            }
        }
        assert!((1..20_000).contains(&harmless), "{harmless}");
    }
}
