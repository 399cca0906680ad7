//! The failure of a command: one line, and an exit code.

use thiserror::Error;

/// A failure of a command, with one line that names the repair.
#[derive(Debug, Error)]
pub enum Failure {
    /// The command was used wrongly.
    #[error("{0}")]
    Usage(String),
    /// The command failed this time.
    #[error("{0}")]
    Failed(String),
    /// The peer cannot be reached, perhaps for a while.
    #[error("{0}")]
    Away(String),
}

impl Failure {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) | Self::Away(_) => 1,
        }
    }
}

impl From<fontis::IdentityError> for Failure {
    fn from(error: fontis::IdentityError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<fontis::flute::FluteError> for Failure {
    fn from(error: fontis::flute::FluteError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<fontis::BindError> for Failure {
    fn from(error: fontis::BindError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<fontis::transfer::TransferError> for Failure {
    fn from(error: fontis::transfer::TransferError) -> Self {
        if error.may_pass() {
            Self::Away(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}
