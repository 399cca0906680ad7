//! Clients that take part in a cast or in a swarm.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fontis_proto::dfcp::CloseReason;
use tokio::sync::oneshot;

use super::{Client, Root, Shared, open, text_of};
use crate::moment;
use crate::task;
use crate::transfer::message::{NOT_HERE, Named, Response};
use crate::transfer::outgoing::CODE_COMPLETE;
use crate::transfer::swarm::{Newcomer, Swarm};
use crate::transfer::wanted::{Join, Share};
use crate::transfer::{Report, ServerEvent, TransferError};

impl Client {
    /// Takes a client into the group, until it leaves.
    pub(super) async fn invite(
        &self,
        shared: &Shared,
        Join { id, path, .. }: Join,
        events: &(impl Fn(ServerEvent) + Send + Sync),
    ) {
        let remote = self.connection.remote_addr();
        let refuse = |text: &str| {
            self.respond(&Response::Error { id, text: text.to_owned() });
            events(ServerEvent::Failed { remote, error: text.to_owned() });
        };
        let Root::Cast(caster) = &shared.root else {
            return refuse("nothing is cast to a group here: use `fontis get`");
        };
        let name = caster.name().to_owned();
        if !path.is_empty() && path != name {
            return refuse(NOT_HERE);
        }
        if self.has_joined.swap(true, Ordering::Relaxed) {
            return refuse("this connection takes part already");
        }
        let begin = moment::now();
        let invitation = caster.join();
        let member = invitation.member();
        self.respond(&Response::Invite { id, invitation });
        events(ServerEvent::Started { remote, name, bytes: caster.bytes() });
        let reason = self.connection.closed().await;
        caster.leave(member);
        if matches!(reason, CloseReason::Peer { code: CODE_COMPLETE, .. }) {
            let report = Box::new(caster.report(begin));
            events(ServerEvent::Finished { remote, report });
        } else {
            let error = format!("left before it had everything: {reason}");
            events(ServerEvent::Failed { remote, error });
        }
    }

    /// Takes a client into the swarm of an object, until it leaves.
    pub(super) async fn admit(
        &self,
        shared: &Arc<Shared>,
        Share { id, named, .. }: Share,
        events: &(impl Fn(ServerEvent) + Send + Sync),
    ) {
        let begin = moment::now();
        let remote = self.connection.remote_addr();
        let fail = |text: &str, error: String| {
            self.respond(&Response::Error { id, text: text.to_owned() });
            events(ServerEvent::Failed { remote, error });
        };
        let knows = matches!(named, Named::Root(_));
        let swarm = match named {
            Named::Root(root) => shared.swarms.find(&root),
            Named::Path(path) => match found(shared, self, path).await {
                Ok(swarm) => Some(swarm),
                Err(error) => return fail(text_of(&error).as_str(), error.to_string()),
            },
        };
        let Some(swarm) = swarm else {
            return fail(NOT_HERE, "an object that nobody shares was asked for".to_owned());
        };
        let (name, bytes) = (swarm.name(), swarm.size());
        events(ServerEvent::Started { remote, name: name.clone(), bytes: Some(bytes) });
        let (complete, completed) = oneshot::channel();
        let connection = self.connection.clone();
        let newcomer = Newcomer { connection, id, knows, complete: Some(complete) };
        let mut served = pin!(swarm.admit(newcomer));
        let ended = tokio::select! {
            biased;
            Ok(()) = completed => None,
            served = &mut served => Some(served),
        };
        match &ended {
            Some(Err(error)) => events(ServerEvent::Failed { remote, error: error.to_string() }),
            Some(Ok(())) | None => {
                let report = Report {
                    name,
                    path: None,
                    bytes,
                    resumed: 0,
                    hash: swarm.hash(),
                    duration: moment::now() - begin,
                    stats: self.connection.stats().await.unwrap_or_default(),
                    sctp: None,
                    left_out: swarm.left_out(),
                };
                events(ServerEvent::Finished { remote, report: Box::new(report) });
                if ended.is_none() {
                    // It may go on to send to others.
                    let _ = served.await;
                }
            }
        }
    }
}

/// The swarm of the object at a path.
async fn found(
    shared: &Arc<Shared>,
    client: &Client,
    path: String,
) -> Result<Arc<Swarm>, TransferError> {
    let connection = &client.connection;
    let pass = shared.gate.enter(connection.peer_key());
    let pass = pass.ok_or(TransferError::NoRoom { remote: connection.remote_addr() })?;
    let turn = pass.turn().await;
    let shared = shared.clone();
    let work = move || turn.run(|| open(&shared, &path, true).and_then(|o| shared.swarms.of(&o)));
    let (swarm, turn) = task::blocking(work).await.map_err(|_| TransferError::Worker)?;
    turn.end(pass);
    swarm
}
