use fontis_base::{Duration, Time};

use super::ceiling::Ceiling;
use super::feedback::FeedbackSummary;
use super::ledger::Unproved;

/// Packets that a trial takes.
const LEAST: f64 = 60.0;
/// How long losses bound a flow before one begins: in time, and in round trips, at least. Four
/// times as long after each that failed, up to so many.
const WAIT: (Duration, u64) = (Duration::from_secs(1), 10);
const MOST_FAILURES: u32 = 4;
/// The same after a test has shown that less is lost when less is sent.
const REFUTED: (Duration, u64) = (Duration::from_secs(30), 100);
/// The share of the bottleneck's rate from which on a trial grows gently, and by how much in a
/// round.
const NEAR: f64 = 0.9;
const GENTLE: f64 = 1.15;
/// How long one lasts at most; where others keep a queue, which the flow empties when they do, so
/// many times as long.
const SPAN: (Duration, u64) = (Duration::from_secs(10), 80);
const BESIDE: u64 = 2;

/// A trial of losses that keep a flow small although its packets meet no queue.
///
/// So small a flow fills no queue, and proves nothing. In a trial it supposes that the losses are
/// the path's own, and grows until a queue shows that it can empty by itself, which proves them, or
/// until more is lost: then it goes back to what it had, and waits for longer before the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    /// When one may begin, once losses have bounded the flow.
    next: Option<Time>,
    /// Until when a queue may stand that does not show.
    queue_until: Time,
    /// The bottleneck's rate, in bits per second, if packets' dispersion or a token told it.
    line: Option<f64>,
    /// Those that failed in a row.
    failures: u32,
    /// The one under way.
    on: Option<Box<On>>,
}

#[derive(Clone, Copy, Debug)]
struct On {
    /// The bound from before.
    ceiling: Ceiling,
    until: Time,
    unproved: Unproved,
}

