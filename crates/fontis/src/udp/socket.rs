use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use fontis_base::Ecn;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

/// A UDP socket that reads batches and supports ECN.
#[derive(Debug)]
pub struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

/// The size of a socket's buffers: 25 ms of 5 Gbit/s, the time for which a busy system may keep the
/// reading thread off its processor. The memory is taken only while there is data in it.
const BUFFER: usize = 16 << 20;

impl Socket {
    /// Binds to an address; port 0 lets the system choose.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::bound(address, None)
    }

    /// Binds to an address of the interface `device`, so that packets leave there whatever the
    /// system's routes prefer. Where the system does not bind to devices, the address has to do.
    pub fn bind_to_device(address: SocketAddr, device: &str) -> io::Result<Self> {
        Self::bound(address, Some(device))
    }

    fn bound(address: SocketAddr, device: Option<&str>) -> io::Result<Self> {
        Self::of(raw(address, device)?)
    }

    /// A socket of these parts; `raw` is bound, and its options are set.
    pub(super) fn of(raw: RawSocket) -> io::Result<Self> {
        raw.set_nonblocking(true)?;
        let state = UdpSocketState::new((&raw).into())?;
        Ok(Self { io: UdpSocket::from_std(raw.into()), state })
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Registers the socket with a poll.
    pub(crate) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        registry.register(&mut self.io, token, interest)
    }

    /// Ends its registration.
    pub(crate) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.io)
    }

    /// The handle to register with a poll.
    pub fn source(&mut self) -> &mut UdpSocket {
        &mut self.io
    }

    /// Reads the waiting datagrams into `batch`; returns true if there may be more.
    pub fn receive(&self, batch: &mut Batch) -> bool {
        let io = &self.io;
        let read =
            batch.fill(|slices, metas| io.try_io(|| self.state.recv(io.into(), slices, metas)));
        match read {
            // A batch that is not full ended because nothing was left: the next arrival raises a
            // new event.
            Ok(()) => batch.filled == BATCH_SIZE,
            // Other errors are those of earlier sends, told in the place of one read.
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// The number of datagrams that one call may send; one if the system has no segmentation
    /// offload.
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends one datagram, or several of `segment` bytes each (the last may be shorter), from
    /// `source` if given.
    pub fn send(
        &self,
        destination: SocketAddr,
        source: Option<IpAddr>,
        ecn: Ecn,
        contents: &[u8],
        segment: Option<usize>,
    ) -> io::Result<()> {
        let ecn = codepoint(ecn);
        let transmit =
            Transmit { destination, ecn, contents, segment_size: segment, src_ip: source };
        self.io.try_io(|| self.state.try_send((&self.io).into(), &transmit))
    }
}

/// A socket that is bound to an address, with the options that sockets here have.
pub(super) fn raw(address: SocketAddr, device: Option<&str>) -> io::Result<RawSocket> {
    let raw = RawSocket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // Systems differ in whether [::] takes IPv4 too; here it does, where it can.
        let _ = raw.set_only_v6(false);
    }
    enlarge_buffers(&raw);
    #[cfg(target_os = "linux")]
    if let Some(device) = device {
        raw.bind_device(Some(device.as_bytes()))?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = device;
    raw.bind(&address.into())?;
    Ok(raw)
}

pub(super) fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

/// Asks for large buffers: as root beyond the system's limit, else up to it. Small ones are no
/// error.
pub(super) fn enlarge_buffers(socket: &RawSocket) {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER).is_ok()
            && sockopt::set_socket_send_buffer_size_force(socket, BUFFER).is_ok()
        {
            return;
        }
    }
    // Linux gives what it may; others refuse what is too much, so ask for less until they agree.
    let sizes = || core::iter::successors(Some(BUFFER), |size| Some(size / 2)).take(6);
    let _ = sizes().any(|size| socket.set_recv_buffer_size(size).is_ok());
    let _ = sizes().any(|size| socket.set_send_buffer_size(size).is_ok());
}

/// The largest read: a datagram, or several that the kernel joined (GRO).
const MAX_READ: usize = 65_536;

/// Room for one batch of reads.
#[derive(Debug)]
pub struct Batch {
    reads: [BytesMut; BATCH_SIZE],
    metas: [RecvMeta; BATCH_SIZE],
    filled: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self {
            reads: core::array::from_fn(|_| BytesMut::zeroed(MAX_READ)),
            metas: [RecvMeta::default(); BATCH_SIZE],
            filled: 0,
        }
    }

    /// Reads into it. Nothing is in it after an error.
    pub(super) fn fill(
        &mut self,
        read: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.filled = 0;
        let mut slices = self.reads.each_mut().map(|read| IoSliceMut::new(read));
        self.filled = read(&mut slices, &mut self.metas)?;
        Ok(())
    }

    /// Adds a datagram, as a simulated socket does; false if there is no room.
    #[cfg(test)]
    pub(crate) fn put(&mut self, datagram: &[u8], from: SocketAddr, to: IpAddr, ecn: Ecn) -> bool {
        let Some(read) = self.reads.get_mut(self.filled) else { return false };
        read[..datagram.len()].copy_from_slice(datagram);
        let meta = &mut self.metas[self.filled];
        (meta.addr, meta.dst_ip) = (from, Some(to));
        (meta.len, meta.stride) = (datagram.len(), datagram.len());
        (meta.ecn, meta.timestamp) = (codepoint(ecn), None);
        self.filled += 1;
        true
    }

    /// Forgets the last read.
    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// The datagrams of the last read, each by itself.
    pub fn datagrams(&self) -> impl Iterator<Item = (&RecvMeta, &[u8])> {
        let reads = self.metas.iter().zip(&self.reads);
        reads.take(self.filled).flat_map(|(meta, read)| {
            let joined = &read[..meta.len.min(read.len())];
            let empty = joined.is_empty().then_some(joined);
            empty.into_iter().chain(joined.chunks(meta.stride.max(1))).map(move |one| (meta, one))
        })
    }

    /// Hands every read to `handle`, with the length of the datagrams that are joined in it. Its
    /// memory serves again unless a part of what `handle` returns, which is all of it, is kept
    /// elsewhere.
    pub fn handle(&mut self, mut handle: impl FnMut(&RecvMeta, BytesMut) -> Bytes) {
        for (meta, read) in self.metas.iter().zip(&mut self.reads).take(self.filled) {
            let handled = handle(meta, core::mem::take(read)).try_into_mut();
            let whole = handled.ok().filter(|handled| handled.len() == MAX_READ);
            *read = whole.unwrap_or_else(|| BytesMut::zeroed(MAX_READ));
        }
    }
}

/// The congestion notification that a datagram came with.
pub fn ecn(meta: &RecvMeta) -> Ecn {
    match meta.ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}
