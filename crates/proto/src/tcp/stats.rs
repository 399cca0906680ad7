use fontis_base::Duration;

use super::scoreboard::Losses;

/// What the sending half of an endpoint has counted, and where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// The slow start threshold in bytes; [`u64::MAX`] before the first loss.
    pub ssthresh: u64,
    /// Bytes believed to be in the network.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The least round-trip time.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Bytes that are known to have been delivered.
    pub delivered: u64,
    /// Segments sent with data or a FIN, copies included.
    pub segments: u64,
    /// Of these, copies.
    pub retransmitted: u64,
    /// Bytes that were believed lost, those of lost copies included.
    pub lost: u64,
    /// Segments in which they were.
    pub lost_segments: u64,
    /// How often the timer expired.
    pub timeouts: u64,
    /// Recoveries without a timeout.
    pub recoveries: u64,
    /// Window reductions because of marks.
    pub ecn_reductions: u64,
    /// Tail loss probes.
    pub probes: u64,
}

/// What the receiving half of an endpoint has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Bytes of the stream that arrived in order, once each.
    pub received: u64,
    /// Segments with data or a FIN that arrived.
    pub segments: u64,
    /// Of these, ones that held nothing new.
    pub duplicates: u64,
    /// Of these, ones that left a hole below them.
    pub out_of_order: u64,
    /// Acknowledgements sent without data.
    pub acks: u64,
    /// Packets that came marked with congestion experienced.
    pub marked: u64,
}

/// What is counted for [`SenderStats`] of losses and marks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) retransmitted: u64,
    pub(super) lost: u64,
    pub(super) lost_segments: u64,
    pub(super) timeouts: u64,
    pub(super) recoveries: u64,
    pub(super) ecn_reductions: u64,
    pub(super) probes: u64,
}

impl Counters {
    pub(super) fn count(&mut self, lost: Losses) {
        self.lost += lost.bytes;
        self.lost_segments += lost.segments;
    }
}
