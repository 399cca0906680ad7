use fontis_base::distance::QUEUED_PACKET;
use fontis_base::{
    Duration, Node, Observer, Packet, PacketId, Port, Prefetch, Rate, Serializer, Stream, Time,
    prefetch,
};

use crate::config::{LinkConfig, LossPosition};
use crate::delivery::Delivery;
use crate::delivery_trace::DeliveryLine;
use crate::delivery_trace::DeliveryTrace;
use crate::faults::{FIRST_COPY, Faults, Jitter, Reason};
use crate::flight::Flight;
use crate::link_part::LinkPart;
use crate::queue::kind::QueueKind;
use crate::schedule::Schedule;
use crate::stats::{Count, DropCounts, LinkStats};
use crate::waiting::Waiting;

/// One direction of a path: what goes in by port 0 comes out by port 0, later, or not at all.
///
/// Everything is computed from theoretical times: the line takes its next packet when it became
/// free, however late the driver calls, so a driver's lateness delays a delivery but never the
/// deliveries after it. The only input is when packets enter.
///
/// A super-packet meets one fate: it is lost, copied, corrupted or held back as a whole.
#[derive(Clone, Debug)]
pub struct Link<P, O = ()> {
    /// When the next packet that waits goes on the line; [`Time::MAX`] if there is none or never.
    /// So that a link that is touched while nothing begins does no more than compare.
    begins_at: Time,
    /// When a packet last entered.
    entered_at: Time,
    line: Serializer,
    /// When the queue last became other than empty: no packet in it can begin earlier.
    backlog_since: Time,
    /// What most links do without.
    faults: Option<Box<Faults>>,
    /// What most lines do without.
    variation: Option<Box<Variation>>,
    flight: Flight<P>,
    waiting: Waiting<P>,
    /// The least there is.
    delay: Duration,
    jitter: Option<Jitter>,
    counts: Counts,
    observer: O,
    name: Box<str>,
}

/// How a line's rate varies.
#[derive(Clone, Debug)]
struct Variation {
    changes: Schedule,
    /// The line that a trace makes, in place of the other.
    trace: Option<DeliveryLine>,
}

/// What every link counts, as [`LinkStats`] explains.
#[derive(Clone, Debug, Default)]
struct Counts {
    entered: Count,
    delivered: Count,
    queue: Option<Box<QueueCounts>>,
}

/// What is counted of a queue once something has waited in it.
#[derive(Clone, Copy, Debug, Default)]
struct QueueCounts {
    max_bytes: u64,
    /// Until when the occupancy has been summed up.
    summed_until: Time,
    packet_nanos: u128,
    byte_nanos: u128,
    dropped: Count,
    marked: u64,
    first_drop: Option<Time>,
}

impl Counts {
    fn queue(&mut self) -> &mut QueueCounts {
        self.queue.get_or_insert_default()
    }
}

impl<P: Clone> Link<P> {
    /// A link at rest. Its random processes come from the run's seed and the link's name.
    pub fn new(name: impl Into<String>, seed: u64, config: LinkConfig) -> Self {
        Self::with_observer(name, seed, config, ())
    }
}

impl<P: Clone, O: Observer<P>> Link<P, O> {
    /// A link that tells `observer` of every drop and mark.
    pub fn with_observer(
        name: impl Into<String>,
        seed: u64,
        config: LinkConfig,
        observer: O,
    ) -> Self {
        let name = name.into().into_boxed_str();
        let is_cell = config.queue == QueueKind::Cell;
        Self {
            faults: Faults::new(&name, seed, &config),
            jitter: Jitter::new(&name, seed, config.jitter),
            waiting: Waiting::new(&config, || Stream::new(seed, &format!("{name}/queue"))),
            backlog_since: Time::ZERO,
            // A cell sends by itself.
            line: Serializer::new(if is_cell { Rate::MAX } else { config.rate }),
            variation: Variation::new(config.rate_changes, config.trace, is_cell),
            begins_at: Time::MAX,
            delay: config.delay_changes.least(config.delay),
            flight: Flight::new(),
            entered_at: Time::ZERO,
            counts: Counts::default(),
            observer,
            name,
        }
    }

