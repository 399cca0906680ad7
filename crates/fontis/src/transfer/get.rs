use std::net::SocketAddr;
use std::time::Instant;

use fontis_proto::dfcp::{MAX_EARLY, SendOptions};

use super::incoming::Incoming;
use super::message::{Offer, Request, Response, decode, encode, label, safe_text};
use super::outgoing::{CODE_COMPLETE, CODE_UNWANTED, close, lost};
use super::{Progress, Report, TransferError};
use crate::{Connection, Dest, Endpoint, Url};

/// How something is fetched.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetOptions {
    /// Whether what is at the destination is replaced.
    pub overwrite: bool,
}

/// Fetches what `url` names from the server at `remote`, and returns when it is verified and has its name.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use fontis::transfer::{self, GetOptions};
/// use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, Url};
///
/// let identity = Identity::generate();
/// let config = EndpointConfig {
///     secret: *identity.secret(),
///     psk: None,
///     transport: Default::default(),
///     accept: Accept::None,
///     qlog: None,
/// };
/// let endpoint = Endpoint::bind("0.0.0.0:0".parse()?, config)?;
/// let url: Url = "fontis://example.org:4433/map.tif?key=…".parse()?;
/// let remote = transfer::resolve(&url).await?[0];
/// let report = transfer::get(&endpoint, remote, &url, &Dest::new("."), GetOptions::default(), |_| {}).await?;
/// println!("{} bytes, BLAKE3 {}", report.bytes, report.hash);
/// # Ok(())
/// # }
/// ```
pub async fn get(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    dest: &Dest,
    options: GetOptions,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, TransferError> {
    let begin = Instant::now();
    let id = 0;
    let request = encode(&Request::Get { id, path: url.path.clone().unwrap_or_default() });
    let early = (request.len() <= MAX_EARLY).then(|| request.clone());
    let sent = early.is_some();
    let connection = endpoint.connect(remote, *url.key.as_bytes(), early).await?;
    progress(Progress::Connected { remote });
    if !sent {
        connection.send_message(request, SendOptions::default());
    }
    let fetched = fetch(&connection, id, url.name(), dest, options, begin, &progress).await;
    close(&connection, if fetched.is_ok() { CODE_COMPLETE } else { 0 }).await;
    fetched
}

async fn fetch(
    connection: &Connection,
    id: u32,
    name: Option<&str>,
    dest: &Dest,
    options: GetOptions,
    begin: Instant,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<Report, TransferError> {
    let remote = connection.remote_addr();
    let offer = offered(connection, id).await?;
    let object = connection.recv_object().await.ok_or_else(|| lost(connection))?;
    let prepared = {
        let (name, dest) = (name.map(str::to_owned), dest.clone());
        tokio::task::spawn_blocking(move || {
            Incoming::prepare(remote, &offer, name.as_deref(), &dest, options.overwrite)
        })
        .await
        .map_err(|_| TransferError::Worker)?
    };
    let (incoming, manifest) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            object.abandon(CODE_UNWANTED);
            return Err(error);
        }
    };
    let shape = object.shape();
    if object.label() != &label(id) || !incoming.fits(shape) {
        return Err(TransferError::Protocol {
            remote,
            what: "the object is not the one that was offered",
        });
    }
    let entries = manifest.entries().len();
    let name = manifest.name().to_owned();
    progress(Progress::Started { name: name.clone(), bytes: shape.size, entries });
    let hash = incoming.hash();
    let moved = |done, stats| progress(Progress::Moved { done, stats });
    let (path, stats) = incoming.receive(connection, object, moved).await?;
    Ok(Report { name, path, bytes: shape.size, hash, duration: begin.elapsed(), stats })
}

/// The server's answer to request `id`.
async fn offered(connection: &Connection, id: u32) -> Result<Offer, TransferError> {
    let remote = connection.remote_addr();
    loop {
        let message = connection.recv_message().await.ok_or_else(|| lost(connection))?;
        match decode::<Response>(&message.data) {
            Some(Response::Offer { id: of, offer }) if of == id => return Ok(offer),
            Some(Response::Error { id: of, text }) if of == id => {
                return Err(TransferError::Refused { remote, text: safe_text(&text) });
            }
            Some(_) => {}
            None => return Err(TransferError::Protocol { remote, what: "an unreadable message" }),
        }
    }
}
