//! The flows of a testbed: kernel TCP, datagrams, Fontis, any command.

mod command;
mod datagrams;
mod dfcp;
mod messages;
mod tcp;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as Span;

use fontis::udp::Clock;
use fontis_base::{Stream, Time};
use fontis_sim::Experiment;
use fontis_sim::app::message::MessageLog;
use fontis_sim::experiment::spec::FlowSpec;
use fontis_sim::host::{Counters, Milestones};

use tokio::runtime::Runtime;

use super::error::TestbedError;
use super::network::EndSite;

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
    milestones: Mutex<Milestones>,
}

impl Meter {
    fn note(&self, act: impl FnOnce(&mut Milestones)) {
        act(&mut self.milestones.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn milestones(&self) -> Milestones {
        *self.milestones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Useful bytes have reached the application at `now`.
    fn arrived(&self, now: Time, bytes: u64) {
        if self.received.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.note(|milestones| milestones.first_data = Some(now));
        }
        self.note(|milestones| milestones.last_data = Some(now));
    }
}

/// A flow at work.
pub(super) trait Flow {
    /// Its counters, with those of one of its receivers.
    fn counters(&self, receiver: usize) -> Counters;

    /// Its milestones, with those of one of its receivers.
    fn milestones(&self, receiver: usize) -> Milestones;

    /// Whether all that it had to transport has arrived.
    fn is_done(&self) -> bool {
        let milestones = self.milestones(0);
        milestones.completed.is_some() || milestones.aborted
    }

    /// Asks its connections for their counters.
    fn refresh(&self, _runtime: &Runtime) {}

    /// Waits for its threads, once the run is over.
    fn join(self: Box<Self>) {}
}

/// Waits for threads, once the run is over.
fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

/// A flow that is to begin: its ends, and what it is.
pub(super) struct Place<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) number: usize,
    pub(super) spec: &'a FlowSpec,
    pub(super) sender: EndSite<'a>,
    pub(super) receivers: Vec<EndSite<'a>>,
    /// The addresses of further subflows.
    pub(super) beside: Vec<[IpAddr; 2]>,
    /// Its messages, if its application sends messages.
    pub(super) log: Option<MessageLog>,
    pub(super) runtime: &'a Runtime,
}

impl Place<'_> {
    /// The receiver of a flow that has one.
    fn receiver(&self) -> EndSite<'_> {
        self.receivers[0]
    }

    /// The stream of the application's random draws.
    fn stream(&self) -> Stream {
        Stream::new(self.experiment.seed, &format!("{}/application", self.spec.name))
    }
}

/// Starts a flow of a transport on the testbed.
type Start = fn(&Stage, &Place<'_>) -> Result<Box<dyn Flow>, TestbedError>;

/// The counterparts of the simulator's transports, by name. A transport that is not here runs in
/// the simulator only.
const COUNTERPARTS: &[(&str, Start)] = &[
    ("TCP", tcp::start),
    ("DFCP", dfcp::start),
    ("datagrams", datagrams::start),
    ("command", command::start),
];

/// Starts a flow.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let row = place.spec.transport.row();
    match COUNTERPARTS.iter().find(|(name, _)| *name == row.name) {
        Some((_, start)) => start(stage, place),
        None => Err(TestbedError::Unsupported(format!(
            "{}: {} is for the simulator only: it knows no sockets",
            place.spec.name, row.name
        ))),
    }
}

/// Returns true if a call ended only for checking whether the run is over.
fn only_waited(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    use fontis_sim::host::rows::TRANSPORTS;

    use super::COUNTERPARTS;

    #[test]
    fn every_transport_of_the_simulator_has_a_counterpart_or_is_known_to_have_none() {
        /// The DFCP of 2015 has no sockets.
        const SIMULATED_ONLY: [&str; 1] = ["DFCP of 2015"];
        for row in TRANSPORTS {
            let has = COUNTERPARTS.iter().any(|(name, _)| *name == row.name);
            assert_ne!(has, SIMULATED_ONLY.contains(&row.name), "{}", row.name);
        }
        assert_eq!(COUNTERPARTS.len() + SIMULATED_ONLY.len(), TRANSPORTS.len());
    }
}
