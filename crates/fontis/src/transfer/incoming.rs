use std::collections::{BTreeMap, BTreeSet};
use std::io::{Stdout, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use blake3::Hash;
use bytes::Bytes;
use fontis_proto::dfcp::{Checkpoint, Kept, ObjectShape, Stats};

use super::message::{Answer, Offer, Opening, Response, decode};
use super::outgoing::{CODE_UNWANTED, lost, shape};
use super::serve::key_text;
use super::{PROGRESS_EVERY, TransferError};
use crate::{
    BlockCheck, Connection, Dest, HashTree, HashTreeBuilder, Manifest, Received, RecvObject, Sink,
    SinkError, SinkOptions, StreamSink,
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
    tree: Tree,
    store: Store,
}

/// What blocks are checked against.
enum Tree {
    Known(HashTree),
    /// It comes with the blocks.
    Growing(HashTreeBuilder),
}

impl Tree {
    /// How a block is checked; `None` as long as that is not known.
    fn check(&self, block: u32) -> Option<BlockCheck> {
        match self {
            Self::Known(tree) => tree.check(u64::from(block)),
            Self::Growing(tree) => tree.check(u64::from(block)),
        }
    }
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
        answer: &Answer,
        name: Option<&str>,
        dest: &Dest,
        options: SinkOptions,
    ) -> Result<Prepared, TransferError> {
        let manifest = |source| TransferError::Manifest { remote, source };
        let unverifiable = |source| TransferError::Tree { remote, source };
        let (encoded, size) = match answer {
            Answer::Offer(offer) => (&offer.manifest, offer.size),
            Answer::Opening(opening) => (&opening.manifest, opening.size),
        };
        let mut decoded = Manifest::decode(encoded).map_err(manifest)?;
        if let Some(name) = name {
            decoded = decoded.with_name(name).map_err(manifest)?;
        }
        if decoded.size() != size {
            return Err(TransferError::Protocol {
                remote,
                what: "the manifest and the object differ in size",
            });
        }
        // What the content is called in the journal: an opening's is what the same state's offer says besides the root.
        let (tree, content) = match answer {
            Answer::Offer(Offer { root, block_size, tree, state, .. }) => {
                let tree = HashTree::from_bytes((*root).into(), size, *block_size, tree);
                let content = std::iter::once(*root).chain(*state).map(Hash::from);
                (Tree::Known(tree.map_err(unverifiable)?), content.collect())
            }
            Answer::Opening(Opening { block_size, state, .. }) => {
                let tree = HashTreeBuilder::new(size, *block_size);
                (Tree::Growing(tree.map_err(unverifiable)?), vec![Hash::from(*state)])
            }
        };
        let (store, kept) = match dest {
            Dest::Stdout => {
                let sink = StreamSink::new(stdout(), &decoded)?;
                let stream = Stream { sink, waiting: BTreeMap::new(), next: 0 };
                (Store::Stream(Arc::new(Mutex::new(stream))), Kept::default())
            }
            Dest::Path(_) => {
                let sink = Sink::create(dest, decoded.clone(), &content, options)?;
                let kept = match &tree {
                    Tree::Known(tree) => sink.resume(tree, |_| {})?,
                    Tree::Growing(_) => Kept::default(),
                };
                (Store::Files(Arc::new(sink)), kept)
            }
        };
        Ok(Prepared { incoming: Self { tree, store }, manifest: decoded, kept })
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
        let (size, block_size) = match &self.tree {
            Tree::Known(tree) => (tree.size(), tree.block_size()),
            Tree::Growing(tree) => (tree.size(), tree.block_size()),
        };
        shape(size, block_size)
    }

    /// Whether an object of this shape is the one that was offered.
    pub(super) fn fits(&self, shape: ObjectShape) -> bool {
        let own = self.shape();
        shape.size == own.size && shape.block_size == own.block_size
    }

    /// Receives, checks and stores every block, then gives the object its name. Returns where it is, its hash, and what
    /// the connection had counted by then. `id` is that of the request.
    pub(super) async fn receive(
        mut self,
        connection: &Connection,
        id: u32,
        mut object: RecvObject,
        mut moved: impl FnMut(u64, Stats),
    ) -> Result<(Option<PathBuf>, String, Stats), TransferError> {
        let remote = connection.remote_addr();
        let shape = object.shape();
        let mut done = self.stored();
        let mut told = Instant::now();
        let mut stats = connection.stats().await.unwrap_or_default();
        let mut rejected = BTreeSet::new();
        // Blocks that came before what they are checked against.
        let mut early = BTreeMap::new();
        while done < shape.size {
            let checked = early.first_key_value().and_then(|(block, _)| self.tree.check(*block));
            let (block, data, check) =
                match checked.and_then(|check| Some((early.pop_first()?, check))) {
                    Some(((block, data), check)) => (block, data, check),
                    None => match self.next(connection, id, &mut object).await? {
                        None => continue,
                        Some(Received::Abandoned(_)) => {
                            return Err(TransferError::Abandoned { remote });
                        }
                        Some(Received::Checkpoint(part)) => {
                            self.checkpoint(shape, part).await?;
                            continue;
                        }
                        Some(Received::Block(block, data)) => match self.tree.check(block) {
                            Some(check) => (block, data, check),
                            None => {
                                early.insert(block, data);
                                continue;
                            }
                        },
                    },
                };
            let length = data.len() as u64;
            let due = told.elapsed() >= PROGRESS_EVERY || done + length == shape.size;
            if due {
                // Counted before the block is released: releasing the last ends the peer's interest.
                stats = connection.stats().await.unwrap_or(stats);
            }
            match self.store(shape, block, data, check).await {
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
        let root = match self.tree {
            Tree::Known(tree) => tree.root(),
            // Every block has been checked, so all of it is known.
            Tree::Growing(tree) => tree.finish().ok_or(TransferError::Worker)?.root(),
        };
        let path = finish(self.store).await?;
        Ok((path, root.to_hex().to_string(), stats))
    }

    /// What comes next of the object; `None` when what came is something to check it against.
    async fn next(
        &mut self,
        connection: &Connection,
        id: u32,
        object: &mut RecvObject,
    ) -> Result<Option<Received>, TransferError> {
        let lost = || lost(connection);
        let Tree::Growing(tree) = &mut self.tree else {
            return Ok(Some(object.next().await.ok_or_else(lost)?));
        };
        let message = tokio::select! {
            received = object.next() => return Ok(Some(received.ok_or_else(lost)?)),
            message = connection.recv_message() => message,
        };
        let Some(message) = message else {
            // The connection is over, which is no reason to forget what came before.
            return Ok(Some(object.next().await.ok_or_else(lost)?));
        };
        let remote = connection.remote_addr();
        match decode::<Response>(&message.data) {
            Some(Response::Values { id: of, first, values }) if of == id => {
                let what = "hashes of other blocks than the next ones";
                tree.extend(u64::from(first), &values)
                    .then_some(None)
                    .ok_or(TransferError::Protocol { remote, what })
            }
            Some(_) => Ok(None),
            None => Err(TransferError::Protocol { remote, what: "an unreadable message" }),
        }
    }

    /// Checks and stores a block; false if it is not what it should be.
    async fn store(
        &self,
        shape: ObjectShape,
        block: u32,
        data: Bytes,
        check: BlockCheck,
    ) -> Result<bool, TransferError> {
        let store = self.store.clone();
        let work = move || {
            if !check.holds(&data) {
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
}

/// Gives a complete object its name; returns where it is, if it is a file or folder.
async fn finish(store: Store) -> Result<Option<PathBuf>, TransferError> {
    let finish = move || match store {
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
