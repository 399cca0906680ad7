//! Reliable transport over bad networks with digital fountain codes.
//!
//! Start here: [`transfer`] moves files and folders: [`transfer::get`] from a
//! [`transfer::FileServer`], [`transfer::get_from`] from several, [`transfer::send`] to a
//! [`transfer::Receiver`]. Beneath it an [`Endpoint`] is a UDP socket that [`Connection`]s are made
//! from and accepted on; a connection carries messages, streams and objects. The protocol itself is
//! `fontis_proto::dfcp`; [`protection`] is its cryptography.
//!
//! A [`Url`] names an object and its server, an [`Identity`] this user, and an [`AllowList`] the
//! accepted clients. A [`Source`] is a file or a folder to send; its [`Manifest`] lists the
//! contents of the object, its [`HashTree`] checks every block, and a [`HashCache`] avoids hashing
//! twice. A [`Sink`] writes verified blocks in any order to a [`Dest`], and gives the object its
//! name when it is complete; a [`StreamSink`] writes in order to a stream. Functions on files
//! block: call them from worker threads.
//!
//! [`sctp`] speaks SCTP over UDP to peers that others wrote, [`dccp`] DCCP over UDP, and [`flute`]
//! sends files to receivers that cannot answer as others do.

mod archive;
mod connection;
pub mod dccp;
mod dest;
mod disk;
mod endpoint;
mod exclusions;
mod file;
pub mod flute;
mod hash_cache;
mod hash_tree;
mod identity;
mod journal;
mod key_log;
mod layout;
mod left_out;
pub mod manifest;
mod moment;
mod name;
mod partial;
mod printable;
mod private_file;
pub mod protection;
mod qlog;
mod random;
#[doc(hidden)]
pub mod readers;
pub mod sctp;
mod sink;
mod source;
mod stamp;
mod stream_sink;
mod task;
mod token_store;
pub mod transfer;
pub mod udp;
mod url;
#[cfg(test)]
mod whole;

pub use archive::Archive;
pub use connection::{
    Connection, Received, RecvObject, RecvStream, SendObject, SendProgress, SendStream,
};
pub use dest::Dest;
pub use endpoint::{
    Accept, BindError, CODE_REFUSED_KEY, CODE_TOO_MANY, ConnectError, ConnectionStatus, Endpoint,
    EndpointConfig, EndpointStatus, LocalInterface, Message, PathStatus,
};
pub use exclusions::{Exclusions, PatternError};
pub use hash_cache::HashCache;
pub use hash_tree::{BlockCheck, HashTree, HashTreeBuilder, HashTreeError, block_size_for};
pub use identity::{AllowList, Identity, IdentityError, KEY_LEN, PublicKey};
pub use key_log::KeyLog;
pub use left_out::LeftOut;
pub use manifest::{
    Attribute, Entry, EntryKind, Extra, Hole, Manifest, ManifestError, Modified, Omitted,
};
pub use printable::Printable;
pub use sink::{Sink, SinkError, SinkOptions};
pub use source::{Source, SourceError, SourceOptions};
pub use stream_sink::StreamSink;
pub use token_store::TokenStore;
pub use url::{MAX_SECRET, MIN_SECRET, Secret, Url, UrlError};
