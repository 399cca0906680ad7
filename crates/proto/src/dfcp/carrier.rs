use super::paths::PathSet;

/// The path that the next symbols leave on.
#[derive(Clone, Copy)]
pub(super) struct Carrier {
    pub(super) path: usize,
    /// Bytes of symbols that a packet holds.
    pub(super) room: usize,
    /// The paths that answer.
    pub(super) answering: PathSet,
    /// Those of them on which what was sent arrives as early as what leaves now.
    pub(super) early: PathSet,
}

/// Which targets to send up to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// What hardly any block needs less than.
    Mean,
    /// What suffices almost surely; only when there is nothing else to send.
    Tail,
    /// Without end, until the block is acknowledged: the published way.
    Endless,
    /// One symbol more of the oldest block, to prod a silent receiver.
    Probe,
}
