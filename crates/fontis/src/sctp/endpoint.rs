use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fontis_base::Ecn;
use fontis_proto::sctp::{
    SctpAssociation, SctpConfig, SctpData, SctpPacket, SctpSend, refuse_without_state,
    respond_without_state,
};
use tokio::sync::mpsc;

use super::SctpError;
use super::core::Core;
use super::socket::{Bound, Readers, Sockets, of_family};
use super::stream::SctpStream;
use super::table::Table;
use crate::udp::{Batch, Leaves, SharedSocket, ecn, source_towards};

/// Bytes of the headers of UDP and of either IP.
const UDP: u32 = 8;
const IPV4: u32 = 20;
const IPV6: u32 = 40;
/// Accepted associations that wait for the application.
const MOST_ACCEPTED: usize = 64;
/// The first port that nobody assigns (RFC 6335).
const FIRST_FREE_PORT: u16 = 49_152;

/// Any number of associations over one UDP socket for each address. Clones share it. It closes when
/// the last clone, listener and association is gone.
#[derive(Clone)]
pub struct SctpEndpoint {
    shared: Arc<Shared>,
    readers: Arc<Readers>,
}

/// What the readers and the application share.
struct Shared {
    sockets: Arc<Sockets>,
    table: Arc<Table<Core>>,
    services: Mutex<HashMap<u16, Service>>,
}

/// A port that accepts associations.
#[derive(Clone)]
struct Service {
    config: SctpConfig,
    accepted: mpsc::Sender<Arc<Core>>,
}

/// The associations that clients make to one port of an endpoint.
pub struct SctpListener {
    port: u16,
    endpoint: SctpEndpoint,
    accepted: mpsc::Receiver<Arc<Core>>,
}

impl Shared {
    fn services(&self) -> MutexGuard<'_, HashMap<u16, Service>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The configuration over these sockets.
    fn fitted(&self, config: SctpConfig, peer: Option<IpAddr>) -> SctpConfig {
        let all_v4 = self.sockets.bound().iter().all(|bound| bound.address.is_ipv4());
        let is_v4 = peer.map_or(all_v4, |peer| peer.is_ipv4() && all_v4);
        let overhead = UDP + if is_v4 { IPV4 } else { IPV6 };
        let addresses = self.sockets.addresses();
        SctpConfig { addresses, overhead, batches: true, ..config }
    }
}

impl SctpEndpoint {
    /// Binds a UDP socket to each address. With several ones, associations have a path for each:
    /// path `n` leads from the `n`-th address to the peer's `n`-th. If the first has port 0, all
    /// have the port that the system chooses for it, where it is free. The port of encapsulated
    /// SCTP is [`SCTP_UDP_PORT`](super::SCTP_UDP_PORT).
    ///
    /// # Errors
    /// If there is no address, the system has no such address or a port is taken.
    pub fn bind(addresses: &[SocketAddr]) -> io::Result<Self> {
        let addresses: Vec<_> = addresses.iter().map(|address| (*address, None)).collect();
        Self::bind_on(&addresses)
    }

