use fontis_base::Duration;

use super::super::feedback::FeedbackSummary;
use super::super::loss_test::{LossTest, Tally, Verdict};
use super::{Auto, LEAST_JUDGED, QUEUE_TARGET_RANGE, Round};

/// How often loss that was found to be random is tested again.
const RETEST_EVERY: Duration = Duration::from_secs(15);
/// Tests are at least this many times their own length apart.
const TEST_SHARE: u64 = 4;
/// Less than this is not worth a test of its own.
const SOME_LOSS: f64 = 0.02;
/// The least share of the rate that a test sends at.
const LEAST_TEST_RATE: f64 = 0.1;
/// How much loss that was found to be random may grow before it is tested again.
const MAX_CREEP: f64 = 0.03;
/// Packets whose loss outweighs a new round's: a path's own loss changes slowly, and noise in it is
/// noise in the rate.
const LOSS_MEMORY: f64 = 5000.0;
/// Packets that a first estimate of loss takes.
const FIRST_ESTIMATE: f64 = 100.0;
/// Packets after which the losses of several rounds are judged together.
const RECENT_PACKETS: u64 = 800;
/// Losses that a first measurement leads to expect, when far fewer refute it.
const CLAIMED_LOSSES: f64 = 8.0;
/// Rounds without growth after an overload that showed no queue.
const CAUTIOUS_ROUNDS: u32 = 12;
/// Rounds in which a long queue may stay as long as it is.
const STANDING_ROUNDS: u32 = 6;

/// What of the loss is the path's own, and what is overload.
impl Auto {
    /// Tests what is taken for random loss, if a round has ended with a long queue of `queue`
    /// seconds once more.
    pub(super) fn test_standing_queue(
        &mut self,
        sample: &FeedbackSummary,
        target: f64,
        queue: f64,
        most_queue: f64,
    ) {
        // A long queue that does not get shorter, or one that stays exactly as long as it is, may
        // be a full buffer, fed by what makes up for loss that is its own overflow.
        let full = queue > QUEUE_TARGET_RANGE.0 && queue > 0.9 * most_queue;
        let stands = (full || self.is_far_above(target)) && queue > 0.9 * self.standing.1;
        self.standing = (if stands { self.standing.0 + 1 } else { 0 }, queue);
        if self.test.is_none()
            && self.standing.0 > STANDING_ROUNDS
            && sample.now.since(self.tested_at) > self.test_span * TEST_SHARE
            && let Some(known) = self.random_loss.filter(|loss| *loss > SOME_LOSS)
        {
            self.standing.0 = 0;
            self.begin_test(sample, known, (1.0 - known).clamp(LEAST_TEST_RATE, 0.85));
        }
    }

    /// Judges the losses of a round that has ended, unless a test does.
    pub(super) fn judge_round(
        &mut self,
        sample: &FeedbackSummary,
        tally: Tally,
        queue: f64,
        most_queue: f64,
    ) {
        self.recent.join(tally);
        if self.test.is_some() {
            return;
        }
        // A slow path's rounds are judged when enough of them have come together.
        let judged = if tally.total() as f64 >= LEAST_JUDGED {
            tally
        } else if self.recent.total() as f64 >= LEAST_JUDGED {
            core::mem::take(&mut self.recent)
        } else {
            return;
        };
        self.judge_loss(sample, judged.loss(), judged.total() as f64, queue, most_queue);
    }

