//! CCIDs 3 and 4, TFRC (RFC 4342, RFC 5622): a rate, loss intervals, and the round-trip time in
//! data packets (RFC 6323).

use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Time};

use super::dropped::{CORRUPT, Corruption, RECEIVE_BUFFER, drops, is_slow};
use super::path::{DccpPath, Incoming};
use crate::dccp::config::DccpConfig;
use crate::dccp::number::DccpSeq;
use crate::dccp::option::{DccpOption, IntervalReport, MOST_DROPS};
use crate::rate::tfrc::{
    LossHistory, LossInterval, TfrcArrival, TfrcConfig, TfrcReceiver, TfrcReport, TfrcSender,
};

/// Packets whose times of departure are kept.
const MOST_SENT: usize = 1 << 14;
/// Units of elapsed times in nanoseconds.
const TEN_MICROS: u64 = 10_000;

/// The sender's half.
#[derive(Clone, Debug)]
pub(crate) struct RateSender {
    tfrc: TfrcSender,
    config: TfrcConfig,
    tells_rtt: bool,
    sent: VecDeque<Departure>,
    has_sent_data: bool,
    /// The window counter, and when it last changed (RFC 4342 section 8.1).
    counter: u8,
    counter_at: Option<Time>,
    /// The first packet that was sent.
    first: Option<DccpSeq>,
    /// The newest packet that a report covered.
    covered: Option<DccpSeq>,
    corruption: Corruption,
    /// Data packets in the open interval of the last report.
    open: u32,
    lost: u64,
    /// Bytes in the last packet with data.
    size: u32,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    seq: DccpSeq,
    at: Time,
    counter: u8,
}

impl RateSender {
    pub(super) fn new(config: &DccpConfig, small_packets: bool, now: Time) -> Self {
        let tfrc = TfrcConfig { small_packets, ..config.tfrc };
        Self {
            tfrc: TfrcSender::new(tfrc, now, config.packet_size),
            config: tfrc,
            tells_rtt: config.tells_rtt,
            sent: VecDeque::new(),
            has_sent_data: false,
            counter: 0,
            counter_at: None,
            first: None,
            covered: None,
            corruption: Corruption::default(),
            open: 0,
            lost: 0,
            size: config.packet_size,
        }
    }

    pub(super) fn ready_at(&self) -> Time {
        self.tfrc.ready_at()
    }

    pub(super) fn on_limited(&mut self, now: Time) {
        self.tfrc.on_limited(now);
    }

    pub(super) fn on_sent(
        &mut self,
        now: Time,
        seq: DccpSeq,
        data: Option<u32>,
        options: &mut Vec<DccpOption>,
    ) -> u8 {
        self.count_quarters(now);
        if let Some(bytes) = data {
            self.has_sent_data = true;
            self.size = bytes;
            self.tfrc.on_sent(now, bytes);
            if self.tells_rtt {
                let rtt = self.tfrc.rtt().unwrap_or(Duration::ZERO).as_micros();
                options.push(DccpOption::RttEstimate(u32::try_from(rtt).unwrap_or(u32::MAX)));
            }
        }
        self.first.get_or_insert(seq);
        self.sent.push_back(Departure { seq, at: now, counter: self.counter });
        if self.sent.len() > MOST_SENT {
            self.sent.pop_front();
        }
        self.counter
    }

    fn count_quarters(&mut self, now: Time) {
        let (Some(rtt), Some(at)) = (self.tfrc.rtt(), self.counter_at) else {
            self.counter_at = Some(now);
            return;
        };
        let quarters = now.since(at).as_nanos() / (rtt.as_nanos() / 4).max(1);
        if quarters > 0 {
            self.counter = self.counter.wrapping_add(quarters.min(5) as u8) & 15;
            self.counter_at = Some(now);
        }
    }

