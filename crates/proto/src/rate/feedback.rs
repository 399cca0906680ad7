use fontis_base::{Duration, Rate, Time};

/// The content of one feedback about a path, as a rate controller needs it.
#[derive(Clone, Debug)]
pub struct FeedbackSummary {
    /// When the feedback came.
    pub now: Time,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The least round-trip time seen.
    pub min_rtt: Duration,
    /// The least one-way delay among the packets that the feedback reports, in nanoseconds; the two
    /// clocks differ by an unknown constant. `None` if it reports no new packet's time.
    pub one_way_ns: Option<i64>,
    /// When the highest packet came, on the receiver's clock.
    pub received_at: Time,
    /// Bytes received on the path since the beginning.
    pub received_bytes: u64,
    /// The highest packet number that the feedback covers.
    pub largest: u64,
    /// The next packet number to be sent.
    pub next_number: u64,
    /// Packets decided now: first number, whether received. From the highest down.
    pub decided: Vec<(u64, bool)>,
    /// The mean length of loss runs on the path.
    pub mean_burst: f64,
    /// The bottleneck's rate from the dispersion of a packet train, if one was completed.
    pub train: Option<Rate>,
    /// Whether the sender had nothing to send, or was not allowed to, since the last feedback.
    pub limited: bool,
    /// Whether the sender's host was late with what it had, so that less was sent than allowed for
    /// a moment.
    pub late: bool,
    /// Bytes sent that nothing is known of yet.
    pub in_flight: u64,
    /// Packets newly reported as marked congestion experienced.
    pub marked: u64,
}

/// How often feedback is sent while data arrives: often enough to steer by, seldom enough to cost
/// nothing.
pub fn feedback_interval(srtt: Duration) -> Duration {
    (srtt / 8).max(Duration::from_millis(1)).min(Duration::from_millis(25))
}
