mod loss;
mod queue;
mod trial;

use fontis_base::{Duration, Rate, Time};

use super::base_delay::BaseDelay;
use super::ceiling::Ceiling;
use super::delivery::Delivery;
use super::drain::{self, Drain};
use super::feedback::FeedbackSummary;
use super::ledger::LossLedger;
use super::loss_test::{LossTest, Tally};
use super::modest::Modest;
use super::rival::Rival;
use super::start::{Growth, Start};
use super::state::RateState;
use super::target::QueueTarget;
use super::trial::Trial;

/// Never slower: about a packet a second.
const MIN_RATE: f64 = 12e3;
/// The share of a rate that was carried before that is begun with, and the most.
const OF_KNOWN: f64 = 0.5;
const MOST_KNOWN: u64 = 1_000_000_000;
/// Bytes that may be in flight before anything is heard of them.
const FIRST_FLIGHT: u64 = 64 * 1500;
/// Where nothing was delivered that anybody confirmed, silences that end so soon after each other,
/// in time and in round trips, are no outages but an overload: each begins with half of what the
/// one before it began with.
const CLOSE_SILENCES: (Duration, u64) = (Duration::from_secs(5), 40);
/// A queue of so many seconds is far above any target of a fast flow.
const LONG_QUEUE: f64 = 60e-3;
/// How much of the queue's deviation is corrected in one round trip. Beyond π/2 a loop with one
/// round trip of dead time oscillates.
const GAIN: f64 = 0.5;
/// The same for a queue far above its target, which takes many round trips to be emptied.
const GAIN_OF_LONG_QUEUE: f64 = 0.15;
/// Control acts on no shorter time than this: below it, delays are those of the hosts.
const MIN_CONTROL_TIME: f64 = 10e-3;
/// The delivery rate is measured over no shorter time.
const MIN_DELIVERY_WINDOW: Duration = Duration::from_millis(8);
/// The time, in seconds, in which a rate that hosts do not keep up with is forgotten while nothing
/// shows that the path does not.
const HOST_MEMORY: f64 = 0.1;
/// Acceleration while no queue shows: from the first to the second, doubling every round.
const BOOST: (f64, f64) = (0.02, 0.25);
/// The most acceleration near a rate that was found to be the bottleneck's, and how long that is
/// remembered.
const BOOST_NEAR: f64 = 0.03;
const CAPACITY_AGE: Duration = Duration::from_secs(20);
/// Rounds of acceleration that may bring nothing.
const MAX_STALLS: u32 = 2;
/// A queue so many times its target, and so many seconds longer, is far too long.
const STANDS: (f64, f64) = (1.5, 2e-3);
const STANDING_ROUNDS: u32 = 3;
/// Bits of a packet, about.
const PACKET: f64 = 12e3;
/// The packets by which a flow adds to what is in flight in a round trip, at least, while the queue
/// is shorter than its target: TCP's way to find a slow flow's share.
const INCREASE: f64 = 0.5;
/// Packets of a round trip that are sent whatever the delay is, as by a window at its least. Fewer
/// would not tell a queue from a path whose delay jitters.
const LEAST_FLIGHT: f64 = 2.0;
/// Packets that a judgement of loss takes at least.
const LEAST_JUDGED: f64 = 40.0;

