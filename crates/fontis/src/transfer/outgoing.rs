use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blake3::Hash;
use bytes::Bytes;
use fontis_base::Rate;
use fontis_codes::Code;
use fontis_proto::dfcp::{
    CloseReason, DfcpStats, Held, NO_ROOM, ObjectShape, SYMBOL_SIZE, SendOptions,
};
use tokio::sync::mpsc;

use super::message::{Offer, Opening, Tell, label};
use super::{PROGRESS_EVERY, TransferError, on_own_thread, telling};
use crate::connection::{Connection, SendProgress};
use crate::endpoint::{CODE_REFUSED_KEY, ConnectError};
use crate::hash_tree::chaining_value;
use crate::hash_tree::{HashTree, HashTreeBuilder, block_size_for};
use crate::identity::PublicKey;
use crate::moment;
use crate::source::{Source, SourceError};
use crate::task;

/// The code of an object whose source changed or could not be read.
pub(super) const CODE_UNREADABLE: u32 = 1;
/// The code of an object that the receiving side does not want or cannot store.
pub(super) const CODE_UNWANTED: u32 = 2;
/// The code of an object whose receiving side has taken nothing for long.
pub(super) const CODE_STALLED: u32 = 3;
/// The code of a connection that a client closes because it has verified and stored what it asked
/// for. The last acknowledgement may be lost; a close is repeated until it is answered.
pub(super) const CODE_COMPLETE: u32 = 3;

/// The size below which an object is hashed before it is sent: hashing takes a few milliseconds,
/// and the client has the whole object's hash at once.
const HASHED_FIRST: u64 = 4 << 20;

/// A block, and its chaining value if it was unknown.
type Block = (Bytes, Option<[u8; 32]>);

/// An object to be sent: its source and its hash tree.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) source: Arc<Source>,
    pub(super) tree: Tree,
}

/// The peer's checks of an object.
#[derive(Clone)]
pub(super) enum Tree {
    Known(Arc<HashTree>),
    /// Hashed while it is sent; the object has this name meanwhile.
    Unknown(Hash),
}

impl Tree {
    /// The description of a source of unknown hash: it is not hashed before its first byte leaves,
    /// unless it is small or may still change undetected.
    pub(super) fn unknown(source: &Source) -> Option<Self> {
        source.state().filter(|_| source.size() > HASHED_FIRST).map(Self::Unknown)
    }

    /// Hashes all of a source.
    pub(super) fn of(source: &Source) -> Result<Self, SourceError> {
        Ok(Self::Known(Arc::new(source.hash_tree(|_| {})?)))
    }
}

/// The result of `work`, unless it takes longer than `patience` while nothing pauses the
/// connection.
async fn within<T>(
    patience: Option<Duration>,
    connection: &Connection,
    work: impl Future<Output = T>,
) -> Option<T> {
    let Some(patience) = patience else { return Some(work.await) };
    let mut work = pin!(work);
    loop {
        match task::timeout(patience, &mut work).await {
            Ok(done) => return Some(done),
            Err(_) if connection.sending_limit().await == Some(Rate::ZERO) => {}
            Err(_) => return None,
        }
    }
}

impl Outgoing {
    /// The offer of an object with a known tree.
    pub(super) fn offer(&self, tree: &HashTree) -> Result<Offer, TransferError> {
        Ok(Offer {
            root: *tree.root().as_bytes(),
            size: tree.size(),
            block_size: tree.block_size(),
            manifest: self.source.manifest().encode_shared()?,
            tree: tree.to_bytes(),
            state: self.source.state().map(Into::into),
        })
    }

    /// The state of an object that is hashed while it is sent.
    pub(super) fn opening(&self, state: Hash) -> Result<Opening, TransferError> {
        let size = self.source.size();
        Ok(Opening {
            state: state.into(),
            size,
            block_size: block_size_for(size),
            manifest: self.source.manifest().encode_shared()?,
        })
    }

    /// The partition, which a known tree has chosen.
    fn shape(&self) -> ObjectShape {
        let size = self.source.size();
        let block_size = match &self.tree {
            Tree::Known(tree) => tree.block_size(),
            Tree::Unknown(_) => block_size_for(size),
        };
        shape(size, block_size)
    }

