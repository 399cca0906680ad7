use std::collections::HashMap;
use std::io;
#[cfg(target_os = "linux")]
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fontis_base::Ecn;
#[cfg(target_os = "linux")]
use fontis_proto::dccp::PROTOCOL;
use fontis_proto::dccp::{
    COOKIE_CODE, DccpBody, DccpConfig, DccpConnection, DccpPacket, accept_with_cookie,
    no_connection, respond_without_state,
};
use tokio::sync::mpsc;

use super::DccpError;
use super::lobby::{Answered, Lobby};
use super::socket::{DccpSocket, Ends, Held, Incoming, Reader};
use super::stream::{DccpStream, Wire};
use crate::protection::{Header, header, unknown_key};
use crate::udp::{Batch, SharedSocket, Trains, ecn};

/// Connections that one socket has at most; further clients are answered when others have left.
const MOST_CONNECTIONS: usize = 1024;
/// Packets that wait for one connection; what comes beyond that is lost, as in any queue.
const MOST_WAITING: usize = 512;
/// Accepted connections that wait for the application.
const MOST_ACCEPTED: usize = 64;

/// A socket with any number of DCCP connections, over UDP or over IP. Clones share it. It closes
/// when the last clone, listener and connection is gone.
#[derive(Clone)]
pub struct DccpEndpoint {
    shared: Arc<Shared>,
    /// Ends the reading with the last clone.
    reader: Arc<Reader>,
}

/// What the reader and the application share.
struct Shared {
    socket: Arc<DccpSocket>,
    services: Mutex<HashMap<u16, Service>>,
    lobby: Mutex<Lobby>,
}

/// A port of DCCP that accepts connections.
#[derive(Clone)]
struct Service {
    config: DccpConfig,
    secret: [u8; 32],
    accepted: mpsc::Sender<DccpStream>,
}

/// The connections that clients make to one port of an endpoint.
pub struct DccpListener {
    port: u16,
    endpoint: DccpEndpoint,
    accepted: mpsc::Receiver<DccpStream>,
}

impl Shared {
    fn services(&self) -> MutexGuard<'_, HashMap<u16, Service>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lobby(&self) -> MutexGuard<'_, Lobby> {
        self.lobby.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DccpEndpoint {
    /// Binds a UDP socket. The port of encapsulated DCCP is 6511 (RFC 6773).
    ///
    /// # Errors
    /// If the system has no such address or the port is taken.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self::of(DccpSocket::new(SharedSocket::bind(address, None)?, None)))
    }

    /// Binds to an address of IPv4 without UDP: packets of DCCP follow the IP header, as those of
    /// systems that have DCCP. It needs the right to open raw sockets (`CAP_NET_RAW`). The ports of
    /// addresses in UDP mean nothing there.
    ///
    /// # Errors
    /// If the system has no such address or does not permit it.
    #[cfg(target_os = "linux")]
    pub fn bind_plain(address: Ipv4Addr) -> io::Result<Self> {
        if address.is_unspecified() {
            let text = "DCCP over IP needs an address of its own: its checksum covers it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let socket = SharedSocket::bind_protocol(address, PROTOCOL)?;
        Ok(Self::of(DccpSocket::new(socket, Some(address))))
    }

    fn of(socket: DccpSocket) -> Self {
        let socket = Arc::new(socket);
        let shared =
            Arc::new(Shared { socket, services: Mutex::default(), lobby: Mutex::default() });
        let reader = tokio::spawn(read(Arc::clone(&shared)));
        Self { shared, reader: Arc::new(Reader(reader.abort_handle())) }
    }

    /// Its address in UDP.
    ///
    /// # Errors
    /// If the socket has none.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket.io.local_addr()
    }

    /// Connects to the endpoint at `peer`. `config` has both ports of DCCP and the service code.
    ///
    /// # Errors
    /// If the ports are taken, or the peer refuses or does not answer.
    pub async fn connect(
        &self,
        peer: SocketAddr,
        config: DccpConfig,
    ) -> Result<DccpStream, DccpError> {
        let peer = self.shared.socket.peer(peer);
        let ends = Ends { peer, peer_port: config.peer_port, port: config.port };
        let config = self.shared.socket.fit(peer, &config);
        let connection = DccpConnection::connect(self.shared.socket.now(), config, random()?);
        let stream = self.open(ends, connection)?;
        stream.connected().await?;
        Ok(stream)
    }

    /// Accepts connections to the port of `config`, for its service. The first clients that have
    /// not answered wait in a small room. If that is full, a client costs nothing: its cookie holds
    /// what is known of it (RFC 4340 section 8.1.4).
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn listen(&self, config: DccpConfig) -> io::Result<DccpListener> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let (sender, accepted) = mpsc::channel(MOST_ACCEPTED);
        let port = config.port;
        let service = Service { config, secret, accepted: sender };
        self.shared.services().insert(port, service);
        Ok(DccpListener { port, endpoint: self.clone(), accepted })
    }