/// Fills a path and leaves nearly no queue, at any random loss, and gives way to others.
///
/// The delivery rate d at the receiver is what the bottleneck lets through; while a queue stands it
/// is this flow's share of the bottleneck exactly. With a loss probability p that no rate would
/// avoid, sending at d/(1 − p) keeps the bottleneck just busy; a factor 1 + g·(q* − q)/RTT steers
/// the queueing delay q to its target q*. While no queue shows, the rate grows faster and faster.
///
/// Loss is overload until it is proved to be the path's own: it is, as far as packets that met a
/// short queue are lost as often as others. Loss beyond that bounds what is in flight, as CUBIC's
/// window does. A delay that does not fall when less is sent is the path's, and is accepted; if it
/// goes on to grow, others fill the queue, and the flow keeps up with them as CUBIC does.
/// `docs/rate.md` has the argument.
#[derive(Clone, Debug)]
pub struct Auto {
    rate: f64,
    start: Start,
    /// Whether a feedback has come.
    has_heard: bool,
    delivery: Delivery,
    base: BaseDelay,
    /// The last queueing delay seen, in seconds.
    queue: f64,
    /// Loss that no rate would avoid.
    random_loss: Option<f64>,
    /// Rounds since loss was first measured: until it is tested, that may be the work of a policer
    /// or of a crowd.
    unverified: Option<u32>,
    boost: f64,
    /// Rounds in a row in which acceleration brought nothing.
    stalls: u32,
    /// What was delivered when last a queue stood: the bottleneck's rate, and when that was.
    capacity: Option<(f64, Time)>,
    target: QueueTarget,
    round: Round,
    /// Losses by the queue that packets met.
    ledger: LossLedger,
    /// A bound, since losses showed an overload.
    ceiling: Option<Ceiling>,
    /// What it may have whatever was lost.
    modest: Modest,
    /// The highest delivery rate of late, in bits per second.
    most_delivered: f64,
    /// Flows that fill the queue whatever this one does.
    rival: Rival,
    /// Boxed, like what else lasts for a while only: many a connection never proves who it is.
    test: Option<Box<LossTest>>,
    /// When a test last began or ended.
    tested_at: Time,
    /// How long the last test took: those of a slow path last long, and must not follow each other.
    test_span: Duration,
    /// What was taken for random loss then.
    tested_loss: f64,
    cautious: u32,
    trial: Trial,
    drain: Drain,
    /// Rounds in a row with a queue that was far too long.
    stands: u32,
    /// Until this time the delivery rate counts as no less: a pause of our own making says nothing
    /// about the path.
    hold: Option<(f64, Time)>,
    /// The rate when last a round's worth of feedback confirmed it, reductions of our own apart.
    confirmed: f64,
    /// Rounds of silence since the last feedback.
    silent_rounds: u32,
    /// The rate when the last silence began.
    before_silence: f64,
    /// Silences that ended soon after each other, and when the last did.
    silences: i32,
    spoke_at: Option<Time>,
    /// When the rate was last steered, or left as it is.
    steered_at: Time,
    /// See [`Auto::set_part`].
    part: f64,
    /// See [`Auto::drain_later`].
    later: u64,
    /// See [`Auto::set_bystander`].
    is_bystander: bool,
}

#[derive(Clone, Debug, Default)]
struct Round {
    /// The round ends when this packet is reported.
    end: u64,
    tally: Tally,
    /// The least queueing delay of the round, in seconds.
    queue: Option<f64>,
    limited: bool,
    marked: u64,
    /// What is reported in this round was sent before the rate was raised: it says nothing about
    /// the new rate.
    waiting: bool,
    /// The delivery rate at the end of the last round.
    delivered: f64,
}

impl Default for Auto {
    fn default() -> Self {
        Self::new()
    }
}

impl Auto {
    /// A controller that knows nothing of its path.
    pub fn new() -> Self {
        let start = Start::new();
        Self {
            rate: start.rate(),
            has_heard: false,
            start,
            delivery: Delivery::default(),
            base: BaseDelay::default(),
            queue: 0.0,
            random_loss: None,
            unverified: None,
            boost: 0.0,
            stalls: 0,
            capacity: None,
            target: QueueTarget::new(),
            round: Round::default(),
            ledger: LossLedger::default(),
            ceiling: None,
            modest: Modest::default(),
            most_delivered: 0.0,
            rival: Rival::default(),
            test: None,
            tested_at: Time::ZERO,
            test_span: Duration::ZERO,
            tested_loss: 0.0,
            cautious: 0,
            trial: Trial::default(),
            drain: Drain::default(),
            stands: 0,
            hold: None,
            confirmed: 0.0,
            silent_rounds: 0,
            before_silence: 0.0,
            silences: 0,
            spoke_at: None,
            steered_at: Time::ZERO,
            part: 1.0,
            later: 0,
            is_bystander: false,
        }
    }

