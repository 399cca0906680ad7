use core::net::IpAddr;

use fontis_base::{Duration, Time};
use thiserror::Error;

use super::chunk::{AddressChange, SctpCause};
use super::data::SctpData;
use super::packet::SctpPacket;

/// A message that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SctpMessage {
    /// Its stream.
    pub stream: u16,
    /// What the peer's upper layer says of it.
    pub protocol: u32,
    /// Whether it was sent without order.
    pub is_unordered: bool,
    /// Its content.
    pub data: SctpData,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SctpSend {
    /// Its stream.
    pub stream: u16,
    /// What the peer's upper layer is told of it.
    pub protocol: u32,
    /// Whether it may overtake others of its stream.
    pub is_unordered: bool,
    /// How long it is tried.
    pub reliability: Reliability,
}

/// How long a message is tried (RFC 3758, RFC 7496).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reliability {
    /// Until it has arrived.
    #[default]
    Full,
    /// For so long.
    Lifetime(Duration),
    /// Until it was sent again so often.
    Repeats(u32),
}

/// The reason why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SctpSendError {
    /// The association is closing or over.
    #[error("the association is closing: no message can be sent")]
    Closing,
    /// It has no bytes.
    #[error("a message of SCTP has at least one byte")]
    Empty,
    /// The stream does not exist.
    #[error("stream {stream} does not exist: the peer takes {streams}, from 0")]
    NoStream {
        /// The stream.
        stream: u16,
        /// How many there are.
        streams: u16,
    },
    /// It is being reset.
    #[error("stream {stream} is being reset: wait until that is done")]
    Resetting {
        /// The stream.
        stream: u16,
    },
    /// The peer cannot reset streams.
    #[error("the peer cannot reset streams")]
    NoResets,
    /// The buffer is full.
    #[error("the send buffer of {buffer} bytes has no room for {len} bytes: wait until it has")]
    NoRoom {
        /// The message.
        len: usize,
        /// The buffer.
        buffer: u32,
    },
}

/// The reason why addresses are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SctpAddressError {
    /// There is no association, or not any more.
    #[error("the association is not up: its addresses cannot change")]
    Closing,
    /// One of the ends does not permit it.
    #[error("one of the ends permits no change of addresses")]
    NotAgreed,
    /// It is no address of one host, or of a family that the peer has not.
    #[error("{address} cannot be an address of this association")]
    Unusable {
        /// The address.
        address: IpAddr,
    },
    /// It is not an address of this end.
    #[error("{address} is no address of this end")]
    Unknown {
        /// The address.
        address: IpAddr,
    },
    /// It would be gone, and no other is left.
    #[error("{address} is the last address of this end: add another one first")]
    Last {
        /// The address.
        address: IpAddr,
    },
    /// An end that names no address can remove one only if one is left then.
    #[error("an address that is not named can only be removed if one other is left")]
    Unnamed,
    /// There are as many as may be.
    #[error("an association has {most} addresses of an end, and requests that wait, at most")]
    TooMany {
        /// How many.
        most: usize,
    },
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SctpEvent {
    /// Messages can be sent.
    Connected,
    /// The peer has lost its state and has begun anew; what was on its way is lost.
    Restarted,
    /// The peer sends no more.
    PeerFinished,
    /// The association is over, as one of the ends wanted.
    Closed,
    /// The association was broken off.
    Aborted(AbortReason),
    /// A path answers.
    PathUp(u8),
    /// A path does not answer any more.
    PathDown(u8),
    /// The peer has reset a stream: its messages to come are numbered anew.
    PeerReset(u16),
    /// A stream of this end was reset, as asked.
    Reset(u16),
    /// The peer refuses to have a stream of this end reset.
    ResetRefused(u16),
    /// The peer's addresses have changed (RFC 5061).
    PeerAddress(AddressChange),
    /// The peer has done what this end asked for.
    AddressChanged(AddressChange),
    /// The peer refuses that, with the code of a cause; with that of unknown chunks if it does not
    /// know such requests.
    AddressRefused(AddressChange, u16),
}

