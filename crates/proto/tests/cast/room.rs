use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use bytes::Bytes;
use fontis_base::{Duration, Rate, Serializer, Stream, Time};
use fontis_codes::Code;
use fontis_proto::cast::{
    CastConfig, CastNeed, CastRate, CastReceiver, CastReceiverConfig, CastReport, CastSender,
    CastShape, CastState, CastSymbol, CastTransmit, encode_report,
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
    Symbol(usize, u64, CastSymbol),
    State(usize, u64, CastState),
    Report(usize, CastReport),
    Leave(usize),
    Sender,
    Receiver(usize),
}

/// The outcome.
#[derive(Debug)]
pub(super) struct Outcome {
    /// When each receiver had the head.
    pub(super) headed: Vec<Option<Time>>,
    /// When each receiver had everything.
    pub(super) done: Vec<Option<Time>>,
    /// Symbols that were sent.
    pub(super) symbols: u64,
    /// Bytes of all reports, with 60 of headers each.
    pub(super) feedback: u64,
    /// Source symbols.
    pub(super) needed: u64,
    /// The share of packets that the link dropped.
    pub(super) dropped: f64,
    /// The sender's rate at the end.
    pub(super) rate: Rate,
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
    cast_over(size, CastRate::Fixed(rate), None, ways, seed, end)
}

/// Events in the order of their times.
#[derive(Default)]
struct Calendar {
    order: u64,
    times: BinaryHeap<Reverse<(Time, u64)>>,
    events: BTreeMap<u64, Event>,
}

impl Calendar {
    fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert(self.order, event);
        self.times.push(Reverse((at, self.order)));
    }

    fn pop(&mut self) -> Option<(Time, Event)> {
        let Reverse((at, order)) = self.times.pop()?;
        Some((at, self.events.remove(&order)?))
    }
}

/// A link that all share.
struct Link {
    line: Serializer,
    /// Bytes of its queue.
    queue: u64,
    packets: u64,
    dropped: u64,
}

impl Link {
    /// When a packet has passed it; never if its queue is full.
    fn pass(&mut self, now: Time) -> Option<Time> {
        self.packets += 1;
        let waiting = self.line.rate().bytes_in(self.line.free_at().max(now).since(now));
        if waiting > self.queue {
            self.dropped += 1;
            return None;
        }
        Some(self.line.send(now, u64::from(SYMBOL) + 73))
    }
}

/// A sender, its receivers, and what is between them.
struct Room<'a> {
    ways: &'a [Way],
    sender: CastSender,
    receivers: Vec<CastReceiver>,
    streams: Vec<Stream>,
    joined: BTreeSet<usize>,
    head_blocks: u32,
    headed: Vec<Option<Time>>,
    done: Vec<Option<Time>>,
    calendar: Calendar,
    link: Option<Link>,
    sender_wakes: Time,
    wakes: Vec<Time>,
    feedback: u64,
    lies: u32,
}

