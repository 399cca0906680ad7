use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fontis_sim::experiment::run::Watched;
use fontis_sim::recording::table::Table;
use fontis_sim::scenario::Run;
use fontis_trace::{Trace, stream};
use serde_json::{Value, json};
use thiserror::Error;

use super::behaviour::behaviour;
use super::parquet_file;
use super::platform::Platform;

/// The path that could not be written or read.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A run failed on the testbed.
    #[error("{0}")]
    Testbed(String),
    /// A table could not be written.
    #[error("{path}: {error}", path = .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: parquet::errors::ParquetError,
    },
}

/// The folder of a scenario's recordings, with a folder for each run that gets its name when it is
/// complete.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// The qlog of a run under way.
#[derive(Debug)]
pub struct QlogFile {
    path: PathBuf,
    file: File,
}

impl QlogFile {
    /// Appends whole records.
    pub fn write(&mut self, records: &[u8]) -> Result<(), RecordError> {
        let written = self.file.write_all(records);
        written.map_err(|error| RecordError::Io { path: self.path.clone(), error })
    }
}

/// One metric of a run, as it is kept in `run.json` and in the summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The metric.
    pub metric: String,
    /// The subject.
    pub subject: String,
    /// The value.
    pub value: f64,
    /// In which unit.
    pub unit: String,
}

/// The files of packets to write beside a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The packets of the flows' senders, as pcapng.
    pub capture: bool,
    /// Every packet's life, for `fontis view`.
    pub packets: bool,
    /// The packets and estimates of the flows' senders, as a qlog.
    pub qlog: bool,
}

