use std::net::SocketAddr;
use std::path::PathBuf;

use fontis_proto::dfcp::CloseReason;
use thiserror::Error;

use crate::endpoint::{CODE_TOO_MANY, ConnectError};
use crate::hash_tree::HashTreeError;
use crate::manifest::ManifestError;
use crate::printable::{Printable, printable};
use crate::sctp::SctpError;
use crate::sink::SinkError;
use crate::source::SourceError;

/// The reason why a transfer failed.
#[derive(Debug, Error)]
pub enum TransferError {
    /// No connection could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The host's name means nothing.
    #[error("cannot find the address of {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// The connection ended before the transfer did.
    #[error("the connection to {remote} was lost: {reason}; try again")]
    Lost {
        /// The peer.
        remote: SocketAddr,
        /// Its end.
        reason: CloseReason,
    },
    /// The sender came again: this transfer made way for its next.
    #[error("{remote} has come again: what it had sent is kept for the new connection")]
    Superseded {
        /// The sender as it was.
        remote: SocketAddr,
    },
    /// The peer refused, in its own words.
    #[error("{remote} says: {text}")]
    Refused {
        /// The peer.
        remote: SocketAddr,
        /// Its words, made safe for a terminal.
        text: String,
    },
    /// The peer stopped in the middle.
    #[error(
        "{remote} gave the transfer up: the file changed or could not be read there; try again"
    )]
    Abandoned {
        /// The peer.
        remote: SocketAddr,
    },
    /// The peer took nothing for too long.
    #[error("{remote} took nothing for too long")]
    Stalled {
        /// The peer.
        remote: SocketAddr,
    },
    /// The peer sent in vain for too long, because this side had no room for what came.
    #[error(
        "this side took nothing of what {remote} sent for too long, perhaps for want of memory: \
         what came before is kept; try again"
    )]
    Untaken {
        /// The peer.
        remote: SocketAddr,
    },
    /// The peer is there and sends nothing, while others that could have are lost.
    #[error("{remote} sends nothing any more: what came is kept; try again")]
    Idle {
        /// The peer.
        remote: SocketAddr,
    },
    /// SCTP failed.
    #[error("SCTP with {remote} failed: {source}")]
    Sctp {
        /// The peer.
        remote: SocketAddr,
        /// The failure.
        source: SctpError,
    },
    /// The peer cannot be reached over SCTP.
    #[error(
        "no answer over SCTP from {remote}: does a firewall let UDP port {} through? Without --transport sctp it is not needed",
        .remote.port()
    )]
    NoSctp {
        /// The peer's address in UDP.
        remote: SocketAddr,
    },
    /// The peer has no memory for it.
    #[error("{remote} has too much to do and no memory for this transfer: try again later")]
    NoRoom {
        /// The peer.
        remote: SocketAddr,
    },
    /// The peer sent something that it should not have.
    #[error("{remote} broke the protocol ({what}): is it a Fontis of another version?")]
    Protocol {
        /// The peer.
        remote: SocketAddr,
        /// The fault.
        what: &'static str,
    },
    /// The peer's description of its object is not acceptable.
    #[error("{remote} offers what cannot be accepted: {source}")]
    Manifest {
        /// The peer.
        remote: SocketAddr,
        /// The fault.
        source: ManifestError,
    },
    /// The object's name begins with a dot, and the receiver takes no such names.
    #[error(
        "{remote} sends '{}', a hidden name: rename it, or have the receiver started with --hidden",
        Printable(.name)
    )]
    Hidden {
        /// The sender.
        remote: SocketAddr,
        /// The name.
        name: String,
    },
    /// The object exceeds the receiver's limit.
    #[error("{remote} sends {needed} bytes, and the receiver takes only {left} more (--max-size)")]
    Quota {
        /// The sender.
        remote: SocketAddr,
        /// Bytes that the object counts.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// The list of block hashes does not belong to the object.
    #[error("{remote} offers what cannot be verified: {source}")]
    Tree {
        /// The peer.
        remote: SocketAddr,
        /// The fault.
        source: HashTreeError,
    },
    /// The content differs from the promised one.
    #[error(
        "{remote}, with key {key}, sends other content than it has promised (block {block} failed its hash twice): what was \
         verified before is kept; if it says that its file is sound, have it started anew"
    )]
    Poisoned {
        /// The peer.
        remote: SocketAddr,
        /// The peer's key.
        key: String,
        /// The block that is wrong.
        block: u32,
    },
    /// Reading the content failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Writing the content failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// An object of our own cannot be described.
    #[error(transparent)]
    Describe(#[from] ManifestError),
    /// The URL does not allow sending.
    #[error("this URL cannot be sent to: it has no secret; use one that `fontis receive` printed")]
    NoSecret,
    /// The folder to serve or to receive into cannot be opened.
    #[error("cannot open the folder {}: {source}", path.display())]
    Folder {
        /// The one.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A multicast group cannot be sent to, or received from.
    #[error("the group {group} cannot be used: {source}; name another, or another interface")]
    Group {
        /// The group.
        group: SocketAddr,
        /// The system's words.
        source: std::io::Error,
    },
    /// What was cast to a group stopped coming.
    #[error("nothing comes from the group {group} any more: what came is kept; try again")]
    Silent {
        /// The group.
        group: SocketAddr,
    },
    /// A sender that takes no answers ended, or fell silent, before everything came.
    #[error(
        "the cast to {group} is over, and {lacking} of {symbols} symbols are lacking: what came is \
         kept; join again when the next round is sent"
    )]
    Unfinished {
        /// The group.
        group: SocketAddr,
        /// Symbols that are lacking.
        lacking: u64,
        /// Symbols of the whole.
        symbols: u64,
    },
    /// Parts of a stream did not come in time.
    #[error(
        "{gaps} of {blocks} blocks of the stream did not come in time{}; the sender can choose a \
         longer --latency",
        .path.as_ref().map_or_else(String::new, |path| format!(
            ": what came is {}", printable(path)
        ))
    )]
    Gaps {
        /// Blocks that did not come.
        gaps: u64,
        /// Blocks in all.
        blocks: u64,
        /// The file that has the others.
        path: Option<PathBuf>,
    },
    /// An object that comes in any order cannot be written as it comes.
    #[error(
        "what is cast here is no stream and comes in any order: name a file or a folder, not -"
    )]
    Unordered,
    /// A stream cannot have this latency.
    #[error("a stream cannot have a latency of {latency:?}: choose one from 20ms to 60s")]
    Latency {
        /// The latency.
        latency: std::time::Duration,
    },
    /// Nobody who shares the object has what is lacking.
    #[error("nobody is left who has the rest: what came is kept; try again")]
    Alone,
    /// A worker died.
    #[error("internal error: a worker thread failed")]
    Worker,
}

impl TransferError {
    /// Whether the cause may pass by itself, so that another attempt may succeed: a connection that
    /// was lost, or a peer that does not answer, or has too much to do.
    pub const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Lost {
                reason: CloseReason::IdleTimeout
                    | CloseReason::Reset
                    | CloseReason::Peer { code: CODE_TOO_MANY, .. },
                ..
            } | Self::NoRoom { .. }
                | Self::Untaken { .. }
                | Self::Idle { .. }
                | Self::Alone
                | Self::Connect(ConnectError::NoAnswer(_))
                | Self::Resolve { .. }
        )
    }
}
