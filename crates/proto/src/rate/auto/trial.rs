use fontis_base::{Duration, Rate};

use super::super::feedback::FeedbackSummary;
use super::super::loss_test::Tally;
use super::super::target::QueueTarget;
use super::{Auto, PACKET, Round, STANDING_ROUNDS, control_time};

/// A queue of this share of its target is worth being emptied in a trial.
const WORTH: f64 = 0.6;
/// Control times between the times at which it is.
const APART: f64 = 3.0;
/// How often it is emptied at most to see whether what is taken for random loss still is.
const DOUBT: Duration = Duration::from_millis(1500);
/// The control times for which a queue is emptied at least to tell whose it is, and to see how long
/// the path is.
const LONG: f64 = 0.5;
const SHORT: f64 = 0.1;

/// Losses that keep the flow small although no queue shows.
impl Auto {
    /// Packets that left back to back came at this rate.
    pub(in crate::rate) fn knows_line(&mut self, line: Rate) {
        self.trial.knows_line(line.as_bps() as f64);
    }

    /// Begins a trial when it is time, and ends one that is decided.
    pub(super) fn continue_trial(&mut self, sample: &FeedbackSummary) {
        if self.ceiling.is_some() && !self.rival.is_on() {
            self.trial.is_bounded(sample);
        }
        if self.trial.is_on() || self.start.is_on() || self.rival.is_on() {
            self.ledger.restart_contrast();
        }
        if self.trial.is_on() {
            let shown = self.ledger.shows_own_loss();
            if shown == Some(false) || self.rival.is_on() || self.trial.is_over(sample.now) {
                self.fail_trial(sample);
            } else if shown == Some(true) {
                self.trial.succeed();
                self.ledger.end_trial(false);
                self.random_loss = self.ledger.proved();
                self.unverified = None;
                self.tested_loss = self.random_loss.unwrap_or(0.0);
                self.tested_at = sample.now;
            }
            return;
        }
        if sample.limited
            || self.drain.is_on(sample.now)
            || self.test.is_some()
            || self.rival.is_on()
        {
            return;
        }
        let due = self.trial.due(sample.now, self.modest.losses());
        // Without the bottleneck's rate nothing tells a short queue from none.
        let (Some((loss, bound)), Some(line)) = (due, self.trial.line()) else { return };
        let Some(unproved) = self.ledger.unproved(loss, PACKET / line) else { return };
        if !self.trial.may_try(sample.now, unproved) {
            return;
        }
        let Some(ceiling) = self.ceiling.take() else { return };
        self.rate = self.rate.min(ceiling.rate().as_bps() as f64);
        self.trial.begin(sample, ceiling, unproved);
        self.ledger.suppose(loss, bound);
        self.random_loss = self.ledger.proved();
        self.unverified = None;
        self.start.begin();
        self.target = QueueTarget::new();
        (self.boost, self.cautious) = (0.0, 0);
        self.round = Round { end: sample.next_number, waiting: true, ..Round::default() };
    }

    /// Ends a trial that has failed; whether there was one.
    pub(super) fn fail_trial(&mut self, sample: &FeedbackSummary) -> bool {
        let Some(ceiling) = self.trial.fail(sample) else { return false };
        self.rate = self.rate.min(ceiling.rate().as_bps() as f64);
        self.ceiling = Some(ceiling);
        self.ledger.end_trial(true);
        self.random_loss = self.ledger.proved();
        self.start.end();
        self.boost = 0.0;
        self.round.tally = Tally::default();
        true
    }

    /// Whether the queue is to be emptied now, and for how many control times at least.
    pub(super) fn due_drain(&self, sample: &FeedbackSummary, target: f64) -> Option<f64> {
        let rounds = |rounds: f64| Duration::from_secs_f64(rounds * control_time(sample));
        let is_due = self.drain.is_due(sample, self.later);
        if self.trial.is_beside() {
            // What others keep falls when they empty it, and not before.
            return is_due.then_some(LONG);
        }
        let age = self.drain.age(sample.now);
        let doubtful = self.random_loss.is_some_and(|loss| loss > 0.01)
            && (self.ledger.wants_calm(sample) || self.ledger.wants_easing())
            && age > DOUBT;
        let stands = self.stands >= STANDING_ROUNDS && age > rounds(4.0);
        // If a queue that grew in a trial falls, it was this flow's.
        let tries = self.trial.is_on() && self.queue > WORTH * target && age > rounds(APART);
        if doubtful && self.ledger.is_slow() {
            Some(1.0)
        } else if stands || tries {
            Some(LONG)
        } else {
            (is_due || doubtful).then_some(SHORT)
        }
    }
}
