use std::collections::VecDeque;

use fontis_base::{Duration, Rate, Time};

use super::auto::Auto;
use super::base_delay::BaseDelay;
use super::feedback::{FeedbackSummary, feedback_interval};
use super::jitter::Jitter;
use super::state::RateState;

/// A packet is lost when one came that left so many packets later.
const BEHIND: u64 = 3;
/// Packets in a row that did not come, from which on the path was away: they tell nothing of it.
const OUTAGE: u64 = 256;
/// Packets that are waited for at most.
const MOST_GAPS: usize = 4096;
/// Packets that come before the controller is told, at most.
const MOST_UNTOLD: usize = 16_384;
/// The longest wait of a packet that is believed, in seconds: it may say what it likes.
const LONGEST_WAIT: f64 = 10.0;
/// Less than this share of what was allowed is less than the path was found to carry.
const LIMITED: f64 = 0.95;
/// Less than this share of what was asked before is sent where the queue is to be emptied.
const FOLLOWED: f64 = 0.7;
/// A silence lasts so many round trips, and so long at least, in which so many packets should have
/// come.
const SILENCE: (Duration, u64) = (Duration::from_millis(250), 4);
const SILENT_PACKETS: f64 = 5.0;
/// What is asked takes effect within so many round trips, and this.
const ANSWERED: (f64, Duration) = (2.0, Duration::from_millis(50));
/// Packets leave back to back if so many times more leave than the pace says.
const FASTER: f64 = 3.0;
/// Packets of a train that tells the bottleneck's rate, at least.
const LONG: u64 = 8;
/// The weight of a packet's wait in the mean.
const NEW_WAIT: f64 = 0.02;

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub struct PathArrival {
    /// Its number; the sender counts all packets.
    pub number: u64,
    /// Its bytes, with headers.
    pub bytes: u32,
    /// When it left, if it says so.
    pub departure: Option<PathDeparture>,
}

/// When a packet left, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathDeparture {
    /// Microseconds of the sender's clock, modulo 2³².
    pub sent: u32,
    /// Bytes with headers that left in a second then.
    pub pace: u32,
}

/// Packets that left back to back.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// When the last left, in microseconds.
    left: i64,
    /// The number of the first packet that came and of the last, and when they came.
    first: (u64, Time),
    last: (u64, Time),
}

impl Train {
    /// The rate at which it came out of the bottleneck, if it is long enough to tell.
    fn line(&self, bytes: u32) -> Option<Rate> {
        let packets = self.last.0 - self.first.0;
        let passed = self.last.1.since(self.first.1);
        let is_long = packets >= LONG - 1 && passed > Duration::ZERO;
        is_long.then(|| Rate::from_bytes_over(packets.saturating_mul(u64::from(bytes)), passed))
    }
}

/// [`Auto`] at the receiving end of a path: what the sender may send, for all that arrives.
///
/// A sender of many receivers cannot run a controller for each path on what all of them report.
/// What [`Auto`] needs is known here sooner than there: which packets came, when, and when they
/// left. What it finds reaches the sender with half a round trip, as long as feedback takes
/// otherwise. While less is sent than this path carries, because of another, it tests nothing.
#[derive(Clone, Debug, Default)]
pub struct ReceivingRate {
    auto: Auto,
    base: BaseDelay,
    jitter: Jitter,
    /// The round trip without queues.
    min_rtt: Duration,
    /// What packets of late have waited, in seconds; the mean and the last.
    mean_wait: f64,
    wait: f64,
    /// The newest packets that left back to back.
    train: Option<Train>,
    /// When the newest packet left, in microseconds.
    sent: i64,
    /// Bytes that left in a second then.
    pace: f64,
    /// The least of that while the queue was to be emptied.
    least_pace: f64,
    watches: bool,
    has_begun: bool,
    /// Another receiver bounds the rate.
    is_bystander: bool,
    /// That one keeps up with flows that fill its queue.
    keeps_up: bool,
    newest: Option<(u64, Time)>,
    /// Packets that did not come yet, and when that showed.
    gaps: VecDeque<(u64, Time)>,
    received_bytes: u64,
    decided: Vec<(u64, bool)>,
    delays: Vec<(u64, i64)>,
    sample_at: Time,
    /// What was allowed, and from when on.
    asked: VecDeque<(Time, f64)>,
}

impl ReceivingRate {
    /// A round trip was measured.
    pub fn measured(&mut self, round_trip: Duration) {
        let queue = Duration::from_secs_f64(self.mean_wait);
        self.min_rtt = (round_trip - queue.min(round_trip)).max(Duration::from_millis(1));
    }

    /// So many receivers say what their paths carry, and the least counts. If that is another's,
    /// `other` says whether it keeps up with flows that fill its queue.
    pub fn set_receivers(&mut self, receivers: u32, other: Option<bool>) {
        self.auto.set_watchers(receivers);
        self.is_bystander = other.is_some();
        self.keeps_up = other == Some(true);
    }

