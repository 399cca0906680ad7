use fontis_base::{Duration, Rate, Time};

use super::config::{TfrcConfig, TfrcRules};

/// The weight of the old value in the mean round-trip time (RFC 5348 section 4.3).
const OLD_RTT: f64 = 0.9;
/// The longest time between packets in seconds, t_mbi.
const LONGEST_GAP: f64 = 64.0;
/// The nofeedback timer before the first report.
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);
/// The share of a new size in the mean size of packets.
const NEW_SIZE: f64 = 0.1;
/// Of small packets, the least time between two (RFC 4828 section 4.3).
const LEAST_GAP: Duration = Duration::from_millis(10);
/// A change of the rate by less than this factor is noise of the receiver's measurement.
const NOISE: f64 = 1.05;
/// A packet may leave this much before its time, so that a late one is made up for.
const MOST_CREDIT: Duration = Duration::from_millis(5);

/// The sender of a TFRC connection: turns reports into an allowed rate.
#[derive(Clone, Debug)]
pub struct TfrcSender {
    config: TfrcConfig,
    /// The allowed rate in bytes a second.
    rate: f64,
    /// The mean size of packets in bytes.
    size: f64,
    /// The round-trip time in seconds.
    rtt: Option<f64>,
    loss: f64,
    /// The rate of the equation at the last report, in bytes a second.
    equation: f64,
    /// Receive rates with their times; one under the rules of RFC 3448.
    received: Vec<(Time, f64)>,
    /// When slow start last doubled the rate.
    doubled: Time,
    /// The greatest receive rate since the last loss event, for Faster Restart.
    fastest: f64,
    /// When the nofeedback timer expires.
    expires: Time,
    /// Whether anything was sent since that timer was set.
    has_sent: bool,
    /// When the last packet should have left by the rate, its bytes, and when the next may leave.
    last: Time,
    last_bytes: f64,
    next: Time,
    limits: Limits,
    /// Expiries of the nofeedback timer.
    timeouts: u64,
}

/// When the rate, and not the application, limited the sender (RFC 5348 section 8.2.1).
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    first: Time,
    second: Time,
    new: Time,
    next: Time,
}

/// A receiver's report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TfrcReport {
    /// When the newest packet that it covers was sent.
    pub sent: Time,
    /// The round-trip time, without the time at the receiver.
    pub rtt: Duration,
    /// The receive rate in bytes a second; zero in the first report.
    pub received: f64,
    /// The loss event rate.
    pub loss: f64,
    /// Whether it reports a loss event that no earlier report did.
    pub is_new_event: bool,
}

impl TfrcSender {
    /// A sender that begins at `now`; `size` is the size of its packets in bytes as far as known.
    pub fn new(config: TfrcConfig, now: Time, size: u32) -> Self {
        let size = f64::from(size.max(1));
        Self {
            config,
            rate: config.first_rate(size),
            size,
            rtt: None,
            loss: 0.0,
            equation: f64::INFINITY,
            received: Vec::new(),
            doubled: now,
            fastest: 0.0,
            expires: now + FIRST_TIMEOUT,
            has_sent: false,
            last: now,
            last_bytes: 0.0,
            next: now,
            limits: Limits { first: now, second: now, new: now, next: now },
            timeouts: 0,
        }
    }

    /// The allowed rate in bytes a second.
    pub const fn bytes_per_second(&self) -> f64 {
        self.rate
    }

    /// The allowed rate.
    pub fn rate(&self) -> Rate {
        Rate::from_bps((self.rate * 8.0).min(1e18) as u64)
    }

    /// The loss event rate of the last report.
    pub const fn loss_event_rate(&self) -> f64 {
        self.loss
    }

