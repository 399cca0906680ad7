use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fontis_proto::dfcp::{MAX_EARLY, SendOptions};

use super::coming::Coming;
use super::incoming::{Incoming, Prepared, Stored, Values};
use super::message::{Announced, Holding, Request, Response, encode, label, safe_text};
use super::outgoing::{CODE_COMPLETE, CODE_UNWANTED, close, lost};
use super::over_sctp::CarriedBlocks;
use super::pieces::decode_sharing;
use super::{Progress, Report, TransferError, connect};
use crate::connection::Connection;
use crate::dest::Dest;
use crate::endpoint::{Endpoint, LocalInterface};
use crate::manifest;
use crate::moment;
use crate::sink::{Sink, SinkOptions};
use crate::task;
use crate::url::Url;

/// The number of the only request of a connection.
pub(super) const ID: u32 = 0;
/// The interval of signs of life to a waiting peer.
const ALIVE_EVERY: Duration = Duration::from_secs(5);

/// Fetches what `url` names from the server at `remote`, and returns when it is verified and has
/// its name.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use fontis::transfer;
/// use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, Url};
///
/// let identity = Identity::generate();
/// let config = EndpointConfig::new(*identity.secret());
/// let endpoint = Endpoint::bind("0.0.0.0:0".parse()?, config)?;
/// let url: Url = "fontis://example.org:4433/map.tif?key=…".parse()?;
/// let remote = transfer::resolve(&url).await?[0];
/// let (dest, options) = (Dest::new("."), SinkOptions::default());
/// let report = transfer::get(&endpoint, remote, &url, &dest, options, |_| {}).await?;
/// println!("{} bytes, BLAKE3 {}", report.bytes, report.hash);
/// # Ok(())
/// # }
/// ```
pub async fn get(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    dest: &Dest,
    options: SinkOptions,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, TransferError> {
    get_by(endpoint, None, remote, url, dest, options, progress).await
}

/// The same, with the content over SCTP, for servers that have it ([`FileServer::with_sctp`]). The
/// association has a path from each of `interfaces`, and all of them carry; without any there is
/// one, and the system chooses its interface. The connection carries the rest, and the key that
/// the content is encrypted with.
///
/// [`FileServer::with_sctp`]: super::FileServer::with_sctp
pub async fn get_over_sctp(
    endpoint: &Endpoint,
    interfaces: &[LocalInterface],
    remote: SocketAddr,
    url: &Url,
    dest: &Dest,
    options: SinkOptions,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, TransferError> {
    get_by(endpoint, Some(interfaces), remote, url, dest, options, progress).await
}

async fn get_by(
    endpoint: &Endpoint,
    sctp: Option<&[LocalInterface]>,
    remote: SocketAddr,
    url: &Url,
    dest: &Dest,
    options: SinkOptions,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, TransferError> {
    let begin = moment::now();
    // What was left may belong to another object; whether it does is known only when this one has
    // been offered.
    let is_begun = !options.restart && Sink::is_begun(dest, url.name());
    // Of what is excluded the server is to hear before it sends; what comes over SCTP is offered
    // first.
    let waits = is_begun || !options.exclusions.is_empty() || sctp.is_some();
    let connection = request(endpoint, remote, url, waits, &progress).await?;
    let options = SinkOptions { restart: !is_begun, ..options };
    let way = Way { waits, sctp };
    let fetched = fetch(&connection, way, url.name(), dest, options, begin, &progress).await;
    close(&connection, if fetched.is_ok() { CODE_COMPLETE } else { 0 }).await;
    fetched
}

/// How the content comes.
#[derive(Clone, Copy)]
struct Way<'a> {
    /// Not before this side has said what it has.
    waits: bool,
    /// Over SCTP, from these interfaces.
    sctp: Option<&'a [LocalInterface]>,
}

/// Connects, and asks for what `url` names. With `resume` the content comes when this side has said
/// what it has or does not want; otherwise at once.
pub(super) async fn request(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    resume: bool,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<Connection, TransferError> {
    let path = url.path.clone().unwrap_or_default();
    let secret = url.secret.as_ref().map_or_else(Vec::new, |secret| secret.as_bytes().to_vec());
    let request = encode(&Request::Get { id: ID, secret, path, resume });
    let early = (request.len() <= MAX_EARLY).then(|| request.clone());
    let sent = early.is_some();
    let connection = connect(endpoint, remote, *url.key.as_bytes(), early, progress).await?;
    // What is to go on is expected when its part here is known.
    connection.transfers_only((!resume).then(|| label(ID)));
    progress(Progress::Connected { remote });
    if !sent {
        connection.send_message(request, SendOptions::default());
    }
    Ok(connection)
}

async fn fetch(
    connection: &Connection,
    Way { waits, sctp }: Way<'_>,
    name: Option<&str>,
    dest: &Dest,
    options: SinkOptions,
    begin: Instant,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<Report, TransferError> {
    let (id, remote) = (ID, connection.remote_addr());
    let answer = answered(connection, id).await?;
    if waits && matches!(answer, Announced::Opening(_)) {
        let what = "an object that is to go on begins anew";
        return Err(TransferError::Protocol { remote, what });
    }
    if name.is_none() && has_hidden_name(&answer) {
        let what = "a hidden name that nobody asked for";
        return Err(TransferError::Protocol { remote, what });
    }
    let prepare = {
        let (name, dest) = (name.map(str::to_owned), dest.clone());
        move || Incoming::prepare(remote, &answer, name.as_deref(), &dest, options)
    };
    let (Prepared { incoming, manifest, kept }, object) = if !waits {
        // The content follows the offer at once.
        let object = connection.recv_object().await.ok_or_else(|| lost(connection))?;
        match task::blocking(prepare).await.map_err(|_| TransferError::Worker)? {
            Ok(prepared) => (prepared, Coming::Object(object)),
            Err(error) => {
                object.abandon(CODE_UNWANTED);
                return Err(error);
            }
        }
    } else {
        let checking = || {
            let message = encode(&Request::Checking { id });
            connection.send_message(message, SendOptions::default());
        };
        let prepared = meanwhile(checking, prepare).await?;
        let shape = prepared.incoming.shape();
        let held = prepared.kept.held(&shape);
        let coming = match sctp {
            Some(interfaces) => {
                let blocks = CarriedBlocks::ask(connection, id, shape, &held, interfaces);
                Coming::Carried(Box::new(blocks.await?))
            }
            None => {
                let holding = Holding::from(&held);
                connection.expect_object(label(id), prepared.kept.clone());
                let begin = encode(&Request::Begin { id, holding });
                connection.send_message(begin, SendOptions::default());
                Coming::Object(connection.recv_object().await.ok_or_else(|| lost(connection))?)
            }
        };
        (prepared, coming)
    };
    drop(kept);
    let shape = object.shape();
    let is_other = matches!(&object, Coming::Object(object) if object.label() != &label(id));
    if is_other || !incoming.fits(shape) {
        return Err(TransferError::Protocol {
            remote,
            what: "the object is not the one that was offered",
        });
    }
    let entries = manifest.entries().len();
    let name = manifest.name().to_owned();
    let spared = incoming.spared();
    let (bytes, resumed) = (shape.size - spared, incoming.stored() - spared);
    progress(Progress::Started { name: name.clone(), bytes, entries, resumed });
    let moved = |done, stats| progress(Progress::Moved { done: done - spared, stats });
    let stored = incoming.receive(connection, id, object, Values::Told, moved).await?;
    let duration = moment::now() - begin;
    let Stored { path, hash, stats, sctp, left_out } = stored;
    Ok(Report { name, path, bytes, resumed, hash, duration, stats, sctp, left_out })
}

/// Returns true if the server's name for the object begins with a dot. In a home folder such a file
/// can be a program's configuration.
pub(super) fn has_hidden_name(announced: &Announced) -> bool {
    manifest::name_in(announced.manifest()).is_some_and(|name| name.starts_with('.'))
}

/// Runs `work` on a worker thread, and calls `alive` every few seconds until it is done: the peer
/// must not take it for silence.
pub(super) async fn meanwhile<T: Send + 'static>(
    alive: impl Fn(),
    work: impl FnOnce() -> Result<T, TransferError> + Send + 'static,
) -> Result<T, TransferError> {
    let mut work = task::blocking(work);
    loop {
        match task::timeout(ALIVE_EVERY, &mut work).await {
            Ok(done) => return done.map_err(|_| TransferError::Worker)?,
            Err(_) => alive(),
        }
    }
}

/// The server's answer to request `id`.
pub(super) async fn answered(connection: &Connection, id: u32) -> Result<Announced, TransferError> {
    let remote = connection.remote_addr();
    loop {
        let message = connection.recv_message().await.ok_or_else(|| lost(connection))?;
        match decode_sharing::<Response>(&message.data) {
            Some(Response::Offer { id: of, offer }) if of == id => {
                return Ok(Announced::Offer(offer));
            }
            Some(Response::Opening { id: of, opening }) if of == id => {
                return Ok(Announced::Opening(opening));
            }
            Some(Response::Error { id: of, text }) if of == id => {
                return Err(TransferError::Refused { remote, text: safe_text(&text) });
            }
            Some(_) => {}
            None => return Err(TransferError::Protocol { remote, what: "an unreadable message" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Offer;
    use super::*;
    use crate::endpoint::{Accept, EndpointConfig};
    use crate::hash_tree::HashTree;
    use crate::identity::Identity;
    use crate::manifest::{Entry, EntryKind, Manifest, Modified};

    #[tokio::test]
    async fn a_server_does_not_choose_a_hidden_name() {
        let identity = Identity::generate();
        let bind = |identity: &Identity, accept| {
            let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
            Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
        };
        let server = bind(&identity, Accept::Anyone);
        let client = bind(&Identity::generate(), Accept::None);
        let remote = server.local_addr();
        tokio::spawn(async move {
            while let Some(connection) = server.accept().await {
                connection.recv_message().await;
                let kind = EntryKind::file(3);
                let (path, modified) = (String::new(), Modified::default());
                let entry = Entry { path, kind, mode: 0o644, modified, extra: None };
                let tree = HashTree::of_reader(&b"abc"[..], 1024, |_| ()).unwrap();
                let offer = Offer {
                    root: *tree.root().as_bytes(),
                    size: 3,
                    block_size: 1024,
                    manifest: Manifest::new(".profile", vec![entry])
                        .unwrap()
                        .encode()
                        .unwrap()
                        .into(),
                    tree: tree.to_bytes(),
                    state: None,
                };
                let offer = encode(&Response::Offer { id: 0, offer });
                connection.send_message(offer, SendOptions::default());
                connection.closed().await;
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let url: Url = format!("fontis://{remote}/?key={}", identity.public()).parse().unwrap();
        let dest = Dest::new(folder.path());
        let got = get(&client, remote, &url, &dest, SinkOptions::default(), |_| {});
        let got =
            tokio::time::timeout(Duration::from_secs(20), got).await.expect("an error at once");
        assert!(got.unwrap_err().to_string().contains("hidden name"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