    /// The same link without its name: one of thousands that nobody asks by name.
    pub fn unnamed(mut self) -> Self {
        self.name = Box::default();
        self
    }

    /// The link's name, under which it reports to its observer.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has done so far.
    pub fn stats(&self) -> LinkStats {
        let Counts { entered, delivered, .. } = self.counts;
        let queue = self.counts.queue.as_deref().copied().unwrap_or_default();
        let faults = self.faults.as_deref();
        let mut dropped = faults.map_or(DropCounts::default(), |faults| faults.dropped);
        dropped.queue = queue.dropped;
        let duplicated = faults.map_or(Count::default(), |faults| faults.duplicated);
        LinkStats {
            entered,
            duplicated,
            delivered,
            dropped,
            held: (entered + duplicated).less(delivered + dropped.total()),
            marked: queue.marked,
            corrupted: faults.map_or(0, |faults| faults.corrupted),
            reordered: faults.map_or(0, |faults| faults.reordered),
            queue_bytes: self.waiting.bytes(),
            max_queue_bytes: queue.max_bytes,
            first_queue_drop: queue.first_drop,
            queue_packet_nanos: queue.packet_nanos,
            queue_byte_nanos: queue.byte_nanos,
        }
    }

    /// What it has done up to `now`, the occupancy of its queue included.
    pub fn observe(&mut self, now: Time) -> LinkStats {
        self.advance(now);
        self.sum_up(now);
        self.stats()
    }

    /// The line's present rate; the mean of a trace; in a cell that of users without their own.
    pub fn rate(&self) -> Rate {
        if let Some(cell) = self.waiting.cell() {
            return cell.rate();
        }
        self.trace().map_or_else(|| self.line.rate(), |line| line.trace().mean_rate())
    }

    /// When the queue first dropped a packet.
    pub fn first_queue_drop(&self) -> Option<Time> {
        self.counts.queue.as_ref()?.first_drop
    }

    /// How many packets wait in the queue.
    pub fn queue_len(&self) -> usize {
        self.waiting.len()
    }

    /// The packet before which so many others will leave; `None` if that is not known yet. Those
    /// held back do not count.
    pub fn coming(&self, after: usize) -> Option<&Packet<P>> {
        self.flight.get(after)
    }

    /// How many packets are on the line or in flight.
    pub fn flight_len(&self) -> usize {
        self.flight.len()
    }

    /// How many bytes wait in the queue.
    pub fn queue_bytes(&self) -> u64 {
        self.waiting.bytes()
    }

