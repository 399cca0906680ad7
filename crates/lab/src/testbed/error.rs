use std::io;

use thiserror::Error;

/// The reason why a testbed cannot be built or used.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// The system does not let this user make networks.
    #[error("cannot make a network on this machine: {what}: {source}; run it as root, or {advice}")]
    Forbidden {
        /// The refused action.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
        /// The repair without root.
        advice: &'static str,
    },
    /// A command cannot be started.
    #[error("cannot start {command:?}: {source}; check that it is installed and on the path")]
    Command {
        /// The command.
        command: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Something cannot be had on the testbed.
    #[error("{0}")]
    Unsupported(String),
    /// A flow did not get on its way.
    #[error("{flow}: {problem}")]
    Flow {
        /// Its name.
        flow: String,
        /// The failure.
        problem: String,
    },
    /// The system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

/// Makes an error of the system one of the testbed.
pub(super) fn system(action: &'static str) -> impl FnOnce(io::Error) -> TestbedError {
    move |source| TestbedError::System { action, source }
}
