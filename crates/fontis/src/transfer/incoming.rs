use std::collections::{BTreeMap, BTreeSet};
use std::io::{Stdout, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;

use blake3::Hash;
use bytes::Bytes;
use fontis_proto::dfcp::{Checkpoint, DfcpStats, Kept, ObjectShape};
use fontis_proto::sctp::SctpStats;
use tokio::sync::mpsc;

use super::coming::Coming;
use super::message::{Announced, Offer, Opening, Response, decode};
use super::outgoing::{abandoned, key_text, shape};
use super::{PROGRESS_EVERY, TransferError, on_own_thread, telling};
use crate::connection::{Connection, Received};
use crate::dest::Dest;
use crate::hash_tree::{BlockCheck, HashTree, HashTreeBuilder};
use crate::left_out::LeftOut;
use crate::manifest::Manifest;
use crate::moment;
use crate::sink::{Sink, SinkError, SinkOptions};
use crate::stream_sink::StreamSink;

/// The description of an offered object.
pub(super) struct Prepared {
    pub(super) incoming: Incoming,
    pub(super) manifest: Manifest,
    /// The part that is there.
    pub(super) kept: Kept,
}

impl Prepared {
    /// Its parts, for a destination of files and an object whose hash is known.
    pub(super) fn into_parts(
        self,
    ) -> Result<Option<(Sink, HashTree, Manifest, Kept)>, TransferError> {
        match (self.incoming.tree, self.incoming.store) {
            (Tree::Known(tree), Store::Files(sink)) => {
                Ok(Some((*sink, tree, self.manifest, self.kept)))
            }
            _ => Ok(None),
        }
    }
}

/// An object to receive: its manifest, its checks and its destination.
pub(super) struct Incoming {
    tree: Tree,
    store: Store,
}

/// A complete object.
pub(super) struct Stored {
    /// The path of a file or folder.
    pub(super) path: Option<PathBuf>,
    /// The hash of its content.
    pub(super) hash: String,
    /// The counters of the connection.
    pub(super) stats: DfcpStats,
    /// Those of SCTP, if it carried the content.
    pub(super) sctp: Option<SctpStats>,
    /// The entries that are not there.
    pub(super) left_out: LeftOut,
}

/// The checks of blocks.
enum Tree {
    Known(HashTree),
    /// It arrives with the blocks, some of which arrive before their checks.
    Growing(HashTreeBuilder, BTreeMap<u32, Bytes>),
}

/// The number of a block, and the chaining values of it and of those behind it.
pub(super) type ValuesFrom = (u32, Vec<u8>);

/// The source of a growing tree's values.
pub(super) enum Values {
    /// From the peer, which sends nothing but answers to a request.
    Told,
    /// From the task that reads from the peer.
    Handed(mpsc::Receiver<ValuesFrom>),
}

impl Values {
    /// The next ones for request `id`; `None` if no more can come.
    async fn next(
        &mut self,
        connection: &Connection,
        id: u32,
    ) -> Result<Option<ValuesFrom>, &'static str> {
        match self {
            Self::Handed(values) => Ok(values.recv().await),
            Self::Told => {
                while let Some(message) = connection.recv_message().await {
                    match decode::<Response>(&message.data) {
                        Some(Response::Values { id: of, first, values }) if of == id => {
                            return Ok(Some((first, values)));
                        }
                        Some(_) => {}
                        None => return Err("an unreadable message"),
                    }
                }
                Ok(None)
            }
        }
    }
}

/// The next step.
enum Next {
    Store(u32, Bytes, BlockCheck),
    Keep(Checkpoint),
}

enum Store {
    Files(Box<Sink>),
    /// Standard output takes blocks in order; those that come early wait here, within the window.
    Stream(Box<Stream>),
}

struct Stream {
    sink: StreamSink<Stdout>,
    waiting: BTreeMap<u32, Bytes>,
    next: u32,
}