    pub(super) fn on_ack(&mut self, now: Time, ack: DccpSeq, options: &[DccpOption]) {
        let find = |read: fn(&DccpOption) -> Option<u32>| options.iter().find_map(read);
        let received = find(|option| match option {
            DccpOption::ReceiveRate(rate) => Some(*rate),
            _ => None,
        });
        let elapsed = find(|option| match option {
            DccpOption::ElapsedTime(units) => Some(*units),
            _ => None,
        });
        // An acknowledgement without a rate is no report. One without an elapsed time should not be
        // (RFC 4342 section 8.2), but Linux sends no others: the time is a part of the round trip.
        let Some(received) = received else { return };
        let elapsed = elapsed.unwrap_or(0);
        let is_old = self.covered.is_some_and(|covered| covered.is_after(ack));
        let Ok(place) = self.sent.binary_search_by(|sent| sent.seq.offset_from(ack).cmp(&0)) else {
            return;
        };
        if is_old {
            return;
        }
        let Departure { at, counter, .. } = self.sent[place];
        let received = self.follow_troubles(f64::from(received), ack, options);
        let is_corrupt = self.note_corruption(now, ack, options);
        self.covered = Some(ack);
        // The newest stays: the next report may be of the same packet.
        self.sent.drain(..place);
        let ahead = self.counter.wrapping_sub(counter) & 15;
        if ahead < 4 {
            self.counter = counter.wrapping_add(4) & 15;
            self.counter_at = Some(now);
        }
        let (loss, open) = self.loss(options);
        let is_lost = loss > 0.0 && open.is_some_and(|open| open < self.open);
        let is_new_event = is_lost || is_corrupt;
        let loss = (loss + self.corruption.event_rate(ack)).min(1.0);
        if let Some(open) = open {
            self.open = open;
        }
        self.lost += u64::from(is_new_event);
        let elapsed = Duration::from_nanos(u64::from(elapsed) * TEN_MICROS);
        self.tfrc.on_report(
            now,
            &TfrcReport { sent: at, rtt: now.since(at) - elapsed, received, loss, is_new_event },
        );
    }

    /// Notes the corrupt packets that a report is the first to tell of: whether they begin an
    /// event.
    fn note_corruption(&mut self, now: Time, ack: DccpSeq, options: &[DccpOption]) -> bool {
        let covered = self.covered;
        let is_new = |seq: DccpSeq| covered.is_none_or(|covered| seq.is_after(covered));
        let corrupt = drops(ack, options).filter(|(seq, code)| is_new(*seq) && *code >= CORRUPT);
        let (Some(newest), Some(first)) = (corrupt.map(|(seq, _)| seq).next(), self.first) else {
            return false;
        };
        let rtt = self.tfrc.rtt().unwrap_or(Duration::ZERO);
        self.corruption.note(now, newest, first, rtt)
    }

    /// The receive rate that counts if the other end's application could not follow: twice of it is
    /// the most that this end may send (RFC 4342 section 5.2).
    fn follow_troubles(&self, received: f64, ack: DccpSeq, options: &[DccpOption]) -> f64 {
        let is_new = |seq: DccpSeq| self.covered.is_none_or(|covered| seq.is_after(covered));
        let new = drops(ack, options).filter(|(seq, code)| is_new(*seq) && *code < CORRUPT);
        let (mut full, mut any) = (0.0, is_slow(options));
        for (_, code) in new {
            any = true;
            full += f64::from(u8::from(code == RECEIVE_BUFFER));
        }
        let Some(rtt) = self.tfrc.rtt().filter(|rtt| any && *rtt > Duration::ZERO) else {
            return received;
        };
        let packet = f64::from(self.size) / rtt.as_secs_f64();
        let bound = (received - full * packet).max(received.min(packet));
        received.min(bound / 2.0)
    }

    /// The loss event rate, and the data packets of the open interval. The intervals are exact; the
    /// rate is rounded, but knows which intervals of small packets are short.
    fn loss(&self, options: &[DccpOption]) -> (f64, Option<u32>) {
        let intervals = options.iter().find_map(|option| match option {
            DccpOption::LossIntervals { intervals, .. } => Some(intervals),
            _ => None,
        });
        let open = intervals.and_then(|intervals| Some(intervals.first()?.data));
        let rounded = options.iter().find_map(|option| match option {
            DccpOption::LossEventRate(u32::MAX) => Some(0.0),
            DccpOption::LossEventRate(interval) => Some(1.0 / f64::from((*interval).max(1))),
            _ => None,
        });
        let exact = || {
            let mut history = LossHistory::default();
            let of = |report: &IntervalReport| LossInterval {
                packets: f64::from(report.data),
                losses: report.loss,
                ..LossInterval::default()
            };
            let intervals = intervals?;
            intervals.get(1..)?.iter().rev().for_each(|report| history.close(of(report)));
            Some(history.loss_event_rate(&of(intervals.first()?), false))
        };
        let loss = match self.config.small_packets {
            true => rounded.or_else(exact),
            false => exact().or(rounded),
        };
        (loss.unwrap_or(0.0), open)
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.tfrc.rtt()
    }

