use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// How often a long call asks the interpreter whether a signal came.
const EVERY: Duration = Duration::from_millis(50);

/// Ends long calls that were given it, from another thread.
#[pyclass(frozen, module = "fontis")]
#[derive(Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends them.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are to end.
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Watches over a long call that runs without the interpreter, in the thread that made it.
pub(crate) struct Watch {
    stop: Option<Arc<AtomicBool>>,
    asked: Cell<Instant>,
    raised: RefCell<Option<PyErr>>,
}

impl Watch {
    pub(crate) fn new(stop: Option<&Stop>) -> Self {
        let stop = stop.map(|stop| stop.0.clone());
        Self { stop, asked: Cell::new(Instant::now()), raised: RefCell::new(None) }
    }

    /// Whether the call is to end: [`Stop`] says so, or a signal's handler has raised.
    pub(crate) fn wants_end(&self) -> bool {
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return true;
        }
        if self.asked.get().elapsed() < EVERY {
            return false;
        }
        self.asked.set(Instant::now());
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                self.raised.replace(Some(error));
                true
            }
        }
    }

    /// Why a call ended that was to.
    pub(crate) fn error(self) -> PyErr {
        let stopped = || PyKeyboardInterrupt::new_err("it was stopped");
        self.raised.into_inner().unwrap_or_else(stopped)
    }

    /// Does work in another thread, and sets `stop` when it is to end.
    pub(crate) fn over<T: Send>(&self, stop: &AtomicBool, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let work = scope.spawn(work);
            while !work.is_finished() {
                std::thread::sleep(Duration::from_millis(5));
                if self.wants_end() {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
            work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Whether the call was ended.
    pub(crate) fn ended(&self) -> bool {
        self.raised.borrow().is_some()
    }

    /// Ends when the call is to end.
    pub(crate) async fn end(&self) {
        while !self.wants_end() {
            tokio::time::sleep(EVERY).await;
        }
    }
}
