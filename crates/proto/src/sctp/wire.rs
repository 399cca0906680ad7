//! The wire format: big-endian fields, chunks and parameters padded to four bytes, and a CRC32c.

mod asconf;
mod parts;
mod read;
mod reader;
mod write;

pub(super) use asconf::write_change;
pub(super) use write::encode_chunks;

use thiserror::Error;

/// The protocol number of SCTP over IP.
pub const PROTOCOL: u8 = 132;
/// The port of SCTP over UDP (RFC 6951).
pub const UDP_PORT: u16 = 9899;

/// Types of chunks.
pub(super) mod kind {
    pub(super) const DATA: u8 = 0;
    pub(in crate::sctp) const INIT: u8 = 1;
    pub(in crate::sctp) const INIT_ACK: u8 = 2;
    pub(super) const SACK: u8 = 3;
    pub(in crate::sctp) const HEARTBEAT: u8 = 4;
    pub(super) const HEARTBEAT_ACK: u8 = 5;
    pub(super) const ABORT: u8 = 6;
    pub(super) const SHUTDOWN: u8 = 7;
    pub(super) const SHUTDOWN_ACK: u8 = 8;
    pub(super) const ERROR: u8 = 9;
    pub(in crate::sctp) const COOKIE_ECHO: u8 = 10;
    pub(super) const COOKIE_ACK: u8 = 11;
    pub(super) const ECNE: u8 = 12;
    pub(super) const CWR: u8 = 13;
    pub(in crate::sctp) const SHUTDOWN_COMPLETE: u8 = 14;
    pub(in crate::sctp) const AUTH: u8 = 15;
    pub(in crate::sctp) const NR_SACK: u8 = 16;
    pub(in crate::sctp) const I_DATA: u8 = 64;
    pub(in crate::sctp) const ASCONF_ACK: u8 = 0x80;
    pub(in crate::sctp) const RECONFIG: u8 = 130;
    pub(in crate::sctp) const PADDING: u8 = 132;
    pub(in crate::sctp) const FORWARD: u8 = 192;
    pub(in crate::sctp) const ASCONF: u8 = 0xc1;
    pub(in crate::sctp) const I_FORWARD: u8 = 194;
    /// Experimental: types of this form are skipped without a report by those who do not know them.
    pub(super) const RAPTORQ_REPAIR: u8 = 0xba;
    pub(super) const RESTORED: u8 = 0xbb;
    pub(in crate::sctp) const REPAIR: u8 = 0xbc;
    pub(in crate::sctp) const STAMP: u8 = 0xbd;
    pub(in crate::sctp) const ECHO: u8 = 0xbe;
}

/// Types of parameters.
pub(super) mod parameter {
    pub(super) const IPV4: u16 = 5;
    pub(super) const IPV6: u16 = 6;
    pub(super) const COOKIE: u16 = 7;
    pub(super) const UNKNOWN: u16 = 8;
    pub(super) const RESET_OUTGOING: u16 = 13;
    pub(super) const RESET_INCOMING: u16 = 14;
    pub(super) const RESET_NUMBERS: u16 = 15;
    pub(super) const ANSWER: u16 = 16;
    pub(super) const ADD_OUTGOING: u16 = 17;
    pub(super) const ADD_INCOMING: u16 = 18;
    pub(super) const ECN: u16 = 0x8000;
    pub(in crate::sctp) const RANDOM: u16 = 0x8002;
    pub(in crate::sctp) const CHUNKS: u16 = 0x8003;
    pub(in crate::sctp) const HASHES: u16 = 0x8004;
    pub(super) const EXTENSIONS: u16 = 0x8008;
    pub(super) const FORWARDS: u16 = 0xc000;
    pub(super) const ADD_ADDRESS: u16 = 0xc001;
    pub(super) const REMOVE_ADDRESS: u16 = 0xc002;
    pub(super) const FAILURE: u16 = 0xc003;
    pub(super) const PRIMARY: u16 = 0xc004;
    pub(super) const SUCCESS: u16 = 0xc005;
    pub(super) const ADAPTATION: u16 = 0xc006;
}

/// The reason why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SctpWireError {
    /// It ends too early, or a length is wrong.
    #[error("an SCTP packet is cut off or has a wrong length in {0}")]
    Length(&'static str),
    /// The checksum is wrong.
    #[error("the checksum of an SCTP packet is wrong")]
    Checksum,
    /// A value that must not be.
    #[error("an SCTP packet has a {0} that the protocol forbids")]
    Value(&'static str),
}

/// The length to the next multiple of four.
const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}
