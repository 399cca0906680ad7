use std::collections::BTreeMap;

use fontis_base::{Duration, Time};

use super::direction::Settled;
use super::findings;
use super::flow::FlowState;
use super::kept::{Detail, Kept, renamed};
use super::packet::NOWHERE;
use super::series::{Group, Series};
use crate::blocks::Block;
use crate::handle::Handle;
use crate::header::PacketHeader;
use crate::lane::{Lane, LaneKind};
use crate::packet::{Fate, Marks, TracePacket};
use crate::trace::{Hop, Trace};

/// Makes a [`Trace`] of what is seen of packets, in the order of time.
#[derive(Clone, Debug)]
pub struct Builder {
    origin: Time,
    title: String,
    lanes: Vec<Lane>,
    flows: Vec<FlowState>,
    open: BTreeMap<Handle, Open>,
    next: u64,
    kept: Kept,
    series: Vec<Series>,
    notes: Vec<String>,
    packets: u64,
    end: Time,
    orders_lanes: bool,
}

#[derive(Clone, Debug)]
struct Open {
    packet: TracePacket,
    header: PacketHeader,
    back: bool,
    hops: Vec<Hop>,
}

/// More packets than this under way and the oldest are given up: nobody saw what became of them.
const MOST_OPEN: usize = 400_000;

impl Builder {
    /// An empty trace; times are counted from `origin`.
    pub fn new(title: impl Into<String>, origin: Time, detail: Detail) -> Self {
        Self {
            origin,
            title: title.into(),
            lanes: Vec::new(),
            flows: Vec::new(),
            open: BTreeMap::new(),
            next: 1,
            kept: Kept::new(detail),
            series: Vec::new(),
            notes: Vec::new(),
            packets: 0,
            end: Time::ZERO,
            orders_lanes: false,
        }
    }

    /// A time as the trace counts it.
    pub fn relative(&self, at: Time) -> Time {
        Time::from_nanos(at.since(self.origin).as_nanos())
    }

    /// Puts lanes in another order at the end: hosts that speak first, queues, other hosts.
    pub fn sort_lanes(&mut self) {
        self.orders_lanes = true;
    }

    /// The lane of this name, made if there is none; the last one takes what is beyond the 250th.
    pub fn lane(&mut self, name: &str, kind: LaneKind) -> u16 {
        if let Some(index) = self.lanes.iter().position(|lane| lane.name == name) {
            return index as u16;
        }
        if self.lanes.len() >= 250 {
            return 249;
        }
        self.lanes.push(Lane { name: name.to_owned(), kind });
        (self.lanes.len() - 1) as u16
    }

    /// Adds a flow; its data is counted in `unit`.
    pub fn flow(&mut self, name: &str, protocol: &str, unit: &'static str) -> u16 {
        let index = self.flows.len().min(usize::from(u16::MAX) - 1) as u16;
        if usize::from(index) < self.flows.len() {
            return index;
        }
        self.flows.push(FlowState::new(index, name, protocol, unit));
        index
    }

    /// The path of this name of a flow, made if there is none.
    pub fn path(&mut self, flow: u16, name: &str) -> u8 {
        let Some(flow) = self.flows.get_mut(usize::from(flow)) else { return 0 };
        if let Some(index) = flow.paths.iter().position(|path| path == name) {
            return index as u8;
        }
        if flow.paths.len() < 250 {
            flow.paths.push(name.to_owned());
        }
        (flow.paths.len() - 1) as u8
    }

    /// Says what the protocol of a flow turned out to be.
    pub fn name_protocol(&mut self, flow: u16, protocol: &str, unit: &'static str) {
        if let Some(flow) = self.flows.get_mut(usize::from(flow)) {
            flow.protocol = protocol.to_owned();
            flow.unit = unit;
        }
    }

