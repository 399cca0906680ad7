//! The recorder of packets' lives.

use std::collections::BTreeMap;

use fontis_base::{Address, Duration, Ecn, Packet as NetPacket, Time};

use crate::host::Counters;
use crate::host::payload::Payload;
use crate::host::table::TransportRow;
use fontis_trace::{Builder, Detail, Group, Handle, LaneKind, Marks, Trace, TracePacket};

/// Watches the packets of a simulated world: each from the host that sends it, through queues, to
/// where it ends.
#[derive(Clone, Debug)]
pub struct Recorder {
    builder: Builder,
    /// By node.
    places: BTreeMap<u32, Place>,
    /// By host: its lane.
    hosts: Vec<u16>,
    flows: Vec<RecordedFlow>,
    under_way: BTreeMap<u64, UnderWay>,
    count: u64,
}

/// A flow of the world.
#[derive(Clone, Copy, Debug)]
struct RecordedFlow {
    /// Its number in the trace.
    number: u16,
    /// The address of its sender.
    sender: Address,
    transport: &'static TransportRow,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Host(u16),
    Queue { lane: u16, delay: Duration },
    Line,
}

#[derive(Clone, Debug)]
struct UnderWay {
    handle: Handle,
    entered: Time,
}

impl Recorder {
    /// One that watches nothing yet.
    pub fn new(title: &str, detail: Detail) -> Self {
        Self {
            builder: Builder::new(title, Time::ZERO, detail),
            places: BTreeMap::new(),
            hosts: Vec::new(),
            flows: Vec::new(),
            under_way: BTreeMap::new(),
            count: 0,
        }
    }

    /// A node is a host with these addresses.
    pub(crate) fn host(&mut self, node: usize, addresses: &[Address], name: &str) {
        let lane = self.builder.lane(name, LaneKind::Host);
        for address in addresses {
            let address = address.0 as usize;
            if self.hosts.len() <= address {
                self.hosts.resize(address + 1, lane);
            }
            self.hosts[address] = lane;
        }
        self.places.insert(node as u32, Place::Host(lane));
    }

    /// A node is a link whose queue is to be seen; `delay` is that of its line.
    pub(crate) fn queue(&mut self, node: usize, name: &str, delay: Duration) {
        let lane = self.builder.lane(name, LaneKind::Queue);
        self.places.insert(node as u32, Place::Queue { lane, delay });
    }

    /// A node is a link that has no lane, where packets may yet be dropped.
    pub(crate) fn line(&mut self, node: usize) {
        self.places.insert(node as u32, Place::Line);
    }

    /// The next flow of the world.
    pub(crate) fn flow(&mut self, name: &str, sender: Address, transport: &'static TransportRow) {
        let number = self.builder.flow(name, transport.name, transport.unit);
        self.flows.push(RecordedFlow { number, sender, transport });
    }

    /// A packet leaves a node.
    pub(crate) fn leaves(&mut self, now: Time, node: u32, packet: &NetPacket<Payload>) {
        match self.places.get(&node) {
            Some(Place::Host(lane)) => {
                let lane = *lane;
                self.begin(now, lane, packet, Marks(0));
            }
            Some(Place::Queue { lane, delay }) => {
                let (lane, delay) = (*lane, *delay);
                let Some(under_way) = self.under_way.get(&packet.id.0) else { return };
                let left = Time::from_nanos(now.as_nanos().saturating_sub(delay.as_nanos()));
                let entered = under_way.entered;
                self.builder.hop(under_way.handle, lane, entered, left.max(entered));
            }
            Some(Place::Line) | None => {}
        }
    }

    fn begin(
        &mut self,
        now: Time,
        lane: u16,
        packet: &NetPacket<Payload>,
        marks: Marks,
    ) -> Option<Handle> {
        let flow = *self.flows.get(packet.flow.0 as usize)?;
        // The messages of a controller go by ways of their own, and no transport reads them.
        let header = (flow.transport.header)(&packet.payload)?;
        self.count += 1;
        let mut seen = TracePacket::sent(self.count, now, lane, lane, packet.size);
        seen.flow = flow.number;
        seen.path = header.path;
        seen.marks = marks;
        let back = packet.src != flow.sender;
        seen.to = self.hosts.get(packet.dst.0 as usize).copied().unwrap_or(lane);
        let handle = self.builder.sent(now, seen, header, back, false);
        self.under_way.insert(packet.id.0, UnderWay { handle, entered: now });
        Some(handle)
    }

