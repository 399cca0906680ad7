use std::collections::HashMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use fontis_proto::dfcp::{Held, SendOptions};
use tokio::sync::{Mutex, oneshot};

use super::message::{Request, Response, decode, encode};
use super::outgoing::{IN_TURN, Outgoing, Tree, lost};
use super::{Report, ServerEvent, TransferError};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::hash_cache::HashCache;
use crate::identity::PublicKey;
use crate::source::{Source, SourceError};

/// Objects whose hash trees are remembered.
const CACHED_TREES: NonZero<usize> = NonZero::new(256).unwrap();
/// The answer for objects that do not exist, cannot be read, or are not served.
const NOT_HERE: &str = "there is no such file or folder here: check the path in the URL";

/// Serves the files and folders beneath a folder.
pub struct FileServer {
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

/// Requests whose client first reports its held part.
type Waiting = Arc<Mutex<HashMap<u32, oneshot::Sender<Held>>>>;

struct Shared {
    root: Dir,
    trees: HashCache,
}

impl FileServer {
    /// A server of the folder `root`, for the clients that the endpoint accepts.
    pub fn new(endpoint: Endpoint, root: &Path) -> Result<Self, TransferError> {
        let root = Dir::open_ambient_dir(root, ambient_authority())
            .map_err(|source| TransferError::Folder { path: root.to_owned(), source })?;
        let shared = Shared { root, trees: HashCache::new(CACHED_TREES) };
        Ok(Self { endpoint, shared: Arc::new(shared) })
    }

    /// Serves until the endpoint closes; calls `events` with each event.
    pub async fn run(self, events: impl Fn(ServerEvent) + Send + Sync + 'static) {
        let events = Arc::new(events);
        while let Some(connection) = self.endpoint.accept().await {
            let (shared, events) = (self.shared.clone(), events.clone());
            tokio::spawn(async move {
                let remote = connection.remote_addr();
                connection.transfers_only(None);
                events(ServerEvent::Connected { remote, key: key_text(&connection) });
                let waiting = Waiting::default();
                while let Some(message) = connection.recv_message().await {
                    let (shared, events, connection, waiting) =
                        (shared.clone(), events.clone(), connection.clone(), waiting.clone());
                    tokio::spawn(async move {
                        let answer =
                            answer(&shared, &connection, &message.data, &waiting, &*events);
                        if let Err(error) = answer.await {
                            events(ServerEvent::Failed { remote, error: error.to_string() });
                        }
                    });
                }
            });
        }
    }
}

/// The peer's public key as text.
pub(super) fn key_text(connection: &Connection) -> String {
    PublicKey::new(connection.peer_key()).map_or_else(|_| "?".to_owned(), |key| key.to_string())
}

async fn answer(
    shared: &Arc<Shared>,
    connection: &Connection,
    message: &[u8],
    waiting: &Waiting,
    events: &(impl Fn(ServerEvent) + Send + Sync),
) -> Result<(), TransferError> {
    let remote = connection.remote_addr();
    let respond = |response: &Response| {
        let urgent = SendOptions { priority: 0, ..SendOptions::default() };
        connection.send_message(encode(response), urgent);
    };
    let (id, path, resume) = match decode::<Request>(message) {
        Some(Request::Get { id, path, resume }) => (id, path, resume),
        Some(Request::Begin { id, holding }) => {
            if let Some(reply) = waiting.lock().await.remove(&id) {
                let _ = reply.send(Held::from(holding));
            }
            return Ok(());
        }
        Some(Request::Checking { .. } | Request::Values { .. }) => return Ok(()),
        Some(Request::Put { id, .. } | Request::PutOpening { id, .. }) => {
            let text = "this server only serves: `fontis receive` takes what is sent".to_owned();
            respond(&Response::Error { id, text });
            return Ok(());
        }
        None => return Err(TransferError::Protocol { remote, what: "an unreadable request" }),
    };
    let begin = Instant::now();
    let opened = {
        let (shared, path) = (shared.clone(), path.clone());
        tokio::task::spawn_blocking(move || open(&shared, &path, resume))
            .await
            .map_err(|_| TransferError::Worker)?
    };
    let outgoing = match opened {
        Ok(outgoing) => outgoing,
        Err(error) => {
            let text = match &error {
                TransferError::Source(
                    SourceError::NotFound { .. }
                    | SourceError::Outside { .. }
                    | SourceError::Unreadable { .. },
                ) => NOT_HERE.to_owned(),
                other => other.to_string(),
            };
            respond(&Response::Error { id, text });
            return Err(error);
        }
    };
    let (reply, begin_with) = oneshot::channel();
    if resume {
        waiting.lock().await.insert(id, reply);
    }
    match &outgoing.tree {
        Tree::Known(tree) => respond(&Response::Offer { id, offer: outgoing.offer(tree)? }),
        Tree::Unknown(state) => {
            let opening = outgoing.opening(*state)?;
            connection.send_message(encode(&Response::Opening { id, opening }), IN_TURN);
        }
    }
    let held = if resume {
        tokio::select! {
            held = begin_with => held.map_err(|_| lost(connection))?,
            _ = connection.closed() => return Err(lost(connection)),
        }
    } else {
        Held::default()
    };
    let resumed = outgoing.held_bytes(&held);
    let name = outgoing.source.manifest().name().to_owned();
    let bytes = outgoing.source.size();
    events(ServerEvent::Started { remote, name: name.clone(), bytes });
    let mut counted = connection.stats().await.unwrap_or_default();
    let sending = outgoing.send(connection, id, held, Response::values, |_, stats| counted = stats);
    let tree = sending.await?;
    if matches!(outgoing.tree, Tree::Unknown(_)) {
        shared.trees.put(&outgoing.source, tree.clone());
    }
    let report = Report {
        name,
        path: None,
        bytes,
        resumed,
        hash: tree.root().to_hex().to_string(),
        duration: begin.elapsed(),
        stats: connection.stats().await.unwrap_or(counted),
    };
    events(ServerEvent::Finished { remote, report: Box::new(report) });
    Ok(())
}

/// Opens the requested object. A client with a part of it needs its hash at once.
fn open(shared: &Shared, path: &str, resume: bool) -> Result<Outgoing, TransferError> {
    let path = if path.is_empty() { "." } else { path };
    let source = Source::beneath(&shared.root, Path::new(path))?;
    let known = shared.trees.get(&source).map(Tree::Known);
    let tree = match known.or_else(|| Tree::unknown(&source).filter(|_| !resume)) {
        Some(tree) => tree,
        None => Tree::Known(shared.trees.hash_tree(&source, |_| {})?),
    };
    Ok(Outgoing { source: Arc::new(source), tree })
}
