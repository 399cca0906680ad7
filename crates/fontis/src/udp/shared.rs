use std::io;
#[cfg(target_os = "linux")]
use std::net::Ipv4Addr;
use std::net::{IpAddr, SocketAddr};
use std::sync::{PoisonError, RwLock};

use fontis_base::Ecn;
use quinn_udp::{Transmit, UdpSocketState};
use socket2::Socket as RawSocket;
#[cfg(target_os = "linux")]
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

#[cfg(target_os = "linux")]
use super::socket::enlarge_buffers;
use super::socket::{Batch, codepoint, raw};

/// The most bytes that one call sends.
const MOST_BYTES: usize = 60_000;

/// A UDP socket that tasks of the tokio runtime share, with batches and offloads.
#[derive(Debug)]
pub(crate) struct SharedSocket {
    io: UdpSocket,
    state: UdpSocketState,
    /// Held for writing while what leaves may be cut: a probe that others send meanwhile would
    /// find a path to carry what it does not.
    cutting: RwLock<()>,
}

/// How a datagram leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// With others in one call, and whole.
    Together,
    /// In a call of its own: what the system refuses because it is too long takes no others along.
    Alone,
    /// In pieces, where it is too long for the path.
    InPieces,
}

/// Datagrams that leave with one call: all have the length of the first, but for the last, which
/// may be shorter.
#[derive(Debug)]
struct Train {
    to: SocketAddr,
    from: Option<IpAddr>,
    ecn: Ecn,
    bytes: Vec<u8>,
    segment: usize,
    count: usize,
    leaves: Leaves,
}

/// Datagrams on their way to a socket.
#[derive(Debug, Default)]
pub(crate) struct Trains(Vec<Train>);

impl SharedSocket {
    /// Binds to an address, and to an interface if it is named; port 0 lets the system choose.
    /// Belongs to the runtime that runs.
    pub(crate) fn bind(address: SocketAddr, device: Option<&str>) -> io::Result<Self> {
        Self::of(raw(address, device)?)
    }

    /// Takes the packets of IPv4 to `address` whose protocol has this number. What arrives begins
    /// with its IPv4 header; what leaves gets one. Ports mean nothing, and each packet must be one
    /// that [`Leaves::Alone`]. Belongs to the runtime that runs, and needs the right to open raw
    /// sockets.
    #[cfg(target_os = "linux")]
    pub(crate) fn bind_protocol(address: Ipv4Addr, protocol: u8) -> io::Result<Self> {
        let protocol = Protocol::from(i32::from(protocol));
        let raw = RawSocket::new(Domain::IPV4, Type::RAW, Some(protocol))?;
        enlarge_buffers(&raw);
        raw.bind(&SocketAddr::from((address, 0)).into())?;
        Self::of(raw)
    }

    fn of(raw: RawSocket) -> io::Result<Self> {
        raw.set_nonblocking(true)?;
        let state = UdpSocketState::new((&raw).into())?;
        Ok(Self { io: UdpSocket::from_std(raw.into())?, state, cutting: RwLock::new(()) })
    }

