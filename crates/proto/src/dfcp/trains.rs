use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use fontis_base::{Duration, Rate};

use super::feedback::Feedback;
use super::history::History;

/// Packets of the first flight that leave back to back.
const LENGTH: u64 = 16;
/// When the path is known to be fast, a second and longer train, of as much as passes in this time,
/// measures it better.
const SECOND_TIME: Duration = Duration::from_millis(5);
const SECOND_LENGTHS: RangeInclusive<u64> = 24..=48;
/// A train shorter than this is no basis for more than a first guess.
const LONG: usize = 8;
/// A train that took longer, by the peer's word, measures nothing: not even a line of 1 kbit/s
/// needs as much.
const LONGEST: Duration = Duration::from_secs(600);
/// What a host's own pauses may do to the spacing of a train.
const MOST_UNEVEN: Duration = Duration::from_millis(1);
/// What a host's clock and scheduler commonly add to the time that a few packets take, of which
/// they make up to half: a line of 100 Mbit/s passes two small ones in 50 µs.
const HOST_SPACING_US: u64 = 200;

/// Packets that leave back to back, and what their dispersion says of the bottleneck.
pub(super) struct Trains {
    /// The first and the last packet of those that have not been measured.
    under_way: Vec<(u64, u64)>,
    /// Receive times of their packets in microseconds, as far as they have been reported.
    times: BTreeMap<u64, i64>,
    /// Sizes of their packets that were received.
    sizes: BTreeMap<u64, u16>,
    /// Packets that the present train will have, and those of them that have not left.
    length: u64,
    left: u64,
    /// The longest that was measured while another was under way.
    measured: Option<Dispersion>,
    /// The next packet begins another.
    broken: bool,
}

/// What a train measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dispersion {
    /// The bottleneck's rate.
    pub(super) rate: Rate,
    packets: usize,
}

impl Dispersion {
    /// Whether it is more than a first guess.
    pub(super) const fn is_long(&self) -> bool {
        self.packets >= LONG
    }
}

impl Trains {
    /// The first train is about to leave, if it is wanted.
    pub(super) fn new(wanted: bool) -> Self {
        let length = if wanted { LENGTH } else { 0 };
        Self {
            under_way: Vec::new(),
            times: BTreeMap::new(),
            sizes: BTreeMap::new(),
            length,
            left: length,
            measured: None,
            broken: false,
        }
    }

    /// Measures anew, if that is wanted: the path is another.
    pub(super) fn restart(&mut self, wanted: bool) {
        self.begin(if wanted { LENGTH } else { 0 });
        self.measured = None;
    }

    /// None is needed: the path's rate is known.
    pub(super) const fn renounce(&mut self) {
        (self.left, self.length) = (0, 0);
    }

    const fn begin(&mut self, length: u64) {
        (self.length, self.left, self.broken) = (length, length, true);
    }

    /// Whether the next data packet belongs to one, and leaves at once.
    pub(super) const fn goes_on(&self) -> bool {
        self.left > 0
    }

    /// A data packet of a train leaves.
    pub(super) fn sent(&mut self, number: u64) {
        self.left -= 1;
        self.mark(number);
    }

    /// The packet is sent back to back with the one before it.
    pub(super) fn mark(&mut self, number: u64) {
        match self.under_way.last_mut() {
            Some((_, last)) if *last + 1 == number && !self.broken => *last = number,
            _ => self.under_way.push((number, number)),
        }
        self.broken = false;
    }

    /// There is nothing more to send: a train that is long enough is over, a shorter one begins
    /// anew.
    pub(super) const fn end(&mut self) {
        let sent = self.length - self.left;
        if self.left > 0 && sent > 0 {
            self.left = if sent < LONG as u64 { self.length } else { 0 };
            self.broken = true;
        }
    }

    /// A first guess of the rate says how long a second train should be, of packets of this size.
    pub(super) fn follow_up(&mut self, rate: Rate, size: u32) {
        let packets = rate.bytes_in(SECOND_TIME) / u64::from(size);
        if packets >= *SECOND_LENGTHS.start() {
            self.begin(packets.min(*SECOND_LENGTHS.end()));
        }
    }