    /// The same with the names of interfaces, on which packets leave whatever the system's routes
    /// prefer. Where the system does not bind to interfaces, the addresses have to do.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), or if there is no such interface.
    pub fn bind_on(addresses: &[(SocketAddr, Option<&str>)]) -> io::Result<Self> {
        let mut bound: Vec<Bound> = Vec::new();
        for (address, device) in addresses {
            let port = bound.first().map(|first| first.address.port());
            bound.push(bind(*address, *device, port)?);
        }
        if bound.is_empty() {
            let text = "an endpoint of SCTP needs an address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let sockets = Arc::new(Sockets::new(bound));
        let table = Arc::new(Table::new());
        let shared = Arc::new(Shared { sockets, table, services: Mutex::default() });
        let endpoint = Self { shared, readers: Arc::default() };
        (0..endpoint.shared.sockets.bound().len()).for_each(|number| endpoint.read(number));
        Ok(endpoint)
    }

    /// Binds a UDP socket to a further address, on an interface if one is named. New associations
    /// of [`connect`](Self::connect) have it; those that are there have it once
    /// [`SctpStream::change_address`] has told the peer.
    ///
    /// # Errors
    /// As [`bind_on`](Self::bind_on).
    pub fn add_address(&self, address: SocketAddr, device: Option<&str>) -> io::Result<()> {
        let sockets = &self.shared.sockets;
        let port = sockets.bound().first().map(|first| first.address.port());
        let number = sockets.add(bind(address, device, port)?);
        self.read(number);
        Ok(())
    }

    /// Starts the reader of a socket.
    fn read(&self, number: usize) {
        self.readers.add(tokio::spawn(read(self.shared.clone(), number)).abort_handle());
    }

    /// Its addresses in UDP.
    ///
    /// # Errors
    /// If a socket has none.
    pub fn local_addrs(&self) -> io::Result<Vec<SocketAddr>> {
        self.shared.sockets.local_addrs()
    }

    /// Makes an association with the endpoint at `peer`, whose other addresses it tells. `config`
    /// has both ports of SCTP; 0 as its own is any that is free. It tries as long as
    /// `config.timers` say.
    ///
    /// # Errors
    /// If the ports are taken, or the peer refuses or does not answer.
    pub async fn connect(
        &self,
        peer: SocketAddr,
        config: SctpConfig,
    ) -> Result<SctpStream, SctpError> {
        self.begin(peer, config, None).await
    }

    /// The same with a first message, which leaves with the COOKIE ECHO if it is short: it comes a
    /// round trip earlier than what is sent on the stream.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or if the message cannot be sent.
    pub async fn connect_with(
        &self,
        peer: SocketAddr,
        config: SctpConfig,
        send: SctpSend,
        data: Bytes,
    ) -> Result<SctpStream, SctpError> {
        self.begin(peer, config, Some((send, data))).await
    }

    async fn begin(
        &self,
        peer: SocketAddr,
        config: SctpConfig,
        first: Option<(SctpSend, Bytes)>,
    ) -> Result<SctpStream, SctpError> {
        let sockets = &self.shared.sockets;
        let peer_ip = peer.ip().to_canonical();
        let bound = sockets.bound();
        let number = of_family(&bound, peer_ip).ok_or(SctpError::NoSocket { peer })?;
        let local = match bound[number].address.ip() {
            any if any.is_unspecified() => source_towards(peer)?,
            own => own,
        };
        let mut config = self.shared.fitted(config, Some(peer_ip));
        let (table, was_any) = (&self.shared.table, config.ports[0] == 0);
        while config.ports[0] == 0 || (was_any && table.has_port(config.ports[0])) {
            config.ports[0] = random_port()?;
        }
        let ports = config.ports;
        let now = sockets.now();
        let mut association = SctpAssociation::connect(now, config, [local, peer_ip]);
        if let Some((send, data)) = first {
            association.send(now, send, SctpData::Bytes(data))?;
        }
        let tag = association.tag();
        let core = Core::new(association, ports, peer.port());
        let in_udp = SocketAddr::new(peer_ip, peer.port());
        if !table.add(&core, tag, &[(in_udp, ports[1], ports[0])]) {
            return Err(SctpError::Taken { peer, ports });
        }
        core.clone().start(sockets.clone(), table.clone());
        let stream = SctpStream::new(core, sockets.clone(), self.readers.clone());
        stream.connected().await?;
        Ok(stream)
    }

    /// Accepts associations to the port of `config`. A client that has not answered costs nothing:
    /// its cookie holds what is known of it (RFC 9260 section 5.1.3).
    pub fn listen(&self, config: SctpConfig) -> SctpListener {
        let (sender, accepted) = mpsc::channel(MOST_ACCEPTED);
        let port = config.ports[0];
        let config = self.shared.fitted(config, None);
        self.shared.services().insert(port, Service { config, accepted: sender });
        SctpListener { port, endpoint: self.clone(), accepted }
    }
}

impl SctpListener {
    /// The next association; `None` when the endpoint is gone.
    pub async fn accept(&mut self) -> Option<SctpStream> {
        let core = self.accepted.recv().await?;
        let SctpEndpoint { shared, readers } = &self.endpoint;
        Some(SctpStream::new(core, shared.sockets.clone(), readers.clone()))
    }
}

impl Drop for SctpListener {
    fn drop(&mut self) {
        self.endpoint.shared.services().remove(&self.port);
    }
}

/// Binds a socket to an address. One without a port has this one, if it is free.
fn bind(address: SocketAddr, device: Option<&str>, port: Option<u16>) -> io::Result<Bound> {
    let mut wanted = address;
    if let (0, Some(port)) = (wanted.port(), port) {
        wanted.set_port(port);
    }
    let socket =
        SharedSocket::bind(wanted, device).or_else(|_| SharedSocket::bind(address, device))?;
    Ok(Bound { address: socket.local_addr()?, socket })
}

/// Reads a socket, and hands each packet to its association.
async fn read(shared: Arc<Shared>, number: usize) {
    let sockets = shared.sockets.clone();
    let Some(bound) = sockets.bound().get(number).cloned() else { return };
    let Bound { address, socket } = &*bound;
    let mut batch = Batch::new();
    let mut answers = sockets.departures();
    let mut touched: Vec<Arc<Core>> = Vec::new();
    loop {
        socket.receive(&mut batch).await;
        for (meta, datagram) in batch.datagrams() {
            // A copy: what an association keeps of a datagram must not keep a whole batch. What is
            // no packet is dropped.
            let datagram = Bytes::copy_from_slice(datagram);
            let Ok(packet) = SctpPacket::decode(&datagram) else { continue };
            let from = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
            let local = match (address.ip(), meta.dst_ip) {
                (any, Some(own)) if any.is_unspecified() => own.to_canonical(),
                (own, _) => own,
            };
            let ends = (from, packet.source, packet.destination);
            let known = shared.table.of(packet.tag, ends);
            match known {
                Some(core) => {
                    core.take(&sockets, local, from, &packet, ecn(meta));
                    if touched.last().is_none_or(|last| !Arc::ptr_eq(last, &core)) {
                        touched.push(core);
                    }
                }
                None => {
                    if let Some(answer) = meet(&shared, [local, from.ip()], from.port(), &packet) {
                        let how = (Ecn::NotEct, Leaves::Together);
                        sockets.depart(&mut answers, local, from, &answer, how);
                    }
                }
            }
        }
        touched.drain(..).for_each(|core| core.work.notify_one());
        sockets.send(&mut answers).await;
    }
}

/// A port that nobody assigns, hard to guess (RFC 6056).
fn random_port() -> io::Result<u16> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(FIRST_FREE_PORT | u16::from_be_bytes(bytes))
}

/// Takes a packet that no association owns. Returns the answer to it.
fn meet(
    shared: &Shared,
    ends: [IpAddr; 2],
    udp_port: u16,
    packet: &SctpPacket,
) -> Option<SctpPacket> {
    let sockets = &shared.sockets;
    let now = sockets.now();
    let service = shared.services().get(&packet.destination).cloned();
    let Some(service) = service else { return refuse_without_state(packet) };
    match SctpAssociation::accept(now, service.config.clone(), ends, packet) {
        Ok(association) => {
            // The client asks again while there is no room.
            let place = service.accepted.try_reserve().ok()?;
            let tag = association.tag();
            let core = Core::new(association, [packet.destination, packet.source], udp_port);
            if shared.table.add(&core, tag, &[]) {
                core.clone().start(sockets.clone(), shared.table.clone());
                place.send(core);
            }
            None
        }
        Err(answer) => answer.or_else(|| respond_without_state(now, &service.config, ends, packet)),
    }
}
