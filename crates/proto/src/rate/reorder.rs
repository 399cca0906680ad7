//! A buffer that puts packets back into order before loss detection sees them (Sarwar 2014, chapter
//! 5).

use std::collections::{BTreeMap, VecDeque};

use fontis_base::{Duration, Rate, Time};

/// When a reorder buffer hands packets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorderMode {
    /// Packets in order pass at once; a gap holds what follows.
    Hold,
    /// The buffer is kept full: the first packet leaves when one more comes than it holds.
    Full,
}

/// A buffer that puts packets back into order. It holds a packet for at most the delay that the
/// application allows, and holds at most the packets that arrive in that time (equation 5.2: size =
/// rate × delay).
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T> {
    mode: ReorderMode,
    delay: Duration,
    /// The number of the packet that is handed on next; `None` before the first.
    next: Option<u64>,
    held: BTreeMap<u64, Held<T>>,
    /// When they came, and their numbers, in the order of arrival. The first is there still.
    order: VecDeque<(Time, u64)>,
    bytes: u64,
    /// The size in bytes, and in packets of mean size.
    limit: u64,
    limit_packets: usize,
    /// A size in packets that no rate changes.
    fixed: Option<usize>,
    mean: u64,
    late: u64,
}

#[derive(Clone, Debug)]
struct Held<T> {
    bytes: u32,
    item: T,
}

/// Packets that a buffer may hold, whatever its size.
const MOST_HELD: usize = 4096;

impl<T> ReorderBuffer<T> {
    /// An empty buffer for a flow whose rate is at first `peak`.
    pub fn new(mode: ReorderMode, delay: Duration, peak: Rate) -> Self {
        let mut buffer = Self {
            mode,
            delay,
            next: None,
            held: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            limit: 0,
            limit_packets: 1,
            fixed: None,
            mean: 0,
            late: 0,
        };
        buffer.resize(peak);
        buffer
    }

    /// The same buffer with a size of so many packets, whatever the rate.
    pub fn with_packets(mut self, packets: usize) -> Self {
        self.fixed = Some(packets.clamp(1, MOST_HELD));
        self
    }

    /// Sets the size for a new rate. A smaller buffer hands its first packets on.
    pub fn resize(&mut self, rate: Rate) {
        self.limit = rate.bytes_in(self.delay);
        let packets = self.limit.checked_div(self.mean).unwrap_or(1);
        self.limit_packets = usize::try_from(packets).unwrap_or(MOST_HELD).clamp(1, MOST_HELD);
    }

    /// The size in packets.
    pub const fn size(&self) -> usize {
        match self.fixed {
            Some(packets) => packets,
            None => self.limit_packets,
        }
    }

    /// Packets that came after the buffer had gone on without them.
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Bytes in the buffer.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets in the buffer.
    pub fn packets(&self) -> usize {
        self.held.len()
    }

    /// Whether the buffer has gone on without this packet, or has handed it on.
    pub fn has_passed(&self, number: u64) -> bool {
        self.next.is_some_and(|next| number < next)
    }

    /// Nothing before packet `number` is waited for.
    pub fn skip_to(&mut self, number: u64) {
        self.next = self.next.max(Some(number));
    }

    /// Takes packet `number` of `bytes` bytes. A packet that is too late, or there already, is
    /// dropped.
    pub fn push(&mut self, now: Time, number: u64, bytes: u32, item: T) {
        if self.has_passed(number) {
            self.late += 1;
            return;
        }
        if self.held.contains_key(&number) {
            return;
        }
        // In the mode that holds, the first packet begins the order.
        if self.mode == ReorderMode::Hold {
            self.next.get_or_insert(number);
        }
        let old = self.mean;
        self.mean = if old == 0 { bytes.into() } else { (7 * old + u64::from(bytes)) / 8 };
        if old == 0 {
            let packets = self.limit.checked_div(self.mean).unwrap_or(1);
            self.limit_packets = usize::try_from(packets).unwrap_or(1).clamp(1, MOST_HELD);
        }
        self.bytes += u64::from(bytes);
        self.held.insert(number, Held { bytes, item });
        self.order.push_back((now, number));
    }

    /// The next packet that is handed on at `now`. Numbers that are left out are lost.
    pub fn pop(&mut self, now: Time) -> Option<(u64, T)> {
        let (first, _) = self.held.first_key_value()?;
        let is_next = self.next.is_some_and(|next| *first <= next);
        let is_over = match (self.mode, self.fixed) {
            (ReorderMode::Hold, None) => self.bytes > self.limit.max(self.mean),
            _ => self.held.len() > self.size(),
        };
        let passes = is_next && self.mode == ReorderMode::Hold;
        let is_due = passes || is_over || self.held.len() > MOST_HELD || self.due() <= now;
        if !is_due {
            return None;
        }
        let (number, Held { bytes, item, .. }) = self.held.pop_first()?;
        self.bytes -= u64::from(bytes);
        self.next = self.next.max(Some(number + 1));
        while self.order.front().is_some_and(|(_, number)| !self.held.contains_key(number)) {
            self.order.pop_front();
        }
        Some((number, item))
    }

