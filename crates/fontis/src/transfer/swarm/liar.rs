//! A node of another make: it offers every block, and sends what it likes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fontis_proto::dfcp::{CloseReason, Held, SendOptions};

use super::wire::{Reason, SwarmWire, bits};
use crate::connection::{Connection, SendProgress};
use crate::endpoint::Endpoint;
use crate::hash_tree::HashTree;
use crate::task;
use crate::transfer::message::{Named, Request, Response, decode, encode, label};
use crate::transfer::outgoing::{IN_TURN, shape};

/// A node that lies.
#[derive(Clone)]
pub(crate) struct Liar {
    pub(crate) endpoint: Endpoint,
    pub(crate) tree: Arc<HashTree>,
    pub(crate) content: Arc<Vec<u8>>,
    /// Whether it offers what it says to have.
    pub(crate) offers: bool,
}

/// What a node has done to a liar.
#[derive(Clone, Debug, Default)]
pub(crate) struct Treatment {
    /// Wrong blocks that it took for right.
    pub(crate) believed: u32,
    /// The most wrong copies of a block that it took one after another.
    pub(crate) copies: u32,
    /// The end of the connection.
    pub(crate) end: Option<CloseReason>,
}

/// Asks the node at `node` to be let into the swarm of `root`, as request 7; `None` if it does not.
pub(super) async fn intrude(
    own: &Endpoint,
    (address, key): (SocketAddr, [u8; 32]),
    root: [u8; 32],
) -> Option<Connection> {
    let connection = own.connect(address, key, None).await.ok()?;
    connection.transfers_only(None);
    let request = Request::Share { id: 7, secret: Vec::new(), named: Named::Root(root) };
    connection.send_message(encode(&request), SendOptions::default());
    let answer = connection.recv_message().await?;
    let is_in = decode::<Response>(&answer.data) == Some(Response::Sharing { id: 7 });
    is_in.then_some(connection)
}

pub(super) fn say(connection: &Connection, message: &SwarmWire) {
    connection.send_message(encode(message), IN_TURN);
}

impl Liar {
    /// Joins at a node, and lies until it is parted from; `lies` decides of each copy of a block
    /// whether it is wrong. `None` if it is not let in.
    pub(crate) async fn lie_to(
        &self,
        node: (SocketAddr, [u8; 32]),
        lies: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Option<Treatment> {
        let connection = intrude(&self.endpoint, node, *self.tree.root().as_bytes()).await?;
        let treatment = Arc::new(Mutex::new(Treatment::default()));
        self.lie(&connection, lies, &treatment).await;
        let mut treatment = treatment.lock().unwrap_or_else(PoisonError::into_inner).clone();
        treatment.end = connection.close_reason();
        Some(treatment)
    }

    /// Lies over a connection until it ends.
    pub(super) async fn lie(
        &self,
        connection: &Connection,
        lies: impl Fn() -> bool + Clone + Send + 'static,
        treatment: &Arc<Mutex<Treatment>>,
    ) {
        let blocks = self.tree.block_count() as u32;
        say(connection, &SwarmWire::Has(bits(0..blocks, blocks)));
        if self.offers {
            for block in 0..blocks {
                say(connection, &SwarmWire::Offer { upload: block, block });
            }
        }
        while let Some(message) = connection.recv_message().await {
            let connection = connection.clone();
            match decode(&message.data) {
                Some(SwarmWire::Take { upload }) => {
                    let (own, lies, treatment) = (self.clone(), lies.clone(), treatment.clone());
                    task::spawn(async move {
                        own.send(&connection, upload, upload % blocks, lies, &treatment).await;
                    });
                }
                Some(SwarmWire::Refuse { upload, reason: Reason::Full }) => {
                    let again =
                        SwarmWire::Offer { upload: upload + blocks, block: upload % blocks };
                    task::spawn(async move {
                        task::sleep(Duration::from_secs(1)).await;
                        say(&connection, &again);
                    });
                }
                _ => {}
            }
        }
    }

    async fn send(
        &self,
        connection: &Connection,
        upload: u32,
        block: u32,
        lies: impl Fn() -> bool,
        treatment: &Mutex<Treatment>,
    ) {
        let treatment = || treatment.lock().unwrap_or_else(PoisonError::into_inner);
        let size = self.tree.block_size() as usize;
        let start = block as usize * size;
        let true_one = &self.content[start..start + self.tree.block_len(u64::from(block))];
        let shape = shape(true_one.len() as u64, self.tree.block_size());
        let options = SendOptions::default();
        let object = connection.send_object(shape, label(upload), options, Held::default());
        let Some(mut object) = object.await else { return };
        let (mut is_wrong, mut copies) = (false, 0);
        while let Some(progress) = object.next().await {
            match progress {
                SendProgress::Wanted(_) => {
                    copies = if is_wrong { copies + 1 } else { 0 };
                    is_wrong = lies();
                    let mut bytes = true_one.to_vec();
                    if is_wrong {
                        bytes[0] ^= 1;
                    }
                    object.supply(0, Bytes::from(bytes));
                    let mut treatment = treatment();
                    treatment.copies = treatment.copies.max(copies + u32::from(is_wrong));
                }
                SendProgress::Delivered => treatment().believed += u32::from(is_wrong),
                SendProgress::Abandoned(_) => {}
            }
        }
    }
}