    /// Bytes of the blocks that the peer holds.
    pub(super) fn held_bytes(&self, held: &Held) -> u64 {
        let ObjectShape { size, block_size, .. } = self.shape();
        let block = u64::from(block_size);
        let offset = |index: u32| (u64::from(index) * block).min(size);
        held.done().iter().map(|run| offset(run.end) - offset(run.start)).sum()
    }

    /// Sends the content and returns its hash tree when the peer has verified all of it. `tell`
    /// sends the chaining values of an unknown tree; `moved` is called periodically with the read
    /// bytes, and at the last block.
    pub(super) async fn send(
        &self,
        connection: &Connection,
        id: u32,
        held: Held,
        tell: Tell,
        patience: Option<Duration>,
        moved: impl FnMut(u64, DfcpStats),
    ) -> Result<Arc<HashTree>, TransferError> {
        let (progress, told) = mpsc::unbounded_channel();
        let permit = connection.reader();
        let own_thread = permit.is_some();
        let sending = self.clone().send_all(
            connection.clone(),
            (id, held, tell),
            patience,
            progress,
            own_thread,
        );
        let sending = async {
            if own_thread { on_own_thread("fontis-read", sending).await? } else { sending.await }
        };
        telling(sending, told, moved).await
    }

    async fn send_all(
        self,
        connection: Connection,
        (id, held, tell): (u32, Held, Tell),
        patience: Option<Duration>,
        moved: mpsc::UnboundedSender<(u64, DfcpStats)>,
        own_thread: bool,
    ) -> Result<Arc<HashTree>, TransferError> {
        let remote = connection.remote_addr();
        let mut done = self.held_bytes(&held);
        let mut told: Option<Instant> = None;
        let shape = self.shape();
        let mut hashed = match &self.tree {
            Tree::Known(_) => None,
            Tree::Unknown(_) => Some(
                HashTreeBuilder::new(shape.size, shape.block_size)
                    .map_err(|source| TransferError::Tree { remote, source })?,
            ),
        };
        let lost = || lost(&connection);
        let Some(mut object) =
            connection.send_object(shape, label(id), SendOptions::default(), held).await
        else {
            return Err(lost());
        };
        loop {
            let Some(next) = within(patience, &connection, object.next()).await else {
                object.abandon(CODE_STALLED);
                return Err(TransferError::Stalled { remote });
            };
            let Some(progress) = next else {
                let complete = CloseReason::Peer { code: CODE_COMPLETE, reason: String::new() };
                if connection.closed().await != complete {
                    return Err(lost());
                }
                return self.whole(hashed, remote);
            };
            match progress {
                SendProgress::Delivered => return self.whole(hashed, remote),
                SendProgress::Abandoned(NO_ROOM) => return Err(TransferError::NoRoom { remote }),
                SendProgress::Abandoned(_) => return Err(TransferError::Abandoned { remote }),
                SendProgress::Wanted(block) => match self.read(shape, block, own_thread).await {
                    Ok((data, value)) => {
                        if let (Some(hashed), Some(value)) = (&mut hashed, value) {
                            hashed.extend(u64::from(block), &value);
                            connection.send_message(tell(id, block, value.to_vec()), IN_TURN);
                        }
                        done += data.len() as u64;
                        object.supply(block, data);
                        // Asking takes the connection's thread from its packets.
                        if (done == shape.size
                            || told.is_none_or(|told| moment::now() - told >= PROGRESS_EVERY))
                            && let Some(stats) = connection.stats().await
                        {
                            told = Some(moment::now());
                            // Who does not want to know is no reason to stop.
                            let _ = moved.send((done, stats));
                        }
                    }
                    Err(error) => {
                        object.abandon(CODE_UNREADABLE);
                        return Err(error);
                    }
                },
            }
        }
    }

    /// The tree of an object that has been sent.
    fn whole(
        &self,
        hashed: Option<HashTreeBuilder>,
        remote: SocketAddr,
    ) -> Result<Arc<HashTree>, TransferError> {
        if let Tree::Known(tree) = &self.tree {
            return Ok(tree.clone());
        }
        let what = "it has all of an object that was not sent to its end";
        let tree = hashed.and_then(HashTreeBuilder::finish);
        tree.map(Arc::new).ok_or(TransferError::Protocol { remote, what })
    }

