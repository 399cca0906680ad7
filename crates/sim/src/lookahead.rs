//! What comes next is known some events ahead. In a world of thousands of flows each event touches what was last touched
//! long ago: to bring it near while others are processed takes a part of the waiting away, and changes nothing else.

use fontis_base::{HostId, prefetch};

use crate::drops::SimLink;
use crate::{Element, World};

/// Events that are looked ahead. What an event touches lies behind a chain of pointers: one is followed with each.
const AHEAD: usize = 5;

impl World {
    /// Brings near what the next events touch: what is known of a node, the node, and the packet that it delivers.
    #[inline(never)]
    pub(crate) fn look_ahead(&self) {
        let ahead = self.agenda.ahead::<AHEAD>();
        self.agenda.bring_near(ahead[4]);
        if let Some(slot) = self.agenda.get(ahead[2]) {
            match &slot.element {
                Element::Link(link) => prefetch(&**link),
                Element::Tcp(host) => prefetch(&**host),
                _ => {}
            }
        }
        if let Some(link) = self.link_at(ahead[0]) {
            link.coming(0).into_iter().for_each(prefetch);
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
        switch.bring_near(host(12));
        if let Some(node) = switch.leads(host(9)) {
            self.agenda.bring_near(node);
        }
        for (after, steps) in [(6, 0), (4, 1), (2, 2)] {
            let Some(node) = switch.leads(host(after)) else { continue };
            let Some(slot) = self.agenda.get(node) else { continue };
            let Element::Tcp(tcp) = &slot.element else { continue };
            if steps == 0 {
                prefetch(&**tcp);
                self.agenda.bring_near(slot.to);
                continue;
            }
            tcp.bring_near(steps);
            // What the host answers enters its link.
            if steps == 1
                && let Some(link) = self.link_at(slot.to)
            {
                prefetch(link);
            }
        }
    }

    fn link_at(&self, node: u32) -> Option<&SimLink> {
        match &self.agenda.get(node)?.element {
            Element::Link(link) => Some(link),
            _ => None,
        }
    }
}

/// Packets that wait at least, for it to be worth while to look at them.
const WAITING: usize = 13;
