use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use bytes::Bytes;
use fontis_base::{Duration, Rate, Stream, Time};
use fontis_codes::Code;
use fontis_proto::cast::{
    CastConfig, CastNeed, CastReceiver, CastReceiverConfig, CastReport, CastSender, CastShape,
    CastState, CastSymbol, CastTransmit, encode_report,
};

/// The way of one receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The share of packets that are lost on the way there, independently.
    pub(super) loss: f64,
    /// One way.
    pub(super) delay: Duration,
    /// When it joins.
    pub(super) joins: Time,
    /// Nothing reaches it and nothing leaves it between these.
    pub(super) away: Option<(Time, Time)>,
    /// When it vanishes without a word.
    pub(super) dies: Option<Time>,
    /// It says at every state that it lacks some symbols of every block, and loses most packets.
    pub(super) lies: bool,
}

impl Way {
    pub(super) fn lossy(loss: f64) -> Self {
        let delay = Duration::from_millis(10);
        Self { loss, delay, joins: Time::ZERO, away: None, dies: None, lies: false }
    }

    fn is_there(&self, now: Time) -> bool {
        let away = self.away.is_some_and(|(from, to)| (from..to).contains(&now));
        !away && self.dies.is_none_or(|at| now < at)
    }
}

enum Event {
    Join(usize),
    Symbol(usize, u64, u32, u32, u32),
    State(usize, u64, CastState),
    Report(usize, CastReport),
    Leave(usize),
    Sender,
    Receiver(usize),
}

/// The outcome.
#[derive(Debug)]
pub(super) struct Outcome {
    /// When each receiver had everything.
    pub(super) done: Vec<Option<Time>>,
    /// Symbols that were sent.
    pub(super) symbols: u64,
    /// Bytes of all reports, with 60 of headers each.
    pub(super) feedback: u64,
    /// Source symbols.
    pub(super) needed: u64,
}

impl Outcome {
    pub(super) fn last(&self) -> f64 {
        let last = self.done.iter().flatten().max();
        last.map_or(f64::INFINITY, |time| time.as_secs_f64())
    }

    pub(super) fn of(&self, receiver: usize) -> f64 {
        self.done[receiver].map_or(f64::INFINITY, |time| time.as_secs_f64())
    }
}

pub(super) const SYMBOL: u16 = 1192;

/// What a receiver that lies says when it hears this.
fn lie(sequence: u32, state: &CastState) -> CastReport {
    let needs = vec![CastNeed { first: 0, blocks: state.pass, symbols: 20 }];
    CastReport { sequence, visit: state.visit, loss: 900_000, needs, ..CastReport::default() }
}

/// Sends `size` bytes at `rate` to receivers behind these ways, until `end`.
pub(super) fn cast(size: u64, rate: Rate, ways: &[Way], seed: u64, end: Time) -> Outcome {
    let shape = CastShape::new(2000, size, 1 << 20, SYMBOL, Code::Counting).unwrap();
    let mut sender = CastSender::new(CastConfig::new(rate), shape);
    let config = CastReceiverConfig::default();
    let mut receivers: Vec<_> = (0..ways.len())
        .map(|i| CastReceiver::new(config, shape, i as u32, seed ^ i as u64))
        .collect();
    let mut streams: Vec<_> =
        (0..ways.len()).map(|i| Stream::new(seed, &format!("way {i}"))).collect();
    let mut events = BinaryHeap::new();
    let mut bodies: BTreeMap<u64, Event> = BTreeMap::new();
    let (mut order, mut number, mut feedback, mut lies) = (0u64, 0u64, 0u64, 0u32);
    let mut done = vec![None; ways.len()];
    let mut joined = BTreeSet::new();
    let mut push = |events: &mut BinaryHeap<_>, bodies: &mut BTreeMap<_, _>, at: Time, event| {
        order += 1;
        bodies.insert(order, event);
        events.push(Reverse((at, order)));
    };
    for (i, way) in ways.iter().enumerate() {
        push(&mut events, &mut bodies, way.joins, Event::Join(i));
    }
    let (mut sender_wakes, mut wakes) = (Time::MAX, vec![Time::MAX; ways.len()]);
    while let Some(Reverse((now, key))) = events.pop() {
        if now > end
            || done.iter().zip(ways).all(|(d, w)| d.is_some() || w.dies.is_some() || w.lies)
        {
            break;
        }
        let mut touched = None;
        match bodies.remove(&key).unwrap() {
            Event::Join(i) => {
                joined.insert(i);
                sender.join(i as u32, now);
                sender.start(now);
            }
            Event::Symbol(i, ..) if ways[i].lies => {}
            Event::Symbol(i, number, visit, block, esi) => {
                let data = Bytes::new();
                receivers[i].symbol(number, &CastSymbol { visit, block, esi, data }, now);
                touched = Some(i);
            }
            Event::State(i, _, state) if ways[i].lies => {
                lies += 1;
                let report = Event::Report(i, lie(lies, &state));
                push(&mut events, &mut bodies, now + ways[i].delay, report);
            }
            Event::State(i, number, state) => {
                receivers[i].state(number, state, now);
                touched = Some(i);
            }
            Event::Report(i, report) => sender.report(i as u32, &report, now),
            Event::Leave(i) => sender.leave(i as u32),
            Event::Sender => sender_wakes = Time::MAX,
            Event::Receiver(i) => {
                wakes[i] = Time::MAX;
                touched = Some(i);
            }
        }
        if let Some(i) = touched {
            let receiver = &mut receivers[i];
            while let Some((block, job)) = receiver.take_job() {
                if receiver.decoded(block, job.run()).is_some() {
                    receiver.accept(block);
                }
            }
            if receiver.is_complete() && done[i].is_none() {
                done[i] = Some(now);
                push(&mut events, &mut bodies, now + ways[i].delay, Event::Leave(i));
            }
            if ways[i].is_there(now) {
                while let Some(report) = receiver.poll(now) {
                    let mut bytes = Vec::new();
                    encode_report(&report, &mut bytes);
                    feedback += bytes.len() as u64 + 60;
                    push(&mut events, &mut bodies, now + ways[i].delay, Event::Report(i, report));
                }
            }
            let at = receiver.timeout().max(now + Duration::from_micros(1));
            if at < wakes[i] {
                wakes[i] = at;
                push(&mut events, &mut bodies, at, Event::Receiver(i));
            }
        }
        while let Some(transmit) = sender.poll(now) {
            for i in &joined {
                let way = ways[*i];
                let lost = streams[*i].unit() < way.loss || !way.is_there(now);
                // What is done listens no more.
                if lost || done[*i].is_some() {
                    continue;
                }
                let event = match &transmit {
                    CastTransmit::Symbol { visit, block, esi } => {
                        Event::Symbol(*i, number, *visit, *block, *esi)
                    }
                    CastTransmit::State(state) => Event::State(*i, number, state.clone()),
                };
                push(&mut events, &mut bodies, now + way.delay, event);
            }
            number += 1;
        }
        let at = sender.timeout().max(now);
        if at < sender_wakes && at < Time::MAX {
            sender_wakes = at;
            push(&mut events, &mut bodies, at, Event::Sender);
        }
    }
    Outcome { done, symbols: sender.symbols_sent(), feedback, needed: shape.all_symbols() }
}
