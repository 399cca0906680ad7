//! What comes next is known some events ahead. In a world of thousands of flows each event touches what was last touched
//! long ago: to bring it near while others are processed takes a part of the waiting away, and changes nothing else.

use fontis_base::{HostId, prefetch};

use crate::drops::SimLink;
use crate::{Element, World};

/// How many events ahead what they touch is brought near: a node, what it is, and what leaves it. Each lies behind a pointer
/// in what comes before it.
const NODE: usize = 14;
const ELEMENT: usize = 10;
const PACKET: usize = 6;

/// The hosts to which the packets go that the links of other hosts are about to deliver. What is found of one is
/// followed a pointer further with every second event.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// What was found at the last events, in turn.
    hosts: [Option<u32>; 16],
    last: usize,
}

impl Awaited {
    fn found(&mut self, host: Option<u32>) {
        // What did not move since the last event is found again.
        let again = [0, 1].into_iter().any(|events| self.before(events) == host);
        self.last = (self.last + 1) % self.hosts.len();
        self.hosts[self.last] = host.filter(|_| !again);
    }

    /// What was found so many events ago.
    fn before(&self, events: usize) -> Option<u32> {
        self.hosts[(self.last + self.hosts.len() - events) % self.hosts.len()]
    }
}

impl World {
    /// Brings near what the next events touch.
    #[inline(never)]
    pub(crate) fn look_ahead(&mut self) {
        self.agenda.bring_near(self.agenda.ahead(NODE));
        let next = self.agenda.ahead(ELEMENT);
        if let Some(slot) = self.agenda.get(next) {
            match &slot.element {
                Element::Link(link) => prefetch(&**link),
                Element::Tcp(host) => host.bring_near(0),
                _ => {}
            }
        }
        if let Some(link) = self.link_at(self.agenda.ahead(PACKET)) {
            link.bring_front_near();
        }
        let host = self.host_beyond(next);
        self.awaited.found(host);
        if let Some(host) = self.awaited.before(0) {
            self.agenda.bring_near(host);
        }
        for (step, events) in (0..).zip([2, 4, 6, 8]) {
            if let Some(host) = self.awaited.before(events) {
                self.bring_host_near(host, step);
            }
        }
    }

    /// The host to which the last packet went that a link delivered, if few wait where the next arrives.
    fn host_beyond(&self, node: u32) -> Option<u32> {
        let slot = self.agenda.get(node)?;
        let next = match &slot.element {
            Element::Link(_) => self.agenda.get(slot.known.1)?,
            _ => return None,
        };
        match &next.element {
            Element::Link(link) if link.queue_len() < SHORT => {
                match &self.agenda.get(next.to)?.element {
                    Element::Switch(switch) => switch.leads(slot.known.0),
                    _ => None,
                }
            }
            Element::Tcp(_) => Some(slot.known.1),
            _ => None,
        }
    }

    /// Brings near where the next packets of a link in which many wait will arrive.
    #[inline]
    pub(crate) fn look_along(&self, node: u32) {
        if let Some(link) = self.link_at(node)
            && link.coming(WAITING).is_some()
        {
            self.look_along_busy(node, link);
        }
    }

    /// One pointer is followed for each of these packets, those of a host some packets apart: what is to be followed next
    /// must have come, and what has come must not have gone.
    #[inline(never)]
    fn look_along_busy(&self, node: u32, link: &SimLink) {
        let next = &self.agenda[self.agenda[node as usize].to as usize];
        let Element::Switch(switch) = &next.element else { return };
        let host = |after| link.coming(after).map_or(HostId(u32::MAX), |packet| packet.dst);
        link.coming(20).into_iter().for_each(prefetch);
        switch.bring_near(host(16));
        if let Some(node) = switch.leads(host(13)) {
            self.agenda.bring_near(node);
        }
        for (step, after) in (0..).zip([10, 7, 4, 2]) {
            if let Some(node) = switch.leads(host(after)) {
                self.bring_host_near(node, step);
            }
        }
    }

    /// Brings near what lies so many steps behind a host's node, and behind that of its link, which what it answers enters.
    fn bring_host_near(&self, node: u32, step: u8) {
        let Some(slot) = self.agenda.get(node) else { return };
        let Element::Tcp(host) = &slot.element else { return };
        match step {
            0 => self.agenda.bring_near(slot.to),
            1 => self.link_at(slot.to).into_iter().for_each(prefetch),
            2 => self.link_at(slot.to).into_iter().for_each(SimLink::bring_back_near),
            _ => {}
        }
        host.bring_near(step);
    }

    fn link_at(&self, node: u32) -> Option<&SimLink> {
        match &self.agenda.get(node)?.element {
            Element::Link(link) => Some(link),
            _ => None,
        }
    }
}

/// Of fewer packets that wait for a line each is sent soon.
const SHORT: usize = 8;
/// Packets that wait at least, for it to be worth while to look at them.
const WAITING: usize = 17;
