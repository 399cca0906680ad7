use fontis_base::{Duration, Rate, Time};

use crate::dccp::number::DccpSeq;
use crate::dccp::option::DccpOption;

/// The state of a sender, for its application and for recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DccpPath {
    /// The rate that congestion control allows.
    pub rate: Rate,
    /// The mean round-trip time.
    pub rtt: Option<Duration>,
    /// The loss event rate; of CCID 2, zero.
    pub loss_event_rate: f64,
    /// Packets known to be lost or marked.
    pub lost: u64,
    /// The congestion window in packets; of a rate, zero.
    pub window: u64,
    /// Packets in flight; of a rate, zero.
    pub in_flight: u64,
    /// Expiries of the timer without feedback.
    pub timeouts: u64,
}

/// A packet that has arrived, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    /// When it arrived; what is handed on later was in a buffer.
    pub(crate) arrived: Time,
    pub(crate) seq: DccpSeq,
    pub(crate) ccval: u8,
    /// Bytes of data; `None` for a packet that carries none by its type.
    pub(crate) data: Option<u32>,
    pub(crate) is_marked: bool,
    pub(crate) options: &'a [DccpOption],
}
