//! Rate controllers: one drives each path.
//!
//! Start here: a [`Controller`] is told what was sent, what a feedback said ([`Sample`]) and when
//! feedback stays away; it answers a pacing rate and an allowance of bytes in flight. [`Auto`] is
//! the default, [`Friendly`] keeps to what CUBIC would take, [`Kind::Fixed`] holds a rate,
//! [`Kind::Greedy`] sends as fast as the host can, as the published protocol does.

mod auto;
mod base_delay;
mod delivery;
mod friendly;
mod loss_test;
mod start;

use core::fmt;
use core::str::FromStr;

use fontis_base::{Duration, NotationError, Rate, Time};

pub use auto::Auto;
pub use friendly::Friendly;

/// Which controller to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Finds the path's rate from delivery rate and queueing delay, and leaves nearly no queue.
    #[default]
    Auto,
    /// Takes what a CUBIC flow would take.
    Friendly,
    /// Holds a rate, counted in bytes at the IP layer, whatever happens.
    Fixed(Rate),
    /// As fast as the host can. It overloads every network on purpose: only for networks of one's
    /// own.
    Greedy,
}

impl FromStr for Kind {
    type Err = NotationError;

    /// Reads `auto`, `friendly`, `greedy` or a rate.
    fn from_str(text: &str) -> Result<Self, NotationError> {
        match text {
            "auto" => Ok(Self::Auto),
            "friendly" => Ok(Self::Friendly),
            "greedy" => Ok(Self::Greedy),
            _ => text.parse().map(Self::Fixed),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Friendly => f.write_str("friendly"),
            Self::Fixed(rate) => rate.fmt(f),
            Self::Greedy => f.write_str("greedy"),
        }
    }
}

/// What one feedback says about a path.
#[derive(Clone, Debug)]
pub struct Sample {
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

/// A rate controller.
#[derive(Clone, Debug)]
pub enum Controller {
    /// See [`Kind::Auto`].
    Auto(Box<Auto>),
    /// See [`Kind::Friendly`].
    Friendly(Box<Friendly>),
    /// See [`Kind::Fixed`].
    Fixed(Rate),
    /// See [`Kind::Greedy`].
    Greedy,
}

impl Controller {
    /// A controller of this kind at its beginning.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Auto => Self::Auto(Box::default()),
            Kind::Friendly => Self::Friendly(Box::default()),
            Kind::Fixed(rate) => Self::Fixed(rate),
            Kind::Greedy => Self::Greedy,
        }
    }

    /// Takes a feedback.
    pub fn on_feedback(&mut self, sample: &Sample) {
        match self {
            Self::Auto(auto) => auto.on_feedback(sample),
            Self::Friendly(friendly) => friendly.on_feedback(sample),
            Self::Fixed(_) | Self::Greedy => {}
        }
    }

    /// Another round-trip time has passed without the feedback that was due.
    pub fn on_silence(&mut self) {
        match self {
            Self::Auto(auto) => auto.on_silence(),
            Self::Friendly(friendly) => friendly.on_silence(),
            Self::Fixed(_) | Self::Greedy => {}
        }
    }

    /// The bottleneck's rate was measured before any data was sent; whether the rate is another for
    /// it.
    pub fn on_capacity_hint(&mut self, capacity: Rate) -> bool {
        match self {
            Self::Auto(auto) => auto.on_capacity_hint(capacity),
            Self::Friendly(_) | Self::Fixed(_) | Self::Greedy => false,
        }
    }

    /// The path carried this rate not long ago: begin with it. Whether that changes anything.
    pub fn on_known_rate(&mut self, rate: Rate) -> bool {
        match self {
            Self::Auto(auto) => {
                auto.on_known_rate(rate);
                true
            }
            Self::Friendly(_) | Self::Fixed(_) | Self::Greedy => false,
        }
    }

    /// The rate when last a round trip's worth of feedback confirmed it, if any did.
    pub fn confirmed(&self) -> Option<Rate> {
        match self {
            Self::Auto(auto) => auto.confirmed(),
            Self::Friendly(_) | Self::Fixed(_) | Self::Greedy => None,
        }
    }

    /// The rate to pace at, counted in bytes at the IP layer.
    pub fn rate(&self) -> Rate {
        match self {
            Self::Auto(auto) => auto.rate(),
            Self::Friendly(friendly) => friendly.rate(),
            Self::Fixed(rate) => *rate,
            Self::Greedy => Rate::MAX,
        }
    }

    /// How many bytes may be in flight: sent, and not yet reported on.
    pub fn allowance(&self, rtt: Duration) -> u64 {
        match self {
            Self::Auto(auto) => auto.allowance(rtt),
            Self::Friendly(friendly) => friendly.allowance(),
            // A fixed rate does not adapt, but a sender that nobody answers should still stop.
            Self::Fixed(rate) => rate.bytes_in(rtt * 4 + Duration::from_millis(200)).max(64 * 1500),
            Self::Greedy => u64::MAX,
        }
    }

    /// Whether the first packets should leave back to back to measure their dispersion.
    pub const fn wants_train(&self) -> bool {
        matches!(self, Self::Auto(_))
    }
}
