mod taking_part;

use std::collections::HashMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use fontis_proto::dfcp::SendOptions;
use fontis_proto::sctp::CodingConfig;
use tokio::sync::mpsc;

use super::cast::{CastStatus, Caster};
use super::gate::{Gate, Pass, TOO_MANY};
use super::guesses::{GUESSED, Guesses};
use super::message::{NO_SECRET, NOT_HERE, Request, Response, decode, encode};
use super::outgoing::{IN_TURN, Outgoing, Tree, key_text, lost};
use super::over_sctp::{NOT_OVER_SCTP, SctpCarrier};
use super::pace::Pace;
use super::pieces::encode_around;
use super::swarm::Swarms;
use super::wanted::{Begun, Get, Join, Share, Wanted};
use super::{Report, ServerEvent, TransferError};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::hash_cache::HashCache;
use crate::moment;
use crate::name;
use crate::sctp::SctpEndpoint;
use crate::source::{Source, SourceError, SourceOptions};
use crate::task;
use crate::url::Secret;

/// Objects whose hash trees are remembered.
const CACHED_TREES: NonZero<usize> = NonZero::new(256).unwrap();

/// Serves the files and folders beneath a folder.
pub struct FileServer {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    patience: Duration,
}

/// Requests whose client first reports its held part: what it says, or a sign of life.
type Waiting = Mutex<HashMap<u32, mpsc::UnboundedSender<Option<Begun>>>>;

/// The time in which a client has to go on with its request.
const PATIENCE: Duration = Duration::from_secs(60);
/// Times that, in which it has to take something of an object: a slow path may need minutes for a
/// block.
const PATIENCE_SENDING: u32 = 10;

/// What a server serves.
enum Root {
    /// What lies beneath a folder.
    Folder(Dir),
    /// What is cast to a group, and that alone.
    Cast(Box<Caster>),
    /// One object.
    Object(Outgoing),
}

struct Shared {
    root: Root,
    /// The secret that requests must carry.
    secret: Option<Secret>,
    options: SourceOptions,
    trees: HashCache,
    gate: Arc<Gate>,
    swarms: Swarms,
    sctp: Option<SctpCarrier>,
}

/// A connection and its requests.
struct Client {
    connection: Connection,
    waiting: Waiting,
    /// Whether it takes part in a cast: once is enough for a connection.
    has_joined: AtomicBool,
}

impl FileServer {
    /// A server of the folder `root`, for the clients that the endpoint accepts and that know
    /// `secret`. Without a secret, everybody who knows the server's public key can read the folder.
    pub fn new(
        endpoint: Endpoint,
        root: &Path,
        secret: Option<Secret>,
    ) -> Result<Self, TransferError> {
        let root = Dir::open_ambient_dir(root, ambient_authority())
            .map_err(|source| TransferError::Folder { path: root.to_owned(), source })?;
        Ok(Self::of(endpoint, Root::Folder(root), secret))
    }

    /// A server of what is cast to a group: it invites those who ask to take part, and sends the
    /// object to those whom the group does not reach.
    pub fn of_cast(endpoint: Endpoint, caster: Caster, secret: Option<Secret>) -> Self {
        Self::of(endpoint, Root::Cast(Box::new(caster)), secret)
    }

