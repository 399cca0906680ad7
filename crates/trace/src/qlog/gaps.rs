use std::collections::BTreeSet;

use fontis_base::{Duration, Time};

/// Numbers of packets that their receiver never saw, found as it sees others.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The last of the packets in order: its number, when it left, and its bytes.
    last: Option<(u64, Time, u32)>,
    gaps: Vec<Gap>,
    /// Packets that came late into a gap.
    late: BTreeSet<u64>,
    missing: u64,
}

/// Packets between two that came.
#[derive(Debug)]
struct Gap {
    first: u64,
    /// One beyond the last.
    end: u64,
    /// When the packets around it left.
    between: (Time, Time),
    size: u32,
}

/// A file that says that more than this are missing does not tell all that came.
const MOST: u64 = 1_000_000;

impl Gaps {
    /// A packet came that had left at `sent`.
    pub(super) fn came(&mut self, number: u64, sent: Time, size: u32) {
        match self.last {
            Some((last, ..)) if number <= last => {
                self.late.insert(number);
                return;
            }
            Some((last, before, _)) if number - last > 1 => {
                self.missing = self.missing.saturating_add(number - last - 1);
                if self.missing <= MOST {
                    let between = (before, sent);
                    self.gaps.push(Gap { first: last + 1, end: number, between, size });
                }
            }
            _ => {}
        }
        self.last = Some((number, sent, size));
    }

    /// What never came: number, about when it left, and about how large it was.
    pub(super) fn missing(&self) -> impl Iterator<Item = (u64, Time, u32)> {
        let gaps = self.gaps.iter().filter(|_| self.missing <= MOST);
        gaps.flat_map(|gap| {
            let (from, until) = gap.between;
            let step = until.since(from).as_nanos() / (gap.end - gap.first + 1);
            let numbers = (gap.first..gap.end).filter(|number| !self.late.contains(number));
            numbers.map(move |number| {
                let after = Duration::from_nanos(step * (number - gap.first + 1));
                (number, from + after, gap.size)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_not_missing() {
        let mut gaps = Gaps::default();
        for (number, nanos) in [(5, 100), (6, 200), (10, 600), (8, 650), (12, 800)] {
            gaps.came(number, Time::from_nanos(nanos), 1200);
        }
        let missing: Vec<(u64, u64)> =
            gaps.missing().map(|(number, at, _)| (number, at.as_nanos())).collect();
        assert_eq!(missing, [(7, 300), (9, 500), (11, 700)]);
    }
}
