use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fontis_proto::dfcp::{MAX_EARLY, SendOptions};

use super::incoming::{Incoming, Prepared, Values};
use super::message::{Announced, Holding, Request, Response, decode, encode, label, safe_text};
use super::outgoing::{CODE_COMPLETE, CODE_UNWANTED, close, lost};
use super::{Progress, Report, TransferError, connect};
use crate::connection::Connection;
use crate::dest::Dest;
use crate::endpoint::Endpoint;
use crate::sink::{Sink, SinkOptions};
use crate::url::Url;

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
    let begin = Instant::now();
    let id = 0;
    // What was left may belong to another object; whether it does is known only when this one has
    // been offered.
    let resume = !options.restart && Sink::is_begun(dest, url.name());
    let path = url.path.clone().unwrap_or_default();
    let request = encode(&Request::Get { id, path, resume });
    let early = (request.len() <= MAX_EARLY).then(|| request.clone());
    let sent = early.is_some();
    let key = *url.key.as_bytes();
    let connection = connect(endpoint, remote, key, early, &progress).await?;
    // What is to go on is expected when its part here is known.
    connection.transfers_only((!resume).then(|| label(id)));
    progress(Progress::Connected { remote });
    if !sent {
        connection.send_message(request, SendOptions::default());
    }
    let options = SinkOptions { overwrite: options.overwrite, restart: !resume };
    let fetched = fetch(&connection, id, url.name(), dest, options, begin, &progress).await;
    close(&connection, if fetched.is_ok() { CODE_COMPLETE } else { 0 }).await;
    fetched
}

async fn fetch(
    connection: &Connection,
    id: u32,
    name: Option<&str>,
    dest: &Dest,
    options: SinkOptions,
    begin: Instant,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<Report, TransferError> {
    let remote = connection.remote_addr();
    let answer = answered(connection, id).await?;
    if !options.restart && matches!(answer, Announced::Opening(_)) {
        let what = "an object that is to go on begins anew";
        return Err(TransferError::Protocol { remote, what });
    }
    let prepare = {
        let (name, dest) = (name.map(str::to_owned), dest.clone());
        move || Incoming::prepare(remote, &answer, name.as_deref(), &dest, options)
    };
    let (Prepared { incoming, manifest, kept }, object) = if options.restart {
        // The content follows the offer at once.
        let object = connection.recv_object().await.ok_or_else(|| lost(connection))?;
        match tokio::task::spawn_blocking(prepare).await.map_err(|_| TransferError::Worker)? {
            Ok(prepared) => (prepared, object),
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
        let holding = Holding::from(&prepared.kept.held(&prepared.incoming.shape()));
        connection.expect_object(label(id), prepared.kept.clone());
        connection.send_message(encode(&Request::Begin { id, holding }), SendOptions::default());
        (prepared, connection.recv_object().await.ok_or_else(|| lost(connection))?)
    };
    drop(kept);
    let shape = object.shape();
    if object.label() != &label(id) || !incoming.fits(shape) {
        return Err(TransferError::Protocol {
            remote,
            what: "the object is not the one that was offered",
        });
    }
    let entries = manifest.entries().len();
    let name = manifest.name().to_owned();
    let resumed = incoming.stored();
    progress(Progress::Started { name: name.clone(), bytes: shape.size, entries, resumed });
    let moved = |done, stats| progress(Progress::Moved { done, stats });
    let (path, hash, stats) = incoming.receive(connection, id, object, Values::Told, moved).await?;
    let (bytes, duration) = (shape.size, begin.elapsed());
    Ok(Report { name, path, bytes, resumed, hash, duration, stats })
}

/// Runs `work` on a worker thread, and calls `alive` every few seconds until it is done: the peer
/// must not take it for silence.
pub(super) async fn meanwhile<T: Send + 'static>(
    alive: impl Fn(),
    work: impl FnOnce() -> Result<T, TransferError> + Send + 'static,
) -> Result<T, TransferError> {
    let mut work = tokio::task::spawn_blocking(work);
    loop {
        match tokio::time::timeout(ALIVE_EVERY, &mut work).await {
            Ok(done) => return done.map_err(|_| TransferError::Worker)?,
            Err(_) => alive(),
        }
    }
}

/// The server's answer to request `id`.
async fn answered(connection: &Connection, id: u32) -> Result<Announced, TransferError> {
    let remote = connection.remote_addr();
    loop {
        let message = connection.recv_message().await.ok_or_else(|| lost(connection))?;
        match decode::<Response>(&message.data) {
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
