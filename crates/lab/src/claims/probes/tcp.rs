//! TCP as its standards have it: two endpoints over a path of 100 ms, and what they do.

use std::collections::VecDeque;

use fontis_base::{Duration, Time};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp::{Options, Recovery, Segment, SynOptions, TcpConfig, TcpEndpoint};

use super::super::value::Value;

const RTT: Duration = Duration::from_millis(100);

/// What is changed on the way to the receiver: a segment, how many with new data came before it,
/// and whether it is a copy; `None` loses it.
type OnTheWay<'a> = &'a mut dyn FnMut(Segment, u64, bool) -> Option<Segment>;

/// Two endpoints and what is on its way between them.
struct Pair {
    sender: TcpEndpoint,
    receiver: Option<TcpEndpoint>,
    config: TcpConfig,
    wire: VecDeque<(Time, bool, Segment)>,
    now: Time,
    rtt: Duration,
    /// New segments and the end of what was sent.
    segments: u64,
    highest: u32,
    /// What left the sender, with whether it is a copy, and what came to it, in their order.
    log: Vec<Event>,
    /// The threshold of slow start since the first copy, in bytes.
    threshold: u64,
}

#[derive(Clone, Debug)]
enum Event {
    Left(Segment, bool),
    Came(Segment),
}

fn config() -> TcpConfig {
    TcpConfig {
        congestion: CongestionKind::NewReno,
        recovery: Recovery::Rfc6675,
        timestamps: false,
        delayed_ack: None,
        ..TcpConfig::default()
    }
}

impl Pair {
    fn new(config: TcpConfig, segments: u64) -> Self {
        let mut sender = TcpEndpoint::connect(Time::ZERO, config.clone(), 0);
        sender.write(segments * u64::from(config.segment_len(false)));
        Self {
            sender,
            receiver: None,
            config,
            wire: VecDeque::new(),
            now: Time::ZERO,
            rtt: RTT,
            segments: 0,
            highest: 0,
            log: Vec::new(),
            threshold: 0,
        }
    }

    /// Goes on for some time.
    fn run(&mut self, time: Duration, way: OnTheWay<'_>) {
        let end = self.now + time;
        while self.now < end {
            self.send(way);
            // What comes at once is answered one by one.
            while self.wire.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, is_ours, segment)) = self.wire.pop_front() else { break };
                self.arrive(is_ours, segment);
                self.send(way);
            }
            self.now += Duration::from_micros(100);
        }
    }

    fn send(&mut self, way: OnTheWay<'_>) {
        while let Some(transmit) = self.sender.poll(self.now) {
            let segment = transmit.segment;
            let is_new = segment.len > 0 && segment.seq >= self.highest;
            let is_copy = segment.len > 0 && !is_new;
            self.log.push(Event::Left(segment.clone(), is_copy));
            let before = self.segments;
            if is_copy && self.threshold == 0 {
                self.threshold = self.sender.sender_stats().ssthresh;
            }
            if is_new {
                self.segments += 1;
                self.highest = segment.seq + segment.len;
            }
            if let Some(segment) = way(segment, before, is_copy) {
                self.wire.push_back((self.now + self.rtt / 2, true, segment));
            }
        }
    }

    fn arrive(&mut self, is_ours: bool, segment: Segment) {
        match (is_ours, &mut self.receiver) {
            (false, _) => {
                self.log.push(Event::Came(segment.clone()));
                self.sender.handle(self.now, &segment, false);
            }
            (true, Some(receiver)) => receiver.handle(self.now, &segment, false),
            (true, None) => {
                let config = self.config.clone();
                self.receiver = TcpEndpoint::accept(self.now, config, 0, &segment);
            }
        }
        let answers = self.receiver.as_mut().into_iter();
        let answers = answers.flat_map(|receiver| std::iter::from_fn(|| receiver.poll(self.now)));
        let at = self.now + self.rtt / 2;
        self.wire.extend(answers.map(|answer| (at, false, answer.segment)));
    }
}

/// Segments of both ends before the first with data, of an application that writes once it is
/// connected.
fn handshake() -> f64 {
    let mut pair = Pair::new(config(), 0);
    pair.run(RTT * 2, &mut |segment, _, _| Some(segment));
    pair.sender.write(1000);
    pair.run(RTT * 2, &mut |segment, _, _| Some(segment));
    let has_data = |event: &Event| matches!(event, Event::Left(segment, _) if segment.len > 0);
    pair.log.iter().take_while(|event| !has_data(event)).count() as f64
}

