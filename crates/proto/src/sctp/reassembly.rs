//! Fragments of messages until they are whole.

use std::collections::{BTreeMap, VecDeque};

use super::chunk::DataChunk;
use super::data::SctpData;
use super::message::SctpMessage;

/// What numbers the fragments of a message. Those of DATA follow each other by TSN, those of
/// I-DATA by their numbers in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Tsn,
    Message { stream: u16, is_unordered: bool, message: u32 },
}

/// Neighbouring fragments of one message.
#[derive(Clone, Debug)]
struct Run {
    head: Head,
    has_first: bool,
    has_last: bool,
    last: u64,
    parts: VecDeque<SctpData>,
    bytes: u64,
}

/// What the fragments of one message agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    stream: u16,
    message: u32,
    protocol: u32,
    is_unordered: bool,
}

/// A whole message, and its number in its stream as the wire has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) number: u32,
    pub(super) message: SctpMessage,
}

/// The fragments contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

/// Fragments that wait for others.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    runs: BTreeMap<(Group, u64), Run>,
    bytes: u64,
    /// How many fragments there are.
    pieces: u64,
    /// Bytes of the runs of I-DATA that have their first fragment.
    begun: u64,
}

impl Reassembly {
    /// Bytes of all fragments.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many fragments there are.
    pub(super) const fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Bytes of messages that have begun to arrive in order: they wait for nothing but their own
    /// rest. `cumulative` is the TSN up to which all have arrived.
    pub(super) fn begun(&self, cumulative: u64) -> u64 {
        // Of DATA only the run that ends there has come in order.
        let last = self.runs.range(..=(Group::Tsn, cumulative)).next_back();
        let last = last.filter(|(_, run)| run.has_first && run.last == cumulative);
        self.begun + last.map_or(0, |(_, run)| run.bytes)
    }

    fn put(&mut self, key: (Group, u64), run: Run) {
        self.count(key.0, &run, true);
        self.runs.insert(key, run);
    }

    fn take(&mut self, key: (Group, u64)) -> Option<Run> {
        let run = self.runs.remove(&key)?;
        self.count(key.0, &run, false);
        Some(run)
    }

    /// Counts a run that is put in or taken out.
    fn count(&mut self, group: Group, run: &Run, is_put: bool) {
        let pieces = run.parts.len() as u64;
        let begun = if run.has_first && !matches!(group, Group::Tsn) { run.bytes } else { 0 };
        if is_put {
            self.bytes += run.bytes;
            self.pieces += pieces;
            self.begun += begun;
        } else {
            self.bytes -= run.bytes;
            self.pieces -= pieces;
            self.begun -= begun;
        }
    }

    /// Takes a fragment that has not come before; gives the message if it is whole with it.
    pub(super) fn insert(
        &mut self,
        tsn: u64,
        chunk: DataChunk,
    ) -> Result<Option<Whole>, Contradiction> {
        let DataChunk { stream, message, is_unordered, is_first, is_last, .. } = chunk;
        let mut head = Head { stream, message, protocol: chunk.protocol, is_unordered };
        if is_first && is_last {
            return Ok(Some(whole(head, chunk.data)));
        }
        let (group, number) = if chunk.is_interleaved {
            (Group::Message { stream, is_unordered, message }, u64::from(chunk.fragment))
        } else {
            (Group::Tsn, tsn)
        };
        if is_first != (number == 0) && chunk.is_interleaved {
            return Err(Contradiction);
        }
        let before = self.runs.range(..=(group, number)).next_back();
        let before = before.filter(|((same, _), _)| *same == group).map(|(key, run)| (*key, run));
        if before.as_ref().is_some_and(|(_, run)| run.last >= number) {
            return Err(Contradiction);
        }
        let before = before.filter(|(_, run)| run.last + 1 == number);
        let joins = |run: &Run, head: &Head| {
            // Only the first fragment of I-DATA says what the content is.
            let same = Head { protocol: head.protocol, ..run.head };
            same == *head && (chunk.is_interleaved || run.head.protocol == head.protocol)
        };
        let left = match before {
            Some((_, run)) if run.has_last != is_first => return Err(Contradiction),
            Some((key, run)) if !is_first => {
                if !joins(run, &head) {
                    return Err(Contradiction);
                }
                Some(key)
            }
            _ => None,
        };
        let right = match self.runs.get(&(group, number + 1)) {
            Some(run) if run.has_first != is_last => return Err(Contradiction),
            Some(run) if !is_last => {
                if !joins(run, &head) {
                    return Err(Contradiction);
                }
                Some((group, number + 1))
            }
            _ => None,
        };
        let mut run = match left.and_then(|key| self.take(key)) {
            Some(mut run) => {
                run.bytes += chunk.data.len() as u64;
                run.parts.push_back(chunk.data);
                run
            }
            None => {
                let bytes = chunk.data.len() as u64;
                let parts = VecDeque::from([chunk.data]);
                Run { head, has_first: is_first, has_last: false, last: number, parts, bytes }
            }
        };
        run.last = number;
        run.has_last = is_last;
        if let Some(mut rest) = right.and_then(|key| self.take(key)) {
            run.bytes += rest.bytes;
            if run.parts.len() < rest.parts.len() {
                // The fewer are moved: fragments may come from the last to the first.
                run.parts.drain(..).rev().for_each(|part| rest.parts.push_front(part));
                run.parts = rest.parts;
            } else {
                run.parts.append(&mut rest.parts);
            }
            (run.last, run.has_last) = (rest.last, rest.has_last);
        }
        if run.has_first && run.has_last {
            head = run.head;
            return Ok(Some(whole(head, SctpData::join(run.parts.into_iter()))));
        }
        let start = run.last + 1 - run.parts.len() as u64;
        self.put((group, start), run);
        Ok(None)
    }

