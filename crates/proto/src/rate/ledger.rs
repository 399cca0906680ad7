use fontis_base::{Duration, Time};

use super::contrast::Contrast;
use super::fading::Fading;
use super::feedback::FeedbackSummary;
use super::floor::Floor;

/// Packets after which half of what calm packets told has been forgotten.
const MEMORY: f64 = 2500.0;
/// The same in time, and in round trips, at least: slow flows see few calm packets.
const HALF_LIFE: (Duration, u64) = (Duration::from_secs(15), 60);
/// No packet is calm that met a longer queue, in seconds. Active queue management drops packets of
/// short queues as well, but none of a queue below its own target: 5 ms for CoDel (RFC 8289), half
/// of 15 ms for PIE (RFC 8033).
pub(super) const LONGEST_CALM: f64 = 4e-3;
/// The same for what shows that less is lost now.
const SHORT_MEMORY: f64 = 150.0;
/// What the last lost packet counts of the queue that lost packets met.
const RECENT_LOSS: f64 = 0.08;
/// The same of what only the last few count for.
const LATELY: f64 = 0.25;
/// Calm packets that a statement takes.
const LEAST: f64 = 40.0;
/// Calm packets that confirm what was proved.
const LEAST_FRESH: f64 = 10.0;
/// The queue's extent is that of the last window or two, each this long at least, and this many
/// round trips.
const EXTENT: (Duration, u64) = (Duration::from_millis(500), 5);
/// Without calm packets for twice this time, and so many round trips, half of what they proved is
/// forgotten; so it is without a queue that shows for once this time.
const PERIOD: (Duration, u64) = (Duration::from_millis(1500), 12);
/// The most that is ever taken for a path's own loss.
const MOST: f64 = 0.4;
/// The same while a delay that did not fall was taken for the path's: a queue may be full all the
/// time. So long it is not believed.
const MOST_DISTRUSTED: f64 = 0.02;
const DISTRUST: (Duration, u64) = (Duration::from_secs(6), 50);
/// So long after the path's delay was found to be less than it was taken for, others fill a queue
/// that seemed to be the path: until all have sent less at once, no loss is taken for its own.
const DOUBT: (Duration, u64) = (Duration::from_secs(30), 90);
/// So many times the jitter the longest queue is taken to be shorter.
const JITTERS: f64 = 2.0;
/// A flow with fewer packets in a round trip is too slow to test its loss in a few of them. Its
/// share of a crowd may be small, and then its own tests say nothing.
const FAST: f64 = 250.0;
/// The most that such a flow takes for the path's own loss before it has seen that stay while the
/// queue fell, and the packets in a round trip for each unit of loss within these bounds.
const MOST_SLOW: (f64, f64) = (0.05, 0.15);
const SLOW: f64 = 700.0;
/// A queue of fewer packets of one's own says nothing: others make it, or bursts do. So long one
/// that was seen counts.
const OWN_QUEUE: f64 = 8.0;
/// The seconds in which half of what was in a round trip before is forgotten.
const WINDOW_MEMORY: f64 = 3.0;
/// Calm packets sent while less was sent on purpose: what a statement takes, and after how many, or
/// after half a round trip's if those are more, half of what they told has been forgotten.
const LEAST_EASED: f64 = 16.0;
const EASED_MEMORY: f64 = 60.0;
/// So many times as many will not be forgotten soon.
const LASTING: f64 = 1.5;
/// The excesses over the proved loss that two tests for overload look for: at least, and as a
/// share. What finds a slight one is slow to find a great one.
const EXCESSES: [(f64, f64); 2] = [(0.02, 0.25), (0.1, 1.5)];
/// By how much more than the proved loss must be lost to be worth a trial: at least, and as a
/// share.
const UNPROVED: (f64, f64) = (0.004, 0.25);
/// A queue of fewer packets is none: those of the flow's own bursts make it.
const SHORTEST: f64 = 1.5;
/// One of so many packets at times, and of all that the flow sends in a round trip, is not its own,
/// and no short buffer, in which bursts are lost between two packets that meet nothing.
const LONG: f64 = 20.0;
/// A loss that no path has by itself: a third test looks for so much, which sees it sooner. It
/// supposes that losses come in runs of this weight at least, lest a few by chance are enough.
const HEAVY: (f64, f64) = (0.6, 6.0);
/// The proved loss that this test supposes at least.
const FLOOR: f64 = 0.0005;
/// How much likelier overload must make the losses than the proved loss does, as a logarithm; the
/// second number is the weight of the losses that a round trip leads to expect.
const EVIDENCE: f64 = 4.0;
const OCCASIONS: f64 = 10.0;
/// The longest mean run of losses that this test allows for.
const LONGEST_RUN: f64 = 20.0;

