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
    /// Whether it is to be told its round trip.
    pub(super) is_curious: bool,
}

/// The part of a new round trip in the smoothed one (RFC 5348, section 4.3).
const NEW_SHARE: f64 = 0.1;
/// The longest that is believed.
const LONGEST: Duration = Duration::from_secs(10);

impl CastMember {
    /// Takes a measured round trip.
    pub(super) fn measured(&mut self, round_trip: Duration) {
        let new = round_trip.min(LONGEST).as_secs_f64();
        let smoothed = self
            .round_trip
            .map_or(new, |old| NEW_SHARE * new + (1.0 - NEW_SHARE) * old.as_secs_f64());
        self.round_trip = Some(Duration::from_secs_f64(smoothed));
        self.is_curious = true;
    }

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
            is_curious: false,
        }
    }
}