impl Trial {
    /// Losses bound the flow: one may begin before long.
    pub(super) fn is_bounded(&mut self, sample: &FeedbackSummary) {
        if self.next.is_none() {
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

    /// What a rate in bits per second may grow to that would grow to `grown`: near the bottleneck's
    /// rate gently, so that a queue shows before it is too long.
    pub(super) fn bound(&self, rate: f64, grown: f64) -> f64 {
        match self.line.filter(|_| self.is_on()) {
            Some(line) => grown.min((NEAR * line).max(GENTLE * rate)),
            None => grown,
        }
    }

    /// Whether one is under way.
    pub(super) const fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// The loss to suppose, and the most that it may be, if it is time for one; so many packets of
    /// late, of which so many were lost, tell.
    pub(super) fn due(&self, now: Time, (packets, lost): (f64, f64)) -> Option<(f64, f64)> {
        let is_due = packets >= LEAST && self.next.is_some_and(|next| next <= now);
        is_due.then(|| (lost / packets, (lost + 0.5 + libm::sqrt(lost)) / packets))
    }

    /// Whether a loss of this kind may be tried now, if it is time for one.
    pub(super) fn may_try(&self, now: Time, unproved: Unproved) -> bool {
        unproved == Unproved::OfOthers || self.queue_until <= now
    }

    /// Begins one, in place of a bound.
    pub(super) fn begin(&mut self, sample: &FeedbackSummary, ceiling: Ceiling, unproved: Unproved) {
        let times = if unproved == Unproved::OfOthers { BESIDE } else { 1 };
        let until = sample.now + sample.at_least(SPAN) * times;
        self.on = Some(Box::new(On { ceiling, until, unproved }));
    }

    /// Whether one is under way where others keep a queue.
    pub(super) fn is_beside(&self) -> bool {
        self.on.as_ref().is_some_and(|on| on.unproved == Unproved::OfOthers)
    }

    /// Whether it has lasted too long.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.on.as_ref().is_some_and(|on| now > on.until)
    }

    /// It has failed, if one is under way. The bound from before.
    pub(super) fn fail(&mut self, sample: &FeedbackSummary) -> Option<Ceiling> {
        let mut on = self.on.take()?;
        self.failures = self.failures.saturating_add(1);
        // The wait for the next takes the place of what was found out during this one.
        self.queue_until = sample.now;
        self.next = Some(sample.now + self.wait(sample));
        on.ceiling.resume(sample);
        Some(on.ceiling)
    }

    /// The loss went away when less was sent: somebody drops what is too much.
    pub(super) fn postpone(&mut self, sample: &FeedbackSummary) {
        self.next = self.next.max(Some(self.refuted_until(sample)));
    }

    /// A queue did not fall when less was sent: others are in it, or one stands that does not show.
    pub(super) fn suspects_queue(&mut self, sample: &FeedbackSummary) {
        self.queue_until = self.queue_until.max(self.refuted_until(sample));
    }

    fn refuted_until(&self, sample: &FeedbackSummary) -> Time {
        let times = 1 << (2 * self.failures.min(MOST_FAILURES));
        sample.now + sample.at_least(REFUTED) * times
    }

    /// It has proved the loss.
    pub(super) fn succeed(&mut self) {
        self.on = None;
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> FeedbackSummary {
        FeedbackSummary::example(ms)
    }

    fn begin(trial: &mut Trial, ms: u64) {
        trial.begin(&at(ms), Ceiling::new(&at(ms), 15_000, 1500.0), Unproved::NoQueue);
    }

    /// Whether one is due at a time in milliseconds, with a tenth of 100 packets lost.
    fn is_due(trial: &Trial, ms: u64) -> bool {
        trial.due(at(ms).now, (100.0, 10.0)).is_some()
    }

    #[test]
    fn each_that_fails_puts_off_the_next_for_longer() {
        let mut trial = Trial::default();
        assert!(!is_due(&trial, 9000), "nothing bounds the flow");
        trial.is_bounded(&at(0));
        assert!(!is_due(&trial, 999) && is_due(&trial, 1000));
        assert!(trial.due(at(1000).now, (59.0, 6.0)).is_none(), "too few packets");
        for (begin, next) in [(1000, 5000), (5000, 21_000), (21_000, 85_000)] {
            let ceiling = Ceiling::new(&at(begin), 15_000, 1500.0);
            let bytes = ceiling.bytes();
            trial.begin(&at(begin), ceiling, Unproved::NoQueue);
            assert_eq!(trial.fail(&at(begin)).map(|ceiling| ceiling.bytes()), Some(bytes));
            assert!(!trial.is_on() && !is_due(&trial, next - 1) && is_due(&trial, next));
        }
        trial.postpone(&at(0));
        assert!(is_due(&trial, 30_000 * 64) && !is_due(&trial, 30_000 * 64 - 1));
    }

    #[test]
    fn one_that_proves_its_loss_lets_the_next_come_soon() {
        let mut trial = Trial::default();
        trial.is_bounded(&at(0));
        begin(&mut trial, 1000);
        trial.fail(&at(1500));
        begin(&mut trial, 6000);
        assert!(!trial.is_over(at(16_000).now) && trial.is_over(at(16_001).now));
        trial.succeed();
        begin(&mut trial, 7000);
        trial.fail(&at(7000));
        assert!(!is_due(&trial, 10_999) && is_due(&trial, 11_000));
    }

    #[test]
    fn a_queue_that_others_keep_puts_off_only_what_supposes_none() {
        let mut trial = Trial::default();
        trial.is_bounded(&at(0));
        trial.suspects_queue(&at(0));
        let (early, late) = (at(29_999).now, at(30_000).now);
        assert!(!trial.may_try(early, Unproved::NoQueue) && trial.may_try(late, Unproved::NoQueue));
        assert!(trial.may_try(early, Unproved::OfOthers));
        let ceiling = Ceiling::new(&at(1000), 15_000, 1500.0);
        trial.begin(&at(1000), ceiling, Unproved::OfOthers);
        assert!(trial.is_beside() && !trial.is_over(at(21_000).now));
        assert!(trial.is_over(at(21_001).now));
    }
}