/// Losses of a path, sorted by the queue that the packets met.
///
/// A full buffer drops packets whose neighbours waited long. A path that loses at random drops
/// packets whose neighbours did not wait as often. So the loss among packets that met less than
/// half of the longest recent queue, and no longer one than active queue management leaves alone,
/// is the only one that is taken for the path's own.
#[derive(Clone, Debug, Default)]
pub(super) struct LossLedger {
    /// The longest queueing delays of the present window and of the one before, in seconds.
    longest: [f64; 2],
    /// The longest that stood for longer than the path holds a packet back, as for `longest`.
    standing: [f64; 2],
    floor: Floor,
    window_began: Time,
    calm: Fading,
    /// The same of few packets, to see that less is lost now.
    recent: Fading,
    /// Packets sent while the flow sends less on purpose, and those of earlier times in which all
    /// who filled the queue did.
    easing: Fading,
    eased: Fading,
    /// Boxed, because many a connection never proves who it is.
    contrast: Option<Box<Contrast>>,
    /// The most packets in a round trip of late.
    window: f64,
    window_at: Time,
    /// Calm packets since then.
    fresh: f64,
    /// When calm packets last came.
    calm_at: Time,
    /// When a queue was last seen to grow and to shrink.
    visible_at: Time,
    halved_at: Time,
    may_pause: bool,
    /// Until then the path's delay is only what it was taken for when a queue did not fall.
    distrusted_until: Time,
    /// Boxed, because many a connection never proves who it is.
    doubt: Option<Box<Doubt>>,
    /// When the first packets were told of.
    began_at: Option<Time>,
    /// Packets wait for other reasons than a queue.
    jitters: bool,
    /// Until this time a queue is known to have stood that was far longer than those waits: a
    /// buffer that overflows shows all the same. A flow that has just begun is not asked.
    shows_until: Time,
    /// Until this time the flow is known to fill a queue itself, or has just begun.
    owns_until: Time,
    /// Evidence for a slight overload, a great one and a heavy one, since there was last none
    /// (Page's test).
    evidence: [f64; 3],
    /// The queueing delay that lost packets met of late, in seconds.
    met_by_lost: Option<f64>,
    /// The same of the last few.
    met_lately: f64,
    /// When what calm packets told was last forgotten a little.
    faded_at: Time,
    /// See [`LossLedger::suppose`].
    supposed: Option<Supposed>,
    /// By how much more evidence shows overload.
    caution: f64,
}

/// The path's delay was less than it was taken for.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    until: Time,
    /// By so many seconds.
    less: f64,
}

/// A loss that is taken for the path's own on trial.
#[derive(Clone, Copy, Debug)]
struct Supposed {
    loss: f64,
    /// The most that it may be.
    bound: f64,
    /// What calm packets had told before.
    before: [Fading; 3],
}

/// A loss beyond what is proved, of packets that meet no queue of the flow's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unproved {
    /// They meet none at all.
    NoQueue,
    /// Others keep one, but what meets it when it is short is lost as often.
    OfOthers,
}

