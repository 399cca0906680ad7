use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fontis_proto::dfcp::{Held, SendOptions};

use super::message::{Request, Response, decode, encode, safe_text};
use super::outgoing::{Outgoing, Tree, close, lost};
use super::{Progress, Report, TransferError};
use crate::{Connection, Endpoint, HashTree, Source, Url};

/// Sends files and folders, one after another, to the receiver that printed `url`; returns when the last is verified
/// and stored there. [`Progress::Stored`] reports on each.
pub async fn send(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    paths: &[PathBuf],
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<(), TransferError> {
    let secret = url.secret.as_ref().ok_or(TransferError::NoSecret)?.as_bytes().to_vec();
    // What cannot be read should fail before anybody is bothered.
    let mut sources = Vec::new();
    for path in paths {
        sources.push(open(path.clone()).await?);
    }
    let connection = endpoint.connect(remote, *url.key.as_bytes(), None).await?;
    progress(Progress::Connected { remote });
    for (id, (outgoing, tree)) in (0..).zip(&sources) {
        match send_one(&connection, id, &secret, outgoing, tree, &progress).await {
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

async fn open(path: PathBuf) -> Result<(Outgoing, Arc<HashTree>), TransferError> {
    let open = move |path: &Path| {
        let source = Source::open(path)?;
        let tree = Arc::new(source.hash_tree(|_| {})?);
        Ok((Outgoing { source: Arc::new(source), tree: Tree::Known(tree.clone()) }, tree))
    };
    tokio::task::spawn_blocking(move || open(&path)).await.map_err(|_| TransferError::Worker)?
}

async fn send_one(
    connection: &Connection,
    id: u32,
    secret: &[u8],
    outgoing: &Outgoing,
    tree: &HashTree,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<Report, TransferError> {
    let begin = Instant::now();
    let offer = outgoing.offer(tree)?;
    let request = Request::Put { id, secret: secret.to_vec(), offer };
    connection
        .send_message(encode(&request), SendOptions { priority: 0, ..SendOptions::default() });
    let accepted = |response| match response {
        Response::Accept { id: of, holding } if of == id => Some(Held::from(holding)),
        _ => None,
    };
    let held = await_response(connection, id, accepted).await?;
    let resumed = outgoing.held_bytes(&held);
    let manifest = outgoing.source.manifest();
    let bytes = outgoing.source.size();
    let (name, entries) = (manifest.name().to_owned(), manifest.entries().len());
    progress(Progress::Started { name: name.clone(), bytes, entries, resumed });
    let mut counted = connection.stats().await.unwrap_or_default();
    let sending = outgoing.send(connection, id, held, |done, stats| {
        counted = stats;
        progress(Progress::Moved { done, stats });
    });
    let is_stored = |response| (response == Response::Stored { id }).then_some(());
    // The receiver's own words say more than that it gave up.
    if let Err(error) = sending.await {
        let told = await_response(connection, id, is_stored);
        return Err(match tokio::time::timeout(Duration::from_secs(2), told).await {
            Ok(Err(refused @ TransferError::Refused { .. })) => refused,
            _ => error,
        });
    }
    let stats = connection.stats().await.unwrap_or(counted);
    await_response(connection, id, is_stored).await?;
    progress(Progress::Moved { done: bytes, stats });
    Ok(Report {
        name,
        path: None,
        bytes,
        resumed,
        hash: tree.root().to_hex().to_string(),
        duration: begin.elapsed(),
        stats,
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
