//! The indexes over an endpoint's connections: with many of them none is looked for among all.

use fontis_proto::dfcp::{CloseReason, ConnectionId, DfcpEvent};

use super::driver::Driver;
use super::slot::Slot;

impl Driver {
    pub(super) fn insert(&mut self, id: ConnectionId, slot: Slot) {
        if let Some(syn) = slot.syn {
            self.by_syn.insert(syn, self.next_slot);
        }
        self.by_id.insert(id, self.next_slot);
        self.touched.push(self.next_slot);
        self.shares_changed |= self.limit.is_some();
        self.slots.insert(self.next_slot, slot);
        self.next_slot += 1;
    }

    /// Notes when a connection is due next, and the token of its peer when it is known.
    pub(super) fn schedule(&mut self, id: u64) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let next = slot.due();
        self.deadlines.set(id, slot.scheduled, next);
        slot.scheduled = next;
        if slot.reset_token.is_none()
            && let Some(token) = slot.machine.peer_reset_token()
        {
            slot.reset_token = Some(token);
            // A peer that gives the token of another connection gains nothing.
            self.by_token.entry(token).or_insert(id);
        }
    }

    /// Counts the connections that send and those that receive; only these can have changed.
    pub(super) fn count_flows(&mut self, changed: &[u64]) {
        let Self { slots, flows, shares_changed, .. } = self;
        if !self.is_shared {
            return;
        }
        for id in changed {
            let Some(slot) = slots.get_mut(id) else { continue };
            let now = [slot.machine.is_sending() || slot.carries, slot.machine.is_receiving()];
            let counts = flows.iter_mut().zip(&mut slot.flows).zip(now);
            for ((count, before), now) in counts {
                *count = *count + usize::from(now) - usize::from(*before);
                *shares_changed |= *before != now;
                *before = now;
            }
        }
    }

    /// Drops a connection whose initiator has not confirmed, without a word to it.
    pub(super) fn forget(&mut self, id: u64) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.router.route(DfcpEvent::Closed(CloseReason::NoAnswer));
        }
        self.remove(id);
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.admission.leave(id);
        if let Some(slot) = self.slots.remove(&id) {
            if let Some(network) = slot.network {
                self.census.leave(network);
            }
            self.deadlines.set(id, slot.scheduled, None);
            if let Some(token) = slot.reset_token
                && self.by_token.get(&token) == Some(&id)
            {
                self.by_token.remove(&token);
            }
            for (count, flows) in self.flows.iter_mut().zip(slot.flows) {
                *count -= usize::from(flows);
                self.shares_changed |= flows;
            }
            self.by_id.remove(&slot.machine.local_id());
            if let Some(syn) = slot.syn {
                self.by_syn.remove(&syn);
            }
        }
    }
}