    /// Whether it keeps up with flows that fill the queue.
    pub fn is_friendly(&self) -> bool {
        self.auto.state() == RateState::Friendly
    }

    /// Bytes with headers that may be sent in a second, once anything is known.
    pub fn allowed(&self) -> Option<f64> {
        let (_, asked) = self.asked.back()?;
        Some(*asked)
    }

    /// The bytes that left in a second when the newest packet did.
    pub const fn pace(&self) -> f64 {
        self.pace
    }

    /// Takes a packet. Runs of losses have a mean length of `mean_run` packets.
    pub fn came(&mut self, arrival: PathArrival, mean_run: f64, now: Time) {
        let PathArrival { number, bytes, departure } = arrival;
        self.end_silence(f64::from(bytes), now);
        let next = self.newest.map_or(number, |(newest, _)| newest.saturating_add(1));
        if number < next {
            // One that is late is none that is lost, if that is not decided yet.
            let Ok(at) = self.gaps.binary_search_by_key(&number, |(gap, _)| *gap) else { return };
            self.gaps.remove(at);
        } else {
            if number - next <= OUTAGE {
                self.gaps.extend((next..number).map(|gap| (gap, now)));
                while self.gaps.len() > MOST_GAPS {
                    self.gaps.pop_front();
                }
            }
            self.newest = Some((number, now));
        }
        self.received_bytes += u64::from(bytes);
        if self.decided.len() == MOST_UNTOLD {
            // Nobody says how long the round trip is, or when packets leave.
            self.decided.clear();
            self.delays.clear();
        }
        self.decided.push((number, true));
        if let Some(departure) = departure {
            self.take_delay(number, bytes, departure, now);
        }
        if now >= self.sample_at && !self.delays.is_empty() && self.is_ready() {
            self.sample(f64::from(bytes), mean_run, now);
        }
    }

    fn is_ready(&self) -> bool {
        self.has_begun && self.min_rtt > Duration::ZERO
    }

    /// The time since the packet before may have been a silence of the path.
    fn end_silence(&mut self, packet: f64, now: Time) {
        let Some((_, came)) = self.newest else { return };
        let silent = now.since(came);
        if silent > SILENCE.0.max(self.srtt() * SILENCE.1)
            && silent.as_secs_f64() * self.pace > SILENT_PACKETS * packet
        {
            self.auto.on_silence();
            self.asked.clear();
        }
    }

    fn take_delay(&mut self, number: u64, bytes: u32, departure: PathDeparture, now: Time) {
        let PathDeparture { sent, pace } = departure;
        // The clock of 32 bits goes on from where the newest packet left.
        let step = sent.wrapping_sub(self.sent as u32) as i32;
        let left =
            if self.pace > 0.0 { self.sent.wrapping_add(i64::from(step)) } else { i64::from(sent) };
        let left_ns = left.wrapping_mul(1000);
        let delay = (now.as_nanos() as i64).wrapping_sub(left_ns);
        let is_watched = self.auto.is_watched(number);
        if is_watched {
            let least = if self.watches { self.least_pace } else { f64::INFINITY };
            self.least_pace = least.min(f64::from(pace));
        }
        self.watches = is_watched;
        if left >= self.sent || self.pace == 0.0 {
            (self.sent, self.pace) = (left, f64::from(pace).max(1.0));
        }
        self.take_train(number, bytes, left, now);
        self.base.observe(now, delay);
        self.wait = self.base.waiting(delay).as_secs_f64().min(LONGEST_WAIT);
        self.mean_wait += (self.wait - self.mean_wait) * NEW_WAIT;
        self.jitter.observe(number, left_ns, delay);
        self.delays.push((number, delay));
    }

    /// What packets that left back to back say of the bottleneck, and the first of a rate to begin
    /// with.
    fn take_train(&mut self, number: u64, bytes: u32, left: i64, now: Time) {
        let next = Train { left, first: (number, now), last: (number, now) };
        let train = self.train.get_or_insert(next);
        let since = left.saturating_sub(train.left).max(0) as f64 / 1e6;
        let sent = number.saturating_sub(train.last.0) as f64 * f64::from(bytes);
        if number <= train.last.0 {
            return;
        }
        if sent > FASTER * self.pace * since {
            (train.left, train.last) = (left, (number, now));
            return;
        }
        let line = core::mem::replace(train, next).line(bytes);
        if let Some(line) = line {
            self.auto.knows_line(line);
        }
        if !core::mem::replace(&mut self.has_begun, true)
            && !line.is_some_and(|line| self.auto.on_capacity_hint(line))
        {
            // So much is on its way whatever this path carries: begin with it.
            self.auto.begin_at(Rate::from_bps(self.pace as u64 * 8));
        }
    }

