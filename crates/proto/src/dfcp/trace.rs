use fontis_base::{Duration, Rate, Time};

use super::packet::Frames;
use crate::rate::state::RateState;

/// Something that happened in a connection, for qlog and for people.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// When.
    pub time: Time,
    /// The path that it happened on.
    pub path: u8,
    /// What.
    pub what: Traced,
}

/// The kinds of trace event.
#[derive(Clone, Debug, PartialEq)]
pub enum Traced {
    /// A packet was sent.
    Sent {
        /// Its number; none for handshake packets.
        number: Option<u64>,
        /// Bytes at the IP layer.
        size: u32,
        /// Its frames, without the symbols' bytes.
        frames: Frames,
    },
    /// A packet was received.
    Received {
        /// Its number; none for handshake packets.
        number: Option<u64>,
        /// Bytes at the IP layer.
        size: u32,
        /// Its frames, without the symbols' bytes.
        frames: Frames,
    },
    /// A packet was taken for lost.
    Lost {
        /// Its number.
        number: u64,
    },
    /// Feedback changed what is known of the path.
    Metrics {
        /// The smoothed round-trip time.
        srtt: Duration,
        /// The pacing rate.
        rate: Rate,
        /// Bytes in flight.
        in_flight: u64,
        /// The measured share of packets lost.
        loss: f64,
        /// What the rate controller does.
        state: RateState,
    },
}
