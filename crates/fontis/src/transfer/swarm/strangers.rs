//! Connections to nodes that others have introduced.

use std::sync::{Arc, Weak};
use std::time::Duration;

use fontis_proto::dfcp::SendOptions;

use super::edge::Joining;
use super::swarm::Swarm;
use super::wire::Contact;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::task;
use crate::transfer::TransferError;
use crate::transfer::get::answered;
use crate::transfer::message::{Announced, Named, Request, Response, decode, encode, safe_text};
use crate::transfer::outgoing::lost;

/// Neighbours that a node looks for.
const WANTED: usize = 24;
/// The time for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Attempts at once.
const ATTEMPTS: usize = 4;
/// The interval at which there may be somebody new.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The numbers of a connection's request for an object by its hash, and for that by its path.
const ID: u32 = 0;
const BY_PATH: u32 = 1;

/// The server that was asked for the object first.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) contact: Contact,
    pub(super) path: String,
}

/// Connects to others as long as there are some and the swarm goes on.
pub(super) async fn meet(swarm: Weak<Swarm>, endpoint: Endpoint, home: Home, secret: Vec<u8>) {
    let attempts = Arc::new(tokio::sync::Semaphore::new(ATTEMPTS));
    loop {
        let Ok(attempt) = attempts.clone().acquire_owned().await else { return };
        let Some(node) = swarm.upgrade() else { return };
        let stranger = {
            let mut state = node.state();
            if state.is_over {
                return;
            }
            let wants = state.edges.len() < WANTED && !state.policy.is_complete();
            if wants { state.stranger() } else { None }
        };
        let Some(stranger) = stranger else {
            drop((attempt, node));
            task::sleep(LOOK_EVERY).await;
            continue;
        };
        let (endpoint, home, secret) = (endpoint.clone(), home.clone(), secret.clone());
        task::spawn(async move {
            let asked = ask(&node, &endpoint, stranger, &home, secret);
            let asked = task::timeout(ANSWER, asked).await;
            drop(attempt);
            if let Ok(Ok(connection)) = asked {
                let joining = Joining { connection, is_ours: true, complete: None };
                // Who leaves is told of there.
                let _ = node.serve(joining).await;
            }
        });
    }
}

async fn ask(
    swarm: &Swarm,
    endpoint: &Endpoint,
    Contact { address, key }: Contact,
    home: &Home,
    secret: Vec<u8>,
) -> Result<Connection, TransferError> {
    let connection = endpoint.connect(address, key, None).await?;
    connection.transfers_only(None);
    let named = Named::Root(*swarm.tree.root().as_bytes());
    let request = Request::Share { id: ID, secret: secret.clone(), named };
    connection.send_message(encode(&request), SendOptions::default());
    let remote = connection.remote_addr();
    let message = connection.recv_message().await.ok_or_else(|| lost(&connection))?;
    match decode::<Response>(&message.data) {
        Some(Response::Sharing { id: ID }) => Ok(connection),
        // A server that has begun anew does not know the object by its hash.
        Some(Response::Error { .. }) if key == home.contact.key => {
            let named = Named::Path(home.path.clone());
            let request = Request::Share { id: BY_PATH, secret, named };
            connection.send_message(encode(&request), SendOptions::default());
            match answered(&connection, BY_PATH).await? {
                Announced::Offer(offer) if swarm.is_of(&offer) => Ok(connection),
                _ => Err(TransferError::Protocol { remote, what: "another object" }),
            }
        }
        Some(Response::Error { text, .. }) => {
            Err(TransferError::Refused { remote, text: safe_text(&text) })
        }
        _ => Err(TransferError::Protocol { remote, what: "no answer to a request" }),
    }
}