    /// Reads a block, here or on a thread for work that blocks.
    pub(super) async fn read(
        &self,
        shape: ObjectShape,
        block: u32,
        own_thread: bool,
    ) -> Result<Block, TransferError> {
        if own_thread {
            return self.read_here(shape, block);
        }
        let outgoing = self.clone();
        let read = task::blocking(move || outgoing.read_here(shape, block));
        read.await.map_err(|_| TransferError::Worker)?
    }

    fn read_here(&self, shape: ObjectShape, block: u32) -> Result<Block, TransferError> {
        let (offset, mut buffer) = (u64::from(block) * u64::from(shape.block_size), Vec::new());
        self.source.read_block(offset, shape.block_len(block) as usize, &mut buffer)?;
        let Tree::Known(tree) = &self.tree else {
            let value = chaining_value(offset, &buffer);
            if offset + buffer.len() as u64 == self.source.size() {
                // Without this value nobody takes the object for whole: no two states of it are
                // ever mixed.
                self.source.check_untouched()?;
            }
            return Ok((buffer.into(), Some(value)));
        };
        if !self.source.is_at_rest() && !tree.verify_block(u64::from(block), &buffer) {
            let path = self.source.manifest().name().into();
            return Err(SourceError::Changed { path }.into());
        }
        Ok((buffer.into(), None))
    }
}

/// The sending of an opening and its values: before all else, and in order.
pub(super) const IN_TURN: SendOptions =
    SendOptions { priority: 0, ordered: true, deadline: None, sparing: false };

/// The partition of an object of `size` bytes.
pub(super) fn shape(size: u64, block_size: u32) -> ObjectShape {
    ObjectShape { size, block_size, symbol_size: SYMBOL_SIZE, code: Code::RaptorQ.id() }
}

/// Closes a connection, and waits until the peer has acknowledged it or time is up.
pub(super) async fn close(connection: &Connection, code: u32) {
    connection.close(code, "");
    connection.closed().await;
}

/// The peer's public key as text.
pub(super) fn key_text(connection: &Connection) -> String {
    PublicKey::new(connection.peer_key()).map_or_else(|_| "?".to_owned(), |key| key.to_string())
}

/// The error of an object that its sender gave up for the reason that it numbers so.
pub(super) const fn abandoned(remote: SocketAddr, code: u32) -> TransferError {
    match code {
        CODE_STALLED => TransferError::Untaken { remote },
        _ => TransferError::Abandoned { remote },
    }
}

/// The error of a connection that is over.
pub(super) fn lost(connection: &Connection) -> TransferError {
    let remote = connection.remote_addr();
    match connection.close_reason().unwrap_or(CloseReason::Local) {
        CloseReason::Peer { code: CODE_REFUSED_KEY, .. } => ConnectError::RefusedKey(remote).into(),
        reason => TransferError::Lost { remote, reason },
    }
}

#[cfg(test)]
mod tests {
    use crate::dest::Dest;
    use crate::endpoint::{Accept, Endpoint, EndpointConfig};
    use crate::identity::Identity;
    use crate::sink::SinkOptions;
    use crate::transfer::{FileServer, get};

    fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
        let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
        Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
    }

    #[tokio::test]
    async fn what_has_no_thread_of_its_own_is_sent_all_the_same() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let identity = Identity::generate();
        let server = endpoint(&identity, Accept::Anyone);
        let address = server.local_addr();
        let everyone: Vec<_> = std::iter::from_fn(|| server.reader()).collect();
        let files = FileServer::new(server, from.path(), None).unwrap();
        tokio::spawn(files.run(|_| {}));
        // One that is hashed before it is sent, and one that is hashed meanwhile.
        for length in [100_000, 5_000_000] {
            let content: Vec<u8> = (0..length).map(|i| (i * 31 + i / 251) as u8).collect();
            std::fs::write(from.path().join("file"), &content).unwrap();
            let client = endpoint(&Identity::generate(), Accept::None);
            let url = format!("fontis://{address}/file?key={}", identity.public());
            let dest = Dest::new(to.path().join(length.to_string()));
            let options = SinkOptions::default();
            let report = get(&client, address, &url.parse().unwrap(), &dest, options, |_| {}).await;
            assert_eq!(report.unwrap().hash, blake3::hash(&content).to_hex().to_string());
        }
        assert!(!everyone.is_empty());
    }
}