impl LossLedger {
    /// Takes a feedback of a flow that has `share` packets of the bottleneck in a second.
    /// `waiting` tells by how much a one-way delay exceeds the path's, in seconds, and `is_eased`
    /// whether a packet was sent while less was sent on purpose.
    pub(super) fn observe(
        &mut self,
        sample: &FeedbackSummary,
        share: f64,
        waiting: impl Fn(i64) -> f64,
        is_eased: impl Fn(u64) -> bool,
    ) {
        let window = EXTENT.0.max(sample.srtt * EXTENT.1);
        if sample.now.since(self.window_began) > window {
            self.longest = [0.0, self.longest[0]];
            self.standing = [0.0, self.standing[0]];
            self.window_began = sample.now;
        }
        // Delays count as a queue beyond the jitter.
        let jitter = sample.jitter.as_secs_f64();
        let queueing = |delay| (waiting(delay) - jitter).max(0.0);
        let delays = &sample.one_way_ns;
        if let Some(longest) = delays.iter().map(|(_, delay)| *delay).max() {
            self.longest[0] = self.longest[0].max(queueing(longest));
        }
        if let Some(least) = self.floor.observe(sample) {
            self.standing[0] = self.standing[0].max(waiting(least));
        }
        let until = sample.now + sample.at_least(DISTRUST);
        if self.began_at.is_none() {
            self.began_at = Some(sample.now);
            (self.owns_until, self.shows_until) = (until, until);
        }
        if self.longest[0].max(self.longest[1]) * share >= OWN_QUEUE {
            self.owns_until = until;
        }
        let hid = self.hides_queue();
        let limit = self.longest_calm(sample, jitter, hid);
        let mut nearest = Nearest { delays, at: delays.len() };
        let (mut packets, mut lost) = (0.0, 0.0);
        let contrast = self.contrast.get_or_insert_default();
        for (number, received) in &sample.decided {
            let Some(delay) = nearest.delay(*number) else { continue };
            if !received {
                let queue = queueing(delay);
                let met = self.met_by_lost.get_or_insert(queue);
                *met += (queue - *met) * RECENT_LOSS;
                self.met_lately += (queue - self.met_lately) * LATELY;
            }
            let is_calm = waiting(delay) <= limit;
            contrast.add(sample, is_calm, *received);
            if is_calm {
                if is_eased(*number) {
                    self.easing.packets += 1.0;
                    self.easing.lost += f64::from(!received);
                }
                packets += 1.0;
                lost += f64::from(!received);
            }
        }
        let passed = sample.now.since(core::mem::replace(&mut self.faded_at, sample.now));
        let lives = passed.as_secs_f64() / sample.at_least(HALF_LIFE).as_secs_f64();
        self.calm.fade(lives);
        self.eased.fade(lives);
        if packets > 0.0 {
            self.calm.add(packets, lost, MEMORY);
            self.recent.add(packets, lost, SHORT_MEMORY);
            let (known, now) = (self.calm.loss(), self.recent.loss());
            let run = (2.0 * sample.mean_burst - 1.0).max(1.0);
            let deviation = libm::sqrt(known * (1.0 - known) * run / self.recent.packets);
            if self.recent.packets > SHORT_MEMORY && now < known - 4.5 * deviation {
                self.calm = self.recent;
            }
            if self.calm.packets >= LEAST && self.calm.loss() > MOST + 0.05 {
                // So much is no path's own loss: nothing is proved.
                (self.calm, self.recent) = (Fading::default(), Fading::default());
            }
            self.fresh += packets;
            if self.fresh >= LEAST_FRESH {
                self.fresh = 0.0;
                self.calm_at = sample.now;
            }
        }
        self.jitters = jitter > 0.0;
        if self.doubt.as_ref().is_some_and(|doubt| sample.now >= doubt.until || doubt.is_by(jitter))
        {
            self.doubt = None;
        }
        if hid && !self.hides_queue() {
            // What seemed calm may have met a queue as long as the jitter.
            self.refute(MOST_DISTRUSTED);
            let keep = (LEAST / self.calm.packets.max(1.0)).min(1.0);
            self.calm.packets *= keep;
            self.calm.lost *= keep;
        }
        let since = |at: Time| sample.now.since(at.max(self.halved_at));
        let period = sample.at_least(PERIOD);
        if since(self.calm_at) > period * 2 || since(self.visible_at) > period {
            self.halve();
            self.halved_at = sample.now;
        }
    }

    /// Others bound what is sent: that no queue of the flow's own shows says nothing, and what was
    /// proved before is not forgotten for it.
    pub(super) fn stand_by(&mut self, now: Time) {
        let passed = now.since(self.faded_at);
        for at in [&mut self.calm_at, &mut self.visible_at, &mut self.halved_at] {
            *at += passed;
        }
        if self.began_at.is_some() {
            self.owns_until += passed;
            self.shows_until += passed;
        }
    }

