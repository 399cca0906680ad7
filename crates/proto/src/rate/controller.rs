use fontis_base::{Duration, Rate};

use super::auto::Auto;
use super::feedback::FeedbackSummary;
use super::friendly::Friendly;
use super::kind::RateKind;
use super::state::RateState;
use crate::congestion::table::CongestionKind;

/// How much longer each path waits than the one before until it empties its queue, in hundredths.
const STAGGER: u64 = 9;

/// A rate controller at work.
#[derive(Clone, Debug)]
pub enum RateController {
    /// See [`RateKind::Auto`].
    Auto(Box<Auto>),
    /// See [`RateKind::Friendly`] and [`RateKind::Fld`].
    Friendly(Box<Friendly>),
    /// See [`RateKind::Fixed`].
    Fixed(Rate),
    /// See [`RateKind::Greedy`].
    Greedy,
}

impl RateController {
    /// A controller of this kind at its beginning, of one of several paths: they do not empty their
    /// queues at the same time, unless they wait in the same one.
    pub fn beside(kind: RateKind, path: u8) -> Self {
        let mut controller = Self::new(kind);
        if let Self::Auto(auto) = &mut controller {
            auto.drain_later(STAGGER * u64::from(path));
        }
        controller
    }

    /// A controller of this kind at its beginning.
    pub fn new(kind: RateKind) -> Self {
        match kind {
            RateKind::Auto => Self::Auto(Box::default()),
            RateKind::Friendly => Self::Friendly(Box::default()),
            RateKind::Fld => Self::Friendly(Box::new(Friendly::like(CongestionKind::Fld))),
            RateKind::Fixed(rate) => Self::Fixed(rate),
            RateKind::Greedy => Self::Greedy,
        }
    }

    /// Takes a feedback.
    pub fn on_feedback(&mut self, feedback: &FeedbackSummary) {
        match self {
            Self::Auto(auto) => auto.on_feedback(feedback),
            Self::Friendly(friendly) => friendly.on_feedback(feedback),
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

    /// What it does at present.
    pub fn state(&self) -> RateState {
        match self {
            Self::Auto(auto) => auto.state(),
            Self::Friendly(_) => RateState::Friendly,
            Self::Fixed(_) | Self::Greedy => RateState::Fixed,
        }
    }

    /// What of the loss is the path's own, while more is lost than that: the rest is overload.
    pub fn proved_loss(&self) -> Option<f64> {
        match self {
            Self::Auto(auto) => auto.proved_loss(),
            Self::Friendly(_) | Self::Fixed(_) | Self::Greedy => None,
        }
    }

    /// Whether it has found out what the path carries.
    pub fn has_started(&self) -> bool {
        match self {
            Self::Auto(auto) => auto.has_started(),
            Self::Friendly(friendly) => friendly.has_started(),
            Self::Fixed(_) | Self::Greedy => false,
        }
    }

    /// The path's part of what all paths have that wait in one queue with it, of this connection:
    /// one if there are no others. All of them together then take one flow's share.
    pub fn set_part(&mut self, part: f64) {
        match self {
            Self::Auto(auto) => auto.set_part(part),
            Self::Friendly(friendly) => friendly.set_part(part),
            Self::Fixed(_) | Self::Greedy => {}
        }
    }

    /// Whether the first packets should leave back to back to measure their dispersion.
    pub const fn wants_train(&self) -> bool {
        matches!(self, Self::Auto(_))
    }
}