    /// A server of the file or folder at `path` alone. It is hashed here, which blocks.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_object(
        endpoint: Endpoint,
        path: &Path,
        options: &SourceOptions,
        secret: Option<Secret>,
    ) -> Result<Self, TransferError> {
        let source = Source::open_with(path, options)?;
        let tree = Tree::of(&source)?;
        let object = Outgoing { source: Arc::new(source), tree };
        Ok(Self::of(endpoint, Root::Object(object), secret))
    }

    /// A server of what is cast to a group, for those who send on to each other what they have:
    /// whom the group does not reach gets everything from the others.
    ///
    /// # Errors
    /// If it is a stream.
    pub fn of_swarm(
        endpoint: Endpoint,
        caster: Caster,
        secret: Option<Secret>,
    ) -> Result<Self, TransferError> {
        let (source, tree) = caster.object().cloned().ok_or(TransferError::Unordered)?;
        let object = Outgoing { source, tree: Tree::Known(tree) };
        let swarms = Swarms::new(endpoint.public_key(), Some(Arc::new(caster)));
        Ok(Self::with(endpoint, Root::Object(object), secret, swarms))
    }

    /// A server of this object alone, with a tree that need not be the object's own.
    #[cfg(test)]
    pub(crate) fn of_parts(
        endpoint: Endpoint,
        source: Source,
        tree: Arc<crate::hash_tree::HashTree>,
    ) -> Self {
        let object = Outgoing { source: Arc::new(source), tree: Tree::Known(tree) };
        Self::of(endpoint, Root::Object(object), None)
    }

    fn of(endpoint: Endpoint, root: Root, secret: Option<Secret>) -> Self {
        let swarms = Swarms::new(endpoint.public_key(), None);
        Self::with(endpoint, root, secret, swarms)
    }

    fn with(endpoint: Endpoint, root: Root, secret: Option<Secret>, swarms: Swarms) -> Self {
        let trees = HashCache::new(CACHED_TREES);
        let options = SourceOptions::default();
        let gate = Gate::new();
        let shared = Shared { root, secret, options, trees, gate, swarms, sctp: None };
        Self { endpoint, shared: Arc::new(shared), patience: PATIENCE }
    }

    /// The state of the cast, if this is a server of one.
    pub fn cast_status(&self) -> impl Fn() -> Option<CastStatus> + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || match &shared.root {
            Root::Folder(_) | Root::Object(_) => shared.swarms.cast_status(),
            Root::Cast(caster) => Some(caster.status()),
        }
    }

    /// Whether others that share an object of this server lack something that only this server, or
    /// those who have everything, can send.
    pub fn is_needed(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.swarms.are_needed()
    }

    /// The same, serving of the folder only what `options` say.
    pub fn with_options(mut self, options: SourceOptions) -> Self {
        // Nobody else has it before it runs.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.options = options;
        }
        self
    }

    /// The same, sending over SCTP, too, from sockets of `endpoint`, to clients that ask for that.
    /// It begins to accept them at once. With `coding` what it sends has repairs, for clients that
    /// take them; [`CodingConfig`] says what that does to others on the same path.
    ///
    /// # Errors
    /// If a socket has no address.
    pub fn with_sctp(
        mut self,
        endpoint: &SctpEndpoint,
        coding: Option<CodingConfig>,
    ) -> std::io::Result<Self> {
        let carrier = SctpCarrier::start(endpoint, coding)?;
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.sctp = Some(carrier);
        }
        Ok(self)
    }

    /// The same, giving a client `patience` to go on with its request, and ten times that to take
    /// something of what is sent.
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Serves until the endpoint closes; calls `events` with each event.
    pub async fn run(self, events: impl Fn(ServerEvent) + Send + Sync + 'static) {
        let (events, patience) = (Arc::new(events), self.patience);
        while let Some(connection) = self.endpoint.accept().await {
            let (shared, events) = (self.shared.clone(), events.clone());
            task::spawn(async move {
                let remote = connection.remote_addr();
                connection.transfers_only(None);
                events(ServerEvent::Connected { remote, key: key_text(&connection) });
                let client = Arc::new(Client {
                    connection,
                    waiting: Waiting::default(),
                    has_joined: AtomicBool::new(false),
                });
                let (mut pace, mut guesses) = (Pace::new(), Guesses::default());
                while let Some(message) = client.connection.recv_message().await {
                    if !pace.turn(&client.connection).await {
                        break;
                    }
                    let (shared, events, client) = (shared.clone(), events.clone(), client.clone());
                    let Some(wanted) = client.read(&message.data, &*events) else { continue };
                    if shared.is_guess(&wanted) {
                        client.refuse(&wanted, NO_SECRET);
                        let error = TransferError::Refused { remote, text: GUESSED.to_owned() };
                        events(ServerEvent::Failed { remote, error: error.to_string() });
                        guesses.count(&client.connection).await;
                        continue;
                    }
                    let get = match wanted {
                        Wanted::Object(get) => get,
                        Wanted::Swarm(share) => {
                            // Of one that is let in, the messages are the swarm's from then on.
                            if client.may_begin(message.early).await {
                                client.admit(&shared, share, &*events).await;
                            }
                            continue;
                        }
                        Wanted::Part(join) => {
                            tokio::spawn(async move {
                                if client.may_begin(message.early).await {
                                    client.invite(&shared, join, &*events).await;
                                }
                            });
                            continue;
                        }
                    };
                    let Some(pass) = shared.gate.enter(client.connection.peer_key()) else {
                        client.refuse(&Wanted::Object(get), TOO_MANY);
                        continue;
                    };
                    task::spawn(async move {
                        if !client.may_begin(message.early).await {
                            return;
                        }
                        let answer = answer(&shared, &client, get, &pass, patience, &*events);
                        if let Err(error) = answer.await {
                            events(ServerEvent::Failed { remote, error: error.to_string() });
                        }
                    });
                }
            });
        }
    }
}

