//! Files over FLUTE (RFC 6726): to any number of receivers that cannot answer, and from senders
//! that others wrote. Nothing is encrypted, and a hash of the sender's is all that is verified.
//!
//! Start here: a [`FluteFileSender`] sends files and folders, a [`FluteFileReceiver`] receives into
//! a folder. Both block. The protocol is `fontis_proto::flute`.

mod error;
mod location;
mod receive;
mod send;
mod source;
mod store;

pub use error::FluteError;
pub use receive::{FluteEnd, FluteFileReceiver, FluteNews, FluteReceiveOptions, FluteReport};
pub use send::{FluteFileSender, FluteSendOptions};