    /// Whether packets wait for other reasons than a queue, and none stood of late that is far
    /// longer than those waits.
    fn hides_queue(&self) -> bool {
        self.jitters && self.faded_at >= self.shows_until
    }

    /// How long a packet may have waited to count as calm, in seconds: half of the longest queue at
    /// most, and no longer than in one that is managed. Notes whether a queue shows; `hid` tells
    /// whether none did.
    fn longest_calm(&mut self, sample: &FeedbackSummary, jitter: f64, hid: bool) -> f64 {
        // What shows as a queue q beyond the jitter j has met q + j at most.
        let queue = (self.extent() - JITTERS * jitter).max(0.0);
        let limit = (queue / 2.0).min(LONGEST_CALM - jitter);
        let shows = queue > jitter && limit > 0.0;
        let standing = self.standing[0].max(self.standing[1]);
        let stands = jitter > 0.0 && standing > jitter;
        if shows || stands {
            self.shows_until = sample.now + sample.at_least(DISTRUST);
        }
        if stands && !shows {
            // Whatever held packets back, these were not, and met no more of a queue than this.
            return (standing / 2.0).min(LONGEST_CALM);
        }
        let limit = limit.max(0.0) + jitter;
        if hid { limit } else { limit.min(LONGEST_CALM) }
    }

    /// The path's delay is less than was known by so many seconds, so that what seemed calm was
    /// not. What was lost when all sent less stays proved.
    pub(super) fn disprove(&mut self, sample: &FeedbackSummary, less: f64) {
        let before = self.doubt.take().map_or(0.0, |doubt| doubt.less);
        let doubt = Doubt { until: sample.now + sample.at_least(DOUBT), less: before.max(less) };
        // Of many receivers one or another finds a lesser delay by chance, and so does a flow of
        // its first packets.
        let is_alone = self.caution <= 0.0;
        let started =
            self.began_at.is_some_and(|at| sample.now.since(at) > sample.at_least(PERIOD));
        let is_told = self.calm.packets >= LEAST || started;
        if is_alone && is_told && !doubt.is_by(sample.jitter.as_secs_f64()) {
            self.doubt = Some(Box::new(doubt));
        }
        self.restart_contrast();
        if !self.is_eased() {
            (self.calm, self.recent) = (Fading::default(), Fading::default());
        }
    }

    /// Half of what was proved is forgotten.
    fn halve(&mut self) {
        self.calm.lost /= 2.0;
        self.recent.lost /= 2.0;
    }

    /// The flow gives way: no queue is expected for so long, once for each time that one showed.
    pub(super) fn gives_way(&mut self, now: Time, time: Duration) {
        if core::mem::take(&mut self.may_pause) {
            self.visible_at = self.visible_at.max(now + time);
        }
    }

    /// A queue was seen, or more was delivered than before: the bottleneck is not one that is full
    /// all the time.
    pub(super) fn sees_queue(&mut self, now: Time) {
        self.visible_at = self.visible_at.max(now);
        self.may_pause = true;
    }

    /// The longest recent queueing delay, in seconds.
    pub(super) fn extent(&self) -> f64 {
        self.longest[0].max(self.longest[1])
    }

    /// The queue that is too long, in seconds: a full buffer's drops meet the longest, and those of
    /// active queue management a shorter one. None if packets of a flow that fills a queue itself
    /// met so short a one that no buffer has dropped them; at the bottleneck a packet takes so many
    /// seconds, if that is known.
    pub(super) fn too_long(&self, packet: Option<f64>) -> Option<f64> {
        let queue = self.met_by_lost.unwrap_or(f64::INFINITY).min(self.extent());
        let owns = self.faded_at <= self.owns_until;
        let is_sure = owns && !self.is_distrusted() && !self.hides_queue();
        let short = packet.filter(|_| is_sure).map_or(0.0, |packet| OWN_QUEUE * packet);
        (queue >= short.min(LONGEST_CALM / 2.0)).then_some(queue)
    }

    /// Whether it is time for calm packets.
    pub(super) fn wants_calm(&self, sample: &FeedbackSummary) -> bool {
        sample.now.since(self.calm_at) > sample.at_least(PERIOD)
    }

