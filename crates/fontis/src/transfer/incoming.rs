use std::collections::{BTreeMap, BTreeSet};
use std::io::{Stdout, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use fontis_proto::dfcp::{Checkpoint, Kept, ObjectShape, Stats};

use super::message::Offer;
use super::outgoing::{CODE_UNWANTED, lost, shape};
use super::serve::key_text;
use super::{PROGRESS_EVERY, TransferError};
use crate::{
    Connection, Dest, HashTree, Manifest, Received, RecvObject, Sink, SinkError, SinkOptions,
    StreamSink,
};

/// What is known when an object has been offered.
pub(super) struct Prepared {
    pub(super) incoming: Incoming,
    pub(super) manifest: Manifest,
    /// What is there of it.
    pub(super) kept: Kept,
}

/// An object that is to be received: what it holds, what it is checked against, and where it goes.
pub(super) struct Incoming {
    tree: Arc<HashTree>,
    store: Store,
}

#[derive(Clone)]
enum Store {
    Files(Arc<Sink>),
    /// Standard output takes blocks in order; those that come early wait here, within the window.
    Stream(Arc<Mutex<Stream>>),
}

struct Stream {
    sink: StreamSink<Stdout>,
    waiting: BTreeMap<u32, Bytes>,
    next: u32,
}

impl Incoming {
    /// Checks what the peer offers, prepares its place and finds out what is there already. `name` is what it shall be
    /// called, if not as it says.
    pub(super) fn prepare(
        remote: SocketAddr,
        offer: &Offer,
        name: Option<&str>,
        dest: &Dest,
        options: SinkOptions,
    ) -> Result<Prepared, TransferError> {
        let manifest = |source| TransferError::Manifest { remote, source };
        let mut decoded = Manifest::decode(&offer.manifest).map_err(manifest)?;
        if let Some(name) = name {
            decoded = decoded.with_name(name).map_err(manifest)?;
        }
        if decoded.size() != offer.size {
            return Err(TransferError::Protocol {
                remote,
                what: "the manifest and the object differ in size",
            });
        }
        let tree =
            HashTree::from_bytes(offer.root.into(), offer.size, offer.block_size, &offer.tree)
                .map_err(|source| TransferError::Tree { remote, source })?;
        let (store, kept) = match dest {
            Dest::Stdout => {
                let sink = StreamSink::new(stdout(), &decoded)?;
                let stream = Stream { sink, waiting: BTreeMap::new(), next: 0 };
                (Store::Stream(Arc::new(Mutex::new(stream))), Kept::default())
            }
            Dest::Path(_) => {
                let sink = Sink::create(dest, decoded.clone(), tree.root(), options)?;
                let kept = sink.resume(&tree, |_| {})?;
                (Store::Files(Arc::new(sink)), kept)
            }
        };
        let incoming = Self { tree: Arc::new(tree), store };
        Ok(Prepared { incoming, manifest: decoded, kept })
    }

    /// Bytes that are there.
    pub(super) fn stored(&self) -> u64 {
        match &self.store {
            Store::Files(sink) => sink.written(),
            Store::Stream(_) => 0,
        }
    }

    /// The partition that the object will have.
    pub(super) fn shape(&self) -> ObjectShape {
        shape(&self.tree)
    }

    /// Whether an object of this shape is the one that was offered.
    pub(super) fn fits(&self, shape: ObjectShape) -> bool {
        shape.size == self.tree.size() && shape.block_size == self.tree.block_size()
    }

    /// The hash of the content.
    pub(super) fn hash(&self) -> String {
        self.tree.root().to_hex().to_string()
    }

    /// Receives, checks and stores every block, then gives the object its name. Returns where it is and what the
    /// connection had counted by then.
    pub(super) async fn receive(
        self,
        connection: &Connection,
        mut object: RecvObject,
        mut moved: impl FnMut(u64, Stats),
    ) -> Result<(Option<PathBuf>, Stats), TransferError> {
        let remote = connection.remote_addr();
        let shape = object.shape();
        let mut done = self.stored();
        let mut told = Instant::now();
        let mut stats = connection.stats().await.unwrap_or_default();
        let mut rejected = BTreeSet::new();
        while done < shape.size {
            match object.next().await.ok_or_else(|| lost(connection))? {
                Received::Abandoned(_) => return Err(TransferError::Abandoned { remote }),
                Received::Checkpoint(part) => self.checkpoint(shape, part).await?,
                Received::Block(block, data) => {
                    let length = data.len() as u64;
                    let due = told.elapsed() >= PROGRESS_EVERY || done + length == shape.size;
                    if due {
                        // Counted before the block is released: releasing the last ends the peer's interest.
                        stats = connection.stats().await.unwrap_or(stats);
                    }
                    match self.store(shape, block, data).await {
                        Ok(true) => object.release(block),
                        // Symbols kept from before, or damage on the way into a file, are forgiven once.
                        Ok(false) if rejected.insert(block) => {
                            object.reject(block);
                            continue;
                        }
                        Ok(false) => {
                            object.abandon(CODE_UNWANTED);
                            let key = key_text(connection);
                            return Err(TransferError::Poisoned { remote, key, block });
                        }
                        Err(error) => {
                            object.abandon(CODE_UNWANTED);
                            return Err(error);
                        }
                    }
                    done += length;
                    if due {
                        told = Instant::now();
                        moved(done, stats);
                    }
                }
            }
        }
        Ok((self.finish().await?, stats))
    }

    /// Checks and stores a block; false if it is not what it should be.
    async fn store(
        &self,
        shape: ObjectShape,
        block: u32,
        data: Bytes,
    ) -> Result<bool, TransferError> {
        let (tree, store) = (self.tree.clone(), self.store.clone());
        let work = move || {
            if !tree.verify_block(u64::from(block), &data) {
                return Ok(false);
            }
            match store {
                Store::Files(sink) => {
                    sink.write_block(u64::from(block) * u64::from(shape.block_size), &data)?;
                }
                Store::Stream(stream) => {
                    stream
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .write(shape, block, data)?;
                }
            }
            Ok::<_, SinkError>(true)
        };
        Ok(tokio::task::spawn_blocking(work).await.map_err(|_| TransferError::Worker)??)
    }

    /// Stores part of a block.
    async fn checkpoint(&self, shape: ObjectShape, part: Checkpoint) -> Result<(), TransferError> {
        let Store::Files(sink) = &self.store else { return Ok(()) };
        let sink = sink.clone();
        let work = move || sink.checkpoint(shape.block_size, &part);
        Ok(tokio::task::spawn_blocking(work).await.map_err(|_| TransferError::Worker)??)
    }

    async fn finish(self) -> Result<Option<PathBuf>, TransferError> {
        let finish = move || match self.store {
            Store::Files(sink) => {
                let sink = Arc::into_inner(sink).ok_or(TransferError::Worker)?;
                Ok(Some(sink.finish()?))
            }
            Store::Stream(stream) => {
                let stream = Arc::into_inner(stream).and_then(|stream| stream.into_inner().ok());
                stream.ok_or(TransferError::Worker)?.sink.finish()?;
                Ok(None)
            }
        };
        tokio::task::spawn_blocking(finish).await.map_err(|_| TransferError::Worker)?
    }
}

impl Stream {
    /// Writes a block when its turn has come.
    fn write(&mut self, shape: ObjectShape, block: u32, data: Bytes) -> Result<(), SinkError> {
        self.waiting.insert(block, data);
        while let Some(data) = self.waiting.remove(&self.next) {
            self.sink.write_block(u64::from(self.next) * u64::from(shape.block_size), &data)?;
            self.next += 1;
        }
        Ok(())
    }
}