impl Room<'_> {
    fn handle(&mut self, event: Event, now: Time) {
        match event {
            Event::Join(i) => {
                self.joined.insert(i);
                self.sender.join(i as u32, now);
                self.sender.start(now);
            }
            Event::Symbol(i, ..) if self.ways[i].lies => {}
            Event::Symbol(i, number, symbol) => {
                self.receivers[i].symbol(number, &symbol, now);
                self.receive(i, now);
            }
            Event::State(i, _, state) if self.ways[i].lies => {
                self.lies += 1;
                let report = Event::Report(i, lie(self.lies, &state));
                self.calendar.push(now + self.ways[i].delay, report);
            }
            Event::State(i, number, state) => {
                self.receivers[i].state(number, state, now);
                self.receive(i, now);
            }
            Event::Report(i, report) => self.sender.report(i as u32, &report, now),
            Event::Leave(i) => self.sender.leave(i as u32),
            Event::Sender => self.sender_wakes = Time::MAX,
            Event::Receiver(i) => {
                self.wakes[i] = Time::MAX;
                self.receive(i, now);
            }
        }
        self.send(now);
    }

    /// Lets a receiver do what it has to do.
    fn receive(&mut self, i: usize, now: Time) {
        let (receiver, way) = (&mut self.receivers[i], &self.ways[i]);
        while let Some((block, job)) = receiver.take_job() {
            if receiver.decoded(block, job.run()).is_some() {
                receiver.accept(block);
            }
        }
        if self.headed[i].is_none() && (0..self.head_blocks).all(|block| receiver.has(block)) {
            self.headed[i] = Some(now);
        }
        if receiver.is_complete() && self.done[i].is_none() {
            self.done[i] = Some(now);
            self.calendar.push(now + way.delay, Event::Leave(i));
        }
        while way.is_there(now)
            && let Some(report) = receiver.poll(now)
        {
            let mut bytes = Vec::new();
            encode_report(&report, &mut bytes);
            self.feedback += bytes.len() as u64 + 60;
            self.calendar.push(now + way.delay, Event::Report(i, report));
        }
        let at = receiver.timeout().max(now + Duration::from_micros(1));
        if at < self.wakes[i] {
            self.wakes[i] = at;
            self.calendar.push(at, Event::Receiver(i));
        }
    }

    /// Sends what is due.
    fn send(&mut self, now: Time) {
        while let Some((number, transmit)) = self.sender.poll(now) {
            let left = self.link.as_mut().map_or(Some(now), |link| link.pass(now));
            let Some(left) = left else { continue };
            for i in &self.joined {
                let way = self.ways[*i];
                let lost = self.streams[*i].unit() < way.loss || !way.is_there(left);
                // What is done listens no more.
                if lost || self.done[*i].is_some() {
                    continue;
                }
                let event = match &transmit {
                    CastTransmit::Symbol { visit, block, esi, timing } => {
                        let (visit, block, esi) = (*visit, *block, *esi);
                        let data = Bytes::new();
                        let symbol = CastSymbol { visit, block, esi, timing: *timing, data };
                        Event::Symbol(*i, number, symbol)
                    }
                    CastTransmit::State(state) => Event::State(*i, number, state.clone()),
                };
                self.calendar.push(left + way.delay, event);
            }
        }
        let at = self.sender.timeout().max(now);
        if at < self.sender_wakes && at < Time::MAX {
            self.sender_wakes = at;
            self.calendar.push(at, Event::Sender);
        }
    }

    fn is_over(&self) -> bool {
        let mut all = self.done.iter().zip(self.ways);
        all.all(|(done, way)| done.is_some() || way.dies.is_some() || way.lies)
    }
}

/// The same, at a rate that may follow the receivers, over a link that all share: its rate, and the
/// bytes of its queue.
pub(super) fn cast_over(
    size: u64,
    rate: CastRate,
    link: Option<(Rate, u64)>,
    ways: &[Way],
    seed: u64,
    end: Time,
) -> Outcome {
    cast_object((2000, size), rate, link, ways, seed, end)
}

/// The same, of an object with a head and a body of so many bytes.
pub(super) fn cast_object(
    (head, body): (u64, u64),
    rate: CastRate,
    link: Option<(Rate, u64)>,
    ways: &[Way],
    seed: u64,
    end: Time,
) -> Outcome {
    let shape = CastShape::new(head, body, 1 << 20, SYMBOL, Code::Counting).unwrap();
    let config = CastReceiverConfig::default();
    let receiver = |i| CastReceiver::new(config, shape, i as u32, seed ^ i as u64);
    let link = link.map(|(rate, queue)| Link {
        line: Serializer::new(rate),
        queue,
        packets: 0,
        dropped: 0,
    });
    let mut room = Room {
        ways,
        sender: CastSender::new(CastConfig::new(rate), shape),
        receivers: (0..ways.len()).map(receiver).collect(),
        streams: (0..ways.len()).map(|i| Stream::new(seed, &format!("way {i}"))).collect(),
        joined: BTreeSet::new(),
        head_blocks: shape.head_blocks(),
        headed: vec![None; ways.len()],
        done: vec![None; ways.len()],
        calendar: Calendar::default(),
        link,
        sender_wakes: Time::MAX,
        wakes: vec![Time::MAX; ways.len()],
        feedback: 0,
        lies: 0,
    };
    for (i, way) in ways.iter().enumerate() {
        room.calendar.push(way.joins, Event::Join(i));
    }
    while let Some((now, event)) = room.calendar.pop()
        && now <= end
        && !room.is_over()
    {
        room.handle(event, now);
    }
    let dropped = room.link.map_or(0.0, |link| link.dropped as f64 / link.packets.max(1) as f64);
    Outcome {
        headed: room.headed,
        done: room.done,
        symbols: room.sender.symbols_sent(),
        feedback: room.feedback,
        needed: shape.all_symbols(),
        dropped,
        rate: room.sender.rate(),
    }
}