    /// The round trip, with the present queue.
    fn srtt(&self) -> Duration {
        self.min_rtt + Duration::from_secs_f64(self.wait)
    }

    /// Whether less left than this path was found to carry when it left: others bound the rate.
    fn is_limited(&self, now: Time) -> bool {
        let known = |at: &Time| *at + self.srtt() / 2 <= now;
        let asked = self.asked.iter().filter(|(at, _)| known(at)).map(|(_, asked)| *asked);
        asked.reduce(f64::min).is_some_and(|least| self.pace < LIMITED * least)
    }

    /// Forgets what was asked before all that left of late.
    fn forget_asked(&mut self, now: Time) {
        let kept = Duration::from_secs_f64(self.srtt().as_secs_f64() * ANSWERED.0) + ANSWERED.1;
        // What was asked last before that was asked then.
        while self.asked.get(1).is_some_and(|(at, _)| *at + kept < now) {
            self.asked.pop_front();
        }
    }

    /// The most that was asked of late.
    fn most_asked(&self) -> f64 {
        self.asked.iter().map(|(_, asked)| *asked).fold(0.0, f64::max)
    }

    /// Tells the controller what came.
    fn sample(&mut self, packet: f64, mean_run: f64, now: Time) {
        let Some((newest, _)) = self.newest else { return };
        let srtt = self.srtt();
        self.sample_at = now + feedback_interval(srtt);
        self.jitter.end_window(now, srtt);
        let jitter = self.jitter.get();
        while let Some((gap, since)) = self.gaps.front().copied()
            && newest - gap >= BEHIND
            && now.since(since) >= jitter
        {
            self.decided.push((gap, false));
            self.gaps.pop_front();
        }
        let mut decided = core::mem::take(&mut self.decided);
        decided.sort_unstable_by(|a, b| b.cmp(a));
        let mut one_way_ns = core::mem::take(&mut self.delays);
        one_way_ns.sort_unstable();
        let on_way = self.pace * srtt.as_secs_f64();
        self.forget_asked(now);
        let limited = self.is_limited(now);
        let was_followed = self.least_pace < FOLLOWED * self.most_asked();
        self.auto.judge_drain(newest, was_followed);
        self.auto.set_bystander(limited || self.is_bystander);
        let sample = FeedbackSummary {
            now,
            srtt,
            min_rtt: self.min_rtt + jitter,
            jitter,
            one_way_ns,
            received_at: now,
            received_bytes: self.received_bytes,
            largest: newest,
            next_number: newest.saturating_add(1 + (on_way / packet) as u64),
            decided,
            mean_burst: mean_run,
            train: None,
            limited,
            late: false,
            in_flight: on_way as u64 + self.gaps.len() as u64 * packet as u64,
            marked: 0,
        };
        if self.keeps_up {
            self.auto.keep_up(&sample, self.pace * 8.0);
        }
        self.auto.on_feedback(&sample);
        let window = self.auto.allowance(srtt) as f64 / srtt.as_secs_f64().max(1e-3);
        let allowed = (self.auto.rate().as_bps() as f64 / 8.0).min(window);
        self.asked.push_back((now, allowed));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use fontis_base::{Duration, Stream, Time};

    use super::*;

    const BYTES: u32 = 1273;

    /// A path of so many bits a second with a queue, which loses packets at random behind it.
    struct Path {
        rate: f64,
        loss: f64,
        one_way: Duration,
        free_at: Time,
        stream: Stream,
    }

    impl Path {
        fn new(rate: f64, loss: f64) -> Self {
            let one_way = Duration::from_millis(20);
            Self { rate, loss, one_way, free_at: Time::ZERO, stream: Stream::new(1, "path") }
        }

        /// When a packet comes that leaves now.
        fn pass(&mut self, now: Time) -> Option<Time> {
            let time = Duration::from_secs_f64(f64::from(BYTES) * 8.0 / self.rate);
            self.free_at = self.free_at.max(now) + time;
            (self.stream.unit() >= self.loss).then(|| self.free_at + self.one_way)
        }
    }

    /// What is allowed in the end, in bits a second, when a sender follows it from `first` on, but
    /// never sends more than `most`; what it sent the second half of the time, and the mean wait.
    fn followed(path: &mut Path, first: f64, most: f64, seconds: f64) -> (f64, f64, f64) {
        let mut receiving = ReceivingRate::default();
        receiving.measured(path.one_way * 2);
        let mut pace = first / 8.0;
        // What was allowed, and when it is known to the sender.
        let mut known = VecDeque::new();
        let mut coming: VecDeque<(Time, u64, Time, f64)> = VecDeque::new();
        let (mut now, mut number, mut sent, mut waits) = (Time::ZERO, 0, 0.0, (0.0, 0.0));
        while now.as_secs_f64() < seconds {
            while let Some((at, ..)) = coming.front().copied()
                && at <= now
                && let Some((at, number, left, pace)) = coming.pop_front()
            {
                // The clocks of the two differ.
                let sent = (left.as_nanos() / 1000 + 4_000_000_000) as u32;
                let departure = Some(PathDeparture { sent, pace: pace as u32 });
                receiving.came(PathArrival { number, bytes: BYTES, departure }, 1.0, at);
                let wait = at.since(left + path.one_way).as_secs_f64();
                waits = (waits.0 + wait, waits.1 + 1.0);
                if let Some(allowed) = receiving.allowed() {
                    known.push_back((at + path.one_way, allowed));
                }
            }
            while let Some((at, allowed)) = known.front().copied()
                && at <= now
            {
                pace = allowed.min(most / 8.0);
                known.pop_front();
            }
            if let Some(at) = path.pass(now) {
                coming.push_back((at, number, now, pace));
            }
            sent += if now.as_secs_f64() > seconds / 2.0 { f64::from(BYTES) * 8.0 } else { 0.0 };
            number += 1;
            // The first packets leave back to back.
            if number >= 16 {
                now += Duration::from_secs_f64(f64::from(BYTES) / pace);
            }
        }
        let allowed = receiving.allowed().expect("something came") * 8.0;
        (allowed, sent / (seconds / 2.0), waits.0 / waits.1)
    }

    #[test]
    fn who_follows_it_fills_the_path_and_leaves_a_short_queue() {
        for loss in [0.0, 0.05, 0.2] {
            let (_, sent, wait) = followed(&mut Path::new(40e6, loss), 9e6, 1e12, 12.0);
            println!("{loss}: {:.1} Mbit/s, {:.1} ms", sent / 1e6, wait * 1e3);
            assert!((0.9..1.02).contains(&(sent / 40e6)), "{loss}: {sent}");
            assert!(wait < 0.03, "{loss}: {wait}");
        }
    }

    #[test]
    fn what_others_bound_says_nothing_about_the_path() {
        // A loss that nobody could prove at such a rate, and no queue.
        let (allowed, sent, _) = followed(&mut Path::new(40e6, 0.05), 9e6, 4e6, 30.0);
        assert!((0.95..1.01).contains(&(sent / 4e6)), "{sent}");
        assert!(allowed > 4e6, "{allowed}");
    }

    #[test]
    fn packets_back_to_back_tell_the_bottlenecks_rate() {
        let mut receiving = ReceivingRate::default();
        receiving.measured(Duration::from_millis(40));
        let mut path = Path::new(20e6, 0.0);
        for number in 0..16 {
            let at = path.pass(Time::ZERO).expect("nothing is lost");
            let departure = Some(PathDeparture { sent: 0, pace: 1_000_000 });
            receiving.came(PathArrival { number, bytes: BYTES, departure }, 1.0, at);
        }
        assert_eq!(receiving.allowed(), None);
        let at = path.pass(Time::ZERO + Duration::from_millis(30)).expect("nothing is lost");
        let departure = Some(PathDeparture { sent: 30_000, pace: 1_000_000 });
        receiving.came(PathArrival { number: 16, bytes: BYTES, departure }, 1.0, at);
        // Half of it, and the growth of a round.
        let allowed = receiving.allowed().expect("it has begun") * 8.0;
        assert!((0.75..0.85).contains(&(allowed / 20e6)), "{allowed}");
    }

    #[test]
    fn what_a_sender_never_explains_is_not_kept() {
        let mut receiving = ReceivingRate::default();
        for number in 0..3 * MOST_UNTOLD as u64 {
            let departure =
                Some(PathDeparture { sent: 0, pace: u32::MAX }).filter(|_| number % 2 == 0);
            receiving.came(PathArrival { number, bytes: BYTES, departure }, 1.0, Time::ZERO);
        }
        assert!(receiving.decided.len() <= MOST_UNTOLD && receiving.delays.len() <= MOST_UNTOLD);
        assert_eq!(receiving.allowed(), None);
    }

    #[test]
    fn a_packet_is_late_or_lost_but_not_both() {
        let mut receiving = ReceivingRate::default();
        for number in [0, 1, 2, 5, 4, 6, 3, 7] {
            receiving.came(PathArrival { number, bytes: BYTES, departure: None }, 1.0, Time::ZERO);
        }
        assert!(receiving.gaps.is_empty());
        assert_eq!(receiving.received_bytes, 8 * u64::from(BYTES));
        receiving.came(PathArrival { number: 5, bytes: BYTES, departure: None }, 1.0, Time::ZERO);
        assert_eq!(receiving.received_bytes, 8 * u64::from(BYTES));
    }
}
