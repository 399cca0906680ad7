use fontis_base::{Duration, Rate};

/// What a connection has counted, and how its paths look now: rates, packets and bytes are those of
/// all together, times those of the shortest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DfcpStats {
    /// Paths that may carry data.
    pub paths: u32,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The least round-trip time.
    pub min_rtt: Duration,
    /// The pacing rate, in bytes at the IP layer.
    pub rate: Rate,
    /// The measured share of packets lost on the way to the peer.
    pub loss: f64,
    /// The share of the peer's packets so far that have not come.
    pub incoming_loss: f64,
    /// Bytes sent and not yet reported on.
    pub in_flight: u64,
    /// Bytes at the IP layer that a full data packet has now.
    pub packet_size: u32,
    /// Packets sent, of every kind.
    pub packets_sent: u64,
    /// Bytes sent at the IP layer.
    pub bytes_sent: u64,
    /// Packets sent that carried symbols.
    pub data_packets_sent: u64,
    /// Symbols sent.
    pub symbols_sent: u64,
    /// Symbols sent beyond the source symbols.
    pub repair_symbols_sent: u64,
    /// Packets reported lost.
    pub packets_lost: u64,
    /// Packets received, replays left out.
    pub packets_received: u64,
    /// Bytes received at the IP layer.
    pub bytes_received: u64,
    /// Packets received that carried symbols.
    pub data_packets_received: u64,
    /// Source symbols of the blocks that were begun, sending, and of those that were complete,
    /// receiving: without loss no more are sent.
    pub symbols_needed: u64,
    /// Symbols received.
    pub symbols_received: u64,
    /// Symbols received that were of no use.
    pub symbols_wasted: u64,
    /// Packets dropped because they came twice.
    pub duplicates: u64,
    /// Packets dropped because they broke the protocol.
    pub violations: u64,
    /// Channels of the peer that were refused for want of memory, or because nobody asked for them.
    pub refused: u64,
    /// Blocks that had to be decoded because a source symbol was missing.
    pub blocks_decoded: u64,
    /// Decodings that lacked rank.
    pub decode_failures: u64,
}

/// How one of the paths of a connection looks now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStats {
    /// Its number.
    pub path: u8,
    /// Whether the peer answers on it.
    pub answers: bool,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The least round-trip time.
    pub min_rtt: Duration,
    /// The pacing rate, in bytes at the IP layer.
    pub rate: Rate,
    /// The measured share of packets lost on the way to the peer.
    pub loss: f64,
    /// Bytes sent and not yet reported on.
    pub in_flight: u64,
    /// Bytes sent at the IP layer.
    pub bytes_sent: u64,
    /// Bytes received at the IP layer.
    pub bytes_received: u64,
}

impl DfcpStats {
    /// The share of packets lost in the direction that most data went.
    pub const fn data_loss(&self) -> f64 {
        if self.data_packets_received > self.data_packets_sent {
            self.incoming_loss
        } else {
            self.loss
        }
    }
}
