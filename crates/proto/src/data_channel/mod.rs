//! Data channels over an association of SCTP (RFC 8831), and how they are opened (RFC 8832): what
//! browsers speak inside DTLS.
//!
//! Start here: [`DataChannels`] opens and closes channels of a
//! [`SctpAssociation`](crate::sctp::SctpAssociation), sends messages and gives those that come. The
//! driver that owns the association calls [`DataChannels::turn`] after packets and timers.

mod channels;
mod message;
mod options;

pub use channels::{DataChannelEvent, DataChannels};
pub use message::{ChannelMessage, ChannelMessageError};
pub use options::{ChannelContent, DataChannelError, DataChannelOptions};
