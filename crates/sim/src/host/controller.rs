//! The controller that assigns rates to senders of the published DFCP.

use core::any::Any;
use std::collections::VecDeque;

use fontis_base::{Address, Duration, FlowId, Node, Packet, PacketId, Port, Rate, Stream, Time};
use fontis_net::Schedule;

use crate::analysis::share::{Demand, max_min_network};
use crate::host::payload::Payload;
use crate::host::{Counters, Host, Milestones};

/// A controller with a central view (section 3.5.4 of the dissertation): it knows the links, is
/// told which flows there are, and tells each sender its max-min fair rate, late and not quite
/// right.
#[derive(Clone, Debug)]
pub struct Controller {
    id: Address,
    config: ControllerConfig,
    links: Vec<(Rate, Schedule)>,
    flows: Vec<Controlled>,
    stream: Stream,
    /// When it next looks.
    next: Time,
    /// What it has decided, and when that arrives.
    decided: VecDeque<(Time, usize, Rate)>,
    sent: u64,
}

/// What can be set of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControllerConfig {
    /// From a change to the sender's adaptation: polling, computing, and telling.
    pub response: Duration,
    /// How often it looks; each look has an error of its own.
    pub poll: Duration,
    /// How wrong its estimates are, as a share.
    pub error: f64,
    /// In which direction (D-37).
    pub model: ErrorModel,
}

/// In which direction a controller errs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorModel {
    /// Always too high, by the whole error.
    #[default]
    Over,
    /// Uniform between the error below and the error above.
    Uniform,
}

/// A flow whose rate is decided.
#[derive(Clone, Debug)]
pub struct Controlled {
    /// Its number.
    pub flow: FlowId,
    /// Its sender.
    pub sender: Address,
    /// The most that it can send.
    pub limit: Rate,
    /// The links that it crosses.
    pub links: Vec<usize>,
    /// Whether it has something to send.
    pub is_active: bool,
}

impl Controller {
    /// A controller of these flows over links with these rates; random draws come from `stream`.
    pub fn new(
        id: Address,
        config: ControllerConfig,
        links: Vec<(Rate, Schedule)>,
        flows: Vec<Controlled>,
        stream: Stream,
    ) -> Self {
        let (next, decided) = (Time::MAX, VecDeque::new());
        Self { id, config, links, flows, stream, next, decided, sent: 0 }
    }

    /// Computes all rates, which arrive when the response time is over; a flow that has just begun
    /// waits for none, since it asked.
    fn decide(&mut self, now: Time, beginner: Option<FlowId>) {
        let instant = now + Duration::from_nanos(1);
        let capacities: Vec<f64> =
            self.links.iter().map(|(rate, changes)| changes.mean(now, instant, *rate)).collect();
        let active: Vec<usize> =
            (0..self.flows.len()).filter(|flow| self.flows[*flow].is_active).collect();
        let demands: Vec<Demand> = active
            .iter()
            .map(|flow| &self.flows[*flow])
            .map(|flow| Demand { limit: flow.limit.as_bps() as f64, links: flow.links.clone() })
            .collect();
        for (flow, rate) in active.into_iter().zip(max_min_network(&capacities, &demands)) {
            let error = match self.config.model {
                ErrorModel::Over => self.config.error,
                ErrorModel::Uniform => self.config.error * (2.0 * self.stream.unit() - 1.0),
            };
            let rate = Rate::from_bps((rate * (1.0 + error)).max(1.0) as u64);
            let rate = rate.min(self.flows[flow].limit);
            if beginner == Some(self.flows[flow].flow) {
                self.decided.push_front((now, flow, rate));
            } else {
                self.decided.push_back((now + self.config.response, flow, rate));
            }
        }
        self.next = now + self.config.poll.max(Duration::from_micros(1));
    }
}

impl Node<Payload> for Controller {
    fn handle(&mut self, now: Time, _port: Port, packet: Packet<Payload>) {
        let Payload::Active(active) = packet.payload else { return };
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.flow == packet.flow) {
            flow.is_active = active;
            self.decide(now, active.then_some(packet.flow));
        }
    }

    fn poll(&mut self, now: Time) -> Option<(Port, Packet<Payload>)> {
        if now >= self.next {
            if self.flows.iter().any(|flow| flow.is_active) {
                self.decide(now, None);
            } else {
                self.next = Time::MAX;
            }
        }
        let (_, flow, rate) = *self.decided.front().filter(|(at, ..)| *at <= now)?;
        self.decided.pop_front();
        self.sent += 1;
        let flow = &self.flows[flow];
        let packet = Packet {
            id: PacketId(u64::from(self.id.0) << 40 | self.sent),
            src: self.id,
            dst: flow.sender,
            flow: flow.flow,
            size: 0,
            segments: 1,
            ecn: Default::default(),
            corrupt: false,
            class: 0,
            payload: Payload::Rate(rate),
        };
        Some((0, packet))
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        let decided = self.decided.front().map(|(at, ..)| (*at, "rate"));
        let poll = (self.next < Time::MAX).then_some((self.next, "poll"));
        [decided, poll].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

impl Host for Controller {
    fn counters(&self) -> Counters {
        Counters { sent: self.sent, ..Counters::default() }
    }

    fn milestones(&self) -> Milestones {
        Milestones::default()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