    /// Who is told of drops and marks.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Who is told of drops and marks, to be changed.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Changes the rate at `now`, as an entry of the schedule would have done. A trace ends with
    /// it. A radio cell has the rates of its users, and takes no other.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        if self.waiting.cell().is_some() {
            return;
        }
        if let Some(variation) = &mut self.variation {
            variation.changes.forget_until(now);
            variation.trace = None;
        }
        self.backlog_since = self.backlog_since.max(now);
        self.line.set_rate(rate);
        self.set_begin();
    }

    /// Takes a packet that enters at `now`. A time before that of the last packet is read as that
    /// time; it may be before that of the last [`deliver`](Self::deliver), for a driver that learns
    /// of arrivals late.
    pub fn enter(&mut self, now: Time, packet: Packet<P>) {
        let now = now.max(self.entered_at);
        self.entered_at = now;
        self.advance(now);
        self.counts.entered.add(&packet);
        let waits = match self.faults {
            None => self.enqueue(now, packet),
            Some(_) => self.enter_faulty(now, packet),
        };
        if waits {
            self.advance(now);
            let bytes = self.waiting.bytes();
            let counts = self.counts.queue();
            counts.max_bytes = counts.max_bytes.max(bytes);
        }
    }

    /// Takes a packet to which something may happen; whether a packet waits now.
    fn enter_faulty(&mut self, now: Time, packet: Packet<P>) -> bool {
        let Some(faults) = &mut self.faults else { return false };
        if let Some(reason) = faults.refuse(now, u64::from(packet.size)) {
            self.drop(now, &packet, reason);
            return false;
        }
        if !faults.duplicate.comes() {
            return self.enqueue(now, packet);
        }
        let id = PacketId(faults.next_copy);
        faults.next_copy = faults.next_copy.wrapping_add(1) | FIRST_COPY;
        faults.duplicated.add(&packet);
        let copy = Packet { id, ..packet.clone() };
        // Both come at once: the copy needs room beside the original.
        self.wait(now, packet);
        self.wait(now, copy);
        true
    }

    /// The next packet that is due at `now`, and when it was due, in the order of (due time,
    /// sequence).
    pub fn deliver(&mut self, now: Time) -> Option<Delivery<P>> {
        self.advance(now);
        let delivery = self.flight.pop(now);
        if let Some(Delivery { packet, .. }) = &delivery {
            self.counts.delivered.add(packet);
        }
        delivery
    }

    /// A time before which nothing is delivered, if nothing enters; `None` if nothing will be.
    ///
    /// A driver that only wants deliveries sleeps until then; it wakes half as often as with
    /// [`timeout`](Node::timeout), which also names the times at which the queue moves.
    #[inline]
    pub fn next_delivery(&self) -> Option<Time> {
        let mut at = self.flight.next_at();
        if !self.flight.has_in_order() {
            at = at.min(self.begins_at + self.delay);
        }
        (at < Time::MAX).then_some(at)
    }

    /// Whether a packet is on its way before which none arrives that enters now.
    #[inline]
    pub fn is_moving(&self) -> bool {
        self.flight.has_in_order()
    }

    /// Moves packets from the queue to the line, each at the time at which the line was free for
    /// it.
    #[inline]
    fn advance(&mut self, now: Time) {
        if self.begins_at <= now {
            self.begin_until(now);
        }
    }

    fn begin_until(&mut self, now: Time) {
        if self.variation.is_some() {
            return self.begin_varying_until(now);
        }
        while self.begins_at <= now && self.begins_at < Time::MAX {
            self.begin_next(self.begins_at);
            self.begins_at = match self.waiting.is_empty() {
                true => Time::MAX,
                false => self.line.free_at().max(self.backlog_since),
            };
        }
    }

    /// The same for a line whose rate varies.
    #[inline(never)]
    fn begin_varying_until(&mut self, now: Time) {
        let mut next = self.begin();
        while let Some((begin, rate)) = next {
            if begin > now {
                break;
            }
            if let Some(variation) = &mut self.variation {
                variation.changes.forget_until(begin);
                if rate != self.line.rate() && variation.trace.is_none() {
                    self.line.set_rate(rate);
                }
            }
            self.begin_next(begin);
            next = self.begin();
        }
        self.begins_at = next.map_or(Time::MAX, |(begin, _)| begin);
    }

    /// The packet whose turn it is goes on the line.
    #[inline]
    fn begin_next(&mut self, begin: Time) {
        self.sum_up(begin);
        match &mut self.waiting {
            Waiting::Behind(tail) => {
                let Some(packet) = self.flight.waiting(0) else { return };
                tail.lets_go(packet.size);
                let sent = send(&mut self.line, &mut self.variation, begin, packet.size);
                let delay = match &mut self.faults {
                    None => self.delay,
                    Some(faults) => faults.travel(sent, packet),
                };
                let jitter = self.jitter.as_mut().map_or(Duration::ZERO, Jitter::next);
                self.flight.begin(sent + delay + jitter);
                if let Some(packet) = self.flight.waiting(QUEUED_PACKET) {
                    self.observer.nears(packet);
                }
            }
            Waiting::In(queue) => {
                let mut report = Report {
                    element: &self.name,
                    counts: &mut self.counts,
                    observer: &mut self.observer,
                };
                if let Some(packet) = queue.dequeue(begin, &mut report) {
                    self.transmit(begin, packet);
                }
            }
        }
    }

    /// Adds to the sums what has waited since the queue last changed.
    #[inline]
    fn sum_up(&mut self, now: Time) {
        let packets = self.waiting.len() as u64;
        let counts = self.counts.queue();
        if packets > 0 {
            let nanos = u128::from(now.since(counts.summed_until).as_nanos());
            counts.packet_nanos += u128::from(packets) * nanos;
            counts.byte_nanos += u128::from(self.waiting.bytes()) * nanos;
        }
        counts.summed_until = counts.summed_until.max(now);
    }

    fn trace(&self) -> Option<&DeliveryLine> {
        self.variation.as_ref()?.trace.as_ref()
    }

    /// When the next queued packet goes on the line, and at which rate; `None` if there is none or
    /// never.
    fn begin(&self) -> Option<(Time, Rate)> {
        if self.waiting.is_empty() {
            return None;
        }
        if let Some(cell) = self.waiting.cell() {
            let at = cell.ready_at();
            return (at < Time::MAX).then_some((at, self.line.rate()));
        }
        if let Some(line) = self.trace() {
            return Some((line.begin(self.backlog_since), line.trace().mean_rate()));
        }
        let (free_at, rate) = (self.line.free_at().max(self.backlog_since), self.line.rate());
        match &self.variation {
            None => (rate != Rate::ZERO).then_some((free_at, rate)),
            Some(variation) => variation.changes.begin(free_at, rate),
        }
    }

    fn set_begin(&mut self) {
        self.begins_at = self.begin().map_or(Time::MAX, |(begin, _)| begin);
    }

    /// A packet that stands behind no other goes on the line.
    fn transmit(&mut self, begin: Time, packet: Packet<P>) {
        let sent = send(&mut self.line, &mut self.variation, begin, packet.size);
        if self.faults.is_some() {
            return self.transmit_faulty(begin, sent, packet);
        }
        let jitter = self.jitter.as_mut().map_or(Duration::ZERO, Jitter::next);
        let due = sent + self.delay + jitter;
        self.flight.push(due, packet);
    }

    /// The same for a packet to which something may happen.
    #[inline(never)]
    fn transmit_faulty(&mut self, begin: Time, sent: Time, mut packet: Packet<P>) {
        let Some(faults) = &mut self.faults else { return };
        // It is lost at `sent`, but that lies ahead of the driver's time; reports keep to the order
        // of their times.
        if faults.loss_position == LossPosition::AfterLine && faults.loss.next_is_lost() {
            return self.drop(begin, &packet, Reason::Loss);
        }
        let jitter = self.jitter.as_mut().map_or(Duration::ZERO, Jitter::next);
        let due = sent + faults.travel(sent, &mut packet) + jitter;
        if faults.reorder_stream.chance(faults.reorder.probability) {
            faults.reordered += 1;
            let by = faults.reorder.next(&mut faults.reorder_stream);
            self.flight.push_held_back(due, by, packet);
        } else {
            self.flight.push(due, packet);
        }
    }

    /// Whether a line whose rate does not vary can take a packet at once.
    fn is_free(&self, now: Time) -> bool {
        self.line.free_at() <= now && self.variation.is_none() && self.line.rate() != Rate::ZERO
    }

    /// Puts a packet on the line if nothing keeps it from it, else into the queue; whether it went
    /// there.
    fn enqueue(&mut self, now: Time, packet: Packet<P>) -> bool {
        if self.is_free(now) && self.waiting.lets_pass(&packet) {
            // Nothing waits: what the queue would do with it is known.
            self.backlog_since = now;
            self.transmit(now, packet);
            return false;
        }
        self.wait(now, packet);
        true
    }

    /// Puts a packet into the queue.
    fn wait(&mut self, now: Time, mut packet: Packet<P>) {
        if self.waiting.is_empty() {
            self.backlog_since = now;
        }
        self.sum_up(now);
        let mut report =
            Report { element: &self.name, counts: &mut self.counts, observer: &mut self.observer };
        match &mut self.waiting {
            Waiting::Behind(tail) => {
                if tail.takes(now, &mut packet, &mut report) {
                    self.flight.wait(packet);
                }
            }
            Waiting::In(queue) => queue.enqueue(now, packet, &mut report),
        }
        // A packet that is larger than the buffer may push out all others and itself.
        if self.begins_at == Time::MAX || self.waiting.is_empty() {
            self.set_begin();
        }
    }

    fn drop(&mut self, now: Time, packet: &Packet<P>, reason: Reason) {
        let Some(faults) = &mut self.faults else { return };
        let drops = &mut faults.dropped;
        let (count, why) = match reason {
            Reason::Loss => (&mut drops.loss, "random loss"),
            Reason::Outage => (&mut drops.outage, "outage"),
            Reason::Policer => (&mut drops.policer, "policer"),
        };
        count.add(packet);
        self.observer.dropped(now, &self.name, packet, why);
    }
}