impl Shared {
    /// Whether a request lacks the secret.
    fn is_guess(&self, wanted: &Wanted) -> bool {
        self.secret.as_ref().is_some_and(|own| !own.is(wanted.claim().1))
    }
}

impl Client {
    /// Whether a request may cause work: a replay may not.
    async fn may_begin(&self, is_early: bool) -> bool {
        !is_early || self.connection.is_fresh() || self.connection.confirmed().await
    }

    /// Reads a message; gives what is asked for, if it is a request that takes work.
    fn read(&self, message: &[u8], events: &impl Fn(ServerEvent)) -> Option<Wanted> {
        match decode::<Request>(message) {
            Some(Request::Get { id, secret, path, resume }) => {
                return Some(Wanted::Object(Get { id, secret, path, resume }));
            }
            Some(Request::Join { id, secret, path }) => {
                return Some(Wanted::Part(Join { id, secret, path }));
            }
            Some(Request::Share { id, secret, named }) => {
                return Some(Wanted::Swarm(Share { id, secret, named }));
            }
            Some(Request::Begin { id, holding }) => {
                self.begin(id, Begun { held: holding.into(), carry: None });
            }
            Some(Request::Carry { id, holding, key }) => {
                self.begin(id, Begun { held: holding.into(), carry: Some(key) });
            }
            Some(Request::Checking { id }) => {
                if let Some(waiting) = lock(&self.waiting).get(&id) {
                    let _ = waiting.send(None);
                }
            }
            Some(Request::Values { .. }) => {}
            Some(Request::Put { id, .. } | Request::PutOpening { id, .. }) => {
                let text = "this server only serves: `fontis receive` takes what is sent";
                self.respond(&Response::Error { id, text: text.to_owned() });
            }
            None => {
                let remote = self.connection.remote_addr();
                let what = "an unreadable request";
                self.connection.close(0, what);
                let error = TransferError::Protocol { remote, what }.to_string();
                events(ServerEvent::Failed { remote, error });
            }
        }
        None
    }

    fn begin(&self, id: u32, begun: Begun) {
        if let Some(waiting) = lock(&self.waiting).remove(&id) {
            let _ = waiting.send(Some(begun));
        }
    }

    fn refuse(&self, wanted: &Wanted, text: &str) {
        self.respond(&Response::Error { id: wanted.claim().0, text: text.to_owned() });
    }

    fn respond(&self, response: &Response) {
        self.connection.answer(encode(response));
    }

