use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The URL's secret is not that of this listener.
    Secret,
    /// It speaks another version.
    Version,
    /// It does not have the codec.
    Codec,
    /// It does not have the carrier.
    Carrier,
    /// It does not take so many calls in one connection.
    TooMany,
    /// It is in another call.
    Busy,
    /// It could not open a socket for the voice.
    Socket,
    /// It could not open its own input or output.
    Voice,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret => "the URL's secret is wrong: copy all of it",
            Self::Version => "the peer speaks another version: update Fontis at both ends",
            Self::Codec => "the peer does not have this codec: choose g711",
            Self::Carrier => "the peer does not have this carrier: choose dfcp",
            Self::TooMany => {
                "the peer does not take so many calls in a connection: it may with --calls"
            }
            Self::Busy => "the peer is in another call: try again later",
            Self::Voice => "the peer could not open its input or output",
            Self::Socket => "the peer could not open a socket for the voice: choose dfcp",
        })
    }
}
