//! The reorder buffer of a transport as a scenario sets it.

use fontis_base::Duration;
use fontis_proto::rate::reorder::ReorderMode;

use crate::settings::reader::Reader;

/// The buffer that these two keys choose, if they choose one.
pub(super) fn reorder(
    read: &Reader<'_>,
    mode: &'static str,
    delay: &'static str,
) -> Option<(ReorderMode, Duration)> {
    let mode = match &*read.text(mode) {
        "hold" => ReorderMode::Hold,
        "full" => ReorderMode::Full,
        _ => return None,
    };
    Some((mode, read.duration(delay)))
}
