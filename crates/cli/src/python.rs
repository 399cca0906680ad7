//! Subcommands in Python, which run in the package `fontis`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;

/// The Python interpreter.
#[derive(Clone, Debug)]
pub enum Python {
    /// `python3` on the path, or the one in `FONTIS_PYTHON`.
    OnPath,
    /// The interpreter that this process is part of, which has the package.
    At(PathBuf),
}

/// The arguments of a subcommand of `fontis lab`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Passed {
    /// The arguments of the subcommand; see its --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// A program that imports the package alone, to test whether it is installed.
const PROBE: &str = "import fontis";

impl Python {
    /// Runs `python -m fontis.lab NAME ARGS`, and returns its exit code.
    pub(crate) fn lab(&self, name: &str, passed: &Passed) -> Result<u8, Failure> {
        let program = match self {
            Self::At(path) => path.clone(),
            Self::OnPath => {
                std::env::var_os("FONTIS_PYTHON").map_or("python3".into(), PathBuf::from)
            }
        };
        if matches!(self, Self::OnPath) {
            let probe = Command::new(&program).args(["-c", PROBE]).output();
            if !probe.is_ok_and(|output| output.status.success()) {
                return Err(Failure::Failed(format!(
                    "fontis lab {name} is part of the Python package fontis, which {} does not have: run pip install '.[lab]' \
                     in Fontis's source folder, or name another Python in FONTIS_PYTHON",
                    program.display()
                )));
            }
        }
        let mut command = Command::new(&program);
        command.args(["-m", "fontis.lab", name]).args(&passed.args);
        // Ctrl-C reaches both; what was begun ends there in good order, and this side waits for it.
        let _ = ctrlc::set_handler(|| ());
        let status = command.status();
        let status = status.map_err(|error| {
            Failure::Failed(format!("cannot run {}: {error}", program.display()))
        })?;
        Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}