    /// Compares a round's loss with what the path is known to lose.
    fn judge_loss(
        &mut self,
        sample: &FeedbackSummary,
        loss: f64,
        total: f64,
        queue: f64,
        most_queue: f64,
    ) {
        let Some(known) = self.random_loss else {
            if total < FIRST_ESTIMATE {
                return;
            }
            if loss > 0.5 || (loss > SOME_LOSS && most_queue > self.queue_target()) {
                // At the rate that was delivered, overload loses nothing.
                self.begin_test(sample, loss, (1.0 - loss).clamp(LEAST_TEST_RATE, 0.85));
                return;
            }
            self.random_loss = Some(loss);
            self.tested_loss = loss;
            if loss > SOME_LOSS {
                self.unverified = Some((self.delivery.rate().unwrap_or(0.0), 0));
            }
            return;
        };
        if known < SOME_LOSS {
            self.unverified = None;
        }
        if let Some((delivered, rounds)) = self.unverified.take() {
            if known * total >= CLAIMED_LOSSES && loss < known / 3.0 {
                // The first packets, which left back to back, overran a short buffer.
                self.random_loss = Some(loss);
                self.tested_loss = loss;
                return;
            }
            // A policer lets no more through however much is sent; a path that loses at random
            // does.
            if delivered > 0.0 && self.delivery.rate().is_some_and(|rate| rate > 1.2 * delivered) {
                self.tested_at = sample.now;
            } else if rounds >= 3 {
                self.begin_test(sample, loss, 0.85);
                return;
            } else {
                self.unverified = Some((delivered, rounds + 1));
            }
        }
        // How far a count of losses strays by chance, in bursts as they come on this path.
        let deviation = |total: f64| {
            let variance = known.max(1.0 / total) * (1.0 - known) / total;
            libm::sqrt(variance * (2.0 * sample.mean_burst - 1.0).clamp(1.0, 2.0))
        };
        let mut loss = loss;
        let mut excess = loss > known + 4.0 * deviation(total) + 0.005;
        if !excess && self.recent.total() >= RECENT_PACKETS {
            let recent = core::mem::take(&mut self.recent);
            excess = recent.loss() > known + 3.5 * deviation(recent.total() as f64) + 0.005;
            if excess {
                loss = recent.loss();
            }
        }
        if excess && most_queue > 2.0 * QUEUE_TARGET_RANGE.1 {
            // No test is needed to know whose fault it is: a queue this long overflows, and its
            // delay is steered.
            self.recent = Tally::default();
        } else if excess {
            self.recent = Tally::default();
            if queue > QUEUE_TARGET_RANGE.0 && queue < 1.5 * self.queue_target() {
                // A buffer that overflows near the target is shorter than the target supposes.
                self.queue_cap = (queue * 0.6).max(QUEUE_TARGET_RANGE.0);
            }
            let factor = ((1.0 - loss) / (1.0 - known)).clamp(LEAST_TEST_RATE, 0.95);
            self.begin_test(sample, loss, factor);
        } else {
            // Loss seen beside a queue may be overflow; it is only believed when it is clearly less
            // than before.
            if loss < known - 4.0 * deviation(total) - 0.01 {
                // So little loss cannot be chance, whatever else is lost beside it.
                self.random_loss = Some(loss);
            } else if queue <= self.queue_target() / 4.0 || loss < known - deviation(total) {
                self.random_loss = Some(known + (loss - known) * total / (total + LOSS_MEMORY));
            }
            // Overload that shows no queue would creep into what is taken for random.
            let crept = known > self.tested_loss + MAX_CREEP;
            let age = sample.now.since(self.tested_at);
            let due = age > RETEST_EVERY && age > self.test_span * TEST_SHARE;
            if crept || (known > 0.01 && due) {
                self.begin_test(sample, known, 0.85);
            }
        }
    }

    /// Sends less for a round: `factor` of the rate at which packets were lost with probability
    /// `loss`.
    fn begin_test(&mut self, sample: &FeedbackSummary, loss: f64, factor: f64) {
        let delivered = self.delivered().unwrap_or(self.rate * (1.0 - loss));
        self.test =
            Some(LossTest::new(sample.next_number, loss, sample.mean_burst, factor, delivered));
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
        let delivered = test.delivered_before();
        self.test = None;
        self.test_span = sample.now.since(self.tested_at);
        self.tested_at = sample.now;
        self.hold_delivered(sample, delivered);
        self.round.tally = Tally::default();
        self.recent = Tally::default();
        match verdict {
            Verdict::Random(loss) => {
                self.random_loss = Some(loss);
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
                self.random_loss = Some(loss.min(self.random_loss.unwrap_or(1.0)));
                self.cautious = CAUTIOUS_ROUNDS;
                self.boost = 0.0;
                if loss > SOME_LOSS {
                    // What remains may be overload too, but no great one.
                    self.begin_test(sample, loss, 0.92);
                }
            }
        }
    }
}
