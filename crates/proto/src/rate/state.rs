use core::fmt;

/// What a rate controller does at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateState {
    /// It looks for the path's rate.
    #[default]
    Starting,
    /// It keeps the path full.
    Filling,
    /// Losses that are not proved to be the path's own bound what is in flight, as CUBIC's window
    /// does: the circuit breaker of RFC 8084.
    Bounded,
    /// Others fill the queue, or it was told to: it has CUBIC's window.
    Friendly,
    /// It does not adapt.
    Fixed,
}

impl RateState {
    /// Its name, as status and qlog have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Filling => "filling",
            Self::Bounded => "bounded",
            Self::Friendly => "friendly",
            Self::Fixed => "fixed",
        }
    }
}

impl fmt::Display for RateState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
