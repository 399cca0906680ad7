use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use fontis_proto::dfcp::ConnectionId;

use crate::private_file::{self, NotPrivate};

/// Appends the keys of connections to a file, so that captures of them can be read: for debugging
/// only.
///
/// Section 2.3 of `docs/protocol.md` specifies the lines. Whoever has the file can read, and while
/// they last forge, what those connections carry.
#[derive(Clone, Debug)]
pub struct KeyLog {
    file: Arc<File>,
}

impl KeyLog {
    /// Opens `path` to append to; a new file is its owner's alone, and one that others may open, or
    /// that is another user's, is refused.
    pub fn append(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let text = match private_file::check(&file)? {
            Ok(()) => return Ok(Self { file: Arc::new(file) }),
            Err(NotPrivate::Foreign) => {
                "it belongs to another user, and keys are not for others: name another file"
                    .to_owned()
            }
            Err(NotPrivate::Open(mode)) => format!(
                "it is open to others (mode {mode:03o}), and keys are not for them: run chmod 600 on it"
            ),
        };
        Err(io::Error::other(text))
    }

    /// Writes a connection's line: the initiator's and the responder's identifiers, the keys of
    /// packets from them.
    pub(crate) fn record(&self, ids: [ConnectionId; 2], keys: [[u8; 16]; 2]) {
        let words = ids.map(|id| hex(&id.0)).into_iter().chain(keys.map(|key| hex(&key)));
        self.line("FONTIS_1", words);
    }

    /// Writes the line of a later generation of keys, for packets to `destination`.
    pub(crate) fn record_next(&self, destination: ConnectionId, generation: u64, key: [u8; 16]) {
        self.line("FONTIS_1_NEXT", [hex(&destination.0), generation.to_string(), hex(&key)]);
    }

    /// Writes the line of a generation of keys of a path after the first.
    pub(crate) fn record_path(
        &self,
        destination: ConnectionId,
        path: u8,
        generation: u64,
        key: [u8; 16],
    ) {
        let words = [hex(&destination.0), path.to_string(), generation.to_string(), hex(&key)];
        self.line("FONTIS_1_PATH", words);
    }

    fn line(&self, label: &str, words: impl IntoIterator<Item = String>) {
        let words: String = words.into_iter().map(|word| format!(" {word}")).collect();
        // One write, so that lines of processes that share the file stay whole. A full disk is no
        // reason to end a transfer.
        let _ = (&*self.file).write_all(format!("{label}{words}\n").as_bytes());
    }
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