    /// The loss among calm packets, once there are enough of them.
    pub(super) fn proved(&self) -> Option<f64> {
        if let Some(supposed) = self.supposed {
            return Some(supposed.loss);
        }
        (self.calm.packets >= LEAST).then(|| self.calm.loss().min(self.most()))
    }

    /// For a trial takes this loss, and the most that it may be, for the path's own.
    pub(super) fn suppose(&mut self, loss: f64, bound: f64) {
        let before = [&mut self.calm, &mut self.recent, &mut self.eased].map(core::mem::take);
        self.supposed = Some(Supposed { loss: loss.min(MOST), bound: bound.min(MOST), before });
        self.evidence = [0.0; 3];
    }

    /// What a trial has shown so far: whether packets are lost as often while all who fill the
    /// queue send less.
    pub(super) fn shows_own_loss(&self) -> Option<bool> {
        let Supposed { loss, .. } = self.supposed?;
        if !self.is_eased() || self.calm.packets < LEAST {
            return None;
        }
        let stays = self.eased.loss() * 2.0 > loss && self.calm.loss() * 2.0 > loss;
        (stays || self.eased.packets >= LEAST).then_some(stays)
    }

    /// A trial is over. If it has failed, what was known before it is known again.
    pub(super) fn end_trial(&mut self, has_failed: bool) {
        self.evidence = [0.0; 3];
        if let Some(Supposed { before, .. }) = self.supposed.take()
            && has_failed
        {
            [self.calm, self.recent, self.eased] = before;
        }
    }

    /// Whether what was lost while all sent less is about to be forgotten, by a flow too slow to
    /// have so much without that.
    pub(super) fn wants_easing(&self) -> bool {
        self.is_eased()
            && self.is_slow()
            && self.eased.packets < LASTING * LEAST_EASED
            && self.calm.loss() > self.window / SLOW
    }

    /// Whether enough packets were sent while all who filled the queue sent less.
    fn is_eased(&self) -> bool {
        self.eased.packets >= LEAST_EASED
    }

    /// Whether so high a loss is more than is proved, although the packets that are lost meet no
    /// queue of the flow's own. At the bottleneck a packet takes so many seconds.
    pub(super) fn unproved(&self, loss: f64, packet: f64) -> Option<Unproved> {
        let proved = self.calm.loss().min(self.most());
        let is_more = loss > proved + UNPROVED.0.max(UNPROVED.1 * proved);
        if !is_more || self.hides_queue() || self.is_eased() {
            return None;
        }
        let meets_none = self.met_lately < (SHORTEST * packet).min(LONGEST_CALM / 2.0);
        if meets_none && self.doubt.is_none() {
            return Some(Unproved::NoQueue);
        }
        let is_trusted = !self.is_distrusted() && self.extent() > (LONG + self.window) * packet;
        let is_alike = self.contrast.as_ref().is_some_and(|contrast| contrast.is_alike(loss));
        (is_trusted && is_alike).then_some(Unproved::OfOthers)
    }

    /// The flow makes a queue of its own, or one stands: what is lost tells nothing of others'.
    pub(super) fn restart_contrast(&mut self) {
        if let Some(contrast) = &mut self.contrast {
            contrast.restart();
        }
    }

    /// The standard deviation of the loss among calm packets.
    pub(super) fn deviation(&self) -> f64 {
        let loss = self.calm.loss().min(1.0);
        libm::sqrt(loss * (1.0 - loss) / self.calm.packets.max(1.0))
    }

    /// The path's delay is only what it was taken for when a queue did not fall; or that is over.
    pub(super) fn distrust(&mut self, sample: Option<&FeedbackSummary>) {
        self.distrusted_until =
            sample.map_or(Time::ZERO, |sample| sample.now + sample.at_least(DISTRUST));
        if sample.is_some() {
            self.restart_contrast();
        }
    }

    fn is_distrusted(&self) -> bool {
        self.faded_at < self.distrusted_until
    }

