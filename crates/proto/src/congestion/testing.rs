//! Acknowledgements for the tests of algorithms.

use fontis_base::{Duration, Time};

use super::control::CongestionControl;
use super::sample::{Acknowledgement, Phase};

pub(crate) const MSS: u64 = 1000;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An acknowledgement of `segments` segments at `millis` by a sender that used its whole window.
pub(crate) fn ack(millis: u64, segments: u64, rtt: u64) -> Acknowledgement {
    Acknowledgement {
        now: Time::ZERO + ms(millis),
        acked: segments * MSS,
        delivered: segments * MSS,
        lost: 0,
        rtt: Some(ms(rtt)),
        min_rtt: ms(rtt),
        srtt: ms(rtt),
        marked: false,
        in_flight: 0,
        cwnd_limited: true,
        acked_to: 0,
        sent_to: 0,
        phase: Phase::Open,
        shortest_stream: None,
        delivery: None,
    }
}

/// Acknowledges a window, segment by segment, and moves on by a round trip.
pub(crate) fn round(congestion: &mut dyn CongestionControl, millis: &mut u64, rtt: u64) {
    let segments = congestion.cwnd() / MSS;
    for n in 0..segments {
        let at = *millis + rtt * n / segments;
        congestion.on_ack(&ack(at, 1, rtt));
    }
    *millis += rtt;
}