    /// Waits until the client has said which part of an object it holds. It may take its time as
    /// long as it gives signs of life.
    async fn begun(
        &self,
        id: u32,
        mut said: mpsc::UnboundedReceiver<Option<Begun>>,
        patience: Duration,
    ) -> Result<Begun, TransferError> {
        let connection = &self.connection;
        loop {
            tokio::select! {
                biased;
                next = task::timeout(patience, said.recv()) => match next {
                    Ok(Some(Some(begun))) => return Ok(begun),
                    Ok(Some(None)) => {}
                    Ok(None) => return Err(lost(connection)),
                    Err(_) => {
                        lock(&self.waiting).remove(&id);
                        let text = "nothing was heard of the part that is held".to_owned();
                        self.respond(&Response::Error { id, text });
                        return Err(TransferError::Stalled { remote: connection.remote_addr() });
                    }
                },
                _ = connection.closed() => return Err(lost(connection)),
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a client is told: strangers do not learn what there is.
fn text_of(error: &TransferError) -> String {
    match error {
        TransferError::Source(
            SourceError::NotFound { .. }
            | SourceError::Outside { .. }
            | SourceError::Unreadable { .. },
        ) => NOT_HERE.to_owned(),
        other => other.to_string(),
    }
}

async fn answer(
    shared: &Arc<Shared>,
    client: &Client,
    Get { id, path, resume, .. }: Get,
    pass: &Arc<Pass>,
    patience: Duration,
    events: &(impl Fn(ServerEvent) + Send + Sync),
) -> Result<(), TransferError> {
    let connection = &client.connection;
    let remote = connection.remote_addr();
    let respond = |response: &Response| client.respond(response);
    let begin = moment::now();
    let opened = {
        let (shared, path) = (shared.clone(), path.clone());
        let turn = pass.turn().await;
        let work = move || turn.run(|| open(&shared, &path, resume));
        let (opened, turn) = task::blocking(work).await.map_err(|_| TransferError::Worker)?;
        // Its turn does not end before there is room for what was found.
        let room = match &opened {
            Ok(outgoing) => pass.room(outgoing.source.manifest().entries().len()).await,
            Err(_) => None,
        };
        turn.end(pass.clone());
        opened.map(|outgoing| (outgoing, room))
    };
    let (outgoing, _room) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            respond(&Response::Error { id, text: text_of(&error) });
            return Err(error);
        }
    };
    let (say, said) = mpsc::unbounded_channel();
    if resume {
        lock(&client.waiting).insert(id, say);
    }
    match &outgoing.tree {
        Tree::Known(tree) => {
            let offer = outgoing.offer(tree)?;
            let manifest = offer.manifest.clone();
            let pieces = encode_around(&Response::Offer { id, offer }, &manifest);
            connection.send_pieces(pieces, SendOptions { priority: 0, ..SendOptions::default() });
        }
        Tree::Unknown(state) => {
            let opening = outgoing.opening(*state)?;
            let manifest = opening.manifest.clone();
            let pieces = encode_around(&Response::Opening { id, opening }, &manifest);
            connection.send_pieces(pieces, IN_TURN);
        }
    }
    let begun = if resume { client.begun(id, said, patience).await? } else { Begun::default() };
    let Begun { held, carry } = begun;
    let resumed = outgoing.held_bytes(&held);
    let name = outgoing.source.manifest().name().to_owned();
    let bytes = outgoing.source.size();
    events(ServerEvent::Started { remote, name: name.clone(), bytes: Some(bytes) });
    let mut counted = connection.stats().await.unwrap_or_default();
    let _sending = pass.sending(bytes).await;
    let sending_patience = Some(patience * PATIENCE_SENDING);
    let told = |_, stats| counted = stats;
    let (tree, sctp) = match (carry, &outgoing.tree, &shared.sctp) {
        (None, ..) => {
            let sending =
                outgoing.send(connection, id, held, Response::values, sending_patience, told);
            (sending.await?, None)
        }
        (Some(key), Tree::Known(tree), Some(carrier)) => {
            let patience = patience * PATIENCE_SENDING;
            let sent = carrier.send(connection, id, &outgoing, &held, &key, patience).await;
            if let Err(error) = &sent {
                respond(&Response::Error { id, text: error.to_string() });
            }
            (tree.clone(), Some(sent?))
        }
        (Some(_), ..) => {
            let text = NOT_OVER_SCTP.to_owned();
            respond(&Response::Error { id, text: text.clone() });
            return Err(TransferError::Refused { remote, text });
        }
    };
    if matches!(outgoing.tree, Tree::Unknown(_)) {
        shared.trees.put(&outgoing.source, tree.clone());
    }
    let report = Report {
        name,
        path: None,
        bytes,
        resumed,
        hash: tree.root().to_hex().to_string(),
        duration: moment::now() - begin,
        stats: connection.stats().await.unwrap_or(counted),
        sctp,
        left_out: outgoing.source.left_out().clone(),
    };
    events(ServerEvent::Finished { remote, report: Box::new(report) });
    Ok(())
}

/// Opens the requested object. A client with a part of it needs its hash at once.
fn open(shared: &Shared, path: &str, resume: bool) -> Result<Outgoing, TransferError> {
    let only = |object: Outgoing| {
        let is_meant = path.is_empty() || path == object.source.manifest().name();
        let missing = || SourceError::NotFound { path: path.into() };
        is_meant.then_some(object).ok_or_else(missing)
    };
    let root = match &shared.root {
        Root::Folder(root) => root,
        Root::Cast(caster) => {
            let missing = || SourceError::NotFound { path: path.into() };
            let (source, tree) = caster.object().cloned().ok_or_else(missing)?;
            return Ok(only(Outgoing { source, tree: Tree::Known(tree) })?);
        }
        Root::Object(object) => return Ok(only(object.clone())?),
    };
    let path = if path.is_empty() { "." } else { path };
    let source = Source::beneath_with(root, &name::to_path(path), &shared.options)?;
    let known = shared.trees.get(&source).map(Tree::Known);
    let tree = match known.or_else(|| Tree::unknown(&source).filter(|_| !resume)) {
        Some(tree) => tree,
        None => Tree::Known(shared.trees.hash_tree(&source, |_| {})?),
    };
    Ok(Outgoing { source: Arc::new(source), tree })
}
