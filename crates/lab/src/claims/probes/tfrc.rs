//! The rules of TFRC's sender and receiver and of the reorder buffer, each by itself: what they do
//! when they are told of reports, packets and time, without a network.

use fontis_base::{Duration, Rate, Time};
use fontis_proto::rate::reorder::{ReorderBuffer, ReorderMode};
use fontis_proto::rate::tfrc::{
    FeedbackCount, TfrcArrival, TfrcConfig, TfrcReceiver, TfrcReport, TfrcRules, TfrcSender,
};

use super::super::value::Value;

const SIZE: u32 = 1000;
const RTT: Duration = Duration::from_millis(100);
/// A loss event rate at which the equation allows more than a probe's receiver gets.
const RARE: f64 = 1e-9;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn under(rules: TfrcRules) -> TfrcConfig {
    TfrcConfig { rules, ..TfrcConfig::default() }
}

fn sender(config: TfrcConfig) -> TfrcSender {
    TfrcSender::new(config, Time::ZERO, SIZE)
}

/// A report of the packets sent until 50 ms before `now`.
fn report(now: u64, received: f64, loss: f64) -> TfrcReport {
    let sent = at(now.saturating_sub(50));
    TfrcReport { sent, rtt: RTT, received, loss, is_new_event: false }
}

/// A sender whose application always has more, after so many reports of all that it sent.
fn grown(config: TfrcConfig, reports: u64) -> TfrcSender {
    let mut sender = sender(config);
    for number in 0..reports {
        sender.on_sent(at(number * 100), SIZE);
        sender.on_limited(at(number * 100 + 1));
        let received = if number == 0 { 0.0 } else { sender.bytes_per_second() };
        let now = number * 100 + 100;
        sender.on_report(at(now), &report(now, received, 0.0));
    }
    sender
}

/// The sender's span until the nofeedback timer expires, without the rule's, in seconds, at the
/// rates that eight expiries leave.
fn timer_errors() -> Vec<f64> {
    let mut sender = sender(under(TfrcRules::Rfc5348));
    sender.on_sent(at(0), SIZE);
    let mut now = at(100);
    sender.on_report(now, &report(100, 0.0, 0.0));
    let error = |_| {
        let rule = (4.0 * RTT.as_secs_f64()).max(2.0 * f64::from(SIZE) / sender.bytes_per_second());
        let error = sender.timeout().since(now).as_secs_f64() - rule;
        sender.on_sent(now, SIZE);
        now = sender.timeout();
        sender.on_timeout(now);
        error
    };
    (0..8).map(error).collect()
}

/// Rates after so many expiries of the nofeedback timer of a sender that sends, in bytes a second.
fn silent(expiries: usize) -> Vec<f64> {
    let mut sender = grown(under(TfrcRules::Rfc3448), 6);
    let rate = |_| {
        let rate = sender.bytes_per_second();
        let now = sender.timeout();
        sender.on_sent(now, SIZE);
        sender.on_timeout(now);
        rate
    };
    (0..expiries).map(rate).collect()
}

/// The rate over the receive rate, with receivers that get a part of it: at most what RFC 3448
/// allows.
fn over_received() -> Vec<f64> {
    let mut sender = grown(under(TfrcRules::Rfc3448), 6);
    let ratio = |number: u64| {
        let now = 700 + 100 * number;
        sender.on_sent(at(now - 100), SIZE);
        sender.on_limited(at(now - 99));
        let received = sender.bytes_per_second() * (0.2 + 0.1 * (number % 9) as f64);
        // Half of the reports come in slow start, the others after it.
        let loss = if number < 20 { 0.0 } else { RARE };
        sender.on_report(at(now), &report(now, received, loss));
        sender.bytes_per_second() / received
    };
    (0..40).map(ratio).collect()
}

/// The least time between two packets at a rate of 100 Mbit/s, in milliseconds.
fn least_gap() -> f64 {
    let config = TfrcConfig { small_packets: true, ..under(TfrcRules::Rfc5348) };
    let mut sender = grown(config, 16);
    let now = at(1700);
    sender.on_sent(now, SIZE);
    sender.ready_at().since(now).as_secs_f64() * 1e3
}

