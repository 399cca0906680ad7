use fontis_base::{Duration, Time};

use super::feedback::FeedbackSummary;
use super::tfrc::equation::throughput;

/// Bytes of a packet of the flows that it is compared with (RFC 4828 section 3).
const PACKET: f64 = 1500.0;
/// So many times what TCP would have at the same loss is not too much for a flow that does not ask
/// for more when less is lost. RFC 8083 section 4.3 stops calls at ten times.
const TIMES: f64 = 5.0;
/// Bits a second that are little.
const LITTLE: f64 = 1e6;
/// Packets after which half of what was lost has been forgotten.
const MEMORY: f64 = 200.0;
/// The least bytes of a packet.
const LEAST: f64 = 64.0;
/// What an application asked for counts for so long, and so many round trips.
const ASKED: (Duration, u64) = (Duration::from_secs(10), 20);
/// More than was asked for, so that the next message is not bounded either.
const SLACK: f64 = 1.25;

/// What a flow may have whatever was lost: what its application asks for, as far as that is little,
/// or no more than TCP would have.
///
/// A call sends at the rate of its codec. Nothing that it does takes more of a path, so that losses
/// of the path itself need not slow it down; overload does, as the bound falls with the loss. It
/// sends too little to prove that its losses are the path's own: a video of several Mbit/s has what
/// TCP has, which is no more than a fair share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Modest {
    packets: f64,
    lost: f64,
    /// Bytes of those that came, and how many bytes had come in all.
    bytes: f64,
    received: u64,
    /// Bytes in flight while nothing waited to be sent, the most of late, and when.
    asked: Option<(f64, Time)>,
}

impl Modest {
    pub(super) fn on_feedback(&mut self, sample: &FeedbackSummary) {
        let total = sample.decided.len() as f64;
        let lost = sample.decided.iter().filter(|(_, received)| !received).count() as f64;
        let keep = libm::exp2(-total / MEMORY);
        (self.packets, self.lost) = (self.packets * keep + total, self.lost * keep + lost);
        let came = sample.received_bytes.saturating_sub(self.received);
        (self.bytes, self.received) = (self.bytes * keep + came as f64, sample.received_bytes);
        let lasts = sample.at_least(ASKED);
        self.asked = self.asked.filter(|(_, at)| sample.now.since(*at) < lasts);
        if sample.limited {
            let bytes = sample.in_flight as f64;
            if self.asked.is_none_or(|(most, _)| bytes >= most) {
                self.asked = Some((bytes, sample.now));
            } else if let Some((_, at)) = &mut self.asked {
                // It still leaves room.
                *at = sample.now;
            }
        }
    }

    /// Packets of late, and how many of them were lost.
    pub(super) const fn losses(&self) -> (f64, f64) {
        (self.packets, self.lost)
    }

    /// The mean bytes of a packet.
    pub(super) fn packet(&self) -> f64 {
        let came = self.packets - self.lost;
        if came < 1.0 { PACKET } else { (self.bytes / came).clamp(LEAST, PACKET) }
    }

    /// Bytes in flight that losses do not forbid, over a round trip of `rtt`.
    pub(super) fn bytes(&self, rtt: Duration) -> f64 {
        let Some((asked, _)) = self.asked else { return 0.0 };
        let loss = self.lost / self.packets.max(1.0);
        let rtt = rtt.as_secs_f64().max(1e-3);
        let fair = throughput(PACKET, rtt, 4.0 * rtt, loss);
        (asked * SLACK).min(fair.max((TIMES * fair).min(LITTLE / 8.0)) * rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may be in flight after so many feedbacks of ten packets, of which so many were lost.
    fn after(feedbacks: u64, lost: u64, in_flight: u64, limited: bool) -> f64 {
        let mut modest = Modest::default();
        for feedback in 0..feedbacks {
            let decided = (0..10).rev().map(|n| (feedback * 10 + n, n >= lost)).collect();
            let received_bytes = (feedback + 1) * (10 - lost) * 200;
            let now = feedback * 25;
            modest.on_feedback(&FeedbackSummary {
                decided,
                received_bytes,
                in_flight,
                limited,
                ..FeedbackSummary::example(now)
            });
        }
        assert!((modest.packet() - 200.0).abs() < 1.0);
        modest.bytes(Duration::from_millis(50))
    }

    #[test]
    fn it_is_what_is_asked_for_as_far_as_that_is_little() {
        assert_eq!(after(100, 0, 1000, true), 1250.0);
        assert_eq!(after(100, 0, 1_000_000, true), 1_250_000.0);
        assert_eq!(after(100, 0, 1000, false), 0.0, "more is asked for");
    }

    #[test]
    fn beyond_what_is_little_it_is_what_tcp_would_have() {
        assert_eq!(after(200, 1, 1_000_000, true), 6250.0, "TCP has less than 1 Mbit/s");
        // TCP has more than 1 Mbit/s where one in a thousand is lost.
        let mut modest = Modest { packets: 1000.0, lost: 1.0, ..Modest::default() };
        modest.asked = Some((1e9, Time::ZERO));
        let bytes = modest.bytes(Duration::from_millis(50));
        assert!((bytes / (throughput(1500.0, 0.05, 0.2, 1e-3) * 0.05) - 1.0).abs() < 0.01);
        assert!(bytes > 6250.0 * 5.0, "{bytes}");
    }

    #[test]
    fn it_falls_with_the_loss() {
        let at = |lost| after(200, lost, 1_000_000, true);
        // RFC 5348 section 3.1 with a timeout of four round trips, five times.
        assert!((at(2) / (5.0 * 1500.0 / 1.864) - 1.0).abs() < 0.01, "{}", at(2));
        assert!(at(4) < 700.0, "{}", at(4));
    }
}
