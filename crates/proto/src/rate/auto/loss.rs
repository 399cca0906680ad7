use fontis_base::Duration;

use super::super::ceiling::Ceiling;
use super::super::feedback::FeedbackSummary;
use super::super::loss_test::{LossTest, Tally, Verdict};
use super::{Auto, PACKET, Round, STANDING_ROUNDS};

/// How often loss that was found to be random is tested again.
const RETEST_EVERY: Duration = Duration::from_secs(15);
/// Tests are at least this many times their own length apart.
const TEST_SHARE: u64 = 4;
/// Less than this is not worth a test of its own.
const SOME_LOSS: f64 = 0.02;
/// The most round trips that a test takes.
const LONGEST_TEST: f64 = 4.0;
/// How much loss that was found to be random may grow before it is tested again.
const MAX_CREEP: f64 = 0.03;
/// Rounds after which loss that was measured for the first time is tested.
const UNVERIFIED_ROUNDS: u32 = 3;
/// Packets of a round trip whose losses tell how much had no room.
const TELLING: u64 = 20;
/// Rounds without growth after an overload.
const CAUTIOUS_ROUNDS: u32 = 4;
/// A queue of less than this share of its target is empty.
const EMPTY: f64 = 0.25;

/// What of the loss is the path's own, and what is overload.
impl Auto {
    /// Weighs the losses of a feedback, and slows down if they are overload.
    pub(super) fn weigh_losses(&mut self, sample: &FeedbackSummary) {
        let first =
            self.ceiling.as_ref().map_or(0, Ceiling::recovered_at).max(self.rival.recovered_at());
        let overload = self.ledger.shows_overload(sample, first);
        if self.rival.is_on() {
            let empty = self.queue < EMPTY * self.queue_target();
            if let Some(rate) = self.rival.on_feedback(sample, overload, empty) {
                self.rate = rate.as_bps() as f64;
                self.stands = STANDING_ROUNDS;
                self.hold_delivered(sample, self.rate * (1.0 - self.random_loss.unwrap_or(0.0)));
            }
            return;
        }
        if self.ceiling.as_mut().is_some_and(|ceiling| !ceiling.on_feedback(sample)) {
            self.ceiling = None;
        }
        if overload && self.fail_trial(sample) {
            return;
        }
        if overload {
            let packet = self.modest.packet();
            // Where more than half had no room, giving way step by step would take long.
            let known = self.random_loss.or_else(|| self.ledger.proved()).unwrap_or(0.0);
            let Round { tally, .. } = &self.round;
            let excess = if tally.total() < TELLING { 0.0 } else { tally.loss() - known };
            let part = (2.0 * (1.0 - excess)).clamp(0.0, 1.0);
            let flight = (sample.in_flight as f64 * part) as u64;
            match &mut self.ceiling {
                Some(ceiling) => ceiling.on_overload(sample, flight, packet),
                None => self.ceiling = Some(Ceiling::new(sample, flight, packet)),
            }
            let recovery = self.ceiling.map_or(Duration::ZERO, |ceiling| ceiling.recovery());
            self.ledger.gives_way(sample.now, recovery);
            self.test = None;
            let starts = self.start.is_on();
            self.start.end();
            self.boost = 0.0;
            self.cautious = CAUTIOUS_ROUNDS;
            let at_line = self.trial.line().filter(|_| !starts).map(|line| PACKET / line);
            if let Some(queue) = self.ledger.too_long(at_line) {
                self.target.on_overflow(queue);
            }
        }
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.set_least(self.modest.bytes(sample.srtt));
        }
    }

    /// Judges the losses of a round that has ended, unless a test does.
    pub(super) fn judge_round(&mut self, sample: &FeedbackSummary) {
        if self.test.is_some() {
            return;
        }
        let Some(proved) = self.ledger.proved() else {
            // What was proved is forgotten.
            self.random_loss = None;
            return;
        };
        if self.trial.is_on() {
            self.random_loss = Some(proved);
            return;
        }
        let before = self.random_loss.replace(proved);
        if before.is_none() {
            self.tested_loss = proved;
            if proved > SOME_LOSS {
                self.unverified = Some(0);
            }
            return;
        }
        if proved < SOME_LOSS {
            self.unverified = None;
            self.tested_loss = self.tested_loss.min(proved);
        }
        // That more comes through the more is sent is no proof: others may get less.
        if let Some(rounds) = self.unverified.take() {
            if rounds >= UNVERIFIED_ROUNDS {
                self.begin_test(sample, proved, 0.85);
                return;
            }
            self.unverified = Some(rounds + 1);
        }
        // Overload that shows no queue would creep into what is taken for random.
        let crept = proved > self.tested_loss + MAX_CREEP;
        let age = sample.now.since(self.tested_at);
        let due = age > RETEST_EVERY && age > self.test_span * TEST_SHARE;
        if crept || (proved > SOME_LOSS && due) {
            self.begin_test(sample, proved, 0.85);
        }
    }

    /// So many receivers look for overload, and each of them is heard.
    pub(in crate::rate) fn set_watchers(&mut self, watchers: u32) {
        self.ledger.set_watchers(watchers);
    }

    /// Others bound what is sent: sending less tells nothing, and would cost them.
    pub(in crate::rate) const fn set_bystander(&mut self, is_bystander: bool) {
        self.is_bystander = is_bystander;
    }

    /// Sends less for a round: `factor` of the rate at which packets were lost with probability
    /// `loss`.
    fn begin_test(&mut self, sample: &FeedbackSummary, loss: f64, factor: f64) {
        if self.is_bystander {
            return;
        }
        // Calm packets are few at first: what they tell by chance must not seem to go away.
        let loss = (loss - self.ledger.deviation()).max(SOME_LOSS.min(loss));
        let delivered = self.delivered().unwrap_or(self.rate * (1.0 - loss));
        let test = LossTest::new(sample.next_number, loss, sample.mean_burst, factor, delivered);
        let packets = self.rate * sample.srtt.as_secs_f64() / PACKET;
        if test.packets() as f64 > LONGEST_TEST * packets {
            // So slow a flow would be slower still for long.
            (self.tested_at, self.tested_loss) = (sample.now, loss);
            return;
        }
        self.test = Some(Box::new(test));
        self.tested_at = sample.now;
        self.tested_loss = loss;
        // The present rate may be another than that of the packets that were just reported.
        let then = self.delivery.rate().map_or(self.rate, |rate| rate / (1.0 - loss).max(0.02));
        self.rate = then.min(self.rate) * factor;
        self.start.interrupt();
        self.boost = 0.0;
    }

    /// Goes on with a test, and believes what it finds out.
    pub(super) fn continue_test(&mut self, sample: &FeedbackSummary) {
        let Some(test) = &mut self.test else { return };
        if test.is_sending() {
            // One round trip of packets: when the first of them is reported, as many as fit have
            // been sent.
            if test.suffices(sample.largest) {
                test.end(sample.next_number);
            }
            return;
        }
        let Some(verdict) = test.verdict(sample.largest) else { return };
        let (delivered, if_congestive) = (test.delivered_before(), test.loss_if_congestive());
        self.test = None;
        self.test_span = sample.now.since(self.tested_at);
        self.tested_at = sample.now;
        self.hold_delivered(sample, delivered);
        self.round.tally = Tally::default();
        match verdict {
            Verdict::Random(loss) => {
                self.tested_loss = loss;
                if self.start.was_interrupted() && self.queue < self.queue_target() {
                    // The start goes on from what was delivered before the test.
                    self.start.begin();
                    self.rate = self.sending(delivered);
                    self.round =
                        Round { end: sample.next_number, waiting: true, ..Round::default() };
                }
            }
            Verdict::Congestive(loss) => {
                self.ledger.refute(loss);
                if loss < if_congestive + SOME_LOSS {
                    self.trial.postpone(sample);
                }
                self.random_loss = Some(loss.min(self.random_loss.unwrap_or(1.0)));
                self.cautious = 3 * CAUTIOUS_ROUNDS;
                self.boost = 0.0;
                if loss > SOME_LOSS {
                    // What remains may be overload too, but no great one.
                    self.begin_test(sample, loss, 0.92);
                }
            }
        }
    }
}
