use core::fmt;
use core::str::FromStr;

use fontis_base::Duration;
use smallvec::SmallVec;

/// How the windows of several paths that carry one sender's data depend on each other.
///
/// Each path answers to its own losses. What differs is how fast its window grows in congestion
/// avoidance, so that all of them together take no more of a bottleneck than one flow would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coupling {
    /// Each grows as a flow of its own.
    #[default]
    None,
    /// Linked increases (RFC 6356): together they take what the best of them would take alone.
    Lia,
    /// Opportunistic linked increases (Khalili et al. 2012, "MPTCP is not Pareto-optimal"): what
    /// they take moves to the paths that lose least.
    Olia,
}

impl Coupling {
    /// The names of all of them.
    pub const NAMES: &[&str] = &["none", "lia", "olia"];

    /// For each path by how many times faster than a flow of its own its window grows; less than
    /// none is a window that shrinks.
    pub(crate) fn growths(self, paths: &[CoupledPath]) -> SmallVec<[f64; 4]> {
        let per_rtt: f64 = paths.iter().map(|path| path.window / path.seconds()).sum();
        let total: f64 = paths.iter().map(|path| path.window).sum();
        match self {
            Self::None => paths.iter().map(|_| 1.0).collect(),
            Self::Lia => {
                // Section 2: b acknowledged bytes add min(α·b·mss/total, b·mss/window), of which
                // the second is a flow's own growth.
                let best = paths.iter().map(|path| path.window / path.seconds().powi(2));
                let alpha = total * best.fold(0.0, f64::max) / (per_rtt * per_rtt);
                paths.iter().map(|path| (alpha * path.window / total).min(1.0)).collect()
            }
            Self::Olia => {
                // Equation 5 of the paper, times the window, in packets.
                let moved = moved(paths);
                let linked = |path: &CoupledPath| path.window / path.seconds() / per_rtt;
                paths.iter().zip(moved).map(|(path, moved)| linked(path).powi(2) + moved).collect()
            }
        }
    }
}

/// The names in scenarios and on the command line.
impl FromStr for Coupling {
    type Err = UnknownCoupling;

    fn from_str(text: &str) -> Result<Self, UnknownCoupling> {
        match text {
            "none" => Ok(Self::None),
            "lia" => Ok(Self::Lia),
            "olia" => Ok(Self::Olia),
            _ => Err(UnknownCoupling(text.to_owned())),
        }
    }
}

/// A coupling that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCoupling(String);

impl fmt::Display for UnknownCoupling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        write!(f, "there is no coupling \"{name}\"; there are {}", Coupling::NAMES.join(", "))
    }
}

impl core::error::Error for UnknownCoupling {}

/// A path as its coupling with others sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoupledPath {
    /// The congestion window, in bytes.
    pub(crate) window: f64,
    /// The round-trip time.
    pub(crate) rtt: Duration,
    /// What it carries between losses, in bytes.
    pub(crate) carried: f64,
}

impl CoupledPath {
    fn seconds(&self) -> f64 {
        self.rtt.as_secs_f64().max(1e-6)
    }
}

/// What a path carries between losses: the paper's ℓ.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossGap {
    /// Bytes acknowledged since the last loss, and between that and the one before.
    since: u64,
    before: u64,
}

impl LossGap {
    /// So many bytes are acknowledged.
    pub(crate) const fn note_acked(&mut self, bytes: u64) {
        self.since = self.since.saturating_add(bytes);
    }

    /// The window answers to a loss.
    pub(crate) const fn note_loss(&mut self) {
        (self.before, self.since) = (self.since, 0);
    }

    /// In bytes.
    pub(crate) fn bytes(&self) -> f64 {
        self.since.max(self.before) as f64
    }
}

/// The paper's α: what moves from the paths of the largest windows to the best ones that have
/// less.
fn moved(paths: &[CoupledPath]) -> SmallVec<[f64; 4]> {
    let quality = |path: &CoupledPath| path.carried * path.carried / path.seconds();
    let most = |of: &dyn Fn(&CoupledPath) -> f64| paths.iter().map(of).fold(0.0, f64::max);
    let (best, largest) = (most(&quality), most(&|path| path.window));
    let has_most = |path: &CoupledPath| path.window >= largest;
    let is_collected = |path: &CoupledPath| quality(path) >= best && !has_most(path);
    let count = |of: &dyn Fn(&CoupledPath) -> bool| paths.iter().filter(|path| of(path)).count();
    let (collected, largest) = (count(&is_collected) as f64, count(&has_most) as f64);
    let share = |path: &CoupledPath| match () {
        () if collected == 0.0 => 0.0,
        () if is_collected(path) => 1.0 / collected,
        () if has_most(path) => -1.0 / largest,
        () => 0.0,
    };
    paths.iter().map(|path| share(path) / paths.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: f64 = 1000.0;

    fn path(window: f64, ms: u64, carried: f64) -> CoupledPath {
        CoupledPath { window, rtt: Duration::from_millis(ms), carried }
    }

    #[test]
    fn one_path_grows_as_a_flow_does() {
        for coupling in [Coupling::None, Coupling::Lia, Coupling::Olia] {
            let growth = coupling.growths(&[path(50.0 * KB, 70, 1e6)])[0];
            assert!((growth - 1.0).abs() < 1e-12, "{coupling:?}: {growth}");
        }
    }

    #[test]
    fn two_alike_grow_as_one_flow_together() {
        // A window that grows by a fourth of a packet a round trip is half of one that grows by a
        // whole one, at the same loss.
        let paths = [path(50.0 * KB, 70, 1e6); 2];
        assert_eq!(Coupling::Lia.growths(&paths).as_slice(), [0.25, 0.25]);
        assert_eq!(Coupling::Olia.growths(&paths).as_slice(), [0.25, 0.25]);
    }

    #[test]
    fn no_path_grows_faster_than_a_flow_of_its_own() {
        // RFC 6356: the second path is so slow that α would let it grow faster.
        let growths =
            Coupling::Lia.growths(&[path(10.0 * KB, 10, 1e6), path(500.0 * KB, 500, 1e6)]);
        assert!(growths.iter().all(|growth| *growth <= 1.0), "{growths:?}");
    }

    #[test]
    fn windows_move_to_the_path_that_loses_least() {
        let paths = [path(20.0 * KB, 50, 1e6), path(80.0 * KB, 50, 1e5)];
        let growths = Coupling::Olia.growths(&paths);
        assert!((growths[0] - (0.04 + 0.5)).abs() < 1e-9, "{growths:?}");
        assert!((growths[1] - (0.64 - 0.5)).abs() < 1e-9, "{growths:?}");
        // The best has most already.
        let paths = [path(80.0 * KB, 50, 1e6), path(20.0 * KB, 50, 1e5)];
        let growths = Coupling::Olia.growths(&paths);
        assert!((growths[0] - 0.64).abs() < 1e-9 && (growths[1] - 0.04).abs() < 1e-9);
    }

    #[test]
    fn what_a_path_carries_is_the_longer_of_the_last_two_gaps() {
        let mut gap = LossGap::default();
        gap.note_acked(3000);
        gap.note_loss();
        gap.note_acked(1000);
        assert_eq!(gap.bytes(), 3000.0);
        gap.note_acked(4000);
        assert_eq!(gap.bytes(), 5000.0);
    }

    #[test]
    fn names_are_those_that_are_read() {
        for name in Coupling::NAMES {
            assert!(name.parse::<Coupling>().is_ok());
        }
        let error = "balia".parse::<Coupling>().expect_err("none of ours");
        assert!(error.to_string().contains("none, lia, olia"), "{error}");
    }
}
