use std::ffi::OsString;
use std::path::PathBuf;

use fontis_cli::Python as Interpreter;
use pyo3::prelude::*;

/// The `fontis` command, with its name as the first argument; gives the exit code. What needs
/// Python runs in `executable`.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, args: Vec<OsString>, executable: PathBuf) -> u8 {
    py.detach(|| fontis_cli::run(args, &Interpreter::At(executable)))
}
