//! Scenarios on this machine: finding them, running them in parallel or on the testbed, recording
//! the results.

mod batch;
mod behaviour;
mod folder;
mod key;
mod library;
mod parquet_file;
mod platform;
mod recorded;

pub(crate) use batch::on_testbed;
pub use batch::{BatchProgress, RunOutcome, run, samples};
pub use behaviour::behaviour;
pub use folder::{CAPTURE, Extras, Folder, Metric, PARTIAL, QLOG, QlogFile, RecordError, TRACE};
pub use key::{key, result_key};
pub use library::{ScenarioFile, find, folder, list, parse, read};
pub use parquet_file::write as write_table;
pub use platform::Platform;
pub use recorded::{RecordedFlow, read_flows};
