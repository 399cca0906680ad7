use fontis_base::Duration;

use crate::congestion::maker::CongestionMaker;
use crate::congestion::table::CongestionKind;
use crate::rate::reorder::ReorderMode;
use crate::rate::tfrc::TfrcConfig;

/// The configuration of one end of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct DccpConfig {
    /// The congestion control of both directions. A peer that does not have it is refused.
    pub ccid: Ccid,
    /// The algorithm of CCID 2's window: Reno's unless it is a variant of FLD_TCP.
    pub window: CongestionKind,
    /// The constructor of an algorithm from outside, which takes the place of `window`.
    pub foreign: Option<CongestionMaker>,
    /// The rules of CCIDs 3 and 4.
    pub tfrc: TfrcConfig,
    /// Packets that may wait between the application and the network.
    pub queue: usize,
    /// The packet that a full queue drops.
    pub queue_drop: QueueDrop,
    /// The buffer that puts packets back into order below the receivers of CCIDs 3 and 4, and the
    /// delay that the application allows it.
    pub reorder: Option<(ReorderMode, Duration)>,
    /// The packets that this buffer holds; `None` for those that arrive in its delay.
    pub reorder_packets: Option<usize>,
    /// The service code, which a server demands and a client asks for.
    pub service: u32,
    /// The port of this end.
    pub port: u16,
    /// The port of the other end, for a client.
    pub peer_port: u16,
    /// Bytes of data in a usual packet, with which congestion control begins.
    pub packet_size: u32,
    /// The greatest packet of IP that is tried on the path; zero for no search and no limit. Over
    /// real sockets, zero stands for 1500.
    pub most_packet: u32,
    /// Bytes of a packet of IP before DCCP's header.
    pub headers_below: u32,
    /// The Sequence Window of the packets that this end sends (RFC 4340 section 7.5.2): several
    /// times the packets in a round trip, 32 at least.
    pub sequence_window: u64,
    /// Packets of CCID 2 that one acknowledgement covers.
    pub ack_ratio: u16,
    /// Whether packets may be marked in place of dropped.
    pub ecn: bool,
    /// Whether data packets tell the round-trip time (RFC 6323), which several reports in a round
    /// trip need.
    pub tells_rtt: bool,
    /// Whether a client may be sent short sequence numbers, and sends them.
    pub short_numbers: bool,
    /// How long a closed connection is remembered: two maximum segment lifetimes.
    pub time_wait: Duration,
    /// Whether a server asks its client to close, so that the client remembers.
    pub server_asks_to_close: bool,
}

/// A congestion control of DCCP, by its identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ccid {
    /// TCP-like: a window (RFC 4341).
    Two = 2,
    /// TFRC: a rate (RFC 4342).
    Three = 3,
    /// TFRC for small packets (RFC 5622).
    Four = 4,
}

impl Ccid {
    /// The congestion control with this identifier.
    pub const fn of(number: u64) -> Option<Self> {
        match number {
            2 => Some(Self::Two),
            3 => Some(Self::Three),
            4 => Some(Self::Four),
            _ => None,
        }
    }
}

/// The packet that a full queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueDrop {
    /// The one that comes.
    #[default]
    Newest,
    /// The one that has waited longest: late data are of less use.
    Oldest,
}

impl Default for DccpConfig {
    fn default() -> Self {
        Self {
            ccid: Ccid::Two,
            window: CongestionKind::NewReno,
            foreign: None,
            tfrc: TfrcConfig::default(),
            queue: 5,
            queue_drop: QueueDrop::Newest,
            reorder: None,
            reorder_packets: None,
            service: 0,
            port: 5004,
            peer_port: 5004,
            packet_size: 1400,
            most_packet: 0,
            headers_below: 28,
            sequence_window: 100,
            ack_ratio: 2,
            ecn: true,
            tells_rtt: true,
            short_numbers: false,
            time_wait: Duration::from_secs(240),
            server_asks_to_close: true,
        }
    }
}
