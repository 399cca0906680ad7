use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Associations of an endpoint at most; further clients are answered when others have left.
const MOST_ASSOCIATIONS: usize = 1024;

/// The address of a peer in UDP, its port, and the port of this end. The port in UDP tells peers
/// behind one address apart, which choose the same ports of SCTP.
pub(super) type Ends = (SocketAddr, u16, u16);

/// The associations: by the tag of packets to this end, and by their ends, for packets that bear no
/// tag or the peer's.
pub(super) struct Table<T>(Mutex<Entries<T>>);

struct Entries<T> {
    by_tag: HashMap<u32, Arc<T>>,
    by_ends: HashMap<Ends, u32>,
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Entries { by_tag: HashMap::new(), by_ends: HashMap::new() }))
    }

    fn entries(&self) -> MutexGuard<'_, Entries<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The association that a packet belongs to.
    pub(super) fn of(&self, tag: u32, ends: Ends) -> Option<Arc<T>> {
        let entries = self.entries();
        let by_ends = || entries.by_tag.get(entries.by_ends.get(&ends)?);
        entries.by_tag.get(&tag).or_else(by_ends).cloned()
    }

    /// Whether an association has a port at this end.
    pub(super) fn has_port(&self, port: u16) -> bool {
        self.entries().by_ends.keys().any(|(_, _, own)| *own == port)
    }

    /// Enters a new association; false if there is no room, or another has one of its ends.
    pub(super) fn add(&self, association: &Arc<T>, tag: u32, ends: &[Ends]) -> bool {
        let mut entries = self.entries();
        let is_taken = ends.iter().any(|ends| entries.by_ends.contains_key(ends));
        if is_taken || entries.by_tag.len() >= MOST_ASSOCIATIONS {
            return false;
        }
        entries.add(association, tag, ends);
        true
    }

    /// Enters an association under another tag and other ends; `old` is the tag that it had.
    pub(super) fn replace(&self, association: &Arc<T>, old: u32, tag: u32, ends: &[Ends]) {
        let mut entries = self.entries();
        entries.remove(old);
        entries.add(association, tag, ends);
    }

    pub(super) fn remove(&self, tag: u32) {
        self.entries().remove(tag);
    }
}

impl<T> Entries<T> {
    fn add(&mut self, association: &Arc<T>, tag: u32, ends: &[Ends]) {
        self.by_tag.insert(tag, association.clone());
        for ends in ends {
            self.by_ends.entry(*ends).or_insert(tag);
        }
    }

    fn remove(&mut self, tag: u32) {
        self.by_tag.remove(&tag);
        self.by_ends.retain(|_, of| *of != tag);
    }
}
