use fontis_base::Time;

use super::chunk::{DataChunk, Stamp};
use super::config::SctpConfig;
use crate::rate::reorder_measured::MeasuredReorder;

/// Packets that the buffer has room for before anything is measured.
const FIRST: u64 = 5;

/// The reorder buffer that data go through before SACKs tell of them.
pub(super) type Reordering = MeasuredReorder<Waiting>;

/// A chunk that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) chunk: DataChunk,
    /// The path of its packet, and the stamp, with the time when it came.
    pub(super) path: Option<u8>,
    pub(super) stamp: Option<(Stamp, Time)>,
    /// Whether it is the last of its packet.
    pub(super) is_last: bool,
}

/// The buffer of an end, if it has one.
pub(super) fn reordering_of(config: &SctpConfig) -> Option<Box<Reordering>> {
    let (mode, delay) = config.reorder?;
    Some(Box::new(Reordering::new(mode, delay, FIRST * u64::from(config.mtu))))
}
