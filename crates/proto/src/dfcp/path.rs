use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use fontis_base::{Duration, Rate, Time};

use super::config::KnownPath;
use super::feedback::Feedback;
use super::history::{History, Outcome, Sent};
use super::mtu::Mtu;
use super::pacer::Pacer;
use super::receipts::Receipts;
use super::redundancy::LossModel;
use super::rtt::{Rtt, feedback_interval};
use crate::rate::{Controller, Kind, Sample};

/// Packets of the first flight that leave back to back.
const TRAIN_LENGTH: u64 = 16;
/// When the path is known to be fast, a second and longer train, of as much as passes in this time, measures it better.
const LONG_TRAIN_TIME: Duration = Duration::from_millis(5);
const LONG_TRAIN_LENGTHS: RangeInclusive<u64> = 24..=48;
/// A train shorter than this is no basis for more than a first guess.
const LONG_TRAIN: usize = 8;
/// What a host's own pauses may do to the spacing of a train.
const MOST_UNEVEN: Duration = Duration::from_millis(1);
/// What a host's clock and scheduler commonly add to the time that a few packets take, of which they make up to half: a line of
/// 100 Mbit/s passes two small ones in 50 µs.
const HOST_SPACING_US: u64 = 200;
/// On paths shorter than this, a host's own pauses are longer than a round trip: they are no silence of the path.
const LEAST_SILENCE: Duration = Duration::from_millis(20);
/// Unanswered packets that make a silence.
const SILENT_PACKETS: u64 = 5;
/// Runs of loss at least this long are outages: they say nothing about the loss to code against.
const OUTAGE_RUN: u64 = 64;

/// One way to the peer: its numbers, its delay, its loss and its rate.
pub(super) struct Path {
    pub(super) id: u8,
    pub(super) receipts: Receipts,
    pub(super) history: History,
    pub(super) rtt: Rtt,
    pub(super) loss: LossModel,
    pub(super) pacer: Pacer,
    pub(super) controller: Controller,
    pub(super) mtu: Mtu,
    pub(super) limited: bool,
    /// What this side and the peer allow.
    pub(super) limits: [Option<Rate>; 2],
    pub(super) packets_lost: u64,
    trains: Vec<(u64, u64)>,
    /// Receive times of the trains' packets, as far as they have been reported.
    train_times: BTreeMap<u64, i64>,
    /// Sizes of the trains' packets that were received.
    train_sizes: BTreeMap<u64, u16>,
    train_left: u64,
    train_length: u64,
    /// The longest train that was measured while another was under way.
    train_measured: Option<(Rate, usize)>,
    /// The next packet of a train begins another.
    train_broken: bool,
    last_marked: u64,
    /// When feedback last came, or sending began after rest.
    heard: Time,
    silent_rounds: u32,
    probes: u32,
    probe_from: Time,
}

impl Path {
    pub(super) fn new(id: u8, kind: Kind, mtu: Mtu) -> Self {
        let controller = Controller::new(kind);
        let train_length = if controller.wants_train() { TRAIN_LENGTH } else { 0 };
        Self {
            id,
            receipts: Receipts::new(),
            history: History::default(),
            rtt: Rtt::new(),
            loss: LossModel::new(),
            pacer: Pacer::new(),
            controller,
            mtu,
            limited: false,
            limits: [None; 2],
            packets_lost: 0,
            trains: Vec::new(),
            train_times: BTreeMap::new(),
            train_sizes: BTreeMap::new(),
            train_left: train_length,
            train_length,
            train_measured: None,
            train_broken: false,
            last_marked: 0,
            heard: Time::ZERO,
            silent_rounds: 0,
            probes: 0,
            probe_from: Time::ZERO,
        }
    }

    /// Begins with what an earlier connection found out.
    pub(super) fn recall(&mut self, known: KnownPath) {
        if let Some(rtt) = known.rtt {
            self.rtt.guess(rtt);
        }
        if let Some(rate) = known.rate
            && self.controller.on_known_rate(rate)
        {
            (self.train_left, self.train_length) = (0, 0);
        }
    }

