use core::fmt::Write as _;
use core::str::FromStr;
use std::sync::Arc;

use fontis_base::{Duration, Rate, Time};

use crate::error::SpecError;

/// When a link can deliver 1500 bytes, as measured of a real one: mahimahi's format, a line with
/// the millisecond of each opportunity, in order (mahimahi, USENIX ATC 2015, section 3.2). After
/// the last one it begins anew.
///
/// What an opportunity has room for is taken from the packets that wait at that time; what is not
/// used is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// In milliseconds.
    opportunities: Arc<[u64]>,
}

/// Bytes that an opportunity carries.
const ROOM: u32 = 1500;
/// The most opportunities of a frame.
const MOST_IN_FRAME: f64 = 1e6;
/// How many opportunities a trace of frames has at least.
const ENOUGH: f64 = 1e3;
const MILLISECOND: u64 = 1_000_000;
/// Later ones cannot be told in nanoseconds, nor does anybody record for so many years.
const LAST: u64 = u64::MAX / MILLISECOND / 1000;

impl DeliveryTrace {
    /// A trace of these opportunities, in milliseconds. An error says which of them, counted from
    /// 1, is wrong, and how.
    pub fn new(opportunities: Vec<u64>) -> Result<Self, (usize, &'static str)> {
        if let Some(at) = opportunities.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err((at + 2, "is earlier than the one before"));
        }
        match opportunities.last() {
            None => Err((1, "is missing: a trace needs an opportunity")),
            Some(0) => {
                Err((opportunities.len(), "must be later than 0, or the trace takes no time"))
            }
            Some(last) if *last > LAST => Err((opportunities.len(), "is too late")),
            Some(_) => Ok(Self { opportunities: opportunities.into() }),
        }
    }

    /// The trace of a line that sends in bursts, as the slots of TDMA make it: at the end of each
    /// `frame`, which has whole milliseconds, what `rate` allows in it. An error says what cannot
    /// be.
    pub fn in_frames(rate: Rate, frame: Duration) -> Result<Self, &'static str> {
        let millis = frame.as_nanos() / MILLISECOND;
        if millis == 0 || !frame.as_nanos().is_multiple_of(MILLISECOND) {
            return Err("a frame must have whole milliseconds");
        }
        let bytes = rate.as_bps() as f64 / 8e3 * millis as f64;
        let each = bytes / f64::from(ROOM);
        if each > MOST_IN_FRAME {
            return Err("a frame has room for more than a million packets");
        }
        if each * MOST_IN_FRAME < ENOUGH {
            return Err("a frame has room for nothing");
        }
        // So many that what does not fill an opportunity is less than a thousandth.
        let frames = (ENOUGH / each).max(1.0) as u64;
        let until = |count: u64| (each * count as f64) as u64;
        let burst =
            |count: u64| (until(count)..until(count + 1)).map(move |_| (count + 1) * millis);
        let trace = Self::new((0..frames).flat_map(burst).collect());
        trace.map_err(|_| "a frame has room for nothing")
    }

    /// The opportunities, in milliseconds.
    pub fn opportunities(&self) -> &[u64] {
        &self.opportunities
    }

    /// How long it takes until it begins anew.
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.opportunities.last().copied().unwrap_or(1))
    }

    /// What it carries at most, on average.
    pub fn mean_rate(&self) -> Rate {
        let bytes = self.opportunities.len() as u64 * u64::from(ROOM);
        Rate::from_bytes_over(bytes, self.length())
    }

    /// What it carries at most after one time and up to another, in bit/s.
    pub fn mean(&self, from: Time, to: Time) -> f64 {
        let span = to.since(from).as_secs_f64();
        if span == 0.0 {
            return self.mean_rate().as_bps() as f64;
        }
        // How many there are up to a time.
        let count = |time: Time| {
            let Place { cycle, index } = self.first_from(time + Duration::from_nanos(1));
            cycle as f64 * self.opportunities.len() as f64 + index as f64
        };
        (count(to) - count(from)) * f64::from(ROOM) * 8.0 / span
    }

    /// The first opportunity that is not before a time.
    fn first_from(&self, time: Time) -> Place {
        let (nanos, period) = (time.as_nanos(), self.length().as_nanos());
        // The end of a cycle belongs to it: its last opportunity comes then.
        let cycle = nanos.div_ceil(period).saturating_sub(1);
        let within = nanos - cycle * period;
        let index = self.opportunities.partition_point(|at| at * MILLISECOND < within);
        Place { cycle, index }
    }

    fn time(&self, place: Place) -> Time {
        let within = self.opportunities[place.index] * MILLISECOND;
        let begin = place.cycle.saturating_mul(self.length().as_nanos());
        Time::from_nanos(begin.saturating_add(within))
    }

    fn after(&self, place: Place) -> Place {
        match place.index + 1 {
            index if index < self.opportunities.len() => Place { index, ..place },
            _ => Place { cycle: place.cycle + 1, index: 0 },
        }
    }
}

impl FromStr for DeliveryTrace {
    type Err = SpecError;

    /// Reads the text of a trace file; empty lines and what follows a `#` do not count.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let wrong = |line: usize, what: &str, reason: String| SpecError::Line {
            line,
            // It may be any file.
            text: what.chars().take(30).collect(),
            kind: "a delivery trace",
            reason,
        };
        let (mut opportunities, mut lines) = (Vec::new(), Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let at = line.parse().map_err(|_| {
                wrong(number, line, "must be a whole number of milliseconds".to_owned())
            })?;
            opportunities.push(at);
            lines.push((number, line));
        }
        Self::new(opportunities).map_err(|(count, reason)| {
            let (line, text) = lines.get(count - 1).copied().unwrap_or((1, ""));
            wrong(line, text, reason.to_owned())
        })
    }
}

