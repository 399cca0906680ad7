use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use fontis_base::{Ecn, Time};
use fontis_proto::sctp::SctpPacket;
use tokio::task::AbortHandle;

use crate::udp::{Leaves, SharedSocket, Trains};

/// The sockets of an endpoint, and their clock.
pub(super) struct Sockets {
    bound: RwLock<Arc<[Arc<Bound>]>>,
    begin: Instant,
}

/// The tasks that read the sockets. They end when this is dropped.
#[derive(Default)]
pub(super) struct Readers(Mutex<Vec<AbortHandle>>);

impl Readers {
    pub(super) fn add(&self, reader: AbortHandle) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let readers = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        readers.iter().for_each(AbortHandle::abort);
    }
}

/// A socket and its address.
pub(super) struct Bound {
    pub(super) address: SocketAddr,
    pub(super) socket: SharedSocket,
}

/// Packets that wait to be sent, for each socket.
pub(super) struct Departures {
    bound: Arc<[Arc<Bound>]>,
    trains: Vec<Trains>,
}

impl Sockets {
    pub(super) fn new(bound: Vec<Bound>) -> Self {
        let bound = bound.into_iter().map(Arc::new).collect();
        Self { bound: RwLock::new(bound), begin: Instant::now() }
    }

    /// The sockets that there are. None ever goes, so that their numbers stay.
    pub(super) fn bound(&self) -> Arc<[Arc<Bound>]> {
        self.bound.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a socket; its number.
    pub(super) fn add(&self, bound: Bound) -> usize {
        let mut all = self.bound.write().unwrap_or_else(PoisonError::into_inner);
        let number = all.len();
        *all = all.iter().cloned().chain([Arc::new(bound)]).collect();
        number
    }

    /// Whether packets can leave from an address.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        let serves = |own: IpAddr| own == address || is_any_for(own, address);
        self.bound().iter().any(|bound| serves(bound.address.ip()))
    }

    /// The time since the sockets were bound. It is never zero, so that what is due at zero is due.
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64 + 1)
    }

    pub(super) fn departures(&self) -> Departures {
        Departures { bound: self.bound(), trains: Vec::new() }
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
        departures.bound = self.bound();
        departures.trains.resize_with(departures.bound.len(), Trains::default);
        // An address that no socket has is a path that is down.
        let Some(number) = towards(&departures.bound, local, to.ip()) else { return };
        let Bound { address, socket } = &*departures.bound[number];
        let is_any = address.ip().is_unspecified();
        let from = (is_any && !local.is_unspecified()).then_some(local);
        let to = match (address, to) {
            (SocketAddr::V6(_), SocketAddr::V4(v4)) => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            _ => to,
        };
        let write = |bytes: &mut Vec<u8>| packet.encode(bytes);
        socket.add(&mut departures.trains[number], to, from, ecn, leaves, write);
    }

    pub(super) async fn send(&self, departures: &mut Departures) {
        for (bound, trains) in departures.bound.iter().zip(&mut departures.trains) {
            bound.socket.send(trains).await;
        }
    }

    /// The addresses that an endpoint with several has. An only one is the source of its packets,
    /// and one that is not specified is any.
    pub(super) fn addresses<A: FromIterator<IpAddr>>(&self) -> A {
        let bound = self.bound();
        let own = bound.iter().map(|bound| bound.address.ip());
        own.filter(|address| !address.is_unspecified()).collect()
    }

    pub(super) fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.bound().iter().map(|bound| bound.socket.local_addr()).collect()
    }
}

/// Whether a socket of an address that is not specified has this one.
fn is_any_for(own: IpAddr, address: IpAddr) -> bool {
    own.is_unspecified() && (own.is_ipv6() || address.is_ipv4())
}

/// The number of the socket that sends from `local` to `peer`.
fn towards(bound: &[Arc<Bound>], local: IpAddr, peer: IpAddr) -> Option<usize> {
    let exact = bound.iter().position(|bound| bound.address.ip() == local);
    exact.or_else(|| of_family(bound, peer))
}

/// The number of the first socket from which packets to `peer` can leave.
pub(super) fn of_family(bound: &[Arc<Bound>], peer: IpAddr) -> Option<usize> {
    let same = |bound: &Arc<Bound>| bound.address.is_ipv4() == peer.is_ipv4();
    let any = |bound: &Arc<Bound>| is_any_for(bound.address.ip(), peer);
    bound.iter().position(same).or_else(|| bound.iter().position(any))
}
