use fontis_base::{Duration, Rate, Time};

/// The content of an acknowledgement, as an algorithm needs it: bytes that arrived and that were
/// lost, round-trip times, marks, and what is outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement {
    /// When it came.
    pub now: Time,
    /// Bytes that let a window grow: newly delivered, if the acknowledgement completes what was
    /// sent first.
    pub acked: u64,
    /// Bytes that it shows to have arrived and that no earlier acknowledgement did.
    pub delivered: u64,
    /// Bytes that were recognised as lost with it.
    pub lost: u64,
    /// The round-trip time of the newest packet that it acknowledges, unless that was sent more
    /// than once.
    pub rtt: Option<Duration>,
    /// The least round-trip time seen.
    pub min_rtt: Duration,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// Whether it reports a congestion mark.
    pub marked: bool,
    /// Bytes in flight after it: sent, not delivered, not believed lost.
    pub in_flight: u64,
    /// Whether the window kept the sender from sending more; else the application did.
    pub cwnd_limited: bool,
    /// All that was sent before this position is acknowledged. Positions grow with what is sent, in
    /// a unit of the transport's choice: bytes or packets. They only mark the ends of round trips.
    pub acked_to: u64,
    /// The position of what is sent next.
    pub sent_to: u64,
    /// The state of the path as the sender sees it.
    pub phase: Phase,
    /// Where a transport has streams, what was sent of the shortest of those that have something
    /// to send, in bytes since it was last at rest; the last one's if nothing waits. For an
    /// algorithm that [wants](super::CongestionControl::wants_streams) it.
    pub shortest_stream: Option<u64>,
    /// A sample of the rate of delivery, for an algorithm that
    /// [wants](super::CongestionControl::wants_delivery) it.
    pub delivery: Option<DeliverySample>,
}

/// The state of a path as its sender sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is missing.
    #[default]
    Open,
    /// Losses are being repaired (RFC 6675 section 5); windows that follow losses do not grow.
    Recovery,
    /// The timer expired, and not all that was outstanding then is acknowledged.
    Loss,
}

/// A sample of the rate of delivery (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct DeliverySample {
    /// The rate, unless it was measured over too short a time to say anything.
    pub rate: Option<Rate>,
    /// Bytes delivered in the connection when the acknowledged packet was sent.
    pub prior_delivered: u64,
    /// Bytes delivered in the connection by now.
    pub delivered: u64,
    /// Whether the sender had too little to send when the packet left.
    pub app_limited: bool,
}
