//! CCID 2, TCP-like congestion control (RFC 4341): a window in packets, and Ack Vectors.

use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Time};

use super::dropped::{drops, is_slow};
use super::path::{DccpPath, Incoming};
use crate::congestion::control::CongestionControl;
use crate::congestion::sample::{Acknowledgement, Phase};
use crate::congestion::table::Setup;
use crate::dccp::ack_vector::{AckVector, Arrival, arrivals};
use crate::dccp::config::DccpConfig;
use crate::dccp::number::DccpSeq;
use crate::dccp::option::DccpOption;

/// Packets that must be known to have come after one that counts as lost.
const NUMDUPACK: usize = 3;
/// The window is counted in packets: each counts as this many of the algorithm's bytes.
const PACKET: u64 = 1460;
/// How long an acknowledgement may wait for a second packet.
const DELAYED_ACK: Duration = Duration::from_millis(200);
const FIRST_RTO: Duration = Duration::from_secs(3);
const LEAST_RTO: Duration = Duration::from_secs(1);
const MOST_RTO: Duration = Duration::from_secs(64);

/// The sender's half.
#[derive(Clone, Debug)]
pub(crate) struct WindowSender {
    congestion: Box<dyn CongestionControl>,
    /// The algorithm counts the losses of a round trip, so that it must hear when that ends.
    counts_losses: bool,
    /// Data packets whose fate is open, the oldest first.
    flight: VecDeque<Flying>,
    /// How many of these have come.
    come: usize,
    /// Data packets sent, and known to have come or to be lost.
    sent: u64,
    done: u64,
    srtt: Option<Duration>,
    rttvar: Duration,
    min_rtt: Duration,
    backoff: u32,
    /// When the timer expires; `None` with nothing in flight.
    expires: Option<Time>,
    /// The last packet before the newest reduction: losses up to it belong to that reduction.
    reduced_to: Option<DccpSeq>,
    newest: DccpSeq,
    /// Whether the window, not the application, held packets back since the last acknowledgement.
    is_limited: bool,
    /// Data packets since this end last acknowledged.
    unacknowledging: u64,
    size: u32,
    /// The greatest window.
    most: u64,
    lost: u64,
    timeouts: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    seq: DccpSeq,
    at: Time,
    has_come: bool,
}

impl WindowSender {
    pub(super) fn new(config: &DccpConfig) -> Self {
        let size = config.packet_size.max(1);
        // The initial window of RFC 3390 in packets (RFC 4341 section 5).
        let packets = u64::from((4380 / size).clamp(2, 4));
        let initial_window = packets * PACKET;
        let congestion = match &config.foreign {
            Some(foreign) => foreign.make(PACKET, initial_window),
            None => config.window.start(Setup { mss: PACKET, initial_window, salt: 0 }),
        };
        Self {
            congestion,
            counts_losses: config.window.fld().is_some(),
            flight: VecDeque::new(),
            come: 0,
            sent: 0,
            done: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: Duration::MAX,
            backoff: 0,
            expires: None,
            reduced_to: None,
            newest: DccpSeq::default(),
            is_limited: false,
            unacknowledging: 0,
            size,
            most: u64::MAX,
            lost: 0,
            timeouts: 0,
        }
    }

    fn window(&self) -> u64 {
        (self.congestion.cwnd() / PACKET).min(self.most).max(1)
    }

    /// Bounds the window, so that a peer's acknowledgements are within the Sequence Window.
    pub(super) const fn bound(&mut self, packets: u64) {
        self.most = packets;
    }

    fn pipe(&self) -> u64 {
        (self.flight.len() - self.come) as u64
    }

    pub(super) fn ready_at(&self) -> Time {
        if (self.flight.len() as u64) < self.window() || self.pipe() < self.window() {
            Time::ZERO
        } else {
            Time::MAX
        }
    }

    pub(super) fn on_limited(&mut self) {
        self.is_limited = true;
    }

    pub(super) fn on_sent(&mut self, now: Time, seq: DccpSeq, data: Option<u32>) {
        self.newest = seq;
        let Some(bytes) = data else { return };
        self.size = bytes.max(1);
        self.sent += 1;
        self.unacknowledging += 1;
        self.flight.push_back(Flying { seq, at: now, has_come: false });
        if self.expires.is_none() {
            self.expires = Some(now + self.rto());
        }
    }

