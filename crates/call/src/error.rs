use std::io;

use fontis::dccp::DccpError;
use thiserror::Error;

use crate::audio::AudioError;
use crate::codec::CodecError;
use crate::refusal::Refusal;

/// The reason why a call failed.
#[derive(Debug, Error)]
pub enum CallError {
    /// The peer refused it.
    #[error("the call was refused: {0}")]
    Refused(Refusal),
    /// The peer went away.
    #[error("the connection was lost during the call")]
    Lost,
    /// The peer did not answer.
    #[error("the peer did not answer the call")]
    NoAnswer,
    /// The voice found no way.
    #[error(
        "no voice came over the carrier that the call agreed on: choose dfcp, which needs no port of its own"
    )]
    NoVoice,
    /// The path is too bad for the call.
    #[error("the call was not admitted: {0}")]
    NotAdmitted(String),
    /// A socket failed.
    #[error("a socket of the call failed: {0}")]
    Io(#[from] io::Error),
    /// DCCP failed.
    #[error("{0}")]
    Dccp(#[from] DccpError),
    /// Voice could not be read or written.
    #[error("{0}")]
    Audio(#[from] AudioError),
    /// The codec failed.
    #[error("{0}")]
    Codec(String),
}

impl From<CodecError> for CallError {
    fn from(error: CodecError) -> Self {
        Self::Codec(error.to_string())
    }
}