/// Why an association was broken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbortReason {
    /// The peer did, for these reasons.
    Peer(Vec<SctpCause>),
    /// The application did.
    Application,
    /// The peer did not answer.
    Silence,
    /// What the peer sent was against the protocol, or more than it may.
    Violation(&'static str),
}

/// A packet to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SctpTransmit {
    /// The number of the path.
    pub path: u8,
    /// The address that it leaves from.
    pub local: IpAddr,
    /// The address that it is for.
    pub peer: IpAddr,
    /// Whether it may be marked.
    pub ecn: bool,
    /// Whether data in it have been sent before.
    pub is_repeat: bool,
    /// Whether it probes for the largest packet of its path, so that what is sent with it must not
    /// be lost with it.
    pub is_probe: bool,
    /// Whether it is larger than its path carries, as a chunk is that was made when the path, or
    /// another, carried more: the network may cut it.
    pub may_fragment: bool,
    /// The packet.
    pub packet: SctpPacket,
}

/// Counters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SctpStats {
    /// Packets sent.
    pub sent: u64,
    /// DATA chunks sent.
    pub chunks_sent: u64,
    /// DATA chunks among them that had been sent before.
    pub repeated: u64,
    /// Sent again because of reports.
    pub fast_repeated: u64,
    /// Probes of the tail (RFC 8985).
    pub probes: u64,
    /// Timeouts of paths.
    pub timeouts: u64,
    /// DATA chunks counted as lost.
    pub lost: u64,
    /// Messages given up.
    pub abandoned: u64,
    /// Repairs sent, and received.
    pub repairs_sent: u64,
    /// Repairs received.
    pub repairs_received: u64,
    /// DATA chunks that repairs restored.
    pub restored: u64,
    /// Losses that the peer has repaired and that told of congestion.
    pub repaired_congestion: u64,
    /// Packets received.
    pub received: u64,
    /// DATA chunks received, without those that came twice.
    pub chunks_received: u64,
    /// DATA chunks that came twice.
    pub duplicates: u64,
    /// DATA chunks dropped because there was no room.
    pub dropped: u64,
    /// Bytes of messages that have arrived whole and in their order.
    pub bytes_received: u64,
    /// Messages received.
    pub messages_received: u64,
    /// SACKs sent.
    pub acks_sent: u64,
    /// SACKs received that a later one had overtaken.
    pub old_acks: u64,
    /// Bytes that wait at the receiver: for others before them, or for the application.
    pub held: u64,
    /// The most bytes that waited.
    pub held_peak: u64,
    /// The mean of the bytes that waited, over the time of the association.
    pub held_mean: u64,
    /// Chunks that came before others with lower TSNs.
    pub out_of_order: u64,
    /// How long they waited for those, in all, and the longest of them.
    pub waited: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// The time for which the peer's window, and nothing else, kept this end from sending.
    pub blocked: Duration,
}

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpPath {
    /// Its own address and the peer's.
    pub ends: [IpAddr; 2],
    /// Whether it answers.
    pub state: SctpPathState,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The least round-trip time.
    pub min_rtt: Option<Duration>,
    /// The timeout.
    pub rto: Duration,
    /// The delay to the peer by the two ends' clocks, if packets bear stamps; in nanoseconds.
    pub forward_delay: Option<i64>,
    /// The congestion window in bytes.
    pub window: u64,
    /// The slow start threshold in bytes.
    pub threshold: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes of data sent on it.
    pub sent: u64,
    /// When its timer expires.
    pub expires: Option<Time>,
    /// Bytes of a packet that it is known to carry.
    pub mtu: u32,
}

/// Whether a path answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SctpPathState {
    /// Nothing proves that the peer is there: it carries no data.
    Unconfirmed,
    /// It answers.
    Active,
    /// It missed answers: it carries data only if no other does (RFC 7829).
    PotentiallyFailed,
    /// It does not answer.
    Inactive,
    /// One of its addresses is gone: it carries nothing, and another may take its number.
    Removed,
}
