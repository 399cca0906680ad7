use fontis_base::{Duration, Rate, Time};

use super::feedback::FeedbackSummary;

/// Bytes of a packet, of which windows are thought.
const PACKET: f64 = 1500.0;
/// What an overload leaves of the bytes in flight.
const LEFT: f64 = 0.7;
/// What counts of the window before, if the one in flight at an overload is smaller: flows whose
/// share shrinks give way sooner (RFC 9438 section 4.7).
const CONVERGENCE: f64 = 0.85;
/// Round trips in which a window of [`RECOVERED`] packets comes back to where it was; with the cube
/// root of the window more. So larger windows grow by a smaller share, and flows converge.
const RECOVERY: f64 = 16.0;
const RECOVERED: f64 = 100.0;
/// The growth of a round trip beyond, as a share: by so much more each round trip.
const BEYOND: f64 = 0.01;
/// It ends when it is so many times the most that was in flight of late, which is forgotten by half
/// in so many round trips: what a pause or a drain leaves in flight says nothing.
const LOOSE: f64 = 2.0;
const FLIGHT_MEMORY: f64 = 4.0;
/// The least window, in packets as large as those that are sent.
const LEAST: f64 = 2.0;

/// A bound of the bytes in flight since losses showed an overload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    /// Bytes.
    window: f64,
    /// Bytes in flight at the last overload.
    before: f64,
    /// Losses of packets before this number belong to a round trip that has paid for them.
    recovered_at: u64,
    changed: Time,
    /// The most bytes in flight of late.
    flight: f64,
    /// The growth of a round trip, once the window is what it was.
    growth: f64,
    rtt: Duration,
    /// See [`Ceiling::set_least`].
    least: f64,
    /// See [`Ceiling::set_part`].
    part: f64,
}

impl Ceiling {
    /// A bound since losses showed an overload, when so many bytes were in flight, in packets of so
    /// many bytes.
    pub(super) fn new(sample: &FeedbackSummary, flight: u64, packet: f64) -> Self {
        let flight = (flight as f64).max(LEAST * packet);
        let mut ceiling = Self {
            window: flight,
            before: 0.0,
            recovered_at: 0,
            changed: sample.now,
            flight,
            growth: BEYOND,
            rtt: sample.srtt,
            least: 0.0,
            part: 1.0,
        };
        ceiling.on_overload(sample, flight as u64, packet);
        ceiling
    }

    /// The same again.
    pub(super) fn on_overload(&mut self, sample: &FeedbackSummary, flight: u64, packet: f64) {
        let flight = (flight as f64).min(self.window);
        let before = if flight < self.before { CONVERGENCE * flight } else { flight };
        self.before = before;
        self.window = (LEFT * flight).max(LEAST * packet);
        self.recovered_at = sample.next_number;
        self.changed = sample.now;
        self.growth = BEYOND;
    }

    /// It bounds again, after a time in which it did not: what was sent meanwhile has paid for its
    /// losses.
    pub(super) const fn resume(&mut self, sample: &FeedbackSummary) {
        self.recovered_at = sample.next_number;
        self.changed = sample.now;
    }

    /// Time passes. False if it bounds nothing any more.
    pub(super) fn on_feedback(&mut self, sample: &FeedbackSummary) -> bool {
        let passed = sample.now.since(core::mem::replace(&mut self.changed, sample.now));
        self.rtt = sample.srtt;
        let rounds = passed.as_secs_f64() / sample.srtt.as_secs_f64().max(1e-6);
        let left = self.flight * libm::exp2(-rounds / FLIGHT_MEMORY);
        self.flight = left.max(sample.in_flight as f64);
        if sample.largest < self.recovered_at {
            return true;
        }
        if self.window < self.before {
            self.window += (1.0 - LEFT) * self.before * rounds / self.rounds().max(2.0);
        } else {
            self.window *= 1.0 + self.growth * rounds;
            self.growth += BEYOND * self.part * rounds;
        }
        self.window < LOOSE * self.flight.max(10.0 * PACKET)
    }

    /// Round trips in which the window comes back to where it was.
    fn rounds(&self) -> f64 {
        let whole = self.before / self.part;
        RECOVERY * libm::cbrt(whole / (RECOVERED * PACKET)) / self.part
    }

    /// The path's part of what several have that together take one flow's share. Each meets its
    /// part of the losses, so that it recovers from one as slowly as losses are rarer.
    pub(super) const fn set_part(&mut self, part: f64) {
        self.part = part;
    }

    /// Bytes that may be in flight whatever was lost.
    pub(super) const fn set_least(&mut self, bytes: f64) {
        self.least = bytes;
    }

    /// The first packet whose loss counts.
    pub(super) const fn recovered_at(&self) -> u64 {
        self.recovered_at
    }

    /// How long it takes to come back to where it was.
    pub(super) fn recovery(&self) -> Duration {
        Duration::from_secs_f64(self.rtt.as_secs_f64() * (self.rounds() + 8.0))
    }

    /// Bytes that may be in flight.
    pub(super) const fn bytes(&self) -> u64 {
        self.window.max(self.least) as u64
    }

    /// The rate at which that many are in flight, and somewhat more, lest pacing bounds them.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.bytes(), self.rtt.max(Duration::from_micros(1)))
            .mul_ratio(110, 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, in_flight: u64) -> FeedbackSummary {
        FeedbackSummary { largest: 10, in_flight, ..FeedbackSummary::example(ms) }
    }

    #[test]
    fn an_overload_leaves_seven_tenths_and_they_come_back() {
        let flight = 100 * 1500;
        let mut ceiling = Ceiling::new(&at(0, flight), flight, PACKET);
        assert_eq!(ceiling.bytes(), flight * 7 / 10);
        // Sixteen round trips of 50 ms.
        for ms in 1..800 {
            assert!(ceiling.on_feedback(&at(ms, ceiling.bytes())));
            assert!(ceiling.bytes() <= flight);
        }
        ceiling.on_feedback(&at(820, flight));
        assert!(ceiling.bytes() >= flight);
    }

    #[test]
    fn a_pause_does_not_end_it() {
        let flight = 100 * 1500;
        let mut ceiling = Ceiling::new(&at(0, flight), flight, PACKET);
        // A burst each two round trips, and little between.
        assert!((1..60).all(|n| ceiling.on_feedback(&at(n * 10, flight * u64::from(n % 10 < 2)))));
    }

    #[test]
    fn it_ends_when_it_bounds_nothing() {
        let flight = 100 * 1500;
        let mut ceiling = Ceiling::new(&at(0, flight), flight, PACKET);
        assert!((1..3000).any(|ms| !ceiling.on_feedback(&at(ms, flight))));
    }
}
