use std::sync::Arc;

use fontis_proto::dfcp::{CloseReason, Kept};
use tokio::sync::oneshot;

use super::group::{FIRST_SOUND, Listening};
use super::swarm::{Swarm, SwarmEvent, send};
use super::wire::{SwarmWire, blocks};
use super::{download, upload};
use crate::connection::Connection;
use crate::task;
use crate::transfer::TransferError;
use crate::transfer::message::{Response, decode, encode, label};
use crate::transfer::outgoing::{CODE_COMPLETE, CODE_UNWANTED, IN_TURN, lost};

/// Bytes of a message beside the bits of blocks, at most.
const MOST_BYTES: u64 = 64 << 10;

/// A connection that becomes a swarm's.
pub(super) struct Joining {
    pub(super) connection: Connection,
    /// Whether this side has connected.
    pub(super) is_ours: bool,
    /// Told when the other node has everything.
    pub(super) complete: Option<oneshot::Sender<()>>,
}

/// A node that asks to take part.
pub(in crate::transfer) struct Newcomer {
    pub(in crate::transfer) connection: Connection,
    /// The number of its request.
    pub(in crate::transfer) id: u32,
    /// Whether it knows the object by its hash, and so has its hashes.
    pub(in crate::transfer) knows: bool,
    /// Told when it has everything.
    pub(in crate::transfer) complete: Option<oneshot::Sender<()>>,
}

impl Swarm {
    /// Takes a node in until it leaves; an error unless it had everything by then.
    pub(in crate::transfer) async fn admit(
        self: &Arc<Self>,
        newcomer: Newcomer,
    ) -> Result<(), TransferError> {
        let Newcomer { connection, id, knows, complete } = newcomer;
        let response = match knows {
            true => Response::Sharing { id },
            false => Response::Offer { id, offer: self.offer.clone() },
        };
        connection.send_message(encode(&response), IN_TURN);
        self.serve(Joining { connection, is_ours: false, complete }).await
    }

    /// Serves a neighbour until its connection ends; an error unless it then has everything, or
    /// this side has left.
    pub(super) async fn serve(self: &Arc<Self>, joining: Joining) -> Result<(), TransferError> {
        let Joining { connection, is_ours, complete } = joining;
        let remote = connection.remote_addr();
        let joined = {
            let mut state = self.state();
            let joined = state.join(&connection, is_ours, complete);
            joined.map(|(id, replaced)| (id, replaced, state.hello()))
        };
        let (id, replaced, hello) = match joined {
            Ok(joined) => joined,
            Err(text) => {
                connection.close(0, text);
                return Err(TransferError::Refused { remote, text: text.to_owned() });
            }
        };
        if let Some(old) = replaced {
            old.close(0, "there is another connection");
        }
        connection.stay();
        connection.skip_checkpoints();
        send(hello.into_iter().map(|letter| (connection.clone(), letter)).collect());
        let listening = if is_ours { None } else { self.invite(&connection) };
        self.tell(SwarmEvent::Met(remote));
        self.introduce(id, &connection);
        let objects = async {
            while let Some(object) = connection.recv_object().await {
                let label = object.label().as_ref().try_into().map(u32::from_be_bytes);
                let object = match label {
                    Ok(upload) => self.state().opened(id, upload, object),
                    Err(_) => Some(object),
                };
                if let Some(object) = object {
                    object.abandon(CODE_UNWANTED);
                }
            }
        };
        let messages = self.listen(id, &connection, listening);
        let heard = tokio::select! {
            biased;
            heard = messages => heard,
            () = objects => Err(lost(&connection)),
        };
        let (is_served, is_over) = {
            let mut state = self.state();
            (state.part(id), state.is_over)
        };
        self.wake();
        // Who has everything says so when it leaves.
        let complete = Some(CODE_COMPLETE);
        let said = connection.close_reason().and_then(|reason| match reason {
            CloseReason::Peer { code, .. } => Some(code),
            _ => None,
        });
        let ended = if is_served || is_over || said == complete { Ok(()) } else { heard };
        if ended.is_err() {
            connection.close(0, "");
        }
        ended
    }

    /// Tells a neighbour of others.
    fn introduce(&self, id: u32, connection: &Connection) {
        let contacts = self.state().contacts_for(id);
        if let Some(contacts) = contacts {
            send(vec![(connection.clone(), contacts)]);
        }
    }

    async fn listen(
        self: &Arc<Self>,
        id: u32,
        connection: &Connection,
        mut listening: Option<Listening>,
    ) -> Result<(), TransferError> {
        let mut is_invited = false;
        let remote = connection.remote_addr();
        let wrong = |what| TransferError::Protocol { remote, what };
        let most = self.tree.block_count() / 8 + MOST_BYTES;
        while let Some(message) = connection.recv_message().await {
            self.state().heard(id);
            if message.data.len() as u64 > most {
                return Err(wrong("a message that is too long"));
            }
            let message =
                decode::<SwarmWire>(&message.data).ok_or(wrong("an unreadable message"))?;
            match message {
                SwarmWire::Has(bits) => {
                    if bits.len() as u64 != self.tree.block_count().div_ceil(8) {
                        return Err(wrong("blocks of another object"));
                    }
                    self.state().learn(id, blocks(&bits));
                }
                SwarmWire::News(news) => self.state().hear(id, news),
                SwarmWire::Offer { upload, block } => {
                    let considered = self.state().consider(id, upload, block);
                    match considered.ok_or(wrong("an offer that makes no sense"))? {
                        Ok(expected) => {
                            connection.expect_object(label(upload), Kept::default());
                            send(vec![(connection.clone(), SwarmWire::Take { upload })]);
                            let (swarm, connection) = (self.clone(), connection.clone());
                            task::spawn(download::run(swarm, connection, expected));
                        }
                        Err(reason) => {
                            let refusal = SwarmWire::Refuse { upload, reason };
                            send(vec![(connection.clone(), refusal)]);
                        }
                    }
                }
                SwarmWire::Take { upload } => {
                    let taken = {
                        let mut state = self.state();
                        state.taken(id, upload).map(|block| (block, state.uploads_took.patience()))
                    };
                    if let Some((block, patience)) = taken {
                        let (swarm, connection) = (self.clone(), connection.clone());
                        task::spawn(async move {
                            let sent =
                                upload::run(&swarm, &connection, (id, upload), block, patience);
                            let delivered = sent.await;
                            swarm.state().uploaded(id, upload, delivered);
                            swarm.wake();
                        });
                    }
                }
                SwarmWire::Refuse { upload, reason } => self.state().refused(id, upload, reason),
                SwarmWire::Ending { upload } => self.state().is_ending(id, upload),
                SwarmWire::Meet(contacts) => self.state().remember(contacts),
                // Who listens where others say sends reports where they say: only the server may.
                SwarmWire::Invite(invitation)
                    if self.home == Some(connection.peer_key()) && !is_invited =>
                {
                    is_invited = true;
                    // One that was invited over an earlier connection listens still.
                    let listens = self.state().listens();
                    if listens {
                        send(vec![(connection.clone(), SwarmWire::Unheard)]);
                    } else {
                        self.state().listen(FIRST_SOUND);
                        task::spawn(self.clone().listen_in(connection.clone(), invitation));
                    }
                }
                SwarmWire::Invite(_) => return Err(wrong("an invitation that nobody asked for")),
                SwarmWire::Unheard => drop(listening.take()),
                SwarmWire::Lonely => self.introduce(id, connection),
            }
            self.wake();
        }
        Err(lost(connection))
    }
}
