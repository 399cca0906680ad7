//! What comes next is known some events ahead. In a world of thousands of flows each event touches
//! what was last touched long ago: to bring it near while others are processed takes a part of the
//! waiting away, and changes nothing else.

use fontis_base::{Address, prefetch};

use crate::world::World;
use crate::world::element::Element;
use crate::world::switch::NodeIndex;
use crate::world::switch::Switch;

/// How many events ahead what they touch is brought near: a node, what it is, what leaves it or the
/// connection on it, and the sender of that. Each lies behind a pointer in what comes before it.
const NODE: usize = 14;
const ELEMENT: usize = 10;
const CONTENT: usize = 6;
const SENDER: usize = 3;

impl World {
    /// Brings near what lies so many steps behind a node's number: the node, its host, the
    /// connection, its sending half.
    pub(crate) fn bring_near(&self, node: NodeIndex, steps: u8) {
        if steps == 0 {
            return self.agenda.bring_near(node as u32);
        }
        if let Element::Tcp(host) = self.element(node) {
            host.bring_near(steps - 1);
        }
    }

    /// Brings near what the next events touch.
    #[inline(never)]
    pub(crate) fn look_ahead(&self) {
        self.agenda.bring_near(self.agenda.ahead(NODE));
        let next = self.agenda.ahead(ELEMENT);
        if let Some(slot) = self.agenda.get(next) {
            match &slot.element {
                Element::Link(link) => prefetch(&**link),
                Element::Tcp(host) => host.bring_near(0),
                _ => {}
            }
        }
        for (step, events) in (1..).zip([CONTENT, SENDER]) {
            match self.agenda.get(self.agenda.ahead(events)).map(|slot| &slot.element) {
                Some(Element::Link(link)) if step == 1 => link.bring_front_near(),
                Some(Element::Tcp(host)) => host.bring_near(step),
                _ => {}
            }
        }
    }

    /// Brings near where the next packets of a node in which there are many will arrive.
    #[inline]
    pub(crate) fn look_along(&self, node: u32) {
        let coming = match self.agenda.get(node).map(|slot| &slot.element) {
            Some(Element::Link(link)) => link.coming(WAITING),
            Some(Element::Bundle(bundle)) => bundle.coming(WAITING),
            _ => None,
        };
        if coming.is_some() {
            self.look_along_busy(node);
        }
    }

    /// One pointer is followed for each of these packets, those of a host some packets apart: what
    /// is to be followed next must have come, and what has come must not have gone.
    #[inline(never)]
    fn look_along_busy(&self, node: u32) {
        let slot = &self.agenda[node as usize];
        let coming = |after| match &slot.element {
            Element::Link(link) => link.coming(after),
            Element::Bundle(bundle) => bundle.coming(after),
            _ => None,
        };
        coming(20).into_iter().for_each(prefetch);
        let host = |after| coming(after).map_or(Address(u32::MAX), |packet| packet.dst);
        let Some(first) = self.switch_at(slot.to) else { return };
        let mut last = first;
        if let Element::Bundle(_) = slot.element {
            // Packets do not wait long for a line with a short queue: it is as if they arrived
            // behind it.
            let next = first.leads(host(0)).and_then(|next| self.agenda.get(next));
            first.bring_near(host(16));
            match next.map(|next| (&next.element, self.switch_at(next.to))) {
                Some((Element::Link(link), Some(switch))) if link.queue_len() < SHORT => {
                    last = switch;
                }
                _ => return,
            }
        }
        last.bring_near(host(16));
        if let Some(node) = last.leads(host(13)) {
            self.agenda.bring_near(node);
        }
        for (step, after) in (0..).zip([10, 7, 4, 2]) {
            if let Some(node) = last.leads(host(after)) {
                self.bring_host_near(node, step);
            }
        }
    }

    fn switch_at(&self, node: u32) -> Option<&Switch> {
        match &self.agenda.get(node)?.element {
            Element::Switch(switch) => Some(switch),
            _ => None,
        }
    }

    /// Brings near what lies so many steps behind a host's node, and behind that of its link, which
    /// what it answers enters.
    fn bring_host_near(&self, node: u32, step: u8) {
        let Some(slot) = self.agenda.get(node) else { return };
        let Element::Tcp(host) = &slot.element else { return };
        match self.agenda.get(slot.to).map(|next| &next.element) {
            _ if step == 0 => self.agenda.bring_near(slot.to),
            Some(Element::Bundle(bundle)) if step == 1 => bundle.bring_near(slot.to_port),
            Some(Element::Link(link)) if step == 1 => prefetch(&**link),
            Some(Element::Link(link)) if step == 2 => link.bring_back_near(),
            _ => {}
        }
        host.bring_near(step);
    }
}

/// Of fewer packets that wait for a line each is sent soon.
const SHORT: usize = 8;
/// Packets that wait at least, for it to be worth while to look at them.
const WAITING: usize = 17;