    /// Drops all that waits.
    pub fn clear(&mut self) {
        self.held.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// When [`ReorderBuffer::pop`] hands a packet on without a new one; [`Time::MAX`] if it is
    /// empty.
    pub fn due(&self) -> Time {
        // The oldest need not be the first: one that it overtook may have come after it.
        self.order.front().map_or(Time::MAX, |(at, _)| *at + self.delay)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DELAY: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn drain(buffer: &mut ReorderBuffer<()>, now: Time) -> Vec<u64> {
        core::iter::from_fn(|| Some(buffer.pop(now)?.0)).collect()
    }

    #[test]
    fn sizes_are_those_of_the_thesis() {
        let size = |kbps: u64, delay, bytes| {
            let rate = Rate::from_bps(kbps * 1000);
            let mut buffer =
                ReorderBuffer::new(ReorderMode::Full, Duration::from_millis(delay), rate);
            buffer.push(Time::ZERO, 0, bytes, ());
            buffer.size()
        };
        assert_eq!([size(1000, 50, 500), size(80, 100, 200), size(24, 100, 60)], [12, 5, 5]);
    }

    #[test]
    fn a_gap_holds_what_follows_until_it_is_filled() {
        // Figure 5.1: 1 and 2 pass, 4 and later wait for 3.
        let mut buffer = ReorderBuffer::new(ReorderMode::Hold, DELAY, Rate::from_mbps(10));
        for number in [1, 2] {
            buffer.push(at(0), number, 100, ());
            assert_eq!(drain(&mut buffer, at(0)), [number]);
        }
        for number in [4, 5, 6] {
            buffer.push(at(number), number, 100, ());
            assert!(drain(&mut buffer, at(number)).is_empty());
        }
        buffer.push(at(8), 3, 100, ());
        assert_eq!(drain(&mut buffer, at(8)), [3, 4, 5, 6]);
    }

    #[test]
    fn a_gap_is_given_up_after_the_delay_or_when_the_buffer_is_full() {
        let mut buffer = ReorderBuffer::new(ReorderMode::Hold, DELAY, Rate::from_bps(80_000));
        buffer.push(at(0), 1, 200, ());
        assert_eq!(drain(&mut buffer, at(0)), [1]);
        buffer.push(at(10), 3, 200, ());
        assert_eq!(buffer.due(), at(110));
        assert!(drain(&mut buffer, at(109)).is_empty());
        assert_eq!(drain(&mut buffer, at(110)), [3]);
        // 1000 bytes are five packets: the sixth is too much.
        for number in 5..10 {
            buffer.push(at(120), number, 200, ());
            assert!(drain(&mut buffer, at(120)).is_empty());
        }
        buffer.push(at(121), 10, 200, ());
        assert_eq!(drain(&mut buffer, at(121)), [5, 6, 7, 8, 9, 10]);
        buffer.push(at(122), 4, 200, ());
        assert_eq!((drain(&mut buffer, at(300)), buffer.late()), (Vec::new(), 1));
    }

    #[test]
    fn a_buffer_that_is_kept_full_delays_by_its_size() {
        let mut buffer = ReorderBuffer::new(ReorderMode::Full, DELAY, Rate::from_bps(80_000));
        for number in 0..20u64 {
            buffer.push(at(number * 20), number, 200, ());
            let expected: Vec<u64> = number.checked_sub(5).into_iter().collect();
            assert_eq!(drain(&mut buffer, at(number * 20)), expected);
        }
        buffer.resize(Rate::from_bps(32_000));
        assert_eq!(drain(&mut buffer, at(380)), [15, 16, 17]);
    }

    #[test]
    fn a_fixed_size_does_not_follow_the_rate() {
        for mode in [ReorderMode::Full, ReorderMode::Hold] {
            let mut buffer = ReorderBuffer::new(mode, DELAY, Rate::from_mbps(1)).with_packets(3);
            buffer.resize(Rate::from_bps(8));
            // Number 2 is missing.
            let numbers = [1, 3, 4, 5];
            numbers.iter().for_each(|number| buffer.push(at(0), *number, 500, ()));
            assert_eq!((buffer.size(), drain(&mut buffer, at(0))), (3, vec![1]), "{mode:?}");
            buffer.push(at(1), 6, 500, ());
            let passed: &[u64] = if mode == ReorderMode::Full { &[3] } else { &[3, 4, 5, 6] };
            assert_eq!(drain(&mut buffer, at(1)), passed, "{mode:?}");
        }
    }

    proptest! {
        #[test]
        fn order_is_kept_and_nothing_waits_longer_than_the_delay(
            steps in prop::collection::vec((0u64..40, 0u64..30), 1..200), is_full in any::<bool>()
        ) {
            let mode = if is_full { ReorderMode::Full } else { ReorderMode::Hold };
            let mut buffer = ReorderBuffer::new(mode, DELAY, Rate::from_bps(200_000));
            let (mut now, mut last, mut pushed, mut popped) = (Time::ZERO, None, 0, 0);
            for (count, (number, gap)) in steps.into_iter().enumerate() {
                now += Duration::from_millis(gap);
                let before = buffer.held.len();
                buffer.push(now, count as u64 + number, 200, now);
                pushed += buffer.held.len() - before;
                while let Some((number, came)) = buffer.pop(now) {
                    prop_assert!(last.is_none_or(|last| number > last));
                    // It may have had to wait for the next step of this test.
                    prop_assert!(now.since(came) <= DELAY + Duration::from_millis(30));
                    last = Some(number);
                    popped += 1;
                }
            }
            while buffer.pop(now + DELAY).is_some() {
                popped += 1;
            }
            prop_assert_eq!(pushed, popped);
        }
    }
}
