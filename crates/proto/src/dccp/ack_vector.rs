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
const LONGEST_RUN: usize = 64;
/// The most bytes of an option.
const LONGEST: usize = 253;
/// The most packets that a receiver remembers.
const MOST: usize = 1 << 14;

/// The packets that a receiver has not heard to be known: from `newest` down.
#[derive(Clone, Debug, Default)]
pub(super) struct AckVector {
    newest: DccpSeq,
    /// Runs of equal states and how many packets each has, from the newest packet down.
    states: VecDeque<(u8, usize)>,
    /// How many packets they have in all.
    len: usize,
    /// What recent acknowledgements covered: own number, the newest packet then.
    sent: VecDeque<(DccpSeq, DccpSeq)>,
}

impl AckVector {
    /// Notes that a packet has arrived.
    pub(super) fn receive(&mut self, seq: DccpSeq, is_marked: bool) {
        let state = if is_marked { MARKED } else { RECEIVED };
        if self.states.is_empty() {
            self.newest = seq;
            self.push(state, 1);
            return;
        }
        let ahead = seq.offset_from(self.newest);
        if ahead > 0 {
            // More than is remembered is forgotten.
            self.push(MISSING, ahead.min(MOST as i64) as usize - 1);
            self.push(state, 1);
            self.truncate(MOST);
            self.newest = seq;
        } else {
            self.fill(ahead.unsigned_abs() as usize, state);
        }
    }

    /// Adds so many newest packets of a state.
    fn push(&mut self, state: u8, count: usize) {
        self.len += count;
        match self.states.front_mut() {
            _ if count == 0 => {}
            Some((newest, run)) if *newest == state => *run += count,
            _ => self.states.push_front((state, count)),
        }
    }

    /// Forgets all but the newest packets.
    fn truncate(&mut self, most: usize) {
        while self.len > most
            && let Some((_, run)) = self.states.back_mut()
        {
            let surplus = self.len - most;
            if *run > surplus {
                *run -= surplus;
                self.len = most;
            } else {
                self.len -= *run;
                self.states.pop_back();
            }
        }
    }

    /// Gives a packet a state, counted from the newest down, if it is missing.
    fn fill(&mut self, below: usize, state: u8) {
        let mut end = 0;
        let found = self.states.iter().position(|(_, run)| {
            end += run;
            end > below
        });
        let Some(place) = found.filter(|place| self.states[*place].0 == MISSING) else { return };
        let (after, before) = (end - below - 1, below + self.states[place].1 - end);
        self.states[place] = (state, 1);
        if after > 0 {
            self.states.insert(place + 1, (MISSING, after));
        }
        if before > 0 {
            self.states.insert(place, (MISSING, before));
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
        let mut states = self.states.iter().copied().peekable();
        while let Some((state, mut left)) = states.next() {
            // Packets that came out of order are runs of their own.
            while let Some((_, more)) = states.next_if(|(next, _)| *next == state) {
                left += more;
            }
            while left > 0 {
                if runs.len() == LONGEST {
                    return runs;
                }
                let run = left.min(LONGEST_RUN);
                runs.push(state << 6 | (run - 1) as u8);
                left -= run;
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
        self.truncate(kept);
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

    #[test]
    fn a_window_of_any_length_is_few_runs() {
        let mut vector = AckVector::default();
        (0..16_000).for_each(|seq| vector.receive(DccpSeq::new(seq), false));
        vector.receive(DccpSeq::new(16_009), false);
        vector.receive(DccpSeq::new(16_004), true);
        let (states, len) = (vector.states.len(), vector.len);
        assert_eq!((states, len), (5, 16_010));
        assert_eq!(vector.runs(DccpSeq::new(1))[..5], [0, 0xc3, 0x40, 0xc3, 63]);
        vector.receive(DccpSeq::new(1 << 40), false);
        assert_eq!((vector.states.len(), vector.len), (2, MOST));
    }

    proptest! {
        #[test]
        fn a_sender_reads_what_the_receiver_saw(
            steps in prop::collection::vec((-9i64..12, any::<bool>()), 1..90)
        ) {
            let mut vector = AckVector::default();
            let mut came = std::collections::BTreeMap::new();
            let first = DccpSeq::new(0xffff_ffff_fff0);
            vector.receive(first, false);
            came.insert(first.get(), false);
            for (step, is_marked) in steps {
                let newest = vector.newest();
                let seq = match step {
                    0.. => newest.plus(step as u64),
                    _ => newest.minus(step.unsigned_abs()).latest(first),
                };
                vector.receive(seq, is_marked);
                // The first word about a packet stays.
                came.entry(seq.get()).or_insert(is_marked);
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
