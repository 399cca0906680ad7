use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use fontis_base::Duration;
use serde::{Deserialize, Serialize};

use super::content::Content;
use super::seal::{CastId, CastSecret};

/// What a receiver needs to take part in a cast, given to it over its own connection.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invitation {
    /// The receiver's number in the group.
    pub(super) member: u32,
    pub(super) group: SocketAddr,
    pub(super) id: CastId,
    pub(super) group_secret: CastSecret,
    /// The key that the sender's states and receipts are signed with, made for this cast.
    pub(super) signer: [u8; 32],
    /// The secret of this receiver's reports, and the port that they go to at the sender.
    pub(super) report_secret: CastSecret,
    pub(super) report_port: u16,
    pub(super) cast: Invited,
}

/// What is cast.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Invited {
    /// An object.
    Object {
        /// The BLAKE3 hash of the head, which holds the manifest and the hash tree, and its size.
        head: [u8; 32],
        head_size: u64,
        body_size: u64,
        block_size: u32,
        symbol_size: u16,
    },
    /// A stream, with its latency in milliseconds.
    Stream { latency: u32 },
}

/// The name of a stream, which has none of its own.
pub(super) const STREAM: &str = "stream";
/// The latencies that a stream can have.
pub(super) const LATENCIES: RangeInclusive<Duration> =
    Duration::from_millis(20)..=Duration::from_secs(60);

/// Without its secrets.
impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, group, .. } = self;
        f.debug_struct("Invitation").field("member", member).field("group", group).finish()
    }
}

impl Invitation {
    /// The receiver's number in the group.
    pub(in crate::transfer) const fn member(&self) -> u32 {
        self.member
    }

    /// The group.
    pub(in crate::transfer) const fn group(&self) -> SocketAddr {
        self.group
    }

    /// Whether it is to a stream.
    pub(super) const fn is_stream(&self) -> bool {
        matches!(self.cast, Invited::Stream { .. })
    }

    /// What is cast, an object or a stream; `None` if it cannot be.
    pub(super) fn promise(&self) -> Option<Promise> {
        let is_sound =
            self.group.ip().is_multicast() && self.group.port() != 0 && self.report_port != 0;
        let promise = match self.cast {
            Invited::Object { head, head_size, body_size, block_size, symbol_size } => {
                let content = Content::new(head, head_size, body_size, block_size, symbol_size)?;
                Promise::Object(content)
            }
            Invited::Stream { latency } => {
                let latency = Duration::from_millis(u64::from(latency));
                if !LATENCIES.contains(&latency) {
                    return None;
                }
                Promise::Stream(latency)
            }
        };
        is_sound.then_some(promise)
    }
}

/// What a receiver is invited to: an object, or a stream of this latency.
pub(super) enum Promise {
    Object(Content),
    Stream(Duration),
}
