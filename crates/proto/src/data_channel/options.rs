use bytes::Bytes;
use thiserror::Error;

use crate::sctp::{Reliability, SctpSendError};

/// How a channel carries messages, and what the applications say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataChannelOptions {
    /// What the applications call it.
    pub label: String,
    /// What they speak on it.
    pub protocol: String,
    /// Whether messages come in their order.
    pub is_ordered: bool,
    /// How long each is tried.
    pub reliability: Reliability,
    /// How much it matters beside others: 128, 256, 512 and 1024 are from below normal to high
    /// (RFC 8831 section 6.4). It is told to the peer, and nothing else.
    pub priority: u16,
}

impl Default for DataChannelOptions {
    fn default() -> Self {
        Self {
            label: String::new(),
            protocol: String::new(),
            is_ordered: true,
            reliability: Reliability::Full,
            priority: 256,
        }
    }
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelContent {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

impl ChannelContent {
    /// Its length in bytes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether it has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason why a channel does not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DataChannelError {
    /// It is closed, or was never there.
    #[error("data channel {0} is closed")]
    Closed(u16),
    /// All are in use.
    #[error("all {0} data channels are in use: close one first")]
    NoneLeft(usize),
    /// Names longer than the protocol can tell.
    #[error("the label or the protocol of a data channel is longer than 65535 bytes")]
    LongName,
    /// The message is longer than the peer takes.
    #[error("a message of {len} bytes is longer than the peer takes, {most} bytes")]
    LongMessage {
        /// Its length.
        len: usize,
        /// The longest.
        most: usize,
    },
    /// The association does not take it.
    #[error(transparent)]
    Send(#[from] SctpSendError),
}
