use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};

use super::coming::Coming;
use super::gate::{Gate, TOO_MANY};
use super::get::meanwhile;
use super::guesses::{GUESSED, Guesses};
use super::incoming::{Incoming, Prepared, Stored, Values, ValuesFrom};
use super::message::{Announced, Holding, Request, Response, encode, label};
use super::outgoing::{CODE_UNWANTED, key_text, lost};
use super::pace::Pace;
use super::pieces::decode_sharing;
use super::{Report, ServerEvent, TransferError};
use crate::archive::Archive;
use crate::connection::{Connection, RecvObject};
use crate::dest::Dest;
use crate::endpoint::Endpoint;
use crate::left_out::LeftOut;
use crate::manifest::Manifest;
use crate::moment;
use crate::sink::{Sink, SinkError, SinkOptions};
use crate::task;
use crate::url::Secret;

/// Takes what others send into a folder; they must know a secret.
pub struct Receiver {
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

/// What a [`Receiver`] takes from senders who know its secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct InboxOptions {
    /// True if an object replaces an existing one of its name.
    pub overwrite: bool,
    /// True if names may begin with a dot. In a home folder such a file can be a program's
    /// configuration.
    pub hidden: bool,
    /// The most bytes of all objects together, if there is a limit. Each file and folder counts
    /// [`ENTRY_COST`] beside its size, and holes count, too. An object that comes again counts
    /// once.
    pub max_size: Option<u64>,
    /// True if symbolic links are kept that point out of their object.
    pub outward_links: bool,
    /// The owners and extended attributes that are kept.
    pub archive: Archive,
}

/// Bytes that a file or folder takes from [`InboxOptions::max_size`] beside its content.
pub const ENTRY_COST: u64 = 4096;

struct Shared {
    dir: PathBuf,
    secret: Secret,
    options: InboxOptions,
    /// The objects that were taken, by the hashes of their manifests, and their bytes; empty if
    /// there is no limit.
    taken: Mutex<HashMap<blake3::Hash, u64>>,
    /// Objects that are being received, and what ends that.
    busy: Mutex<HashMap<Claimant, Arc<Notify>>>,
    gate: Arc<Gate>,
}

/// A sender's key and the manifest of its object.
type Claimant = ([u8; 32], blake3::Hash);

/// The time for the end of a superseded transfer.
const SUPERSEDING: Duration = Duration::from_secs(5);

