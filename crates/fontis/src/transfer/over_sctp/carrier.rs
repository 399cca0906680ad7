use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fontis_proto::dfcp::{CloseReason, Held, SendOptions};
use fontis_proto::sctp::{CodingConfig, SctpConfig, SctpData, SctpSend, SctpStats};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::super::TransferError;
use super::super::message::{Response, encode};
use super::super::outgoing::{CODE_COMPLETE, Outgoing, lost, shape};
use super::record::{CLIENT, Record, SERVER, Token, token};
use super::throttle::Throttle;
use super::{PORT, TOKEN_BUFFER, config};
use crate::connection::Connection;
use crate::hash_tree::block_size_for;
use crate::protection::Seal;
use crate::sctp::{SctpEndpoint, SctpListener, SctpStream};
use crate::task;

/// How long an association may take to say whose it is.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// How long a client may take to make its association.
const SET_UP: Duration = Duration::from_secs(40);

/// Sends objects over SCTP, from a server.
pub(in super::super) struct SctpCarrier {
    /// The UDP port that clients connect to.
    port: u16,
    expected: Arc<Expected>,
    accepting: AbortHandle,
}

impl Drop for SctpCarrier {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The associations that clients have announced, by their tokens.
#[derive(Default)]
struct Expected(Mutex<HashMap<Token, oneshot::Sender<SctpStream>>>);

impl Expected {
    fn waiting(&self) -> MutexGuard<'_, HashMap<Token, oneshot::Sender<SctpStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SctpCarrier {
    /// Begins to accept the associations of clients, to which it sends with a code if there is one.
    pub(in super::super) fn start(
        endpoint: &SctpEndpoint,
        coding: Option<CodingConfig>,
    ) -> io::Result<Self> {
        let config = SctpConfig { coding, ..config([PORT, 0], TOKEN_BUFFER)? };
        let listener = endpoint.listen(config);
        let port = endpoint.local_addrs()?.first().map_or(0, std::net::SocketAddr::port);
        let expected = Arc::new(Expected::default());
        let accepting = tokio::spawn(accept(listener, expected.clone())).abort_handle();
        Ok(Self { port, expected, accepting })
    }

    /// Sends what of an object is not held, and returns when the client has verified and stored
    /// everything. It may take `patience` to take something.
    pub(in super::super) async fn send(
        &self,
        connection: &Connection,
        id: u32,
        outgoing: &Outgoing,
        held: &Held,
        key: &[u8; 32],
        patience: Duration,
    ) -> Result<SctpStats, TransferError> {
        let remote = connection.remote_addr();
        let stream = self.meet(connection, id, key).await?;
        connection.carries();
        let throttle = Throttle::new(connection);
        let sent = tokio::select! {
            biased;
            reason = connection.closed() => Err(reason),
            sent = send_all(&stream, throttle, outgoing, held, key, patience) => Ok(sent),
        };
        let sent = match sent {
            Ok(Some(Ok(()))) => Ok(connection.closed().await),
            Ok(Some(Err(error))) => Err(error),
            Ok(None) => Err(TransferError::Stalled { remote }),
            // It had everything that it lacked.
            Err(reason) => Ok(reason),
        };
        let stats = stream.stats();
        match sent {
            Ok(CloseReason::Peer { code: CODE_COMPLETE, .. }) => {
                stream.abort();
                Ok(stats)
            }
            Ok(_) => {
                stream.abort();
                Err(lost(connection))
            }
            // Closed and not broken off, it says that no more comes.
            Err(error) => Err(error),
        }
    }

    /// Waits for the association that belongs to a key.
    async fn meet(
        &self,
        connection: &Connection,
        id: u32,
        key: &[u8; 32],
    ) -> Result<SctpStream, TransferError> {
        let remote = connection.remote_addr();
        let token = token(key);
        let (hand, handed) = oneshot::channel();
        self.expected.waiting().insert(token, hand);
        connection.stay();
        let answer = encode(&Response::Carried { id, port: self.port });
        connection.send_message(answer, SendOptions::default());
        let stream = tokio::select! {
            biased;
            _ = connection.closed() => Err(lost(connection)),
            handed = task::timeout(SET_UP, handed) => match handed {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(_)) | Err(_) => Err(TransferError::Stalled { remote }),
            },
        };
        self.expected.waiting().remove(&token);
        stream
    }
}

/// Sends the records of all blocks that are not held; `None` if the client takes nothing.
async fn send_all(
    stream: &SctpStream,
    mut throttle: Throttle<'_>,
    outgoing: &Outgoing,
    held: &Held,
    key: &[u8; 32],
    patience: Duration,
) -> Option<Result<(), TransferError>> {
    let mut seal = Seal::new(key, [SERVER, CLIENT]);
    let size = outgoing.source.size();
    let shape = shape(size, block_size_for(size));
    let is_held = |block: &u32| held.done().iter().any(|run| run.contains(block));
    for block in (0..shape.blocks().unwrap_or(0)).filter(|block| !is_held(block)) {
        let data = match outgoing.read(shape, block, false).await {
            Ok((data, _)) => data,
            Err(error) => return Some(Err(error)),
        };
        for record in Record::all(block, &data) {
            let send = SctpSend { is_unordered: true, ..SctpSend::default() };
            let record = seal.seal(&record.encode());
            throttle.take(record.len()).await;
            let sending = stream.send(send, record);
            // An association that is over has a connection that is, or will be.
            if task::timeout(patience, sending).await.ok()?.is_err() {
                return None;
            }
        }
    }
    Some(Ok(()))
}

/// Hands associations to those who expect them.
async fn accept(mut listener: SctpListener, expected: Arc<Expected>) {
    while let Some(stream) = listener.accept().await {
        let expected = expected.clone();
        tokio::spawn(async move {
            let first = task::timeout(INTRODUCTION, stream.recv()).await;
            let token = match first {
                Ok(Ok(Some(message))) => match message.data {
                    SctpData::Bytes(bytes) => Token::try_from(&bytes[..]).ok(),
                    SctpData::Counted(_) => None,
                },
                _ => None,
            };
            let waiting = token.and_then(|token| expected.waiting().remove(&token));
            match waiting {
                Some(hand) => drop(hand.send(stream)),
                None => stream.abort(),
            }
        });
    }
}
