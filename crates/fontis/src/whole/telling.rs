//! What a process that receives tells, and what it may not tell.

use std::net::SocketAddr;

use crate::transfer::{Progress, Report, TransferError};

/// What a process has told so far.
#[derive(Debug, Default)]
pub(super) struct Telling {
    pub(super) result: Option<Result<Report, TransferError>>,
    /// Peers that were dropped, and why.
    pub(super) dropped: Vec<(SocketAddr, String)>,
    /// Bytes that are stored, once the object is known.
    pub(super) done: Option<u64>,
    /// What should not have been told.
    pub(super) fault: Option<String>,
    /// Whether the process has ended by itself.
    pub(super) has_left: bool,
}

impl Telling {
    /// Takes in what is told of an object of `size` bytes.
    pub(super) fn see(&mut self, progress: Progress, size: u64) {
        let (is_wrong, done) = match progress {
            Progress::Dropped { remote, error } => return self.dropped.push((remote, error)),
            Progress::Started { bytes, resumed, .. } => {
                (self.done.is_some() || bytes != size, resumed)
            }
            Progress::Moved { done, .. } => (self.done.is_none_or(|before| done < before), done),
            _ => return,
        };
        let before = self.done.replace(done);
        if is_wrong || done > size {
            self.fault = Some(format!("{done} bytes of {size} are there after {before:?}"));
        }
    }
}
