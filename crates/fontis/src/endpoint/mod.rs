//! One UDP socket, one thread, and the connections that share them.
//!
//! The driver thread owns every connection's state machine; handles send it closures. Coding runs
//! on the thread pool, so that packets leave on time.

mod admission;
mod census;
mod control;
mod deadlines;
mod driver;
mod limiter;
mod outbox;
mod reset_secret;
mod router;
mod slot;
mod unconfirmed;
mod upkeep;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use fontis_base::Time;
use fontis_proto::dfcp::{CloseReason, DfcpConfig};
use mio::Waker;
use thiserror::Error;
use tokio::sync::{Mutex, mpsc as async_mpsc, oneshot, watch};
use zeroize::Zeroizing;

use crate::connection::Connection;
use crate::key_log::KeyLog;
use crate::protection::PresharedKey;
use crate::token_store::TokenStore;
pub use control::{ConnectionStatus, EndpointStatus};
use driver::Driver;
pub use router::Message;
pub(crate) use router::{ChannelEvent, Inboxes, Offered, Opened};
pub(crate) use slot::Slot;

/// The code of a connection that was closed because the client's key is not allowed.
pub const CODE_REFUSED_KEY: u32 = 1;
/// The code of a connection that was closed because the endpoint has as many as it takes.
pub const CODE_TOO_MANY: u32 = 4;
/// The code of a connection that was closed because the peer refused a message.
pub(crate) const CODE_REFUSED_MESSAGE: u32 = 5;

/// The configuration of an endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    /// This side's private X25519 key.
    pub secret: Zeroizing<[u8; 32]>,
    /// A secret that the other side must know too.
    pub psk: Option<Zeroizing<PresharedKey>>,
    /// The configuration of connections.
    pub transport: DfcpConfig,
    /// The accepted connections.
    pub accept: Accept,
    /// A folder in which every connection leaves its qlog; nothing there is no error of the
    /// connection's.
    pub qlog: Option<PathBuf>,
    /// The key log of connections, for debugging.
    pub key_log: Option<KeyLog>,
    /// The store of servers' tokens, so that the next connection to one needs a round trip less.
    pub tokens: Option<TokenStore>,
    /// Bytes that all connections together may hold for their peers.
    pub memory: u64,
    /// Connections that clients may have at once; those of one network may have a quarter of them.
    pub connections: usize,
}

impl EndpointConfig {
    /// An endpoint with this private X25519 key that accepts nobody, with all else at its default.
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret: secret.into(),
            psk: None,
            transport: DfcpConfig::default(),
            accept: Accept::None,
            qlog: None,
            key_log: None,
            tokens: None,
            memory: 1 << 30,
            connections: 1024,
        }
    }
}

/// The clients whose connections an endpoint accepts.
#[derive(Clone, Debug, Default)]
pub enum Accept {
    /// Nobody's.
    #[default]
    None,
    /// Everybody's.
    Anyone,
    /// Clients with these public keys.
    Keys(Vec<[u8; 32]>),
}

/// The reason why an endpoint could not be made.
#[derive(Debug, Error)]
pub enum BindError {
    /// Another process has the address.
    #[error(
        "{0} is in use by another process: choose another port, or port 0 for any that is free"
    )]
    InUse(SocketAddr),
    /// The system refused.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// The system's words.
        source: io::Error,
    },
    /// The system has no more descriptors or threads.
    #[error("cannot start the network thread: {0}")]
    System(#[source] io::Error),
}

/// The reason why a connection was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// No answer came.
    #[error(
        "no answer from {0}: is it running, and does a firewall let UDP to this port through in both directions?"
    )]
    NoAnswer(SocketAddr),
    /// Something answered that does not have the key.
    #[error(
        "{0} answered, but holds another key (or another pre-shared key) than the one given: get its present URL"
    )]
    WrongKey(SocketAddr),
    /// The other side does not accept this side's key.
    #[error(
        "{0} does not allow this client's key: ask its operator to add it to the list given with --allow"
    )]
    RefusedKey(SocketAddr),
    /// The connection ended during the handshake.
    #[error("the connection to {0} failed: {1}")]
    Closed(SocketAddr, CloseReason),
    /// The endpoint is gone.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

type Command = Box<dyn FnOnce(&mut Driver, Time) + Send>;

/// Sends closures to the driver thread.
#[derive(Clone)]
pub(crate) struct Handle {
    commands: mpsc::Sender<Command>,
    waker: Arc<Waker>,
}

impl Handle {
    fn post(&self, command: Command) -> bool {
        self.commands.send(command).is_ok() && self.waker.wake().is_ok()
    }

    /// Runs `act` on a connection; nothing happens if it is gone.
    pub(crate) fn call(&self, id: u64, act: impl FnOnce(&mut Slot, Time) + Send + 'static) {
        self.post(Box::new(move |driver, now| driver.with(id, now, act)));
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

/// A UDP socket that connections are made from and accepted on. Clones share it; when the last
/// clone and the last connection are gone, the socket closes.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

struct Inner {
    handle: Handle,
    local: SocketAddr,
    incoming: Mutex<async_mpsc::UnboundedReceiver<Connection>>,
    running: watch::Receiver<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // For connections that are not made yet nobody waits any more.
        self.handle.post(Box::new(|driver, now| driver.stop(now, |slot| slot.waiting.is_some())));
    }
}

impl Endpoint {
    /// Binds to `address` and starts the driver thread.
    pub fn bind(address: SocketAddr, config: EndpointConfig) -> Result<Self, BindError> {
        let (commands, receiver) = mpsc::channel();
        let (incoming_tx, incoming) = async_mpsc::unbounded_channel();
        let (driver, waker, local) = Driver::bind(address, config, receiver, incoming_tx)?;
        let handle = Handle { commands, waker };
        let running = driver.start(handle.clone()).map_err(BindError::System)?;
        let incoming = Mutex::new(incoming);
        Ok(Self { inner: Arc::new(Inner { handle, local, incoming, running }) })
    }

    /// Closes the endpoint and its connections, and waits until their peers have acknowledged it or
    /// time is up: a process that ends sooner closes the socket first. The future does nothing
    /// before it is polled, and does not keep the endpoint.
    pub fn farewell(&self) -> impl Future<Output = ()> + Send + use<> {
        let handle = self.inner.handle.clone();
        let mut running = self.inner.running.clone();
        async move {
            handle.post(Box::new(|driver, now| driver.stop(now, |_| true)));
            while running.changed().await.is_ok() {}
        }
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.local
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
        self.inner.handle.post(Box::new(move |driver, now| {
            driver.connect(now, handle, address, key, early, (reply, doubts));
        }));
        answer.await.unwrap_or(Err(ConnectError::EndpointClosed))
    }

    /// The next connection by a client; `None` when the endpoint is closed.
    pub async fn accept(&self) -> Option<Connection> {
        self.inner.incoming.lock().await.recv().await
    }
}