    /// The address that it is bound to.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Waits for datagrams, and reads them into `batch`.
    pub(crate) async fn receive(&self, batch: &mut Batch) {
        let read = self.io.async_io(Interest::READABLE, || {
            batch.fill(|slices, metas| self.state.recv((&self.io).into(), slices, metas))
        });
        // Errors of a UDP socket are answers to packets that it sent: the next call goes on.
        if read.await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    /// Sends all that wait. What the system refuses is lost, as anywhere on the way: a path may be
    /// down, or gone.
    pub(crate) async fn send(&self, trains: &mut Trains) {
        for train in trains.0.drain(..) {
            let Train { to, from, ecn, bytes, segment, count, leaves } = train;
            let transmit = Transmit {
                destination: to,
                ecn: codepoint(ecn),
                contents: &bytes,
                segment_size: (count > 1).then_some(segment),
                src_ip: from,
            };
            let send = || {
                if leaves != Leaves::InPieces {
                    let _whole = self.cutting.read().unwrap_or_else(PoisonError::into_inner);
                    return self.state.try_send((&self.io).into(), &transmit);
                }
                let _cut = self.cutting.write().unwrap_or_else(PoisonError::into_inner);
                self.may_cut(true);
                let sent = self.state.try_send((&self.io).into(), &transmit);
                self.may_cut(false);
                sent
            };
            let _ = self.io.async_io(Interest::WRITABLE, send).await;
        }
    }

    /// Whether what leaves may be cut on its way. Elsewhere than on Linux it never is, and over
    /// IPv6 by this machine alone, as far as it knows the path.
    fn may_cut(&self, may: bool) {
        #[cfg(target_os = "linux")]
        {
            use rustix::net::sockopt::{
                Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover,
                set_ipv6_mtu_discover,
            };
            let (v4, v6) = match may {
                true => (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::DONT),
                false => (Ipv4PathMtuDiscovery::PROBE, Ipv6PathMtuDiscovery::PROBE),
            };
            // A socket of one family has not the option of the other.
            let _ = set_ip_mtu_discover(&self.io, v4);
            let _ = set_ipv6_mtu_discover(&self.io, v6);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = may;
    }

    /// Adds the datagram that `write` appends.
    pub(crate) fn add(
        &self,
        trains: &mut Trains,
        to: SocketAddr,
        from: Option<IpAddr>,
        ecn: Ecn,
        leaves: Leaves,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let last = trains.0.last_mut().filter(|_| leaves == Leaves::Together);
        let joined = last.filter(|last| self.may_join(last, to, from, ecn));
        let bytes = if let Some(last) = joined {
            let start = last.bytes.len();
            write(&mut last.bytes);
            if last.bytes.len() - start <= last.segment {
                last.count += 1;
                return;
            }
            // A longer one begins the next train.
            last.bytes.split_off(start)
        } else {
            let mut bytes = Vec::new();
            write(&mut bytes);
            bytes
        };
        let segment = bytes.len();
        trains.0.push(Train { to, from, ecn, bytes, segment, count: 1, leaves });
    }

    /// Whether another datagram may join a train; its last one must not be shorter than the others.
    fn may_join(&self, last: &Train, to: SocketAddr, from: Option<IpAddr>, ecn: Ecn) -> bool {
        (last.to, last.from, last.ecn, last.leaves) == (to, from, ecn, Leaves::Together)
            && last.bytes.len() == last.segment * last.count
            && last.bytes.len() + last.segment <= MOST_BYTES
            && last.count < self.state.max_gso_segments()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn datagrams_of_any_lengths_come_whole_and_in_order() {
        let [a, b] =
            [(); 2].map(|()| SharedSocket::bind("127.0.0.1:0".parse().unwrap(), None).unwrap());
        let to = b.local_addr().unwrap();
        let lengths: Vec<usize> =
            (0..500).map(|number: usize| if number % 7 < 5 { 1400 } else { number }).collect();
        let mut trains = Trains::default();
        let mut batch = Batch::new();
        let mut came = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            let write = |bytes: &mut Vec<u8>| bytes.extend(vec![number as u8; *length]);
            let leaves = [Leaves::Together, Leaves::Alone, Leaves::InPieces];
            let leaves = leaves[(number % 20).saturating_sub(17)];
            a.add(&mut trains, to, None, Ecn::Ect0, leaves, write);
            if number % 50 == 49 {
                a.send(&mut trains).await;
                while came.len() <= number {
                    b.receive(&mut batch).await;
                    came.extend(batch.datagrams().map(|(_, bytes)| bytes.to_vec()));
                }
            }
        }
        let sent = lengths.iter().enumerate().map(|(number, length)| vec![number as u8; *length]);
        assert!(came.into_iter().eq(sent));
    }
}
