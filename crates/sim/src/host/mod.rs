//! Endpoints: a transport's state machine with an application above it.
//!
//! Start here: a [`Host`] is a node that packets begin and end at, and that answers an experiment's
//! questions. [`table`] lists the transports; each has a file here that constructs its hosts.

pub mod cast;
pub mod common;
pub mod controller;
pub mod datagram;
pub mod dccp;
pub mod dfcp;
mod fragments;
pub mod identity;
mod mean;
pub mod object;
pub mod payload;
pub mod published;
mod readings;
pub mod rows;
pub mod sctp;
pub mod shared;
pub mod table;
pub mod tcp;
pub mod way;

use core::any::Any;

use fontis_base::{Duration, Node, Time};
use fontis_proto::qlog::QlogEvent;

use crate::host::payload::Payload;

/// One end of a flow, or several ends on one machine.
pub trait Host: Node<Payload> + Any + Send {
    /// The counters of its connection; the last ones if the connection is gone.
    fn counters(&self) -> Counters;

    /// The times at which its connection reached its milestones.
    fn milestones(&self) -> Milestones;

    /// Whether its connection has come and gone, or has all that it waited for.
    fn is_done(&self) -> bool {
        let Milestones { completed, aborted, .. } = self.milestones();
        completed.is_some() || aborted
    }

    /// What its transport alone counts, by the names of the summary's metrics.
    fn metrics(&self, _now: Time) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The path's state as the transport believes it, for a qlog.
    fn path_metrics(&self) -> Option<PathMetrics> {
        None
    }

    /// Collects the transport's own qlog events from now on. Called before the connection begins.
    fn keep_events(&mut self) {}

    /// The transport's own qlog events since the last call.
    fn take_events(&mut self) -> Vec<(Time, QlogEvent)> {
        Vec::new()
    }

    /// Itself, for callers that look for a certain type.
    fn as_any(&self) -> &dyn Any;

    /// The same, to be changed.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// The counters of one end of a flow. Of a flow's sender the first six are read, of its receiver
/// the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub sent: u64,
    /// Copies or repair symbols among them.
    pub retransmitted: u64,
    /// Packets believed or reported lost.
    pub lost: u64,
    /// The congestion window in bytes; zero for transports without one.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Useful bytes that reached the application.
    pub received: u64,
    /// Symbols received in vain.
    pub wasted: u64,
    /// Symbols received.
    pub symbols: u64,
}

impl Counters {
    /// The counters of a flow: of its sender the sending half, of its receiver the other.
    pub const fn of_flow(sender: Self, receiver: Self) -> Self {
        let Self { received, wasted, symbols, .. } = receiver;
        Self { received, wasted, symbols, ..sender }
    }
}

/// The times at which a connection reached its milestones, as one end saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Milestones {
    /// The first packet was sent.
    pub first_sent: Option<Time>,
    /// Data could be exchanged.
    pub connected: Option<Time>,
    /// The first packet with data arrived.
    pub first_data: Option<Time>,
    /// The last packet with data arrived so far; copies of what is there do not count for TCP.
    pub last_data: Option<Time>,
    /// All data of the peer had arrived.
    pub completed: Option<Time>,
    /// The connection was over.
    pub closed: Option<Time>,
    /// It ended because the peer did not answer or broke it off.
    pub aborted: bool,
}

impl Milestones {
    /// The milestones of a flow, from those of its two ends.
    pub fn of_flow(sender: Self, receiver: Self) -> Self {
        Self {
            first_sent: [sender.first_sent, receiver.first_sent].into_iter().flatten().min(),
            connected: sender.connected.or(receiver.connected),
            first_data: receiver.first_data,
            last_data: receiver.last_data,
            completed: receiver.completed.or(receiver.closed),
            closed: receiver.closed,
            aborted: sender.aborted || receiver.aborted,
        }
    }
}

/// A path's state as a transport believes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathMetrics {
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The least round-trip time.
    pub min_rtt: Option<Duration>,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The slow start threshold in bytes, once there is one.
    pub threshold: Option<u64>,
}
