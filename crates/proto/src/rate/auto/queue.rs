use fontis_base::Duration;

use super::super::drain::{self, Outcome};
use super::super::feedback::FeedbackSummary;
use super::super::ledger::LONGEST_CALM;
use super::super::target::QueueTarget;
use super::{Auto, MIN_CONTROL_TIME, PACKET, STANDING_ROUNDS};

/// A queue that is more than chance: as a share of its target, and of the round trip, or so many
/// seconds.
const VISIBLE: (f64, f64, f64) = (0.6, 0.15, 1e-3);
/// A delivery rate that has grown: by how much more than the highest of late, which is forgotten in
/// so many seconds.
const GROWN: f64 = 1.3;
const GROWTH_MEMORY: f64 = 10.0;
/// A flow that had no more packets in a round trip of late may be one of a crowd whose packets are
/// few: those do not find their shares by the queue.
const FEW: f64 = 24.0;
/// So many packets of the bottleneck's rate make a queue.
const QUEUE: f64 = 8.0;
/// Beyond this round trip flows have not found their shares yet when two drains are over.
const FAR: Duration = Duration::from_millis(250);

/// What of the delay is a queue, and whose it is.
impl Auto {
    /// Takes the delays of a feedback, and sorts its losses by them.
    pub(super) fn take_delays(&mut self, sample: &FeedbackSummary) {
        let delays = &sample.one_way_ns;
        self.base.set_jitter(sample.jitter);
        if let Some(least) = delays.iter().map(|(_, delay)| *delay).min() {
            let less = self.base.observe(sample.now, least).as_secs_f64();
            if less > LONGEST_CALM {
                self.ledger.disprove(sample, less);
            }
            self.queue = self.base.queueing(least).as_secs_f64();
            let least = self.round.queue.map_or(self.queue, |least| least.min(self.queue));
            self.round.queue = Some(least);
        }
        self.drain.observe(sample);
        let visible = (VISIBLE.0 * QueueTarget::unbounded(self.share()))
            .min((VISIBLE.1 * sample.min_rtt.as_secs_f64()).max(VISIBLE.2));
        let base = &self.base;
        let queueing = |delay: i64| base.queueing(delay).as_secs_f64();
        let before = self.drain.queue();
        let outcome = self.drain.outcome(sample, queueing, visible);
        // A queue of a few packets comes and goes by chance.
        let few = self.trial.line().map_or(0.0, |line| QUEUE * PACKET / line);
        if matches!(outcome, Some(Outcome::Stayed(_) | Outcome::Shared)) && before >= few {
            self.trial.suspects_queue(sample);
        }
        match outcome {
            Some(Outcome::Stayed(_)) if before < few => {}
            Some(Outcome::Stayed(delay)) => {
                self.base.accept(sample.now, delay);
                self.queue = 0.0;
                self.round.queue = Some(0.0);
                self.ledger.distrust(Some(sample));
                self.rival.on_stay(sample, self.rate / drain::SHARE);
            }
            Some(Outcome::Fell) => self.ledger.distrust(None),
            // A longer look at it.
            Some(Outcome::Doubtful) => self.stands = STANDING_ROUNDS,
            Some(Outcome::Shared) | None => {}
        }
        if let Some(outcome) = outcome
            && (before >= few || outcome == Outcome::Fell)
            && sample.min_rtt < FAR
            // Not those of other paths of the same connection.
            && self.part >= 1.0
            && self.most_delivered * sample.srtt.as_secs_f64() > FEW * PACKET
        {
            self.rival.on_drain(sample, outcome, self.rate / drain::SHARE);
        }
        if self.rival.is_on() {
            // The queue is theirs: it proves no loss.
            self.ledger.distrust(Some(sample));
        }
        let packets = self.rate * sample.srtt.as_secs_f64() / PACKET;
        self.ledger.set_window(sample.now, packets);
        if self.is_bystander {
            self.ledger.stand_by(sample.now);
        }
        let share = self.share() / PACKET;
        let (base, drain) = (&self.base, &self.drain);
        let waiting = |delay| base.waiting(delay).as_secs_f64();
        self.ledger.observe(sample, share, waiting, |number| drain.covers(number));
        if !self.drain.is_watched() {
            // What tells the outcome is what met the shortest queue.
            self.ledger.end_easing(outcome == Some(Outcome::Fell));
        }
        self.look_for_queue(sample, visible);
    }

    /// Another receiver knows that others fill the queue, which is longer here than it should be:
    /// they are kept up with from this rate in bits a second on.
    pub(in crate::rate) fn keep_up(&mut self, sample: &FeedbackSummary, rate: f64) {
        if !self.rival.is_on() && !self.start.is_on() && self.queue > self.queue_target() {
            self.rival.begin(sample, rate);
        }
    }

    /// Whether a packet was to be sent while the queue is emptied, and tells what comes of it.
    pub(in crate::rate) fn is_watched(&self, number: u64) -> bool {
        self.drain.is_watched() && self.drain.covers(number)
    }

    /// The queue was to be emptied, and all that tells what comes of it has come. If less was not
    /// sent in fact, that is nothing.
    pub(in crate::rate) fn judge_drain(&mut self, largest: u64, was_followed: bool) {
        if self.drain.is_told(largest) && !was_followed {
            self.drain.forget();
        }
    }

    /// Whether packets that come slower than they were sent wait for a host and not for the path:
    /// on a short path hosts pause for longer than a round trip takes, and a path that is slower
    /// than its sender has a queue.
    pub(super) fn waits_for_hosts(&self, sample: &FeedbackSummary, target: f64) -> bool {
        sample.min_rtt.as_secs_f64() < MIN_CONTROL_TIME
            && self.queue < target / 4.0
            && self.cautious == 0
    }

    /// A bottleneck whose queue never shows may be full all the time.
    fn look_for_queue(&mut self, sample: &FeedbackSummary, visible: f64) {
        let delivered = self.delivery.rate().unwrap_or(0.0);
        let passed = sample.now.since(self.steered_at).as_secs_f64();
        let most = self.most_delivered * (1.0 - passed / GROWTH_MEMORY).max(0.0);
        if self.queue > visible || delivered > GROWN * most {
            self.ledger.sees_queue(sample.now);
        }
        self.most_delivered = most.max(delivered);
    }
}
