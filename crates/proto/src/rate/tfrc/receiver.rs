use fontis_base::{Duration, Time};

use super::config::TfrcConfig;
use super::equation::loss_rate_for;
use super::history::{LossHistory, LossInterval};

/// Packets after a gap that make it a loss (RFC 5348 section 5.1).
const NDUPACK: usize = 3;
/// Packets in a round trip that the first loss leaves at least (RFC 5348 section 6.3.1).
const LEAST_FIRST: f64 = 0.5;
/// More losses than this in one gap are a break of the path: the rest count as one event.
const MOST_GAP: u64 = 10_000;

/// The receiver of a TFRC connection: measures the receive rate and the loss event rate, and says
/// when to report them.
#[derive(Clone, Debug)]
pub struct TfrcReceiver {
    config: TfrcConfig,
    /// Arrivals above a gap, ordered by number.
    above: Vec<(u64, TfrcArrival)>,
    /// The greatest number up to which all packets have come or are lost, with its arrival.
    front: Option<(u64, TfrcArrival)>,
    history: LossHistory,
    /// The loss event that is open: its first number, and when that would have come.
    event: Option<LossEvent>,
    /// The sender's round-trip time.
    rtt: Option<Duration>,
    /// The mean size of packets in bytes.
    size: f64,
    /// Bytes that arrived since the last report.
    bytes: u64,
    /// When the last report left, and when the newest packet in it had come.
    reported: Option<Time>,
    reported_to: Time,
    /// When the newest packet with data came.
    newest_at: Time,
    /// The receive rate of the last report, and the greatest of all, in bytes a second.
    rate: f64,
    best_rate: f64,
    /// The loss event rate of the last report.
    last_loss: f64,
    /// When the next report is due, if something arrives before.
    due: Time,
    /// Whether a report must leave at once.
    urgent: bool,
    /// Quarter round trips that the window counter has counted, and at the last report.
    quarters: u64,
    reported_quarters: u64,
    /// When the window counter reached its last values: the time of each change.
    counter_times: [Option<(u64, Time)>; 8],
    losses: u64,
}

/// A packet as it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TfrcArrival {
    /// When.
    pub at: Time,
    /// Bytes of data.
    pub bytes: u32,
    /// The low four bits of the sender's counter of quarter round trips (RFC 4342 section 8.1).
    pub quarter: u8,
    /// The sender's round-trip time, if the packet tells it.
    pub rtt: Option<Duration>,
    /// Whether it carries a congestion mark, which counts as a loss.
    pub is_marked: bool,
}

#[derive(Clone, Copy, Debug)]
struct LossEvent {
    first: u64,
    at: Time,
    quarters: u64,
    losses: u32,
}

impl TfrcReceiver {
    /// A receiver to which nothing has come.
    pub fn new(config: TfrcConfig) -> Self {
        Self {
            config,
            above: Vec::new(),
            front: None,
            history: LossHistory::default(),
            event: None,
            rtt: None,
            size: 0.0,
            bytes: 0,
            reported: None,
            reported_to: Time::ZERO,
            newest_at: Time::ZERO,
            rate: 0.0,
            best_rate: 0.0,
            last_loss: 0.0,
            due: Time::MAX,
            urgent: false,
            quarters: 0,
            reported_quarters: 0,
            counter_times: [None; 8],
            losses: 0,
        }
    }

    /// Takes packet `number`, counted from any beginning without wrapping.
    pub fn handle(&mut self, number: u64, arrival: TfrcArrival) {
        let Some((front, _)) = self.front else {
            self.front = Some((number, arrival));
            self.count(arrival);
            self.urgent = true;
            if arrival.is_marked {
                self.lose(number, arrival.at, self.quarters_of(arrival), 1);
            }
            return;
        };
        if number <= front {
            // It counted as lost: that stays so.
            return;
        }
        let Err(place) = self.above.binary_search_by_key(&number, |(number, _)| *number) else {
            return;
        };
        self.count(arrival);
        self.above.insert(place, (number, arrival));
        self.advance();
    }

