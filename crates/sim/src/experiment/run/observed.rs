//! What is read from a run in virtual time.

use fontis_base::distance::NEXT_FLOW;
use fontis_base::{Prefetch, Time};
use fontis_net::LinkStats;

use super::{Endpoint, Running};
use crate::app::message::MessageLog;
use crate::experiment::observation::Observed;
use crate::host::{Counters, Milestones};

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
        let now = self.world.now();
        let read = |end: Endpoint| {
            let host = self.world.element(end.node).endpoint(flow);
            host.map_or_else(Vec::new, |host| host.metrics(now))
        };
        let mut metrics = read(sender);
        for (name, value) in read(receiver) {
            if metrics.iter().all(|(known, _)| *known != name) {
                metrics.push((name, value));
            }
        }
        metrics
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