    /// What the longest train says when a feedback completes the last that is under way; a short
    /// one says what it can at once. A train's packets may be reported in several feedbacks.
    pub(super) fn measure(&mut self, feedback: &Feedback, history: &History) -> Option<Dispersion> {
        let Self { under_way, times, sizes, .. } = self;
        let in_train =
            |number: &u64| under_way.iter().any(|(first, last)| (*first..=*last).contains(number));
        times.extend(feedback.arrivals().filter(|(number, _)| in_train(number)));
        for (low, high, _) in feedback.ranges().filter(|(_, _, received)| *received) {
            // Only within the trains: a run may claim to be as long as a number can be.
            let numbers =
                under_way.iter().flat_map(|(first, last)| low.max(*first)..=high.min(*last));
            sizes.extend(numbers.filter_map(|number| Some((number, history.get(number)?.size))));
        }
        let mut longest = self.measured.take();
        while let Some((first, last)) = self.under_way.first().copied() {
            // The first precedes all data: it had all the time that it takes when the first
            // feedback was sent.
            let early = first == 0 && self.times.len() > 1;
            if last > feedback.largest && !early {
                break;
            }
            self.under_way.remove(0);
            let measured = self.dispersion(first, last);
            longest = longest.into_iter().chain(measured).max_by_key(|train| train.packets);
            self.times.retain(|number, _| *number > last);
            self.sizes.retain(|number, _| *number > last);
        }
        if longest.is_some_and(|train| !train.is_long()) || self.under_way.is_empty() {
            return longest;
        }
        self.measured = longest;
        None
    }

    fn dispersion(&self, first: u64, last: u64) -> Option<Dispersion> {
        let mut times = self.times.range(first..=last);
        let (&from, &begin) = times.next()?;
        let (&to, &end) = times.next_back()?;
        let span = u64::try_from(end.checked_sub(begin)?).ok()?;
        if span == 0 || span > LONGEST.as_micros() {
            return None;
        }
        let behind = || self.sizes.range(from + 1..=to);
        let bytes: u64 = behind().map(|(_, size)| u64::from(*size)).sum();
        let packets = behind().count() + 1;
        if packets < LONG {
            // A few packets between which the path's jitter stands say nothing of its rate.
            let mut passed = 0;
            let uneven = behind().any(|(number, size)| {
                passed += u64::from(*size);
                let due = begin + (span * passed / bytes.max(1)) as i64;
                let strays = |at: &i64| at.abs_diff(due) > span.max(MOST_UNEVEN.as_micros());
                self.times.get(number).is_some_and(strays)
            });
            let span = span - HOST_SPACING_US.min(span / 2);
            return (!uneven).then(|| Self::passed(bytes, span, packets));
        }
        let gaps = self.times.range(from..=last).zip(self.times.range(from + 1..=last));
        let ((&before, &left), (&after, &arrived)) =
            gaps.max_by_key(|(a, b)| b.1.saturating_sub(*a.1))?;
        if arrived.abs_diff(left) > span / 2 {
            // In two clumps: something else than the bottleneck held it up. A few stragglers do not
            // spoil the others.
            let clumps = [(first, before), (after, last)];
            let count = |(low, high): (u64, u64)| self.sizes.range(low..=high).count();
            let most = clumps.into_iter().max_by_key(|clump| count(*clump))?;
            let is_most = count(most) >= LONG && 4 * count(most) >= 3 * packets;
            return is_most.then(|| self.dispersion(most.0, most.1)).flatten();
        }
        Some(Self::passed(bytes, span, packets))
    }

    fn passed(bytes: u64, span_us: u64, packets: usize) -> Dispersion {
        Dispersion { rate: Rate::from_bytes_over(bytes, Duration::from_micros(span_us)), packets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What packets of 1250 bytes say of the bottleneck: the number of each behind the train's
    /// first, and when it arrived, in microseconds.
    fn measured(packets: impl IntoIterator<Item = (u64, i64)>) -> Option<(Rate, usize)> {
        let mut trains = Trains::new(true);
        trains.times = packets.into_iter().map(|(number, at)| (10 + number, at)).collect();
        trains.sizes = trains.times.keys().map(|number| (*number, 1250)).collect();
        trains.dispersion(10, 40).map(|train| (train.rate, train.packets))
    }

    fn arrived(times: &[i64]) -> Option<(Rate, usize)> {
        measured((0..).zip(times.iter().copied()))
    }

    #[test]
    fn a_straggler_does_not_spoil_a_train_and_two_clumps_do() {
        let even: Vec<i64> = (0..12).map(|i| i * 100).collect();
        let hundred = Some((Rate::from_mbps(100), 12));
        assert_eq!(arrived(&even), hundred);
        let straggling = [&even[..], &[2600]].concat();
        assert_eq!(arrived(&straggling), hundred);
        let early: Vec<i64> = core::iter::once(-1500).chain(even.iter().copied()).collect();
        assert_eq!(arrived(&early), hundred);
        let clumps: Vec<i64> = (0..6).chain(9000..9006).collect();
        assert_eq!(arrived(&clumps), None);
        let without_the_first = (1..).zip(clumps.iter().copied());
        assert_eq!(measured(without_the_first), None);
    }

    #[test]
    fn what_hosts_add_makes_up_half_of_a_few_packets_spacing_at_most() {
        assert_eq!(arrived(&[0, 600]), Some((Rate::from_mbps(25), 2)));
        assert_eq!(arrived(&[0, 200]), Some((Rate::from_mbps(100), 2)));
        assert_eq!(arrived(&[0, 10_000]), Some((Rate::from_bps(1_020_408), 2)));
    }
}
