use fontis_base::{Duration, Rate, Time};

use super::budget::Charge;
use super::config::KnownPath;
use super::feedback::Feedback;
use super::feedback_due::FeedbackDue;
use super::history::{History, Late, Outcome, Sent, Untrue};
use super::left_out::LeftOut;
use super::pacer::Pacer;
use super::peer_clock::PeerClock;
use super::question::Question;
use super::receipts::Receipts;
use super::redundancy::LossModel;
use super::rtt::Rtt;
use super::trains::Trains;
use crate::path_mtu::Mtu;
use crate::rate::controller::RateController;
use crate::rate::feedback::{FeedbackSummary, feedback_interval};
use crate::rate::jitter::Jitter;
use crate::rate::kind::RateKind;

/// On paths shorter than this, a host's own pauses are longer than a round trip: they are no
/// silence of the path.
const LEAST_SILENCE: Duration = Duration::from_millis(20);
/// Unanswered packets that make a silence.
const SILENT_PACKETS: u64 = 5;
/// Runs of loss at least this long are outages: they say nothing about the loss to code against.
const OUTAGE_RUN: u64 = 64;

/// A packet that waits longer for its turn is charged anew when the rate is known better.
const LONG_DEBT: Duration = Duration::from_millis(20);

/// The longest wait for another probe of a silent path, of a connection that has others: it should
/// be found soon when it works again.
const PROBE_BESIDE_OTHERS: Duration = Duration::from_millis(500);

/// What a path may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathState {
    /// Nothing has come that proves the peer to be at its other end.
    Opening,
    /// Everything.
    Usable,
    /// Nothing any more.
    Closed,
}

/// Whether there is data to fill a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// None has left yet.
    None,
    Flows,
    /// What leaves next ends a time without.
    Gap,
}

/// One way to the peer: its numbers, its delay, its loss and its rate.
pub(super) struct Path {
    pub(super) id: u8,
    pub(super) state: PathState,
    /// It carries data only while no other answers.
    pub(super) spare: bool,
    /// Bytes of IP and UDP headers.
    pub(super) overhead: u32,
    pub(super) question: Question,
    pub(super) feedback: FeedbackDue,
    /// Packets that ask for feedback at once, to be sent.
    pub(super) pings: u32,
    /// A symbol of the oldest block is to be sent, to prod a silent receiver.
    pub(super) probe_symbols: bool,
    /// Its memory, if it is not the first.
    _charge: Option<Charge>,
    /// When a packet last came.
    pub(super) received: Time,
    /// Bytes at the IP layer.
    pub(super) bytes: [u64; 2],
    pub(super) receipts: Receipts,
    pub(super) history: History,
    /// The packet numbers that are left out, if any are.
    left_out: Option<LeftOut>,
    /// None before the first feedback: strangers' connections are small.
    arrivals: Option<Box<Arrivals>>,
    pub(super) rtt: Rtt,
    pub(super) loss: LossModel,
    pub(super) pacer: Pacer,
    pub(super) controller: RateController,
    kind: RateKind,
    pub(super) mtu: Mtu,
    pub(super) limited: bool,
    supply: Supply,
    /// The host was late with data since the last feedback.
    host_late: bool,
    /// When data was last asked for, there was none.
    pub(super) starved: bool,
    /// When there was last room in flight again, after all that may be there was.
    room_since: Time,
    /// What this side and the peer allow.
    pub(super) limits: [Option<Rate>; 2],
    pub(super) packets_lost: u64,
    pub(super) trains: Trains,
    last_marked: u64,
    /// Bytes at the IP layer of the packets that feedback has shown to have arrived.
    acked_bytes: u64,
    /// What the last feedback told about the queue, if it was this side's sending that made it: the
    /// least one-way delay in nanoseconds, and when it was met on the receiver's clock.
    pub(super) met: Option<(Time, i64)>,
    /// When feedback last came, or sending began after rest.
    heard: Time,
    silent_rounds: u32,
    probes: u32,
    probe_from: Time,
}

/// What the times tell at which packets came.
#[derive(Debug, Default)]
struct Arrivals {
    clock: PeerClock,
    jitter: Jitter,
    /// The first packet behind the last one that left while there was no data to fill the path:
    /// what arrives of those before it says nothing about the path's rate.
    unfilled: u64,
}

