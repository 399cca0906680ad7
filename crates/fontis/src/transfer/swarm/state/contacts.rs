use std::time::Duration;

use super::{Edge, Known, State};
use crate::moment;
use crate::transfer::swarm::wire::{Contact, MOST_CONTACTS, SwarmWire};

/// Other nodes that are remembered.
const MOST_KNOWN: usize = 256;
/// The interval at which one that could not be reached is tried again, and at which a node is told
/// of others at most.
const AGAIN: Duration = Duration::from_secs(20);

/// Whom a node knows, and whom it tells of others.
impl State {
    /// Other nodes, for a neighbour; none if it has just been told.
    pub(in crate::transfer::swarm) fn contacts_for(&mut self, id: u32) -> Option<SwarmWire> {
        let now = moment::now();
        let edge = self.edges.get_mut(&id)?;
        if edge.introduced.is_some_and(|at| now - at < AGAIN) {
            return None;
        }
        edge.introduced = Some(now);
        let others = self.edges.iter().filter(|(other, _)| **other != id);
        let contact = |edge: &Edge| Contact { address: edge.address, key: edge.key };
        let mut others: Vec<Contact> = others.map(|(_, edge)| contact(edge)).collect();
        let count = others.len().min(MOST_CONTACTS);
        for at in 0..count {
            let other = at + self.random.below((others.len() - at) as u64) as usize;
            others.swap(at, other);
        }
        others.truncate(count);
        Some(SwarmWire::Meet(others))
    }

    /// Remembers other nodes.
    pub(in crate::transfer::swarm) fn remember(&mut self, contacts: Vec<Contact>) {
        for Contact { address, key } in contacts.into_iter().take(MOST_CONTACTS) {
            if key == self.own_key || self.known.contains_key(&key) {
                continue;
            }
            if self.known.len() >= MOST_KNOWN {
                // Who was tried makes way: names of nobody do not keep others out.
                let tried = self.known.iter().find(|(_, known)| known.tried.is_some());
                let Some(tried) = tried.map(|(key, _)| *key) else { return };
                self.known.remove(&tried);
            }
            self.known.insert(key, Known { address, tried: None });
        }
    }

    /// A node to connect to next.
    pub(in crate::transfer::swarm) fn stranger(&mut self) -> Option<Contact> {
        let now = moment::now();
        let (edges, banned) = (&self.edges, &self.banned);
        let is_due = |known: &Known| known.tried.is_none_or(|at| now - at >= AGAIN);
        let is_met = |key: &[u8; 32]| edges.values().any(|edge| edge.key == *key);
        let due = self
            .known
            .iter_mut()
            .filter(|(key, known)| is_due(known) && !is_met(key) && !banned.contains(*key));
        let mut due: Vec<_> = due.collect();
        if due.is_empty() {
            return None;
        }
        let (key, known) = due.swap_remove(self.random.below(due.len() as u64) as usize);
        known.tried = Some(now);
        Some(Contact { address: known.address, key: *key })
    }
}