    /// Begins anew on another network.
    pub(super) fn restart(&mut self, now: Time, kind: Kind) {
        self.controller = Controller::new(kind);
        self.rtt = Rtt::new();
        self.pacer = Pacer::new();
        self.pacer.restart(now);
        self.train_length = if self.controller.wants_train() { TRAIN_LENGTH } else { 0 };
        self.train_left = self.train_length;
        (self.train_measured, self.train_broken) = (None, true);
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

    /// Whether a data packet may leave now, and whether it belongs to a train. The first packets leave back to back.
    pub(super) fn may_send(&mut self, now: Time, size: u32) -> Option<bool> {
        let allowance = self.controller.allowance(self.rtt.smoothed());
        if self.is_paused() {
            self.limited = true;
            return None;
        }
        if !self.has_room(size, allowance) {
            return None;
        }
        if self.train_left > 0 {
            return Some(true);
        }
        self.pacer.ready(now).then_some(false)
    }

    /// Whether a packet of this size may be in flight too. With none in flight nothing would ever change that it may not.
    fn has_room(&self, size: u32, allowance: u64) -> bool {
        let in_flight = self.history.in_flight();
        in_flight == 0 || in_flight + u64::from(size) <= allowance
    }

    /// A data packet leaves.
    pub(super) fn data_sent(&mut self, now: Time, number: u64, size: u32, train: bool) {
        let rate = self.rate();
        self.pacer.sent(now, size, rate);
        // What the path would carry does not show below a limit.
        self.limited |= rate < self.controller.rate();
        if train {
            self.train_left -= 1;
            self.mark_train(number);
        }
    }

    /// The packet is sent back to back with the one before it.
    pub(super) fn mark_train(&mut self, number: u64) {
        match self.trains.last_mut() {
            Some((_, last)) if *last + 1 == number && !self.train_broken => *last = number,
            _ => self.trains.push((number, number)),
        }
        self.train_broken = false;
    }

    /// There is nothing more to send: a train that is long enough is over, a shorter one begins anew.
    pub(super) fn end_train(&mut self) {
        let sent = self.train_length - self.train_left;
        if self.train_left > 0 && sent > 0 {
            self.train_left = if sent < LONG_TRAIN as u64 { self.train_length } else { 0 };
            self.train_broken = true;
        }
    }

    /// A few packets' dispersion told the bottleneck's rate before any data was acknowledged.
    fn on_hint(&mut self, now: Time, rate: Rate, size: u32) {
        let before = self.rate();
        if !self.controller.on_capacity_hint(rate) {
            // A short train of a later, small burst of data: no reason for another long one.
            return;
        }
        self.pacer.recharge(now, before, self.rate());
        let packets = rate.bytes_in(LONG_TRAIN_TIME) / u64::from(size);
        if packets >= *LONG_TRAIN_LENGTHS.start() {
            self.train_length = packets.min(*LONG_TRAIN_LENGTHS.end());
            self.train_left = self.train_length;
            self.train_broken = true;
        }
    }

    /// When the next data packet may leave, if only pacing holds it back.
    pub(super) fn next_send(&self, size: u32) -> Option<Time> {
        let allowance = self.controller.allowance(self.rtt.smoothed());
        (self.has_room(size, allowance) && !self.is_paused()).then(|| self.pacer.next())
    }

    /// Takes feedback. `decide` is told what became of each packet. False if it is impossible.
    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        feedback: &Feedback,
        mut decide: impl FnMut(u64, &Sent, Outcome),
    ) -> bool {
        let rtt_sample = self.history.get(feedback.largest).map(|sent| {
            let delay = Duration::from_micros(u64::from(feedback.delay_us));
            (sent.time, now.since(sent.time) - delay)
        });
        let one_way_ns = self.least_one_way(feedback);
        let train = self.train_rate(feedback);
        let mut decided = Vec::new();
        let mut tally = Tally::default();
        let patience = self.rtt.timeout();
        let known = self.history.resolve(feedback, patience, |number, sent, outcome| {
            match outcome {
                Outcome::Received => decided.push((number, true)),
                Outcome::Lost if !sent.mtu_probe => {
                    decided.push((number, false));
                    tally.lose(number);
                }
                Outcome::Late => tally.late += 1,
                Outcome::Lost | Outcome::Forgotten => {}
            }
            decide(number, sent, outcome);
        });
        if !known {
            return false;
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
        self.loss.observe(received, lost, bursts);
        for _ in 0..tally.late {
            self.loss.correct();
            self.packets_lost = self.packets_lost.saturating_sub(1);
        }
        if fresh {
            self.heard = now;
            self.silent_rounds = 0;
            self.probes = 0;
            self.probe_from = now;
        }
        let mut sample = Sample {
            now,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.least(),
            one_way_ns: one_way_ns.filter(|_| fresh),
            received_at: Time::from_nanos(feedback.received_at_us.saturating_mul(1000)),
            received_bytes: feedback.bytes,
            largest: feedback.largest,
            next_number: self.history.next_number(),
            decided,
            mean_burst: self.loss.mean_burst(),
            train: None,
            limited: self.limited,
            in_flight: self.history.in_flight(),
            marked: feedback.ce.saturating_sub(self.last_marked),
        };
        self.last_marked = self.last_marked.max(feedback.ce);
        match train {
            Some((rate, length)) if length >= LONG_TRAIN => sample.train = Some(rate),
            Some((rate, _)) => self.on_hint(now, rate, self.mtu.size()),
            None => {}
        }
        if fresh {
            self.controller.on_feedback(&sample);
            self.limited = false;
        }
        true
    }

    /// The receive times that a feedback reports: packet number, time on the receiver's clock in microseconds.
    fn reported(feedback: &Feedback) -> impl Iterator<Item = (u64, i64)> {
        let at = feedback.received_at_us as i64;
        let samples = feedback.samples.iter().filter_map(move |(below, before)| {
            Some((feedback.largest.checked_sub(u64::from(*below))?, at - i64::from(*before)))
        });
        core::iter::once((feedback.largest, at)).chain(samples)
    }

    fn least_one_way(&self, feedback: &Feedback) -> Option<i64> {
        Self::reported(feedback)
            .filter_map(|(number, at_us)| {
                let sent = self.history.get(number)?;
                Some(at_us.wrapping_mul(1000).wrapping_sub(sent.time.as_nanos() as i64))
            })
            .min()
    }

    /// The bottleneck's rate by the dispersion of the longest train, and of how many packets, when a feedback completes
    /// the last that is under way; a short one says what it can at once. A train's packets may be reported in several
    /// feedbacks.
    fn train_rate(&mut self, feedback: &Feedback) -> Option<(Rate, usize)> {
        let Self { trains, history, train_times, train_sizes, .. } = self;
        let in_train =
            |number: &u64| trains.iter().any(|(first, last)| (*first..=*last).contains(number));
        train_times.extend(Self::reported(feedback).filter(|(number, _)| in_train(number)));
        for (low, high, _) in feedback.ranges().filter(|(_, _, received)| *received) {
            // Only within the trains: a run may claim to be as long as a number can be.
            let numbers = trains.iter().flat_map(|(first, last)| low.max(*first)..=high.min(*last));
            train_sizes
                .extend(numbers.filter_map(|number| Some((number, history.get(number)?.size))));
        }
        let mut longest = self.train_measured.take();
        while let Some((first, last)) = self.trains.first().copied() {
            // The first precedes all data: it had all the time that it takes when the first feedback was sent.
            let early = first == 0 && self.train_times.len() > 1;
            if last > feedback.largest && !early {
                break;
            }
            self.trains.remove(0);
            let measured = self.dispersion(first, last);
            longest = longest.into_iter().chain(measured).max_by_key(|(_, packets)| *packets);
            self.train_times.retain(|number, _| *number > last);
            self.train_sizes.retain(|number, _| *number > last);
        }
        let hint = longest.is_some_and(|(_, packets)| packets < LONG_TRAIN);
        if hint || self.trains.is_empty() {
            return longest;
        }
        self.train_measured = longest;
        None
    }

    fn dispersion(&self, first: u64, last: u64) -> Option<(Rate, usize)> {
        let mut times = self.train_times.range(first..=last);
        let (&from, &begin) = times.next()?;
        let (&to, &end) = times.next_back()?;
        let span = u64::try_from(end - begin).ok().filter(|us| *us > 0)?;
        let behind = || self.train_sizes.range(from + 1..=to);
        let bytes: u64 = behind().map(|(_, size)| u64::from(*size)).sum();
        let packets = behind().count() + 1;
        // A few packets between which the path's jitter stands say nothing of its rate.
        let mut passed = 0;
        let uneven = behind().any(|(number, size)| {
            passed += u64::from(*size);
            let due = begin + (span * passed / bytes.max(1)) as i64;
            let strays = |at: &i64| at.abs_diff(due) > span.max(MOST_UNEVEN.as_micros());
            self.train_times.get(number).is_some_and(strays)
        });
        let gaps =
            self.train_times.range(first..=last).zip(self.train_times.range(first + 1..=last));
        let ((&before, &left), (&after, &arrived)) = gaps.max_by_key(|(a, b)| b.1 - a.1)?;
        let short = packets < LONG_TRAIN;
        if short && uneven {
            return None;
        }
        if !short && 2 * (arrived - left).unsigned_abs() > span {
            // In two clumps: something else than the bottleneck held it up. A few stragglers do not spoil the others.
            let clumps = [(first, before), (after, last)];
            let count = |(low, high): (u64, u64)| self.train_sizes.range(low..=high).count();
            let most = clumps.into_iter().max_by_key(|clump| count(*clump))?;
            let is_most = count(most) >= LONG_TRAIN && 4 * count(most) >= 3 * packets;
            return is_most.then(|| self.dispersion(most.0, most.1)).flatten();
        }
        let span = if short { span - HOST_SPACING_US.min(span / 2) } else { span };
        Some((Rate::from_bytes_over(bytes, Duration::from_micros(span)), packets))
    }

    /// When the path must be prodded or the controller told of silence.
    pub(super) fn timeout(&self) -> Option<Time> {
        if self.history.unresolved() == 0 {
            return None;
        }
        let silent = (self.history.unresolved() >= SILENT_PACKETS).then(|| self.silent_at());
        Some(silent.map_or(self.probe_at(), |silent| silent.min(self.probe_at())))
    }

    fn probe_at(&self) -> Time {
        let backoff = self.rtt.timeout() * (1 << self.probes.min(10));
        self.probe_from + backoff.min(Duration::from_secs(2))
    }

    fn silent_at(&self) -> Time {
        let rtt = self.rtt.smoothed() + feedback_interval(self.rtt.smoothed());
        let rtt = rtt.max(LEAST_SILENCE);
        self.heard + rtt * u64::from(3 + self.silent_rounds)
    }

    /// Tells the controller of silence; true if a probe should be sent.
    pub(super) fn on_timeout(&mut self, now: Time) -> bool {
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
        let due = self.probe_at() <= now;
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
        let mut path = Path::new(0, Kind::Auto, Mtu::new(1280, 1500));
        path.on_hint(Time::ZERO, Rate::from_mbps(100), 1280);
        assert_eq!(path.train_left, 48);
        path.train_left = 0;
        path.on_hint(Time::ZERO, Rate::from_mbps(100), 1280);
        assert_eq!(path.train_left, 0, "a later burst of a few packets was measured");
    }

    /// What packets of 1250 bytes that arrived at these times, in microseconds, say of the bottleneck.
    fn measured(times: &[i64]) -> Option<(Rate, usize)> {
        let mut path = Path::new(0, Kind::Auto, Mtu::new(1280, 1500));
        path.train_times = (10..).zip(times.iter().copied()).collect();
        path.train_sizes = path.train_times.keys().map(|number| (*number, 1250)).collect();
        path.dispersion(10, 10 + times.len() as u64)
    }

    #[test]
    fn a_straggler_does_not_spoil_a_train_and_two_clumps_do() {
        let even: Vec<i64> = (0..12).map(|i| i * 100).collect();
        let hundred = Some((Rate::from_mbps(100), 12));
        assert_eq!(measured(&even), hundred);
        let straggling = [&even[..], &[2600]].concat();
        assert_eq!(measured(&straggling), hundred);
        let early: Vec<i64> = core::iter::once(-1500).chain(even.iter().copied()).collect();
        assert_eq!(measured(&early), hundred);
        let clumps: Vec<i64> = (0..6).chain(9000..9006).collect();
        assert_eq!(measured(&clumps), None);
    }

    #[test]
    fn what_hosts_add_makes_up_half_of_a_few_packets_spacing_at_most() {
        assert_eq!(measured(&[0, 600]), Some((Rate::from_mbps(25), 2)));
        assert_eq!(measured(&[0, 200]), Some((Rate::from_mbps(100), 2)));
        assert_eq!(measured(&[0, 10_000]), Some((Rate::from_bps(1_020_408), 2)));
    }
}
