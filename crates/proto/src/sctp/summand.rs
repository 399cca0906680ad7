//! A DATA chunk as a summand of repairs.

use bytes::Bytes;
use fontis_codes::window::add_to_sum;

use super::chunk::{DataChunk, RepairChunk};
use super::data::SctpData;

/// What a sum holds: the header's part and the content's. Counted content has no bytes, only a
/// length.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) head: [u8; RepairChunk::HEAD],
    content: Vec<u8>,
    len: usize,
    is_counted: bool,
}

impl Sum {
    /// A sum of nothing, for content of at most `len` bytes.
    pub(super) fn new(len: usize) -> Self {
        Self { head: [0; RepairChunk::HEAD], content: Vec::new(), len, is_counted: true }
    }

    /// The sum in a repair.
    pub(super) fn of_repair(repair: &RepairChunk) -> Self {
        let mut sum = Self::new(repair.data.len());
        sum.head = repair.head;
        sum.add_content(&repair.data, 1);
        sum
    }

    /// Adds a multiple of a chunk, whose content is not longer than the sum's.
    pub(super) fn add_chunk(&mut self, chunk: &DataChunk, factor: u8) {
        add_to_sum(&mut self.head, &head_of(chunk), factor);
        self.add_content(&chunk.data, factor);
    }

    /// Adds a multiple of another sum of no greater length.
    pub(super) fn add(&mut self, other: &Self, factor: u8) {
        add_to_sum(&mut self.head, &other.head, factor);
        if !other.is_counted {
            self.open();
            add_to_sum(&mut self.content, &other.content, factor);
        }
    }

    fn add_content(&mut self, data: &SctpData, factor: u8) {
        if let SctpData::Bytes(bytes) = data {
            self.open();
            add_to_sum(&mut self.content, bytes, factor);
        }
    }

    fn open(&mut self) {
        if core::mem::replace(&mut self.is_counted, false) {
            self.content = vec![0; self.len];
        }
    }

    /// Its bytes of content as a repair has them.
    pub(super) fn into_data(self) -> SctpData {
        if self.is_counted {
            SctpData::Counted(self.len as u32)
        } else {
            SctpData::Bytes(self.content.into())
        }
    }

    /// The chunk that the sum is, if it is one.
    pub(super) fn into_chunk(self, tsn: u32) -> Option<DataChunk> {
        let [flags, 0, l0, l1, s0, s1, 0, 0, m0, m1, m2, m3, p0, p1, p2, p3] = self.head else {
            return None;
        };
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        if flags & !0xf != 0 || len == 0 || len > self.len {
            return None;
        }
        let [is_first, is_last, is_unordered, is_interleaved] =
            [1, 2, 4, 8].map(|bit| flags & bit != 0);
        let last = u32::from_be_bytes([p0, p1, p2, p3]);
        let is_fragment = is_interleaved && !is_first;
        let data = match self.is_counted {
            true => SctpData::Counted(len as u32),
            // Beyond its own length a chunk is zero in every sum.
            false if self.content[len..].iter().all(|byte| *byte == 0) => {
                SctpData::Bytes(Bytes::from(self.content).slice(..len))
            }
            false => return None,
        };
        Some(DataChunk {
            tsn,
            stream: u16::from_be_bytes([s0, s1]),
            message: u32::from_be_bytes([m0, m1, m2, m3]),
            fragment: if is_fragment { last } else { 0 },
            protocol: if is_fragment { 0 } else { last },
            is_interleaved,
            is_first,
            is_last,
            is_unordered,
            is_immediate: false,
            data,
        })
    }
}

/// What a chunk's header says, but for its TSN, which the place in the sum tells.
fn head_of(chunk: &DataChunk) -> [u8; RepairChunk::HEAD] {
    let DataChunk { is_first, is_last, is_unordered, is_interleaved, .. } = *chunk;
    let flags = u8::from(is_first)
        | u8::from(is_last) << 1
        | u8::from(is_unordered) << 2
        | u8::from(is_interleaved) << 3;
    let [l0, l1] = (chunk.data.len() as u16).to_be_bytes();
    let [s0, s1] = chunk.stream.to_be_bytes();
    let [m0, m1, m2, m3] = chunk.message.to_be_bytes();
    let last = if is_interleaved && !is_first { chunk.fragment } else { chunk.protocol };
    let [p0, p1, p2, p3] = last.to_be_bytes();
    [flags, 0, l0, l1, s0, s1, 0, 0, m0, m1, m2, m3, p0, p1, p2, p3]
}
