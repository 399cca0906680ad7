use std::sync::{Arc, Mutex, PoisonError};

use fontis_base::{Duration, Rate, Time};
use fontis_proto::congestion::{Acknowledgement, CongestionControl, CongestionMaker, Phase};
use fontis_sim::Experiment;
use fontis_sim::host::rows::tcp::Tcp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::usage;

/// The first exception that a class raised while a run was under way.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Lets `class` govern the TCP flows of this name: one, or all of a `count`.
pub(crate) fn govern(
    experiment: &mut Experiment,
    flow: &str,
    class: Py<PyAny>,
    raised: &Raised,
) -> PyResult<()> {
    let raised = raised.clone();
    let maker = CongestionMaker::new(move |mss, window| {
        Box::new(Governor::new(&class, mss, window, &raised))
    });
    let mut names = Vec::new();
    let mut governed = false;
    for spec in &mut experiment.flows {
        let Some(tcp) = spec.transport.as_any().downcast_ref::<Tcp>() else { continue };
        let is_of_count = spec.name.strip_prefix(flow).is_some_and(|rest| rest.starts_with('.'));
        if spec.name == flow || is_of_count {
            let mut config = (*tcp.config).clone();
            config.foreign = Some(maker.clone());
            spec.transport = Arc::new(Tcp { config: Arc::new(config) });
            governed = true;
        }
        names.push(&*spec.name);
    }
    if governed {
        return Ok(());
    }
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(usage(format!("congestion: there is no TCP flow called {flow:?}; there are {names}")))
}

/// What an acknowledgement says to a congestion control: times in seconds, rates in bit/s, all else
/// in bytes.
#[pyclass(frozen, get_all, module = "fontis.congestion")]
pub(crate) struct Ack {
    /// When it came.
    now: f64,
    /// Bytes that let a window grow.
    acked: u64,
    /// Bytes that it shows to have arrived and that were not known to have.
    delivered: u64,
    /// Bytes that were recognised as lost with it.
    lost: u64,
    /// The round-trip time that it measures, if it does.
    rtt: Option<f64>,
    /// The least round-trip time seen.
    min_rtt: f64,
    /// The smoothed round-trip time.
    srtt: f64,
    /// Whether it echoes a mark.
    marked: bool,
    /// Bytes in flight after it.
    in_flight: u64,
    /// Whether the window was what kept the sender from sending more.
    cwnd_limited: bool,
    /// The lowest position that is not acknowledged.
    una: u64,
    /// The next position to be sent.
    nxt: u64,
    /// open, recovery or loss.
    phase: &'static str,
    /// The rate of delivery that it measures, if it does.
    rate: Option<f64>,
    /// Whether the sender had too little to send when that was measured.
    app_limited: bool,
}

impl From<&Acknowledgement> for Ack {
    fn from(ack: &Acknowledgement) -> Self {
        let rate = ack.delivery.as_ref();
        Self {
            now: ack.now.as_secs_f64(),
            acked: ack.acked,
            delivered: ack.delivered,
            lost: ack.lost,
            rtt: ack.rtt.map(Duration::as_secs_f64),
            min_rtt: ack.min_rtt.as_secs_f64(),
            srtt: ack.srtt.as_secs_f64(),
            marked: ack.marked,
            in_flight: ack.in_flight,
            cwnd_limited: ack.cwnd_limited,
            una: ack.acked_to,
            nxt: ack.sent_to,
            phase: match ack.phase {
                Phase::Open => "open",
                Phase::Recovery => "recovery",
                Phase::Loss => "loss",
            },
            rate: rate.and_then(|sample| sample.rate).map(|rate| rate.as_bps() as f64),
            app_limited: rate.is_some_and(|sample| sample.app_limited),
        }
    }
}

/// An object in Python at work. It is told what happens, and its attributes are read after that;
/// when it raises, it is not asked again, and the run ends at its next sample.
#[derive(Debug)]
struct Governor {
    object: Option<Py<PyAny>>,
    raised: Raised,
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    pacing_rate: Option<Rate>,
}

impl std::fmt::Debug for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Raised")
    }
}

impl Governor {
    fn new(class: &Py<PyAny>, mss: u64, initial_window: u64, raised: &Raised) -> Self {
        let (raised, ssthresh) = (raised.clone(), u64::MAX);
        let mut made =
            Self { object: None, raised, mss, cwnd: initial_window, ssthresh, pacing_rate: None };
        Python::attach(|py| match class.call1(py, (mss, initial_window)) {
            Ok(object) => made.object = Some(object),
            Err(error) => made.raised.set(error),
        });
        made.tell(|_, _| Ok(()));
        made
    }

    fn tell(&mut self, what: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<()>) {
        let Some(object) = &self.object else { return };
        let told = Python::attach(|py| {
            what(py, object)?;
            Answer::read(object.bind(py))
        });
        match told {
            Ok(answer) => {
                // Less than a segment would never leave.
                self.cwnd = answer.cwnd.max(self.mss);
                self.ssthresh = answer.ssthresh;
                self.pacing_rate = answer.pacing_rate;
            }
            Err(error) => {
                self.raised.set(error);
                self.object = None;
            }
        }
    }
}

/// What an object's attributes say.
struct Answer {
    cwnd: u64,
    ssthresh: u64,
    pacing_rate: Option<Rate>,
}

impl Answer {
    fn read(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = |name: &str| -> PyResult<Option<f64>> {
            let value = object.getattr_opt(name)?.filter(|value| !value.is_none());
            let Some(value) = value else { return Ok(None) };
            let value: f64 = value.extract()?;
            if value >= 0.0 {
                return Ok(Some(value));
            }
            Err(PyValueError::new_err(format!("{name} is {value}, and must not be negative")))
        };
        let cwnd = number("cwnd")?;
        let cwnd =
            cwnd.ok_or_else(|| PyValueError::new_err("a controller needs cwnd, in bytes"))?;
        Ok(Self {
            // A float becomes an integer with saturation.
            cwnd: cwnd as u64,
            ssthresh: number("ssthresh")?.map_or(u64::MAX, |bytes| bytes as u64),
            pacing_rate: number("pacing_rate")?.map(|rate| Rate::from_bps((rate as u64).max(1))),
        })
    }
}

impl CongestionControl for Governor {
    fn on_ack(&mut self, ack: &Acknowledgement) {
        self.tell(|py, object| object.call_method1(py, "on_ack", (Ack::from(ack),)).map(drop));
    }

    fn on_congestion(&mut self, now: Time, window: u64) {
        self.tell(|py, object| {
            object.call_method1(py, "on_congestion", (now.as_secs_f64(), window)).map(drop)
        });
    }

    fn on_timeout(&mut self, now: Time, window: u64) {
        self.tell(|py, object| {
            object.call_method1(py, "on_timeout", (now.as_secs_f64(), window)).map(drop)
        });
    }

    fn on_idle(&mut self, restart: u64) {
        self.tell(|py, object| object.call_method1(py, "on_idle", (restart,)).map(drop));
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn wants_delivery(&self) -> bool {
        true
    }

    fn paces(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn copy(&self) -> Box<dyn CongestionControl> {
        let object = self.object.as_ref().and_then(|object| {
            Python::attach(|py| {
                let deepcopy = py.import("copy").and_then(|module| module.getattr("deepcopy"));
                let copied = deepcopy.and_then(|deepcopy| deepcopy.call1((object,)));
                copied.map_err(|error| self.raised.set(error)).ok().map(Bound::unbind)
            })
        });
        Box::new(Self { object, raised: self.raised.clone(), ..*self })
    }
}