    /// What the reader of a trace should know of it.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// A value of a series that the source of the trace measured itself.
    pub fn measure(&mut self, group: Group, name: &str, flow: Option<u16>, at: Time, value: f64) {
        let at = self.relative(at);
        let found =
            self.series.iter_mut().find(|s| s.flow == flow && s.group == group && s.name == name);
        match found {
            Some(series) => series.push(at, value),
            None => {
                let mut series = Series::new(group, name, flow);
                series.push(at, value);
                self.series.push(series);
            }
        }
    }

    /// A sample of the round-trip time that the source of the trace measured itself.
    pub fn measure_round_trip(&mut self, flow: u16, back: bool, at: Time, sample: Duration) {
        let at = self.relative(at);
        if let Some(flow) = self.flows.get_mut(usize::from(flow)) {
            flow.halves[usize::from(back)].round_trip(at, sample);
        }
    }

    /// The smallest round-trip time of a flow so far.
    pub fn smallest_rtt(&self, flow: u16) -> Option<Duration> {
        let flow = self.flows.get(usize::from(flow))?;
        flow.halves.iter().filter_map(|half| half.smallest_rtt).min()
    }

    /// A packet leaves, which is noticed at `at`; `back` if the flow's second speaker sent it. With
    /// `follow`, its fate will be concluded from acknowledgements.
    pub fn sent(
        &mut self,
        at: Time,
        mut packet: TracePacket,
        mut header: PacketHeader,
        back: bool,
        follow: bool,
    ) -> Handle {
        let handle = Handle(self.next);
        self.next += 1;
        self.packets += 1;
        let at = self.relative(at);
        packet.sent = self.relative(packet.sent);
        packet.kind = header.kind;
        packet.marks.set(header.marks);
        self.end = self.end.max(at);
        if let Some(flow) = self.flows.get_mut(usize::from(packet.flow)) {
            flow.begun.get_or_insert(at);
            flow.ended = flow.ended.max(at);
            let side = usize::from(back);
            let follow = follow.then_some(handle);
            flow.halves[side].sent(at, &mut packet, &header, follow);
            if header.syn
                && let Some(seq) = header.seq
            {
                flow.halves[side].begin_at(seq);
            }
            flow.blocks[side].sent(at, &mut packet, &header);
            // Who receives the other direction's symbols says so when it sends.
            flow.blocks[1 - side].told(packet.sent, &header);
        }
        header.blocks.status.clear();
        self.open.insert(handle, Open { packet, header, back, hops: Vec::new() });
        if self.open.len() > MOST_OPEN
            && let Some((handle, open)) = self.open.pop_first()
        {
            self.close(handle, open);
        }
        handle
    }

    /// A packet passed a queue on its way.
    pub fn hop(&mut self, handle: Handle, lane: u16, enter: Time, leave: Time) {
        let (enter, leave) = (self.relative(enter), self.relative(leave));
        if let Some(open) = self.open.get_mut(&handle) {
            open.hops.push(Hop { packet: 0, lane, enter, leave });
        }
    }

    /// More is to be said of a packet under way.
    pub fn mark(&mut self, handle: Handle, marks: Marks) {
        if let Some(open) = self.open.get_mut(&handle) {
            open.packet.marks.set(marks);
        }
    }

    /// A packet arrives.
    pub fn arrived(&mut self, handle: Handle, at: Time) {
        let at = self.relative(at);
        self.end = self.end.max(at);
        let Some(mut open) = self.open.remove(&handle) else { return };
        open.packet.fate = Fate::Arrived;
        open.packet.ended = at;
        self.take(at, &mut open, true);
        self.close(handle, open);
    }

    /// A packet that was seen to leave, and of which acknowledgements will tell, says what its
    /// sender has received.
    pub fn arrived_soon(&mut self, handle: Handle, at: Time) {
        let at = self.relative(at);
        let Some(mut open) = self.open.remove(&handle) else { return };
        open.packet.marks.set(Marks::ESTIMATED);
        open.packet.fate = Fate::Arrived;
        open.packet.ended = at;
        self.take(at, &mut open, false);
        self.close(handle, open);
    }

