//! Congestion control algorithms: one governs each sender.
//!
//! Start here: [`Congestion`] is told of acknowledgements ([`Ack`]), of losses and of timeouts, and
//! answers a window and, if the algorithm has one, a pacing rate. When a loss is recognised and
//! what is sent again is not its business: the sender does that for all of them. A new algorithm is
//! a file here, a variant of [`Kind`] and of [`Congestion`]; one from outside is an [`Algorithm`]
//! that a [`Maker`] in [`Config`](super::Config) makes.

mod bbr;
mod compound;
mod cubic;
mod dctcp;
mod foreign;
mod hystart;
mod newreno;
mod round;
mod vegas;

use core::fmt;
use core::str::FromStr;

use fontis_base::{Duration, Rate, Time, prefetch};
use thiserror::Error;

pub use bbr::Bbr;
pub use compound::Compound;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use foreign::{Algorithm, Maker};
pub use newreno::NewReno;
pub use vegas::Vegas;

/// Which algorithm to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// `newreno`: RFC 5681 with the window of RFC 6582, counting bytes (RFC 3465).
    NewReno,
    /// `cubic`: RFC 9438 with the constants of Linux.
    #[default]
    Cubic,
    /// `cubic-hystart`: as Linux has it: slow start ends by HyStart, and where Reno's window is
    /// larger it grows as in RFC 8312.
    CubicHyStart,
    /// `compound`: Compound TCP.
    Compound,
    /// `compound-loss-only`: the same without the window that follows delay, for comparison.
    CompoundLossOnly,
    /// `vegas`: follows delay.
    Vegas,
    /// `bbr`: version 1, follows the rate of delivery; always paced.
    Bbr,
    /// `dctcp`: Data Center TCP (RFC 8257), follows the share of marks; both ends need it and
    /// [`ecn`](super::Config::ecn).
    Dctcp,
}

impl Kind {
    /// Every algorithm there is.
    pub const ALL: [(&'static str, Self); 8] = [
        ("newreno", Self::NewReno),
        ("cubic", Self::Cubic),
        ("cubic-hystart", Self::CubicHyStart),
        ("compound", Self::Compound),
        ("compound-loss-only", Self::CompoundLossOnly),
        ("vegas", Self::Vegas),
        ("bbr", Self::Bbr),
        ("dctcp", Self::Dctcp),
    ];
}

/// A name that no algorithm has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no congestion control called {text:?}; there are {names}")]
pub struct UnknownKind {
    text: String,
    names: String,
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let known = Self::ALL.into_iter().find(|(name, _)| *name == text);
        known.map(|(_, kind)| kind).ok_or_else(|| UnknownKind {
            text: text.to_owned(),
            names: Self::ALL.map(|(name, _)| name).join(", "),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::ALL.into_iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name))
    }
}

/// What an acknowledgement says to the algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Bytes that let a window grow: delivered anew, if the acknowledgement moves the left edge.
    pub acked: u64,
    /// Bytes that it shows to have arrived and that were not known to have, selectively
    /// acknowledged ones included.
    pub delivered: u64,
    /// Bytes that were recognised as lost with it.
    pub lost: u64,
    /// The round-trip time of the newest segment that it acknowledges, unless that was sent more
    /// than once.
    pub rtt: Option<Duration>,
    /// The least round-trip time seen.
    pub min_rtt: Duration,
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// Whether it echoes a mark.
    pub marked: bool,
    /// Bytes in flight after it: sent, not delivered, not believed lost.
    pub in_flight: u64,
    /// Whether the window was what kept the sender from sending more.
    pub cwnd_limited: bool,
    /// The lowest position that is not acknowledged.
    pub una: u64,
    /// The next position to be sent.
    pub nxt: u64,
    /// How the sender takes the path to be.
    pub phase: Phase,
    /// What it says about the rate of delivery, for an algorithm that wants to know.
    pub rate: Option<RateSample>,
}

