use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Seek};
use std::net::IpAddr;

use super::both::Both;
use super::frames::Frames;
use super::wire::{Seen, mix};
use super::{End, Numbered, prelude};
use crate::capture::frames::CaptureError;

/// How the second capture's clock differs from the first's: by how much, and how fast that changes.
///
/// The difference is such that the fastest packets of both directions take equally long. A drift
/// shows as a change of the fastest packets' times in both directions alike; queues that grow
/// change one direction only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    /// Nanoseconds by which the second is ahead at `since`.
    pub(crate) ahead: i64,
    /// On the second clock.
    since: u64,
    /// Nanoseconds that the second gains in a nanosecond.
    pub(crate) drift: f64,
    /// Whether packets of both directions were compared.
    pub(crate) is_two_way: bool,
    /// Whether what goes from the first place to the second goes from the lower address to the
    /// higher.
    goes_up: bool,
    /// When the first packet was captured, on the first clock.
    pub(crate) origin: u64,
}

/// Captures shorter than this, in nanoseconds, show no drift that could be told from noise.
const SHORTEST: u64 = 5_000_000_000;
/// No clock that anybody disciplines is further off (RFC 5905 section 11.3 tolerates so much).
const MOST_DRIFT: f64 = 500e-6;
/// So many packets wait for their other sight.
const MOST_WAITING: usize = 500_000;
/// A packet that is not seen at the other place after this time never will be.
const LONGEST: u64 = 10_000_000_000;

impl Clocks {
    /// Compares two captures, which are read whole; they are given back as they were.
    pub(crate) fn of<A, B>(first: &mut A, second: &mut B) -> Result<Self, CaptureError>
    where
        A: Read + Seek + Send,
        B: Read + Seek + Send,
    {
        let preludes =
            [prelude(&mut Frames::new(&mut *first)?)?, prelude(&mut Frames::new(&mut *second)?)?];
        let begins = preludes.each_ref().map(|prelude| prelude.first().map(|(_, at, _)| *at));
        let clocks = Self::between(&preludes[0], &preludes[1]);
        drop(preludes);
        rewind(first, second)?;
        let mut clocks = match clocks {
            Some(clocks) => {
                let measured = clocks.measure(Both::new(&mut *first, &mut *second)?)?;
                rewind(first, second)?;
                measured
            }
            None => Self::default(),
        };
        let second = begins[1].map(|at| clocks.on_first(at));
        clocks.origin = [begins[0], second].into_iter().flatten().min().unwrap_or(0);
        Ok(clocks)
    }

    /// From the beginning of both; `None` if they have too few packets in common.
    pub(crate) fn between(first: &[Numbered], second: &[Numbered]) -> Option<Self> {
        let name = |seen: &Seen| mix([identity(seen), 0]);
        let known: BTreeMap<u64, u64> =
            first.iter().map(|(_, at, seen)| (name(seen), *at)).collect();
        // By direction of the packet: the smallest and largest difference, and how many.
        let mut ways: BTreeMap<bool, (i64, i64, u64)> = BTreeMap::new();
        for (_, at, seen) in second {
            let Some(before) = known.get(&name(seen)) else { continue };
            let delta = at.wrapping_sub(*before) as i64;
            let way = ways.entry(goes_up(seen)).or_insert((i64::MAX, i64::MIN, 0));
            *way = (way.0.min(delta), way.1.max(delta), way.2 + 1);
        }
        let common: u64 = ways.values().map(|(.., count)| count).sum();
        if common < 3 {
            return None;
        }
        let since = second.first().map_or(0, |(_, at, _)| *at);
        let clocks = Self { since, ..Self::default() };
        Some(match (ways.get(&true), ways.get(&false)) {
            (Some(up), Some(down)) => {
                // What goes from the first place to the second has the larger difference.
                let goes_up = up.0 >= down.0;
                let (there, back) = if goes_up { (up, down) } else { (down, up) };
                let ahead = there.0 / 2 + back.1 / 2;
                Self { ahead, is_two_way: true, goes_up, ..clocks }
            }
            (up, down) => Self { ahead: up.or(down)?.0, goes_up: up.is_some(), ..clocks },
        })
    }

