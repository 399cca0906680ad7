use fontis_base::Time;
use smallvec::SmallVec;

/// What has arrived on one path: run lengths, receive times, congestion marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// The path that it is about.
    pub path: u8,
    /// The highest packet number received.
    pub largest: u64,
    /// When that packet came, in microseconds on the receiver's clock.
    pub received_at_us: u64,
    /// How long ago that was when this frame was sent, in microseconds.
    pub delay_us: u32,
    /// Packets received on the path since the beginning.
    pub packets: u64,
    /// Bytes at the IP layer received on the path since the beginning.
    pub bytes: u64,
    /// Packets that came marked congestion experienced.
    pub ce: u64,
    /// Lengths of alternating runs downward from `largest`: received, missing, received, …
    pub runs: SmallVec<[u32; 16]>,
    /// Receive times of further packets: how far below `largest`, and how many microseconds before
    /// it.
    pub samples: SmallVec<[(u32, u32); 16]>,
}

impl Feedback {
    /// Leaves out the oldest runs and samples until the rest fits.
    pub(super) fn shorten(&mut self, fits: impl Fn(&Self) -> bool) {
        while !fits(self) && self.runs.len() + self.samples.len() > 1 {
            self.runs.truncate(self.runs.len().div_ceil(2).max(1));
            self.samples.drain(..self.samples.len().div_ceil(2));
        }
    }

    /// When the highest packet came, on the receiver's clock.
    pub(super) const fn received_at(&self) -> Time {
        Time::from_nanos(self.received_at_us.saturating_mul(1000))
    }

    /// The receive times that it reports: packet number, time on the receiver's clock in
    /// microseconds.
    pub(super) fn arrivals(&self) -> impl Iterator<Item = (u64, i64)> {
        let at = self.received_at_us as i64;
        let samples = self.samples.iter().filter_map(move |(below, before)| {
            Some((self.largest.checked_sub(u64::from(*below))?, at - i64::from(*before)))
        });
        core::iter::once((self.largest, at)).chain(samples)
    }

    /// The packet numbers covered, from the highest down, in runs: (first, last, received).
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, bool)> {
        let mut next = Some(self.largest);
        self.runs.iter().enumerate().map_while(move |(index, length)| {
            let last = next?;
            let length = u64::from(*length).max(1);
            let first = last.checked_sub(length - 1)?;
            next = first.checked_sub(1);
            Some((first, last, index % 2 == 0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_from_the_oldest_on() {
        let whole = Feedback {
            largest: 10_000,
            runs: (1..=300).collect(),
            samples: (1..=32).rev().map(|below| (below, below)).collect(),
            ..Feedback::default()
        };
        let len = |feedback: &Feedback| feedback.runs.len() + 2 * feedback.samples.len();
        for room in 1..500 {
            let mut feedback = whole.clone();
            feedback.shorten(|feedback| len(feedback) <= room);
            assert!(len(&feedback) <= room);
            assert_eq!(feedback.runs[..], whole.runs[..feedback.runs.len()]);
            let left_out = whole.samples.len() - feedback.samples.len();
            assert_eq!(feedback.samples[..], whole.samples[left_out..]);
        }
        let mut feedback = whole.clone();
        feedback.shorten(|feedback| len(feedback) <= 2000);
        assert_eq!(feedback, whole);
    }
}
