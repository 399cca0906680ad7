//! Packets of DCCP as values.

use bytes::Bytes;

use super::number::DccpSeq;
use super::option::DccpOption;

/// A packet of DCCP (RFC 4340 section 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DccpPacket {
    /// The port that it comes from.
    pub source: u16,
    /// The port that it goes to.
    pub destination: u16,
    /// CCVal, which the congestion control of its sender defines; four bits.
    pub ccval: u8,
    /// CsCov, the part of the data that the checksum covers: 0 for all, else the header and this
    /// less one words of four bytes; four bits.
    pub coverage: u8,
    /// Whether its numbers have 24 bits; only Data, Ack and DataAck may.
    pub is_short: bool,
    /// Its sequence number. A short header leaves the high bits zero.
    pub seq: DccpSeq,
    /// Its type, and the fields of that type.
    pub body: DccpBody,
    /// Its options, without padding.
    pub options: Vec<DccpOption>,
    /// Its application data.
    pub data: DccpData,
}

/// The type of a packet, with the fields of that type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DccpBody {
    /// A client asks for a connection to a service.
    Request {
        /// The service code.
        service: u32,
    },
    /// A server agrees.
    Response {
        /// The Request's number.
        ack: DccpSeq,
        /// The service code.
        service: u32,
    },
    /// Data.
    Data,
    /// An acknowledgement.
    Ack {
        /// The greatest number received.
        ack: DccpSeq,
    },
    /// Data with an acknowledgement.
    DataAck {
        /// The greatest number received.
        ack: DccpSeq,
    },
    /// A server asks the client to close.
    CloseReq {
        /// The greatest number received.
        ack: DccpSeq,
    },
    /// The sender closes.
    Close {
        /// The greatest number received.
        ack: DccpSeq,
    },
    /// The connection is over.
    Reset {
        /// The greatest number received; zero if there was none.
        ack: DccpSeq,
        /// The reason.
        code: ResetCode,
        /// Details of the reason.
        details: [u8; 3],
    },
    /// Asks for the peer's view of sequence numbers.
    Sync {
        /// The number of the packet that caused it.
        ack: DccpSeq,
    },
    /// Answers a Sync.
    SyncAck {
        /// The Sync's number.
        ack: DccpSeq,
    },
}

impl DccpBody {
    /// The number of its type on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Request { .. } => 0,
            Self::Response { .. } => 1,
            Self::Data => 2,
            Self::Ack { .. } => 3,
            Self::DataAck { .. } => 4,
            Self::CloseReq { .. } => 5,
            Self::Close { .. } => 6,
            Self::Reset { .. } => 7,
            Self::Sync { .. } => 8,
            Self::SyncAck { .. } => 9,
        }
    }

    /// Its acknowledgement number, if its type has one.
    pub const fn ack(self) -> Option<DccpSeq> {
        match self {
            Self::Request { .. } | Self::Data => None,
            Self::Response { ack, .. }
            | Self::Ack { ack }
            | Self::DataAck { ack }
            | Self::CloseReq { ack }
            | Self::Close { ack }
            | Self::Reset { ack, .. }
            | Self::Sync { ack }
            | Self::SyncAck { ack } => Some(ack),
        }
    }

    /// The same with another acknowledgement number, if its type has one.
    #[must_use]
    pub const fn with_ack(self, ack: DccpSeq) -> Self {
        match self {
            Self::Request { .. } | Self::Data => self,
            Self::Response { service, .. } => Self::Response { ack, service },
            Self::Ack { .. } => Self::Ack { ack },
            Self::DataAck { .. } => Self::DataAck { ack },
            Self::CloseReq { .. } => Self::CloseReq { ack },
            Self::Close { .. } => Self::Close { ack },
            Self::Reset { code, details, .. } => Self::Reset { ack, code, details },
            Self::Sync { .. } => Self::Sync { ack },
            Self::SyncAck { .. } => Self::SyncAck { ack },
        }
    }

    /// Whether packets of its type carry data for the application.
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Data | Self::DataAck { .. })
    }

    /// Whether its type may have short sequence numbers.
    pub const fn may_be_short(self) -> bool {
        matches!(self, Self::Data | Self::Ack { .. } | Self::DataAck { .. })
    }
}

/// The reason of a Reset (RFC 4340 section 5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetCode {
    /// None is given.
    Unspecified = 0,
    /// The answer to a Close.
    Closed = 1,
    /// An end gave up.
    Aborted = 2,
    /// There is no such connection.
    NoConnection = 3,
    /// A packet of a type that was not expected.
    PacketError = 4,
    /// An option that could not be read.
    OptionError = 5,
    /// A Mandatory option that could not be honoured.
    MandatoryError = 6,
    /// The server does not want the connection.
    ConnectionRefused = 7,
    /// No application has the service code.
    BadServiceCode = 8,
    /// The server has no room.
    TooBusy = 9,
    /// An Init Cookie that the server did not make.
    BadInitCookie = 10,
    /// The peer was found to misbehave.
    AggressionPenalty = 11,
}

impl ResetCode {
    const ALL: [Self; 12] = [
        Self::Unspecified,
        Self::Closed,
        Self::Aborted,
        Self::NoConnection,
        Self::PacketError,
        Self::OptionError,
        Self::MandatoryError,
        Self::ConnectionRefused,
        Self::BadServiceCode,
        Self::TooBusy,
        Self::BadInitCookie,
        Self::AggressionPenalty,
    ];

    /// The code with this number; a number without a meaning is [`ResetCode::Unspecified`].
    pub fn of(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unspecified)
    }
}

/// Application data: a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DccpData {
    /// Bytes.
    Bytes(Bytes),
    /// Bytes that are only counted, as simulations do. They are zeros on the wire.
    Counted {
        /// How many.
        len: u32,
        /// A mark by which the application recognises them. It is on no wire.
        mark: u64,
    },
}

impl DccpData {
    /// No data.
    pub const NONE: Self = Self::Bytes(Bytes::new());

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Counted { len, .. } => *len as usize,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl DccpPacket {
    /// The acknowledgement number, if the packet has one.
    pub const fn ack(&self) -> Option<DccpSeq> {
        self.body.ack()
    }

    /// Gives the numbers of a short header their high bits: those nearest to the numbers that are
    /// expected (RFC 4340 section 7.6).
    pub fn extend(&mut self, seq: DccpSeq, ack: DccpSeq) {
        if self.is_short {
            self.seq = self.seq.extended(seq);
            if let Some(own) = self.body.ack() {
                self.body = self.body.with_ack(own.extended(ack));
            }
        }
    }
}
