use core::fmt;

use fontis_base::{Duration, Rate, Time};

use super::sample::Acknowledgement;

/// A congestion control algorithm at work. The transport tells it what happens; it answers a
/// window and, if it has one, a pacing rate.
pub trait CongestionControl: fmt::Debug + Send + Sync {
    /// Takes the beginning of a connection whose handshake measured a round-trip time: how many
    /// bytes the receiver permits and the application has, before the first of them leaves. Only
    /// TCP tells it.
    fn on_begin(&mut self, _rtt: Duration, _permitted: u64) {}

    /// Takes an acknowledgement.
    fn on_ack(&mut self, ack: &Acknowledgement);

    /// Takes a loss; a transport reports at most one in a round trip. `window` is the congestion
    /// window, or the bytes outstanding if they are fewer.
    fn on_congestion(&mut self, now: Time, window: u64);

    /// Takes packets newly believed lost, after the loss that began their recovery. Of a timeout
    /// only [`on_timeout`](Self::on_timeout) tells.
    fn on_lost(&mut self, _now: Time, _packets: u64) {}

    /// Takes a congestion mark; a transport reports at most one in a round trip. Most algorithms
    /// answer as to a loss.
    fn on_mark(&mut self, now: Time, window: u64) {
        self.on_congestion(now, window);
    }

    /// Takes a timeout: all that is outstanding counts as lost.
    fn on_timeout(&mut self, now: Time, window: u64);

    /// Takes a pause of the sender after which the window must be no more than `restart` bytes.
    fn on_idle(&mut self, restart: u64);

    /// Takes the window's part of those of all paths of a connection that share a bottleneck, in
    /// (0, 1]: it then grows so slowly that all of them together take one flow's share. Most
    /// algorithms grow as they are.
    fn set_part(&mut self, _part: f64) {}

    /// By how many times faster than a flow of its own it grows in congestion avoidance, if it is
    /// [coupled](super::Coupling) with other paths; less than none shrinks. Most algorithms grow as
    /// they are.
    fn set_growth(&mut self, _growth: f64) {}

    /// The congestion window in bytes.
    fn cwnd(&self) -> u64;

    /// The slow start threshold in bytes.
    fn ssthresh(&self) -> u64;

    /// Whether the transport must measure the rate of delivery ([`Acknowledgement::delivery`]).
    fn wants_delivery(&self) -> bool {
        false
    }

    /// Whether the transport must tell the length of its shortest stream
    /// ([`Acknowledgement::shortest_stream`]); asked once.
    fn wants_streams(&self) -> bool {
        false
    }

    /// Whether it may have a pacing rate of its own; asked once, so that a transport need not ask
    /// most algorithms with every packet.
    fn paces(&self) -> bool {
        false
    }

    /// The rate to pace at; `None` leaves pacing to the transport.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Packets that leave again although nothing says that they are lost, those sent last first;
    /// asked after each acknowledgement of an algorithm that [paces](Self::paces). Only TCP asks.
    fn take_copies(&mut self) -> u64 {
        0
    }

    /// Bytes that may leave back to back where packets are paced; zero is one packet at a time.
    fn send_quantum(&self) -> u64 {
        0
    }

    /// A copy in the same state.
    fn copy(&self) -> Box<dyn CongestionControl>;
}

impl Clone for Box<dyn CongestionControl> {
    fn clone(&self) -> Self {
        self.copy()
    }
}