    /// A packet whose fate acknowledgements will tell says itself, at this time, what its sender
    /// has received.
    pub fn tells(&mut self, handle: Handle, at: Time) {
        let at = self.relative(at);
        let Some(open) = self.open.get(&handle) else { return };
        let flow = self.flows.get(usize::from(open.packet.flow));
        // Mostly there is nothing new in it.
        if !flow.is_some_and(|flow| flow.halves[usize::from(!open.back)].is_owed()) {
            return;
        }
        if let Some(mut open) = self.open.remove(&handle) {
            self.take(at, &mut open, false);
            self.open.insert(handle, open);
        }
    }

    /// What an arrival means to the flow.
    fn take(&mut self, at: Time, open: &mut Open, is_seen: bool) {
        let Some(flow) = self.flows.get_mut(usize::from(open.packet.flow)) else { return };
        flow.ended = flow.ended.max(at);
        let side = usize::from(open.back);
        let (packet, header) = (&mut open.packet, &open.header);
        if is_seen {
            flow.arrived(at, packet, header, open.back);
        }
        let scale = flow.halves[side].scale();
        let window = match (header.window, header.window_is_whole || header.syn) {
            (Some(window), true) => Some(u64::from(window)),
            // Without the SYN nobody knows by how much a window is shifted.
            (Some(window), false) => scale.map(|scale| u64::from(window) << scale),
            (None, _) => None,
        };
        let settled = flow.halves[1 - side].acknowledged(at, packet, header, window);
        let spurious = settled.spurious.len() as u64;
        if !is_seen || self.has_followed(&settled) {
            let flow = &mut self.flows[usize::from(packet.flow)];
            flow.halves[1 - side].counts.spurious += spurious.min(1);
        }
        self.settle(settled);
    }

    fn has_followed(&self, settled: &Settled) -> bool {
        let all = [&settled.arrived, &settled.spurious, &settled.lost];
        all.into_iter().flatten().any(|handle| handle.0 != 0)
    }

    fn settle(&mut self, settled: Settled) {
        for (handles, fate, marks) in [
            (settled.arrived, Fate::Arrived, Marks(0)),
            (settled.lost, Fate::Lost, Marks(0)),
            (settled.spurious, Fate::Arrived, Marks(Marks::SPURIOUS.0 | Marks::USELESS.0)),
        ] {
            for handle in handles.into_iter().filter(|handle| handle.0 != 0) {
                let Some(mut open) = self.open.remove(&handle) else { continue };
                let half =
                    &mut self.flows[usize::from(open.packet.flow)].halves[usize::from(open.back)];
                let way = half.smallest_rtt.unwrap_or_default().mul_ratio(1, 2);
                open.packet.fate = fate;
                open.packet.marks.set(marks);
                open.packet.marks.set(Marks::ESTIMATED);
                open.packet.ended = open.packet.sent + way;
                if fate == Fate::Lost {
                    half.counts.lost += 1;
                }
                self.close(handle, open);
            }
        }
    }

    /// A packet is lost, at a lane if it is known.
    pub fn lost(&mut self, handle: Handle, lane: Option<u16>, at: Option<Time>) {
        let at = at.map(|at| self.relative(at));
        let Some(mut open) = self.open.remove(&handle) else { return };
        open.packet.fate = Fate::Lost;
        open.packet.place = lane.unwrap_or(NOWHERE);
        open.packet.ended = at.unwrap_or(Time::MAX);
        if let Some(flow) = self.flows.get_mut(usize::from(open.packet.flow)) {
            flow.halves[usize::from(open.back)].counts.lost += 1;
            *flow.lost_at.entry(open.packet.place).or_default() += 1;
        }
        self.close(handle, open);
    }

