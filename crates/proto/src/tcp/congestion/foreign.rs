use core::fmt;
use std::sync::Arc;

use fontis_base::{Rate, Time};

use super::Ack;

/// An algorithm that whoever drives the connection brings; methods are those of
/// [`Congestion`](super::Congestion).
pub trait Algorithm: fmt::Debug + Send + Sync {
    /// An acknowledgement came.
    fn on_ack(&mut self, ack: &Ack);

    /// A loss or a mark was recognised, at most once a round trip.
    fn on_congestion(&mut self, now: Time, window: u64);

    /// The retransmission timer expired.
    fn on_timeout(&mut self, now: Time, window: u64);

    /// The sender was idle, and its window is to be no more than `restart` bytes.
    fn on_idle(&mut self, restart: u64);

    /// The congestion window in bytes.
    fn cwnd(&self) -> u64;

    /// The slow start threshold in bytes.
    fn ssthresh(&self) -> u64;

    /// The rate to pace at, if it has one.
    fn pacing_rate(&self) -> Option<Rate>;

    /// Another one in the same state.
    fn copy(&self) -> Box<dyn Algorithm>;
}

impl Clone for Box<dyn Algorithm> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

/// Makes an algorithm for each connection, from its segment size and its initial window in bytes.
#[derive(Clone)]
pub struct Maker(Arc<dyn Fn(u64, u64) -> Box<dyn Algorithm> + Send + Sync>);

impl Maker {
    /// One that calls this function.
    pub fn new(make: impl Fn(u64, u64) -> Box<dyn Algorithm> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn make(&self, mss: u64, initial_window: u64) -> Box<dyn Algorithm> {
        (self.0)(mss, initial_window)
    }
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maker")
    }
}

impl PartialEq for Maker {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
