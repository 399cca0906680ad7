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
