//! What the nodes of a swarm say to each other, each message encoded with postcard.

use std::net::SocketAddr;

use fontis_proto::swarm::SwarmMessage;
use serde::{Deserialize, Serialize};

use crate::transfer::cast::Invitation;

/// Other nodes in one message.
pub(super) const MOST_CONTACTS: usize = 32;

/// A message between two nodes that share an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SwarmWire {
    /// The blocks that the sender has: eight in a byte, the first in its lowest bit. What a node
    /// says first.
    Has(Vec<u8>),
    /// What has changed at the sender, in this order.
    News(Vec<News>),
    /// The sender would send a block. `upload` is its number for it, used once.
    Offer { upload: u32, block: u32 },
    /// The block of an offer is wanted: it comes as an object whose label is the upload's number.
    Take { upload: u32 },
    /// It is not wanted.
    Refuse { upload: u32, reason: Reason },
    /// Most of an upload has left: the receiver may take another.
    Ending { upload: u32 },
    /// Other nodes.
    Meet(Vec<Contact>),
    /// The sender knows few other nodes.
    Lonely,
    /// The sender sends the object to a group, too, in which its neighbour may listen.
    Invite(Box<Invitation>),
    /// The sender listens in that group no more.
    Unheard,
}

/// Why a block is not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reason {
    /// It is there, or comes from another.
    Held,
    /// Too many come already.
    Full,
}

/// Something that has changed at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    Has(u32),
    Coming(u32),
    Lost(u32),
    Gone(u32),
    Room(bool),
}

impl From<News> for SwarmMessage {
    fn from(news: News) -> Self {
        match news {
            News::Has(block) => Self::Has(block),
            News::Coming(block) => Self::Coming(block),
            News::Lost(block) => Self::Lost(block),
            News::Gone(block) => Self::Gone(block),
            News::Room(has_room) => Self::Room(has_room),
        }
    }
}

/// Another node: where it is reached, and its public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contact {
    pub(super) address: SocketAddr,
    pub(super) key: [u8; 32],
}

/// Blocks as a [`SwarmWire::Has`] has them.
pub(super) fn bits(blocks: impl Iterator<Item = u32>, count: u32) -> Vec<u8> {
    let mut bits = vec![0; count.div_ceil(8) as usize];
    for block in blocks {
        if let Some(byte) = bits.get_mut(block as usize / 8) {
            *byte |= 1 << (block % 8);
        }
    }
    bits
}

/// The blocks of a [`SwarmWire::Has`].
pub(super) fn blocks(bits: &[u8]) -> impl Iterator<Item = u32> {
    let in_byte = |(byte, bits): (u32, u8)| {
        (0..8).filter(move |bit| bits & (1 << bit) != 0).map(move |bit| byte * 8 + bit)
    };
    (0u32..).zip(bits.iter().copied()).flat_map(in_byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_travel_as_bits(set in prop::collection::btree_set(0u32..300, 0..100)) {
            let bits = bits(set.iter().copied(), 300);
            prop_assert_eq!(bits.len(), 38);
            prop_assert_eq!(blocks(&bits).collect::<std::collections::BTreeSet<_>>(), set);
        }
    }
}