    /// A packet comes to a node.
    pub(crate) fn comes(&mut self, now: Time, node: u32, packet: &NetPacket<Payload>) {
        match self.places.get(&node) {
            Some(Place::Queue { .. }) => {
                if let Some(under_way) = self.under_way.get_mut(&packet.id.0) {
                    under_way.entered = now;
                }
            }
            Some(Place::Host(lane)) => {
                let lane = *lane;
                let known = self.under_way.remove(&packet.id.0).map(|under_way| under_way.handle);
                let handle = match known {
                    Some(handle) => handle,
                    // The network has copied it.
                    None => {
                        let Some(handle) = self.begin(now, lane, packet, Marks::COPY) else {
                            return;
                        };
                        self.under_way.remove(&packet.id.0);
                        handle
                    }
                };
                if packet.corrupt {
                    self.builder.lost(handle, Some(lane), Some(now));
                    return;
                }
                if packet.ecn == Ecn::Ce {
                    self.builder.mark(handle, Marks::CONGESTION);
                }
                self.builder.arrived(handle, now);
            }
            Some(Place::Line) | None => {}
        }
    }

    /// A switch has made a copy of a packet, which goes another way.
    pub(crate) fn copied(
        &mut self,
        now: Time,
        packet: &NetPacket<Payload>,
        copy: &NetPacket<Payload>,
    ) {
        let lane = self.hosts.get(packet.src.0 as usize).copied().unwrap_or(0);
        self.begin(now, lane, copy, Marks(0));
    }

    /// A packet has reached nobody: its group has no members.
    pub(crate) fn unwanted(&mut self, now: Time, packet: &NetPacket<Payload>) {
        if let Some(under_way) = self.under_way.remove(&packet.id.0) {
            self.builder.lost(under_way.handle, None, Some(now));
        }
    }

    /// A packet is dropped at a node.
    pub(crate) fn dropped(&mut self, at: Time, node: u32, id: u64) {
        let Some(under_way) = self.under_way.remove(&id) else { return };
        let lane = match self.places.get(&node) {
            Some(Place::Queue { lane, .. } | Place::Host(lane)) => Some(*lane),
            Some(Place::Line) | None => None,
        };
        self.builder.lost(under_way.handle, lane, Some(at));
    }

    /// What a flow has counted.
    pub(crate) fn flow_counters(&mut self, now: Time, flow: usize, name: &str, counters: Counters) {
        let flow = self.flows.get(flow).map(|flow| flow.number);
        let mut tell = |group, what: &str, value: f64| {
            self.builder.measure(group, &format!("{name} {what}"), flow, now, value);
        };
        if counters.window > 0 && counters.window < MOST_WINDOW {
            tell(Group::Window, "congestion window", counters.window as f64);
        }
        if let Some(srtt) = counters.srtt {
            tell(Group::RoundTrip, "smoothed", srtt.as_secs_f64() * 1e3);
        }
    }

    /// What waits in a bottleneck.
    pub(crate) fn queue_bytes(&mut self, now: Time, name: &str, bytes: u64) {
        self.builder.measure(Group::Queue, name, None, now, bytes as f64);
    }

    /// Adds what the reader of the trace should know.
    pub fn note(&mut self, text: impl Into<String>) {
        self.builder.note(text);
    }

    /// The trace as it is now, while the run goes on.
    pub fn snapshot(&self) -> Trace {
        self.clone().finish()
    }

    /// The trace.
    pub fn finish(self) -> Trace {
        self.builder.finish()
    }
}

/// A window beyond all networks is none.
const MOST_WINDOW: u64 = 1 << 40;