impl Incoming {
    /// Checks the peer's offer, prepares the destination and finds the held part. `name` replaces
    /// the name in the offer.
    pub(super) fn prepare(
        remote: SocketAddr,
        announced: &Announced,
        name: Option<&str>,
        dest: &Dest,
        options: SinkOptions,
    ) -> Result<Prepared, TransferError> {
        let manifest = |source| TransferError::Manifest { remote, source };
        let unverifiable = |source| TransferError::Tree { remote, source };
        let size = match announced {
            Announced::Offer(offer) => offer.size,
            Announced::Opening(opening) => opening.size,
        };
        let mut decoded = Manifest::decode_shared(announced.manifest()).map_err(manifest)?;
        if let Some(name) = name {
            decoded = decoded.with_name(name).map_err(manifest)?;
        }
        if decoded.size() != size {
            return Err(TransferError::Protocol {
                remote,
                what: "the manifest and the object differ in size",
            });
        }
        // What the content is called in the journal: an opening's is what the same state's offer
        // says besides the root.
        let (tree, content) = match announced {
            Announced::Offer(Offer { root, block_size, tree, state, .. }) => {
                let tree = HashTree::from_bytes((*root).into(), size, *block_size, tree);
                let content = std::iter::once(*root).chain(*state).map(Hash::from);
                (Tree::Known(tree.map_err(unverifiable)?), content.collect())
            }
            Announced::Opening(Opening { block_size, state, .. }) => {
                let tree = HashTreeBuilder::new(size, *block_size);
                let tree = Tree::Growing(tree.map_err(unverifiable)?, BTreeMap::new());
                (tree, vec![Hash::from(*state)])
            }
        };
        let (store, kept) = match dest {
            Dest::Stdout => {
                let sink = StreamSink::new(stdout(), &decoded)?;
                let stream = Stream { sink, waiting: BTreeMap::new(), next: 0 };
                (Store::Stream(Box::new(stream)), Kept::default())
            }
            Dest::Path(_) => {
                let sink = Sink::create(dest, decoded.clone(), &content, options)?;
                let kept = match &tree {
                    Tree::Known(tree) => sink.resume(tree, |_| {})?,
                    Tree::Growing(..) => Kept::default(),
                };
                (Store::Files(Box::new(sink)), kept)
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

    /// Bytes of blocks that need not come, which count as being there.
    pub(super) fn spared(&self) -> u64 {
        match &self.store {
            Store::Files(sink) => sink.spared(),
            Store::Stream(_) => 0,
        }
    }

    /// The partition that the object will have.
    pub(super) fn shape(&self) -> ObjectShape {
        let (size, block_size) = match &self.tree {
            Tree::Known(tree) => (tree.size(), tree.block_size()),
            Tree::Growing(tree, _) => (tree.size(), tree.block_size()),
        };
        shape(size, block_size)
    }

    /// Returns true if an object of this shape is the offered one.
    pub(super) fn fits(&self, shape: ObjectShape) -> bool {
        let own = self.shape();
        shape.size == own.size && shape.block_size == own.block_size
    }

    /// Receives, checks and stores every block, then gives the object its name. `id` is that of the
    /// request; `moved` is called periodically with the number of stored bytes.
    pub(super) async fn receive(
        self,
        connection: &Connection,
        id: u32,
        object: Coming,
        values: Values,
        moved: impl FnMut(u64, DfcpStats),
    ) -> Result<Stored, TransferError> {
        let (tell, told) = mpsc::unbounded_channel();
        let storing = self.store_all(connection.clone(), id, object, values, tell);
        // With a thread that only stores, a block waits for one thread to wake up instead of three.
        let storing = async { on_own_thread("fontis-store", storing).await? };
        telling(storing, told, moved).await
    }

    async fn store_all(
        self,
        connection: Connection,
        id: u32,
        mut object: Coming,
        values: Values,
        moved: mpsc::UnboundedSender<(u64, DfcpStats)>,
    ) -> Result<Stored, TransferError> {
        let stored = self.store_each(connection, id, &mut object, values, moved).await;
        if stored.is_err() {
            // Its sender waits for the end of the object.
            object.abandon();
        }
        stored
    }

    async fn store_each(
        mut self,
        connection: Connection,
        id: u32,
        object: &mut Coming,
        mut values: Values,
        moved: mpsc::UnboundedSender<(u64, DfcpStats)>,
    ) -> Result<Stored, TransferError> {
        let remote = connection.remote_addr();
        let shape = object.shape();
        let mut done = self.stored();
        let mut told = moment::now();
        let mut stats = connection.stats().await.unwrap_or_default();
        let mut rejected = BTreeSet::new();
        while done < shape.size {
            let (block, data, check) = match self.next(&connection, id, object, &mut values).await?
            {
                Next::Store(block, data, check) => (block, data, check),
                Next::Keep(part) => {
                    if let Store::Files(sink) = &self.store {
                        sink.checkpoint(shape.block_size, &part)?;
                    }
                    continue;
                }
            };
            let length = data.len() as u64;
            let due = moment::now() - told >= PROGRESS_EVERY || done + length == shape.size;
            if due {
                // Counted before the block is released: releasing the last ends the peer's
                // interest.
                stats = connection.stats().await.unwrap_or(stats);
            }
            match self.store(shape, block, data, &check) {
                Ok(true) => object.release(block),
                // Symbols kept from before, or damage on the way into a file, are forgiven once.
                Ok(false) if rejected.insert(block) && object.reject(block) => continue,
                Ok(false) => {
                    let key = key_text(&connection);
                    return Err(TransferError::Poisoned { remote, key, block });
                }
                Err(error) => return Err(error.into()),
            }
            done += length;
            if due {
                told = moment::now();
                // Who does not want to know is no reason to stop.
                let _ = moved.send((done, stats));
            }
        }
        let root = match self.tree {
            Tree::Known(tree) => tree.root(),
            // Every block has been checked, so all of it is known.
            Tree::Growing(tree, _) => tree.finish().ok_or(TransferError::Worker)?.root(),
        };
        let (path, left_out) = finish(self.store)?;
        let sctp = object.sctp();
        Ok(Stored { path, hash: root.to_hex().to_string(), stats, sctp, left_out })
    }

    /// Waits for a block that can be checked, or part of one.
    async fn next(
        &mut self,
        connection: &Connection,
        id: u32,
        object: &mut Coming,
        values: &mut Values,
    ) -> Result<Next, TransferError> {
        let remote = connection.remote_addr();
        let wrong = |what| TransferError::Protocol { remote, what };
        loop {
            if let Tree::Growing(tree, early) = &mut self.tree
                && let Some(first) = early.first_entry()
                && let Some(check) = tree.check(u64::from(*first.key()))
            {
                let (block, data) = first.remove_entry();
                return Ok(Next::Store(block, data, check));
            }
            let received = match &mut self.tree {
                Tree::Known(_) => object.next(connection).await,
                // Values are few and come before their blocks.
                Tree::Growing(tree, _) => tokio::select! {
                    biased;
                    values = values.next(connection, id) => match values.map_err(wrong)? {
                        Some((first, values)) if tree.extend(u64::from(first), &values) => continue,
                        Some(_) => return Err(wrong("hashes of other blocks than the next ones")),
                        // The connection is over, which is no reason to forget what came before.
                        None => object.next(connection).await,
                    },
                    received = object.next(connection) => received,
                },
            };
            match (received?, &mut self.tree) {
                (Received::Abandoned(code), _) => return Err(abandoned(remote, code)),
                (Received::Checkpoint(part), _) => return Ok(Next::Keep(part)),
                (Received::Block(block, data), Tree::Growing(_, early)) => {
                    early.insert(block, data);
                }
                (Received::Block(block, data), Tree::Known(tree)) => {
                    let what = "a block beyond the object's end";
                    let check = tree.check(u64::from(block));
                    let check = check.ok_or(wrong(what))?;
                    return Ok(Next::Store(block, data, check));
                }
            }
        }
    }

    /// Checks and stores a block; returns false if it is wrong.
    fn store(
        &mut self,
        shape: ObjectShape,
        block: u32,
        data: Bytes,
        check: &BlockCheck,
    ) -> Result<bool, SinkError> {
        if !check.holds(&data) {
            return Ok(false);
        }
        match &mut self.store {
            Store::Files(sink) => {
                sink.write_block(u64::from(block) * u64::from(shape.block_size), &data)?;
            }
            Store::Stream(stream) => stream.write(shape, block, data)?,
        }
        Ok(true)
    }
}

/// Gives a complete object its name; returns where it is, if it is a file or folder, and what is
/// not there.
fn finish(store: Store) -> Result<(Option<PathBuf>, LeftOut), SinkError> {
    match store {
        Store::Files(sink) => sink.finish().map(|(path, left_out)| (Some(path), left_out)),
        Store::Stream(stream) => {
            stream.sink.finish()?;
            Ok((None, LeftOut::default()))
        }
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