/// Puts a packet of so many bytes on the line; when it has been sent.
#[inline]
fn send(
    line: &mut Serializer,
    variation: &mut Option<Box<Variation>>,
    begin: Time,
    size: u32,
) -> Time {
    match variation.as_mut().and_then(|variation| variation.trace.as_mut()) {
        Some(line) => line.send(begin, size.into()),
        None => line.send(begin, size.into()),
    }
}

impl<P, O> Prefetch for Link<P, O> {
    type Part = LinkPart;

    fn prefetch(&self, part: LinkPart) {
        match part {
            LinkPart::Whole => prefetch(self),
            LinkPart::Front => self.flight.prefetch(part),
            LinkPart::Back => {
                self.flight.prefetch(part);
                self.counts.queue.as_deref().into_iter().for_each(prefetch);
            }
        }
    }
}

impl Variation {
    fn new(changes: Schedule, trace: Option<DeliveryTrace>, is_cell: bool) -> Option<Box<Self>> {
        if is_cell {
            return Some(Box::new(Self { changes: Schedule::default(), trace: None }));
        }
        let varies = trace.is_some() || !changes.is_empty();
        varies.then(|| Box::new(Self { changes, trace: trace.map(DeliveryLine::new) }))
    }
}

impl<P: Clone, O: Observer<P>> Node<P> for Link<P, O> {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<P>) {
        self.enter(now, packet);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<P>)> {
        self.deliver(now).map(|delivery| (0, delivery.packet))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        let delivery = Some((self.flight.next_at(), "delivery")).filter(|(at, _)| *at < Time::MAX);
        let transmission = self.begin().map(|(at, _)| (at, "transmission"));
        [delivery, transmission].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// Counts what the queue does and passes it on under the link's name.
struct Report<'a, O> {
    element: &'a str,
    counts: &'a mut Counts,
    observer: &'a mut O,
}

impl<P, O: Observer<P>> Observer<P> for Report<'_, O> {
    fn dropped(&mut self, now: Time, _queue: &str, packet: &Packet<P>, why: &'static str) {
        let counts = self.counts.queue();
        counts.dropped.add(packet);
        counts.first_drop.get_or_insert(now);
        self.observer.dropped(now, self.element, packet, why);
    }

    fn nears(&mut self, packet: &Packet<P>) {
        self.observer.nears(packet);
    }

    fn marked(&mut self, now: Time, _queue: &str, packet: &Packet<P>) {
        self.counts.queue().marked += 1;
        self.observer.marked(now, self.element, packet);
    }
}
