use std::collections::VecDeque;

use fontis_base::Time;

/// Packets whose departure is remembered: half a second at 1.5 Gbit/s.
const MOST: usize = 1 << 16;

/// When each of the newest packets left.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// The number of the first that is remembered.
    first: u64,
    times: VecDeque<Time>,
}

impl Departures {
    /// Notes that the next packet leaves, and returns its number.
    pub(super) fn note(&mut self, now: Time) -> u64 {
        if self.times.len() == MOST {
            self.times.pop_front();
            self.first += 1;
        }
        self.times.push_back(now);
        self.first + self.times.len() as u64 - 1
    }

    /// When packet `number` left, if it did and is remembered.
    pub(super) fn of(&self, number: u64) -> Option<Time> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.times.get(index).copied()
    }
}
