use std::collections::VecDeque;

use fontis_base::{Duration, Ecn, Time};

use super::feedback::Feedback;
use super::wire::{MAX_RUNS, MAX_SAMPLES};

/// How many packet numbers below the highest are remembered. Anything older is dropped as too old
/// to tell from a replay: at 1 Gbit/s this is 1.3 s of reordering.
const WINDOW: u64 = 1 << 17;
/// How far below the highest packet number feedback reaches, if the runs fit.
const REPORT: u64 = 1 << 13;

/// Feedback reaches back so long, and so many round trips: what came before has been told often.
const TOLD: (Duration, u64) = (Duration::from_secs(1), 4);
/// How many times are kept to know that, beside the newest.
const MARKS: u64 = 4;

/// What has been received on a path: tells new packets from replays, and makes feedback.
pub(super) struct Receipts {
    /// One bit a packet number, 64 a word; the first word begins at `base`.
    words: VecDeque<u64>,
    base: u64,
    largest: Option<(u64, Time)>,
    packets: u64,
    bytes: u64,
    ce: u64,
    /// The highest packet number at some times of late.
    marks: VecDeque<(Time, u64)>,
    /// Receive times since the last feedback.
    recent: Vec<(u64, Time)>,
}

impl Receipts {
    pub(super) fn new() -> Self {
        Self {
            words: VecDeque::new(),
            base: 0,
            largest: None,
            packets: 0,
            bytes: 0,
            ce: 0,
            marks: VecDeque::new(),
            recent: Vec::new(),
        }
    }

    /// Records packet `number`; false if it was there before or is too old.
    pub(super) fn receive(&mut self, now: Time, number: u64, size: u32, ecn: Ecn) -> bool {
        if number < self.base {
            return false;
        }
        // A forged number cannot come here, so the gap is no larger than what the peer really
        // skipped; but a peer may be hostile, and the window bounds what it costs.
        if number - self.base >= 2 * WINDOW {
            self.words.clear();
            self.base = (number - WINDOW) & !63;
        }
        let index = ((number - self.base) / 64) as usize;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        let bit = 1u64 << (number % 64);
        if self.words[index] & bit != 0 {
            return false;
        }
        self.words[index] |= bit;
        while self.words.len() as u64 * 64 > WINDOW {
            self.words.pop_front();
            self.base += 64;
        }
        self.packets += 1;
        self.bytes += u64::from(size);
        self.ce += u64::from(ecn == Ecn::Ce);
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        if self.recent.len() < 4096 {
            self.recent.push((number, now));
        }
        true
    }

    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// The share of all packets up to the highest that have not come.
    pub(super) fn loss(&self) -> f64 {
        let sent = self.largest.map_or(0, |(largest, _)| largest + 1);
        if sent == 0 { 0.0 } else { sent.saturating_sub(self.packets) as f64 / sent as f64 }
    }

    /// What to tell the sender, over a round trip of about `rtt`; `None` if nothing ever came.
    pub(super) fn feedback(&mut self, now: Time, path: u8, rtt: Duration) -> Option<Feedback> {
        let (largest, at) = self.largest?;
        let mut feedback = Feedback {
            path,
            largest,
            received_at_us: at.as_nanos() / 1000,
            delay_us: u32::try_from(now.since(at).as_micros()).unwrap_or(u32::MAX),
            packets: self.packets,
            bytes: self.bytes,
            ce: self.ce,
            ..Feedback::default()
        };
        let told = self.told(now, largest, TOLD.0 + rtt * TOLD.1);
        self.runs(largest, told, &mut feedback);
        self.samples(largest, at, &mut feedback);
        Some(feedback)
    }

    /// The first packet number that has not been told for so long.
    fn told(&mut self, now: Time, largest: u64, span: Duration) -> u64 {
        if self.marks.back().is_none_or(|(at, _)| now.since(*at) >= span / MARKS) {
            self.marks.push_back((now, largest));
        }
        let is_old = |mark: &(Time, u64)| now.since(mark.0) >= span;
        while self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
        self.marks.front().filter(|mark| is_old(mark)).map_or(0, |(_, number)| *number)
    }

    /// How many numbers in a row from `highest` downwards, to `lowest` at most, have come, or have
    /// not.
    fn run(&self, highest: u64, lowest: u64, come: bool) -> u32 {
        let mut next = highest;
        loop {
            let word =
                next.checked_sub(self.base).and_then(|at| self.words.get((at / 64) as usize));
            let word = word.copied().unwrap_or(0);
            let below = (next % 64) as u32;
            // What has come are ones now, from the highest bit on.
            let ones = (if come { word } else { !word } << (63 - below)).leading_ones();
            let equal = u64::from(ones.min(below + 1));
            if next - lowest < equal {
                return (highest - lowest + 1) as u32;
            }
            next -= equal;
            if ones <= below {
                return (highest - next) as u32;
            }
        }
    }

