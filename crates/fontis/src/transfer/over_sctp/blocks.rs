use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use fontis_proto::dfcp::{Held, ObjectShape, SendOptions};
use fontis_proto::sctp::{SctpData, SctpSend, SctpStats};

use super::super::TransferError;
use super::super::message::{Holding, Request, Response, decode, encode, safe_text};
use super::super::outgoing::lost;
use super::gathering::Gathering;
use super::record::{CLIENT, SERVER, token};
use super::{PORT, RECEIVE_BUFFER, config, no_randomness};
use crate::connection::{Connection, Received};
use crate::endpoint::LocalInterface;
use crate::protection::Seal;
use crate::sctp::{SctpEndpoint, SctpStream};
use crate::task;

/// How long the server may take to answer over SCTP.
const SET_UP: Duration = Duration::from_secs(20);

/// The blocks of an object that come over SCTP.
pub(in super::super) struct CarriedBlocks {
    stream: SctpStream,
    seal: Seal,
    gathering: Gathering,
}

impl CarriedBlocks {
    /// Asks for what is not held, and makes the association.
    pub(in super::super) async fn ask(
        connection: &Connection,
        id: u32,
        shape: ObjectShape,
        held: &Held,
        interfaces: &[LocalInterface],
    ) -> Result<Self, TransferError> {
        let remote = connection.remote_addr();
        let what = "blocks that are too long for SCTP";
        let gathering =
            Gathering::new(shape, held).ok_or(TransferError::Protocol { remote, what })?;
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| TransferError::Worker)?;
        let holding = Holding::from(held);
        connection.stay();
        let request = encode(&Request::Carry { id, holding, key });
        connection.send_message(request, SendOptions::default());
        let port = carried(connection, id).await?;
        let peer = SocketAddr::new(remote.ip().to_canonical(), port);
        let failed = |source| TransferError::Sctp { remote: peer, source };
        let endpoint = bind(peer, interfaces).map_err(|error| failed(error.into()))?;
        let config = config([0, PORT], RECEIVE_BUFFER).map_err(no_randomness)?;
        let token = Bytes::copy_from_slice(&token(&key));
        let connecting = endpoint.connect_with(peer, config, SctpSend::default(), token);
        let stream = task::timeout(SET_UP, connecting).await;
        let stream = stream.map_err(|_| TransferError::NoSctp { remote: peer })?;
        let stream = stream.map_err(failed)?;
        let seal = Seal::new(&key, [CLIENT, SERVER]);
        Ok(Self { stream, seal, gathering })
    }

    pub(in super::super) const fn shape(&self) -> ObjectShape {
        self.gathering.shape()
    }

    pub(in super::super) fn stats(&self) -> SctpStats {
        self.stream.stats()
    }

    pub(in super::super) fn abort(self) {
        self.stream.abort();
    }

    /// The next block that is whole.
    pub(in super::super) async fn next(
        &mut self,
        connection: &Connection,
    ) -> Result<Received, TransferError> {
        let remote = connection.remote_addr();
        loop {
            let message = tokio::select! {
                biased;
                message = self.stream.recv() => message,
                _ = connection.closed() => return Err(lost(connection)),
            };
            let bytes = match message {
                Ok(Some(message)) => match message.data {
                    SctpData::Bytes(bytes) => bytes,
                    SctpData::Counted(_) => continue,
                },
                Ok(None) => return Err(TransferError::Abandoned { remote }),
                Err(source) => return Err(TransferError::Sctp { remote, source }),
            };
            // What the server has not sealed is a stranger's.
            let Some((bytes, _)) = self.seal.open(&bytes) else { continue };
            match self.gathering.take(&bytes) {
                Ok(Some((block, data))) => return Ok(Received::Block(block, data)),
                Ok(None) => {}
                Err(what) => return Err(TransferError::Protocol { remote, what }),
            }
        }
    }
}

/// The server's UDP port.
async fn carried(connection: &Connection, id: u32) -> Result<u16, TransferError> {
    let remote = connection.remote_addr();
    loop {
        let message = connection.recv_message().await.ok_or_else(|| lost(connection))?;
        match decode::<Response>(&message.data) {
            Some(Response::Carried { id: of, port }) if of == id => return Ok(port),
            Some(Response::Error { id: of, text }) if of == id => {
                return Err(TransferError::Refused { remote, text: safe_text(&text) });
            }
            Some(_) => {}
            None => return Err(TransferError::Protocol { remote, what: "an unreadable message" }),
        }
    }
}

/// An endpoint with the addresses that lead to `peer`.
fn bind(peer: SocketAddr, interfaces: &[LocalInterface]) -> std::io::Result<SctpEndpoint> {
    let fitting = interfaces.iter().filter(|one| one.address.is_ipv4() == peer.is_ipv4());
    let fitting: Vec<_> =
        fitting.map(|one| (SocketAddr::new(one.address, 0), Some(&*one.name))).collect();
    if !fitting.is_empty() {
        return SctpEndpoint::bind_on(&fitting);
    }
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SctpEndpoint::bind(&[SocketAddr::new(any, 0)])
}