impl Folder {
    /// The folder of the scenario called `name` in `out`.
    pub fn new(out: &Path, name: &str) -> Self {
        Self { path: out.join(name) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn of_run(&self, run: &Run) -> PathBuf {
        self.path.join(format!("{:05}", run.index))
    }

    /// The metrics of a run that this version recorded with these settings and these files of
    /// packets.
    pub fn recorded(&self, run: &Run, platform: Platform, extras: Extras) -> Option<Vec<Metric>> {
        let wanted = [(extras.capture, CAPTURE), (extras.packets, TRACE), (extras.qlog, QLOG)];
        if wanted.iter().any(|(wanted, name)| *wanted && !self.of_run(run).join(name).is_file()) {
            return None;
        }
        let text = fs::read_to_string(self.of_run(run).join(RUN)).ok()?;
        let kept: Value = serde_json::from_str(&text).ok()?;
        let on_testbed = kept.get("environment").is_some();
        if kept.get("how") != Some(&how(run)) || on_testbed != (platform == Platform::Testbed) {
            return None;
        }
        kept.get("summary")?.as_array()?.iter().map(metric_of).collect()
    }

    fn partial(&self, run: &Run) -> PathBuf {
        self.path.join(format!(".{:05}{PARTIAL}", run.index))
    }

    /// Writes the packets of a running simulation.
    pub fn record_snapshot(&self, run: &Run, trace: &Trace) -> io::Result<()> {
        let partial = self.partial(run);
        fs::create_dir_all(&partial)?;
        // Who reads it sees all of the old or all of the new one.
        let next = partial.join("next");
        fs::write(&next, stream::encode(trace))?;
        fs::rename(next, partial.join(TRACE))
    }

    /// Begins the qlog of a run under way, which becomes part of its recording.
    pub fn begin_qlog(&self, run: &Run) -> Result<QlogFile, RecordError> {
        let partial = self.partial(run);
        let path = partial.join(QLOG);
        let file = fs::create_dir_all(&partial).and_then(|()| File::create(&path));
        match file {
            Ok(file) => Ok(QlogFile { path, file }),
            Err(error) => Err(RecordError::Io { path, error }),
        }
    }

    /// Removes the files of an abandoned run.
    pub fn forget_partial(&self, run: &Run) {
        // What is left over is replaced by the next run.
        let _ = fs::remove_dir_all(self.partial(run));
    }

    /// Writes a run's recording beside its qlog, in place of any other; of a testbed, with the
    /// machine that it was made on.
    pub fn record(
        &self,
        run: &Run,
        watched: &Watched,
        environment: Option<Value>,
    ) -> Result<Vec<Metric>, RecordError> {
        let recording = &watched.recording;
        let (whole, partial) = (self.of_run(run), self.partial(run));
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| RecordError::Io { path, error }
        };
        if whole.exists() {
            fs::remove_dir_all(&whole).map_err(io(&whole))?;
        }
        fs::create_dir_all(&partial).map_err(io(&partial))?;
        for (name, table) in recording.tables() {
            let path = partial.join(format!("{name}.parquet"));
            parquet_file::write(&path, table)
                .map_err(|error| RecordError::Parquet { path, error })?;
        }
        if let Some(capture) = &watched.capture {
            let path = partial.join(CAPTURE);
            fs::write(&path, capture.as_bytes()).map_err(io(&path))?;
        }
        if let Some(trace) = &watched.trace {
            let path = partial.join(TRACE);
            fs::write(&path, stream::encode(trace)).map_err(io(&path))?;
        }
        let metrics = metrics_of(&recording.summary);
        let rows: Vec<Value> =
            metrics.iter().map(|m| json!([m.metric, m.subject, number(m.value), m.unit])).collect();
        let mut kept = json!({
            "how": how(run),
            "label": run.label(),
            "events": recording.events,
            "packets": recording.packets,
            "summary": rows,
        });
        if let Some(environment) = environment {
            kept["environment"] = environment;
        }
        let path = partial.join(RUN);
        fs::write(&path, format!("{kept:#}\n")).map_err(io(&path))?;
        fs::rename(&partial, &whole).map_err(io(&whole))?;
        Ok(metrics)
    }

    /// Writes the summaries of several runs as one table.
    pub fn record_summary(&self, runs: &[(&Run, Vec<Metric>)]) -> Result<PathBuf, RecordError> {
        let mut table = Table::new(ALL_RUNS);
        for (run, metrics) in runs {
            let sweep: Vec<String> =
                run.sweep.iter().map(|(key, value)| format!("{key}={value}")).collect();
            for metric in metrics {
                table.push([
                    (run.index as u64).into(),
                    run.variant.as_str().into(),
                    sweep.join("; ").as_str().into(),
                    run.repetition.into(),
                    run.seed.into(),
                    metric.metric.as_str().into(),
                    metric.subject.as_str().into(),
                    metric.value.into(),
                    metric.unit.as_str().into(),
                ]);
            }
        }
        fs::create_dir_all(&self.path)
            .map_err(|error| RecordError::Io { path: self.path.clone(), error })?;
        let path = self.path.join("summary.parquet");
        match parquet_file::write(&path, &table) {
            Ok(()) => Ok(path),
            Err(error) => Err(RecordError::Parquet { path, error }),
        }
    }
}

const RUN: &str = "run.json";
/// A capture at the senders.
pub const CAPTURE: &str = "packets.pcapng";
/// The packets and estimates of the flows' senders, for `fontis view` and others.
pub const QLOG: &str = "packets.sqlog";
/// The suffix of the folder of a running simulation, which begins with a dot and the run's number.
pub const PARTIAL: &str = ".partial";
/// Every packet's life, for `fontis view`.
pub const TRACE: &str = "packets.trace";

use fontis_sim::recording::table::{ColumnKind, ColumnSchema};

const fn column(name: &'static str, kind: ColumnKind, meaning: &'static str) -> ColumnSchema {
    ColumnSchema { name, unit: "", meaning, kind }
}

const ALL_RUNS: &[ColumnSchema] = &[
    column("run", ColumnKind::Integer, "the run's number"),
    column("variant", ColumnKind::Text, "the variant, or empty"),
    column("sweep", ColumnKind::Text, "what the sweep sets, as KEY=VALUE"),
    column("repetition", ColumnKind::Integer, "the repetition, from 0"),
    column("seed", ColumnKind::Integer, "the run's seed"),
    column("metric", ColumnKind::Text, "the metric"),
    column("subject", ColumnKind::Text, "the flow, the bottleneck, or all"),
    column("value", ColumnKind::Real, "its value"),
    column("unit", ColumnKind::Text, "the unit"),
];

/// The provenance of a run: all that decides the bytes of its recording.
fn how(run: &Run) -> Value {
    let settings: serde_json::Map<String, Value> =
        run.settings.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "code": behaviour(run),
        "seed": run.seed,
        "variant": run.variant,
        "repetition": run.repetition,
        "settings": settings,
    })
}

fn metrics_of(summary: &Table) -> Vec<Metric> {
    let texts =
        |name| summary.texts(name).into_iter().flat_map(|texts| texts.iter()).map(str::to_owned);
    texts("metric")
        .zip(texts("subject"))
        .zip(summary.numbers("value"))
        .zip(texts("unit"))
        .map(|(((metric, subject), value), unit)| Metric { metric, subject, value, unit })
        .collect()
}

/// JSON has no NaN.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn metric_of(row: &Value) -> Option<Metric> {
    let text = |index: usize| Some(row.get(index)?.as_str()?.to_owned());
    Some(Metric {
        metric: text(0)?,
        subject: text(1)?,
        value: row.get(2)?.as_f64().unwrap_or(f64::NAN),
        unit: text(3)?,
    })
}
