use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fontis_base::{Ecn, Time};
use fontis_proto::dccp::{Carrier, DccpBody, DccpConfig, DccpPacket};
use quinn_udp::RecvMeta;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;

use crate::udp::{Leaves, SharedSocket, Trains};

/// A socket, its clock, and the connections over it.
pub(super) struct DccpSocket {
    /// Of UDP, or of DCCP's own protocol over IPv4.
    pub(super) io: SharedSocket,
    /// This end's address, without UDP: the checksum covers it.
    plain: Option<Ipv4Addr>,
    begin: Instant,
    connections: Mutex<Connections>,
    /// Bytes that may wait for all connections and their applications.
    room: Arc<Semaphore>,
}

type Connections = HashMap<Ends, mpsc::Sender<Held<Incoming>>>;

/// A packet that has arrived, and whether the network marked it.
pub(super) type Incoming = (DccpPacket, bool);

/// What waits, with the room that it takes until it is dropped.
pub(super) struct Held<T> {
    pub(super) content: T,
    _room: OwnedSemaphorePermit,
}

/// Bytes that peers may make a socket hold.
const MOST_HELD: usize = 64 << 20;
/// The longest packet of IP that is tried if the configuration names none.
const ETHERNET: u32 = 1500;
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
    pub(super) fn new(io: SharedSocket, plain: Option<Ipv4Addr>) -> Self {
        let room = Arc::new(Semaphore::new(MOST_HELD));
        Self { io, plain, begin: Instant::now(), connections: Mutex::default(), room }
    }

    /// The address of a peer as packets come from it: without UDP it has no port.
    pub(super) const fn peer(&self, peer: SocketAddr) -> SocketAddr {
        match self.plain {
            Some(_) => SocketAddr::new(peer.ip(), 0),
            None => peer,
        }
    }

    /// The configuration of a connection with `peer`, with the bytes that its headers have below
    /// DCCP's.
    pub(super) fn fit(&self, peer: SocketAddr, config: &DccpConfig) -> DccpConfig {
        let ip = if peer.ip().to_canonical().is_ipv4() { 20 } else { 40 };
        let headers_below = ip + if self.plain.is_some() { 0 } else { 8 };
        let most_packet = if config.most_packet == 0 { ETHERNET } else { config.most_packet };
        DccpConfig { headers_below, most_packet, ..config.clone() }
    }

    /// Reads a datagram, and says where it comes from. `None` if it is no packet of DCCP.
    pub(super) fn decode(
        &self,
        meta: &RecvMeta,
        datagram: &[u8],
    ) -> Option<(SocketAddr, DccpPacket)> {
        let Some(own) = self.plain else {
            return Some((meta.addr, DccpPacket::decode(Carrier::Udp, datagram).ok()?));
        };
        let IpAddr::V4(peer) = meta.addr.ip() else { return None };
        let carrier = Carrier::Ip { source: peer.to_bits(), destination: own.to_bits() };
        let packet = DccpPacket::decode(carrier, below_ip(datagram)?).ok()?;
        Some((self.peer(meta.addr), packet))
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

    /// Adds a datagram that is no packet of DCCP; without UDP there are none.
    pub(super) fn add_raw(&self, trains: &mut Trains, peer: SocketAddr, datagram: &[u8]) {
        if self.plain.is_none() {
            let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(datagram);
            self.io.add(trains, peer, None, Ecn::NotEct, Leaves::Alone, write);
        }
    }

    /// Adds a packet to those that are to be sent.
    pub(super) fn add(&self, trains: &mut Trains, peer: SocketAddr, packet: &DccpPacket, ecn: Ecn) {
        let (carrier, leaves) = match (self.plain, peer.ip()) {
            // Syncs may be longer than the system lets out.
            (None, _) if matches!(packet.body, DccpBody::Sync { .. }) => {
                (Carrier::Udp, Leaves::Alone)
            }
            (None, _) => (Carrier::Udp, Leaves::Together),
            (Some(own), IpAddr::V4(peer)) => {
                let carrier = Carrier::Ip { source: own.to_bits(), destination: peer.to_bits() };
                (carrier, Leaves::Alone)
            }
            // There is no way to it.
            (Some(_), IpAddr::V6(_)) => return,
        };
        let write = |bytes: &mut Vec<u8>| packet.encode(carrier, bytes);
        self.io.add(trains, peer, None, ecn, leaves, write);
    }
}

/// The content of a packet of IPv4.
fn below_ip(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    packet.get(header..total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn peers_cannot_make_a_socket_hold_more_than_its_room() {
        let udp = SharedSocket::bind("127.0.0.1:0".parse().expect("an address"), None);
        let udp = udp.expect("a socket");
        let socket = DccpSocket::new(udp, None);
        let mut held: Vec<Held<()>> = std::iter::from_fn(|| socket.hold((), 60_000)).collect();
        assert_eq!(held.len(), MOST_HELD / (60_000 + PACKET));
        held.pop();
        assert!(socket.hold((), 60_000).is_some(), "what was taken gives its room back");
    }

    #[test]
    fn the_content_of_an_ip_packet_ends_where_its_header_says() {
        // A header of six words, three bytes, and what a link added.
        let mut packet = vec![0x46, 0, 0, 27];
        packet.resize(24, 0);
        packet.extend([7, 8, 9, 0, 0]);
        assert_eq!(below_ip(&packet), Some(&[7, 8, 9][..]));
        packet[3] = 23;
        assert_eq!(below_ip(&packet), None);
        packet[3] = 60;
        assert_eq!(below_ip(&packet), None);
        assert_eq!(below_ip(&[0x45]), None);
    }
}
