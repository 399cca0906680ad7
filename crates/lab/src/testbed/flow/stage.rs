//! The parts that all flows of a run share: clock, counters, places.

use std::cell::RefCell;
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
use fontis_sim::host::common::CommonObjects;
use fontis_sim::host::{Counters, Milestones};

use tokio::runtime::Runtime;

use crate::testbed::error::TestbedError;
use crate::testbed::network::EndSite;

/// The port on which receivers of kernel flows listen, and senders of Fontis.
pub(super) const PORT: u16 = 5001;
/// The interval of checking for the end of the run.
pub(super) const LOOK: Span = Span::from_millis(100);

/// The state that all endpoints of a run share.
#[derive(Clone)]
pub(in crate::testbed) struct Stage {
    pub(in crate::testbed) clock: Clock,
    pub(in crate::testbed) stop: Arc<AtomicBool>,
    /// The first thing that went wrong.
    failure: Arc<Mutex<Option<TestbedError>>>,
}

impl Stage {
    pub(in crate::testbed) fn new(clock: Clock) -> Self {
        Self { clock, stop: Arc::default(), failure: Arc::default() }
    }

    /// Returns true if the run is over.
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until `at`; returns true while the run continues.
    pub(super) fn wait_until(&self, at: Time) -> bool {
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
    pub(super) fn fail(&self, flow: &str, problem: impl ToString) {
        let error = TestbedError::Flow { flow: flow.to_owned(), problem: problem.to_string() };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // What goes wrong because the run ends is no failure.
        if !self.is_over() {
            failure.get_or_insert(error);
        }
    }

    /// The first failure.
    pub(in crate::testbed) fn failure(&self) -> Option<TestbedError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The counters of a flow's threads.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) milestones: Mutex<Milestones>,
}

impl Meter {
    pub(super) fn note(&self, act: impl FnOnce(&mut Milestones)) {
        act(&mut self.milestones.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn milestones(&self) -> Milestones {
        *self.milestones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Useful bytes have reached the application at `now`.
    pub(super) fn arrived(&self, now: Time, bytes: u64) {
        if self.received.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.note(|milestones| milestones.first_data = Some(now));
        }
        self.note(|milestones| milestones.last_data = Some(now));
    }
}

/// A flow at work.
pub(in crate::testbed) trait Flow {
    /// Its counters, with those of one of its receivers.
    fn counters(&self, receiver: usize) -> Counters;

    /// Its milestones, with those of one of its receivers.
    fn milestones(&self, receiver: usize) -> Milestones;

    /// Whether all that it had to transport has arrived.
    fn is_done(&self) -> bool {
        let milestones = self.milestones(0);
        milestones.completed.is_some() || milestones.aborted
    }

    /// Its messages, if it has a log of its own.
    fn log(&self) -> Option<MessageLog> {
        None
    }

    /// Asks its connections for their counters.
    fn refresh(&self, _runtime: &Runtime) {}

    /// Waits for its threads, once the run is over.
    fn join(self: Box<Self>) {}
}

/// Waits for threads, once the run is over.
pub(super) fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

/// A flow that is to begin: its ends, and what it is.
pub(in crate::testbed) struct Place<'a> {
    pub(in crate::testbed) experiment: &'a Experiment,
    pub(in crate::testbed) number: usize,
    pub(in crate::testbed) spec: &'a FlowSpec,
    pub(in crate::testbed) sender: EndSite<'a>,
    pub(in crate::testbed) receivers: Vec<EndSite<'a>>,
    /// The addresses of further subflows or paths.
    pub(in crate::testbed) beside: Vec<[IpAddr; 2]>,
    /// The objects of the run that several flows send together.
    pub(in crate::testbed) commons: &'a RefCell<CommonObjects>,
    /// Its messages, if its application sends messages.
    pub(in crate::testbed) log: Option<MessageLog>,
    pub(in crate::testbed) runtime: &'a Runtime,
}

impl Place<'_> {
    /// The receiver of a flow that has one.
    pub(super) fn receiver(&self) -> EndSite<'_> {
        self.receivers[0]
    }

    /// The stream of the application's random draws.
    pub(super) fn stream(&self) -> Stream {
        Stream::new(self.experiment.seed, &format!("{}/application", self.spec.name))
    }
}

/// Returns true if a call ended only for checking whether the run is over.
pub(super) fn only_waited(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
