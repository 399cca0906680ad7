use std::path::PathBuf;

use fontis_lab::sim;
use fontis_sim::scenario::Setting;
use pyo3::prelude::*;

use crate::error::usage;
use crate::run::Run;

/// An experiment with all its cases, as a scenario file says it.
#[pyclass(module = "fontis")]
#[derive(Clone)]
pub(crate) struct Scenario(fontis_sim::scenario::Scenario);

/// A text, or a list of texts.
#[derive(FromPyObject)]
pub(crate) enum Value {
    One(String),
    List(Vec<String>),
}

impl From<Value> for Setting {
    fn from(value: Value) -> Self {
        match value {
            Value::One(text) => Self::One(text),
            Value::List(texts) => Self::List(texts),
        }
    }
}

#[pymethods]
impl Scenario {
    /// Reads the text of a scenario file; files that it names are looked for in a folder, and then
    /// in the present one.
    #[staticmethod]
    #[pyo3(signature = (text, folder = ""))]
    fn parse(text: &str, folder: &str) -> PyResult<Self> {
        sim::parse(text, folder).map(Self).map_err(usage)
    }

    /// The scenario of this path or id, and where it is.
    #[staticmethod]
    fn find(name: &str) -> PyResult<(Self, PathBuf)> {
        let file = sim::find(name).map_err(usage)?;
        Ok((Self(file.scenario), file.path))
    }

    /// Sets a key; one that was swept is swept no more.
    fn set(&mut self, key: &str, value: Value) -> PyResult<()> {
        self.0.set(key, value).map_err(usage)
    }

    /// Sweeps a key over these values.
    fn vary(&mut self, key: &str, values: Vec<Value>) -> PyResult<()> {
        self.0.vary(key, values.into_iter().map(Setting::from).collect()).map_err(usage)
    }

    /// What a key is set to, or its default.
    fn get(&self, key: &str) -> String {
        self.0.get(key)
    }

    /// Its quick variant, or itself if it has none.
    fn quick(&self) -> Self {
        Self(self.0.quick().unwrap_or_else(|| self.0.clone()))
    }

    /// A copy that changes by itself.
    fn copy(&self) -> Self {
        self.clone()
    }

    /// How many runs it stands for.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The runs that it stands for.
    fn runs(&self) -> PyResult<Vec<Run>> {
        Ok(Run::all(self.0.runs().map_err(usage)?))
    }
}

/// The scenarios in the folder `scenarios`: id, title, figure, path.
#[pyfunction]
pub(crate) fn scenarios() -> PyResult<Vec<(String, String, String, PathBuf)>> {
    let folder =
        sim::folder().ok_or_else(|| usage("there is no folder \"scenarios\" here or above"))?;
    let files = sim::list(&folder).into_iter().flatten();
    let about = |file: sim::ScenarioFile| {
        let get = |key: &str| file.scenario.get(&format!("scenario.{key}"));
        (get("id"), get("title"), get("figure"), file.path)
    };
    Ok(files.map(about).collect())
}