impl Path {
    pub(super) fn new(
        id: u8,
        kind: RateKind,
        mtu: Mtu,
        overhead: u32,
        charge: Option<Charge>,
    ) -> Self {
        let controller = RateController::beside(kind, id);
        let trains = Trains::new(controller.wants_train());
        Self {
            id,
            state: PathState::Opening,
            spare: false,
            overhead,
            question: Question::default(),
            feedback: FeedbackDue::default(),
            pings: 0,
            probe_symbols: false,
            _charge: charge,
            received: Time::ZERO,
            bytes: [0; 2],
            receipts: Receipts::new(),
            history: History::default(),
            left_out: None,
            arrivals: None,
            rtt: Rtt::new(),
            loss: LossModel::new(),
            pacer: Pacer::new(),
            controller,
            kind,
            mtu,
            limited: false,
            supply: Supply::None,
            host_late: false,
            starved: false,
            room_since: Time::ZERO,
            limits: [None; 2],
            packets_lost: 0,
            trains,
            last_marked: 0,
            acked_bytes: 0,
            met: None,
            heard: Time::ZERO,
            silent_rounds: 0,
            probes: 0,
            probe_from: Time::ZERO,
        }
    }

    /// Leaves packet numbers out from now on, by an unguessable seed if there is one.
    pub(super) fn leave_numbers_out(&mut self, seed: Option<u64>) {
        self.left_out = seed.map(|seed| LeftOut::new(seed, self.id));
    }

    /// Begins with what an earlier connection found out.
    pub(super) fn recall(&mut self, known: KnownPath) {
        if let Some(rtt) = known.rtt {
            self.rtt.guess(rtt);
        }
        if let Some(rate) = known.rate
            && self.controller.on_known_rate(rate)
        {
            self.trains.renounce();
        }
    }

    /// Begins anew on another network.
    pub(super) fn restart(&mut self, now: Time) {
        self.controller = RateController::beside(self.kind, self.id);
        self.rtt = Rtt::new();
        self.pacer = Pacer::new();
        self.pacer.restart(now);
        self.trains.restart(self.controller.wants_train());
        (self.heard, self.silent_rounds, self.probes, self.probe_from) = (now, 0, 0, now);
    }

    /// Records a packet and returns its number.
    pub(super) fn sent(&mut self, now: Time, sent: Sent) -> u64 {
        if sent.counted {
            if self.history.unresolved() == 0 {
                self.heard = now;
            }
            self.probe_from = now;
        }
        // A train's numbers are consecutive.
        if !self.trains.goes_on()
            && let Some(left_out) = &mut self.left_out
            && left_out.has(self.history.next_number())
        {
            self.history.leave_out(now);
        }
        self.history.push(sent)
    }

    /// The rate to send at: the controller's, within the limits.
    pub(super) fn rate(&self) -> Rate {
        self.limits.into_iter().flatten().fold(self.controller.rate(), Rate::min)
    }

    /// Whether a limit forbids to send anything.
    pub(super) fn is_paused(&self) -> bool {
        self.limits.contains(&Some(Rate::ZERO))
    }

    /// Whether a data packet may leave now, and whether it belongs to a train. The first packets
    /// leave back to back.
    pub(super) fn may_send(&mut self, now: Time, size: u32) -> Option<bool> {
        let allowance = self.controller.allowance(self.round_trip());
        if self.is_paused() {
            self.limited = true;
            return None;
        }
        if !self.has_room(size, allowance) {
            return None;
        }
        if self.trains.goes_on() {
            return Some(true);
        }
        self.pacer.ready(now).then_some(false)
    }

    /// Whether a packet of this size may be in flight too. With none in flight nothing would ever
    /// change that it may not.
    fn has_room(&self, size: u32, allowance: u64) -> bool {
        let in_flight = self.history.in_flight();
        in_flight == 0 || in_flight + u64::from(size) <= allowance
    }

    /// The same for any packet.
    fn may_fly(&self) -> bool {
        self.has_room(self.mtu.size(), self.controller.allowance(self.round_trip()))
    }

