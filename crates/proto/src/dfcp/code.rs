//! The codes of abandoned channels that the protocol itself gives. All lower ones are the
//! application's.

/// The code of a channel that was given up because its deadline passed.
pub const DEADLINE_PASSED: u32 = u32::MAX;
/// The code of a channel for which the receiver has no memory.
pub const NO_ROOM: u32 = u32::MAX - 1;
/// The code of a message that is longer than the receiver takes.
pub const TOO_LONG: u32 = u32::MAX - 2;
/// The code of an object that the receiving application did not ask for.
pub const NOT_ASKED_FOR: u32 = u32::MAX - 3;
