use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that a server works on at once.
const REQUESTS: usize = 1024;
/// Those of one client.
const REQUESTS_OF_CLIENT: usize = 64;
/// Objects that are opened and hashed at once for one client.
const OPENED_OF_CLIENT: usize = 2;
/// The same for all clients.
const OPENED: usize = 16;

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
    opened: Arc<Semaphore>,
}

/// A request that is worked on, until it is dropped.
pub(super) struct Pass {
    gate: Arc<Gate>,
    key: Key,
    opened: Arc<Semaphore>,
    _place: OwnedSemaphorePermit,
}

/// The turn of an object to be opened.
pub(super) type Turn = [OwnedSemaphorePermit; 2];

impl Gate {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            clients: Mutex::default(),
            requests: Arc::new(Semaphore::new(REQUESTS)),
            opened: Arc::new(Semaphore::new(OPENED)),
        })
    }

    /// Lets a request of the client with this key in, unless there are too many.
    pub(super) fn enter(self: &Arc<Self>, key: Key) -> Option<Pass> {
        let place = self.requests.clone().try_acquire_owned().ok()?;
        let mut clients = self.clients();
        let client = clients.entry(key).or_insert_with(|| Client {
            requests: 0,
            opened: Arc::new(Semaphore::new(OPENED_OF_CLIENT)),
        });
        if client.requests >= REQUESTS_OF_CLIENT {
            return None;
        }
        client.requests += 1;
        Some(Pass { gate: self.clone(), key, opened: client.opened.clone(), _place: place })
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<Key, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// Waits until its object may be opened: first among those of its client, so that one client
    /// does not take the turns of others.
    pub(super) async fn turn(&self) -> Option<Turn> {
        let own = self.opened.clone().acquire_owned().await.ok()?;
        Some([own, self.gate.opened.clone().acquire_owned().await.ok()?])
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
    async fn objects_of_one_client_are_opened_two_at_a_time() {
        let gate = Gate::new();
        let pass = gate.enter([1; 32]).unwrap();
        let first = pass.turn().await;
        let _second = pass.turn().await;
        let third =
            async { tokio::time::timeout(std::time::Duration::from_millis(50), pass.turn()).await };
        assert!(third.await.is_err());
        assert!(gate.enter([2; 32]).unwrap().turn().await.is_some());
        drop(first);
        assert!(pass.turn().await.is_some());
    }
}
