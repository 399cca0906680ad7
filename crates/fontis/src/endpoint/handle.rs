use std::sync::Arc;

use fontis_base::Time;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::slot::Slot;

/// A closure that the driver thread runs on a connection.
pub(super) type Call = Box<dyn FnOnce(&mut Slot, Time) + Send>;

/// Transfers of an endpoint that have a thread each to read their blocks: a block waits for one
/// thread to wake up then, not for three. Blocks of others are read by the runtime's threads,
/// however many there are.
const READERS: usize = 64;

/// Sends closures to the connections that a driver thread owns.
#[derive(Clone)]
pub(crate) struct Handle {
    post: Arc<dyn Fn(u64, Call) + Send + Sync>,
    readers: Arc<Semaphore>,
}

impl Handle {
    /// A handle whose calls go to `post`, with the number of their connection.
    pub(super) fn new(post: impl Fn(u64, Call) + Send + Sync + 'static) -> Self {
        Self { post: Arc::new(post), readers: Arc::new(Semaphore::new(READERS)) }
    }

    /// Leave to have a thread of one's own that reads blocks; `None` if as many as may have one.
    pub(crate) fn reader(&self) -> Option<OwnedSemaphorePermit> {
        self.readers.clone().try_acquire_owned().ok()
    }

    /// Runs `act` on a connection; nothing happens if it is gone.
    pub(crate) fn call(&self, id: u64, act: impl FnOnce(&mut Slot, Time) + Send + 'static) {
        (self.post)(id, Box::new(act));
    }

    /// Runs `ask` on a connection and returns its result; `None` if the connection is gone.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        id: u64,
        ask: impl FnOnce(&mut Slot, Time) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.call(id, move |slot, now| {
            let _ = reply.send(ask(slot, now));
        });
        answer.await.ok()
    }
}
