//! The flows of a testbed: kernel TCP, datagrams, Fontis, any command.

mod command;
mod datagrams;
mod dfcp;
mod tcp;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Span;

use fontis::udp::Clock;
use fontis_base::Time;
use fontis_sim::{FlowCounters, FlowSpec, Stations};

pub(super) use command::Commands;
pub(super) use datagrams::Datagrams;
pub(super) use dfcp::{Dfcp, Object};
pub(super) use tcp::Tcp;

use super::error::TestbedError;

/// The port on which receivers of kernel flows listen, and senders of Fontis.
const PORT: u16 = 5001;
/// The interval of checking for the end of the run.
const LOOK: Span = Span::from_millis(100);

/// The state that all endpoints of a run share.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) clock: Clock,
    pub(super) stop: Arc<AtomicBool>,
    /// The first thing that went wrong.
    failure: Arc<Mutex<Option<TestbedError>>>,
}

impl Stage {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, stop: Arc::default(), failure: Arc::default() }
    }

    /// Returns true if the run is over.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until `at`; returns true while the run continues.
    fn wait_until(&self, at: Time) -> bool {
        loop {
            let wait = Span::from(at.since(self.clock.now()));
            if self.is_over() {
                return false;
            }
            if wait.is_zero() {
                return true;
            }
            std::thread::sleep(wait.min(LOOK));
        }
    }

    /// Reports that a flow cannot continue.
    fn fail(&self, flow: &str, problem: impl ToString) {
        let error = TestbedError::Flow { flow: flow.to_owned(), problem: problem.to_string() };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // What goes wrong because the run ends is no failure.
        if !self.is_over() {
            failure.get_or_insert(error);
        }
    }

    /// The first failure.
    pub(super) fn failure(&self) -> Option<TestbedError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The counters of a flow's threads.
#[derive(Debug, Default)]
struct Meter {
    received: AtomicU64,
    sent: AtomicU64,
    stations: Mutex<Stations>,
}

impl Meter {
    fn note(&self, act: impl FnOnce(&mut Stations)) {
        act(&mut self.stations.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn stations(&self) -> Stations {
        *self.stations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Useful bytes have reached the application at `now`.
    fn arrived(&self, now: Time, bytes: u64) {
        if self.received.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.note(|stations| stations.first_data = Some(now));
        }
        self.note(|stations| stations.last_data = Some(now));
    }
}

/// A flow at work.
pub(super) enum Flow {
    Tcp(Tcp),
    Datagrams(Datagrams),
    Dfcp(Dfcp),
    Commands(Commands),
}

impl Flow {
    pub(super) fn counters(&self) -> FlowCounters {
        match self {
            Self::Tcp(flow) => flow.counters(),
            Self::Datagrams(flow) => flow.counters(),
            Self::Dfcp(flow) => flow.counters(),
            // What they move is only seen on the network.
            Self::Commands(_) => FlowCounters::default(),
        }
    }

    pub(super) fn stations(&self) -> Stations {
        match self {
            Self::Tcp(flow) => flow.stations(),
            Self::Datagrams(flow) => flow.stations(),
            Self::Dfcp(flow) => flow.stations(),
            Self::Commands(flow) => flow.stations(),
        }
    }

    /// True if all its data has arrived.
    pub(super) fn is_done(&self) -> bool {
        let stations = self.stations();
        stations.completed.is_some() || stations.aborted
    }

    /// Waits for its threads, once the run is over.
    pub(super) fn join(self) {
        let threads = match self {
            Self::Tcp(flow) => flow.threads,
            Self::Datagrams(flow) => flow.threads,
            Self::Commands(flow) => flow.threads,
            Self::Dfcp(_) => Vec::new(),
        };
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
}

/// The addresses and the kind of a flow.
pub(super) struct Place<'a> {
    pub(super) number: usize,
    pub(super) spec: &'a FlowSpec,
    pub(super) sender: IpAddr,
    pub(super) receiver: IpAddr,
    /// The addresses of further subflows.
    pub(super) beside: Vec<[IpAddr; 2]>,
}

/// Returns true if a call ended only for checking whether the run is over.
fn only_waited(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
