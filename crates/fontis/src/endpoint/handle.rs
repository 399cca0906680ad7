use std::sync::Arc;

use fontis_base::Time;
use tokio::sync::oneshot;

use super::slot::Slot;

/// A closure that the driver thread runs on a connection.
pub(super) type Call = Box<dyn FnOnce(&mut Slot, Time) + Send>;

/// Sends closures to the connections that a driver thread owns.
#[derive(Clone)]
pub(crate) struct Handle {
    post: Arc<dyn Fn(u64, Call) + Send + Sync>,
}

impl Handle {
    /// A handle whose calls go to `post`, with the number of their connection.
    pub(super) fn new(post: impl Fn(u64, Call) + Send + Sync + 'static) -> Self {
        Self { post: Arc::new(post) }
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
