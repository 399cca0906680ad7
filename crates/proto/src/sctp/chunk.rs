//! Chunks as typed values.

use core::net::IpAddr;

use bytes::Bytes;
use fontis_codes::raptorq::repair_factors;
use fontis_codes::window::sum_factors;
use smallvec::SmallVec;

use super::data::SctpData;
use super::offer::AuthOffer;

/// A chunk (RFC 9260 section 3.3, and the extensions that this crate speaks).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SctpChunk {
    /// DATA or I-DATA: a message or a part of one.
    Data(DataChunk),
    /// INIT: the beginning of an association.
    Init(Box<InitChunk>),
    /// INIT ACK, with the cookie.
    InitAck(Box<InitChunk>),
    /// SACK or NR-SACK: what has arrived.
    Sack(Box<SackChunk>),
    /// HEARTBEAT, with what its answer must repeat.
    Heartbeat(Bytes),
    /// HEARTBEAT ACK.
    HeartbeatAck(Bytes),
    /// ABORT.
    Abort {
        /// Whether its tag is that of the packet that it answers (the T bit).
        is_reflected: bool,
        /// The reasons.
        causes: Vec<SctpCause>,
    },
    /// SHUTDOWN.
    Shutdown {
        /// All TSNs up to this one have arrived.
        cumulative: u32,
    },
    /// SHUTDOWN ACK.
    ShutdownAck,
    /// SHUTDOWN COMPLETE.
    ShutdownComplete {
        /// Whether its tag is that of the packet that it answers (the T bit).
        is_reflected: bool,
    },
    /// ERROR.
    Error(Vec<SctpCause>),
    /// COOKIE ECHO.
    CookieEcho(Bytes),
    /// COOKIE ACK.
    CookieAck,
    /// ECNE: a packet with this TSN was marked (RFC 4960 appendix A).
    EcnEcho(u32),
    /// CWR: the answer to a mark.
    WindowReduced(u32),
    /// FORWARD-TSN (RFC 3758) or I-FORWARD-TSN (RFC 8260): what the sender gives up.
    Forward(ForwardChunk),
    /// When a packet left, by its sender's clock, and on which path: an experimental chunk, which
    /// others skip. The delays of paths come from it.
    Stamp(Stamp),
    /// The echo of a stamp, beside a SACK.
    Echo(StampEcho),
    /// A sum of DATA chunks, from which a lost one is restored: an experimental chunk, which others
    /// skip.
    Repair(RepairChunk),
    /// The TSNs of chunks that were restored, beside the SACK that acknowledges them: an
    /// experimental chunk, which others skip.
    Restored(SmallVec<[u32; 4]>),
    /// RE-CONFIG: requests to reset streams, and answers (RFC 6525).
    Reconfig(SmallVec<[Reconfig; 2]>),
    /// AUTH: a code of all chunks behind it (RFC 4895).
    Auth(AuthChunk),
    /// ASCONF: changes of the sender's addresses (RFC 5061).
    Asconf(AsconfChunk),
    /// ASCONF-ACK: what became of them.
    AsconfAck(AsconfAckChunk),
    /// A chunk of a type that is not known here.
    Unknown {
        /// Its type.
        kind: u8,
        /// Its flags.
        flags: u8,
        /// Its content.
        value: Bytes,
    },
}

/// A DATA chunk (RFC 9260 section 3.3.1) or an I-DATA chunk (RFC 8260 section 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataChunk {
    /// Its transmission sequence number.
    pub tsn: u32,
    /// Its stream.
    pub stream: u16,
    /// The number of its message in the stream: 16 bits in DATA (SSN), 32 in I-DATA (MID).
    pub message: u32,
    /// I-DATA: the number of the fragment in its message.
    pub fragment: u32,
    /// What the upper layer says of its content. Fragments behind the first of I-DATA carry none.
    pub protocol: u32,
    /// Whether it is I-DATA.
    pub is_interleaved: bool,
    /// Whether a message begins with it.
    pub is_first: bool,
    /// Whether a message ends with it.
    pub is_last: bool,
    /// Whether its message needs no order.
    pub is_unordered: bool,
    /// Whether the sender asks for a SACK at once (RFC 7053).
    pub is_immediate: bool,
    /// Its content, of at least one byte.
    pub data: SctpData,
}

impl DataChunk {
    /// Bytes before the content.
    pub const fn header(is_interleaved: bool) -> usize {
        if is_interleaved { 20 } else { 16 }
    }
}

/// A sum of DATA chunks that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairChunk {
    /// The TSN of the first.
    pub first: u32,
    /// How many they are.
    pub count: u16,
    /// Its number, from which their factors follow.
    pub id: u32,
    /// Which rule gives the factors.
    pub factors: RepairFactors,
    /// The sum of what their headers say.
    pub head: [u8; RepairChunk::HEAD],
    /// The sum of their contents, as long as the longest.
    pub data: SctpData,
}

