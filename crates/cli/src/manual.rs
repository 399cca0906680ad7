//! The manual and the shell completions, from the same definitions as `--help`.

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;

/// Write the manual into a folder, a page for each command
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// The folder, made if needed
    dir: PathBuf,
}

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let written =
        fs::create_dir_all(&args.dir).and_then(|()| clap_mangen::generate_to(command, &args.dir));
    written.map_err(|error| {
        Failure::Failed(format!("cannot write the manual into {}: {error}", args.dir.display()))
    })
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    // The generator panics where it cannot write, and a pipe may be closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "fontis", &mut script);
    stdout().write_all(&script).map_err(|error| Failure::Failed(format!("cannot print: {error}")))
}