    /// From all of both.
    fn measure(self, mut both: Both<'_>) -> Result<Self, CaptureError> {
        let mut waiting: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        let mut by_time: VecDeque<(u64, u64)> = VecDeque::new();
        let mut ways = [Lowest::default(), Lowest::default()];
        let mut span = 0;
        while let Some((side, (_, raw, seen))) = both.next(&self)? {
            let at = self.on(side, raw);
            let name = identity(&seen);
            while by_time.len() > MOST_WAITING
                || by_time.front().is_some_and(|(then, _)| at.saturating_sub(*then) > LONGEST)
            {
                if let Some((_, old)) = by_time.pop_front() {
                    waiting.remove(&old);
                }
            }
            match waiting.get(&name) {
                Some((other, before)) if *other != side => {
                    let (one, two) = if side == 1 { (*before, raw) } else { (raw, *before) };
                    waiting.remove(&name);
                    let delta = two.wrapping_sub(one) as i64;
                    let since = two.saturating_sub(self.since);
                    span = span.max(since);
                    let is_back = self.is_two_way && goes_up(&seen) != self.goes_up;
                    // Of what comes back the smallest way is the largest difference.
                    let ahead = delta.saturating_sub(self.ahead);
                    let way = if is_back { ahead.saturating_neg() } else { ahead };
                    ways[usize::from(is_back)].add(since, way);
                }
                Some(_) => {}
                None => {
                    waiting.insert(name, (side, raw));
                    by_time.push_back((at, name));
                }
            }
        }
        let [there, back] = ways;
        let drift = if span < SHORTEST {
            0.0
        } else if self.is_two_way {
            match (there.slope(), back.slope().map(|slope| -slope)) {
                (Some(one), Some(two)) if one * two > 0.0 => {
                    if one.abs() < two.abs() {
                        one
                    } else {
                        two
                    }
                }
                _ => 0.0,
            }
        } else {
            there.slope().unwrap_or(0.0)
        };
        let drift = if drift.abs() <= MOST_DRIFT { drift } else { 0.0 };
        let more = match (there.least(drift), back.least(-drift)) {
            (Some(there), Some(back)) => (there - back) / 2.0,
            (Some(there), None) if !self.is_two_way => there,
            _ => 0.0,
        };
        Ok(Self { ahead: self.ahead.saturating_add(more as i64), drift, ..self })
    }

    /// A time of the second clock on the first one.
    fn on_first(&self, at: u64) -> u64 {
        let since = at.wrapping_sub(self.since) as i64;
        let gained = (since as f64 * self.drift) as i64;
        at.saturating_add_signed(self.ahead.saturating_add(gained).saturating_neg())
    }

    /// A time of either clock on the first one.
    pub(crate) fn on(&self, side: usize, at: u64) -> u64 {
        if side == 0 { at } else { self.on_first(at) }
    }
}

fn rewind(first: &mut impl Seek, second: &mut impl Seek) -> Result<(), CaptureError> {
    let both = first.rewind().and_then(|()| second.rewind());
    both.map_err(|error| CaptureError::Again(error.to_string()))
}

fn goes_up(seen: &Seen) -> bool {
    seen.source < seen.destination
}

/// What both ends see of a packet.
pub(crate) fn identity(seen: &Seen) -> u64 {
    let of = |(address, port): &End| match address {
        IpAddr::V4(v4) => mix([u64::from(u32::from(*v4)), u64::from(*port)]),
        IpAddr::V6(v6) => {
            let bits = u128::from(*v6);
            mix([(bits >> 64) as u64, bits as u64, u64::from(*port)])
        }
    };
    mix([of(&seen.source), of(&seen.destination), seen.identity])
}

/// The smallest value of each span of time.
#[derive(Debug)]
struct Lowest {
    width: u64,
    bins: Vec<Option<(f64, f64)>>,
}

const FIRST_WIDTH: u64 = 100_000_000;
const MOST_BINS: usize = 256;
/// Fewer spans than this show no trend.
const FEWEST: usize = 8;

impl Default for Lowest {
    fn default() -> Self {
        Self { width: FIRST_WIDTH, bins: Vec::new() }
    }
}

impl Lowest {
    fn add(&mut self, at: u64, value: i64) {
        while at / self.width >= MOST_BINS as u64 {
            self.width = self.width.saturating_mul(2);
            let lower = |two: &[Option<(f64, f64)>]| {
                two.iter().flatten().copied().min_by(|a, b| a.1.total_cmp(&b.1))
            };
            self.bins = self.bins.chunks(2).map(lower).collect();
        }
        let bin = (at / self.width) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, None);
        }
        let value = value as f64;
        if self.bins[bin].is_none_or(|(_, least)| value < least) {
            self.bins[bin] = Some((at as f64, value));
        }
    }

    /// The slope of the line below all values that is nearest to them: the edge of their convex
    /// hull over the mean of their times (Moon, Skelly and Towsley, "Estimation and removal of
    /// clock skew from network delay measurements").
    fn slope(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> = self.bins.iter().flatten().copied().collect();
        if points.len() < FEWEST {
            return None;
        }
        let mut hull: Vec<(f64, f64)> = Vec::new();
        for point in &points {
            while let [.., a, b] = hull[..]
                && (b.1 - a.1) * (point.0 - a.0) >= (point.1 - a.1) * (b.0 - a.0)
            {
                hull.pop();
            }
            hull.push(*point);
        }
        let mean = points.iter().map(|(at, _)| at).sum::<f64>() / points.len() as f64;
        let edge = hull.windows(2).find(|two| two[1].0 >= mean)?;
        let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
        slope.is_finite().then_some(slope)
    }

    /// The smallest value when a trend is taken off.
    fn least(&self, slope: f64) -> Option<f64> {
        self.bins.iter().flatten().map(|(at, value)| value - slope * at).min_by(f64::total_cmp)
    }
}
