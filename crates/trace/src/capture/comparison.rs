//! The comparison of two captures, by which their clocks are put together.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Seek};

use super::both::Both;
use super::clocks::{Clocks, goes_up, identity};
use super::frames::{CaptureError, Frames, prelude};
use super::lowest::Lowest;

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
}

fn rewind(first: &mut impl Seek, second: &mut impl Seek) -> Result<(), CaptureError> {
    let both = first.rewind().and_then(|()| second.rewind());
    both.map_err(|error| CaptureError::Again(error.to_string()))
}
