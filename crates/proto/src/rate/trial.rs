use fontis_base::{Duration, Time};

use super::ceiling::Ceiling;
use super::feedback::FeedbackSummary;

/// Packets after which half of what was counted has been forgotten, and those that a trial takes.
const MEMORY: f64 = 200.0;
const LEAST: f64 = 60.0;
/// How long losses bound a flow before one begins: in time, and in round trips, at least. Four
/// times as long after each that failed, up to so many.
const WAIT: (Duration, u64) = (Duration::from_secs(1), 10);
const MOST_FAILURES: u32 = 4;
/// The same after a test has shown that less is lost when less is sent.
const REFUTED: (Duration, u64) = (Duration::from_secs(30), 100);
/// How long one lasts at most.
const SPAN: (Duration, u64) = (Duration::from_secs(10), 80);

/// A trial of losses that keep a flow small although its packets meet no queue.
///
/// So small a flow fills no queue, and proves nothing. In a trial it supposes that the losses are
/// the path's own, and grows until a queue shows that it can empty by itself, which proves them, or
/// until more is lost: then it goes back to what it had, and waits for longer before the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    packets: f64,
    lost: f64,
    /// When one may begin, once losses have bounded the flow.
    next: Option<Time>,
    /// The bottleneck's rate, in bits per second, if packets' dispersion or a token told it.
    line: Option<f64>,
    /// Those that failed in a row.
    failures: u32,
    on: Option<On>,
}

#[derive(Clone, Copy, Debug)]
struct On {
    /// The bound from before.
    ceiling: Ceiling,
    until: Time,
}

impl Trial {
    /// Takes a feedback of a flow that losses bound, or do not yet.
    pub(super) fn on_feedback(&mut self, sample: &FeedbackSummary, is_bounded: bool) {
        let lost = sample.decided.iter().filter(|(_, received)| !received).count() as f64;
        let packets = sample.decided.len() as f64;
        let keep = libm::exp2(-packets / MEMORY);
        self.packets = self.packets * keep + packets;
        self.lost = self.lost * keep + lost;
        if is_bounded && self.next.is_none() {
            self.next = Some(sample.now + self.wait(sample));
        }
    }

    fn wait(&self, sample: &FeedbackSummary) -> Duration {
        sample.at_least(WAIT) * (1 << (2 * self.failures.min(MOST_FAILURES)))
    }

    /// The bottleneck has this rate, in bits per second.
    pub(super) fn knows_line(&mut self, rate: f64) {
        self.line = Some(self.line.map_or(rate, |line| line.max(rate)));
    }

    /// The bottleneck's rate, in bits per second, if it is known.
    pub(super) const fn line(&self) -> Option<f64> {
        self.line
    }

    /// Whether one is under way.
    pub(super) const fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// Whether it is time for one.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.packets >= LEAST && self.next.is_some_and(|next| next <= now)
    }

    /// The loss of late, and the most that it may be, for all that is known.
    pub(super) fn loss(&self) -> (f64, f64) {
        let packets = self.packets.max(1.0);
        (self.lost / packets, (self.lost + 0.5 + libm::sqrt(self.lost)) / packets)
    }

    /// Begins one, in place of a bound.
    pub(super) fn begin(&mut self, sample: &FeedbackSummary, ceiling: Ceiling) {
        self.on = Some(On { ceiling, until: sample.now + sample.at_least(SPAN) });
    }

    /// Whether it has lasted too long.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.on.is_some_and(|on| now > on.until)
    }

    /// It has failed, if one is under way. The bound from before.
    pub(super) fn fail(&mut self, sample: &FeedbackSummary) -> Option<Ceiling> {
        let mut on = self.on.take()?;
        self.failures = self.failures.saturating_add(1);
        self.next = Some(sample.now + self.wait(sample));
        on.ceiling.resume(sample);
        Some(on.ceiling)
    }

    /// The loss went away when less was sent: somebody drops what is too much.
    pub(super) fn postpone(&mut self, sample: &FeedbackSummary) {
        let until =
            sample.now + sample.at_least(REFUTED) * (1 << (2 * self.failures.min(MOST_FAILURES)));
        self.next = self.next.max(Some(until));
    }

    /// It has proved the loss.
    pub(super) fn succeed(&mut self) {
        self.on = None;
        self.failures = 0;
    }
}
