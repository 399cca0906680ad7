use fontis_base::{Duration, Rate};

/// How fast symbols leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastRate {
    /// This fast, whatever happens.
    Fixed(Rate),
    /// As a law allows that follows the receivers, between these.
    Adaptive {
        /// The law.
        law: CastLaw,
        /// Receivers that allow less do not slow the others.
        least: Rate,
        /// The most.
        most: Rate,
    },
}

impl CastRate {
    /// What a law allows, however little or much that is.
    pub const fn by(law: CastLaw) -> Self {
        Self::Adaptive { law, least: Rate::ZERO, most: Rate::MAX }
    }

    /// The law that it follows.
    pub const fn law(&self) -> Option<CastLaw> {
        match self {
            Self::Fixed(_) => None,
            Self::Adaptive { law, .. } => Some(*law),
        }
    }
}

/// How the paths to receivers bound a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastLaw {
    /// TFMCC (RFC 4654): the least that the TCP equation allows to a receiver. All loss is
    /// congestion.
    Tfmcc,
    /// The least that [`Auto`](crate::rate::Auto) finds at a receiver. Loss that is proved to be
    /// a path's own is none.
    Auto,
}

/// The choices of a sender.
#[derive(Clone, Copy, Debug)]
pub struct CastConfig {
    /// Bytes of symbols that leave in a second, as a rate.
    pub rate: CastRate,
    /// The share of what is sent that all reports together may be.
    pub report_share: f64,
    /// The time between two states while symbols are sent.
    pub state_every: Duration,
    /// The round trip that is assumed until one is measured.
    pub first_round_trip: Duration,
}

impl CastConfig {
    /// The usual choices at a rate.
    pub const fn new(rate: CastRate) -> Self {
        Self {
            rate,
            // Half of the thousandth that feedback may cost; headers take the other half.
            report_share: 0.0005,
            state_every: Duration::from_millis(100),
            first_round_trip: Duration::from_millis(100),
        }
    }
}

/// The choices of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct CastReceiverConfig {
    /// Bytes of symbols of unfinished blocks that it holds. Beyond that it opens no further block;
    /// those come in a later round.
    pub memory: u64,
}

impl Default for CastReceiverConfig {
    fn default() -> Self {
        Self { memory: 512 << 20 }
    }
}
