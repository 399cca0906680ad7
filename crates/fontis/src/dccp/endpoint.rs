use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fontis_proto::dccp::{
    COOKIE_CODE, Carrier, DccpBody, DccpConfig, DccpConnection, DccpPacket, accept_with_cookie,
    no_connection, respond_without_state,
};
use tokio::sync::mpsc;

use super::DccpError;
use super::socket::{DccpSocket, Ends, Held, Reader};
use super::stream::{DccpStream, Wire};
use crate::udp::{Batch, SharedSocket, Trains};

/// Connections that one socket has at most; further clients are answered when others have left.
const MOST_CONNECTIONS: usize = 1024;
/// Packets that wait for one connection; what comes beyond that is lost, as in any queue.
const MOST_WAITING: usize = 512;
/// Accepted connections that wait for the application.
const MOST_ACCEPTED: usize = 64;

/// A UDP socket with any number of DCCP connections. Clones share it. It closes when the last
/// clone, listener and connection is gone.
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
}

impl DccpEndpoint {
    /// Binds a UDP socket. The port of encapsulated DCCP is 6511 (RFC 6773).
    ///
    /// # Errors
    /// If the system has no such address or the port is taken.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Arc::new(DccpSocket::new(SharedSocket::bind(address, None)?));
        let shared = Arc::new(Shared { socket, services: Mutex::default() });
        let reader = tokio::spawn(read(Arc::clone(&shared)));
        Ok(Self { shared, reader: Arc::new(Reader(reader.abort_handle())) })
    }

    /// Its address in UDP.
    ///
    /// # Errors
    /// If the socket has none.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket.udp.local_addr()
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
        let ends = Ends { peer, peer_port: config.peer_port, port: config.port };
        let connection = DccpConnection::connect(self.shared.socket.now(), config, random()?);
        let stream = self.open(ends, connection)?;
        stream.connected().await?;
        Ok(stream)
    }

    /// Accepts connections to the port of `config`, for its service. A client that has not
    /// answered costs nothing: its cookie holds what is known of it (RFC 4340 section 8.1.4).
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
fn enter(socket: &DccpSocket, ends: Ends) -> Result<mpsc::Receiver<Held<DccpPacket>>, DccpError> {
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
        socket.udp.receive(&mut batch).await;
        for (meta, datagram) in batch.datagrams() {
            // What is no packet is dropped.
            let Ok(packet) = DccpPacket::decode(Carrier::Udp, datagram) else { continue };
            let ends = Ends { peer: meta.addr, peer_port: packet.source, port: packet.destination };
            let waiting = socket.connections().get(&ends).cloned();
            match waiting {
                // A connection that does not keep up loses packets, as behind any full queue.
                Some(sender) => {
                    if let Some(held) = socket.hold(packet, datagram.len()) {
                        let _ = sender.try_send(held);
                    }
                }
                None => {
                    if let Some(answer) = meet(&shared, ends, &packet) {
                        socket.add(&mut answers, meta.addr, &answer);
                    }
                }
            }
        }
        socket.udp.send(&mut answers).await;
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
    if matches!(packet.body, DccpBody::Request { .. }) {
        return respond_without_state(now, &service.config, random().ok()?, packet, &code);
    }
    let connection = accept_with_cookie(now, &service.config, packet, &code);
    let Some(connection) = connection else { return no_connection(packet) };
    // The client asks again while there is no room.
    let place = service.accepted.clone().try_reserve_owned().ok().filter(|_| !is_full)?;
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
