use bytes::Bytes;
use fontis_proto::dfcp::ObjectShape;

/// Bytes of content in a record, but for the last of a block.
pub(super) const RECORD: u32 = 32 << 10;
/// Bytes of the token that an association begins with.
pub(super) const TOKEN: usize = 16;
/// The purposes of the keys of the directions.
pub(super) const SERVER: &str = "fontis 2026-11-27 content over SCTP";
pub(super) const CLIENT: &str = "fontis 2026-11-27 nothing over SCTP";
/// The purpose of the token.
const TOKEN_PURPOSE: &str = "fontis 2026-11-27 token of SCTP";
const HEADER: usize = 8;

/// What tells an association of SCTP from others.
pub(super) type Token = [u8; TOKEN];

/// The token of a key, from which nobody can tell the key.
pub(super) fn token(key: &[u8; 32]) -> Token {
    let mut token = [0; TOKEN];
    token.copy_from_slice(&blake3::derive_key(TOKEN_PURPOSE, key)[..TOKEN]);
    token
}

/// A part of a block: the block, the number of the record in it, and its content. On the wire the
/// block and the content's first byte in it stand before the content, both as 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) block: u32,
    pub(super) number: u32,
    pub(super) content: Bytes,
}

impl Record {
    /// The records of a block.
    pub(super) fn all(block: u32, data: &Bytes) -> impl Iterator<Item = Self> {
        let starts = (0..data.len()).step_by(RECORD as usize);
        (0..).zip(starts).map(move |(number, start)| {
            let content = data.slice(start..data.len().min(start + RECORD as usize));
            Self { block, number, content }
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.content.len());
        bytes.extend_from_slice(&self.block.to_be_bytes());
        bytes.extend_from_slice(&(self.number * RECORD).to_be_bytes());
        bytes.extend_from_slice(&self.content);
        bytes
    }

    /// Reads a record of an object; `None` if the object has no such part.
    pub(super) fn decode(bytes: &Bytes, shape: &ObjectShape) -> Option<Self> {
        let (block, rest) = bytes.split_first_chunk::<4>()?;
        let (start, _) = rest.split_first_chunk::<4>()?;
        let [block, start] = [block, start].map(|field| u32::from_be_bytes(*field));
        if block >= shape.blocks()? {
            return None;
        }
        let len = shape.block_len(block).checked_sub(start).filter(|left| *left > 0)?.min(RECORD);
        let content = bytes.slice(HEADER..);
        let is_whole = start % RECORD == 0 && content.len() == len as usize;
        is_whole.then_some(Self { block, number: start / RECORD, content })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::outgoing::shape;
    use super::*;

    proptest! {
        #[test]
        fn a_block_is_its_records_and_nothing_else_is_one(
            size in 1_u64..3_000_000,
            any in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let shape = shape(size, 1 << 20);
            let last = shape.blocks().unwrap() - 1;
            let data: Bytes = (0..shape.block_len(last)).map(|at| (at / 7) as u8).collect();
            let records: Vec<Record> = Record::all(last, &data).collect();
            let mut whole = Vec::new();
            for record in &records {
                let bytes = Bytes::from(record.encode());
                prop_assert_eq!(Record::decode(&bytes, &shape), Some(record.clone()));
                let shorter = bytes.slice(..bytes.len() - 1);
                prop_assert_eq!(Record::decode(&shorter, &shape), None);
                whole.extend_from_slice(&record.content);
            }
            prop_assert_eq!(whole, &data[..]);
            prop_assert!(records.len() <= 32);
            let beyond = Record { block: last + 1, ..records[0].clone() };
            prop_assert_eq!(Record::decode(&beyond.encode().into(), &shape), None);
            let _ = Record::decode(&any.into(), &shape);
        }
    }
}
