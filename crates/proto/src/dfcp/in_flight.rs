use smallvec::SmallVec;

use super::paths::PathSet;

/// Symbols of a block whose fate is unknown, by the path that they were sent on.
#[derive(Default)]
pub(super) struct InFlight(SmallVec<[u32; 2]>);

impl InFlight {
    pub(super) fn add(&mut self, path: usize, count: u32) {
        if self.0.len() <= path {
            self.0.resize(path + 1, 0);
        }
        self.0[path] += count;
    }

    pub(super) fn remove(&mut self, path: usize, count: u32) {
        if let Some(symbols) = self.0.get_mut(path) {
            *symbols = symbols.saturating_sub(count);
        }
    }

    /// The symbols on these paths.
    pub(super) fn on(&self, paths: PathSet) -> u32 {
        let counted = |(path, symbols): (usize, &u32)| paths.contains(path).then_some(*symbols);
        self.0.iter().enumerate().filter_map(counted).sum()
    }
}
