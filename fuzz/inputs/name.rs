//! Names of files, as bytes of a file system and as text of a peer.

/// Each name is one text, and each text at most one name.
pub(crate) fn run(data: &[u8]) {
    fontis::readers::name(data);
}
