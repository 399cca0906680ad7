use fontis_base::{Duration, Rate, Time};

/// The content of one feedback about a path, as a rate controller needs it.
#[derive(Clone, Debug)]
pub struct FeedbackSummary {
    /// When the feedback came.
    pub now: Time,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// The round-trip time without queues: the least seen, and the path's jitter.
    pub min_rtt: Duration,
    /// By how much the path holds back some packets longer than others, other than by a queue.
    pub jitter: Duration,
    /// The one-way delays of packets that the feedback reports, in nanoseconds, in order of their
    /// numbers; the two clocks differ by an unknown constant. Empty if it reports no new packet.
    pub one_way_ns: Vec<(u64, i64)>,
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

impl FeedbackSummary {
    /// A time that lasts so long, and so many round trips without queues, at least.
    pub(super) fn at_least(&self, (time, rounds): (Duration, u64)) -> Duration {
        time.max(self.min_rtt * rounds)
    }
}

/// How often feedback is sent while data arrives: often enough to steer by, seldom enough to cost
/// nothing.
pub fn feedback_interval(srtt: Duration) -> Duration {
    (srtt / 8).max(Duration::from_millis(1)).min(Duration::from_millis(25))
}

#[cfg(test)]
impl FeedbackSummary {
    /// A feedback of nothing, at a time in milliseconds, over a round trip of 50 ms.
    pub(super) fn example(now_ms: u64) -> Self {
        let rtt = Duration::from_millis(50);
        Self {
            now: Time::ZERO + Duration::from_millis(now_ms),
            srtt: rtt,
            min_rtt: rtt,
            jitter: Duration::ZERO,
            one_way_ns: Vec::new(),
            received_at: Time::ZERO,
            received_bytes: 0,
            largest: 0,
            next_number: 1,
            decided: Vec::new(),
            mean_burst: 1.0,
            train: None,
            limited: false,
            late: false,
            in_flight: 0,
            marked: 0,
        }
    }
}
