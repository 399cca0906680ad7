use fontis_base::{Duration, Time};

/// A quantity over time, thinned out so that it stays small however long the trace is: of each span
/// of time the smallest and the largest value are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is: series of the same group share a plot.
    pub group: Group,
    /// Its name.
    pub name: String,
    /// The flow, if it is one's.
    pub flow: Option<u16>,
    /// Its points in the order of their times.
    pub points: Vec<(Time, f32)>,
    /// How many points are read before two are kept.
    stride: usize,
    /// The points read since two were last kept: how many, and the smallest and largest.
    read: usize,
    low: (Time, f32),
    high: (Time, f32),
}

/// What plots there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// How much data has arrived.
    Delivered,
    /// How fast data goes.
    Rate,
    /// How long a round trip takes.
    RoundTrip,
    /// Windows, and what is in flight.
    Window,
    /// What waits at the receiver for something missing.
    ReceiveBuffer,
    /// What waits in queues.
    Queue,
    /// Blocks: what they have and need.
    Blocks,
    /// What the sender believes of the path's loss.
    Loss,
}

impl Group {
    /// Its title and unit.
    pub const fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Delivered => ("Delivered", "B"),
            Self::Rate => ("Rate", "Mbit/s"),
            Self::RoundTrip => ("Round-trip time", "ms"),
            Self::Window => ("Window and flight", "B"),
            Self::ReceiveBuffer => ("Receive buffer, held back", "B"),
            Self::Queue => ("Queue", "B"),
            Self::Blocks => ("Blocks under way", "symbols"),
            Self::Loss => ("Loss", "%"),
        }
    }

    /// By the title.
    pub fn from_title(title: &str) -> Option<Self> {
        use Group::{Blocks, Delivered, Loss, Queue, Rate, ReceiveBuffer, RoundTrip, Window};
        [Delivered, Rate, RoundTrip, Window, ReceiveBuffer, Queue, Blocks, Loss]
            .into_iter()
            .find(|group| group.title().0 == title)
    }
}

/// The most points that a series keeps.
const MOST: usize = 8192;

impl Series {
    /// A series without points.
    pub fn new(group: Group, name: impl Into<String>, flow: Option<u16>) -> Self {
        let none = (Time::ZERO, 0.0);
        let name = name.into();
        Self { group, name, flow, points: Vec::new(), stride: 1, read: 0, low: none, high: none }
    }

    /// Adds a value; what is no number is left out.
    pub fn push(&mut self, at: Time, value: f64) {
        let value = value as f32;
        if !value.is_finite() {
            return;
        }
        if self.stride == 1 {
            self.points.push((at, value));
        } else {
            if self.read == 0 || value < self.low.1 {
                self.low = (at, value);
            }
            if self.read == 0 || value > self.high.1 {
                self.high = (at, value);
            }
            self.read += 1;
            if self.read == self.stride {
                self.keep();
            }
        }
        if self.points.len() >= MOST {
            self.halve();
        }
    }

    fn keep(&mut self) {
        let (first, second) =
            if self.low.0 <= self.high.0 { (self.low, self.high) } else { (self.high, self.low) };
        self.points.push(first);
        if first != second {
            self.points.push(second);
        }
        self.read = 0;
    }

    /// Of four points the smallest and largest stay.
    fn halve(&mut self) {
        let points = core::mem::take(&mut self.points);
        for four in points.chunks(4) {
            let by_value = |a: &&(Time, f32), b: &&(Time, f32)| a.1.total_cmp(&b.1);
            let (Some(low), Some(high)) =
                (four.iter().min_by(by_value), four.iter().max_by(by_value))
            else {
                continue;
            };
            (self.low, self.high) = (*low, *high);
            self.keep();
        }
        self.stride = if self.stride == 1 { 4 } else { self.stride * 2 };
        // What had been read of the span that was under way is read anew.
        self.read = 0;
    }

    /// Keeps what was read last, too, and puts all in order: what is concluded of a time may be
    /// concluded late.
    pub fn finish(&mut self) {
        if self.read > 0 {
            self.keep();
        }
        self.points.sort_by_key(|(at, _)| *at);
    }
}

/// Bytes counted into equal spans of time, which double when there are too many.
#[derive(Clone, Debug)]
pub(crate) struct RateBins {
    width: Duration,
    bins: Vec<u64>,
}

/// The width of the first bins: fine enough to see bursts, coarse enough for a few packets.
const FIRST_WIDTH: Duration = Duration::from_millis(1);
const MOST_BINS: usize = 2048;
/// More bins than this many packets' worth of width say nothing: a rate needs a few packets.
const PACKETS_IN_A_BIN: u64 = 8;

impl Default for RateBins {
    fn default() -> Self {
        Self { width: FIRST_WIDTH, bins: Vec::new() }
    }
}

impl RateBins {
    /// Counts bytes at a time.
    pub(crate) fn add(&mut self, at: Time, bytes: u64) {
        let mut bin = (at.as_nanos() / self.width.as_nanos()) as usize;
        while bin >= MOST_BINS {
            self.double();
            bin = (at.as_nanos() / self.width.as_nanos()) as usize;
        }
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes;
    }

    fn double(&mut self) {
        self.width = self.width + self.width;
        self.bins = self.bins.chunks(2).map(|two| two.iter().sum()).collect();
    }

    /// The rates in Mbit/s; bins are widened until a used one holds a few packets in the mean.
    pub(crate) fn into_series(mut self, mut series: Series, packets: u64) -> Series {
        loop {
            let used = self.bins.iter().filter(|bytes| **bytes > 0).count() as u64;
            if used * PACKETS_IN_A_BIN <= packets || self.bins.len() < 32 {
                break;
            }
            self.double();
        }
        let seconds = self.width.as_secs_f64();
        let begin = |bin: usize| Time::from_nanos(self.width.as_nanos().saturating_mul(bin as u64));
        for (index, bytes) in self.bins.iter().enumerate() {
            series.push(begin(index), *bytes as f64 * 8e-6 / seconds);
        }
        if let Some(last) = self.bins.last() {
            series.push(begin(self.bins.len()), *last as f64 * 8e-6 / seconds);
        }
        series.finish();
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_stays_small_and_keeps_its_extremes() {
        let mut series = Series::new(Group::Queue, "q", None);
        for index in 0..1_000_000u64 {
            let value = if index == 654_321 { 1e6 } else { (index % 100) as f64 };
            series.push(Time::from_nanos(index), value);
        }
        series.finish();
        assert!(series.points.len() <= MOST, "{}", series.points.len());
        assert!(series.points.iter().any(|(_, value)| *value == 1e6));
        assert!(series.points.iter().any(|(_, value)| *value == 0.0));
        assert!(series.points.is_sorted_by_key(|(at, _)| *at));
    }

    #[test]
    fn bins_hold_every_byte_however_long_the_trace() {
        let mut bins = RateBins::default();
        for second in 0..10_000u64 {
            bins.add(Time::from_nanos(second * 1_000_000_000), 1000);
        }
        let width = bins.width.as_secs_f64();
        let series = bins.into_series(Series::new(Group::Rate, "r", None), 10_000);
        let steps = series.points.windows(2).map(|two| (two[1].0.since(two[0].0), two[0].1));
        let bytes: f64 =
            steps.map(|(span, rate)| span.as_secs_f64() * f64::from(rate) * 1e6 / 8.0).sum();
        assert!(width >= 1.0 && (bytes - 1e7).abs() < 1e4, "{bytes}");
    }
}
