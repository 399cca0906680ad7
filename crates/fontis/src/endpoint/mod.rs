//! UDP sockets, one thread, and the connections that share them.
//!
//! The driver thread owns every connection's state machine; handles send it closures. Coding runs
//! on the thread pool, so that packets leave on time.

mod admission;
mod census;
mod config;
mod control;
mod deadlines;
mod driver;
mod error;
mod handle;
mod interfaces;
mod limiter;
mod limits;
mod outbox;
mod replays;
mod reset_secret;
mod router;
mod shares;
mod slot;
mod sockets;
mod syn;
mod thread;
mod unconfirmed;
mod upkeep;
mod way;

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use mio::Waker;
use tokio::sync::{Mutex, mpsc as async_mpsc, oneshot, watch};

use crate::connection::Connection;
use crate::identity::Identity;
pub use config::{Accept, EndpointConfig};
pub use control::{ConnectionStatus, EndpointStatus, PathStatus};
use driver::{Command, Driver};
pub use error::{BindError, CODE_REFUSED_KEY, CODE_TOO_MANY, ConnectError};
pub(crate) use handle::Handle;
pub use router::Message;
pub(crate) use router::{ChannelEvent, Inboxes, Offered, Opened};
pub(crate) use slot::{Left, Slot};
pub use sockets::LocalInterface;

/// A UDP socket that connections are made from and accepted on. Clones share it; when the last
/// clone and the last connection are gone, the socket closes.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

struct Inner {
    commands: Commands,
    handle: Handle,
    local: SocketAddr,
    key: [u8; 32],
    incoming: Mutex<async_mpsc::UnboundedReceiver<Connection>>,
    running: watch::Receiver<()>,
}

/// Sends closures to the driver thread.
#[derive(Clone)]
struct Commands {
    queue: mpsc::Sender<Command>,
    waker: Arc<Waker>,
    #[cfg(test)]
    signal: Option<crate::whole::net::Signal>,
}

impl Commands {
    /// Nothing happens if the thread has ended.
    fn post(&self, command: Command) {
        if self.queue.send(command).is_ok() {
            let _ = self.waker.wake();
            #[cfg(test)]
            if let Some(signal) = &self.signal {
                signal.set();
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // For connections that are not made yet nobody waits any more.
        self.commands.post(Box::new(|driver, now| driver.stop(now, |slot| slot.waiting.is_some())));
    }
}

impl Endpoint {
    /// Binds to `address` and starts the driver thread.
    pub fn bind(address: SocketAddr, config: EndpointConfig) -> Result<Self, BindError> {
        let (queue, receiver) = mpsc::channel();
        let (incoming_tx, incoming) = async_mpsc::unbounded_channel();
        let key = *Identity::of_secret(config.secret.clone()).public().as_bytes();
        let (driver, waker, local) = Driver::bind(address, config, receiver, incoming_tx)?;
        let commands = Commands {
            queue,
            waker,
            #[cfg(test)]
            signal: driver.signal.clone(),
        };
        let calls = commands.clone();
        let handle = Handle::new(move |id, call| {
            calls.post(Box::new(move |driver, now| driver.with(id, now, call)));
        });
        let running = driver.start(handle.clone()).map_err(BindError::System)?;
        let incoming = Mutex::new(incoming);
        Ok(Self { inner: Arc::new(Inner { commands, handle, local, key, incoming, running }) })
    }

    /// Closes the endpoint and its connections, and waits until their peers have acknowledged it or
    /// time is up: a process that ends sooner closes the socket first. The future does nothing
    /// before it is polled, and does not keep the endpoint.
    pub fn farewell(&self) -> impl Future<Output = ()> + Send + use<> {
        let commands = self.inner.commands.clone();
        let mut running = self.inner.running.clone();
        async move {
            commands.post(Box::new(|driver, now| driver.stop(now, |_| true)));
            while running.changed().await.is_ok() {}
        }
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local
    }

    #[cfg(test)]
    pub(crate) fn reader(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        self.inner.handle.reader()
    }

    /// Its public key.
    pub fn public_key(&self) -> [u8; 32] {
        self.inner.key
    }

    /// Connects to the peer at `address` that has this public key. `early` travels with the first
    /// packet: it can be replayed and is not forward-secret, so it may only ask for something that
    /// changes nothing.
    pub async fn connect(
        &self,
        address: SocketAddr,
        key: [u8; 32],
        early: Option<Bytes>,
    ) -> Result<Connection, ConnectError> {
        let (doubts, _) = oneshot::channel();
        self.connect_doubting(address, key, early, doubts).await
    }

    /// The same. `doubts` is told if something answers that seems to hold another key: perhaps it
    /// is somebody's lie, so the attempt goes on.
    pub async fn connect_doubting(
        &self,
        address: SocketAddr,
        key: [u8; 32],
        early: Option<Bytes>,
        doubts: oneshot::Sender<()>,
    ) -> Result<Connection, ConnectError> {
        let (reply, answer) = oneshot::channel();
        let handle = self.inner.handle.clone();
        self.inner.commands.post(Box::new(move |driver, now| {
            driver.connect(now, handle, address, key, early, (reply, doubts));
        }));
        answer.await.unwrap_or(Err(ConnectError::EndpointClosed))
    }

    /// The next connection by a client; `None` when the endpoint is closed.
    pub async fn accept(&self) -> Option<Connection> {
        self.inner.incoming.lock().await.recv().await
    }
}