    /// Why a packet that leaves now tells nothing of the path's rate, if less was sent than that:
    /// data late, or no data although it could. To wait for room in flight is neither.
    pub(super) fn lateness(&self, now: Time, data: bool) -> Option<Late> {
        if data && self.supply == Supply::Gap {
            return Some(Late::Starved);
        }
        let slack = if data { self.pacer.catch_up() } else { Duration::ZERO };
        let late = self.pacer.has_begun() && self.pacer.next().max(self.room_since) + slack < now;
        let why = if data && !self.starved { Late::Host } else { Late::Starved };
        late.then_some(why)
    }

    /// A data packet leaves.
    pub(super) fn data_sent(&mut self, now: Time, number: u64, size: u32, train: bool) {
        let rate = self.rate();
        self.pacer.sent(now, size, rate);
        (self.starved, self.supply) = (false, Supply::Flows);
        // What the path would carry does not show below a limit.
        self.limited |= rate < self.controller.rate();
        if train {
            self.trains.sent(number);
        }
    }

    /// There is nothing to be sent, although something could.
    pub(super) fn found_nothing(&mut self, now: Time, waits: bool) {
        self.limited |= self.history.unresolved() > 0 || waits;
        self.starved = true;
        let allowance = self.controller.allowance(self.round_trip());
        if self.supply != Supply::None && self.history.in_flight() * 2 < allowance {
            self.supply = Supply::Gap;
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.unfilled = self.history.next_number();
            }
        }
        self.trains.end();
        self.pacer.restart(now);
    }

    /// A few packets' dispersion told the bottleneck's rate before any data was acknowledged.
    fn on_hint(&mut self, now: Time, rate: Rate, size: u32) {
        let before = self.rate();
        if !self.controller.on_capacity_hint(rate) {
            // A short train of a later, small burst of data: no reason for another long one.
            return;
        }
        self.pacer.recharge(now, before, self.rate());
        self.trains.follow_up(rate, size);
    }

    /// When the next data packet may leave, if only pacing holds it back.
    pub(super) fn next_send(&self, size: u32) -> Option<Time> {
        let allowance = self.controller.allowance(self.round_trip());
        (self.has_room(size, allowance) && !self.is_paused()).then(|| self.pacer.next())
    }

    /// Takes feedback. `decide` is told what became of each packet, and `all` of the losses.
    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        feedback: &Feedback,
        all: &mut LossModel,
        mut decide: impl FnMut(u64, &Sent, Outcome),
    ) -> Result<(), Untrue> {
        let rtt_sample = self.history.get(feedback.largest).map(|sent| {
            let delay = Duration::from_micros(u64::from(feedback.delay_us));
            (sent.time, now.since(sent.time) - delay)
        });
        let is_believed = self.observe_clock(now, feedback);
        let one_way_ns = match rtt_sample {
            // Where the peer's clock says nothing true, round trips tell the queue.
            Some((_, rtt)) if !is_believed => vec![(feedback.largest, rtt.as_nanos() as i64)],
            _ => self.one_way_delays(feedback),
        };
        let jitter = self.observe_jitter(now, &one_way_ns);
        let unfilled = self.arrivals.as_ref().is_some_and(|seen| feedback.largest < seen.unfilled);
        let train = self.trains.measure(feedback, &self.history);
        let mut decided = Vec::new();
        let mut tally = Tally::default();
        let patience = self.rtt.timeout();
        let was_full = !self.may_fly();
        let (limited, host_late) = (&mut self.limited, &mut self.host_late);
        let acked_bytes = &mut self.acked_bytes;
        let resolved = self.history.resolve(feedback, patience, |number, sent, outcome| {
            *limited |= sent.late == Some(Late::Starved);
            *host_late |= sent.late == Some(Late::Host);
            match outcome {
                Outcome::Received => {
                    *acked_bytes += u64::from(sent.size);
                    decided.push((number, true));
                }
                Outcome::Lost if !sent.mtu_probe => {
                    decided.push((number, false));
                    tally.lose(number);
                }
                Outcome::Late => {
                    *acked_bytes += u64::from(sent.size);
                    tally.late += 1;
                }
                Outcome::Lost | Outcome::Forgotten => {}
            }
            decide(number, sent, outcome);
        });
        resolved?;
        if was_full && self.may_fly() {
            self.room_since = now;
        }
        let fresh = decided.iter().any(|(_, received)| *received);
        if let Some((_, rtt)) =
            rtt_sample.filter(|_| decided.first().is_some_and(|d| d.0 == feedback.largest))
        {
            self.rtt.sample(rtt);
        }
        let (lost, bursts) = tally.without_outages();
        self.packets_lost += tally.lost();
        decided.retain(|(number, received)| *received || !tally.is_outage(*number));
        let received = decided.iter().filter(|(_, received)| *received).count() as u64;
        for loss in [&mut self.loss, all] {
            loss.observe(received, lost, bursts);
            (0..tally.late).for_each(|_| loss.correct());
        }
        self.packets_lost = self.packets_lost.saturating_sub(tally.late);
        if fresh {
            self.heard = now;
            self.silent_rounds = 0;
            self.probes = 0;
            self.probe_from = now;
        }
        let mut sample = FeedbackSummary {
            now,
            srtt: self.round_trip(),
            min_rtt: self.rtt.least() + jitter,
            jitter,
            one_way_ns: if fresh { one_way_ns } else { Vec::new() },
            received_at: if is_believed { feedback.received_at() } else { now },
            // The peer's own count may be as high as it likes.
            received_bytes: self.acked_bytes,
            largest: feedback.largest,
            next_number: self.history.next_number(),
            decided,
            mean_burst: self.loss.mean_burst(),
            train: None,
            limited: self.limited || unfilled,
            late: self.host_late,
            in_flight: self.history.in_flight(),
            marked: feedback.ce.saturating_sub(self.last_marked),
        };
        self.last_marked = self.last_marked.max(feedback.ce);
        match train {
            Some(train) if train.is_long() => sample.train = Some(train.rate),
            Some(few) => self.on_hint(now, few.rate, self.mtu.size()),
            None => {}
        }
        self.met = None;
        if fresh {
            self.steer(now, &sample);
            if !sample.limited && self.controller.has_started() {
                let least = sample.one_way_ns.iter().map(|(_, delay)| *delay).min();
                self.met = least.map(|least| (sample.received_at, least));
            }
            (self.limited, self.host_late) = (false, false);
        }
        Ok(())
    }

    /// Lets the controller find another rate.
    fn steer(&mut self, now: Time, sample: &FeedbackSummary) {
        let before = self.rate();
        self.controller.on_feedback(sample);
        if self.pacer.next() > now + LONG_DEBT {
            self.pacer.recharge(now, before, self.rate());
        }
    }

    /// Whether the peer's clock is believed, with what a feedback tells of it.
    fn observe_clock(&mut self, now: Time, feedback: &Feedback) -> bool {
        let clock = &mut self.arrivals.get_or_insert_default().clock;
        let was_believed = clock.is_believed();
        clock.observe(now, feedback.received_at());
        let is_believed = clock.is_believed();
        if was_believed && !is_believed {
            self.distrust();
        }
        is_believed
    }

    /// The peer's clock is not what was gone by so far: begin anew with half of the rate.
    fn distrust(&mut self) {
        let rate = self.controller.rate();
        self.controller = RateController::beside(self.kind, self.id);
        self.controller.on_known_rate(rate);
    }

    /// The smoothed round-trip time. Of packets that overtake others it is too short for these.
    fn round_trip(&self) -> Duration {
        let jitter = self.arrivals.as_ref().map_or(Duration::ZERO, |seen| seen.jitter.get());
        let smoothed = self.rtt.smoothed();
        if jitter > Duration::ZERO { smoothed.max(self.rtt.least() + jitter) } else { smoothed }
    }

    /// The path's jitter, with what these one-way delays tell of it.
    fn observe_jitter(&mut self, now: Time, delays: &[(u64, i64)]) -> Duration {
        let jitter = &mut self.arrivals.get_or_insert_default().jitter;
        for (number, delay) in delays {
            if let Some(sent) = self.history.get(*number) {
                jitter.observe(*number, sent.time.as_nanos() as i64, *delay);
            }
        }
        jitter.end_window(now, self.rtt.smoothed());
        jitter.get()
    }

    /// One-way delays of packets that a feedback reports, in order of their numbers.
    fn one_way_delays(&self, feedback: &Feedback) -> Vec<(u64, i64)> {
        let mut delays: Vec<(u64, i64)> = feedback
            .arrivals()
            .filter_map(|(number, at_us)| {
                let sent = self.history.get(number)?;
                Some((number, at_us.wrapping_mul(1000).wrapping_sub(sent.time.as_nanos() as i64)))
            })
            .collect();
        delays.sort_unstable();
        delays
    }

    /// When the path must be prodded or the controller told of silence. With other paths beside it
    /// (`others`) a silent one is prodded more often.
    pub(super) fn timeout(&self, others: bool) -> Option<Time> {
        if self.history.unresolved() == 0 {
            return None;
        }
        let probe = self.probe_at(others);
        let silent = (self.history.unresolved() >= SILENT_PACKETS).then(|| self.silent_at());
        Some(silent.map_or(probe, |silent| silent.min(probe)))
    }

    fn probe_at(&self, others: bool) -> Time {
        let backoff = self.rtt.timeout() * (1 << self.probes.min(10));
        let longest = if others { PROBE_BESIDE_OTHERS } else { Duration::from_secs(2) };
        self.probe_from + backoff.min(longest)
    }

    /// When it last carried something that counts, either way.
    pub(super) fn last_used(&self) -> Time {
        self.received.max(self.probe_from)
    }

    /// The time from which on no answer means that the path is silent, if one is waited for.
    pub(super) fn silent_from(&self) -> Option<Time> {
        let waits = self.history.unresolved() > 0;
        waits.then(|| self.heard + self.rtt.timeout() + Duration::from_millis(5))
    }

    /// Whether an answer is so late that others should not wait for what is on its way here.
    pub(super) fn is_silent(&self, now: Time) -> bool {
        self.probes > 0 || self.silent_from().is_some_and(|from| from <= now)
    }

    fn silent_at(&self) -> Time {
        let rtt = self.rtt.smoothed() + feedback_interval(self.rtt.smoothed());
        let rtt = rtt.max(LEAST_SILENCE);
        self.heard + rtt * u64::from(3 + self.silent_rounds)
    }

    /// Tells the controller of silence; true if a probe should be sent.
    pub(super) fn on_timeout(&mut self, now: Time, others: bool) -> bool {
        if self.history.unresolved() == 0 {
            return false;
        }
        // A packet or two without an answer are lost packets; silence takes more.
        let several = self.history.unresolved() >= SILENT_PACKETS;
        while several && self.silent_at() <= now && self.silent_rounds < 64 {
            self.silent_rounds += 1;
            self.controller.on_silence();
        }
        if self.silent_rounds >= 64 {
            self.heard = now;
        }
        let due = self.probe_at(others) <= now;
        if due {
            self.probes += 1;
            self.probe_from = now;
        }
        due
    }
}