/// The factor by which the first report after a pause changes the rate, under rules.
fn after_pause(config: TfrcConfig) -> f64 {
    let mut sender = grown(config, 8);
    for _ in 0..12 {
        // Nothing is sent.
        let now = sender.timeout();
        sender.on_timeout(now);
    }
    let low = sender.bytes_per_second();
    let begin = sender.timeout() + Duration::from_secs(1);
    let later = |millis| begin + Duration::from_millis(millis);
    sender.on_sent(begin, SIZE);
    sender.on_limited(later(1));
    let first = TfrcReport { sent: later(50), ..report(0, low, 0.0) };
    sender.on_report(later(100), &first);
    sender.bytes_per_second() / low
}

/// The rate over the bound of Table 4.9 for an application that sends less than it may: the least
/// of the equation's rate and twice the receive rate, or the greatest of them that is remembered.
/// Receivers get `before` while there is always more to send, then `during`.
fn data_limited(rules: TfrcRules, loss: f64, [before, during]: [f64; 2]) -> f64 {
    let config = under(rules);
    let mut sender = grown(config, 8);
    for number in 0..8 {
        let now = 900 + 100 * number;
        sender.on_sent(at(now - 100), SIZE);
        sender.on_limited(at(now - 99));
        sender.on_report(at(now), &report(now, before, loss));
    }
    sender.on_sent(at(1600), SIZE);
    sender.on_report(at(1700), &report(1700, during, loss));
    let equation = config.equation_rate(f64::from(SIZE), RTT.as_secs_f64(), loss);
    let limit = match rules {
        TfrcRules::Rfc3448 => 2.0 * during,
        TfrcRules::Rfc5348 => 2.0 * before.max(during),
    };
    sender.bytes_per_second() / equation.min(limit)
}

/// The time between two reports of which a round trip has so many, relative to it.
fn report_interval(reports: u32) -> f64 {
    let feedback = FeedbackCount::Fixed(reports);
    let mut receiver = TfrcReceiver::new(TfrcConfig { feedback, ..TfrcConfig::default() });
    let arrival = |millis| TfrcArrival {
        at: at(millis),
        bytes: SIZE,
        rtt: Some(RTT),
        ..TfrcArrival::default()
    };
    receiver.handle(1, arrival(0));
    receiver.report(at(0));
    receiver.handle(2, arrival(1));
    receiver.due().since(at(0)).as_secs_f64() / RTT.as_secs_f64()
}

/// When each of packets 1 to 7 leaves a buffer, in seconds: one comes each second, and the third at
/// 8 s, after the seventh (thesis, Figure 5.1).
fn flush() -> Vec<f64> {
    let (delay, peak) = (Duration::from_secs(60), Rate::from_mbps(1));
    let mut buffer = ReorderBuffer::new(ReorderMode::Hold, delay, peak);
    let mut left = vec![f64::NAN; 7];
    for (second, number) in [(1, 1), (2, 2), (4, 4), (5, 5), (6, 6), (7, 7), (8, 3)] {
        buffer.push(at(1000 * second), number, SIZE, ());
        while let Some((number, ())) = buffer.pop(at(1000 * second)) {
            left[number as usize - 1] = second as f64;
        }
    }
    left
}

/// The result of the probe of this name.
pub(super) fn probe(name: &str) -> Option<Value> {
    let (older, newer) = (TfrcRules::Rfc3448, TfrcRules::Rfc5348);
    let faster = TfrcConfig { faster_restart: true, ..under(newer) };
    Some(match name {
        "first timer" => {
            Value::Number(sender(under(newer)).timeout().since(Time::ZERO).as_secs_f64())
        }
        "timer errors" => Value::List(timer_errors()),
        "halving" => Value::List(silent(4)),
        "least rate" => Value::Number(f64::from(SIZE) / silent(40)[39]),
        "over received" => Value::List(over_received()),
        "least gap" => Value::Number(least_gap()),
        "after pause 3448" => Value::Number(after_pause(under(older))),
        "after pause 5348" => Value::Number(after_pause(under(newer))),
        "after pause faster" => Value::Number(after_pause(faster)),
        "data limited 3448" => Value::List(vec![
            data_limited(older, RARE, [9e3, 4e3]),
            data_limited(older, 0.01, [9e6, 9e6]),
        ]),
        "data limited 5348" => Value::List(vec![
            data_limited(newer, RARE, [9e3, 4e3]),
            data_limited(newer, 0.01, [9e6, 9e6]),
        ]),
        "report interval 1" => Value::Number(report_interval(1)),
        "report interval 10" => Value::Number(report_interval(10)),
        "flush" => Value::List(flush()),
        _ => return None,
    })
}