/// What the chunks of a repair are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairFactors {
    /// By the factors of RFC 8681 (section 3.6), of which none is zero.
    Window,
    /// As in the repair symbol of RFC 6330 whose encoding symbol identifier is the number, of a
    /// block of these chunks.
    RaptorQ,
}

impl RepairFactors {
    /// The factors of so many chunks in the repair `id`; `None` if there is no such repair.
    pub(super) fn of(self, id: u32, count: usize) -> Option<Vec<u8>> {
        match self {
            Self::Window => Some(sum_factors(id, count)),
            Self::RaptorQ => repair_factors(u32::try_from(count).ok()?, id),
        }
    }
}

impl RepairChunk {
    /// Bytes that stand for a header in a sum.
    pub const HEAD: usize = 16;
    /// Bytes before the content.
    pub const HEADER: usize = 16 + Self::HEAD;
}

/// INIT and INIT ACK (RFC 9260 sections 3.3.2 and 3.3.3). Tag and numbers of streams are not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitChunk {
    /// The tag that packets to its sender must bear.
    pub tag: u32,
    /// Bytes that its sender can hold.
    pub window: u32,
    /// Streams that it would send on.
    pub outbound: u16,
    /// Streams that it can receive on.
    pub inbound: u16,
    /// Its first TSN.
    pub tsn: u32,
    /// Its addresses; the packet's source belongs to them in any case.
    pub addresses: SmallVec<[IpAddr; 2]>,
    /// INIT ACK: the cookie.
    pub cookie: Option<Bytes>,
    /// The chunk types of extensions that it speaks (RFC 5061 section 4.2.7).
    pub extensions: SmallVec<[u8; 8]>,
    /// Whether it knows FORWARD-TSN.
    pub forwards: bool,
    /// Whether it knows marks.
    pub ecn: bool,
    /// What it says of authentication (RFC 4895).
    pub auth: AuthOffer,
    /// Parameters to be reported to the peer because they are not known.
    pub unknown: Vec<(u16, Bytes)>,
}

/// SACK (RFC 9260 section 3.3.4) and NR-SACK (draft-ietf-tsvwg-sctp-multipath section 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SackChunk {
    /// All TSNs up to this one have arrived.
    pub cumulative: u32,
    /// Bytes that the receiver can hold beyond those.
    pub window: u32,
    /// Runs of TSNs that have arrived, as offsets from `cumulative`: first and last.
    pub gaps: SmallVec<[(u16, u16); 4]>,
    /// NR-SACK: runs that the receiver will not drop any more. `None` in a SACK.
    pub kept: Option<SmallVec<[(u16, u16); 4]>>,
    /// TSNs that arrived again.
    pub duplicates: SmallVec<[u32; 4]>,
    /// Data packets that it answers, for delayed acknowledgements over several paths; zero from
    /// those that do not say.
    pub packets: u8,
}

/// FORWARD-TSN and I-FORWARD-TSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardChunk {
    /// All TSNs up to this one have arrived or are given up.
    pub cumulative: u32,
    /// Whether it is an I-FORWARD-TSN.
    pub is_interleaved: bool,
    /// The last message given up in each stream.
    pub skipped: SmallVec<[Skipped; 4]>,
}

/// The last message that is given up in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The stream.
    pub stream: u16,
    /// I-FORWARD-TSN: whether the message is unordered.
    pub is_unordered: bool,
    /// Its number: 16 bits in FORWARD-TSN.
    pub message: u32,
}

/// When a packet left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The sender's number of the path.
    pub path: u8,
    /// The sender's clock in nanoseconds.
    pub sent: u64,
}

/// The echo of the newest stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampEcho {
    /// The stamp.
    pub stamp: Stamp,
    /// The receiver's clock at its arrival, in nanoseconds.
    pub received: u64,
    /// From then to the departure of the echo, in nanoseconds.
    pub held: u64,
    /// The number of the SACK beside it; a later SACK has a higher one.
    pub number: u32,
}

/// A parameter of RE-CONFIG (RFC 6525 section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconfig {
    /// The sender's streams begin anew.
    ResetOutgoing {
        /// Its number.
        number: u32,
        /// The number of the peer's request that it answers, or of the last one.
        answers: u32,
        /// The last TSN before.
        last: u32,
        /// The streams; all if there are none.
        streams: SmallVec<[u16; 4]>,
    },
    /// The peer shall reset its streams.
    ResetIncoming {
        /// Its number.
        number: u32,
        /// The streams; all if there are none.
        streams: SmallVec<[u16; 4]>,
    },
    /// An answer.
    Answer {
        /// The number of the request.
        number: u32,
        /// What became of it.
        result: u32,
        /// More of it.
        details: Bytes,
    },
    /// A request that is not fulfilled here: to number TSNs anew, or for more streams.
    Other {
        /// Its type.
        kind: u16,
        /// Its number.
        number: u32,
        /// More of it.
        details: Bytes,
    },
}