    /// The loss event rate; zero before the first loss.
    pub fn loss_event_rate(&self, now: Time) -> f64 {
        self.history.loss_event_rate(&self.open(now), self.config.small_packets)
    }

    /// The loss intervals: the open one, then closed ones, the newest first.
    pub fn intervals(&self, now: Time) -> impl Iterator<Item = LossInterval> {
        core::iter::once(self.open(now)).chain(self.history.closed().copied())
    }

    /// The receive rate of the last report in bytes a second.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Packets that were found lost.
    pub const fn losses(&self) -> u64 {
        self.losses
    }

    /// The sender's round-trip time, as it told it or as its window counter shows it.
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// When a report is due; [`Time::MAX`] if not before more has arrived.
    pub fn due(&self) -> Time {
        match () {
            () if self.urgent => Time::ZERO,
            () if self.bytes > 0 => self.due,
            () => Time::MAX,
        }
    }

    /// Closes the interval of observation for a report that leaves now: the receive rate in bytes a
    /// second and the loss event rate.
    pub fn report(&mut self, now: Time) -> (f64, f64) {
        let first = self.reported.is_none();
        // From packet to packet: from report to report, a time that holds one packet or two would
        // make a rate half or twice what it is. A burst must not make it more than twice.
        let observed = self.newest_at.since(self.reported_to);
        let span = observed.max(self.observation() / 2).as_secs_f64();
        if !first && span > 0.0 {
            self.rate = self.bytes as f64 / span;
            self.best_rate = self.best_rate.max(self.rate);
        }
        self.last_loss = self.loss_event_rate(now);
        self.bytes = 0;
        self.reported = Some(now);
        self.reported_to = self.newest_at;
        self.reported_quarters = self.quarters;
        self.urgent = false;
        self.due = self.rtt.map_or(Time::MAX, |_| now + self.observation());
        (self.rate, self.last_loss)
    }

    /// The interval of observation: a round trip, or a part of it.
    fn observation(&self) -> Duration {
        let Some(rtt) = self.rtt else { return Duration::ZERO };
        let rtt = rtt.as_secs_f64();
        Duration::from_secs_f64(rtt / self.config.reports(rtt, self.rate, self.size))
    }

    fn count(&mut self, arrival: TfrcArrival) {
        let bytes = f64::from(arrival.bytes);
        if arrival.bytes > 0 {
            self.size = if self.size == 0.0 { bytes } else { 0.9 * self.size + 0.1 * bytes };
        }
        if arrival.bytes > 0 {
            self.bytes += u64::from(arrival.bytes);
            self.newest_at = arrival.at;
        }
        let step = u64::from(arrival.quarter.wrapping_sub(self.quarters as u8) & 15);
        // Half the circle back is an old packet.
        if (1..8).contains(&step) {
            self.quarters += step;
            self.counter_times.rotate_right(1);
            self.counter_times[0] = Some((self.quarters, arrival.at));
        }
        match arrival.rtt {
            Some(rtt) if rtt > Duration::ZERO => {
                let had_none = self.rtt.replace(rtt).is_none();
                if had_none && let Some(at) = self.reported {
                    self.due = at + self.observation();
                }
            }
            _ => self.follow_counter(step),
        }
    }

    /// Without the sender's word: a round trip is four quarters, and a report is due after four.
    fn follow_counter(&mut self, step: u64) {
        let Some((newest, at)) = self.counter_times[0] else { return };
        let earlier = self.counter_times.iter().flatten().find(|(value, _)| value + 4 == newest);
        if let Some((_, then)) = earlier
            && (1..4).contains(&step)
        {
            let sample = at.since(*then);
            let mean =
                self.rtt.map_or(sample, |rtt| rtt.mul_ratio(9, 10) + sample.mul_ratio(1, 10));
            self.rtt = Some(mean);
        }
        self.urgent |= self.quarters >= self.reported_quarters + 4;
    }

    /// Moves the front over what has come and what is lost.
    fn advance(&mut self) {
        while let (Some((front, before)), Some((next, arrival))) =
            (self.front, self.above.first().copied())
        {
            if next == front + 1 {
                self.above.remove(0);
                self.front = Some((next, arrival));
                if arrival.is_marked {
                    self.lose(next, arrival.at, self.quarters_of(arrival), 1);
                }
            } else if self.above.len() >= NDUPACK {
                self.lose_gap(front, before, next, arrival);
                self.front = Some((next - 1, before));
            } else {
                break;
            }
        }
    }

