//! Reliable transport over bad networks with digital fountain codes.

mod dest;
mod hash_cache;
mod hash_tree;
mod layout;
pub mod manifest;
mod partial;
mod printable;
mod ranges;
mod sink;
mod source;
mod stamp;
mod stream_sink;

pub use dest::Dest;
pub use hash_cache::HashCache;
pub use hash_tree::{HashTree, HashTreeError, block_size_for};
pub use manifest::{Entry, EntryKind, Manifest, ManifestError, Modified};
pub use sink::{Sink, SinkError};
pub use source::{Source, SourceError};
pub use stream_sink::StreamSink;
