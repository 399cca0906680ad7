//! Ack Vectors (RFC 4340 section 11.4).

use std::collections::VecDeque;

use super::number::DccpSeq;

/// The state of a packet in an Ack Vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Received,
    Marked,
    Missing,
}

const RECEIVED: u8 = 0;
const MARKED: u8 = 1;
const MISSING: u8 = 3;
/// The most packets that one byte covers.
const LONGEST_RUN: u8 = 64;
/// The most bytes of an option.
const LONGEST: usize = 253;
/// The most packets that a receiver remembers.
const MOST: usize = 1 << 14;

/// The packets that a receiver has not heard to be known: from `newest` down.
#[derive(Clone, Debug, Default)]
pub(super) struct AckVector {
    newest: DccpSeq,
    /// States from the newest packet down.
    states: VecDeque<u8>,
    /// What recent acknowledgements covered: own number, the newest packet then.
    sent: VecDeque<(DccpSeq, DccpSeq)>,
}

impl AckVector {
    /// Notes that a packet has arrived.
    pub(super) fn receive(&mut self, seq: DccpSeq, is_marked: bool) {
        let state = if is_marked { MARKED } else { RECEIVED };
        if self.states.is_empty() {
            self.newest = seq;
            self.states.push_front(state);
            return;
        }
        let ahead = seq.offset_from(self.newest);
        if ahead > 0 {
            // More than is remembered is forgotten.
            for _ in 1..ahead.min(MOST as i64) {
                self.states.push_front(MISSING);
            }
            self.states.push_front(state);
            self.states.truncate(MOST);
            self.newest = seq;
        } else if let Some(old) = self.states.get_mut(ahead.unsigned_abs() as usize)
            && *old == MISSING
        {
            *old = state;
        }
    }

    /// The runs for an acknowledgement of the newest packet that leaves as `own`; as many as one
    /// option holds.
    pub(super) fn runs(&mut self, own: DccpSeq) -> Vec<u8> {
        self.sent.push_back((own, self.newest));
        if self.sent.len() > 64 {
            self.sent.pop_front();
        }
        let mut runs: Vec<u8> = Vec::new();
        for state in &self.states {
            let grows = |last: &&mut u8| **last >> 6 == *state && **last & 63 < LONGEST_RUN - 1;
            if let Some(last) = runs.last_mut().filter(grows) {
                *last += 1;
            } else if runs.len() < LONGEST {
                runs.push(state << 6);
            } else {
                break;
            }
        }
        runs
    }

    /// The newest packet.
    pub(super) const fn newest(&self) -> DccpSeq {
        self.newest
    }

    /// Notes that the peer has got acknowledgement `own`: it need not hear of older packets again
    /// (RFC 4340 section 11.4.2), but for those that may still come.
    pub(super) fn on_known(&mut self, own: DccpSeq) {
        let Some(place) = self.sent.iter().rposition(|(number, _)| *number == own) else { return };
        let (_, covered) = self.sent[place];
        self.sent.drain(..=place);
        let kept = self.newest.offset_from(covered).max(0) as usize + 1;
        self.states.truncate(kept);
    }
}

/// The packets that an Ack Vector tells of, from `ack` down.
pub(super) fn arrivals(ack: DccpSeq, runs: &[u8]) -> impl Iterator<Item = (DccpSeq, Arrival)> {
    let states = runs.iter().flat_map(|run| {
        let state = match run >> 6 {
            RECEIVED => Arrival::Received,
            MARKED => Arrival::Marked,
            // State 2 is reserved: nothing is known.
            _ => Arrival::Missing,
        };
        core::iter::repeat_n(state, usize::from(run & 63) + 1)
    });
    states.enumerate().map(move |(below, state)| (ack.minus(below as u64), state))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_are_those_of_the_standard() {
        // RFC 4340 section 11.4.1: 0x00, 0xc2 ... are runs of one received, three missing.
        let mut vector = AckVector::default();
        for seq in [90, 94, 95, 96] {
            vector.receive(DccpSeq::new(seq), seq == 96);
        }
        assert_eq!(vector.runs(DccpSeq::new(1)), [0x40, 0x01, 0xc2, 0x00]);
    }

    #[test]
    fn what_the_peer_knows_is_not_told_again() {
        let mut vector = AckVector::default();
        (0..100).for_each(|seq| vector.receive(DccpSeq::new(seq), false));
        assert_eq!(vector.runs(DccpSeq::new(7)), [63, 35]);
        (100..103).for_each(|seq| vector.receive(DccpSeq::new(seq), false));
        vector.on_known(DccpSeq::new(7));
        assert_eq!(vector.runs(DccpSeq::new(8)), [3]);
    }

    proptest! {
        #[test]
        fn a_sender_reads_what_the_receiver_saw(
            steps in prop::collection::vec((1i64..5, any::<bool>()), 1..60)
        ) {
            let mut vector = AckVector::default();
            let mut came = std::collections::BTreeMap::new();
            let mut seq = DccpSeq::new(0xffff_ffff_fff0);
            for (step, is_marked) in steps {
                seq = seq.plus(step as u64);
                vector.receive(seq, is_marked);
                came.insert(seq.get(), is_marked);
            }
            let runs = vector.runs(DccpSeq::new(0));
            let mut seen = 0;
            for (seq, state) in arrivals(vector.newest(), &runs) {
                let expected = match came.get(&seq.get()) {
                    None => Arrival::Missing,
                    Some(true) => Arrival::Marked,
                    Some(false) => Arrival::Received,
                };
                prop_assert_eq!(state, expected);
                seen += usize::from(state != Arrival::Missing);
            }
            prop_assert_eq!(seen, came.len());
        }
    }
}