    /// The losses between two packets. Each would have come between them (RFC 5348 section 5.2).
    fn lose_gap(&mut self, front: u64, before: TfrcArrival, next: u64, after: TfrcArrival) {
        let gap = next - front;
        let span = after.at.since(before.at);
        let quarters = self.quarters_of(before);
        let each = gap.min(MOST_GAP);
        for step in 1..each {
            self.lose(front + step, before.at + span.mul_ratio(step, gap), quarters, 1);
        }
        if gap > each {
            let rest = u32::try_from(gap - each).unwrap_or(u32::MAX);
            self.lose(front + each, before.at + span.mul_ratio(each, gap), quarters, rest);
        }
    }

    fn lose(&mut self, number: u64, at: Time, quarters: u64, losses: u32) {
        self.losses += u64::from(losses);
        let Some(event) = &mut self.event else {
            self.history.close(self.first_interval());
            return self.begin_event(number, at, quarters, losses);
        };
        let is_same = match self.rtt {
            Some(rtt) => at.since(event.at) <= rtt,
            None => quarters <= event.quarters + 4,
        };
        if is_same {
            event.losses = event.losses.saturating_add(losses);
            return;
        }
        let packets = number.saturating_sub(event.first) as f64;
        let interval = self.rtt.map_or(Duration::ZERO, |rtt| rtt + rtt);
        let is_short = at.since(event.at) <= interval;
        let losses_before = event.losses;
        self.history.close(LossInterval { packets, losses: losses_before, is_short });
        self.begin_event(number, at, quarters, losses);
    }

    fn begin_event(&mut self, first: u64, at: Time, quarters: u64, losses: u32) {
        self.event = Some(LossEvent { first, at, quarters, losses });
        // A new event is reported at once (RFC 5348 section 6.1).
        self.urgent = true;
    }

    /// The interval before the first loss: the one whose rate is the best that was received (RFC
    /// 5348 section 6.3.1), or that of half a packet in a round trip, whatever its time.
    fn first_interval(&self) -> LossInterval {
        let size = self.config.equation_size(self.size.max(1.0));
        let known = self.rtt.filter(|rtt| *rtt > Duration::ZERO);
        let (rtt, best) = match known.map(Duration::as_secs_f64) {
            Some(rtt) => (rtt, self.best_rate.max(self.rate)),
            None => (1.0, 0.0),
        };
        let packets = 1.0 / loss_rate_for(size, rtt, best.max(LEAST_FIRST * size / rtt));
        LossInterval { packets, losses: 1, is_short: false }
    }

    fn open(&self, now: Time) -> LossInterval {
        let (Some(event), Some((front, _))) = (self.event, self.front) else {
            return LossInterval::default();
        };
        let newest = self.above.last().map_or(front, |(number, _)| *number);
        let two = self.rtt.map_or(Duration::ZERO, |rtt| rtt + rtt);
        LossInterval {
            packets: newest.saturating_sub(event.first) as f64,
            losses: event.losses,
            is_short: now.since(event.at) <= two,
        }
    }

