//! What is read from a run in virtual time.

use fontis_base::distance::NEXT_FLOW;
use fontis_base::{FlowId, Prefetch, Time};
use fontis_net::LinkStats;

use super::{Endpoint, Running};
use crate::app::message::MessageLog;
use crate::experiment::observation::Observed;
use crate::experiment::spec::Destination;
use crate::host::{Counters, Milestones};

impl Running<'_> {
    /// What the transport of one end of a flow alone counts.
    fn metrics_of(&self, flow: FlowId, end: Endpoint) -> Vec<(&'static str, f64)> {
        let host = self.world.element(end.node).endpoint(flow);
        host.map_or_else(Vec::new, |host| host.metrics(self.world.now()))
    }
}

impl Observed for Running<'_> {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn counters(&self, subject: usize) -> Counters {
        // Of thousands of flows the next ones are prefetched while this one is read.
        for (step, after) in (0..).zip(NEXT_FLOW) {
            if let Some(ends) = self.flows.get(subject + after) {
                self.world.prefetch((ends.sender.node, step));
                self.world.prefetch((ends.receiver.node, step));
            }
        }
        let (flow, sender, receiver) = self.ends(subject);
        let read = |end: Endpoint| {
            let host = self.world.element(end.node).endpoint(flow);
            host.map_or_else(Counters::default, |host| host.counters())
        };
        Counters::of_flow(read(sender), read(receiver))
    }

    fn milestones(&self, subject: usize) -> Milestones {
        let (flow, sender, receiver) = self.ends(subject);
        let read = |end: Endpoint| {
            let host = self.world.element(end.node).endpoint(flow);
            host.map_or_else(Milestones::default, |host| host.milestones())
        };
        Milestones::of_flow(read(sender), read(receiver))
    }

    fn metrics(&self, subject: usize) -> Vec<(&'static str, f64)> {
        let (flow, sender, receiver) = self.ends(subject);
        if self.subjects[subject].name.is_some() {
            return self.metrics_of(flow, receiver);
        }
        let mut metrics = self.metrics_of(flow, sender);
        for (name, value) in self.metrics_of(flow, receiver) {
            if metrics.iter().all(|(known, _)| *known != name) {
                metrics.push((name, value));
            }
        }
        metrics
    }

    fn group_metrics(&self, flow: usize) -> Vec<(&'static str, f64)> {
        match self.experiment.flows[flow].to {
            Destination::One(_) => Vec::new(),
            Destination::Group(_) => self.metrics_of(FlowId(flow as u32), self.flows[flow].sender),
        }
    }

    fn messages(&self, flow: usize) -> Option<MessageLog> {
        self.logs[flow].clone()
    }

    fn tell_flow(&mut self, flow: usize, name: &str, counters: Counters) {
        let now = self.world.now();
        if let Some(recorder) = self.world.recorder_mut() {
            recorder.flow_counters(now, flow, name, counters);
        }
    }

    fn tell_queue(&mut self, name: &str, bytes: u64) {
        let now = self.world.now();
        if let Some(recorder) = self.world.recorder_mut() {
            recorder.queue_bytes(now, name, bytes);
        }
    }

    fn link(&mut self, index: usize) -> (LinkStats, usize) {
        let now = self.world.now();
        let link = self.world.link_mut(self.links[index]);
        (link.observe(now), link.queue_len())
    }
}
