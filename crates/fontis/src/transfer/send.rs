use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fontis_proto::dfcp::{Held, SendOptions};

use super::get::meanwhile;
use super::message::{Request, Response, decode, encode, safe_text};
use super::outgoing::{Outgoing, Tree, close, lost};
use super::pieces::encode_around;
use super::{Progress, Report, TransferError, connect};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::left_out::LeftOut;
use crate::moment;
use crate::source::{Source, SourceOptions};
use crate::task;
use crate::url::Url;

/// Sends files and folders, one after another, to the receiver that printed `url`; returns when the
/// last is verified and stored there. Of folders what `options` say is sent. [`Progress::Stored`]
/// reports on each. What is large is hashed while it is sent.
pub async fn send(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    paths: &[PathBuf],
    options: &SourceOptions,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<(), TransferError> {
    let secret = url.secret.as_ref().ok_or(TransferError::NoSecret)?.as_bytes().to_vec();
    // What cannot be read should fail before anybody is bothered.
    let mut sources = Vec::new();
    for path in paths {
        sources.push(open(path.clone(), options.clone()).await?);
    }
    let connection = connect(endpoint, remote, *url.key.as_bytes(), None, &progress).await?;
    connection.transfers_only(None);
    progress(Progress::Connected { remote });
    for (id, outgoing) in (0..).zip(sources) {
        match send_one(&connection, id, &secret, outgoing, &progress).await {
            Ok(report) => progress(Progress::Stored(Box::new(report))),
            Err(error) => {
                close(&connection, 0).await;
                return Err(error);
            }
        }
    }
    close(&connection, 0).await;
    Ok(())
}

async fn open(path: PathBuf, options: SourceOptions) -> Result<Outgoing, TransferError> {
    let open = move |path: &Path| {
        let source = Source::open_with(path, &options)?;
        let tree = match Tree::unknown(&source) {
            Some(tree) => tree,
            None => Tree::of(&source)?,
        };
        Ok(Outgoing { source: Arc::new(source), tree })
    };
    task::blocking(move || open(&path)).await.map_err(|_| TransferError::Worker)?
}

/// Asks the receiver to take an object; returns its held part.
async fn ask(
    connection: &Connection,
    id: u32,
    secret: &[u8],
    outgoing: &Outgoing,
) -> Result<Asked, TransferError> {
    let secret = secret.to_vec();
    let (request, manifest) = match &outgoing.tree {
        Tree::Known(tree) => {
            let offer = outgoing.offer(tree)?;
            let manifest = offer.manifest.clone();
            (Request::Put { id, secret, offer }, manifest)
        }
        Tree::Unknown(state) => {
            let opening = outgoing.opening(*state)?;
            let manifest = opening.manifest.clone();
            (Request::PutOpening { id, secret, opening }, manifest)
        }
    };
    let urgent = SendOptions { priority: 0, ..SendOptions::default() };
    connection.send_pieces(encode_around(&request, &manifest), urgent);
    let asked = |response| match response {
        Response::Accept { id: of, holding } if of == id => Some(Asked::For(Held::from(holding))),
        Response::Hash { id: of } if of == id => Some(Asked::ToHash),
        _ => None,
    };
    await_response(connection, id, asked).await
}

/// A request of a receiver.
enum Asked {
    /// The blocks that it does not hold.
    For(Held),
    /// The object's hash: it may have some of it.
    ToHash,
}

async fn send_one(
    connection: &Connection,
    id: u32,
    secret: &[u8],
    mut outgoing: Outgoing,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<Report, TransferError> {
    let begin = moment::now();
    let mut asked = ask(connection, id, secret, &outgoing).await?;
    if let (Asked::ToHash, Tree::Unknown(_)) = (&asked, &outgoing.tree) {
        let source = outgoing.source.clone();
        let alive = || {
            let message = encode(&Request::Checking { id });
            connection.send_message(message, SendOptions::default());
        };
        outgoing.tree = meanwhile(alive, move || Ok(Tree::of(&source)?)).await?;
        asked = ask(connection, id, secret, &outgoing).await?;
    }
    let Asked::For(held) = asked else {
        let (remote, what) = (connection.remote_addr(), "it wants the hash of what it was offered");
        return Err(TransferError::Protocol { remote, what });
    };
    let resumed = outgoing.held_bytes(&held);
    let manifest = outgoing.source.manifest();
    let bytes = outgoing.source.size();
    let (name, entries) = (manifest.name().to_owned(), manifest.entries().len());
    progress(Progress::Started { name: name.clone(), bytes, entries, resumed });
    let mut counted = connection.stats().await.unwrap_or_default();
    let sending = outgoing.send(connection, id, held, Request::values, None, |done, stats| {
        counted = stats;
        progress(Progress::Moved { done, stats });
    });
    let is_stored = |response| match response {
        Response::Stored { id: of, links, names, attributes } if of == id => {
            Some((links, names, attributes))
        }
        _ => None,
    };
    // The receiver's own words say more than that it gave up.
    let tree = match sending.await {
        Ok(tree) => tree,
        Err(error @ TransferError::Abandoned { .. }) => {
            let told = await_response(connection, id, is_stored);
            return Err(match task::timeout(Duration::from_secs(2), told).await {
                Ok(Err(refused @ TransferError::Refused { .. })) => refused,
                _ => error,
            });
        }
        Err(error) => return Err(error),
    };
    let stats = connection.stats().await.unwrap_or(counted);
    let (links, names, attributes) = await_response(connection, id, is_stored).await?;
    let left_out = LeftOut { links, names, attributes, ..outgoing.source.left_out().clone() };
    progress(Progress::Moved { done: bytes, stats });
    Ok(Report {
        name,
        path: None,
        bytes,
        resumed,
        hash: tree.root().to_hex().to_string(),
        duration: moment::now() - begin,
        stats,
        sctp: None,
        left_out,
    })
}

async fn await_response<T>(
    connection: &Connection,
    id: u32,
    wanted: impl Fn(Response) -> Option<T>,
) -> Result<T, TransferError> {
    let remote = connection.remote_addr();
    loop {
        let message = connection.recv_message().await.ok_or_else(|| lost(connection))?;
        match decode::<Response>(&message.data) {
            Some(Response::Error { id: of, text }) if of == id => {
                return Err(TransferError::Refused { remote, text: safe_text(&text) });
            }
            Some(response) => {
                if let Some(found) = wanted(response) {
                    return Ok(found);
                }
            }
            None => return Err(TransferError::Protocol { remote, what: "an unreadable message" }),
        }
    }
}