    /// The quarters that a packet was sent at, from its low four bits.
    fn quarters_of(&self, arrival: TfrcArrival) -> u64 {
        let back = (self.quarters as u8).wrapping_sub(arrival.quarter) & 15;
        self.quarters.saturating_sub(back.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// A receiver to which packets of 1000 bytes come every 10 ms, but for the lost.
    fn after(count: u64, is_lost: impl Fn(u64) -> bool) -> TfrcReceiver {
        let mut receiver = TfrcReceiver::new(TfrcConfig::default());
        for number in (0..count).filter(|number| !is_lost(*number)) {
            let now = at(number * 10);
            let rtt = Some(RTT);
            receiver
                .handle(number, TfrcArrival { at: now, bytes: 1000, rtt, ..Default::default() });
            if receiver.due() <= now {
                receiver.report(now);
            }
        }
        receiver
    }

    #[test]
    fn the_receive_rate_is_what_arrives_in_a_round_trip() {
        let mut receiver = after(100, |_| false);
        let (rate, loss) = receiver.report(at(1000));
        assert!((rate - 100_000.0).abs() < 11_000.0, "{rate}");
        assert_eq!((loss, receiver.losses()), (0.0, 0));
    }

    #[test]
    fn a_loss_every_hundred_packets_is_a_rate_of_a_hundredth() {
        let receiver = after(2000, |number| number % 100 == 99);
        let rate = receiver.loss_event_rate(at(20_000));
        assert!((rate - 0.01).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn losses_of_one_round_trip_are_one_event() {
        // Two losses 50 ms apart: one event. 150 ms apart: two.
        let near = after(2000, |number| matches!(number % 100, 94 | 99));
        assert!((near.loss_event_rate(at(20_000)) - 0.01).abs() < 1e-9);
        let far = after(2000, |number| matches!(number % 100, 84 | 99));
        let rate = far.loss_event_rate(at(20_000));
        assert!((rate - 0.02).abs() < 0.003, "{rate}");
    }

    #[test]
    fn a_loss_before_any_rate_is_known_leaves_half_a_packet_in_a_round_trip() {
        // Numbers begin anywhere, and tell nothing. The round trip is known or not.
        for rtt in [None, Some(RTT)] {
            let mut receiver = TfrcReceiver::new(TfrcConfig::default());
            for number in [0, 2, 3, 4].map(|number| 1 << 40 | number) {
                let arrival = TfrcArrival { at: at(5), bytes: 1000, rtt, ..Default::default() };
                receiver.handle(number, arrival);
            }
            let (_, loss) = receiver.report(at(10));
            let rate = TfrcConfig::default().equation_rate(1000.0, 0.1, loss);
            assert!((rate - 5000.0).abs() < 1.0, "{rtt:?}: {rate}");
        }
    }

    #[test]
    fn a_mark_on_the_first_packet_is_a_loss_event() {
        let mut receiver = TfrcReceiver::new(TfrcConfig::default());
        let rtt = Some(RTT);
        let first =
            TfrcArrival { at: at(0), bytes: 1000, rtt, is_marked: true, ..Default::default() };
        receiver.handle(7, first);
        let (_, loss) = receiver.report(at(0));
        assert!(loss > 0.1, "{loss}");
        assert_eq!(receiver.losses(), 1);
    }

    #[test]
    fn a_packet_that_comes_before_the_third_after_it_is_not_lost() {
        let mut receiver = after(50, |_| false);
        let mut now = at(500);
        for number in [51, 52, 50, 54, 55, 56, 53, 57] {
            now += Duration::from_millis(10);
            receiver.handle(number, TfrcArrival { at: now, bytes: 1000, ..Default::default() });
        }
        // 53 came after three others; 50 after two.
        assert_eq!(receiver.losses(), 1);
    }

    #[test]
    fn without_the_senders_word_the_window_counter_shows_the_round_trip() {
        let mut receiver = TfrcReceiver::new(TfrcConfig::default());
        let mut reports = 0;
        for number in 0..100u64 {
            // A quarter round trip is 20 ms.
            let arrival = TfrcArrival {
                at: at(number * 10),
                bytes: 1000,
                quarter: (number / 2 % 16) as u8,
                ..Default::default()
            };
            receiver.handle(number, arrival);
            if receiver.due() <= arrival.at {
                receiver.report(arrival.at);
                reports += 1;
            }
        }
        assert_eq!(receiver.rtt(), Some(Duration::from_millis(80)));
        assert!((11..=14).contains(&reports), "{reports}");
    }

    #[test]
    fn a_gap_of_any_length_takes_bounded_work() {
        let mut receiver = after(5, |_| false);
        for number in [u64::MAX - 9, u64::MAX - 8, u64::MAX - 7] {
            receiver.handle(number, TfrcArrival { at: at(90), bytes: 1, ..Default::default() });
        }
        assert!(receiver.losses() > 1_000_000);
    }
}
