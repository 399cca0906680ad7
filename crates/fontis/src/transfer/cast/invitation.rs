use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::seal::{CastId, CastSecret};

/// What a receiver needs to take part in a cast, given to it over its own connection.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::transfer) struct Invitation {
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
    /// The BLAKE3 hash of the head, which holds the manifest and the hash tree, and its size.
    pub(super) head: [u8; 32],
    pub(super) head_size: u64,
    pub(super) body_size: u64,
    pub(super) block_size: u32,
    pub(super) symbol_size: u16,
}

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

    /// What is cast; `None` if it cannot be.
    pub(super) fn content(&self) -> Option<Content> {
        let Self { head, head_size, body_size, block_size, symbol_size, .. } = *self;
        let is_sound =
            self.group.ip().is_multicast() && self.group.port() != 0 && self.report_port != 0;
        let content = Content::new(head, head_size, body_size, block_size, symbol_size);
        content.filter(|_| is_sound)
    }
}