    /// The pacing rate.
    pub fn rate(&self) -> Rate {
        if let Some((rate, _)) = self.rival.pace() {
            return rate;
        }
        let rate = Rate::from_bps(self.rate as u64);
        self.ceiling.as_ref().map_or(rate, |ceiling| rate.min(ceiling.rate()))
    }

    /// Bytes allowed in flight: half a round trip more than the rate fills, so that an outage costs
    /// no more, and a whole one while each round is faster than the last.
    pub fn allowance(&self, rtt: Duration) -> u64 {
        if let Some((_, bytes)) = self.rival.pace() {
            return bytes;
        }
        let rounds = if self.start.is_on() { 2.0 } else { 1.5 };
        let fill = self.rate / 8.0 * (rtt.as_secs_f64() * rounds + 0.010);
        let is_known = self.has_heard || self.start.hinted().is_some();
        let most = if is_known { (fill as u64).saturating_add(24 * 1500) } else { FIRST_FLIGHT };
        self.ceiling.as_ref().map_or(most, |ceiling| most.min(ceiling.bytes()))
    }

    /// A few packets' dispersion says how fast the bottleneck is: begin at half of that. Only the
    /// first hint counts; whether this one does.
    pub fn on_capacity_hint(&mut self, capacity: Rate) -> bool {
        self.trial.knows_line(capacity.as_bps() as f64);
        let taken = self.start.on_capacity_hint(capacity);
        if taken {
            self.rate = self.start.rate();
        }
        taken
    }

    /// The path carried this rate not long ago: begin with half of it, since others may have come,
    /// and find out the rest.
    pub fn on_known_rate(&mut self, rate: Rate) {
        self.trial.knows_line(rate.as_bps() as f64);
        self.begin_at(rate.scale(OF_KNOWN).min(Rate::from_bps(MOST_KNOWN)));
    }

    /// Begins with this rate, and finds out the rest.
    pub(super) fn begin_at(&mut self, rate: Rate) {
        self.rate = (rate.as_bps() as f64).max(MIN_RATE);
        self.start.begin_at(self.rate);
    }

    /// The rate when last a round's worth of feedback confirmed it, reductions of our own apart.
    pub fn confirmed(&self) -> Option<Rate> {
        (self.confirmed > 0.0).then(|| Rate::from_bps(self.confirmed as u64))
    }

    /// What it does at present.
    pub const fn state(&self) -> RateState {
        if self.rival.is_on() {
            RateState::Friendly
        } else if self.ceiling.is_some() {
            RateState::Bounded
        } else if self.start.is_on() {
            RateState::Starting
        } else {
            RateState::Filling
        }
    }

    /// What of the loss is the path's own, or is supposed to be in a trial, once losses bound the
    /// bytes in flight.
    pub fn proved_loss(&self) -> Option<f64> {
        let is_bounded = self.ceiling.is_some() || self.trial.is_on();
        is_bounded.then(|| self.random_loss.or_else(|| self.ledger.proved()).unwrap_or(0.0))
    }

    /// Whether it has found out what the path carries.
    pub const fn has_started(&self) -> bool {
        !self.start.is_on()
    }

    /// Waits for so many hundredths longer than others do before it empties the queue on its own
    /// account.
    pub(super) const fn drain_later(&mut self, hundredths: u64) {
        self.later = hundredths;
    }

