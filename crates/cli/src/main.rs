//! The `fontis` command.

use std::process::ExitCode;

/// Keeps the buffers of blocks instead of asking the system for each, and makes the static binary as fast as the other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(fontis_cli::run(std::env::args_os(), &fontis_cli::Python::OnPath))
}