/// Losses of one feedback, by runs.
#[derive(Default)]
struct Tally {
    /// (lowest, highest) of each run, from the highest down.
    runs: Vec<(u64, u64)>,
    late: u64,
}

impl Tally {
    fn lose(&mut self, number: u64) {
        match self.runs.last_mut() {
            Some((lowest, _)) if *lowest == number + 1 => *lowest = number,
            Some((_, highest)) if *highest + 1 == number => *highest = number,
            _ => self.runs.push((number, number)),
        }
    }

    fn lost(&self) -> u64 {
        self.runs.iter().map(|(low, high)| high - low + 1).sum()
    }

    fn is_outage(&self, number: u64) -> bool {
        self.runs
            .iter()
            .any(|(low, high)| high - low >= OUTAGE_RUN && (*low..=*high).contains(&number))
    }

    /// Packets and runs lost, outages left out.
    fn without_outages(&self) -> (u64, u64) {
        let runs = self.runs.iter().filter(|(low, high)| high - low < OUTAGE_RUN);
        runs.fold((0, 0), |(lost, bursts), (low, high)| (lost + high - low + 1, bursts + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_hint_is_a_reason_for_a_long_train() {
        let mut path = Path::new(0, RateKind::Auto, Mtu::new(1280, 1500), 28, None);
        let leave = |path: &mut Path| {
            let mut packets = 0;
            while path.trains.goes_on() {
                path.trains.sent(packets);
                packets += 1;
            }
            packets
        };
        path.on_hint(Time::ZERO, Rate::from_mbps(100), 1280);
        assert_eq!(leave(&mut path), 48);
        path.on_hint(Time::ZERO, Rate::from_mbps(100), 1280);
        assert_eq!(leave(&mut path), 0, "a later burst of a few packets was measured");
    }
}
