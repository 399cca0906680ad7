//! What a trial found, by the size of connections.

use super::diag::Ended;
use crate::statistics::{self, median};

/// Upper ends of the classes of size in bytes, with their names: an initial window, and what takes
/// a short flow more round trips; the last is what FLD_TCP takes for long.
const CLASSES: [(u64, &str); 6] = [
    (15_000, "up to 15 kB"),
    (100_000, "to 100 kB"),
    (500_000, "to 500 kB"),
    (2 << 20, "to 2 MiB"),
    (16 << 20, "to 16 MiB"),
    (u64::MAX, "more"),
];
/// Connections of a side without which nothing is compared.
const LEAST: usize = 10;
/// The ends of an interval of 95 %.
const ENDS: [f64; 2] = [0.025, 0.975];

/// What a trial found.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialOutcome {
    /// The algorithm that was tried, and the other.
    pub names: [String; 2],
    /// Connections of each that ended in the time of the trial.
    pub counts: [usize; 2],
    /// By size.
    pub classes: Vec<Class>,
    /// Bytes sent again of all sent, of each.
    pub again: [f64; 2],
    /// The ratio of the first to the second, if there are enough.
    pub again_ratio: Option<Comparison>,
    /// Connections that ended before their algorithm was seen.
    pub left_out: u64,
    /// How often the kernel told more ends than could be held.
    pub overflows: u64,
}

/// Connections of a class of size.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The sizes.
    pub name: &'static str,
    /// Connections of each.
    pub counts: [usize; 2],
    /// The median time to completion of each in seconds.
    pub medians: [f64; 2],
    /// The other's median over that of what was tried, if there are enough: above 1 the tried is
    /// faster.
    pub faster: Option<Comparison>,
}

/// A ratio and its 95 % interval by bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The ratio.
    pub ratio: f64,
    /// The interval's ends.
    pub interval: [f64; 2],
}

fn compare<T: Copy>(
    a: &[T],
    b: &[T],
    statistic: impl Fn(&mut [T]) -> f64 + Copy,
) -> Option<Comparison> {
    let is_enough = a.len() >= LEAST && b.len() >= LEAST;
    let ratio = statistic(&mut a.to_vec()) / statistic(&mut b.to_vec());
    (is_enough && ratio.is_finite())
        .then(|| Comparison { ratio, interval: statistics::ratio(a, b, statistic, ENDS) })
}

fn share_again(connections: &[Ended]) -> f64 {
    let sum = |of: fn(&Ended) -> u64| connections.iter().map(of).sum::<u64>() as f64;
    let sent = sum(|ended| ended.sent);
    if sent > 0.0 { sum(|ended| ended.again) / sent } else { 0.0 }
}

impl TrialOutcome {
    pub(super) fn new(
        names: [String; 2],
        ended: [Vec<Ended>; 2],
        left_out: u64,
        overflows: u64,
    ) -> Self {
        let mut least = 0;
        let class = |(most, name): (u64, &'static str)| {
            let is_in = |one: &&Ended| one.acked > least && one.acked <= most;
            let times = ended
                .each_ref()
                .map(|ended| ended.iter().filter(is_in).map(|one| one.busy).collect::<Vec<f64>>());
            least = most;
            Class {
                name,
                counts: times.each_ref().map(Vec::len),
                medians: times.clone().map(|mut times| median(&mut times)),
                faster: compare(&times[1], &times[0], median),
            }
        };
        Self {
            names,
            counts: ended.each_ref().map(Vec::len),
            classes: CLASSES.into_iter().map(class).collect(),
            again: ended.each_ref().map(|ended| share_again(ended)),
            again_ratio: compare(&ended[0], &ended[1], |ended| share_again(ended)),
            left_out,
            overflows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_compared_by_size_where_there_are_enough() {
        let of = |acked: u64, busy: f64, again: u64, count: usize| {
            let one = Ended { cookie: 0, acked, sent: acked + again, again, busy };
            vec![one; count]
        };
        let tried = [of(50_000, 0.1, 500, 20), of(10_000, 0.05, 0, 3)].concat();
        let other = [of(60_000, 0.3, 0, 20), of(3 << 20, 2.0, 1 << 20, 30)].concat();
        let names = ["fld", "cubic"].map(str::to_owned);
        let outcome = TrialOutcome::new(names, [tried, other], 4, 0);
        assert_eq!(outcome.counts, [23, 50]);
        let class = |name| outcome.classes.iter().find(|class| class.name == name).expect("it is");
        let small = class("to 100 kB");
        assert_eq!((small.counts, small.medians), ([20, 20], [0.1, 0.3]));
        let faster = small.faster.expect("enough");
        assert!((faster.ratio - 3.0).abs() < 1e-9 && (faster.interval[0] - 3.0).abs() < 1e-9);
        assert_eq!(class("up to 15 kB").faster, None);
        assert_eq!(class("to 16 MiB").counts, [0, 30]);
        let again = outcome.again_ratio.expect("enough");
        assert!(again.ratio < 0.1 && again.interval[0] > 0.0, "{again:?}");
    }
}