    /// A packet was declared lost; it would have arrived so long after it was sent.
    pub fn lost_after(&mut self, handle: Handle, way: Duration) {
        if let Some(open) = self.open.get_mut(&handle) {
            open.packet.marks.set(Marks::ESTIMATED);
            let at = Time::from_nanos(open.packet.sent.as_nanos() + self.origin.as_nanos()) + way;
            self.lost(handle, None, Some(at));
        }
    }

    /// A packet arrived about then, as its sender learnt later, or may have if `is_known` says no.
    pub fn believed(&mut self, handle: Handle, at: Time, is_known: bool) {
        let at = self.relative(at);
        let Some(mut open) = self.open.remove(&handle) else { return };
        open.packet.marks.set(Marks::ESTIMATED);
        open.packet.ended = at;
        if is_known {
            open.packet.fate = Fate::Arrived;
            if let Some(flow) = self.flows.get_mut(usize::from(open.packet.flow)) {
                flow.arrived(at, &mut open.packet, &open.header, open.back);
            }
        }
        self.close(handle, open);
    }

    /// A packet is missing that nobody saw leave: its receiver noticed.
    pub fn missing(&mut self, mut packet: TracePacket, back: bool) {
        let handle = Handle(self.next);
        self.next += 1;
        self.packets += 1;
        packet.sent = self.relative(packet.sent);
        packet.fate = Fate::Lost;
        packet.marks.set(Marks::ESTIMATED);
        if let Some(flow) = self.flows.get_mut(usize::from(packet.flow)) {
            let half = &mut flow.halves[usize::from(back)];
            half.counts.packets += 1;
            half.counts.bytes += u64::from(packet.size);
            half.counts.lost += 1;
            *flow.lost_at.entry(NOWHERE).or_default() += 1;
        }
        self.close(
            handle,
            Open { packet, header: PacketHeader::default(), back, hops: Vec::new() },
        );
    }

    /// Data was sent again in a packet with a number of its own.
    pub fn retransmitted(&mut self, flow: u16, back: bool) {
        if let Some(flow) = self.flows.get_mut(usize::from(flow)) {
            flow.halves[usize::from(back)].counts.retransmitted += 1;
        }
    }

    fn close(&mut self, handle: Handle, open: Open) {
        self.kept.push(handle.0, open.packet, open.hops);
    }

    /// The trace.
    pub fn finish(mut self) -> Trace {
        let open = core::mem::take(&mut self.open);
        for (handle, open) in open {
            self.close(handle, open);
        }
        if self.orders_lanes {
            let new = self.kept.order_lanes(&mut self.lanes);
            for flow in &mut self.flows {
                let lost = core::mem::take(&mut flow.lost_at);
                flow.lost_at =
                    lost.into_iter().map(|(lane, count)| (renamed(&new, lane), count)).collect();
            }
        }
        let findings = findings::of(&self.flows, &self.lanes, self.end);
        let kept = self.kept.strides;
        let (packets, hops) = self.kept.finish();
        let mut series = self.series;
        for one in &mut series {
            one.finish();
        }
        series.retain(|series| series.points.len() > 1);
        let mut flows = Vec::new();
        let mut blocks: Vec<Block> = Vec::new();
        for (index, flow) in (0u16..).zip(self.flows) {
            flows.push(flow.summary());
            for book in &flow.blocks {
                series.extend(book.series());
                blocks.extend(book.blocks.values());
            }
            let [there, back] = flow.halves;
            series.extend(there.into_series(index, &flow.name));
            series.extend(back.into_series(index, &format!("{} ←", flow.name)));
        }
        series.sort_by_key(|series| (series.group, series.flow));
        Trace {
            title: self.title,
            origin: self.origin,
            end: self.end,
            lanes: self.lanes,
            flows,
            packets,
            hops,
            blocks,
            series,
            findings,
            notes: self.notes,
            total: self.packets,
            kept,
        }
    }
}
