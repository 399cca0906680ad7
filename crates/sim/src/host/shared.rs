//! A machine that several flows share.

use core::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fontis_base::{FlowId, Node, Packet, Port, Time};
use fontis_proto::qlog::QlogEvent;

use crate::host::payload::Payload;
use crate::host::{Counters, Host, Milestones};

/// A machine with any number of interfaces and any number of flows, each with an endpoint of its
/// own. Interface `n` is port `n`.
#[derive(Default)]
pub struct SharedHost {
    flows: BTreeMap<FlowId, usize>,
    endpoints: Vec<Endpoint>,
    /// Endpoints that may have something to send, in the order of their turns.
    ready: VecDeque<usize>,
    timers: BTreeSet<(Time, usize)>,
}

struct Endpoint {
    host: Box<dyn Host>,
    /// The interfaces that its packets leave by: the host's port `n` is the `n`-th of them.
    ports: Vec<Port>,
    is_ready: bool,
    /// Its entry in the host's timers.
    timer: Option<Time>,
}

impl SharedHost {
    /// Adds the endpoint of a flow. What leaves its port `n` leaves by the `n`-th of `ports`.
    pub fn add(&mut self, flow: FlowId, ports: Vec<Port>, host: Box<dyn Host>) {
        let index = self.endpoints.len();
        self.endpoints.push(Endpoint { host, ports, is_ready: false, timer: None });
        self.flows.insert(flow, index);
        self.wake(index);
    }

    /// The endpoint of a flow, if it has one here.
    pub fn endpoint(&self, flow: FlowId) -> Option<&dyn Host> {
        Some(&*self.endpoints[*self.flows.get(&flow)?].host)
    }

    /// The events of all endpoints' transports since the last call, each with its flow.
    pub(crate) fn take_flow_events(&mut self) -> Vec<(FlowId, Time, QlogEvent)> {
        let Self { flows, endpoints, .. } = self;
        let of = |(flow, index): (&FlowId, &usize)| {
            let (flow, events) = (*flow, endpoints[*index].host.take_events());
            events.into_iter().map(move |(at, event)| (flow, at, event))
        };
        flows.iter().flat_map(of).collect()
    }

    fn wake(&mut self, index: usize) {
        if !core::mem::replace(&mut self.endpoints[index].is_ready, true) {
            self.ready.push_back(index);
        }
    }

    /// Sets the timer of an endpoint that has nothing to send.
    fn rest(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        endpoint.is_ready = false;
        let timer = endpoint.host.timeout().map(|(at, _)| at);
        let before = core::mem::replace(&mut endpoint.timer, timer);
        if before != timer {
            before.into_iter().for_each(|at| _ = self.timers.remove(&(at, index)));
            timer.into_iter().for_each(|at| _ = self.timers.insert((at, index)));
        }
    }
}

impl Node<Payload> for SharedHost {
    fn handle(&mut self, now: Time, port: Port, packet: Packet<Payload>) {
        let Some(index) = self.flows.get(&packet.flow).copied() else { return };
        self.endpoints[index].host.handle(now, port, packet);
        self.wake(index);
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        while let Some((at, index)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, index));
            self.endpoints[index].timer = None;
            self.wake(index);
        }
        // One packet a turn.
        while let Some(index) = self.ready.pop_front() {
            if let Some((port, packet)) = self.endpoints[index].host.poll(now) {
                self.ready.push_back(index);
                return Some((self.endpoints[index].ports[port as usize], packet));
            }
            self.rest(index);
        }
        None
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        match self.ready.is_empty() {
            true => self.timers.first().map(|(at, _)| (*at, "endpoint")),
            false => Some((Time::ZERO, "ready")),
        }
    }
}

impl Host for SharedHost {
    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn milestones(&self) -> Milestones {
        Milestones::default()
    }

    fn is_done(&self) -> bool {
        self.endpoints.iter().all(|endpoint| endpoint.host.is_done())
    }

    fn keep_events(&mut self) {
        self.endpoints.iter_mut().for_each(|endpoint| endpoint.host.keep_events());
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
