use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fontis_proto::dfcp::SendOptions;
use tokio::sync::mpsc;

use super::content::Content;
use super::edge::{Joining, Newcomer};
use super::strangers::{self, Home};
use super::swarm::{Role, Swarm, SwarmEvent, send};
use super::wire::{Contact, SwarmWire};
use crate::connection::Connection;
use crate::dest::Dest;
use crate::endpoint::Endpoint;
use crate::identity::PublicKey;
use crate::moment;
use crate::sink::SinkOptions;
use crate::task;
use crate::transfer::get::{answered, has_hidden_name};
use crate::transfer::incoming::Incoming;
use crate::transfer::message::{
    Announced, NO_SECRET, NOT_HERE, Named, Request, Response, decode, encode,
};
use crate::transfer::{PROGRESS_EVERY, Progress, Report, TransferError, connect};
use crate::url::{Secret, Url};

/// The number of the only request of a connection.
const ID: u32 = 0;
/// Fewer neighbours are few.
const FEW: usize = 4;
/// The interval at which a node with few neighbours asks for more.
const ASK_EVERY: Duration = Duration::from_secs(25);
/// Connections that wait until they say what they want.
const UNASKED: usize = 64;
/// The time in which they have to.
const TO_ASK: Duration = Duration::from_secs(10);
/// How long this side stays because others need it.
const NEEDED: Duration = Duration::from_secs(60);
/// The time for uploads to end when this side leaves.
const LAST_UPLOADS: Duration = Duration::from_secs(5);

/// An object that has been fetched, and is sent on until this is dropped.
pub struct Sharing {
    swarm: Arc<Swarm>,
    endpoint: Endpoint,
}

impl Sharing {
    /// Bytes of the object that others have got from here so far.
    pub fn sent(&self) -> u64 {
        self.swarm.state().delivered
    }

    /// This side's endpoint, to which others connect.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends on for so long; then as long as others need this node, for a minute at most; then what
    /// has been begun.
    pub async fn last(&self, time: Duration) {
        task::sleep(time).await;
        let needed = || self.swarm.state().policy.is_needed();
        self.wait_while(NEEDED, needed).await;
        self.swarm.state().closes = true;
        self.wait_while(LAST_UPLOADS, || self.swarm.state().is_sending()).await;
    }

    async fn wait_while(&self, most: Duration, goes_on: impl Fn() -> bool) {
        let end = moment::now() + most;
        let mut changes = self.swarm.changes();
        while goes_on() && moment::now() < end {
            let _ = task::timeout(Duration::from_millis(100), changes.changed()).await;
        }
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        self.swarm.leave();
    }
}

/// Ends what goes on unless it has become a [`Sharing`].
struct Leaves(Option<Arc<Swarm>>);

impl Drop for Leaves {
    fn drop(&mut self) {
        if let Some(swarm) = self.0.take() {
            swarm.leave();
        }
    }
}

