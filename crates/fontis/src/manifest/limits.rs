//! The limits of a manifest.

/// Encoded bytes of a manifest at most: room for [`MAX_ENTRIES`] paths of 60 bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Entries of a manifest at most, the root included.
pub const MAX_ENTRIES: usize = 1 << 20;
/// Holes of all files of a manifest at most.
pub const MAX_HOLES: usize = 1 << 18;
/// Bytes of a path, and of a symlink's target, at most: Linux's `PATH_MAX` without its final NUL.
pub const MAX_PATH: usize = 4095;
/// Bytes of a path's component at most: `NAME_MAX` of the common file systems.
pub const MAX_COMPONENT: usize = 255;
/// Seconds that a time may lie before or after 1970 at most: about two thousand years.
pub const MAX_SECONDS: u64 = 1 << 36;
/// The version of the encoding.
pub(super) const VERSION: u8 = 3;
