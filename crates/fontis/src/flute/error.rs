use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use fontis_proto::flute::FecOtiError;
use thiserror::Error;

use crate::printable::Printable;
use crate::sink::SinkError;
use crate::source::SourceError;

/// The reason why files cannot be sent or received over FLUTE.
#[derive(Debug, Error)]
pub enum FluteError {
    /// What is to be sent cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Nothing that is to be sent is a file.
    #[error("there is no file to send: FLUTE sends files, and neither empty folders nor links")]
    Nothing,
    /// Two files would have the same name.
    #[error("two files are called {}: send them one after another", Printable(.0))]
    Twice(String),
    /// A file is too long for its FEC scheme.
    #[error("cannot send {}: {source}", .path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// The limit.
        source: FecOtiError,
    },
    /// There are too many files for their table.
    #[error("too many files for one session: {0}")]
    Table(FecOtiError),
    /// The address cannot be used.
    #[error("cannot use {address}: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The destination cannot be written to.
    #[error(transparent)]
    Store(#[from] SinkError),
}
