use core::fmt;

use bytes::Bytes;
use fontis_base::Rate;
use fontis_codes::Code;
use smallvec::SmallVec;

use super::feedback::Feedback;
use super::message_run::MessageRun;
use super::params::{Params, ResetToken};

/// A connection identifier: names the keys that protect a packet, chosen by whoever receives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub [u8; 8]);

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// Identifies a channel. The initiator's channels are even, the responder's odd.
pub type ChannelId = u32;

/// A DFCP packet before the wire format encodes it and packet protection seals it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DfcpPacket {
    /// The first message: connection request.
    Syn {
        /// Version of the protocol.
        version: u32,
        /// Where the answers shall go.
        source: ConnectionId,
        /// What Noise encrypts.
        hello: Hello,
    },
    /// The second message: connection accepted.
    SynAck {
        /// The initiator's identifier.
        destination: ConnectionId,
        /// Where further packets shall go.
        source: ConnectionId,
        /// What Noise encrypts.
        hello: Hello,
    },
    /// Everything after: sealed frames.
    Sealed {
        /// The receiver's identifier.
        destination: ConnectionId,
        /// The path that it is sent on.
        path: u8,
        /// The packet's number on the path, from zero.
        number: u64,
        /// What it carries.
        frames: Frames,
    },
    /// The sender knows nothing of the connection.
    Reset {
        /// The identifier in the packet that caused it.
        destination: ConnectionId,
        /// What only the identifier's owner could know.
        token: ResetToken,
    },
    /// The version is not spoken here.
    VersionNegotiation {
        /// The initiator's identifier.
        destination: ConnectionId,
        /// The versions that are.
        versions: Vec<u32>,
    },
}

/// The frames of a sealed packet: most carry one.
pub type Frames = SmallVec<[Frame; 1]>;

/// What the two handshake messages carry, encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// What this side offers or has chosen.
    pub params: Params,
    /// Frames that travel with the handshake. In a SYN they can be replayed and are not
    /// forward-secret.
    pub frames: Vec<Frame>,
}

/// A unit of meaning in a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Asks for feedback at once.
    Ping,
    /// Bytes that mean nothing: they measure the path.
    Padding(u16),
    /// The initiator confirms keys and address: the third message of the handshake.
    Confirm,
    /// Symbols of a block.
    Symbols(SymbolsFrame),
    /// What has arrived on a path.
    Feedback(Box<Feedback>),
    /// A channel's blocks: done, lacking, allowed.
    Blocks(Box<BlockStatus>),
    /// Opens a channel that carries an object.
    Open(Box<Open>),
    /// The channel has been received completely: nothing more of it is wanted.
    Done {
        /// The channel.
        channel: ChannelId,
    },
    /// The channel is given up, by either side.
    Abandon {
        /// The channel.
        channel: ChannelId,
        /// Why, as the application numbers it.
        code: u32,
        /// Its place among the sender's ordered messages, if it is one: those behind it need not
        /// wait.
        sequence: Option<u32>,
    },
    /// Messages of the sender were given up, unless they have ended: their deadlines passed.
    GivenUp(MessageRun),
    /// No new channel will come; the connection ends when the open ones have.
    Fin,
    /// The answer to a FIN when this side has ended too.
    FinAck,
    /// Asks who is at an address from which packets of this connection come.
    Challenge([u8; 8]),
    /// The answer to a challenge, with its bytes.
    Response([u8; 8]),
    /// From a responder: what its initiator may show at its next connection. In a SYN: what is
    /// shown.
    Token(Bytes),
    /// How fast the peer may send symbols from now on.
    Limit {
        /// Which of this side's limits it is: only one that is newer than all that came counts.
        sequence: u32,
        /// Bits a second at the IP layer; zero pauses; none: as fast as it likes.
        rate: Option<Rate>,
    },
    /// The path that this comes on is to carry data only while no other answers.
    Spare,
    /// A path is given up, by either side.
    PathClosed {
        /// Its number.
        path: u8,
    },
    /// The connection ends now.
    Close {
        /// Why, as the application numbers it; zero is no error.
        code: u32,
        /// Why, for people; at most 255 bytes.
        reason: String,
    },
}