    pub(super) fn timeout(&self) -> Time {
        // A sender that never sent waits for no report.
        if self.has_sent_data { self.tfrc.timeout() } else { Time::MAX }
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.timeout() <= now {
            self.tfrc.on_timeout(now);
        }
    }

    pub(super) fn path(&self) -> DccpPath {
        DccpPath {
            rate: self.tfrc.rate(),
            rtt: self.tfrc.rtt(),
            loss_event_rate: self.tfrc.loss_event_rate(),
            lost: self.lost,
            timeouts: self.tfrc.timeouts(),
            ..DccpPath::default()
        }
    }
}

/// The receiver's half.
#[derive(Clone, Debug)]
pub(crate) struct RateReceiver {
    tfrc: TfrcReceiver,
    small_packets: bool,
    first: DccpSeq,
    /// The newest packet's number and time.
    newest: DccpSeq,
    newest_at: Time,
    has_data: bool,
    /// Whether data have come since the last report. Without data none is due (RFC 4342 section
    /// 6): two ends would report to each other that reports have come.
    owes: bool,
}

impl RateReceiver {
    pub(super) fn new(config: &DccpConfig, small_packets: bool, first: DccpSeq) -> Self {
        Self {
            tfrc: TfrcReceiver::new(TfrcConfig { small_packets, ..config.tfrc }),
            small_packets,
            first,
            newest: first,
            newest_at: Time::ZERO,
            has_data: false,
            owes: false,
        }
    }

    /// Notes the arrival of a packet that a buffer may still hold: acknowledgements name it.
    pub(super) fn on_arrival(&mut self, now: Time, seq: DccpSeq) {
        if !self.newest.is_after(seq) {
            self.newest = seq;
            self.newest_at = now;
        }
    }