    fn most(&self) -> f64 {
        if self.is_distrusted() || self.hides_queue() {
            MOST_DISTRUSTED
        } else if self.is_eased() {
            let Fading { packets, lost } = self.eased;
            ((lost + 3.0 + 2.5 * libm::sqrt(lost)) / packets).clamp(MOST_DISTRUSTED, MOST)
        } else if self.doubt.is_some() {
            FLOOR
        } else if self.faded_at > self.owns_until {
            MOST_DISTRUSTED
        } else if self.is_slow() {
            let least = if self.jitters { MOST_DISTRUSTED } else { MOST_SLOW.0 };
            (self.window / SLOW).clamp(least, MOST_SLOW.1)
        } else {
            MOST
        }
    }

    /// The time in which less was sent is over. If the queue `fell`, all who filled it sent less:
    /// what was lost all the same is the path's own.
    pub(super) fn end_easing(&mut self, fell: bool) {
        let Fading { packets, lost } = core::mem::take(&mut self.easing);
        if fell && packets > 0.0 {
            self.eased.add(packets, lost, EASED_MEMORY.max(self.window / 2.0));
        }
    }

    /// So many packets are sent in a round trip.
    pub(super) fn set_window(&mut self, now: Time, packets: f64) {
        let passed = now.since(core::mem::replace(&mut self.window_at, now)).as_secs_f64();
        self.window = packets.max(self.window * libm::exp2(-passed / WINDOW_MEMORY));
    }

    /// Whether the flow is too slow to test its loss in a few round trips.
    pub(super) fn is_slow(&self) -> bool {
        self.window < FAST
    }

    /// So many look for overload, and each of them is heard.
    pub(super) fn set_watchers(&mut self, watchers: u32) {
        self.caution = libm::log(f64::from(watchers.max(1)));
    }

    /// The calm loss was found to be less.
    pub(super) fn refute(&mut self, loss: f64) {
        self.calm.lost = self.calm.lost.min(self.calm.packets * loss);
    }

    /// Weighs losses of packets from number `first` on: whether they are more than what was proved
    /// explains. Then the next weighing begins anew.
    pub(super) fn shows_overload(&mut self, sample: &FeedbackSummary, first: u64) -> bool {
        let proved = match self.supposed {
            Some(supposed) => supposed.bound,
            None => self.calm.bound().min(self.most()),
        };
        let proved = proved.max(FLOOR);
        let [slight, great] =
            EXCESSES.map(|(least, share)| (proved + least.max(share * proved)).min(0.95));
        let run = (2.0 * sample.mean_burst - 1.0).clamp(1.0, LONGEST_RUN);
        let tests = [(slight, run), (great, run), (slight.max(HEAVY.0), run.max(HEAVY.1))];
        for (evidence, (overload, run)) in self.evidence.iter_mut().zip(tests) {
            let of_lost = libm::log(overload / proved) / run;
            let of_received = libm::log((1.0 - overload) / (1.0 - proved)) / run;
            for (_, received) in sample.decided.iter().rev().filter(|(number, _)| *number >= first)
            {
                let step = if *received { of_received } else { of_lost };
                *evidence = (*evidence + step).max(0.0);
            }
        }
        // Where more is lost there are more occasions for chance to look like evidence.
        let enough = EVIDENCE + self.caution + libm::log1p(OCCASIONS * proved * self.window);
        let shows = self.evidence.iter().any(|evidence| *evidence > enough);
        if shows {
            self.evidence = [0.0; 3];
        }
        shows
    }
}

impl Doubt {
    /// Whether a path whose delay differs so much by itself explains it, in seconds.
    fn is_by(&self, jitter: f64) -> bool {
        self.less <= LONGEST_CALM + JITTERS * jitter
    }
}

/// Looks up the one-way delay of the packets nearest to a number; numbers must fall.
struct Nearest<'a> {
    delays: &'a [(u64, i64)],
    at: usize,
}

impl Nearest<'_> {
    fn delay(&mut self, number: u64) -> Option<i64> {
        while self.at > 0 && self.delays[self.at - 1].0 >= number {
            self.at -= 1;
        }
        let above = self.delays.get(self.at);
        let below = self.at.checked_sub(1).and_then(|at| self.delays.get(at));
        match (below, above) {
            // A packet between two met a queue about as long as the longer of theirs.
            (Some(below), Some(above)) => Some(below.1.max(above.1)),
            (one, other) => one.or(other).map(|delay| delay.1),
        }
    }
}

#[cfg(test)]
mod tests;