/// Fetches what `url` names from the server at `remote` and from everybody who fetches it too, and
/// sends on to them what has come. The endpoint has to accept connections: others make them.
///
/// The server may leave once it has sent everything to somebody. Who sends what is wrong is parted
/// from.
///
/// # Errors
/// As [`get`](crate::transfer::get); [`TransferError::Alone`] after `patience` in which nobody had
/// anything that is lacking, or who said so sent nothing for much longer than blocks take.
pub async fn share(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    dest: &Dest,
    options: SinkOptions,
    patience: Duration,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<(Report, Sharing), TransferError> {
    let begin = moment::now();
    let connection = connect(endpoint, remote, *url.key.as_bytes(), None, &progress).await?;
    connection.transfers_only(None);
    progress(Progress::Connected { remote });
    let path = url.path.clone().unwrap_or_default();
    let secret = url.secret.as_ref().map_or_else(Vec::new, |secret| secret.as_bytes().to_vec());
    let request =
        Request::Share { id: ID, secret: secret.clone(), named: Named::Path(path.clone()) };
    connection.send_message(encode(&request), SendOptions::default());
    let announced = answered(&connection, ID).await?;
    let what = "an object without its hashes";
    let Announced::Offer(offer) = announced.clone() else {
        return Err(TransferError::Protocol { remote, what });
    };
    if url.name().is_none() && has_hidden_name(&announced) {
        let what = "a hidden name that nobody asked for";
        return Err(TransferError::Protocol { remote, what });
    }
    let (name, to) = (url.name().map(str::to_owned), dest.clone());
    let prepare =
        move || Incoming::prepare(remote, &announced, name.as_deref(), &to, options)?.into_parts();
    let prepared = task::blocking(prepare).await.map_err(|_| TransferError::Worker)??;
    let Some((sink, tree, manifest, kept)) = prepared else {
        return Err(TransferError::Protocol { remote, what });
    };
    let (size, root, resumed) = (tree.size(), tree.root(), sink.written());
    progress(Progress::Started {
        name: manifest.name().to_owned(),
        bytes: size,
        entries: manifest.entries().len(),
        resumed,
    });
    let tree = Arc::new(tree);
    let there: Vec<u32> = kept.done.into_iter().flatten().collect();
    let (tell, mut told) = mpsc::unbounded_channel();
    let parts = (tree.clone(), Content::partial(tree, sink), offer);
    let events = move |event| _ = tell.send(event);
    let role = Role::Node(*url.key.as_bytes());
    let swarm = Swarm::new(parts, role, there.into_iter(), endpoint.public_key(), events);
    let mut leaves = Leaves(Some(swarm.clone()));
    let own = url.secret.clone();
    let server = Contact { address: remote, key: *url.key.as_bytes() };
    let home = Home { contact: server, path: path.clone() };
    task::spawn(accept(Arc::downgrade(&swarm), endpoint.clone(), path, own));
    task::spawn(strangers::meet(Arc::downgrade(&swarm), endpoint.clone(), home, secret));
    let first = swarm.clone();
    task::spawn(async move {
        // The server may leave: that is no error while others have the rest.
        let _ = first.serve(Joining { connection, is_ours: true, complete: None }).await;
        // It may have been the way to it that failed.
        first.state().remember(vec![server]);
    });
    fetch(&swarm, (resumed, server.key), patience, &mut told, &progress).await?;
    let finishing = swarm.clone();
    let finished = task::blocking(move || finishing.content.finish());
    let finished = finished.await.map_err(|_| TransferError::Worker)?;
    let (path, left_out) = finished.ok_or(TransferError::Worker)??;
    let report = Report {
        name: manifest.name().to_owned(),
        path: Some(path),
        bytes: size,
        resumed,
        hash: root.to_hex().to_string(),
        duration: moment::now() - begin,
        stats: swarm.stats().await,
        sctp: None,
        left_out,
    };
    leaves.0 = None;
    Ok((report, Sharing { swarm, endpoint: endpoint.clone() }))
}

/// Waits until everything is there, beside the bytes that are; the node with the key `home` may be
/// silent as long as it likes.
async fn fetch(
    swarm: &Arc<Swarm>,
    (resumed, home): (u64, [u8; 32]),
    patience: Duration,
    told: &mut mpsc::UnboundedReceiver<SwarmEvent>,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<(), TransferError> {
    let (mut done, mut moved) = (resumed, moment::now());
    let mut alone_since: Option<Instant> = None;
    let mut fed = moment::now();
    let mut asked = moment::now();
    let own = PublicKey::new(swarm.state().own_key)
        .map_or_else(|_| "?".to_owned(), |key| key.to_string());
    loop {
        // What was told of the last blocks is told before the end.
        let is_complete = swarm.state().policy.is_complete() && told.is_empty();
        let now = moment::now();
        if is_complete || now - moved >= PROGRESS_EVERY {
            moved = now;
            progress(Progress::Moved { done, stats: swarm.stats().await });
        }
        if let Some(failure) = swarm.state().failure.take() {
            return Err(failure.into());
        }
        if is_complete {
            return Ok(());
        }
        let (neighbours, can_go_on) = {
            let state = swarm.state();
            // Others may say that they have what they never send.
            let is_waiting = now - fed < patience + state.downloads_took.patience();
            let is_trusted = is_waiting || state.edges.values().any(|edge| edge.key == home);
            (state.edges.len(), state.policy.can_go_on() && is_trusted)
        };
        match alone_since {
            _ if can_go_on => alone_since = None,
            None => alone_since = Some(now),
            Some(since) if now - since >= patience => {
                return Err(TransferError::Alone);
            }
            Some(_) => {}
        }
        if neighbours < FEW && now - asked >= ASK_EVERY {
            asked = now;
            let all = swarm.state().edges.values().map(|edge| edge.connection.clone()).collect();
            let all: Vec<Connection> = all;
            send(all.into_iter().map(|one| (one, SwarmWire::Lonely)).collect());
        }
        match task::timeout(PROGRESS_EVERY, told.recv()).await {
            Ok(Some(SwarmEvent::Fed { remote, key, block, bytes, took })) => {
                (done, fed) = (done + bytes, moment::now());
                let keys = Box::new([key, own.clone()]);
                progress(Progress::Fed { remote, keys, block, bytes, took });
            }
            Ok(Some(SwarmEvent::Forged { from, packets })) => {
                progress(Progress::Forged { from, packets });
            }
            Ok(Some(SwarmEvent::Met(remote))) => progress(Progress::Met { remote }),
            Ok(Some(SwarmEvent::Parted(remote, error))) => {
                progress(Progress::Dropped { remote, error: error.to_string() });
            }
            Ok(None) => return Err(TransferError::Worker),
            Err(_) => {}
        }
    }
}

/// Takes the nodes in that connect to this one.
async fn accept(swarm: Weak<Swarm>, endpoint: Endpoint, path: String, secret: Option<Secret>) {
    let places = Arc::new(tokio::sync::Semaphore::new(UNASKED));
    while let Some(connection) = endpoint.accept().await {
        let (Some(swarm), Ok(place)) = (swarm.upgrade(), places.clone().try_acquire_owned()) else {
            continue;
        };
        let (path, secret) = (path.clone(), secret.clone());
        task::spawn(async move {
            connection.transfers_only(None);
            let asked = task::timeout(TO_ASK, connection.recv_message()).await;
            drop(place);
            let Ok(Some(message)) = asked else { return };
            let (id, considered) = consider(&swarm, &message.data, &path, secret.as_ref());
            let knows = match considered {
                Ok(knows) => knows,
                Err(text) => {
                    let response = Response::Error { id, text: text.to_owned() };
                    connection.send_message(encode(&response), SendOptions::default());
                    // The connection lasts until the answer has come, or could have.
                    let _ = task::timeout(TO_ASK, connection.closed()).await;
                    return;
                }
            };
            if message.early && !connection.is_fresh() && !connection.confirmed().await {
                return;
            }
            // Who leaves is told of there.
            let _ = swarm.admit(Newcomer { connection, id, knows, complete: None }).await;
        });
    }
}

/// The number of a request, and whether its sender knows the object; or why it is refused.
fn consider(
    swarm: &Swarm,
    message: &[u8],
    path: &str,
    secret: Option<&Secret>,
) -> (u32, Result<bool, &'static str>) {
    let Some(Request::Share { id, secret: shown, named }) = decode(message) else {
        return (ID, Err("this node only shares what it fetches: use --share"));
    };
    let considered = match &named {
        _ if secret.is_some_and(|own| !own.is(&shown)) => Err(NO_SECRET),
        Named::Root(root) if root == swarm.tree.root().as_bytes() => Ok(true),
        Named::Path(asked) if asked == path || asked.is_empty() => Ok(false),
        Named::Root(_) | Named::Path(_) => Err(NOT_HERE),
    };
    (id, considered)
}
