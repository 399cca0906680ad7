//! Calls: voice in both directions.

mod args;
mod bridge;
mod ends;
mod monitor;
mod plain;

pub(crate) use self::args::Args;
use self::monitor::Monitor;
use crate::failure::Failure;
use crate::runtime::block_on;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.check().map_err(|text| Failure::Usage(text.to_owned()))?;
    let keys = args.keys.load()?;
    let monitor = Monitor::new(args)?;
    let report = match (&args.listen, args.plain) {
        (Some(at), true) => block_on(&keys, plain::listen(args, *at, &monitor)),
        (None, true) => block_on(&keys, plain::make(args, &monitor)),
        (Some(at), false) => block_on(&keys, ends::listen(args, &keys, *at, &monitor)),
        (None, false) => block_on(&keys, ends::make(args, &keys, &monitor)),
    }?;
    monitor.end(&report);
    Ok(())
}
