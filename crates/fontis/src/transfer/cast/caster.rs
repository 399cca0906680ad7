use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fontis_base::{Duration, Rate};
use fontis_proto::cast::CastRate;
use fontis_proto::dfcp::DfcpStats;

use super::group::{CastGroup, CastStatus};
use super::group_thread::GroupThread;
use super::invitation::{Invitation, Invited, LATENCIES, STREAM};
use super::live_feed::LiveFeed;
use super::object::CastObject;
use super::object_feed::ObjectFeed;
use crate::hash_tree::HashTree;
use crate::left_out::LeftOut;
use crate::moment;
use crate::source::{Source, SourceOptions};
use crate::transfer::{Report, TransferError};

/// How an object is cast.
#[derive(Clone, Copy, Debug)]
pub struct CastOptions {
    /// The group.
    pub group: CastGroup,
    /// How fast content leaves.
    pub rate: CastRate,
    /// Receivers to wait for before the first symbol leaves.
    pub wait_for: u32,
}

/// How a stream is cast.
#[derive(Clone, Copy, Debug)]
pub struct LiveOptions {
    /// The group.
    pub group: CastGroup,
    /// Bytes of symbols that leave in a second at most, as a rate. A source that makes more waits.
    pub rate: Rate,
    /// The time after which a byte is given up that did not come, without that of the path; 20 ms
    /// to 60 s.
    pub latency: Duration,
    /// Receivers to wait for before the stream is read.
    pub wait_for: u32,
}

/// Sends an object, or a stream, to a group, on a thread of its own, until it is dropped.
pub struct Caster {
    /// None of a stream.
    object: Option<(Arc<Source>, Arc<HashTree>)>,
    thread: GroupThread,
}

impl Caster {
    /// Opens the file or folder at `path`, hashes it, and is ready to send it.
    ///
    /// # Errors
    /// If it cannot be read, or the group cannot be sent to.
    pub fn new(
        path: &Path,
        source_options: &SourceOptions,
        options: CastOptions,
    ) -> Result<Self, TransferError> {
        let object = CastObject::open(path, source_options)?;
        let content = object.content;
        let cast = Invited::Object {
            head: content.head,
            head_size: object.head.len() as u64,
            body_size: content.body_size,
            block_size: content.block_size,
            symbol_size: content.shape.symbol_size(),
        };
        let CastOptions { group, rate, wait_for } = options;
        let feed = ObjectFeed::new(&object, rate);
        let thread = GroupThread::start(group, cast, wait_for, |_| Ok(feed))?;
        let CastObject { source, tree, .. } = object;
        Ok(Self { object: Some((source, tree)), thread })
    }

    /// One that sends what `input` has, while it is made.
    ///
    /// # Errors
    /// If the latency cannot be, or the group cannot be sent to.
    pub fn of_stream(
        input: impl Read + Send + 'static,
        options: LiveOptions,
    ) -> Result<Self, TransferError> {
        let LiveOptions { group, rate, latency, wait_for } = options;
        if !LATENCIES.contains(&latency) {
            return Err(TransferError::Latency { latency: latency.into() });
        }
        let cast = Invited::Stream { latency: latency.as_millis() as u32 };
        let feed = |waker| LiveFeed::new(input, rate, latency, waker);
        Ok(Self { object: None, thread: GroupThread::start(group, cast, wait_for, feed)? })
    }

    /// The name of what is cast.
    pub fn name(&self) -> &str {
        self.object.as_ref().map_or(STREAM, |(source, _)| source.manifest().name())
    }

    /// How it goes.
    pub fn status(&self) -> CastStatus {
        self.thread.status()
    }

    /// The object and its hash tree; none of a stream.
    pub(in crate::transfer) const fn object(&self) -> Option<&(Arc<Source>, Arc<HashTree>)> {
        self.object.as_ref()
    }

    /// Its bytes; none of a stream.
    pub(in crate::transfer) fn bytes(&self) -> Option<u64> {
        self.object.as_ref().map(|(source, _)| source.size())
    }

    /// Takes a receiver in.
    pub(in crate::transfer) fn join(&self) -> Invitation {
        self.thread.join()
    }

    /// A receiver is gone, done or not.
    pub(in crate::transfer) fn leave(&self, member: u32) {
        self.thread.leave(member);
    }

    /// What is told of a receiver that has everything, and has been there since `begin`.
    pub(in crate::transfer) fn report(&self, begin: Instant) -> Report {
        let object = self.object.as_ref();
        let hash = object.map(|(_, tree)| tree.root().to_hex().to_string());
        Report {
            name: self.name().to_owned(),
            path: None::<PathBuf>,
            bytes: self.bytes().unwrap_or(0),
            resumed: 0,
            hash: hash.unwrap_or_default(),
            duration: moment::now() - begin,
            stats: DfcpStats::default(),
            sctp: None,
            left_out: object.map_or_else(LeftOut::default, |(source, _)| source.left_out().clone()),
        }
    }
}
