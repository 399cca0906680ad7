use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use fontis_base::{Ecn, Time};
use fontis_proto::sctp::SctpPacket;
use tokio::task::AbortHandle;

use crate::udp::{Leaves, SharedSocket, Trains};

/// The sockets of an endpoint, and their clock.
pub(super) struct Sockets {
    pub(super) bound: Vec<Bound>,
    begin: Instant,
}

/// The tasks that read the sockets. They end when this is dropped.
pub(super) struct Readers(pub(super) Vec<AbortHandle>);

impl Drop for Readers {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// A socket and its address.
pub(super) struct Bound {
    pub(super) address: SocketAddr,
    pub(super) socket: SharedSocket,
}

/// Packets that wait to be sent, for each socket.
pub(super) struct Departures(Vec<Trains>);

impl Sockets {
    pub(super) fn new(bound: Vec<Bound>) -> Self {
        Self { bound, begin: Instant::now() }
    }

    /// The time since the sockets were bound. It is never zero, so that what is due at zero is due.
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64 + 1)
    }

    /// The number of the socket that sends from `local` to `peer`.
    fn towards(&self, local: IpAddr, peer: IpAddr) -> Option<usize> {
        let exact = self.bound.iter().position(|bound| bound.address.ip() == local);
        exact.or_else(|| self.of_family(peer))
    }

    /// The number of the first socket from which packets to `peer` can leave.
    pub(super) fn of_family(&self, peer: IpAddr) -> Option<usize> {
        let same = |bound: &Bound| bound.address.is_ipv4() == peer.is_ipv4();
        let any = |bound: &Bound| bound.address.is_ipv6() && bound.address.ip().is_unspecified();
        self.bound.iter().position(same).or_else(|| self.bound.iter().position(any))
    }

    pub(super) fn departures(&self) -> Departures {
        Departures(self.bound.iter().map(|_| Trains::default()).collect())
    }

    /// Adds a packet from one address to another.
    pub(super) fn depart(
        &self,
        departures: &mut Departures,
        local: IpAddr,
        to: SocketAddr,
        packet: &SctpPacket,
        (ecn, leaves): (Ecn, Leaves),
    ) {
        // An address that no socket has is a path that is down.
        let Some(number) = self.towards(local, to.ip()) else { return };
        let Bound { address, socket } = &self.bound[number];
        let is_any = address.ip().is_unspecified();
        let from = (is_any && !local.is_unspecified()).then_some(local);
        let to = match (address, to) {
            (SocketAddr::V6(_), SocketAddr::V4(v4)) => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            _ => to,
        };
        let write = |bytes: &mut Vec<u8>| packet.encode(bytes);
        socket.add(&mut departures.0[number], to, from, ecn, leaves, write);
    }

    pub(super) async fn send(&self, departures: &mut Departures) {
        for (bound, trains) in self.bound.iter().zip(&mut departures.0) {
            bound.socket.send(trains).await;
        }
    }

    /// The addresses that an endpoint with several has. An only one is the source of its packets,
    /// and one that is not specified is any.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let own = self.bound.iter().map(|bound| bound.address.ip());
        own.filter(|address| !address.is_unspecified())
    }

    pub(super) fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.bound.iter().map(|bound| bound.socket.local_addr()).collect()
    }
}