/// How a sender takes its path to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// In order.
    #[default]
    Open,
    /// Losses are being repaired (RFC 6675 section 5); windows that follow losses do not grow.
    Recovery,
    /// The timer expired and not all that was outstanding then is acknowledged.
    Loss,
}

/// A sample of the rate of delivery (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// The rate, unless it was measured over so short a time that it says nothing.
    pub rate: Option<Rate>,
    /// Bytes delivered in the connection when the acknowledged segment was sent.
    pub prior_delivered: u64,
    /// Bytes delivered in the connection by now.
    pub delivered: u64,
    /// Whether the sender had too little to send when the segment left.
    pub app_limited: bool,
}

/// An algorithm at work.
#[derive(Clone, Debug)]
pub enum Congestion {
    /// See [`Kind::NewReno`].
    NewReno(NewReno),
    /// See [`Kind::Cubic`].
    Cubic(Box<Cubic>),
    /// See [`Kind::Compound`].
    Compound(Box<Compound>),
    /// See [`Kind::Vegas`].
    Vegas(Box<Vegas>),
    /// See [`Kind::Bbr`].
    Bbr(Box<Bbr>),
    /// See [`Kind::Dctcp`].
    Dctcp(Box<Dctcp>),
    /// One that is not ours.
    Foreign(Box<dyn Algorithm>),
}

/// Does the same with whichever algorithm it is.
macro_rules! each {
    ($congestion:expr, $inner:ident => $body:expr) => {
        match $congestion {
            Congestion::NewReno($inner) => $body,
            Congestion::Cubic($inner) => $body,
            Congestion::Compound($inner) => $body,
            Congestion::Vegas($inner) => $body,
            Congestion::Bbr($inner) => $body,
            Congestion::Dctcp($inner) => $body,
            Congestion::Foreign($inner) => $body,
        }
    };
}

impl Congestion {
    /// An algorithm at its beginning, for segments of `mss` bytes and an initial window in bytes.
    /// `salt` tells apart flows that would otherwise act in step.
    pub fn new(kind: Kind, mss: u64, initial_window: u64, salt: u64) -> Self {
        let compound = |delay| Box::new(Compound::new(mss, initial_window, delay));
        match kind {
            Kind::Compound => Self::Compound(compound(true)),
            Kind::CompoundLossOnly => Self::Compound(compound(false)),
            Kind::Vegas => Self::Vegas(Box::new(Vegas::new(mss, initial_window))),
            Kind::Bbr => Self::Bbr(Box::new(Bbr::new(mss, initial_window, salt))),
            Kind::Dctcp => Self::Dctcp(Box::new(Dctcp::new(mss, initial_window))),
            Kind::NewReno => Self::NewReno(NewReno::new(mss, initial_window)),
            Kind::Cubic => Self::Cubic(Box::new(Cubic::new(mss, initial_window, false))),
            Kind::CubicHyStart => Self::Cubic(Box::new(Cubic::new(mss, initial_window, true))),
        }
    }

    /// Brings the algorithm into the cache, if it is one that lies elsewhere.
    pub(super) fn bring_near(&self) {
        match self {
            Self::NewReno(_) => {}
            Self::Cubic(inner) => prefetch(&**inner),
            Self::Compound(inner) => prefetch(&**inner),
            Self::Vegas(inner) => prefetch(&**inner),
            Self::Bbr(inner) => prefetch(&**inner),
            Self::Dctcp(inner) => prefetch(&**inner),
            Self::Foreign(inner) => prefetch(&**inner),
        }
    }

    /// An acknowledgement came.
    pub fn on_ack(&mut self, ack: &Ack) {
        each!(self, algorithm => algorithm.on_ack(ack));
    }

    /// A loss was recognised, at most once a round trip. `window` is the congestion window, or what
    /// was outstanding if that was less.
    pub fn on_congestion(&mut self, now: Time, window: u64) {
        each!(self, algorithm => algorithm.on_congestion(now, window));
    }