impl Frame {
    /// The name of its kind in traces.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Padding(_) => "padding",
            Self::Confirm => "confirm",
            Self::Symbols(_) => "symbols",
            Self::Feedback(_) => "feedback",
            Self::Blocks(_) => "blocks",
            Self::Open(_) => "open",
            Self::Done { .. } => "done",
            Self::Abandon { .. } => "abandon",
            Self::GivenUp(_) => "given_up",
            Self::Fin => "fin",
            Self::FinAck => "fin_ack",
            Self::Close { .. } => "close",
            Self::Challenge(_) => "challenge",
            Self::Response(_) => "response",
            Self::Token(_) => "token",
            Self::Limit { .. } => "limit",
            Self::Spare => "spare",
            Self::PathClosed { .. } => "path_closed",
        }
    }

    /// The frame as traces keep it: what symbols it carried, not their bytes.
    pub(super) fn traced(&self) -> Self {
        match self {
            Self::Symbols(symbols) => {
                Self::Symbols(SymbolsFrame { data: Bytes::new(), ..*symbols })
            }
            frame => frame.clone(),
        }
    }
}

/// Consecutive symbols of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolsFrame {
    /// The channel.
    pub channel: ChannelId,
    /// The block.
    pub block: u32,
    /// The first symbol's identifier.
    pub esi: u32,
    /// How many symbols follow each other.
    pub count: u16,
    /// What describes the block, on channels that no [`Open`] described.
    pub live: Option<Live>,
    /// Whether the block's symbols have the size of these, not the one that [`Open`] told: all of
    /// them are sent whole.
    pub whole: bool,
    /// Whether the block takes four bytes and the ESI at least two, where fewer would do. It means
    /// nothing to who receives.
    pub long: bool,
    /// Bytes of all the symbols on the wire.
    pub len: u16,
    /// The symbols; empty with a counting code.
    pub data: Bytes,
}

/// Describes a block of a message or stream: its length is known only when it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// What the channel is.
    pub kind: LiveKind,
    /// Bytes in the block.
    pub block_len: u32,
    /// Whether it is the channel's last block.
    pub fin: bool,
}

/// What a channel without a descriptor carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveKind {
    /// Bytes in order, without boundaries.
    Stream,
    /// One message of one or more blocks, delivered when complete.
    Message,
    /// One message, delivered when complete and all ordered messages before it have been.
    Ordered {
        /// Its place among the sender's ordered messages, from zero.
        sequence: u32,
    },
}

/// Opens a channel that carries an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The channel.
    pub channel: ChannelId,
    /// The object.
    pub object: ObjectShape,
    /// What the application says of the object: its root hash, name or manifest; at most 1024
    /// bytes.
    pub label: Bytes,
}

/// An object's partition: what its blocks and symbols are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectShape {
    /// Bytes in the object.
    pub size: u64,
    /// Bytes in every block but the last.
    pub block_size: u32,
    /// Bytes in a symbol.
    pub symbol_size: u16,
    /// The erasure code's identifier.
    pub code: u8,
}

impl ObjectShape {
    /// The partition of an object of `size` bytes: up to 1 MiB it is one block, the next power of
    /// two; beyond, blocks have 1 MiB. A block of 2ⁿ KiB is a whole subtree of the object's BLAKE3
    /// tree.
    pub fn partition(size: u64, symbol_size: u16, code: Code) -> Self {
        let block_size = size.next_power_of_two().clamp(1 << 10, 1 << 20) as u32;
        Self { size, block_size, symbol_size, code: code.id() }
    }

    /// How many blocks there are; an empty object has none. `None` if they do not fit 32 bits.
    pub fn blocks(&self) -> Option<u32> {
        if self.block_size == 0 {
            return None;
        }
        u32::try_from(self.size.div_ceil(u64::from(self.block_size))).ok()
    }

    /// Bytes in block `index`, which must exist.
    pub fn block_len(&self, index: u32) -> u32 {
        let start = u64::from(index) * u64::from(self.block_size);
        (self.size.saturating_sub(start)).min(u64::from(self.block_size)) as u32
    }
}

/// A receiver's view of one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockStatus {
    /// The channel.
    pub channel: ChannelId,
    /// Which of the channel's statuses it is: an older one may come later, by another path.
    pub sequence: u32,
    /// Every block below is done.
    pub floor: u32,
    /// Blocks from here on may not be sent yet.
    pub limit: u32,
    /// Blocks at or above the floor that are done or lack a known number of symbols, in rising
    /// order.
    pub blocks: Vec<BlockNeed>,
}

/// What one block lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockNeed {
    /// The block.
    pub block: u32,
    /// Symbols lacking; zero: enough are there, stop sending.
    pub needed: u32,
    /// Whether the block is done: decoded and accepted.
    pub done: bool,
}
