use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fontis_base::Time;
use fontis_proto::dccp::{Carrier, DccpPacket};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// A UDP socket, its clock, and the connections over it.
pub(super) struct DccpSocket {
    pub(super) udp: UdpSocket,
    begin: Instant,
    connections: Mutex<Connections>,
}

type Connections = HashMap<Ends, mpsc::Sender<DccpPacket>>;

/// What tells the connections of a socket apart (RFC 6773 section 3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ends {
    pub(super) peer: SocketAddr,
    pub(super) peer_port: u16,
    pub(super) port: u16,
}

/// The task that reads a socket. It ends when this is dropped.
pub(super) struct Reader(pub(super) AbortHandle);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl DccpSocket {
    pub(super) fn new(udp: UdpSocket) -> Self {
        Self { udp, begin: Instant::now(), connections: Mutex::default() }
    }

    /// The time since the socket was bound. It is never zero, so that what is due at zero is due.
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64 + 1)
    }

    pub(super) fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn send(&self, peer: SocketAddr, packet: &DccpPacket) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(packet.header_len() + packet.data.len());
        packet.encode(Carrier::Udp, &mut bytes);
        match self.udp.send_to(&bytes, peer).await {
            // A peer whose port is closed may open it yet; the handshake knows how long to wait.
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(error),
            _ => Ok(()),
        }
    }
}