    /// Drops the fragments of DATA up to this TSN.
    pub(super) fn forget_to(&mut self, tsn: u64) {
        self.forget(|group, first| group == Group::Tsn && first <= tsn);
    }

    /// Drops the fragments of I-DATA of messages of a stream up to this one.
    pub(super) fn forget_message(&mut self, stream: u16, is_unordered: bool, message: u32) {
        self.forget(|group, _| match group {
            Group::Tsn => false,
            Group::Message { stream: of, is_unordered: order, message: number } => {
                (of, order) == (stream, is_unordered) && message.wrapping_sub(number) < 1 << 31
            }
        });
    }

    fn forget(&mut self, is_gone: impl Fn(Group, u64) -> bool) {
        let gone: Vec<_> =
            self.runs.keys().filter(|(group, first)| is_gone(*group, *first)).copied().collect();
        for key in gone {
            self.take(key);
        }
    }
}

fn whole(head: Head, data: SctpData) -> Whole {
    let Head { stream, message, protocol, is_unordered } = head;
    Whole { number: message, message: SctpMessage { stream, protocol, is_unordered, data } }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn fragments(is_interleaved: bool, len: u8) -> Vec<(u64, DataChunk)> {
        let fragment = |n: u8| DataChunk {
            tsn: 0,
            stream: 3,
            message: 7,
            fragment: n.into(),
            protocol: if is_interleaved && n > 0 { 0 } else { 9 },
            is_interleaved,
            is_first: n == 0,
            is_last: n + 1 == len,
            is_unordered: false,
            is_immediate: false,
            data: SctpData::Bytes(Bytes::copy_from_slice(&[n])),
        };
        (0..len).map(|n| (100 + u64::from(n), fragment(n))).collect()
    }

    proptest! {
        #[test]
        fn a_message_is_whole_with_its_last_fragment_in_any_order(
            len in 1u8..30, is_interleaved: bool, order in any::<prop::sample::Index>(), seed: u64
        ) {
            let mut all = fragments(is_interleaved, len);
            let mut stream = fontis_base::Stream::new(seed, "order");
            for at in 0..all.len() {
                let other = order.index(all.len()).max(stream.below(all.len() as u64) as usize);
                all.swap(at, other);
            }
            let mut reassembly = Reassembly::default();
            let last = all.pop().unwrap();
            for (tsn, chunk) in all {
                prop_assert_eq!(reassembly.insert(tsn, chunk), Ok(None));
            }
            let whole = reassembly.insert(last.0, last.1).unwrap().unwrap();
            let bytes: Vec<u8> = (0..len).collect();
            prop_assert_eq!(whole.message.data, SctpData::Bytes(bytes.into()));
            prop_assert_eq!((whole.number, whole.message.protocol), (7, 9));
            prop_assert_eq!(reassembly.bytes(), 0);
            prop_assert!(reassembly.runs.is_empty());
        }
    }

    #[test]
    fn fragments_that_contradict_each_other_are_refused() {
        let mut reassembly = Reassembly::default();
        let all = fragments(false, 3);
        reassembly.insert(100, all[0].1.clone()).unwrap();
        let mut other = all[1].1.clone();
        other.stream = 4;
        assert_eq!(reassembly.insert(101, other), Err(Contradiction));
        assert_eq!(reassembly.insert(101, all[0].1.clone()), Err(Contradiction));
    }
}
