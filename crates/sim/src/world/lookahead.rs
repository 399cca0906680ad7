//! What comes next is known some events ahead. In a world of thousands of flows each event touches
//! what was last touched long ago: prefetching it while others are processed takes a part of the
//! waiting away, and changes nothing else. The distances are in `fontis_base::distance`.

use fontis_base::distance::{COMING_HOST, COMING_NODE, COMING_PACKET, COMING_WAY, NEXT_EVENT};
use fontis_base::{Address, Prefetch, prefetch};
use fontis_net::LinkPart;

use crate::world::World;
use crate::world::element::Element;
use crate::world::switch::NodeIndex;
use crate::world::switch::Switch;

impl Prefetch for World {
    /// A node, and how many pointers are followed: to its host, the connection, its sending half.
    type Part = (NodeIndex, u8);

    fn prefetch(&self, (node, pointers): Self::Part) {
        if pointers == 0 {
            return self.agenda.prefetch(node as u32);
        }
        if let Element::Tcp(host) = self.element(node) {
            host.prefetch(pointers - 1);
        }
    }
}

impl World {
    /// Prefetches what the next events touch.
    #[inline(never)]
    pub(crate) fn look_ahead(&self) {
        let [node, element, content, sender] = NEXT_EVENT;
        self.agenda.prefetch(self.agenda.ahead(node));
        let next = self.agenda.ahead(element);
        if let Some(slot) = self.agenda.get(next) {
            match &slot.element {
                Element::Link(link) => link.prefetch(LinkPart::Whole),
                Element::Tcp(host) => host.prefetch(0),
                _ => {}
            }
        }
        for (step, events) in (1..).zip([content, sender]) {
            match self.agenda.get(self.agenda.ahead(events)).map(|slot| &slot.element) {
                Some(Element::Link(link)) if step == 1 => link.prefetch(LinkPart::Front),
                Some(Element::Tcp(host)) => host.prefetch(step),
                _ => {}
            }
        }
    }

    /// Prefetches where the next packets of a node in which there are many will arrive.
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
        coming(COMING_PACKET).into_iter().for_each(prefetch);
        let host = |after| coming(after).map_or(Address(u32::MAX), |packet| packet.dst);
        let Some(first) = self.switch_at(slot.to) else { return };
        let mut last = first;
        if let Element::Bundle(_) = slot.element {
            // Packets do not wait long for a line with a short queue: it is as if they arrived
            // behind it.
            let next = first.leads(host(0)).and_then(|next| self.agenda.get(next));
            first.prefetch(host(COMING_WAY));
            match next.map(|next| (&next.element, self.switch_at(next.to))) {
                Some((Element::Link(link), Some(switch))) if link.queue_len() < SHORT => {
                    last = switch;
                }
                _ => return,
            }
        }
        last.prefetch(host(COMING_WAY));
        if let Some(node) = last.leads(host(COMING_NODE)) {
            self.agenda.prefetch(node);
        }
        for (step, after) in (0..).zip(COMING_HOST) {
            if let Some(node) = last.leads(host(after)) {
                self.prefetch_host(node, step);
            }
        }
    }

    fn switch_at(&self, node: u32) -> Option<&Switch> {
        match &self.agenda.get(node)?.element {
            Element::Switch(switch) => Some(switch),
            _ => None,
        }
    }

    /// Prefetches what lies so many pointers behind a host's node, and behind that of its link,
    /// which its answer enters.
    fn prefetch_host(&self, node: u32, step: u8) {
        let Some(slot) = self.agenda.get(node) else { return };
        let Element::Tcp(host) = &slot.element else { return };
        match self.agenda.get(slot.to).map(|next| &next.element) {
            _ if step == 0 => self.agenda.prefetch(slot.to),
            Some(Element::Bundle(bundle)) if step == 1 => bundle.prefetch(slot.to_port),
            Some(Element::Link(link)) if step == 1 => link.prefetch(LinkPart::Whole),
            Some(Element::Link(link)) if step == 2 => link.prefetch(LinkPart::Back),
            _ => {}
        }
        host.prefetch(step);
    }
}

/// Of fewer packets that wait for a line each is sent soon.
const SHORT: usize = 8;
/// Packets that wait at least, for it to be worth while to look at them.
const WAITING: usize = 17;
