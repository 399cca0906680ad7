//! The packets of a cast.

use bytes::{BufMut, Bytes};
use fontis_proto::cast::{
    CastAnnouncement, CastReceipt, CastReport, CastState, CastSymbol, SYMBOL_HEADER, SYMBOL_TIMING,
    decode_receipt, decode_report, decode_state, decode_symbol, encode_receipt, encode_report,
    encode_state, encode_symbol,
};
use fontis_proto::dfcp::SYMBOL_SIZE;

/// A packet of a cast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastPacket {
    /// To the group, with its number.
    Group(u64, CastWord),
    /// A report of a receiver, with the receiver's number.
    Report(u32, CastReport),
    /// A receiver asks to be taken in, first without and then with knowledge of the cast: its
    /// handshake and its request. This packet and the next three stand for the connection of each
    /// receiver to the sender; they are repeated until they are answered.
    Join(u32, bool),
    /// The answer to both.
    Invite,
    /// A receiver has everything, or wants no more.
    Leave(u32),
    /// The answer.
    Left,
}

/// What a group gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastWord {
    /// A symbol.
    Symbol(CastSymbol),
    /// The sender's state.
    State(CastState),
    /// What the sender vouches for.
    Receipt(CastReceipt),
    /// What is sent, of a sender that takes no answers.
    Announcement(CastAnnouncement),
}

/// Bytes of the headers of IPv4 and UDP, of a datagram to a group with its kind, of a report's
/// header, of an authentication tag and of a signature (`docs/multicast.md`).
const UDP: u32 = 28;
const GROUP: u32 = 18;
const REPORT: u32 = 21;
const TAG: u32 = 16;
const SIGNATURE: u32 = 64;
/// Bytes of an announcement without its signature.
const ANNOUNCEMENT: u32 = 71;
/// Bytes of a request and of an answer on a connection: 230 bytes of invitation, a frame and a
/// packet around them.
const REQUEST: u32 = 100;
const INVITATION: u32 = 290;

impl CastPacket {
    /// Bytes at the IP layer.
    pub fn size(&self) -> u32 {
        match self {
            // Symbols that are counted have no bytes.
            Self::Group(_, CastWord::Symbol(symbol)) => {
                let timing = if symbol.timing.is_some() { SYMBOL_TIMING as u32 } else { 0 };
                UDP + GROUP + TAG + SYMBOL_HEADER as u32 + timing + u32::from(SYMBOL_SIZE)
            }
            Self::Group(_, CastWord::Announcement(_)) => {
                UDP + GROUP + TAG + ANNOUNCEMENT + SIGNATURE
            }
            Self::Group(_, CastWord::State(_) | CastWord::Receipt(_)) => {
                UDP + GROUP + TAG + SIGNATURE + self.body().len() as u32
            }
            Self::Report(..) => UDP + REPORT + TAG + self.body().len() as u32,
            Self::Join(..) | Self::Leave(_) | Self::Left => REQUEST,
            Self::Invite => INVITATION,
        }
    }

    /// The bytes of what it says, but for an announcement and what stands for a connection.
    fn body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Group(_, CastWord::Symbol(symbol)) => encode_symbol(symbol, &mut out),
            Self::Group(_, CastWord::State(state)) => encode_state(state, &mut out),
            Self::Group(_, CastWord::Receipt(receipt)) => encode_receipt(receipt, &mut out),
            Self::Report(_, report) => encode_report(report, &mut out),
            Self::Group(_, CastWord::Announcement(_))
            | Self::Join(..)
            | Self::Invite
            | Self::Leave(_)
            | Self::Left => {}
        }
        out
    }

    /// The payload of its datagram in clear, without a tag or a signature.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Group(number, word) => {
                out.put_u8(8);
                out.put_u64(0);
                out.put_u64(*number);
                out.put_u8(match word {
                    CastWord::Symbol(_) => 0,
                    CastWord::State(_) => 1,
                    CastWord::Announcement(_) => 2,
                    CastWord::Receipt(_) => 3,
                });
            }
            Self::Report(member, report) => {
                out.put_u8(9);
                out.put_u64(0);
                out.put_u32(*member);
                out.put_u64(u64::from(report.sequence));
            }
            Self::Join(..) | Self::Invite | Self::Leave(_) | Self::Left => {}
        }
        out.extend(self.body());
        out
    }

    /// What its bytes say.
    ///
    /// # Panics
    /// If its own bytes cannot be read.
    pub fn pass_wire(&self) -> Self {
        let bytes = Bytes::from(self.body());
        let own = "our own bytes can be read";
        match self {
            Self::Group(number, CastWord::Symbol(_)) => {
                Self::Group(*number, CastWord::Symbol(decode_symbol(bytes).expect(own)))
            }
            Self::Group(number, CastWord::State(_)) => {
                Self::Group(*number, CastWord::State(decode_state(bytes).expect(own)))
            }
            Self::Group(number, CastWord::Receipt(_)) => {
                Self::Group(*number, CastWord::Receipt(decode_receipt(bytes).expect(own)))
            }
            Self::Report(member, _) => Self::Report(*member, decode_report(bytes).expect(own)),
            Self::Group(_, CastWord::Announcement(_))
            | Self::Join(..)
            | Self::Invite
            | Self::Leave(_)
            | Self::Left => self.clone(),
        }
    }
}