/// The largest window that a receiver with a buffer beyond all bounds offers, to a sender that
/// scales windows and to one that does not.
fn window(scales: bool) -> f64 {
    let mut pair = Pair::new(TcpConfig { receive_buffer: 1 << 40, ..config() }, 100);
    pair.run(RTT * 5, &mut |segment, _, _| {
        Some(match segment.syn() {
            Some(syn) if !scales => {
                let syn = SynOptions { window_scale: None, ..syn };
                Segment { options: Some(Box::new(Options::Syn(syn))), ..segment }
            }
            _ => segment,
        })
    });
    let came = pair.log.iter().filter_map(|event| match event {
        Event::Came(segment) => Some(segment),
        Event::Left(..) => None,
    });
    let (mut scale, mut most) = (0, 0);
    for segment in came {
        match segment.syn() {
            // A SYN's own window has no scale.
            Some(syn) => scale = syn.window_scale.unwrap_or(0),
            None => most = most.max(u64::from(segment.window) << scale),
        }
    }
    most as f64
}

/// A recovery from one loss without selective acknowledgements: duplicates before the copy leaves,
/// and by how many segments the window is inflated beyond the threshold of slow start and the
/// duplicates after these, when it first lets something new go.
fn recovery() -> [f64; 2] {
    const LOST: u64 = 200;
    let mut pair = Pair::new(TcpConfig { sack: false, ..config() }, 1000);
    pair.run(RTT * 10, &mut |segment, before, is_copy| {
        let is_lost = !is_copy && segment.len > 0 && before == LOST;
        (!is_lost).then_some(segment)
    });
    let mss = f64::from(pair.config.segment_len(false));
    let (mut duplicates, mut acked) = (0, 0);
    let mut at_copy = None;
    for event in &pair.log {
        match event {
            Event::Came(segment) if segment.ack == acked => duplicates += 1,
            Event::Came(segment) => (acked, duplicates) = (segment.ack, 0),
            Event::Left(_, true) if at_copy.is_none() => at_copy = Some(duplicates),
            Event::Left(segment, false) if segment.len > 0 => {
                let Some(first) = at_copy else { continue };
                let outstanding = f64::from(segment.seq + segment.len - acked) / mss;
                let later = f64::from(duplicates - first);
                let threshold = pair.threshold as f64 / mss;
                return [f64::from(first), outstanding - threshold - later];
            }
            Event::Left(..) => {}
        }
    }
    [f64::NAN; 2]
}

/// What remains of the smoothed time when one sample of another length comes.
fn smoothing() -> f64 {
    let mut pair = Pair::new(config(), 1);
    pair.run(RTT * 3, &mut |segment, _, _| Some(segment));
    let before = pair.sender.sender_stats().srtt.map_or(f64::NAN, |srtt| srtt.as_secs_f64());
    pair.rtt = RTT * 2;
    pair.sender.write(u64::from(pair.config.segment_len(false)));
    pair.run(RTT * 3, &mut |segment, _, _| Some(segment));
    let after = pair.sender.sender_stats().srtt.map_or(f64::NAN, |srtt| srtt.as_secs_f64());
    let sample = pair.rtt.as_secs_f64();
    (after - sample) / (before - sample)
}

/// The timeout of a segment that is lost behind a handshake of one round trip, in seconds, and the
/// window after it in segments.
fn timeout() -> [f64; 2] {
    let mut pair = Pair::new(TcpConfig { min_rto: Duration::ZERO, ..config() }, 1);
    let (mut left, step) = (None, Duration::from_millis(1));
    for _ in 0..1000 {
        let now = pair.now;
        pair.run(step, &mut |segment, _, _| {
            if segment.len > 0 {
                left.get_or_insert(now);
            }
            (segment.len == 0).then_some(segment)
        });
        let stats = pair.sender.sender_stats();
        if let (Some(left), 1..) = (left, stats.timeouts) {
            let mss = u64::from(pair.config.segment_len(false));
            return [now.since(left).as_secs_f64(), stats.cwnd as f64 / mss as f64];
        }
    }
    [f64::NAN; 2]
}

pub(super) fn probe(rule: &str) -> Option<Value> {
    Some(Value::Number(match rule {
        "handshake" => handshake(),
        "window" => window(false),
        "scaled window" => window(true),
        "duplicates" => recovery()[0],
        "inflation" => recovery()[1],
        "smoothing" => smoothing(),
        "timeout" => timeout()[0],
        "window after timeout" => timeout()[1],
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_behave_as_the_standards_of_tcp_say() {
        assert_eq!(window(false), 65_535.0);
        assert_eq!(window(true), f64::from(65_535 << 14));
        assert_eq!(handshake(), 3.0);
        assert_eq!(recovery(), [3.0, 3.0]);
        assert!((smoothing() - 7.0 / 8.0).abs() < 1e-6);
        let [timeout, window] = timeout();
        // SRTT is 100 ms and RTTVAR half of it.
        assert!((timeout - 0.3).abs() < 2e-3 && window == 1.0, "{timeout}, {window}");
    }
}
