//! How long before its use a value is prefetched.
//!
//! The distances were chosen by hand. The table was measured with 10,000 CUBIC flows over 10 Gbit/s
//! and 50 ms, 1 s (the scenario of `scripts/sim_bench.py`), by a build that took its distances from
//! the environment: the processor time of a packet relative to that with the distances below, the
//! median of nine runs in alternation and their range.
//!
//! | distances | half | double |
//! |---|---|---|
//! | [`QUEUED_PACKET`] (1 and 7) | 0.98 [0.82–1.07] | 1.00 [0.80–1.09] |
//! | [`MOVED_EVENT`] | 1.05 [0.86–1.22] | 1.09 [0.77–1.32] |
//! | [`NEXT_EVENT`] | 1.06 [0.76–1.41] | 1.04 [0.76–1.53] |
//! | those of coming packets | 0.97 [0.79–1.25] | 1.03 [0.96–1.24] |
//! | [`NEXT_FLOW`] | 1.02 [0.79–1.25] | 1.02 [0.80–1.24] |
//! | no prefetching by the world at all | 1.18 [1.12–1.30] | |
//!
//! Prefetching is worth a sixth of the time; the distances matter less than a busy machine lets
//! them be told apart.

/// Packets that leave a queue before the one whose contents are prefetched. Nothing has touched
/// them while it waited.
pub const QUEUED_PACKET: usize = 3;

/// Events that move to a lower wheel of the agenda before the one whose node is prefetched.
pub const MOVED_EVENT: usize = 8;

/// Events before the one of a node that is prefetched, by the number of pointers that lead there:
/// the node's place, the link or host, the front of the link or the connection of the host, the
/// sender of the connection.
pub const NEXT_EVENT: [usize; 4] = [14, 10, 6, 3];

/// Packets that a link delivers before the one that is prefetched itself, and before the one whose
/// way through the switches and whose node's place are.
pub const COMING_PACKET: usize = 20;
/// See [`COMING_PACKET`].
pub const COMING_WAY: usize = 16;
/// See [`COMING_PACKET`].
pub const COMING_NODE: usize = 13;

/// Packets that a link delivers before the one whose host is prefetched, by the number of pointers
/// that lead there: the host, its connection, the sender, the sender's records.
pub const COMING_HOST: [usize; 4] = [10, 7, 4, 2];

/// Flows whose counters are read before the ones of the flow that is prefetched, by the number of
/// pointers that lead there: the node's place, the host, the connection, the sender.
pub const NEXT_FLOW: [usize; 4] = [10, 8, 6, 4];
