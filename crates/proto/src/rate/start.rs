use fontis_base::{Duration, Rate, Time};

/// Without any measurement: a rate at which a slow link's short buffer survives the first round
/// trip.
const DEFAULT_RATE: f64 = 9e6;
/// The least and most that a capacity hint of a few packets may set the first rate to.
const FIRST_RATE: (f64, f64) = (0.25e6, 50e6);
/// How fast a train's dispersion alone may make the flow: a line may be faster than what is let
/// through it, and a round trip passes before that shows.
const TRAIN_TRUST: f64 = 120e6;
/// Growth of a round while nothing of the path is known: doubling overshoots a short buffer by a
/// whole flight.
const GROWTH: f64 = 1.6;
/// Loss beyond what is known, and the least share of what should arrive, that tell growth which
/// brings nothing from bursts that were measured before.
const MUCH_LOSS: f64 = 0.1;
const LEAST_SHARE: f64 = 0.75;
/// A queueing delay that ends the start: so many times the target of the rate sent, and in seconds
/// at least.
const LONG_QUEUE: (f64, f64) = (3.0, 20e-3);

/// The start of a flow: the rate that it begins with, and growth while nothing of the path is
/// known.
#[derive(Clone, Debug)]
pub(super) struct Start {
    is_on: bool,
    /// The rate that a capacity hint made the first one.
    hinted: Option<f64>,
    /// A test interrupted it.
    interrupted: bool,
    /// When it last raised the rate.
    grown_at: Time,
}

/// What a round of the start has shown; rates in bits per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    pub(super) now: Time,
    /// The rate sent now, which the round's packets were sent before.
    pub(super) rate: f64,
    /// The delivery rate, and the one at the end of the round before; 0 if there is none.
    pub(super) delivered: f64,
    pub(super) delivered_before: f64,
    /// The round's loss, and what the path is known to lose.
    pub(super) loss: f64,
    pub(super) known_loss: Option<f64>,
    /// The time over which the delivery rate is measured; `None` if it is not current.
    pub(super) window: Option<Duration>,
}

impl Start {
    pub(super) const fn new() -> Self {
        Self { is_on: true, hinted: None, interrupted: false, grown_at: Time::ZERO }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// The rate to begin with.
    pub(super) fn rate(&self) -> f64 {
        self.hinted.unwrap_or(DEFAULT_RATE)
    }

    /// The rate that was told before the first feedback, if one was.
    pub(super) const fn hinted(&self) -> Option<f64> {
        self.hinted
    }

    /// A few packets' dispersion says how fast the bottleneck is: half of that to begin with. Only
    /// the first hint counts; whether this one does.
    pub(super) fn on_capacity_hint(&mut self, capacity: Rate) -> bool {
        let taken = self.is_on && self.hinted.is_none();
        if taken {
            let rate = capacity.as_bps() as f64 / 2.0;
            self.hinted = Some(rate.clamp(FIRST_RATE.0, FIRST_RATE.1));
        }
        taken
    }

    /// It begins at this rate, in bits per second.
    pub(super) fn begin_at(&mut self, rate: f64) {
        self.hinted = Some(rate);
    }

    /// It begins, or begins again.
    pub(super) fn begin(&mut self) {
        self.is_on = true;
    }

    pub(super) fn end(&mut self) {
        self.is_on = false;
    }

    /// A test of the loss comes between.
    pub(super) fn interrupt(&mut self) {
        self.interrupted = self.is_on;
        self.is_on = false;
    }

    /// Whether the last test came between.
    pub(super) const fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The rate of arrival to go to at once, when a long train's dispersion says that the
    /// bottleneck has this capacity; the queue tells the rest. What is beyond is found round by
    /// round, each of which must bring more than the one before.
    pub(super) fn on_train(&mut self, now: Time, rate: f64, capacity: f64) -> f64 {
        let least = rate.min(FIRST_RATE.1) / 2.0;
        let most = (10.0 * rate).min(TRAIN_TRUST.max(rate));
        let arrival = (capacity * 0.92).clamp(least, most);
        self.grown_at = now;
        self.is_on = capacity > 2.0 * arrival;
        arrival
    }

    /// The rate after a round that showed no queue. Growth that brings no more out has found the
    /// bottleneck, even if its queue does not show: the rest is lost, or did not leave. What is
    /// reported was sent before the last growth.
    pub(super) fn grow(&mut self, round: Growth) -> f64 {
        let Growth { now, rate, delivered, delivered_before, loss, known_loss, window } = round;
        let arriving = rate / GROWTH * (1.0 - loss);
        let missing =
            loss > known_loss.unwrap_or(loss) + MUCH_LOSS || delivered < LEAST_SHARE * arriving;
        if !missing || delivered_before == 0.0 || delivered >= 1.15 * delivered_before {
            self.grown_at = now;
            return rate * GROWTH;
        }
        // Else what arrived was measured over a time in which less was sent, several short rounds
        // or a pause: wait.
        self.is_on = window.is_none_or(|window| now.since(self.grown_at) < window);
        rate
    }

    /// A queue that is longer than its target ends it, as does one far beyond what the rate sent
    /// would aim at: whatever is delivered so far, that was much too high a guess. All in seconds.
    pub(super) fn on_queue(&mut self, queue: f64, target: f64, target_at_rate: f64) {
        let most = (LONG_QUEUE.0 * target_at_rate).max(LONG_QUEUE.1);
        self.is_on &= queue < target.min(most);
    }
}