    /// A mark was echoed, at most once a round trip; else as for
    /// [`on_congestion`](Self::on_congestion), which is what most do.
    pub fn on_mark(&mut self, now: Time, window: u64) {
        match self {
            Self::Dctcp(dctcp) => dctcp.on_mark(window),
            _ => self.on_congestion(now, window),
        }
    }

    /// The retransmission timer expired: all that is outstanding counts as lost.
    pub fn on_timeout(&mut self, now: Time, window: u64) {
        each!(self, algorithm => algorithm.on_timeout(now, window));
    }

    /// The sender was idle for more than a timeout, and its window is to be no more than `restart`.
    pub fn on_idle(&mut self, restart: u64) {
        each!(self, algorithm => algorithm.on_idle(restart));
    }

    /// The congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        each!(self, algorithm => algorithm.cwnd())
    }

    /// The slow start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        each!(self, algorithm => algorithm.ssthresh())
    }

    /// Whether it wants to be told the rate of delivery ([`Ack::rate`]).
    pub fn wants_rate(&self) -> bool {
        matches!(self, Self::Bbr(_) | Self::Foreign(_))
    }

    /// The rate to pace at, for an algorithm that has one.
    pub fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Bbr(bbr) => bbr.pacing_rate(),
            Self::Foreign(algorithm) => algorithm.pacing_rate(),
            _ => None,
        }
    }

    /// Bytes that may leave back to back where segments are paced; zero is one segment at a time.
    pub fn send_quantum(&self) -> u64 {
        match self {
            Self::Bbr(bbr) => bbr.send_quantum(),
            _ => 0,
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) const MSS: u64 = 1000;

    pub(crate) fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// An acknowledgement of `segments` segments at `millis` by a sender that used its whole
    /// window.
    pub(crate) fn ack(millis: u64, segments: u64, rtt: u64) -> Ack {
        Ack {
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
            una: 0,
            nxt: 0,
            phase: Phase::Open,
            rate: None,
        }
    }

    /// Acknowledges a window, segment by segment, and moves on by a round trip.
    pub(crate) fn round(congestion: &mut Congestion, millis: &mut u64, rtt: u64) {
        let segments = congestion.cwnd() / MSS;
        for n in 0..segments {
            let at = *millis + rtt * n / segments;
            congestion.on_ack(&ack(at, 1, rtt));
        }
        *millis += rtt;
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    #[test]
    fn every_kind_is_known_by_the_name_it_prints() {
        for (name, kind) in Kind::ALL {
            assert_eq!(name.parse(), Ok(kind));
            assert_eq!(kind.to_string(), name);
        }
        let error = "tahoe".parse::<Kind>().unwrap_err().to_string();
        assert!(error.contains("newreno, cubic"), "{error}");
    }

    #[test]
    fn every_algorithm_that_follows_losses_doubles_in_slow_start_and_starts_again_after_a_timeout()
    {
        for kind in [Kind::NewReno, Kind::Cubic, Kind::Compound, Kind::Vegas, Kind::Dctcp] {
            let mut congestion = Congestion::new(kind, MSS, 10 * MSS, 0);
            let mut millis = 0;
            round(&mut congestion, &mut millis, 100);
            assert_eq!(congestion.cwnd(), 20 * MSS, "{kind}");
            congestion.on_timeout(Time::ZERO + ms(millis), 20 * MSS);
            assert_eq!(congestion.cwnd(), MSS, "{kind}");
            assert!(congestion.ssthresh() >= 10 * MSS, "{kind}");
        }
    }

    #[test]
    fn a_sender_that_does_not_use_its_window_does_not_get_a_larger_one() {
        for (name, kind) in Kind::ALL.into_iter().filter(|(_, kind)| *kind != Kind::Bbr) {
            let mut congestion = Congestion::new(kind, MSS, 10 * MSS, 0);
            for n in 0..100 {
                congestion.on_ack(&Ack { cwnd_limited: false, ..ack(n, 1, 50) });
            }
            assert_eq!(congestion.cwnd(), 10 * MSS, "{name}");
        }
    }
}