/// AUTH (RFC 4895 section 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthChunk {
    /// The number of the shared key.
    pub key: u16,
    /// The number of the hash.
    pub hash: u16,
    /// The code.
    pub code: Bytes,
    /// The bytes of the chunks behind it, with their padding, which the code is over. What came is
    /// kept as it was: a peer may have written the same chunks in another way.
    pub covered: Bytes,
}

impl AuthChunk {
    /// Bytes before the code.
    pub const HEADER: usize = 8;
}

/// ASCONF (RFC 5061 section 4.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsconfChunk {
    /// Its number.
    pub number: u32,
    /// An address of the sender by which the receiver may find the association.
    pub lookup: IpAddr,
    /// What changes, in order.
    pub parameters: SmallVec<[AddressParameter; 2]>,
}

/// ASCONF-ACK (RFC 5061 section 4.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsconfAckChunk {
    /// The number of the request.
    pub number: u32,
    /// What became of its parameters. What is not here has succeeded, unless one before it failed.
    pub answers: SmallVec<[AddressAnswer; 2]>,
}

/// A change of the addresses of an end. An address of zeros is the source of the packet or, where
/// one is removed, all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// The end has a further address.
    Add(IpAddr),
    /// The end has lost an address.
    Remove(IpAddr),
    /// The end would receive at this address.
    Primary(IpAddr),
}

impl AddressChange {
    /// The address.
    pub const fn address(self) -> IpAddr {
        match self {
            Self::Add(address) | Self::Remove(address) | Self::Primary(address) => address,
        }
    }

    /// The same change of another address.
    pub const fn at(self, address: IpAddr) -> Self {
        match self {
            Self::Add(_) => Self::Add(address),
            Self::Remove(_) => Self::Remove(address),
            Self::Primary(_) => Self::Primary(address),
        }
    }
}

/// A parameter of ASCONF (RFC 5061 section 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressParameter {
    /// A change.
    Change {
        /// The sender's number of the change.
        id: u32,
        /// What changes.
        change: AddressChange,
    },
    /// One that is not known.
    Unknown {
        /// Its type.
        kind: u16,
        /// Its content.
        value: Bytes,
    },
}

/// What became of a parameter of ASCONF (RFC 5061 sections 4.2.3 and 4.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressAnswer {
    /// The number of the change.
    pub id: u32,
    /// Why it is refused; nothing if it is done.
    pub causes: Vec<SctpCause>,
}

/// The reason for an ABORT or an ERROR (RFC 9260 section 3.3.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SctpCause {
    /// Its code.
    pub code: u16,
    /// More of it.
    pub details: Bytes,
}

impl SctpCause {
    /// A stream that is not there.
    pub const INVALID_STREAM: u16 = 1;
    /// A cookie that is too old.
    pub const STALE_COOKIE: u16 = 3;
    /// No room.
    pub const OUT_OF_RESOURCE: u16 = 4;
    /// A chunk of a type that is not known.
    pub const UNKNOWN_CHUNK: u16 = 6;
    /// Parameters that are not known.
    pub const UNKNOWN_PARAMETERS: u16 = 8;
    /// A DATA chunk without data.
    pub const NO_DATA: u16 = 9;
    /// A restart from addresses that were not there.
    pub const NEW_ADDRESSES: u16 = 11;
    /// The upper layer broke off.
    pub const USER: u16 = 12;
    /// What came is against the protocol.
    pub const VIOLATION: u16 = 13;
    /// An address of a kind that is not usable here.
    pub const UNUSABLE_ADDRESS: u16 = 5;
    /// A parameter with a value that may not be.
    pub const INVALID_PARAMETER: u16 = 7;
    /// An AUTH chunk with a hash that was not named (RFC 4895).
    pub const UNKNOWN_HASH: u16 = 0x0105;
    /// A request to remove the last address (RFC 5061).
    pub const LAST_ADDRESS: u16 = 0x00a0;
    /// No room for another address.
    pub const ADDRESS_SHORTAGE: u16 = 0x00a1;
    /// A request to remove the address that it comes from.
    pub const SOURCE_ADDRESS: u16 = 0x00a2;
    /// An ASCONF-ACK that nothing asked for.
    pub const ILLEGAL_ACK: u16 = 0x00a3;
    /// A request that this end does not permit.
    pub const NOT_PERMITTED: u16 = 0x00a4;

    /// A cause without details.
    pub const fn of(code: u16) -> Self {
        Self { code, details: Bytes::new() }
    }
}
