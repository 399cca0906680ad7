//! One object from several servers at once.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blake3::Hash;
use fontis_proto::dfcp::{DfcpStats, Kept, ObjectShape, SendOptions};
use fontis_proto::sources::SourcePlan;
use tokio::sync::{OnceCell, mpsc, watch};

use super::get::{answered, has_hidden_name};
use super::incoming::Incoming;
use super::message::{Announced, Holding, Request, encode, label};
use super::outgoing::{CODE_COMPLETE, CODE_UNWANTED, abandoned, close, key_text, lost};
use super::{PROGRESS_EVERY, Progress, Report, TransferError, connect};
use crate::connection::{Connection, Received, RecvObject};
use crate::dest::Dest;
use crate::endpoint::{ConnectError, Endpoint};
use crate::hash_tree::HashTree;
use crate::manifest::Manifest;
use crate::moment;
use crate::sink::{Sink, SinkOptions};
use crate::task;
use crate::url::Url;

/// After so long without a block from anybody, those who were asked for the last ones are taken for
/// dead.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// A server of an object, and the endpoint to reach it from.
pub struct SourceServer {
    /// This side's endpoint.
    pub endpoint: Endpoint,
    /// The server's address.
    pub remote: SocketAddr,
    /// The object there.
    pub url: Url,
}

/// Fetches the object that all `servers` have, each block from one of them, into a file or folder.
/// Its name and entries are those of the server that answers first; another's content must have the
/// same hash.
///
/// A server that cannot be reached, has another content, ends the connection or sends a wrong block
/// is dropped, and the others send what it would have sent; so is one that does not answer within
/// `patience`, or sends nothing for so long when another was lost, which may be back in the next
/// attempt. The time of a server that is slow or dead is not waited for at the end.
///
/// # Errors
/// When no server is left: the first error [that may pass](TransferError::may_pass), or else the
/// first. Of what cannot be stored here: at once.
pub async fn get_from(
    servers: Vec<SourceServer>,
    dest: &Dest,
    options: SinkOptions,
    patience: Duration,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, TransferError> {
    let begin = moment::now();
    let count = servers.len();
    let (tell, mut told) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        dest: dest.clone(),
        options,
        patience,
        object: OnceCell::new(),
        alive: Mutex::new(count),
        is_lost: AtomicBool::new(false),
        changed: watch::Sender::new(()),
        stats: Mutex::new(vec![DfcpStats::default(); count]),
        tell,
    });
    let mut workers = task::Tasks::new();
    for (number, server) in servers.into_iter().enumerate() {
        workers.spawn(Shared::work(shared.clone(), number, server));
    }
    let mut complete = shared.changed.subscribe();
    let mut first = None;
    loop {
        tokio::select! {
            biased;
            Some(event) = told.recv() => progress(event),
            ended = workers.join_next() => match ended {
                // What this side cannot store no other server can help with.
                Some(Ok(Err((_, error @ (TransferError::Sink(_) | TransferError::Worker))))) => {
                    workers.shutdown().await;
                    return Err(error);
                }
                Some(Ok(Err((remote, error)))) => {
                    if !workers.is_empty() {
                        let error = error.to_string();
                        progress(Progress::Dropped { remote, error });
                    }
                    // Who was lost may have what another refuses.
                    let is_better = |first: &TransferError| !first.may_pass() && error.may_pass();
                    if first.as_ref().is_none_or(is_better) {
                        first = Some(error);
                    }
                }
                Some(_) => {}
                None => break,
            },
            _ = complete.changed() => {
                if shared.object.get().is_some_and(Object::is_stored) {
                    break;
                }
            }
        }
    }
    // Who has said goodbye has had time to; who is dead is not waited for.
    workers.shutdown().await;
    while let Ok(event) = told.try_recv() {
        progress(event);
    }
    let stats = shared.all_stats();
    let shared = Arc::into_inner(shared).ok_or(TransferError::Worker)?;
    let Some(object) = shared.object.into_inner().filter(Object::is_stored) else {
        return Err(first.unwrap_or(TransferError::Worker));
    };
    let Object { sink, manifest, root, bytes, resumed, .. } = object;
    let sink = Arc::into_inner(sink).ok_or(TransferError::Worker)?;
    let (path, left_out) = sink.finish()?;
    Ok(Report {
        name: manifest.name().to_owned(),
        path: Some(path),
        bytes,
        resumed,
        hash: root.to_hex().to_string(),
        duration: moment::now() - begin,
        stats,
        sctp: None,
        left_out,
    })
}