    fn runs(&self, largest: u64, told: u64, feedback: &mut Feedback) {
        let lowest = self.base.max(largest.saturating_sub(REPORT)).max(told);
        let (mut next, mut come) = (largest, true);
        while feedback.runs.len() < MAX_RUNS {
            let run = self.run(next, lowest, come);
            feedback.runs.push(run);
            if next - lowest < u64::from(run) {
                return;
            }
            next -= u64::from(run);
            come = !come;
        }
    }

    /// Spreads the samples evenly over what came since the last feedback; a short train is reported
    /// whole.
    fn samples(&mut self, largest: u64, at: Time, feedback: &mut Feedback) {
        let step = self.recent.len().div_ceil(MAX_SAMPLES).max(1);
        for (number, time) in self.recent.iter().step_by(step) {
            if let (Some(below @ 1..), Ok(before)) =
                (largest.checked_sub(*number), u32::try_from(at.offset_from(*time) / 1000))
            {
                feedback.samples.push((u32::try_from(below).unwrap_or(u32::MAX), before));
            }
        }
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn receive(receipts: &mut Receipts, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            assert!(receipts.receive(Time::from_nanos(number * 1000), number, 100, Ecn::NotEct));
        }
    }

    #[test]
    fn runs_tell_what_arrived() {
        let mut receipts = Receipts::new();
        receive(&mut receipts, [0, 1, 2, 5, 6, 9]);
        let feedback = receipts.feedback(Time::from_nanos(20_000), 0, RTT).unwrap();
        assert_eq!(feedback.runs.as_slice(), [1, 2, 2, 2, 3]);
        let received: Vec<_> = feedback.ranges().filter(|r| r.2).map(|r| (r.0, r.1)).collect();
        assert_eq!(received, [(9, 9), (5, 6), (0, 2)]);
        assert_eq!(feedback.delay_us, 11);
        assert!((receipts.loss() - 0.4).abs() < 1e-9);
    }

    #[test]
    fn runs_are_those_that_a_look_at_every_number_finds() {
        let seed = 0x7275_6e73;
        println!("seed {seed:#x}");
        let mut random = fontis_base::Stream::new(seed, "receipts");
        for _ in 0..200 {
            let (first, most) = (random.below(1000), random.below(6) + 1);
            let mut come = std::collections::BTreeSet::new();
            let mut number = first;
            for _ in 0..random.below(40) + 1 {
                let longest = [2, 70, 200][random.below(3) as usize];
                let run = random.below(longest) + 1;
                come.extend(number..number + run);
                number += run + random.below(most * most * 30) + 1;
            }
            let mut receipts = Receipts::new();
            receive(&mut receipts, come.iter().copied());
            let feedback = receipts.feedback(Time::from_nanos(1 << 40), 0, RTT).unwrap();
            let largest = *come.last().unwrap();
            let lowest = receipts.base.max(largest.saturating_sub(REPORT));
            let mut expected = vec![0u32];
            for number in (lowest..=largest).rev() {
                let told = expected.len() % 2 == 1;
                if come.contains(&number) != told {
                    expected.push(0);
                }
                *expected.last_mut().unwrap() += 1;
            }
            expected.truncate(MAX_RUNS);
            assert_eq!(feedback.runs.as_slice(), expected);
        }
    }

    #[test]
    fn a_slow_path_is_not_told_for_ever_what_was_lost_once() {
        let mut receipts = Receipts::new();
        let mut most = 0;
        for number in 0..3000 {
            // Every tenth packet of a hundred a second is lost.
            let now = Time::ZERO + Duration::from_millis(number * 10);
            if number % 10 != 9 {
                receipts.receive(now, number, 100, Ecn::NotEct);
            }
            let feedback = receipts.feedback(now, 0, RTT).unwrap();
            let (first, _, _) = feedback.ranges().last().unwrap();
            assert!(number - first >= number.min(120), "{first} at {number}");
            most = most.max(feedback.runs.len());
        }
        // 1.2 s to 1.5 s, ten packets in two runs.
        assert!((24..=32).contains(&most), "{most}");
    }

    #[test]
    fn replays_and_ancient_packets_are_refused() {
        let mut receipts = Receipts::new();
        receive(&mut receipts, [7]);
        assert!(!receipts.receive(Time::ZERO, 7, 100, Ecn::NotEct));
        receive(&mut receipts, [7 + 3 * WINDOW]);
        assert!(!receipts.receive(Time::ZERO, 8, 100, Ecn::NotEct));
        receive(&mut receipts, [u64::from(u32::MAX)]);
        assert!(receipts.words.len() as u64 * 64 <= WINDOW + 64);
    }

    #[test]
    fn a_short_train_is_reported_whole() {
        let mut receipts = Receipts::new();
        receive(&mut receipts, 10..20);
        let feedback = receipts.feedback(Time::from_nanos(20_000), 0, RTT).unwrap();
        let expected: Vec<_> = (1..10).rev().map(|i| (i, i)).collect();
        assert_eq!(feedback.samples.as_slice(), expected);
    }
}
