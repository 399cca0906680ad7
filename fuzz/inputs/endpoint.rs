//! A server on a real socket, and a client that announces any parameters and then sends any frames.
//!
//! The input is a byte with the length of the client's hello, the hello, and packets: each a byte
//! with its length, and its frames. A connection ends with each input; the server lives on.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fontis::protection::{Header, Initiator, header};
use fontis::transfer::FileServer;
use fontis::{Accept, Endpoint, EndpointConfig, Identity};
use fontis_proto::dfcp::{ConnectionId, DfcpPacket, Frame, Frames, Session, VERSION, wire};
use tokio::runtime::Runtime;

/// The time for an answer of the server: it is slow only where something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server of a folder, which answers the inputs one after another.
struct Server {
    runtime: Runtime,
    endpoint: Endpoint,
    key: [u8; 32],
    address: SocketAddr,
    turns: AtomicU32,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), vec![7; 100_000]).expect("a file");
        let identity = Identity::generate();
        let config =
            EndpointConfig { accept: Accept::Anyone, ..EndpointConfig::new(*identity.secret()) };
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let endpoint = Endpoint::bind(any, config).expect("a socket");
        let address = (Ipv4Addr::LOCALHOST, endpoint.local_addr().port()).into();
        let files = FileServer::new(endpoint.clone(), folder.path(), None).expect("a server");
        runtime.spawn(files.run(|_| {}));
        let key = *identity.public().as_bytes();
        Self { runtime, endpoint, key, address, turns: AtomicU32::new(0), _folder: folder }
    }

    /// Whether the server answers, within its budget of memory.
    fn is_well(&self) -> bool {
        let status = async { tokio::time::timeout(PATIENCE, self.endpoint.status()).await };
        matches!(self.runtime.block_on(status), Ok(Some(_)))
    }
}

/// The server answers whatever came before.
pub(crate) fn run(data: &[u8]) {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let Some((length, rest)) = data.split_first() else { return };
    let (hello, packets) = rest.split_at(usize::from(*length).min(rest.len()));
    let Ok(hello) = wire::decode_hello(Bytes::copy_from_slice(hello)) else { return };
    let server = SERVER.get_or_init(Server::start);
    talk(server, hello, packets);
    assert!(server.is_well(), "the server is silent");
}

/// A connection from its SYN to its end.
fn talk(server: &Server, hello: fontis_proto::dfcp::Hello, mut packets: &[u8]) {
    // Each comes from another network, of which the server would else take only so many a second.
    let turn = server.turns.fetch_add(1, Ordering::Relaxed);
    let [_, a, b, _] = (turn << 8).to_be_bytes();
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::new(127, a, b, 1), 0)) else { return };
    socket.connect(server.address).expect("loopback has a way to itself");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a time");
    let own = ConnectionId(u64::from(turn).to_be_bytes());
    let mut session = Initiator::new(*Identity::generate().secret(), server.key, None);
    let mut datagram = Vec::new();
    let packet = DfcpPacket::Syn { version: VERSION, source: own, hello };
    if session.seal(&packet, &mut datagram).is_err() {
        return;
    }
    let _ = socket.send(&datagram);
    let mut answer = [0; 2000];
    let theirs = loop {
        let Ok(length) = socket.recv(&mut answer) else { return };
        if let Some(Header::Cookie { cookie, .. }) = header(&answer[..length]) {
            let Some(proved) = session.prove(&cookie) else { return };
            let _ = socket.send(proved);
            continue;
        }
        if let Ok(DfcpPacket::SynAck { source, .. }) =
            session.open(BytesMut::from(&answer[..length]))
        {
            break source;
        }
    };
    let mut send = |number: u64, frames: Frames| {
        let packet = DfcpPacket::Sealed { destination: theirs, path: 0, number, frames };
        datagram.clear();
        if session.seal(&packet, &mut datagram).is_ok() {
            let _ = socket.send(&datagram);
        }
    };
    let mut number = 0;
    while let Some((length, rest)) = packets.split_first() {
        let (frames, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        packets = rest;
        if let Ok(frames) = wire::decode_frames(Bytes::copy_from_slice(frames)) {
            send(number, frames);
            number += 1;
        }
    }
    send(number + 1, [Frame::Close { code: 0, reason: String::new() }].into_iter().collect());
}
