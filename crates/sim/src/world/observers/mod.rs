//! Observers of a world's packets.

pub mod capture;
pub mod qlog;
pub mod recorder;

use fontis_base::{Packet, Time};

use crate::host::payload::Payload;
use crate::world::Element;
use crate::world::observers::capture::Capture;
use crate::world::observers::qlog::Qlog;
use crate::world::observers::recorder::Recorder;

/// Who looks on at a world's packets. Mostly nobody does, and a world looks for that once.
#[derive(Default)]
pub(crate) struct Watchers {
    pub(crate) capture: Option<Capture>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) qlog: Option<Qlog>,
}

impl Watchers {
    /// A packet leaves a node.
    #[cold]
    pub(crate) fn leaves(&mut self, now: Time, from: u32, packet: &Packet<Payload>) {
        if let Some(capture) = self.capture.as_mut().filter(|capture| capture.listens(from)) {
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
        if let Some(capture) = self.capture.as_mut().filter(|capture| capture.listens(to)) {
            capture.take(now, packet);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.comes(now, to, packet);
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.comes(now, to, packet);
        }
    }

    /// A node has taken the packet that came.
    #[cold]
    pub(crate) fn handled(&mut self, now: Time, node: u32, element: &Element) {
        if let (Some(qlog), Element::Tcp(host)) = (&mut self.qlog, element) {
            qlog.tcp_knows(now, node, host.sender_stats());
        }
    }

    /// A node has given all that it had to give: what it has dropped meanwhile, and what it tells
    /// of itself.
    pub(crate) fn drained(&mut self, node: u32, element: &mut Element) {
        match element {
            Element::Link(link) => {
                if let Some(recorder) = &mut self.recorder {
                    for (at, id) in link.observer_mut().take() {
                        recorder.dropped(at, node, id);
                    }
                }
            }
            Element::Host(host) => {
                if let Some(qlog) = &mut self.qlog {
                    for event in host.take_trace() {
                        qlog.dfcp_tells(node, &event);
                    }
                }
            }
            _ => {}
        }
    }
}
