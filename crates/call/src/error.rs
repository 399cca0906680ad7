use std::io;
use std::net::SocketAddr;

use fontis::dccp::DccpError;
use thiserror::Error;

use crate::audio::AudioError;
use crate::codec::CodecError;
use crate::phone::PhoneError;
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
    /// This end gave it up before it was answered.
    #[error("the call was given up before it was answered")]
    GivenUp,
    /// The peer speaks another form.
    #[error(
        "the peer sends payload type {0} of RTP, which is not that of this codec: choose the peer's with --codec"
    )]
    PayloadType(u8),
    /// Nobody answered a call without encryption.
    #[error(
        "{0} did not answer a call without encryption: a listener that is encrypted refuses it, and is called by its fontis:// URL without --plain"
    )]
    NoPlainAnswer(SocketAddr),
    /// The peer takes encrypted calls alone.
    #[error("{0} refuses calls without encryption: call its fontis:// URL without --plain")]
    IsEncrypted(SocketAddr),
    /// The telephone failed.
    #[error("{0}")]
    Phone(#[from] PhoneError),
}

impl From<CodecError> for CallError {
    fn from(error: CodecError) -> Self {
        Self::Codec(error.to_string())
    }
}
