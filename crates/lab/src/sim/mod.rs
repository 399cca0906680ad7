//! Scenarios on this machine: finding them, running them in parallel or on the testbed, recording
//! the results.

mod batch;
mod folder;
mod key;
mod library;
mod parquet_file;

pub(crate) use batch::on_testbed;
pub use batch::{BatchProgress, Extras, Platform, RunOutcome, run, samples};
pub use folder::{CAPTURE, Folder, Metric, PARTIAL, QLOG, QlogFile, RecordError, TRACE};
pub use key::key;
pub use library::{ScenarioFile, find, folder, list, parse, read};
pub use parquet_file::write as write_table;
