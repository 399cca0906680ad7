//! The `fontis` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(fontis_cli::run(std::env::args_os(), &fontis_cli::Python::OnPath))
}
