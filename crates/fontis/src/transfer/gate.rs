use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::manifest::MAX_ENTRIES;
use crate::moment;
use crate::task;

/// Requests that a server works on at once.
const REQUESTS: usize = 1024;
/// Those of one client.
const REQUESTS_OF_CLIENT: usize = 64;
/// Objects that are opened and hashed at once for one client.
const OPENED_OF_CLIENT: usize = 2;
/// The same for all clients.
const OPENED: usize = 16;
/// How much longer than a turn took its client waits for the next, and how long at most. So one
/// client takes a twentieth of a processor by opening and hashing, and more only with objects that
/// take longer than 1.5 s each.
const REST: u32 = 40;
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Files and folders in all objects that are open for one client: each takes some 72 bytes.
const ENTRIES_OF_CLIENT: usize = MAX_ENTRIES;
/// Bytes of objects that are sent to one client at once. Of a large object this counts
/// [`AT_ONCE`].
const SENT_TO_CLIENT: usize = 4 * AT_ONCE;
const AT_ONCE: usize = 4 << 20;

/// What a client is told whose request is not let in.
pub(super) const TOO_MANY: &str = "too many requests at once: wait for some of them";

/// A client's public key.
type Key = [u8; 32];

/// Bounds the work that clients cause.
pub(super) struct Gate {
    clients: Mutex<HashMap<Key, Client>>,
    requests: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

struct Client {
    requests: usize,
    shares: Shares,
}

/// What is left for a client of turns, of entries of open objects, and of bytes that are sent.
#[derive(Clone)]
struct Shares {
    opened: Arc<Semaphore>,
    entries: Arc<Semaphore>,
    sent: Arc<Semaphore>,
}

/// A request that is worked on, until it is dropped.
pub(super) struct Pass {
    gate: Arc<Gate>,
    key: Key,
    shares: Shares,
    _place: OwnedSemaphorePermit,
}

/// The turn of an object to be opened.
pub(super) struct Turn {
    own: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
    took: Duration,
}

impl Turn {
    /// Does the work of this turn.
    pub(super) fn run<T>(mut self, work: impl FnOnce() -> T) -> (T, Self) {
        let begin = moment::now();
        let done = work();
        self.took = moment::now() - begin;
        (done, self)
    }

    /// Ends it. The client's next object waits the longer, the longer the work of this one took.
    pub(super) fn end(self, pass: Arc<Pass>) {
        let Self { own, took, .. } = self;
        let rest = (took * REST).min(LONGEST_REST);
        task::spawn(async move {
            task::sleep(rest).await;
            // The client is known so long.
            drop((own, pass));
        });
    }
}

impl Gate {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            clients: Mutex::default(),
            requests: Arc::new(Semaphore::new(REQUESTS)),
            opened: Arc::new(Semaphore::new(OPENED)),
        })
    }

    /// Lets a request of the client with this key in, unless there are too many.
    pub(super) fn enter(self: &Arc<Self>, key: Key) -> Option<Arc<Pass>> {
        let place = self.requests.clone().try_acquire_owned().ok()?;
        let mut clients = self.clients();
        let client = clients.entry(key).or_insert_with(|| Client {
            requests: 0,
            shares: Shares {
                opened: Arc::new(Semaphore::new(OPENED_OF_CLIENT)),
                entries: Arc::new(Semaphore::new(ENTRIES_OF_CLIENT)),
                sent: Arc::new(Semaphore::new(SENT_TO_CLIENT)),
            },
        });
        if client.requests >= REQUESTS_OF_CLIENT {
            return None;
        }
        client.requests += 1;
        let shares = client.shares.clone();
        Some(Arc::new(Pass { gate: self.clone(), key, shares, _place: place }))
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<Key, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// Waits until its object may be opened: first among those of its client, so that one client
    /// does not take the turns of others.
    pub(super) async fn turn(&self) -> Turn {
        let own = self.shares.opened.clone().acquire_owned().await.ok();
        let of_all = self.gate.opened.clone().acquire_owned().await.ok();
        Turn { own, _of_all: of_all, took: Duration::ZERO }
    }

    /// Waits until there is room for an object of so many files and folders beside what is open for
    /// its client, and keeps the room. An object has it if it is alone, however large.
    pub(super) async fn room(&self, entries: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(entries.min(ENTRIES_OF_CLIENT)).ok()?;
        self.shares.entries.clone().acquire_many_owned(count).await.ok()
    }

    /// Waits until an object of `size` bytes may be sent: each that is sent takes memory for some
    /// blocks until its client has them.
    pub(super) async fn sending(&self, size: u64) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(size.min(AT_ONCE as u64)).ok()?;
        self.shares.sent.clone().acquire_many_owned(bytes).await.ok()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut clients = self.gate.clients();
        if let Some(client) = clients.get_mut(&self.key) {
            client.requests -= 1;
            if client.requests == 0 {
                clients.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_share_of_requests_and_others_have_theirs() {
        let gate = Gate::new();
        let mut passes: Vec<_> = (0..70).filter_map(|_| gate.enter([1; 32])).collect();
        assert_eq!(passes.len(), REQUESTS_OF_CLIENT);
        assert!(gate.enter([2; 32]).is_some());
        passes.pop();
        assert!(gate.enter([1; 32]).is_some());
        passes.clear();
        assert!(gate.clients().is_empty());
    }

    #[test]
    fn there_are_no_more_requests_than_places_whatever_the_number_of_clients() {
        let gate = Gate::new();
        let passes: Vec<_> =
            (0..2000_u32).filter_map(|n| gate.enter([n.to_be_bytes()[3]; 32])).collect();
        assert_eq!(passes.len(), REQUESTS);
    }

    #[tokio::test]
    async fn a_large_object_waits_for_the_end_of_another_and_a_small_one_does_not() {
        let gate = Gate::new();
        let pass = gate.enter([1; 32]).unwrap();
        let first = pass.room(MAX_ENTRIES - 10).await;
        let _small = pass.room(10).await;
        let patience = Duration::from_millis(50);
        assert!(tokio::time::timeout(patience, pass.room(MAX_ENTRIES)).await.is_err());
        assert!(gate.enter([2; 32]).unwrap().room(MAX_ENTRIES).await.is_some());
        drop(first);
        assert!(pass.room(MAX_ENTRIES - 10).await.is_some());
    }

    #[tokio::test]
    async fn objects_of_one_client_are_opened_two_at_a_time() {
        let gate = Gate::new();
        let pass = gate.enter([1; 32]).unwrap();
        let first = pass.turn().await;
        let _second = pass.turn().await;
        let third = async { tokio::time::timeout(Duration::from_millis(50), pass.turn()).await };
        assert!(third.await.is_err());
        gate.enter([2; 32]).unwrap().turn().await;
        first.end(pass.clone());
        pass.turn().await;
    }

    #[tokio::test]
    async fn who_has_something_opened_for_long_waits_the_longer_for_the_next() {
        let gate = Gate::new();
        let pass = gate.enter([1; 32]).unwrap();
        let _other = pass.turn().await;
        let turn = pass.turn().await;
        let ((), turn) = turn.run(|| std::thread::sleep(Duration::from_millis(10)));
        turn.end(pass.clone());
        drop(pass);
        let again = gate.enter([1; 32]).unwrap();
        let early = tokio::time::timeout(Duration::from_millis(300), again.turn()).await;
        assert!(early.is_err(), "it left and came again");
        again.turn().await;
    }
}