/// What the workers share.
struct Shared {
    dest: Dest,
    options: SinkOptions,
    /// The time for a server to answer.
    patience: Duration,
    /// Known when the first server has answered.
    object: OnceCell<Object>,
    /// Workers that go on.
    alive: Mutex<usize>,
    /// Whether the connection to a server has been lost.
    is_lost: AtomicBool,
    /// Something has changed that idle workers should look at.
    changed: watch::Sender<()>,
    stats: Mutex<Vec<DfcpStats>>,
    tell: mpsc::UnboundedSender<Progress>,
}

/// The object, and what of it is there.
struct Object {
    sink: Arc<Sink>,
    tree: HashTree,
    manifest: Manifest,
    shape: ObjectShape,
    root: Hash,
    /// Bytes in the blocks that are wanted, and of those that were there before.
    bytes: u64,
    resumed: u64,
    plan: Mutex<SourcePlan>,
    /// Bytes that are stored, and when that was last told.
    told: Mutex<(u64, Instant)>,
}

impl Object {
    fn plan(&self) -> MutexGuard<'_, SourcePlan> {
        lock(&self.plan)
    }

    /// Whether every block has come. The last may still be on its way to the disk.
    fn is_complete(&self) -> bool {
        self.plan().is_complete()
    }

    /// Whether every block is on the disk.
    fn is_stored(&self) -> bool {
        lock(&self.told).0 == self.bytes
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn all_stats(&self) -> DfcpStats {
        lock(&self.stats).iter().fold(DfcpStats::default(), |sum, stats| sum.with(stats))
    }

    /// Fetches from a server until everything is there.
    async fn work(
        shared: Arc<Self>,
        number: usize,
        server: SourceServer,
    ) -> Result<(), (SocketAddr, TransferError)> {
        let remote = server.remote;
        let worked = shared.fetch(number, &server).await;
        *lock(&shared.alive) -= 1;
        if matches!(worked, Err(TransferError::Lost { .. })) {
            shared.is_lost.store(true, Ordering::Relaxed);
        }
        if let Some(object) = shared.object.get() {
            object.plan().give_back(number);
        }
        shared.changed.send_replace(());
        worked.map_err(|error| (remote, error))
    }

    async fn fetch(&self, number: usize, server: &SourceServer) -> Result<(), TransferError> {
        let SourceServer { endpoint, remote, url } = server;
        let tell = |event| _ = self.tell.send(event);
        let connection = connect(endpoint, *remote, *url.key.as_bytes(), None, &tell);
        let connection = task::timeout(self.patience, connection).await;
        let connection = connection.map_err(|_| ConnectError::NoAnswer(*remote))??;
        connection.transfers_only(None);
        connection.skip_checkpoints();
        tell(Progress::Connected { remote: *remote });
        tokio::select! {
            biased;
            fetched = self.fetch_over(number, &connection, url) => fetched,
            () = self.is_idle(number, &connection) => Err(TransferError::Idle { remote: *remote }),
        }
    }

    async fn fetch_over(
        &self,
        number: usize,
        connection: &Connection,
        url: &Url,
    ) -> Result<(), TransferError> {
        let mut id = 0;
        let mut announced = Some(ask(connection, id, url).await?);
        let object = self.object(connection, url, announced.as_ref()).await?;
        let mut changed = self.changed.subscribe();
        let mut is_stuck = false;
        loop {
            changed.borrow_and_update();
            if object.is_complete() {
                break;
            }
            let alive = *lock(&self.alive);
            let Some(blocks) = object.plan().take(number, alive, is_stuck) else {
                // The slowest may stop yet, or be dead.
                is_stuck = task::timeout(STUCK_AFTER, changed.changed()).await.is_err();
                continue;
            };
            is_stuck = false;
            let answer = match announced.take() {
                Some(answer) => answer,
                None => ask(connection, id, url).await?,
            };
            check(connection, &answer, object)?;
            let mut done = Vec::new();
            let mut next = 0;
            for block in blocks {
                done.push(next..block);
                next = block + 1;
            }
            done.push(next..object.shape.blocks().unwrap_or(next));
            let kept = Kept { done, begun: Vec::new() };
            let holding = Holding::from(&kept.held(&object.shape));
            connection.expect_object(label(id), kept);
            connection
                .send_message(encode(&Request::Begin { id, holding }), SendOptions::default());
            let coming = connection.recv_object().await.ok_or_else(|| lost(connection))?;
            if coming.label() != &label(id) || coming.shape() != object.shape {
                return Err(other(connection));
            }
            self.receive(number, connection, object, coming).await?;
            self.count(number, connection).await;
            id += 1;
        }
        close(connection, CODE_COMPLETE).await;
        Ok(())
    }

    /// Waits until nothing has come from anybody for long, and a server is lost that may be back in
    /// another attempt. Without that there is no reason not to wait: a server may be hashing.
    async fn is_idle(&self, number: usize, connection: &Connection) {
        let mut before = None;
        loop {
            task::sleep(self.patience).await;
            self.count(number, connection).await;
            let is_lost = self.is_lost.load(Ordering::Relaxed);
            let now = is_lost.then(|| self.all_stats().data_packets_received);
            if now.is_some() && now == before {
                return;
            }
            before = now;
        }
    }

    /// The object as the first server describes it.
    async fn object(
        &self,
        connection: &Connection,
        url: &Url,
        announced: Option<&Announced>,
    ) -> Result<&Object, TransferError> {
        let remote = connection.remote_addr();
        let prepare = || async {
            let Some(announced) = announced.cloned() else { return Err(other(connection)) };
            if url.name().is_none() && has_hidden_name(&announced) {
                let what = "a hidden name that nobody asked for";
                return Err(TransferError::Protocol { remote, what });
            }
            let (name, dest) = (url.name().map(str::to_owned), self.dest.clone());
            let options = self.options.clone();
            let prepare = move || {
                let name = name.as_deref();
                Incoming::prepare(remote, &announced, name, &dest, options)?.into_parts()
            };
            let prepared = task::blocking(prepare).await;
            let parts = prepared.map_err(|_| TransferError::Worker)??;
            let Some((sink, tree, manifest, kept)) = parts else { return Err(other(connection)) };
            let shape = super::outgoing::shape(tree.size(), tree.block_size());
            let held = kept.held(&shape);
            let is_there = |block: &u32| held.done().iter().any(|run| run.contains(block));
            let lacking = (0..shape.blocks().unwrap_or(0)).filter(|block| !is_there(block));
            let (root, spared) = (tree.root(), sink.spared());
            let (bytes, resumed) = (shape.size - spared, sink.written() - spared);
            let _ = self.tell.send(Progress::Started {
                name: manifest.name().to_owned(),
                bytes,
                entries: manifest.entries().len(),
                resumed,
            });
            Ok(Object {
                plan: Mutex::new(SourcePlan::new(lacking)),
                told: Mutex::new((resumed, moment::now())),
                sink: Arc::new(sink),
                tree,
                manifest,
                shape,
                root,
                bytes,
                resumed,
            })
        };
        self.object.get_or_try_init(prepare).await
    }

    /// Receives, checks and stores the blocks that this server was asked for, until nothing of them
    /// is lacking.
    async fn receive(
        &self,
        number: usize,
        connection: &Connection,
        object: &Object,
        mut coming: RecvObject,
    ) -> Result<(), TransferError> {
        let remote = connection.remote_addr();
        let mut changed = self.changed.subscribe();
        let mut rejected = BTreeSet::new();
        while object.plan().is_asked(number) {
            let received = tokio::select! {
                biased;
                received = coming.next() => received,
                // Others may have been sooner with the last blocks.
                _ = changed.changed() => continue,
            };
            let (block, data) = match received.ok_or_else(|| lost(connection))? {
                Received::Block(block, data) => (block, data),
                Received::Checkpoint(_) => continue,
                Received::Abandoned(code) => return Err(abandoned(remote, code)),
            };
            let what = "a block beyond the object's end";
            let wrong = TransferError::Protocol { remote, what };
            let check = object.tree.check(u64::from(block)).ok_or(wrong)?;
            let hashed = data.clone();
            let checked = task::blocking(move || check.holds(&hashed)).await;
            if !checked.map_err(|_| TransferError::Worker)? {
                // Damage on the way is forgiven once.
                if rejected.insert(block) {
                    coming.reject(block);
                    continue;
                }
                // All of the block is this server's.
                coming.abandon(CODE_UNWANTED);
                let key = key_text(connection);
                return Err(TransferError::Poisoned { remote, key, block });
            }
            let length = data.len() as u64;
            let is_new = object.plan().complete(block);
            if is_new {
                let (sink, block_size) = (object.sink.clone(), object.shape.block_size);
                let offset = u64::from(block) * u64::from(block_size);
                let store = move || sink.write_block(offset, &data);
                let stored = task::blocking(store).await;
                stored.map_err(|_| TransferError::Worker)??;
            }
            coming.release(block);
            self.moved(number, connection, object, if is_new { length } else { 0 }).await;
            self.changed.send_replace(());
        }
        // What others were sooner with is on its way in vain; of what is complete nothing is left.
        coming.abandon(CODE_UNWANTED);
        Ok(())
    }

    async fn count(&self, number: usize, connection: &Connection) {
        if let Some(stats) = connection.stats().await {
            lock(&self.stats)[number] = stats;
        }
    }

    /// So many more bytes are stored.
    async fn moved(&self, number: usize, connection: &Connection, object: &Object, bytes: u64) {
        let due = {
            let mut told = lock(&object.told);
            told.0 += bytes;
            let due = moment::now() - told.1 >= PROGRESS_EVERY || told.0 == object.bytes;
            if due {
                told.1 = moment::now();
            }
            due.then_some(told.0)
        };
        let Some(done) = due else { return };
        self.count(number, connection).await;
        let _ = self.tell.send(Progress::Moved { done, stats: self.all_stats() });
    }
}

/// Asks for the object, to go on with.
async fn ask(connection: &Connection, id: u32, url: &Url) -> Result<Announced, TransferError> {
    let path = url.path.clone().unwrap_or_default();
    let secret = url.secret.as_ref().map_or_else(Vec::new, |secret| secret.as_bytes().to_vec());
    let request = Request::Get { id, secret, path, resume: true };
    connection.send_message(encode(&request), SendOptions::default());
    answered(connection, id).await
}

/// Every server must have the same content.
fn check(
    connection: &Connection,
    answer: &Announced,
    object: &Object,
) -> Result<(), TransferError> {
    match answer {
        Announced::Offer(offer)
            if Hash::from(offer.root) == object.root
                && offer.size == object.shape.size
                && offer.block_size == object.shape.block_size =>
        {
            Ok(())
        }
        _ => Err(other(connection)),
    }
}

fn other(connection: &Connection) -> TransferError {
    let what = "another content than the other servers have";
    TransferError::Protocol { remote: connection.remote_addr(), what }
}
