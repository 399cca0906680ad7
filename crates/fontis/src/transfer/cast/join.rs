use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use fontis_proto::dfcp::{DfcpStats, MAX_EARLY, SendOptions};
use tokio::sync::mpsc;

use super::assembler::{Destination, Heard, Received};
use super::invitation::Invitation;
use super::listener::{Listener, Stopper};
use super::one_way::group_secret;
use super::seal::Signer;
use crate::connection::Connection;
use crate::dest::Dest;
use crate::endpoint::Endpoint;
use crate::sink::SinkOptions;
use crate::transfer::get::{ID, get};
use crate::transfer::message::{Request, Response, decode, encode, safe_text};
use crate::transfer::outgoing::{CODE_COMPLETE, close, lost};
use crate::transfer::{Progress, Report, TransferError, connect};
use crate::udp::GroupInterface;
use crate::url::Url;

/// The way in which a receiver took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// By the group.
    Group,
    /// By a connection of its own: nothing came from the group.
    Unicast,
}

/// A sender speaks at least twice a second, also while it waits for receivers.
const FIRST_SOUND: Duration = Duration::from_millis(1500);
/// The longest silence in the middle.
const SILENCE: Duration = Duration::from_secs(30);

/// Receives what the server at `remote` casts to a group, and returns when it is verified and has
/// its name. If nothing comes from the group, it is fetched over the connection instead.
///
/// # Errors
/// As [`get`]; [`TransferError::Silent`] if the group falls silent.
pub async fn join(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    interface: Option<GroupInterface>,
    dest: &Dest,
    options: SinkOptions,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<(Report, Joined), TransferError> {
    let begin = Instant::now();
    let path = url.path.clone().unwrap_or_default();
    let secret = url.secret.as_ref().map_or_else(Vec::new, |secret| secret.as_bytes().to_vec());
    let request = encode(&Request::Join { id: ID, secret, path });
    let early = (request.len() <= MAX_EARLY).then(|| request.clone());
    let sent = early.is_some();
    let connection = connect(endpoint, remote, *url.key.as_bytes(), early, &progress).await?;
    progress(Progress::Connected { remote });
    // By its end the sender learns who has left, and a receiver that the sender has.
    connection.stay();
    if !sent {
        connection.send_message(request, SendOptions::default());
    }
    let invitation = invited(&connection).await?;
    if *dest == Dest::Stdout && !invitation.is_stream() {
        close(&connection, 0).await;
        return Err(TransferError::Unordered);
    }
    let interface = match interface {
        Some(interface) => interface,
        None => GroupInterface::towards(remote)
            .map_err(|source| TransferError::Group { group: invitation.group, source })?,
    };
    let destination = Destination {
        name: url.name().map(str::to_owned),
        dest: dest.clone(),
        options: options.clone(),
    };
    let received = take_part(&connection, &invitation, interface, destination, &progress).await;
    close(&connection, if matches!(received, Ok(Some(_))) { CODE_COMPLETE } else { 0 }).await;
    let Some(received) = received? else {
        if invitation.is_stream() {
            return Err(TransferError::Silent { group: invitation.group });
        }
        let report = get(endpoint, remote, url, dest, options, progress).await?;
        return Ok((report, Joined::Unicast));
    };
    Ok((report_of(received, begin), Joined::Group))
}

/// The sender's answer.
pub(super) async fn invited(connection: &Connection) -> Result<Invitation, TransferError> {
    let remote = connection.remote_addr();
    loop {
        let message = connection.recv_message().await.ok_or_else(|| lost(connection))?;
        match decode::<Response>(&message.data) {
            Some(Response::Invite { id: ID, invitation }) => return Ok(invitation),
            Some(Response::Error { id: ID, text }) => {
                return Err(TransferError::Refused { remote, text: safe_text(&text) });
            }
            Some(_) => {}
            None => return Err(TransferError::Protocol { remote, what: "an unreadable message" }),
        }
    }
}

/// Receives what a sender that takes no answers casts to the group of `url`, and returns when it is
/// verified and has its name. It waits for the sender without limit.
///
/// # Errors
/// [`TransferError::Unfinished`] if the sender ends, or falls silent, before everything came; what
/// came is kept.
pub async fn join_one_way(
    group: SocketAddr,
    url: &Url,
    interface: GroupInterface,
    dest: &Dest,
    options: SinkOptions,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Report, TransferError> {
    let begin = Instant::now();
    let Some(secret) = &url.secret else { return Err(TransferError::NoSecret) };
    let destination =
        Destination { name: url.name().map(str::to_owned), dest: dest.clone(), options };
    let (tell, mut told) = mpsc::unbounded_channel();
    let keys = (group_secret(secret), Signer(*url.key.as_bytes()));
    let (listener, _stopper) = Listener::one_way(group, interface, keys, destination, tell)?;
    let mut running = pin!(tokio::task::spawn_blocking(move || listener.run()));
    let mut has_heard = false;
    let received = loop {
        tokio::select! {
            biased;
            Some(heard) = told.recv() => match heard {
                Heard::Alive if !has_heard => {
                    has_heard = true;
                    progress(Progress::Connected { remote: group });
                }
                heard => tell_of(heard, &progress),
            },
            outcome = &mut running => break outcome.map_err(|_| TransferError::Worker)??,
        }
    };
    let received = received.ok_or(TransferError::Silent { group })?;
    Ok(report_of(received, begin))
}

fn report_of(received: Received, begin: Instant) -> Report {
    let Received { name, path, bytes, resumed, hash, left_out } = received;
    let (duration, stats) = (begin.elapsed(), DfcpStats::default());
    Report { name, path, bytes, resumed, hash, duration, stats, sctp: None, left_out }
}

fn tell_of(heard: Heard, progress: &(impl Fn(Progress) + Send + Sync)) {
    match heard {
        Heard::Alive => {}
        Heard::Started { name, bytes, entries, resumed } => {
            progress(Progress::Started { name, bytes, entries, resumed });
        }
        Heard::Gaps { blocks } => progress(Progress::Gaps { blocks }),
        Heard::Forged { from, packets } => progress(Progress::Forged { from, packets }),
        Heard::Moved { done } => progress(Progress::Moved { done, stats: DfcpStats::default() }),
    }
}

/// Receives from the group; `None` if nothing comes from it at all.
async fn take_part(
    connection: &Connection,
    invitation: &Invitation,
    interface: GroupInterface,
    destination: Destination,
    progress: &(impl Fn(Progress) + Send + Sync),
) -> Result<Option<Received>, TransferError> {
    let group = invitation.group;
    let (tell, mut told) = mpsc::unbounded_channel();
    let remote = connection.remote_addr();
    let (listener, stopper): (_, Stopper) =
        Listener::invited(invitation, remote, interface, destination, tell)?;
    let mut running = pin!(tokio::task::spawn_blocking(move || listener.run()));
    let mut patience = FIRST_SOUND;
    let mut has_heard = false;
    let outcome = loop {
        tokio::select! {
            biased;
            heard = told.recv() => {
                match heard {
                    Some(Heard::Alive) => (patience, has_heard) = (SILENCE, true),
                    Some(heard) => tell_of(heard, progress),
                    None => break (&mut running).await,
                }
            }
            outcome = &mut running => break outcome,
            _ = connection.closed() => {
                // The sender has gone; what is still on its way is little.
                drop(stopper);
                let _ = running.await;
                return Err(lost(connection));
            }
            () = tokio::time::sleep(patience) => {
                drop(stopper);
                let _ = running.await;
                return if has_heard { Err(TransferError::Silent { group }) } else { Ok(None) };
            }
        }
    };
    drop(stopper);
    outcome.map_err(|_| TransferError::Worker)?
}