impl Shared {
    fn busy(&self) -> MutexGuard<'_, HashMap<Claimant, Arc<Notify>>> {
        lock(&self.busy)
    }

    /// Counts an object, unless it would exceed the limit of all.
    fn count(
        &self,
        remote: SocketAddr,
        manifest: &Manifest,
        hash: blake3::Hash,
    ) -> Result<(), TransferError> {
        let Some(limit) = self.options.max_size else { return Ok(()) };
        let entries = manifest.entries().len() as u64;
        let cost = manifest.length().saturating_add(entries.saturating_mul(ENTRY_COST));
        let mut taken = lock(&self.taken);
        let others = taken.iter().filter(|(one, _)| **one != hash).map(|(_, cost)| *cost);
        let left = limit.saturating_sub(others.fold(0, u64::saturating_add));
        if cost > left {
            return Err(TransferError::Quota { remote, needed: cost, left });
        }
        taken.insert(hash, cost);
        Ok(())
    }

    /// A sender that comes again has lost its connection, whether this side has noticed or not: the
    /// old transfer ends.
    async fn supersede(&self, claimant: &Claimant) {
        let begin = moment::now();
        loop {
            match self.busy().get(claimant) {
                Some(old) if moment::now() - begin < SUPERSEDING => old.notify_one(),
                _ => return,
            }
            task::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Takes an object off the list of the busy when its transfer is over.
struct Busy {
    shared: Arc<Shared>,
    claimant: Claimant,
    superseded: Arc<Notify>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut busy = self.shared.busy();
        // Unless another has taken its place.
        if busy.get(&self.claimant).is_some_and(|own| Arc::ptr_eq(own, &self.superseded)) {
            busy.remove(&self.claimant);
        }
    }
}

/// The waiting transfers of a connection, by the requests' identifiers.
#[derive(Default)]
struct Expected {
    /// Objects that were accepted and whose content has not begun.
    objects: Mutex<HashMap<u32, oneshot::Sender<RecvObject>>>,
    /// Chaining values of objects that were accepted before they were hashed.
    values: Mutex<HashMap<u32, mpsc::Sender<ValuesFrom>>>,
}

/// The answer to a wrong secret.
const OLD_SECRET: &str =
    "the secret in the URL is not the present one: ask for the receiver's present URL";
/// Messages with chaining values that may wait while a block is stored.
const VALUES_AHEAD: usize = 64;

impl Receiver {
    /// A receiver into the folder `dir`, from those whom the endpoint accepts and who know
    /// `secret`.
    pub fn new(
        endpoint: Endpoint,
        dir: &Path,
        secret: Secret,
        options: InboxOptions,
    ) -> Result<Self, TransferError> {
        let metadata = std::fs::metadata(dir);
        let folder = metadata.and_then(|metadata| {
            if metadata.is_dir() { Ok(()) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
        });
        folder.map_err(|source| TransferError::Folder { path: dir.to_owned(), source })?;
        let (busy, taken) = (Mutex::default(), Mutex::default());
        let (dir, gate) = (dir.to_owned(), Gate::new());
        let shared = Shared { dir, secret, options, taken, busy, gate };
        Ok(Self { endpoint, shared: Arc::new(shared) })
    }

    /// Receives until the endpoint closes; calls `events` with each event.
    pub async fn run(self, events: impl Fn(ServerEvent) + Send + Sync + 'static) {
        let events = Arc::new(events);
        while let Some(connection) = self.endpoint.accept().await {
            task::spawn(attend(self.shared.clone(), connection, events.clone()));
        }
    }
}

async fn attend(
    shared: Arc<Shared>,
    connection: Connection,
    events: Arc<impl Fn(ServerEvent) + Send + Sync + 'static>,
) {
    let remote = connection.remote_addr();
    connection.transfers_only(None);
    events(ServerEvent::Connected { remote, key: key_text(&connection) });
    let expected = Arc::new(Expected::default());
    task::spawn(distribute(connection.clone(), expected.clone()));
    let (mut pace, mut guesses) = (Pace::new(), Guesses::default());
    while let Some(message) = connection.recv_message().await {
        // What changes files must not be a replay.
        if message.early {
            continue;
        }
        let request = decode_sharing::<Request>(&message.data);
        // They count only in their order.
        if let Some(Request::Values { id, first, values }) = request {
            let waiting = lock(&expected.values).get(&id).cloned();
            if let Some(waiting) = waiting {
                // A transfer that is over wants none.
                let _ = waiting.send((first, values)).await;
            }
            continue;
        }
        if !pace.turn(&connection).await {
            break;
        }
        if let Some(Request::Put { id, secret, .. } | Request::PutOpening { id, secret, .. }) =
            &request
            && !shared.secret.is(secret)
        {
            connection.answer(encode(&Response::Error { id: *id, text: OLD_SECRET.to_owned() }));
            let error = TransferError::Refused { remote, text: GUESSED.to_owned() };
            events(ServerEvent::Failed { remote, error: error.to_string() });
            guesses.count(&connection).await;
            continue;
        }
        let (shared, connection) = (shared.clone(), connection.clone());
        let (events, expected) = (events.clone(), expected.clone());
        task::spawn(async move {
            if let Err(error) = take(&shared, &connection, request, &expected, &*events).await {
                events(ServerEvent::Failed { remote, error: error.to_string() });
            }
        });
    }
}

/// Hands objects to those who expect them.
async fn distribute(connection: Connection, expected: Arc<Expected>) {
    while let Some(object) = connection.recv_object().await {
        let id = <[u8; 4]>::try_from(&object.label()[..]).map(u32::from_be_bytes);
        let waiting = match id {
            Ok(id) => lock(&expected.objects).remove(&id),
            Err(_) => None,
        };
        match waiting {
            Some(reply) => drop(reply.send(object)),
            None => object.abandon(CODE_UNWANTED),
        }
    }
}

async fn take(
    shared: &Arc<Shared>,
    connection: &Connection,
    request: Option<Request>,
    expected: &Expected,
    events: &(impl Fn(ServerEvent) + Send + Sync),
) -> Result<(), TransferError> {
    let remote = connection.remote_addr();
    let respond = |response: &Response| connection.answer(encode(response));
    let (id, announced) = match request {
        Some(Request::Put { id, offer, .. }) => (id, Announced::Offer(offer)),
        Some(Request::PutOpening { id, opening, .. }) => (id, Announced::Opening(opening)),
        Some(Request::Checking { .. } | Request::Values { .. }) => return Ok(()),
        Some(
            Request::Get { id, .. }
            | Request::Begin { id, .. }
            | Request::Carry { id, .. }
            | Request::Join { id, .. }
            | Request::Share { id, .. },
        ) => {
            let text = "this is a receiver: `fontis serve` gives".to_owned();
            respond(&Response::Error { id, text });
            return Ok(());
        }
        None => {
            let what = "an unreadable request";
            connection.close(0, what);
            return Err(TransferError::Protocol { remote, what });
        }
    };
    let Some(_pass) = shared.gate.enter(connection.peer_key()) else {
        respond(&Response::Error { id, text: TOO_MANY.to_owned() });
        return Ok(());
    };
    let received = unless_superseded(shared, connection, id, announced, expected, events, respond);
    let received = received.await;
    lock(&expected.objects).remove(&id);
    lock(&expected.values).remove(&id);
    match &received {
        Ok(response) => respond(response),
        Err(error) => respond(&Response::Error { id, text: error.to_string() }),
    }
    received.map(drop)
}

/// Receives an object, unless its sender comes again meanwhile.
async fn unless_superseded(
    shared: &Arc<Shared>,
    connection: &Connection,
    id: u32,
    announced: Announced,
    expected: &Expected,
    events: &(impl Fn(ServerEvent) + Send + Sync),
    respond: impl Fn(&Response),
) -> Result<Response, TransferError> {
    let claimant = (connection.peer_key(), blake3::hash(announced.manifest()));
    shared.supersede(&claimant).await;
    let superseded = Arc::new(Notify::new());
    shared.busy().insert(claimant, superseded.clone());
    let busy = Busy { shared: shared.clone(), claimant, superseded };
    tokio::select! {
        biased;
        received = receive(shared, connection, id, announced, expected, events, respond) => received,
        () = busy.superseded.notified() => {
            connection.close(0, "the same sender has come again");
            Err(TransferError::Superseded { remote: connection.remote_addr() })
        }
    }
}

/// Receives an object, and returns what its sender is to be told.
async fn receive(
    shared: &Arc<Shared>,
    connection: &Connection,
    id: u32,
    announced: Announced,
    expected: &Expected,
    events: &(impl Fn(ServerEvent) + Send + Sync),
    respond: impl Fn(&Response),
) -> Result<Response, TransferError> {
    let remote = connection.remote_addr();
    let begin = moment::now();
    let shared = shared.clone();
    let is_opening = matches!(announced, Announced::Opening(_));
    let prepare = move || prepare(&shared, remote, &announced);
    let checking = || respond(&Response::Checking { id });
    let Some(prepared) = meanwhile(checking, prepare).await? else {
        return Ok(Response::Hash { id });
    };
    let Prepared { incoming, manifest, kept } = prepared;
    let resumed = incoming.stored();
    let (reply, object) = oneshot::channel();
    lock(&expected.objects).insert(id, reply);
    let (hand, values) = mpsc::channel(VALUES_AHEAD);
    if is_opening {
        lock(&expected.values).insert(id, hand);
    }
    let holding = Holding::from(&kept.held(&incoming.shape()));
    connection.expect_object(label(id), kept);
    respond(&Response::Accept { id, holding });
    let object = tokio::select! {
        biased;
        object = object => object.map_err(|_| lost(connection))?,
        _ = connection.closed() => return Err(lost(connection)),
    };
    let shape = object.shape();
    if !incoming.fits(shape) {
        return Err(TransferError::Protocol {
            remote,
            what: "the object is not the one that was offered",
        });
    }
    let name = manifest.name().to_owned();
    events(ServerEvent::Started { remote, name: name.clone(), bytes: Some(shape.size) });
    let values = Values::Handed(values);
    let object = Coming::Object(object);
    let stored = incoming.receive(connection, id, object, values, |_, _| {}).await?;
    let (bytes, duration) = (shape.size, moment::now() - begin);
    let Stored { path, hash, stats, sctp, left_out } = stored;
    let LeftOut { links, names, attributes, .. } = left_out;
    let report = Report { name, path, bytes, resumed, hash, duration, stats, sctp, left_out };
    events(ServerEvent::Finished { remote, report: Box::new(report) });
    Ok(Response::Stored { id, links, names, attributes })
}

/// Prepares the place of an object; `None` if something is there that may belong to it and the
/// object has not been hashed.
fn prepare(
    shared: &Shared,
    remote: SocketAddr,
    announced: &Announced,
) -> Result<Option<Prepared>, TransferError> {
    // With a slash at its end the folder receives the object under the object's own name.
    let dest = Dest::Path(shared.dir.join(""));
    let is_opening = matches!(announced, Announced::Opening(_));
    let manifest = Manifest::decode_shared(announced.manifest());
    let manifest = manifest.map_err(|source| TransferError::Manifest { remote, source })?;
    if manifest.name().starts_with('.') && !shared.options.hidden {
        return Err(TransferError::Hidden { remote, name: manifest.name().to_owned() });
    }
    if is_opening && Sink::is_begun(&dest, Some(manifest.name())) {
        return Ok(None);
    }
    shared.count(remote, &manifest, blake3::hash(announced.manifest()))?;
    // It is read again: two of a million files would be much at once.
    drop(manifest);
    let InboxOptions { overwrite, outward_links, archive, .. } = shared.options;
    let options = SinkOptions {
        overwrite,
        restart: is_opening,
        outward_links,
        archive,
        ..SinkOptions::default()
    };
    let begin = moment::now();
    loop {
        match Incoming::prepare(remote, announced, None, &dest, options.clone()) {
            // The last write of a transfer that was superseded may still be under way.
            Err(TransferError::Sink(SinkError::Busy { .. }))
                if moment::now() - begin < Duration::from_millis(500) =>
            {
                moment::pause(Duration::from_millis(20));
            }
            prepared => return prepared.map(Some),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