    /// The mean round-trip time.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.map(Duration::from_secs_f64)
    }

    /// Whether no loss was reported so far.
    pub const fn is_slow_start(&self) -> bool {
        self.loss <= 0.0
    }

    /// Expiries of the nofeedback timer.
    pub const fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// When the nofeedback timer expires.
    pub const fn timeout(&self) -> Time {
        self.expires
    }

    /// When the next packet may leave. A caller that has one and must wait says so: the rate limits
    /// it.
    pub fn ready_at(&self) -> Time {
        self.next
    }

    /// Notes that a packet waits for the rate.
    pub fn on_limited(&mut self, now: Time) {
        let limits = &mut self.limits;
        if limits.first <= limits.new {
            limits.first = now;
        } else if limits.second <= limits.next {
            limits.second = now;
        }
    }

    /// Notes that a packet of `bytes` bytes of data leaves.
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        if self.last_bytes == 0.0 && self.rtt.is_none() {
            // The first one sets the timer: before it, nothing could be answered (RFC 5348 section
            // 4.2).
            self.expires = now + FIRST_TIMEOUT;
        }
        let bytes = f64::from(bytes.max(1));
        self.size += NEW_SIZE * (bytes - self.size);
        self.has_sent = true;
        let credit = match self.config.small_packets {
            // The least time is a promise: no packet may be early.
            true => Duration::ZERO,
            false => self.gap().mul_ratio(1, 2).min(MOST_CREDIT),
        };
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        self.last = self.next.max(earliest);
        self.last_bytes = bytes;
        self.pace();
    }

    /// The time that the last packet takes at the present rate. Its own size paces it: sizes may
    /// differ much.
    fn gap(&self) -> Duration {
        let gap = Duration::from_secs_f64((self.last_bytes / self.rate).min(LONGEST_GAP));
        if self.config.small_packets { gap.max(LEAST_GAP) } else { gap }
    }

    /// Sets the time of the next packet by the present rate, which may have changed since the last
    /// one left (RFC 5348 section 4.6).
    fn pace(&mut self) {
        if self.last_bytes > 0.0 {
            self.next = self.last + self.gap();
        }
    }

    /// Takes a report.
    pub fn on_report(&mut self, now: Time, report: &TfrcReport) {
        let sample = report.rtt.as_secs_f64().max(1e-6);
        let is_first = self.rtt.is_none();
        let rtt = self.rtt.map_or(sample, |rtt| OLD_RTT * rtt + (1.0 - OLD_RTT) * sample);
        self.rtt = Some(rtt);
        let is_limited = self.was_data_limited(now, report.sent);
        let is_worse = report.is_new_event || report.loss > self.loss;
        self.loss = report.loss;
        if report.is_new_event {
            self.fastest = 0.0;
        } else {
            self.fastest = self.fastest.max(report.received);
        }
        if is_first {
            self.rate = self.config.initial_rate(self.size, rtt).max(self.rate);
            self.doubled = now;
            self.received = vec![(now, f64::INFINITY)];
            // The first report tells no receive rate that could bound anything.
            if self.loss > 0.0 {
                self.follow(now, f64::INFINITY);
            }
            return self.restart_timer(now);
        }
        let limit = self.receive_limit(now, report.received, is_limited, is_worse);
        self.follow(now, limit);
        self.restart_timer(now);
    }

    /// Whether the application limited the sender in all the time that a report covers.
    fn was_data_limited(&mut self, now: Time, sent: Time) -> bool {
        let Limits { first, second, new, .. } = self.limits;
        let was = |limited: Time| new < limited && limited <= sent;
        self.limits.new = sent;
        self.limits.next = now;
        !was(first) && !was(second)
    }

    /// The limit that receive rates set: twice the rate, with the rules' care for an application
    /// that sends less than it may.
    fn receive_limit(&mut self, now: Time, rate: f64, is_limited: bool, is_worse: bool) -> f64 {
        if self.config.rules == TfrcRules::Rfc3448 {
            self.received = vec![(now, rate)];
            return 2.0 * rate;
        }
        let greatest = |set: &[(Time, f64)]| set.iter().fold(0.0, |most: f64, (_, x)| most.max(*x));
        if !is_limited {
            let two = Duration::from_secs_f64(2.0 * self.rtt.unwrap_or(0.0));
            self.received.retain(|(at, rate)| rate.is_finite() && now.since(*at) <= two);
            self.received.push((now, rate));
            return 2.0 * greatest(&self.received);
        }
        // The first value bounds nothing, and must not stay the greatest.
        self.received.retain(|(_, rate)| rate.is_finite());
        if is_worse {
            self.received.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
            self.received.push((now, 0.85 * rate));
            let most = greatest(&self.received);
            self.received = vec![(now, most)];
            return most;
        }
        self.received.push((now, rate));
        let most = greatest(&self.received);
        self.received = vec![(now, most)];
        2.0 * most
    }

    /// Sets the rate from loss event rate, round-trip time and the receive rates' limit (RFC 5348
    /// section 4.3).
    fn follow(&mut self, now: Time, limit: f64) {
        let Some(rtt) = self.rtt else { return };
        self.equation = self.config.equation_rate(self.size, rtt, self.loss);
        if self.loss > 0.0 {
            self.rate = self.equation.min(limit).max(self.size / LONGEST_GAP);
            return;
        }
        if now.since(self.doubled) < Duration::from_secs_f64(rtt) {
            return;
        }
        let is_restart = self.config.faster_restart && 2.0 * self.rate < self.fastest;
        let factor = if is_restart { 4.0 } else { 2.0 };
        let floor = self.config.slow_start_floor(self.size, rtt);
        let rate = (factor * self.rate).min(factor / 2.0 * limit).max(floor);
        // A report of what was sent before the last doubling allows no more than the present rate,
        // but for the noise of its measurement. Where a round trip has several reports it must not
        // hold back the next one.
        if rate > self.rate * NOISE {
            self.doubled = now;
            self.rate = rate;
        } else if rate * NOISE < self.rate {
            self.rate = rate;
        }
    }

    /// Handles the expiry of the nofeedback timer (RFC 3448 and RFC 5348, both section 4.4).
    pub fn on_timeout(&mut self, now: Time) {
        if now < self.expires {
            return;
        }
        let least = self.size / LONGEST_GAP;
        let Some(rtt) = self.rtt else {
            // Without a sample nothing is known; a sender that has sent nothing waits for nothing.
            if self.has_sent {
                self.timeouts += 1;
                // Silence takes back what routers approved of (RFC 5634 section 3.2.4).
                let usual = self.config.unapproved_rate(self.size);
                self.rate = (self.rate / 2.0).min(usual).max(least);
            }
            return self.restart_timer(now);
        };
        let recover = self.config.recover_rate(self.size, rtt);
        let received = self.received.iter().fold(0.0, |most: f64, (_, rate)| most.max(*rate));
        let is_idle = !self.has_sent;
        let is_spared = match self.loss > 0.0 {
            true => received < recover,
            false => self.rate < 2.0 * recover,
        };
        if is_idle && is_spared {
            // The rate after a pause is not reduced further.
        } else if self.loss <= 0.0 {
            self.timeouts += 1;
            let floor = if is_idle { recover.min(self.rate) } else { least };
            self.rate = (self.rate / 2.0).max(floor);
        } else {
            self.timeouts += 1;
            let timer_limit = match self.equation > 2.0 * received {
                true => received,
                false => self.equation / 2.0,
            };
            let timer_limit = timer_limit.max(least);
            self.received = vec![(now, timer_limit / 2.0)];
            self.rate = self.equation.min(timer_limit).max(least);
        }
        self.restart_timer(now);
    }

    fn restart_timer(&mut self, now: Time) {
        let rtt = self.rtt.map_or(FIRST_TIMEOUT.as_secs_f64() / 4.0, |rtt| rtt);
        let span = (4.0 * rtt).max(2.0 * self.size / self.rate).min(2.0 * LONGEST_GAP);
        self.expires = now + Duration::from_secs_f64(span);
        self.has_sent = false;
        self.pace();
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{InitialRate, SlowStart};
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn report(sent: Time, received: f64, loss: f64) -> TfrcReport {
        TfrcReport { sent, rtt: RTT, received, loss, is_new_event: false }
    }

    fn sender(config: TfrcConfig) -> TfrcSender {
        TfrcSender::new(config, Time::ZERO, 1000)
    }

    /// A sender that always has more, after reports of all that it may send.
    fn grown(config: TfrcConfig, reports: u64) -> TfrcSender {
        let mut sender = sender(config);
        for number in 0..reports {
            sender.on_sent(at(number * 100), 1000);
            sender.on_limited(at(number * 100 + 1));
            let received = if number == 0 { 0.0 } else { sender.bytes_per_second() };
            sender.on_report(at(number * 100 + 100), &report(at(number * 100 + 50), received, 0.0));
        }
        sender
    }

    #[test]
    fn slow_start_doubles_the_rate_in_each_round_trip() {
        let rfc3448 = TfrcConfig { rules: TfrcRules::Rfc3448, ..TfrcConfig::default() };
        for config in [TfrcConfig::default(), rfc3448] {
            let rates = [1, 2, 3, 4].map(|reports| grown(config, reports).bytes_per_second());
            assert_eq!(rates, [40e3, 80e3, 160e3, 320e3], "{:?}", config.rules);
        }
        let packet = TfrcConfig { initial: InitialRate::Packet, ..rfc3448 };
        assert_eq!(grown(packet, 1).bytes_per_second(), 10e3);
    }

    #[test]
    fn reports_within_a_round_trip_double_the_rate_once() {
        let mut sender = grown(TfrcConfig::default(), 2);
        for millis in [220, 240, 260, 280] {
            sender.on_limited(at(millis));
            sender.on_report(at(millis), &report(at(millis - 10), 80e3, 0.0));
            assert_eq!(sender.bytes_per_second(), 80e3);
        }
    }

    #[test]
    fn after_a_loss_the_equation_decides_and_the_receive_rate_bounds_it() {
        let mut sender = grown(TfrcConfig::default(), 6);
        sender.on_limited(at(610));
        sender.on_report(at(700), &report(at(650), 1e6, 0.01));
        assert!((sender.bytes_per_second() - 112_332.2).abs() < 1.0);
        let mut slow = grown(TfrcConfig { rules: TfrcRules::Rfc3448, ..TfrcConfig::default() }, 6);
        slow.on_report(at(700), &report(at(650), 20e3, 0.01));
        assert_eq!(slow.bytes_per_second(), 40e3);
    }

    #[test]
    fn a_data_limited_sender_keeps_its_rate_under_rfc_5348_and_not_under_rfc_3448() {
        let rate_after = |rules| {
            let mut sender = grown(TfrcConfig { rules, ..TfrcConfig::default() }, 6);
            let before = sender.bytes_per_second();
            for number in 6..16u64 {
                sender.on_sent(at(number * 100), 1000);
                sender.on_report(at(number * 100 + 100), &report(at(number * 100 + 50), 10e3, 0.0));
            }
            sender.bytes_per_second() / before
        };
        assert!(rate_after(TfrcRules::Rfc5348) >= 1.0);
        assert!(rate_after(TfrcRules::Rfc3448) <= 0.05);
    }

    #[test]
    fn without_reports_the_rate_halves_down_to_a_packet_in_64_seconds() {
        let mut sender = grown(TfrcConfig::default(), 6);
        let before = sender.bytes_per_second();
        sender.on_sent(at(650), 1000);
        sender.on_timeout(sender.timeout());
        assert_eq!(sender.bytes_per_second(), before / 2.0);
        for _ in 0..60 {
            sender.on_sent(sender.timeout(), 1000);
            sender.on_timeout(sender.timeout());
        }
        assert_eq!(sender.bytes_per_second(), 1000.0 / 64.0);
        assert_eq!(sender.timeouts(), 61);
    }

    #[test]
    fn an_approved_rate_holds_from_the_first_packet_until_silence_or_a_loss_says_otherwise() {
        let config = TfrcConfig { approved: 50e3, ..TfrcConfig::default() };
        let approved = 50e3 * 1000.0 / 1036.0;
        let begun = || {
            let mut sender = sender(config);
            sender.on_sent(at(0), 1000);
            assert!((sender.bytes_per_second() - approved).abs() < 1e-6);
            sender
        };
        let mut heard = begun();
        heard.on_report(at(100), &report(at(0), 0.0, 0.0));
        assert!((heard.bytes_per_second() - approved).abs() < 1e-6);
        heard.on_limited(at(110));
        heard.on_limited(at(190));
        heard.on_report(at(250), &report(at(200), approved, 0.0));
        assert!((heard.bytes_per_second() - 2.0 * approved).abs() < 1e-6);
        let mut lossy = begun();
        lossy.on_report(at(100), &report(at(0), 0.0, 0.1));
        assert_eq!(lossy.bytes_per_second(), config.equation_rate(1000.0, 0.1, 0.1));
        let mut unheard = begun();
        unheard.on_timeout(unheard.timeout());
        assert_eq!(unheard.bytes_per_second(), 1000.0);
    }

    #[test]
    fn the_first_packet_sets_the_timer_however_long_the_connection_was_open() {
        let config = TfrcConfig { approved: 50e3, ..TfrcConfig::default() };
        let mut sender = sender(config);
        sender.on_timeout(at(2000));
        assert_eq!(sender.timeouts(), 0, "nothing was sent");
        sender.on_sent(at(3900), 1000);
        let rate = sender.bytes_per_second();
        for late in [4000, 5899] {
            sender.on_timeout(at(late));
            assert_eq!((sender.bytes_per_second(), sender.timeouts()), (rate, 0));
        }
        sender.on_sent(at(5000), 1000);
        sender.on_timeout(at(5900));
        assert_eq!((sender.bytes_per_second(), sender.timeouts()), (1000.0, 1));
    }

    #[test]
    fn a_data_limited_sender_may_send_twice_what_arrived_from_its_second_report_on() {
        let mut sender = grown(TfrcConfig::default(), 1);
        for number in 1..10 {
            sender.on_sent(at(number * 100), 1000);
            sender.on_report(at(number * 100 + 100), &report(at(number * 100 + 50), 30e3, 0.0));
        }
        assert_eq!(sender.bytes_per_second(), 60e3);
        // A loss while it is limited: half of what was, or .85 of what arrives now.
        sender.on_sent(at(1000), 1000);
        sender.on_report(at(1100), &report(at(1050), 30e3, 1e-6));
        assert_eq!(sender.bytes_per_second(), 0.85 * 30e3);
    }

    #[test]
    fn a_loss_in_the_first_report_leaves_what_the_equation_allows() {
        for rules in [TfrcRules::Rfc3448, TfrcRules::Rfc5348] {
            let config = TfrcConfig { rules, ..TfrcConfig::default() };
            let mut sender = sender(config);
            sender.on_sent(at(0), 1000);
            sender.on_limited(at(1));
            sender.on_report(at(100), &report(at(0), 0.0, 0.1));
            assert_eq!(sender.bytes_per_second(), config.equation_rate(1000.0, 0.1, 0.1));
        }
    }

    #[test]
    fn a_pause_leaves_the_recover_rate() {
        // Two packets a round trip, the initial window, four or eight packets.
        let after_pause = |config| {
            let mut sender = grown(config, 6);
            sender.on_timeout(sender.timeout());
            for _ in 0..20 {
                sender.on_timeout(sender.timeout());
            }
            sender.bytes_per_second()
        };
        let rfc3448 = TfrcConfig { rules: TfrcRules::Rfc3448, ..TfrcConfig::default() };
        assert!((20e3..=40e3).contains(&after_pause(rfc3448)));
        assert!((40e3..=80e3).contains(&after_pause(TfrcConfig::default())));
    }

    #[test]
    fn small_packets_leave_at_least_ten_milliseconds_apart() {
        let config = TfrcConfig {
            small_packets: true,
            slow_start: SlowStart::Nominal,
            ..TfrcConfig::default()
        };
        let mut sender = TfrcSender::new(config, Time::ZERO, 160);
        sender.on_sent(Time::ZERO, 160);
        sender.on_report(at(500), &report(Time::ZERO, 0.0, 0.0));
        for number in 0..20 {
            let ready = sender.ready_at().max(at(500));
            sender.on_sent(ready, 10);
            assert!(sender.ready_at().since(ready) >= LEAST_GAP, "{number}");
        }
    }
}