    /// The receive rate of the last report.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bps((self.tfrc.rate() * 8.0).min(1e18) as u64)
    }

    pub(super) fn handle(&mut self, now: Time, packet: &Incoming<'_>) {
        self.has_data |= packet.data.is_some();
        self.owes |= packet.data.is_some();
        if !self.has_data {
            return;
        }
        let rtt = packet.options.iter().find_map(|option| match option {
            DccpOption::RttEstimate(micros) if *micros > 0 => {
                Some(Duration::from_micros(u64::from(*micros)))
            }
            _ => None,
        });
        let number = packet.seq.get().wrapping_sub(self.first.get()) & ((1 << 48) - 1);
        self.tfrc.handle(
            number,
            TfrcArrival {
                at: now,
                bytes: packet.data.unwrap_or(0),
                quarter: packet.ccval,
                rtt,
                is_marked: packet.is_marked,
            },
        );
    }

    pub(super) fn due(&self) -> Time {
        if self.owes { self.tfrc.due() } else { Time::MAX }
    }

    pub(super) fn acknowledge(&mut self, now: Time, options: &mut Vec<DccpOption>) {
        // Between reports an acknowledgement says nothing of rates: it would end an observation.
        if self.due() > now {
            return;
        }
        self.owes = false;
        let (rate, loss) = self.tfrc.report(now);
        let elapsed = now.since(self.newest_at).as_nanos() / TEN_MICROS;
        options.push(DccpOption::ElapsedTime(u32::try_from(elapsed).unwrap_or(u32::MAX)));
        options.push(DccpOption::ReceiveRate(rate.min(f64::from(u32::MAX)) as u32));
        let interval = match loss > 0.0 {
            true => libm::ceil(1.0 / loss).min(f64::from(u32::MAX - 1)) as u32,
            false => u32::MAX,
        };
        options.push(DccpOption::LossEventRate(interval));
        if loss <= 0.0 {
            return;
        }
        let report = |interval: LossInterval| {
            let data = interval.packets.min(f64::from(u32::MAX)) as u32;
            let loss = interval.losses.min(data);
            IntervalReport { lossless: data - loss, nonce: false, loss, data }
        };
        if self.small_packets {
            let drops = self.tfrc.intervals(now).take(MOST_DROPS);
            let drops = drops.map(|interval| interval.losses).collect();
            options.push(DccpOption::DroppedPackets(drops));
        }
        let intervals = self.tfrc.intervals(now).map(report).collect();
        options.push(DccpOption::LossIntervals { skip: 0, intervals });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender of CCID 3 that has more to send, whose packets up to `sent` were reported after
    /// 100 ms, the last five with `options`.
    fn reported(sent: u64, options: &[DccpOption]) -> RateSender {
        let config = DccpConfig { packet_size: 1000, ..DccpConfig::default() };
        let mut sender = RateSender::new(&config, false, Time::ZERO);
        let mut now = Time::ZERO;
        for seq in 1..=sent {
            sender.on_sent(now, DccpSeq::new(seq), Some(1000), &mut Vec::new());
            now += Duration::from_millis(100);
            let report = [DccpOption::ReceiveRate(100_000), DccpOption::LossEventRate(u32::MAX)];
            let last = if seq + 5 > sent { options } else { &[] };
            sender.on_limited(now);
            sender.on_ack(now, DccpSeq::new(seq), &[&report, last].concat());
        }
        sender
    }

    #[test]
    fn a_report_without_an_elapsed_time_is_one() {
        let path = reported(1, &[]).path();
        assert_eq!(path.rtt, Some(Duration::from_millis(100)));
    }

    #[test]
    fn an_application_that_cannot_follow_bounds_the_rate() {
        let rate = |options: &[DccpOption]| reported(20, options).path().rate.as_bps() as f64;
        let free = rate(&[]);
        let slow = rate(&[DccpOption::SlowReceiver]);
        // Three packets that the receive buffer dropped.
        let full = rate(&[DccpOption::DataDropped(vec![0xa2])]);
        let rates = [free, slow, full];
        assert!(slow < 0.6 * free && full < slow, "{rates:?}");
    }

    #[test]
    fn corrupt_packets_count_as_marked() {
        // One that an earlier report covered, or the newest of each of the last five reports.
        let one = reported(20, &[DccpOption::DataDropped(vec![0x03, 0xb0])]);
        let all = reported(20, &[DccpOption::DataDropped(vec![0xb0])]);
        let reserved = reported(20, &[DccpOption::DataDropped(vec![0xd0])]);
        let losses = [&one, &all, &reserved].map(|sender| sender.tfrc.loss_event_rate());
        assert_eq!(losses[0], 0.0, "what was reported before is not new");
        assert!((0.04..0.4).contains(&losses[1]) && losses[1] == losses[2], "{losses:?}");
        assert!(all.path().rate < reported(20, &[]).path().rate);
        assert!(all.path().lost >= 1);
    }

    #[test]
    fn reports_do_not_answer_reports() {
        let config = DccpConfig::default();
        let mut receiver = RateReceiver::new(&config, false, DccpSeq::new(0));
        let mut arrive = |seq: u64, data: Option<u32>, is_due: bool| {
            let now = Time::from_nanos(seq * 50_000);
            let seq = DccpSeq::new(seq);
            receiver.on_arrival(now, seq);
            // A round trip has passed since the packet before.
            let ccval = (seq.get() % 4 * 4) as u8;
            let incoming =
                Incoming { arrived: now, seq, ccval, data, is_marked: false, options: &[] };
            receiver.handle(now, &incoming);
            assert_eq!(receiver.due() <= now, is_due, "packet {seq:?}");
            let mut options = Vec::new();
            receiver.acknowledge(now, &mut options);
            assert_eq!(!options.is_empty(), is_due, "packet {seq:?}");
        };
        arrive(1, Some(100), true);
        arrive(2, None, false);
        arrive(3, None, false);
        arrive(4, Some(100), true);
        arrive(5, None, false);
    }
}