    pub(super) fn on_ack(&mut self, now: Time, ack: DccpSeq, options: &[DccpOption]) {
        let (mut came, mut marked, mut sample) = (0, None, None);
        for option in options {
            let DccpOption::AckVector { runs, .. } = option else { continue };
            // What is below the oldest whose fate is open was told before.
            let Some(oldest) = self.flight.front().map(|packet| packet.seq) else { continue };
            for (seq, state) in arrivals(ack, runs).take_while(|(seq, _)| !oldest.is_after(*seq)) {
                if state == Arrival::Missing {
                    continue;
                }
                let Ok(place) =
                    self.flight.binary_search_by(|packet| packet.seq.offset_from(seq).cmp(&0))
                else {
                    continue;
                };
                let packet = &mut self.flight[place];
                if packet.has_come {
                    continue;
                }
                packet.has_come = true;
                self.come += 1;
                came += 1;
                if sample.is_none() {
                    sample = Some(now.since(packet.at));
                }
                if state == Arrival::Marked {
                    marked = Some(marked.map_or(seq, |other: DccpSeq| other.latest(seq)));
                }
            }
        }
        // What did not reach the application counts as marked (RFC 4340 section 11.7), and so does
        // an application that cannot follow (RFC 4341 section 5.2).
        let troubles = drops(ack, options).map(|(seq, _)| seq);
        for seq in troubles.chain(is_slow(options).then_some(ack)) {
            marked = Some(marked.map_or(seq, |other: DccpSeq| other.latest(seq)));
        }
        let elapsed = options.iter().find_map(|option| match option {
            DccpOption::ElapsedTime(units) => Some(Duration::from_micros(u64::from(*units) * 10)),
            _ => None,
        });
        if let Some(rtt) = sample {
            self.sample(rtt - elapsed.unwrap_or(Duration::ZERO));
        }
        let lost = self.take_losses();
        let limited = core::mem::take(&mut self.is_limited);
        if came > 0 {
            self.backoff = 0;
            self.expires = None;
        }
        let cause = [lost.map(|(_, seq)| seq), marked].into_iter().flatten();
        let newest_cause = cause.reduce(DccpSeq::latest);
        let is_new =
            newest_cause.is_some_and(|seq| self.reduced_to.is_none_or(|to| seq.is_after(to)));
        if is_new {
            let window = self.window().min(self.pipe() + came) * PACKET;
            if lost.is_some() {
                self.congestion.on_congestion(now, window);
            } else {
                self.congestion.on_mark(now, window);
            }
            self.reduced_to = Some(self.newest);
        }
        if let Some((count, _)) = lost {
            self.congestion.on_lost(now, count);
        }
        let gone = came + lost.map_or(0, |(count, _)| count);
        self.done += gone;
        self.congestion.on_ack(&Acknowledgement {
            now,
            acked: came * PACKET,
            delivered: came * PACKET,
            lost: lost.map_or(0, |(count, _)| count) * PACKET,
            rtt: sample,
            min_rtt: self.min_rtt,
            srtt: self.srtt.unwrap_or(FIRST_RTO),
            marked: marked.is_some(),
            in_flight: self.pipe() * PACKET,
            cwnd_limited: limited,
            acked_to: self.done,
            sent_to: self.sent,
            phase: match newest_cause.is_some() || self.is_repairing() {
                true => Phase::Recovery,
                false => Phase::Open,
            },
            shortest_stream: None,
            delivery: None,
        });
        while self.flight.front().is_some_and(|packet| packet.has_come) {
            self.flight.pop_front();
            self.come -= 1;
        }
        if self.expires.is_none() && !self.flight.is_empty() {
            self.expires = Some(now + self.rto());
        }
    }

    /// Whether packets are in flight that left before the newest reduction did.
    fn is_repairing(&self) -> bool {
        let first = self.flight.iter().find(|packet| !packet.has_come);
        let is_old = |packet: &Flying| self.reduced_to.is_some_and(|to| !packet.seq.is_after(to));
        self.counts_losses && first.is_some_and(is_old)
    }

    /// Removes the packets that three later ones have overtaken: their number, and the newest.
    fn take_losses(&mut self) -> Option<(u64, DccpSeq)> {
        // Mostly nothing has come but what the caller removes.
        if self.come < NUMDUPACK || self.flight.iter().take(self.come).all(|packet| packet.has_come)
        {
            return None;
        }
        let came = self.flight.iter().enumerate().rev().filter(|(_, packet)| packet.has_come);
        let (place, _) = came.take(NUMDUPACK).last()?;
        let mut lost = None;
        for packet in self.flight.drain(..place) {
            if packet.has_come {
                self.come -= 1;
                continue;
            }
            let count = lost.map_or(0, |(count, _)| count);
            lost = Some((count + 1, packet.seq));
        }
        self.lost += lost.map_or(0, |(count, _)| count);
        lost
    }

