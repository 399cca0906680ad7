use fontis_base::{Duration, Rate};

use crate::rate::state::RateState;

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
    /// What the rate controller does.
    pub state: RateState,
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
    /// Ordered messages dropped because they came after their turn.
    pub messages_late: u64,
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
    /// Whether it carries data only while no other answers.
    pub spare: bool,
    /// What its rate controller does.
    pub state: RateState,
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
    /// The lowest number of the paths that wait in the same queue as this one, for what this side
    /// sends: its own if there is no other.
    pub shares_with: u8,
}

impl DfcpStats {
    /// These and the counters of another connection together; of the estimates, those of the
    /// shorter path.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let is_shorter = self.srtt > Duration::ZERO && self.srtt <= other.srtt;
        let nearer = if is_shorter || other.srtt == Duration::ZERO { &self } else { other };
        Self {
            paths: self.paths + other.paths,
            rate: self.rate.saturating_add(other.rate),
            in_flight: self.in_flight + other.in_flight,
            packets_sent: self.packets_sent + other.packets_sent,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            data_packets_sent: self.data_packets_sent + other.data_packets_sent,
            symbols_sent: self.symbols_sent + other.symbols_sent,
            repair_symbols_sent: self.repair_symbols_sent + other.repair_symbols_sent,
            packets_lost: self.packets_lost + other.packets_lost,
            packets_received: self.packets_received + other.packets_received,
            bytes_received: self.bytes_received + other.bytes_received,
            data_packets_received: self.data_packets_received + other.data_packets_received,
            symbols_needed: self.symbols_needed + other.symbols_needed,
            symbols_received: self.symbols_received + other.symbols_received,
            symbols_wasted: self.symbols_wasted + other.symbols_wasted,
            messages_late: self.messages_late + other.messages_late,
            duplicates: self.duplicates + other.duplicates,
            violations: self.violations + other.violations,
            refused: self.refused + other.refused,
            blocks_decoded: self.blocks_decoded + other.blocks_decoded,
            decode_failures: self.decode_failures + other.decode_failures,
            ..*nearer
        }
    }

    /// The share of packets lost in the direction that most data went.
    pub const fn data_loss(&self) -> f64 {
        if self.data_packets_received > self.data_packets_sent {
            self.incoming_loss
        } else {
            self.loss
        }
    }
}
