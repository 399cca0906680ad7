use std::net::SocketAddr;

use fontis_codes::Code;
use fontis_proto::cast::CastShape;
use serde::{Deserialize, Serialize};

use super::seal::{CastId, CastSecret};

/// What a receiver needs to take part in a cast, given to it over its own connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::transfer) struct Invitation {
    /// The receiver's number in the group.
    pub(super) member: u32,
    pub(super) group: SocketAddr,
    pub(super) id: CastId,
    pub(super) group_secret: CastSecret,
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

/// Bytes of a head that a receiver takes: as much as a manifest and the hashes of 60 TB need.
const MOST_HEAD: u64 = 64 << 20;

impl Invitation {
    /// The receiver's number in the group.
    pub(in crate::transfer) const fn member(&self) -> u32 {
        self.member
    }

    /// The partition of what is cast; `None` if it cannot be.
    pub(super) fn shape(&self) -> Option<CastShape> {
        let Self { head_size, body_size, block_size, symbol_size, .. } = *self;
        let is_sound = (1..=MOST_HEAD).contains(&head_size)
            && self.group.ip().is_multicast()
            && self.group.port() != 0
            && self.report_port != 0
            && block_size <= 1 << 20
            && symbol_size >= 64;
        let shape = CastShape::new(head_size, body_size, block_size, symbol_size, Code::RaptorQ);
        shape.ok().filter(|_| is_sound)
    }
}
