//! The words with which queues report to observers.

/// The name under which queues report; their link replaces it with its own.
pub(super) const ELEMENT: &str = "queue";
/// Why a packet was dropped: there was no room.
pub(super) const OVERFLOW: &str = "queue overflow";
