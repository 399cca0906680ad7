use fontis_base::{Duration, Time};

/// What the sender knows of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct CastMember {
    /// The share of packets that it loses.
    pub loss: f64,
    /// The round trip to it, if one was measured.
    pub round_trip: Option<Duration>,
    /// Symbols that it lacks of all blocks.
    pub lacking: u64,
    /// Whether it has everything.
    pub is_done: bool,
    /// Symbols that were sent only because it lacked more than all others.
    pub caused: u64,
    /// Those of them that were sent before first visits.
    pub(super) caused_soon: u64,
    pub(super) heard: Option<Time>,
    pub(super) sequence: Option<u32>,
    /// Its clock, and the time at which that came; until it was told.
    pub(super) to_echo: Option<(u64, Time)>,
}

impl CastMember {
    pub(super) const fn new(lacking: u64) -> Self {
        Self {
            loss: 0.0,
            round_trip: None,
            lacking,
            is_done: false,
            caused: 0,
            caused_soon: 0,
            heard: None,
            sequence: None,
            to_echo: None,
        }
    }
}