    fn sample(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt.mul_ratio(1, 2);
            }
            Some(srtt) => {
                let error = Duration::from_nanos(srtt.as_nanos().abs_diff(rtt.as_nanos()));
                self.rttvar = self.rttvar.mul_ratio(3, 4) + error.mul_ratio(1, 4);
                self.srtt = Some(srtt.mul_ratio(7, 8) + rtt.mul_ratio(1, 8));
            }
        }
    }

    fn rto(&self) -> Duration {
        let base = self.srtt.map_or(FIRST_RTO, |srtt| {
            (srtt + self.rttvar + self.rttvar + self.rttvar + self.rttvar).max(LEAST_RTO)
        });
        base.mul_ratio(1 << self.backoff.min(6), 1).min(MOST_RTO)
    }

    pub(super) fn timeout(&self) -> Time {
        self.expires.unwrap_or(Time::MAX)
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.expires.is_none_or(|at| now < at) {
            return;
        }
        let pipe = self.pipe();
        self.congestion.on_timeout(now, self.window().min(pipe.max(1)) * PACKET);
        self.timeouts += 1;
        self.backoff += 1;
        // All that is outstanding counts as lost: the pipe is empty (RFC 4341 section 5).
        self.lost += pipe;
        self.done += pipe;
        self.flight.clear();
        self.come = 0;
        self.reduced_to = Some(self.newest);
        self.expires = None;
    }

    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Once a window, so that the receiver's Ack Vectors stay short (RFC 4341 section 6.1).
    pub(super) fn wants_ack(&self) -> bool {
        self.unacknowledging >= self.window()
    }

    pub(super) fn on_acknowledging(&mut self) {
        self.unacknowledging = 0;
    }

    pub(super) fn path(&self) -> DccpPath {
        let rate = self.srtt.map_or(Rate::ZERO, |srtt| {
            Rate::from_bytes_over(self.window() * u64::from(self.size), srtt)
        });
        DccpPath {
            rate,
            rtt: self.srtt,
            loss_event_rate: 0.0,
            lost: self.lost,
            window: self.window(),
            in_flight: self.pipe(),
            timeouts: self.timeouts,
        }
    }
}

/// The receiver's half.
#[derive(Clone, Debug)]
pub(crate) struct WindowReceiver {
    vector: AckVector,
    ratio: u64,
    /// Data packets since the last acknowledgement, and when the first of them came.
    waiting: u64,
    since: Option<Time>,
    /// When the newest packet came.
    newest_at: Time,
}

impl WindowReceiver {
    pub(super) fn new(ratio: u16) -> Self {
        Self {
            vector: AckVector::default(),
            ratio: u64::from(ratio.max(1)),
            waiting: 0,
            since: None,
            newest_at: Time::ZERO,
        }
    }

    pub(super) fn handle(&mut self, now: Time, packet: &Incoming<'_>) {
        self.vector.receive(packet.seq, packet.is_marked);
        if self.vector.newest() == packet.seq {
            self.newest_at = packet.arrived;
        }
        if packet.data.is_some() {
            self.waiting += 1;
            self.since.get_or_insert(now);
        }
    }

    pub(super) fn due(&self) -> Time {
        match self.since {
            Some(_) if self.waiting >= self.ratio => Time::ZERO,
            Some(since) => since + DELAYED_ACK,
            None => Time::MAX,
        }
    }

    pub(super) fn acknowledge(&mut self, now: Time, own: DccpSeq, options: &mut Vec<DccpOption>) {
        self.waiting = 0;
        self.since = None;
        let runs = self.vector.runs(own);
        if !runs.is_empty() {
            // Senders here use ECT(0) alone, so the sum of nonces is zero.
            options.push(DccpOption::AckVector { nonce: false, runs });
        }
        let elapsed = now.since(self.newest_at).as_micros() / 10;
        if elapsed > 0 {
            options.push(DccpOption::ElapsedTime(u32::try_from(elapsed).unwrap_or(u32::MAX)));
        }
    }

    pub(super) fn on_known(&mut self, own: DccpSeq) {
        self.vector.on_known(own);
    }

    pub(super) fn set_ratio(&mut self, ratio: u64) {
        self.ratio = ratio.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_are_told_in_both_forms() {
        for (millis, units, len) in [(600, 60_000, 4), (700, 70_000, 6)] {
            let mut receiver = WindowReceiver::new(2);
            let seq = DccpSeq::new(7);
            let begin = Time::from_nanos(5);
            let packet = Incoming {
                arrived: begin,
                seq,
                ccval: 0,
                data: Some(100),
                is_marked: false,
                options: &[],
            };
            receiver.handle(begin, &packet);
            let mut options = Vec::new();
            receiver.acknowledge(begin + Duration::from_millis(millis), seq, &mut options);
            let elapsed = options.pop().expect("an option");
            assert_eq!(elapsed, DccpOption::ElapsedTime(units));
            let mut bytes = Vec::new();
            crate::dccp::option::encode(&[elapsed], &mut bytes);
            assert_eq!(bytes[1], len);
        }
    }
}
