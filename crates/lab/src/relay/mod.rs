//! A bad path for any UDP program.
//!
//! Start here: a [`Relay`] listens on an address, forwards every client's datagrams to a server and
//! the answers back, each direction over a [`Link`](fontis_net::Link). All clients share the two
//! links, as a bottleneck. Each client is a flow, so a fair queue is fair between clients.
//!
//! ```text
//! client ──► listening socket ──► up   ──► the client's own socket ──► server
//! client ◄── listening socket ◄── down ◄── the client's own socket ◄── server
//! ```
//!
//! One thread does it all, and sleeps between deliveries. Due times come from the links, which
//! compute them from arrivals alone: a late wake-up makes a delivery late, never the next one, and
//! never one early.

mod client;
mod path;
mod run;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fontis_base::Duration;
use fontis_net::{LinkConfig, LinkStats};
use thiserror::Error;

use crate::lateness::Lateness;
pub use run::Relay;

/// Bytes of IP and UDP headers, counted with every datagram.
pub const OVERHEAD: u32 = 28;

/// The configuration of a relay.
///
/// A link's buffer limits the waiting packets, not those in flight: without a rate, memory grows
/// with the clients' datagrams in one delay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The address for clients; port zero takes any free port.
    pub listen: SocketAddr,
    /// The server.
    pub to: SocketAddr,
    /// The path from the clients to the server. Times in it count from the start of the relay.
    pub up: LinkConfig,
    /// The path from the server to the clients.
    pub down: LinkConfig,
    /// The largest packet in bytes, headers included ([`OVERHEAD`]); larger ones are dropped.
    pub mtu: u32,
    /// The seed of all random processes.
    pub seed: u64,
    /// The most clients at a time; each takes a socket.
    pub max_clients: usize,
    /// A client that has been silent both ways for so long is forgotten.
    pub idle: Duration,
}

impl RelayConfig {
    /// A relay that changes nothing: infinite rate, no delay, no loss, packets of up to 1500 bytes.
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            up: LinkConfig::default(),
            down: LinkConfig::default(),
            mtu: 1500,
            seed: 0,
            max_clients: 1024,
            idle: Duration::from_secs(120),
        }
    }
}

/// The reason why a relay cannot work.
#[derive(Debug, Error)]
pub enum RelayError {
    /// The address to listen on cannot be had.
    #[error("cannot listen on {address}: {source}; {}", advice(.source))]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The system failed while the relay was at work.
    #[error("cannot {action}: {source}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "stop the program that uses it, or take another port (0 for any)"
        }
        io::ErrorKind::AddrNotAvailable => "take an address of this machine, or 0.0.0.0 for all",
        io::ErrorKind::PermissionDenied => "take a port above 1023",
        _ => "take another address",
    }
}

/// Makes an error of the system one of the relay.
fn system(action: &'static str) -> impl FnOnce(io::Error) -> RelayError {
    move |source| RelayError::System { action, source }
}

/// The counters of a relay.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayStats {
    /// The path from the clients to the server.
    pub up: LinkStats,
    /// The path from the server to the clients.
    pub down: LinkStats,
    /// Clients that are remembered now.
    pub clients: u64,
    /// Clients that there have been.
    pub clients_total: u64,
    /// Datagrams dropped because there were too many clients.
    pub refused: u64,
    /// Datagrams dropped because they were larger than the MTU.
    pub oversize: u64,
    /// Datagrams that reached a client's socket from elsewhere than the server, and were dropped.
    pub strangers: u64,
    /// Datagrams that crossed their link but that the system did not take.
    pub unsent: u64,
    /// The lateness of datagrams.
    pub lateness: Lateness,
}

/// Stops a relay from another thread or from a signal handler's thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<AtomicBool>,
    waker: Arc<mio::Waker>,
}

impl Stopper {
    /// Makes [`Relay::run`] return soon. What is still on its way is lost.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        // If the wake-up fails the relay stops at its next event.
        let _ = self.waker.wake();
    }
}

/// Reads a relay's statistics while it runs.
#[derive(Clone, Debug, Default)]
pub struct RelayMonitor(Arc<Mutex<RelayStats>>);

impl RelayMonitor {
    /// The counters of the relay, at most a tenth of a second old.
    pub fn stats(&self) -> RelayStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, stats: RelayStats) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}

/// A relay that runs on its own thread until it is stopped or dropped.
#[derive(Debug)]
pub struct RelayHandle {
    local_addr: SocketAddr,
    stopper: Stopper,
    monitor: RelayMonitor,
    thread: Option<JoinHandle<Result<(), RelayError>>>,
}

impl RelayHandle {
    /// Binds a relay and runs it on a new thread.
    pub fn spawn(config: RelayConfig) -> Result<Self, RelayError> {
        let mut relay = Relay::bind(config)?;
        let (local_addr, stopper, monitor) = (relay.local_addr(), relay.stopper(), relay.monitor());
        let thread = std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || relay.run())
            .map_err(system("start the thread of the relay"))?;
        Ok(Self { local_addr, stopper, monitor, thread: Some(thread) })
    }

    /// The address for clients.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The counters of the relay, at most a tenth of a second old.
    pub fn stats(&self) -> RelayStats {
        self.monitor.stats()
    }

    /// Stops the relay and returns its final counters.
    pub fn stop(mut self) -> Result<RelayStats, RelayError> {
        self.join()?;
        Ok(self.stats())
    }

    fn join(&mut self) -> Result<(), RelayError> {
        self.stopper.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(result)) => result,
            None => Ok(()),
        }
    }
}

impl Drop for RelayHandle {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.join();
        }
    }
}
