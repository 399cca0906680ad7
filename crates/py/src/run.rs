use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::congestion::{self, Raised};
use crate::error::{failed, usage};
use crate::interrupt::{Stop, Watch};
use crate::recording::Recording;

/// One run of a scenario.
#[pyclass(frozen, module = "fontis")]
pub(crate) struct Run {
    runs: Arc<Vec<fontis_sim::scenario::Run>>,
    index: usize,
}

impl Run {
    pub(crate) fn all(runs: Vec<fontis_sim::scenario::Run>) -> Vec<Self> {
        let runs = Arc::new(runs);
        (0..runs.len()).map(|index| Self { runs: Arc::clone(&runs), index }).collect()
    }

    fn get(&self) -> &fontis_sim::scenario::Run {
        &self.runs[self.index]
    }
}

#[pymethods]
impl Run {
    /// Its number, from 0.
    #[getter]
    fn index(&self) -> usize {
        self.get().index
    }

    /// The variant, or empty.
    #[getter]
    fn variant(&self) -> &str {
        &self.get().variant
    }

    /// What the sweep sets in it, by key.
    #[getter]
    fn sweep(&self) -> Vec<(String, String)> {
        self.get().sweep.clone()
    }

    /// The repetition, from 0.
    #[getter]
    fn repetition(&self) -> u64 {
        self.get().repetition
    }

    /// Its seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.get().seed
    }

    /// Everything that is set in it.
    #[getter]
    fn settings(&self) -> BTreeMap<String, String> {
        self.get().settings.iter().cloned().collect()
    }

    /// A hash of what is asked of it: settings and seed.
    #[getter]
    fn key(&self) -> String {
        fontis_lab::sim::key(self.get())
    }

    /// A hash of what decides its result: settings, seed, and what the code does with them.
    #[getter]
    fn result_key(&self) -> String {
        fontis_lab::sim::result_key(self.get())
    }

    /// What tells it from the scenario's other runs.
    #[getter]
    fn label(&self) -> String {
        self.get().label()
    }

    fn __repr__(&self) -> String {
        format!("<fontis.Run {}: {}>", self.index, self.label())
    }

    /// Runs it in the simulator. Ctrl-C ends it, and so does `stop`, with KeyboardInterrupt.
    /// `congestion` has classes that govern TCP flows, by name.
    #[pyo3(signature = (stop=None, wire=false, congestion=None))]
    fn simulate(
        &self,
        py: Python<'_>,
        stop: Option<&Stop>,
        wire: bool,
        congestion: Option<BTreeMap<String, Py<PyAny>>>,
    ) -> PyResult<Recording> {
        if let Some((flow, what)) = self.get().experiment.testbed_only() {
            let text = format!("{}: {what} on the testbed only: use fontis.testbed.run", flow.name);
            return Err(usage(text));
        }
        let watch = Watch::new(stop);
        let mut experiment = self.get().experiment.clone();
        experiment.wire = wire;
        let raised = Raised::default();
        for (flow, class) in congestion.into_iter().flatten() {
            congestion::govern(&mut experiment, &flow, class, &raised)?;
        }
        let (watch, raised, recording) = py.detach(move || {
            let recording = experiment.run(|| raised.is_set() || watch.wants_end());
            (watch, raised, recording)
        });
        if let Some(error) = raised.take() {
            return Err(error);
        }
        let recording = recording.ok_or_else(|| watch.error())?;
        Recording::new(py, recording, None)
    }

    /// Runs it on the testbed, with real kernels and sockets, in real time.
    #[pyo3(signature = (stop=None))]
    fn testbed(&self, py: Python<'_>, stop: Option<&Stop>) -> PyResult<Recording> {
        #[cfg(target_os = "linux")]
        {
            let watch = Watch::new(stop);
            let experiment = self.get().experiment.clone();
            let (watch, outcome) = py.detach(move || {
                let outcome = fontis_lab::testbed::gain_privilege().and_then(|_| {
                    fontis_lab::testbed::run(&experiment, Default::default(), || watch.wants_end())
                });
                (watch, outcome)
            });
            let made = outcome.map_err(failed)?.ok_or_else(|| watch.error())?;
            Recording::new(py, made.0.recording, Some(made.1.as_json().to_string()))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (py, stop);
            Err(failed("a testbed needs Linux"))
        }
    }
}
