//! Records of a file that comes over SCTP, in any order and of any content.

/// Nothing panics; a block that is whole has its length, and comes once.
pub(crate) fn run(data: &[u8]) {
    fontis::readers::records(data);
}