impl core::fmt::Display for DeliveryTrace {
    /// The text of a trace file.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.opportunities.iter().try_for_each(|at| {
            write!(f, "{at}")?;
            f.write_char('\n')
        })
    }
}

/// An opportunity of a trace that is repeated without end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    cycle: u64,
    index: usize,
}

/// A line that sends when a trace lets it, one packet after the other.
#[derive(Clone, Debug)]
pub struct DeliveryLine {
    trace: DeliveryTrace,
    /// The opportunity that was used last.
    place: Place,
    /// What is used of it, in bytes.
    used: u32,
}

impl DeliveryLine {
    /// A line that has sent nothing yet.
    pub fn new(trace: DeliveryTrace) -> Self {
        Self { trace, place: Place::default(), used: 0 }
    }

    pub(crate) const fn trace(&self) -> &DeliveryTrace {
        &self.trace
    }

    /// When a packet that waits from `from` on begins.
    pub(crate) fn begin(&self, from: Time) -> Time {
        self.trace.time(self.next(from))
    }

    fn next(&self, from: Time) -> Place {
        if self.used < ROOM && self.trace.time(self.place) >= from {
            return self.place;
        }
        let free = if self.used < ROOM { self.place } else { self.trace.after(self.place) };
        free.max(self.trace.first_from(from))
    }

    /// Sends a packet that waits from `from` on, and says when its last byte has left.
    pub fn send(&mut self, from: Time, mut bytes: u64) -> Time {
        let next = self.next(from);
        if next != self.place {
            (self.place, self.used) = (next, 0);
        }
        loop {
            let part = bytes.min(u64::from(ROOM - self.used));
            self.used += part as u32;
            bytes -= part;
            if bytes == 0 {
                return self.trace.time(self.place);
            }
            (self.place, self.used) = (self.trace.after(self.place), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> DeliveryTrace {
        text.parse().expect("it is right")
    }

    fn at(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut line = DeliveryLine::new(trace("5\n5\n7\n20\n"));
        assert_eq!(line.send(at(0), 1000), at(5000));
        assert_eq!(line.send(at(0), 500), at(5000));
        // The second of the same millisecond.
        assert_eq!(line.send(at(0), 1500), at(5000));
        assert_eq!(line.begin(at(0)), at(7000));
        assert_eq!(line.send(at(0), 1501), at(20_000));
        // What is left of an opportunity is nobody's who comes later.
        assert_eq!(line.begin(at(20_000)), at(20_000));
        assert_eq!(line.begin(at(20_001)), at(25_000));
        assert_eq!(line.send(at(47_000), 40), at(47_000));
    }

    #[test]
    fn a_trace_begins_anew_after_its_last_opportunity() {
        let trace = trace("0\n10\n");
        let times: Vec<Time> = (0..5)
            .scan(Place::default(), |place, _| {
                let time = trace.time(*place);
                *place = trace.after(*place);
                Some(time)
            })
            .collect();
        assert_eq!(times, [0, 10_000, 10_000, 20_000, 20_000].map(at));
        assert_eq!(trace.first_from(at(10_000)), Place { cycle: 0, index: 1 });
        assert_eq!(trace.first_from(at(10_001)), Place { cycle: 1, index: 1 });
        assert_eq!(trace.mean_rate(), Rate::from_bps(2_400_000));
        assert_eq!(trace.mean(at(0), at(100_000)), 2_400_000.0);
        assert_eq!(trace.mean(at(5_000), at(10_000)), 4_800_000.0);
    }

    #[test]
    fn a_wrong_trace_is_refused_with_its_line() {
        let error = |text: &str| text.parse::<DeliveryTrace>().expect_err(text).to_string();
        assert!(error("1\n\nx\n").contains("line 3") && error("1\n\nx\n").contains("milliseconds"));
        assert!(error("5\n# a pause\n4\n").contains("line 3: \"4\""));
        assert!(error("").contains("needs an opportunity"));
        assert!(error("0\n").contains("takes no time"));
        assert!(error("99999999999999999999").contains("milliseconds"));
        assert!(error("9999999999999999999").contains("too late"));
    }

    #[test]
    fn a_line_with_frames_sends_what_its_rate_allows_once_in_each() {
        let millis = Duration::from_millis;
        let trace = DeliveryTrace::in_frames(Rate::from_bps(1_000_000), millis(36));
        let trace = trace.expect("three packets in a frame");
        assert_eq!(trace.opportunities()[..7], [36, 36, 36, 72, 72, 72, 108]);
        assert_eq!(trace.mean_rate(), Rate::from_bps(1_000_000));
        let odd = DeliveryTrace::in_frames(Rate::from_bps(492_000), millis(7)).expect("a trace");
        assert!(odd.mean_rate().as_bps().abs_diff(492_000) < 1000, "{}", odd.mean_rate());
        for (bps, frame) in [(0, millis(10)), (1_000_000, Duration::from_micros(1500))] {
            assert!(DeliveryTrace::in_frames(Rate::from_bps(bps), frame).is_err());
        }
        assert!(DeliveryTrace::in_frames(Rate::MAX, millis(1000)).is_err());
    }

    #[test]
    fn a_trace_is_written_as_it_is_read() {
        let text = "3\n3\n9\n";
        assert_eq!(trace(text).to_string(), text);
    }
}
