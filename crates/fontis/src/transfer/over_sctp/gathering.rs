use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fontis_proto::dfcp::{Held, ObjectShape};

use super::record::{RECORD, Record};

/// Blocks that may be there in part: more than the receive buffer holds.
const MOST_BEGUN: usize = 32;
/// Bytes of a block at most: what is lacking of it is a bit for each record.
const MOST_BLOCK: u32 = u64::BITS * RECORD;

/// The blocks of an object, of which records come in any order.
pub(super) struct Gathering {
    shape: ObjectShape,
    /// Blocks of which nothing has come.
    lacking: BTreeSet<u32>,
    begun: BTreeMap<u32, Begun>,
}

/// A block that is there in part.
struct Begun {
    data: Vec<u8>,
    /// The records that it lacks, a bit for each.
    lacks: u64,
}

impl Gathering {
    /// All blocks that are not held; `None` if they are too long.
    pub(super) fn new(shape: ObjectShape, held: &Held) -> Option<Self> {
        if shape.block_size > MOST_BLOCK {
            return None;
        }
        let is_held = |block: &u32| held.done().iter().any(|run| run.contains(block));
        let lacking = (0..shape.blocks()?).filter(|block| !is_held(block)).collect();
        Some(Self { shape, lacking, begun: BTreeMap::new() })
    }

    pub(super) const fn shape(&self) -> ObjectShape {
        self.shape
    }

    /// Takes a record; returns the number of its block and the block if that is whole.
    pub(super) fn take(&mut self, record: &Bytes) -> Result<Option<(u32, Bytes)>, &'static str> {
        let record = Record::decode(record, &self.shape).ok_or("a part of no block")?;
        let Record { block, number, content } = record;
        if self.lacking.contains(&block) {
            if self.begun.len() >= MOST_BEGUN {
                return Err("parts of too many blocks at once");
            }
            self.lacking.remove(&block);
            let len = self.shape.block_len(block);
            let lacks = u64::MAX >> (64 - len.div_ceil(RECORD).clamp(1, 64));
            self.begun.insert(block, Begun { data: vec![0; len as usize], lacks });
        }
        // What has come whole comes again if a stranger sends it again.
        let Some(begun) = self.begun.get_mut(&block) else { return Ok(None) };
        let start = (number * RECORD) as usize;
        begun.data[start..start + content.len()].copy_from_slice(&content);
        begun.lacks &= !(1 << number);
        if begun.lacks != 0 {
            return Ok(None);
        }
        Ok(self.begun.remove(&block).map(|begun| (block, begun.data.into())))
    }
}

/// Takes records of an object that somebody made; whatever is whole has the length of its block,
/// and each block comes whole once.
///
/// The input is the size of the object (4 bytes), the logarithm of the size of a block, and records
/// of which all are of the object's length: four bytes of what is wrong with each, and its block
/// and number. Then the input itself is a record.
pub(crate) fn gathers(input: &[u8]) {
    let Some((&[a, b, c, d, shift], rest)) = input.split_first_chunk::<5>() else { return };
    let size = u64::from(u32::from_be_bytes([a, b, c, d]) % (8 << 20));
    let shape = super::super::outgoing::shape(size, 1 << (10 + shift % 22));
    let held = Held::new(vec![3..4, 4..5], Vec::new());
    let Some(mut gathering) = Gathering::new(shape, &held) else {
        assert!(shape.block_size > MOST_BLOCK);
        return;
    };
    let blocks = shape.blocks().unwrap_or(0);
    let mut whole = BTreeSet::new();
    let mut take = |record: Vec<u8>| {
        let Ok(Some((block, data))) = gathering.take(&record.into()) else { return };
        assert_eq!(data.len(), shape.block_len(block) as usize);
        assert!(block < blocks && !held.done().iter().any(|run| run.contains(&block)));
        assert!(whole.insert(block), "a block comes once");
    };
    take(rest.to_vec());
    for &[wrong, high, low, number] in rest.as_chunks::<4>().0.iter().take(64) {
        // Of a few blocks, so that some come whole.
        let block = u32::from_be_bytes([0, 0, high, low]) % (blocks + 2);
        let len = if block < blocks { shape.block_len(block) } else { RECORD };
        let start = u32::from(number) % (len.div_ceil(RECORD) + 1) * RECORD;
        let content = len.saturating_sub(start).min(RECORD) as usize;
        let mut record = [block.to_be_bytes(), start.to_be_bytes()].concat();
        record.resize(record.len() + content, number);
        match wrong % 8 {
            5 => record.truncate(record.len() - 1),
            6 => record.push(0),
            7 => record[usize::from(wrong / 8) % 8] ^= 1 << (number % 8),
            _ => {}
        }
        take(record);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::outgoing::shape;
    use super::*;

    fn record(block: u32, start: u32, content: &[u8]) -> Bytes {
        [&block.to_be_bytes(), &start.to_be_bytes(), content].concat().into()
    }

    #[test]
    fn blocks_of_more_records_than_are_told_apart_are_refused() {
        assert!(Gathering::new(shape(8 << 20, 2 << 20), &Held::default()).is_some());
        assert!(Gathering::new(shape(8 << 20, 4 << 20), &Held::default()).is_none());
    }

    #[test]
    fn what_comes_twice_makes_no_second_block_and_no_block_is_begun_without_end() {
        let mut gathering = Gathering::new(shape(100 << 10, 1 << 10), &Held::default()).unwrap();
        let first = record(0, 0, &[7; 1 << 10]);
        assert_eq!(gathering.take(&first).unwrap().unwrap().0, 0);
        assert_eq!(gathering.take(&first), Ok(None), "a stranger's copy");
        let mut gathering = Gathering::new(shape(40 << 20, 1 << 20), &Held::default()).unwrap();
        let part = [7; RECORD as usize];
        for block in 0..32 {
            assert_eq!(gathering.take(&record(block, 0, &part)), Ok(None));
        }
        assert!(gathering.take(&record(32, 0, &part)).is_err());
        assert_eq!(gathering.take(&record(5, RECORD, &part)), Ok(None), "begun ones go on");
        assert!(gathering.take(&record(5, RECORD + 1, &part)).is_err(), "there is no such part");
    }
}
