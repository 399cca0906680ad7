use bytes::Bytes;
use fontis_codes::{DecodeJob, Decoded, RepairJob, RepairSymbols};
use thiserror::Error;

use super::packet::{ChannelId, ObjectShape};
use super::resume::Checkpoint;

/// What a connection tells its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DfcpEvent {
    /// The handshake is complete and the peer's address is proved.
    Connected,
    /// The responder gave a token, which takes the place of all that it gave before: shown with the
    /// next connection to it from this address, it saves a round trip, once.
    Token {
        /// Its bytes.
        token: Bytes,
    },
    /// A message has arrived.
    Message {
        /// Its channel.
        channel: ChannelId,
        /// All of it.
        data: Bytes,
        /// It came with the first packet: it may be a replay, and must not change anything.
        early: bool,
    },
    /// A stream by the peer has something to read, or has ended.
    Readable {
        /// Its channel.
        channel: ChannelId,
    },
    /// The peer offers an object.
    ObjectOpened {
        /// Its channel.
        channel: ChannelId,
        /// Its partition.
        shape: ObjectShape,
        /// What the peer's application says of it.
        label: Bytes,
    },
    /// A block of an object has been decoded: check it, store it, then release or reject it.
    Block {
        /// The channel.
        channel: ChannelId,
        /// Which block.
        block: u32,
        /// Its bytes (none with a counting code).
        data: Bytes,
    },
    /// Part of a block that takes long to complete, if the configuration asks for it: stored, it
    /// need not be sent again by a later connection.
    Checkpoint {
        /// The channel.
        channel: ChannelId,
        /// The symbols.
        checkpoint: Checkpoint,
    },
    /// The data of a block of an object that this side sends is wanted.
    BlockWanted {
        /// The channel.
        channel: ChannelId,
        /// Which block.
        block: u32,
    },
    /// The peer has all of a channel that this side sent.
    Delivered {
        /// The channel.
        channel: ChannelId,
    },
    /// A channel was given up by the peer, or its deadline passed.
    Abandoned {
        /// The channel.
        channel: ChannelId,
        /// The application's reason.
        code: u32,
    },
    /// Another path carries data from now on: the peer has answered on it.
    PathOpened {
        /// Its number.
        path: u8,
    },
    /// A path carries nothing any more.
    PathClosed {
        /// Its number.
        path: u8,
    },
    /// The connection is over.
    Closed(CloseReason),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// This side closed it, and the peer knows or has had time to.
    #[error("closed by this side")]
    Local,
    /// Both sides had ended.
    #[error("both sides have finished")]
    Finished,
    /// The peer closed it.
    #[error(
        "closed by the peer (code {code}{}{})",
        if .reason.is_empty() { "" } else { ": " },
        escaped(.reason)
    )]
    Peer {
        /// The application's code.
        code: u32,
        /// The peer's words, as they came: a terminal would obey control characters in them.
        reason: String,
    },
    /// The peer has lost the connection's state, as after a restart.
    #[error("the peer no longer knows this connection")]
    Reset,
    /// No answer to the handshake.
    #[error("no answer")]
    NoAnswer,
    /// Nothing was heard for too long.
    #[error("nothing was heard from the peer for too long")]
    IdleTimeout,
    /// The peer reported the arrival of packets that were never sent.
    #[error("the peer reported the arrival of packets that were never sent")]
    Untrue,
    /// The peer began far more than it took answers for.
    #[error("the peer began far more than it took answers for")]
    Overrun,
    /// The two sides have no version in common.
    #[error("the peer speaks other versions of the protocol")]
    Version,
    /// The two sides have no erasure code in common.
    #[error("no erasure code in common with the peer")]
    NoCommonCode,
}

/// A peer's words with control and invisible characters escaped.
fn escaped(words: &str) -> String {
    // Quotes are escaped, too, which are harmless and common.
    words.escape_debug().to_string().replace(r"\'", "'").replace(r#"\""#, "\"")
}

/// Work that a connection wants done; run it anywhere and hand the result back.
pub enum CodingJob {
    /// Prepare a block's repair symbols.
    Repair {
        /// The channel.
        channel: ChannelId,
        /// The block.
        block: u32,
        /// The work.
        job: RepairJob,
    },
    /// Decode a block.
    Decode {
        /// The channel.
        channel: ChannelId,
        /// The block.
        block: u32,
        /// The work.
        job: DecodeJob,
    },
}

/// A job that has been done.
pub enum JobDone {
    /// See [`CodingJob::Repair`].
    Repair {
        /// The channel.
        channel: ChannelId,
        /// The block.
        block: u32,
        /// What makes the symbols.
        symbols: RepairSymbols,
    },
    /// See [`CodingJob::Decode`].
    Decode {
        /// The channel.
        channel: ChannelId,
        /// The block.
        block: u32,
        /// The outcome.
        decoded: Decoded,
    },
}

impl CodingJob {
    /// The channel.
    pub(super) const fn channel(&self) -> ChannelId {
        match self {
            Self::Repair { channel, .. } | Self::Decode { channel, .. } => *channel,
        }
    }

    /// Does the work.
    pub fn run(self) -> JobDone {
        match self {
            Self::Repair { channel, block, job } => {
                JobDone::Repair { channel, block, symbols: job.run() }
            }
            Self::Decode { channel, block, job } => {
                JobDone::Decode { channel, block, decoded: job.run() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_at_the_end_cannot_steer_a_terminal() {
        let closed =
            |reason: &str| CloseReason::Peer { code: 7, reason: reason.to_owned() }.to_string();
        assert_eq!(closed(""), "closed by the peer (code 7)");
        assert_eq!(closed("it's \"größe\""), "closed by the peer (code 7: it's \"größe\")");
        let steering = "a\x1b[2Jb\r\n\u{202e}c\u{9b}d";
        let shown = r"closed by the peer (code 7: a\u{1b}[2Jb\r\n\u{202e}c\u{9b}d)";
        assert_eq!(closed(steering), shown);
    }
}
