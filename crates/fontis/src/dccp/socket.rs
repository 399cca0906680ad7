use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fontis_base::{Ecn, Time};
use fontis_proto::dccp::{Carrier, DccpPacket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::udp::{Leaves, SharedSocket, Trains};

/// A UDP socket, its clock, and the connections over it.
pub(super) struct DccpSocket {
    pub(super) udp: SharedSocket,
    begin: Instant,
    connections: Mutex<Connections>,
    /// Bytes that may wait for all connections and their applications.
    room: Arc<Semaphore>,
}

type Connections = HashMap<Ends, mpsc::Sender<Held<DccpPacket>>>;

/// What waits, with the room that it takes until it is dropped.
pub(super) struct Held<T> {
    pub(super) content: T,
    _room: OwnedSemaphorePermit,
}

/// Bytes that peers may make a socket hold.
const MOST_HELD: usize = 64 << 20;
/// Bytes that a packet takes beside its data.
const PACKET: usize = 512;

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
    pub(super) fn new(udp: SharedSocket) -> Self {
        let room = Arc::new(Semaphore::new(MOST_HELD));
        Self { udp, begin: Instant::now(), connections: Mutex::default(), room }
    }

    /// The time since the socket was bound. It is never zero, so that what is due at zero is due.
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64 + 1)
    }

    /// Takes room for something with `len` bytes of data; `None` if there is none.
    pub(super) fn hold<T>(&self, content: T, len: usize) -> Option<Held<T>> {
        let bytes = u32::try_from(len + PACKET).ok()?;
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes).ok()?;
        Some(Held { content, _room: room })
    }

    pub(super) fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a packet to those that are to be sent.
    pub(super) fn add(&self, trains: &mut Trains, peer: SocketAddr, packet: &DccpPacket) {
        let write = |bytes: &mut Vec<u8>| packet.encode(Carrier::Udp, bytes);
        self.udp.add(trains, peer, None, Ecn::NotEct, Leaves::Together, write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn peers_cannot_make_a_socket_hold_more_than_its_room() {
        let udp = SharedSocket::bind("127.0.0.1:0".parse().expect("an address"), None);
        let udp = udp.expect("a socket");
        let socket = DccpSocket::new(udp);
        let mut held: Vec<Held<()>> = std::iter::from_fn(|| socket.hold((), 60_000)).collect();
        assert_eq!(held.len(), MOST_HELD / (60_000 + PACKET));
        held.pop();
        assert!(socket.hold((), 60_000).is_some(), "what was taken gives its room back");
    }
}
