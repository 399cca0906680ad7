//! Observers of a world's packets.

pub mod capture;
pub mod qlog;
pub mod recorder;

use fontis_base::{FlowId, Packet, Time};

use crate::host::payload::Payload;
use crate::world::element::Element;
use crate::world::observers::capture::Capture;
use crate::world::observers::qlog::Qlog;
use crate::world::observers::recorder::Recorder;

/// The observers of a world's packets. Most worlds have none, so a world checks once.
#[derive(Default)]
pub(crate) struct Observers {
    pub(crate) capture: Option<Capture>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) qlog: Option<Qlog>,
}

impl Observers {
    /// A packet leaves a node.
    #[cold]
    pub(crate) fn leaves(&mut self, now: Time, from: u32, packet: &Packet<Payload>) {
        if let Some(capture) =
            self.capture.as_mut().filter(|capture| capture.listens(from, packet.flow))
        {
            capture.take(now, packet);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.leaves(now, from, packet);
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.leaves(now, from, packet);
        }
    }

    /// A packet comes to a node.
    #[cold]
    pub(crate) fn comes(&mut self, now: Time, to: u32, packet: &Packet<Payload>) {
        if let Some(capture) =
            self.capture.as_mut().filter(|capture| capture.listens(to, packet.flow))
        {
            capture.take(now, packet);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.comes(now, to, packet);
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.comes(now, to, packet);
        }
    }

    /// A switch has made a copy of a packet.
    pub(crate) fn copied(&mut self, now: Time, packet: &Packet<Payload>, copy: &Packet<Payload>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.copied(now, packet, copy);
        }
    }

    /// A packet to a group without members has ended at a switch.
    pub(crate) fn ends(&mut self, now: Time, packet: &Packet<Payload>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.unwanted(now, packet);
        }
    }

    /// A node has taken a packet of a flow.
    #[cold]
    pub(crate) fn handled(&mut self, now: Time, node: u32, flow: FlowId, element: &Element) {
        if let Some(qlog) = &mut self.qlog
            && let Some(metrics) = element.endpoint(flow).and_then(|host| host.path_metrics())
        {
            qlog.path(now, node, flow, metrics);
        }
    }

    /// A node has given all its packets: takes its drops and its events.
    pub(crate) fn drained(&mut self, node: u32, element: &mut Element) {
        if let Element::Link(link) = element {
            if let Some(recorder) = &mut self.recorder {
                for (at, id) in link.observer_mut().take() {
                    recorder.dropped(at, node, id);
                }
            }
            return;
        }
        let Some(qlog) = &mut self.qlog else { return };
        if let Some(shared) = element.shared_mut() {
            for (flow, at, event) in shared.take_flow_events() {
                qlog.event(at, node, flow, event);
            }
        } else if let (Element::Host(host), Some(flow)) = (element, qlog.flow_of(node)) {
            for (at, event) in host.take_events() {
                qlog.event(at, node, flow, event);
            }
        }
    }
}