    fn open(&self, ends: Ends, connection: DccpConnection) -> Result<DccpStream, DccpError> {
        let packets = enter(&self.shared.socket, ends)?;
        let wire = Wire { socket: Arc::clone(&self.shared.socket), ends };
        Ok(DccpStream::start(connection, wire, packets, Some(Arc::clone(&self.reader))))
    }
}

impl DccpListener {
    /// The next connection; `None` when the endpoint is gone.
    pub async fn accept(&mut self) -> Option<DccpStream> {
        let stream = self.accepted.recv().await?;
        stream.keep(Arc::clone(&self.endpoint.reader));
        Some(stream)
    }
}

impl Drop for DccpListener {
    fn drop(&mut self) {
        self.endpoint.shared.services().remove(&self.port);
    }
}

/// Gives a connection its place in the table.
fn enter(socket: &DccpSocket, ends: Ends) -> Result<mpsc::Receiver<Held<Incoming>>, DccpError> {
    let (sender, packets) = mpsc::channel(MOST_WAITING);
    let mut connections = socket.connections();
    if connections.contains_key(&ends) {
        return Err(DccpError::Taken { port: ends.port, peer_port: ends.peer_port });
    }
    connections.insert(ends, sender);
    Ok(packets)
}

/// Reads the socket, and hands each packet to its connection.
async fn read(shared: Arc<Shared>) {
    let socket = &shared.socket;
    let (mut batch, mut answers) = (Batch::new(), Trains::default());
    loop {
        socket.io.receive(&mut batch).await;
        for (meta, datagram) in batch.datagrams() {
            let Some((peer, packet)) = socket.decode(meta, datagram) else {
                // What is no packet is dropped. Who asks for an encrypted connection is told that
                // nobody here has its key.
                if let Some(Header::Syn { source, .. }) = header(datagram)
                    && !shared.services().is_empty()
                {
                    socket.add_raw(&mut answers, meta.addr, &unknown_key(source));
                }
                continue;
            };
            let ends = Ends { peer, peer_port: packet.source, port: packet.destination };
            let waiting = socket.connections().get(&ends).cloned();
            match waiting {
                // A connection that does not keep up loses packets, as behind any full queue.
                Some(sender) => {
                    if let Some(held) = socket.hold((packet, ecn(meta) == Ecn::Ce), datagram.len())
                    {
                        let _ = sender.try_send(held);
                    }
                }
                None => {
                    if let Some(answer) = meet(&shared, ends, &packet) {
                        socket.add(&mut answers, peer, &answer, Ecn::NotEct);
                    }
                }
            }
        }
        socket.io.send(&mut answers).await;
    }
}

/// Takes a packet that no connection owns. Returns the answer to it.
fn meet(shared: &Shared, ends: Ends, packet: &DccpPacket) -> Option<DccpPacket> {
    let is_full = shared.socket.connections().len() >= MOST_CONNECTIONS;
    let service = shared.services().get(&ends.port).cloned();
    let Some(service) = service else { return no_connection(packet) };
    let code = |content: &[u8]| {
        let mut hasher = blake3::Hasher::new_keyed(&service.secret);
        hasher.update(ends.peer.to_string().as_bytes()).update(content);
        let mut code = [0; COOKIE_CODE];
        code.copy_from_slice(&hasher.finalize().as_bytes()[..COOKIE_CODE]);
        code
    };
    let now = shared.socket.now();
    let config = shared.socket.fit(ends.peer, &service.config);
    if matches!(packet.body, DccpBody::Request { .. }) {
        let first = random().ok()?;
        let response = shared.lobby().ask(now, ends, &config, first, packet);
        return response.or_else(|| respond_without_state(now, &config, first, packet, &code));
    }
    // The client asks again while there is no room.
    let place = service.accepted.clone().try_reserve_owned().ok().filter(|_| !is_full)?;
    let connection = match shared.lobby().answer(now, ends, packet) {
        Some(Answered::Open(connection)) => *connection,
        Some(Answered::Still(reply)) => return reply,
        None => match accept_with_cookie(now, &config, packet, &code) {
            Some(connection) => connection,
            None => return no_connection(packet),
        },
    };
    let packets = enter(&shared.socket, ends).ok()?;
    let wire = Wire { socket: Arc::clone(&shared.socket), ends };
    place.send(DccpStream::start(connection, wire, packets, None));
    None
}

/// A first sequence number that is hard to guess.
fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u64::from_be_bytes(bytes) >> 16)
}
