//! The paths of a connection, and what each may carry at present.

use core::ops::{Index, IndexMut};

use fontis_base::{Duration, Rate, Time};

use super::path::{Path, PathState};

/// The number of a path: it is never used again in a connection, because packet numbers and keys
/// belong to it.
pub type PathId = u8;

/// The most paths that a connection ever has: as many as a packet's type can tell.
pub const MAX_PATHS: usize = 64;

/// The most of them that are not closed.
pub const MAX_OPEN_PATHS: usize = 16;

/// How much later than a symbol that leaves now one that is on its way elsewhere may arrive and
/// still be waited for, at an object's end.
const PATIENCE: Duration = Duration::from_millis(5);

/// A set of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathSet(u64);

impl PathSet {
    pub(super) const ALL: Self = Self(u64::MAX);

    pub(super) const fn contains(self, path: usize) -> bool {
        self.0 >> path & 1 == 1
    }
}

impl FromIterator<usize> for PathSet {
    fn from_iter<T: IntoIterator<Item = usize>>(paths: T) -> Self {
        Self(paths.into_iter().fold(0, |set, path| set | 1 << path))
    }
}

/// The paths, by their numbers.
pub(super) struct Paths(Vec<Path>);

impl Paths {
    pub(super) fn new(first: Path) -> Self {
        Self(vec![first])
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, path: Path) {
        self.0.push(path);
    }

    pub(super) fn get(&self, id: PathId) -> Option<&Path> {
        self.0.get(usize::from(id))
    }

    pub(super) fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.0.get_mut(usize::from(id))
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, Path> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> core::slice::IterMut<'_, Path> {
        self.0.iter_mut()
    }

    /// How many are not closed.
    pub(super) fn open_count(&self) -> usize {
        self.0.iter().filter(|path| path.state != PathState::Closed).count()
    }

    /// Those that may carry data.
    pub(super) fn usable(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.0.iter().enumerate().filter(|(_, path)| path.state == PathState::Usable)
    }

    /// The one for everything that belongs to no path: the shortest of those that answer, a spare
    /// one if no other does.
    pub(super) fn main(&self, now: Time) -> usize {
        if self.0.len() == 1 {
            return 0;
        }
        let rank =
            |(_, path): &(usize, &Path)| (path.is_silent(now), path.spare, path.rtt.smoothed());
        self.usable().min_by_key(rank).map_or(0, |(at, _)| at)
    }

    /// Whether there are others than this one.
    pub(super) fn has_others(&self, path: usize) -> bool {
        self.0.len() > 1 && self.usable().any(|(at, _)| at != path)
    }

    /// The paths whose packets on their way are counted upon: those that answer; all if none does.
    pub(super) fn answering(&self, now: Time) -> PathSet {
        if self.0.len() == 1 {
            return PathSet::ALL;
        }
        let set: PathSet =
            self.usable().filter(|(_, path)| !path.is_silent(now)).map(|(at, _)| at).collect();
        if set == PathSet(0) { PathSet::ALL } else { set }
    }

    /// The answering paths on which what has been sent arrives no later than what leaves on `path`
    /// now.
    pub(super) fn as_early_as(&self, path: usize, answering: PathSet) -> PathSet {
        if self.0.len() == 1 {
            return answering;
        }
        let one_way = |path: &Path| path.rtt.smoothed() / 2;
        let latest = one_way(&self.0[path]) + PATIENCE;
        let is_early = |(at, other): &(usize, &Path)| {
            *at == path || (answering.contains(*at) && one_way(other) <= latest)
        };
        self.usable().filter(is_early).map(|(at, _)| at).collect()
    }

    /// Whether the faster paths have delivered `bytes` before a packet that leaves on `path` now
    /// arrives.
    pub(super) fn deliver_before(&self, path: usize, answering: PathSet, bytes: u64) -> bool {
        let delay = self.0[path].rtt.smoothed() / 2;
        let faster = self.usable().filter(|(at, other)| {
            *at != path && answering.contains(*at) && other.rtt.smoothed() / 2 < delay
        });
        let (mut rate, mut longest) = (Rate::ZERO, Duration::ZERO);
        for (_, other) in faster {
            rate = rate.saturating_add(other.rate());
            longest = longest.max(other.rtt.smoothed() / 2);
        }
        rate > Rate::ZERO && longest + rate.time_for(bytes) <= delay
    }

    /// Whether a path is a spare one that is not needed: another that is none answers.
    pub(super) fn rests(&self, path: usize, now: Time) -> bool {
        let answers = |(_, path): (usize, &Path)| !path.spare && !path.is_silent(now);
        self.0[path].spare && self.usable().any(answers)
    }

    /// The usable paths, those with the shortest delay first.
    pub(super) fn by_delay(&self) -> smallvec::SmallVec<[usize; 4]> {
        let mut order: smallvec::SmallVec<[usize; 4]> = self.usable().map(|(at, _)| at).collect();
        order.sort_by_key(|at| self.0[*at].rtt.smoothed());
        order
    }
}

impl Index<usize> for Paths {
    type Output = Path;

    fn index(&self, path: usize) -> &Path {
        &self.0[path]
    }
}

impl IndexMut<usize> for Paths {
    fn index_mut(&mut self, path: usize) -> &mut Path {
        &mut self.0[path]
    }
}
