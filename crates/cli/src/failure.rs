//! How a command fails: in one line, and with an exit code.

use thiserror::Error;

/// Why a command did not do what was asked, in one line that says what to do.
#[derive(Debug, Error)]
pub enum Failure {
    /// It can never work as it was written.
    #[error("{0}")]
    Usage(String),
    /// It did not work this time.
    #[error("{0}")]
    Failed(String),
    /// The peer cannot be reached, perhaps only for a while.
    #[error("{0}")]
    Away(String),
}

impl Failure {
    /// The exit code that says which.
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

impl From<fontis::BindError> for Failure {
    fn from(error: fontis::BindError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<fontis::transfer::TransferError> for Failure {
    fn from(error: fontis::transfer::TransferError) -> Self {
        use fontis::ConnectError;
        use fontis::transfer::TransferError;
        use fontis_proto::dfcp::CloseReason;
        match &error {
            TransferError::Lost {
                reason: CloseReason::IdleTimeout | CloseReason::Reset, ..
            }
            | TransferError::Connect(ConnectError::NoAnswer(_))
            | TransferError::Resolve { .. } => Self::Away(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
