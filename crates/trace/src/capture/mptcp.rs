//! Multipath TCP (RFC 8684): subflows as paths of one connection, in the connection's own sequence
//! numbers.
//!
//! A subflow joins the connection whose key has its token; where the handshake of the first subflow
//! was not captured, or is of version 0, each subflow stays a flow of its own.

use std::collections::BTreeMap;

use fontis_base::IntervalSet;
use sha2::{Digest, Sha256};

use crate::capture::wire::mptcp::{Mapping, Multipath};
use crate::header::PacketHeader;

/// The connections of a capture.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// By token: the connection, and which of its ends holds the key.
    tokens: BTreeMap<u32, (usize, usize)>,
    known: BTreeMap<usize, Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    /// By end: the number of its first byte.
    first: [Option<u32>; 2],
    /// By end: what it has sent, on whatever subflow, and one beyond the highest.
    sent: [IntervalSet; 2],
    highest: [u64; 2],
}

/// What is known of a subflow, by end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subflow {
    /// The subflow's number of its first byte.
    first: [Option<u32>; 2],
    /// The latest mapping into the connection's numbers.
    mapping: [Option<Mapping>; 2],
}

impl Connections {
    /// The connection that a token stands for, and the end that joins it.
    pub(crate) fn joined(&self, token: u32) -> Option<(usize, usize)> {
        self.tokens.get(&token).map(|(place, holder)| (*place, 1 - holder))
    }

    /// Puts a segment's header into the connection's numbers; `side` sent it.
    pub(crate) fn translate(
        &mut self,
        place: usize,
        side: usize,
        multipath: Option<Multipath>,
        subflow: &mut Subflow,
        header: &mut PacketHeader,
    ) {
        if let Some(Multipath::Capable(keys)) = multipath {
            // The answer says that both ends are capable; the first message alone says nothing.
            if keys[0].is_some() {
                self.known.entry(place).or_default();
            }
            for (end, key) in [(side, keys[0]), (1 - side, keys[1])] {
                let Some(key) = key else { continue };
                let hash = Sha256::digest(key.to_be_bytes());
                let word = |at: usize| {
                    u32::from_be_bytes([hash[at], hash[at + 1], hash[at + 2], hash[at + 3]])
                };
                self.tokens.insert(word(0), (place, end));
                let connection = self.known.entry(place).or_default();
                // The low half of the initial number, and the handshake counts as one.
                connection.first[end] = Some(word(28).wrapping_add(1));
            }
        }
        if header.syn {
            subflow.first[side] = header.seq.map(|seq| seq as u32);
            // A subflow's own numbers are not the connection's.
            header.seq = None;
            header.ack = None;
            return;
        }
        let Some(connection) = self.known.get_mut(&place) else { return };
        let (ack, mapping) = match multipath {
            Some(Multipath::Part { ack, mapping }) => (ack, mapping),
            _ => (None, None),
        };
        if mapping.is_some() {
            subflow.mapping[side] = mapping;
        }
        let seq = header.seq.take().map(|seq| seq as u32);
        header.ack = ack.map(u64::from);
        // What these say is of the subflow.
        header.sack.clear();
        header.timestamps = None;
        if header.len == 0 {
            return;
        }
        // Relative to the subflow's SYN, as mappings count (RFC 8684 section 3.3.1).
        let relative = seq
            .zip(subflow.first[side])
            .map(|(seq, first)| seq.wrapping_sub(first).wrapping_add(1));
        let number = match (subflow.mapping[side], relative) {
            (Some(at), Some(relative)) => {
                Some(at.number.wrapping_add(relative.wrapping_sub(at.subflow)))
            }
            (Some(at), None) => mapping.map(|_| at.number),
            // Before the first mapping there is the data of the handshake.
            (None, Some(relative)) => {
                connection.first[side].map(|first| first.wrapping_add(relative.wrapping_sub(1)))
            }
            (None, None) => None,
        };
        let Some(number) = number else {
            header.len = 0;
            return;
        };
        header.seq = Some(u64::from(number));
        // Subflows send what they were given at their own pace: what is late is not what is sent
        // again.
        let first = connection.first[side].unwrap_or(0);
        let highest = connection.highest[side];
        let step = number.wrapping_sub(first).wrapping_sub(highest as u32) as i32;
        let from = highest.saturating_add_signed(step.into());
        let end = from.saturating_add(u64::from(header.len));
        connection.highest[side] = highest.max(end);
        header.again = Some(connection.sent[side].insert(from, end) == 0);
    }
}