    /// See [`RateController::set_part`](super::RateController::set_part).
    pub fn set_part(&mut self, part: f64) {
        self.part = part;
        self.rival.set_part(part);
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.set_part(part);
        }
    }

    /// A round trip passed without feedback.
    pub fn on_silence(&mut self) {
        if self.silent_rounds == 0 {
            self.before_silence = self.rate().as_bps() as f64;
        }
        self.rate = (self.rate / 2.0).max(MIN_RATE);
        self.rival.on_silence();
        self.silent_rounds += 1;
        if self.test.take().is_some() {
            // What it was to tell is still not known.
            self.tested_at = Time::ZERO;
        }
    }

    /// Takes a feedback.
    pub fn on_feedback(&mut self, sample: &FeedbackSummary) {
        if !core::mem::replace(&mut self.has_heard, true) && self.start.is_on() {
            let first = FIRST_FLIGHT as f64 * 8.0 / sample.srtt.as_secs_f64().max(1e-3);
            self.rate = self.rate.min(first.max(self.start.hinted().unwrap_or(0.0)));
        }
        if core::mem::take(&mut self.silent_rounds) > 0 {
            // The path is tried at what it carried, paced: an outage says nothing about its rate.
            let part = self.end_silence(sample);
            if self.confirmed > 0.0 {
                self.rate = self.rate.max(self.confirmed);
            } else {
                // Little was known before the silence: go on to find out.
                self.rate = self.rate.max(part * self.before_silence);
                self.start.begin();
            }
            self.delivery.restart();
            self.round = Round { end: sample.next_number, ..Round::default() };
            self.boost = BOOST.1 / 2.0;
            return;
        }
        self.modest.on_feedback(sample);
        self.take_delays(sample);
        // What this feedback tells was still sent with the rate that it may end.
        let reduced = self.is_reduced();
        let window = delivery_window(sample);
        if sample.limited {
            // What arrives while less is sent than allowed says nothing about what the path could
            // carry.
            self.delivery.pause();
        } else if sample.late {
            self.delivery.skip();
        }
        self.delivery.observe(sample.received_at, sample.received_bytes, window);
        self.round.limited |= sample.limited;
        self.round.marked += sample.marked;
        for (number, received) in &sample.decided {
            self.round.tally.add(*received);
            if let Some(test) = &mut self.test {
                test.decided(*number, *received);
            }
        }
        if let Some(train) = sample.train {
            self.trial.knows_line(train.as_bps() as f64);
            self.on_train(sample, train.as_bps() as f64);
        }
        self.weigh_losses(sample);
        self.continue_trial(sample);
        self.continue_test(sample);
        if sample.largest >= self.round.end {
            self.end_round(sample, reduced);
        }
        self.steer(sample);
    }

    /// A silence is over. The part of what was known that is begun with.
    fn end_silence(&mut self, sample: &FeedbackSummary) -> f64 {
        let last = self.spoke_at.replace(sample.now);
        let lasts = sample.at_least(CLOSE_SILENCES);
        let is_close = last.is_some_and(|last| sample.now.since(last) < lasts);
        self.silences = if is_close { self.silences.saturating_add(1) } else { 0 };
        libm::ldexp(1.0, -self.silences)
    }

    fn on_train(&mut self, sample: &FeedbackSummary, capacity: f64) {
        if !self.start.is_on() {
            return;
        }
        let arrival = self.start.on_train(sample.now, self.rate, capacity);
        self.rate = self.sending(arrival);
        self.capacity = Some((capacity, sample.now));
        self.hold_delivered(sample, arrival);
        self.round = Round { end: sample.next_number, waiting: true, ..Round::default() };
        self.boost = BOOST.0;
    }

    /// The rate at which bytes arrive, or did before a reduction of our own.
    fn delivered(&self) -> Option<f64> {
        let held = self.hold.map(|(delivered, _)| delivered);
        match (self.delivery.rate(), held) {
            (Some(measured), Some(held)) => Some(measured.max(held)),
            (measured, held) => measured.or(held),
        }
    }

    /// Whether less is sent for a moment than the path carries, to test its loss or to empty its
    /// queue.
    fn is_reduced(&self) -> bool {
        self.test.is_some() || self.drain.is_on(self.steered_at)
    }

    /// What the flow has of the bottleneck, in bits per second.
    fn share(&self) -> f64 {
        self.delivered().unwrap_or(self.rate)
    }

    fn queue_target(&self) -> f64 {
        self.target.at(self.share() / self.part)
    }

    /// The rate at which packets that survive the path's own loss arrive with rate `arrival`.
    fn sending(&self, arrival: f64) -> f64 {
        let loss = self.random_loss.or_else(|| self.ledger.proved()).unwrap_or(0.0);
        arrival / (1.0 - loss)
    }

    /// The next feedbacks tell of a reduction of our own: until it has passed, go by what was
    /// delivered before.
    fn hold_delivered(&mut self, sample: &FeedbackSummary, delivered: f64) {
        let window = sample.min_rtt / 2 + MIN_DELIVERY_WINDOW;
        self.hold = Some((delivered, sample.now + sample.srtt + window));
    }

    /// Judges a round; `reduced` if the rate was, by ourselves.
    fn end_round(&mut self, sample: &FeedbackSummary, reduced: bool) {
        let round = core::mem::replace(
            &mut self.round,
            Round {
                end: sample.next_number,
                delivered: self.delivery.rate().unwrap_or(0.0),
                ..Round::default()
            },
        );
        let loss = round.tally.loss();
        let total = round.tally.total().max(1) as f64;
        if total >= LEAST_JUDGED && !round.limited && !reduced {
            self.confirmed = self.rate;
        }
        let queue = round.queue.unwrap_or(self.queue);
        self.target.on_round(sample, queue, self.ceiling.is_none());
        let target = self.queue_target();
        if !round.limited && !reduced {
            self.rival.on_round(queue, target, self.ceiling.is_none());
        }
        let stands = queue > (STANDS.0 * target).max(target + STANDS.1);
        // A doubt makes it so many at once, and is kept for a round.
        self.stands = if stands || self.stands == STANDING_ROUNDS { self.stands + 1 } else { 0 };
        if queue > target / 2.0 {
            self.capacity = self.delivery.rate().map(|rate| (rate, sample.now));
        }
        self.judge_round(sample);
        if self.test.is_some() {
            return;
        }
        self.cautious = self.cautious.saturating_sub(1);
        if round.marked > 0 {
            let share = (round.marked as f64 / total).min(1.0);
            self.rate *= 1.0 - share / 2.0;
            self.boost = 0.0;
            self.start.end();
        } else if queue > target / 2.0 || self.cautious > 0 {
            self.boost = 0.0;
            self.start.end();
        } else if round.limited {
            self.boost = self.boost.min(BOOST.0);
        } else if self.start.is_on() && round.waiting {
            self.round.tally = Tally::default();
        } else if self.start.is_on() {
            let grown = self.start.grow(Growth {
                now: sample.now,
                rate: self.rate,
                delivered: self.round.delivered,
                delivered_before: round.delivered,
                loss,
                known_loss: self.random_loss,
                window: self.delivery.is_current().then(|| delivery_window(sample)),
            });
            self.rate = self.trial.bound(self.rate, grown);
        } else {
            // Near the rate at which a queue stood not long ago, small steps; far from it, ever
            // larger ones.
            let delivered = self.delivered().unwrap_or(0.0);
            let judged = total >= LEAST_JUDGED && self.boost > BOOST_NEAR;
            let stalled = judged && delivered < 1.02 * round.delivered;
            self.stalls = if stalled { self.stalls + 1 } else { 0 };
            if self.stalls >= MAX_STALLS {
                // More was sent and no more came out: a queue too short to be seen.
                self.capacity = Some((delivered, sample.now));
            }
            let near = self.capacity.is_some_and(|(rate, at)| {
                sample.now.since(at) < CAPACITY_AGE && (0.9..1.1).contains(&(delivered / rate))
            });
            self.boost = (self.boost * 2.0).clamp(BOOST.0, if near { BOOST_NEAR } else { BOOST.1 });
        }
    }

    /// By how much more or less than what is delivered should be sent, for the queue to come to its
    /// target.
    fn correction(&self, sample: &FeedbackSummary, delivered: f64) -> f64 {
        let control_time = control_time(sample);
        let target = self.queue_target();
        if !self.is_far_above(target) {
            return GAIN * (target - self.queue) / control_time;
        }
        // The delay of so long a queue is told when it is over. By Little's law, what is in flight
        // tells the delay that a packet sent now will meet; too much of it while losses at its end
        // are not known, hence gently.
        let coming = sample.in_flight as f64 * 8.0 / delivered - sample.min_rtt.as_secs_f64();
        GAIN_OF_LONG_QUEUE * (target - coming.clamp(0.0, self.queue)) / control_time
    }

    fn is_far_above(&self, target: f64) -> bool {
        self.queue > LONG_QUEUE.max(2.0 * target)
    }

    fn steer(&mut self, sample: &FeedbackSummary) {
        let target = self.queue_target();
        let now = sample.now;
        let passed = now.since(core::mem::replace(&mut self.steered_at, now));
        self.start.on_queue(self.queue, target, QueueTarget::unbounded(self.rate));
        self.hold = self.hold.filter(|(_, until)| now < *until);
        if self.test.is_some() || self.start.is_on() {
            return;
        }
        if self.is_far_above(target)
            && let Some(delivered) = self.delivery.rate()
        {
            // While such a queue is emptied, less is sent than the bottleneck carries: go back to
            // that at once.
            self.hold_delivered(sample, delivered);
        }
        let Some(delivered) = self.delivered() else { return };
        let limited = sample.limited || self.round.limited;
        if limited && self.queue < target {
            return;
        }
        if self.drain.is_on(now) || self.rival.is_on() {
            return;
        }
        let control_time = control_time(sample);
        if !self.is_bystander
            && let Some(shortest) = self.due_drain(sample, target)
        {
            self.stands = 0;
            let bounds = (shortest * control_time, control_time);
            let span = self.drain.begin(sample, self.queue, bounds);
            self.rate = self.sending(delivered) * drain::SHARE;
            self.hold_delivered(sample, delivered);
            self.hold = self.hold.map(|(rate, until)| (rate, until + span));
            return;
        }
        let correction = self.correction(sample, delivered);
        let growth = if self.cautious > 0 { correction.min(0.0) } else { correction + self.boost };
        let factor = (1.0 + growth).clamp(0.25, 1.0 + BOOST.1);
        let rtt = sample.srtt.max(sample.min_rtt).as_secs_f64().max(1e-3);
        let packet = PACKET.min(self.modest.packet() * 8.0);
        let least = (LEAST_FLIGHT * self.part * packet / rtt).max(MIN_RATE);
        let rate = self.sending(delivered * factor).max(least);
        let increase = INCREASE * self.part * PACKET / rtt;
        let more = (self.rate + increase * passed.as_secs_f64() / rtt)
            .min(1.5 * self.sending(delivered) + increase);
        let rate = if growth > 0.0 { rate.max(more) } else { rate };
        self.rate = if self.waits_for_hosts(sample, target) {
            rate.max(self.rate * (1.0 - passed.as_secs_f64() / HOST_MEMORY))
        } else {
            rate
        };
    }
}

/// The time over which the delivery rate is measured.
fn delivery_window(sample: &FeedbackSummary) -> Duration {
    (sample.min_rtt / 2).max(MIN_DELIVERY_WINDOW).max(sample.jitter * 2)
}

/// The time, in seconds, in which the queue is steered.
fn control_time(sample: &FeedbackSummary) -> f64 {
    sample.min_rtt.as_secs_f64().max(MIN_CONTROL_TIME)
}
