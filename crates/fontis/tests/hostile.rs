//! Peers that break the rules over real sockets, beside an honest client, and strangers' packets.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fontis::transfer::{self, FileServer};
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, Url};
use fontis_proto::dfcp::{SYN_SIZE, VERSION};

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

/// A SYN that the server can open, with these bytes as its hello.
fn syn(server: &Identity, source: [u8; 8], hello: &[u8]) -> Vec<u8> {
    let prologue = [&b"fontis"[..], &VERSION.to_be_bytes(), &source].concat();
    let secret = *Identity::generate().secret();
    let public = server.public();
    let mut noise = snow::Builder::new("Noise_IK_25519_AESGCM_BLAKE2s".parse().unwrap())
        .local_private_key(&secret)
        .and_then(|builder| builder.remote_public_key(public.as_bytes()))
        .and_then(|builder| builder.prologue(&prologue))
        .and_then(snow::Builder::build_initiator)
        .unwrap();
    let mut message = vec![0; hello.len() + 96];
    let length = noise.write_message(hello, &mut message).unwrap();
    let mut datagram = vec![1];
    datagram.extend(VERSION.to_be_bytes());
    datagram.extend(source);
    datagram.extend((length as u16).to_be_bytes());
    datagram.extend(&message[..length]);
    datagram.resize(SYN_SIZE as usize, 0);
    datagram
}

/// A variable-length integer of four bytes (RFC 9000, section 16).
fn varint(value: u32) -> [u8; 4] {
    (value | 0x8000_0000).to_be_bytes()
}

/// A hello whose symbols have `symbol_size` bytes, with the symbol `esi` of an early message of
/// `block_len` bytes.
fn hello(symbol_size: u32, block_len: u32, esi: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 1];
    for value in [64 << 20, 4 << 20, symbol_size, 60_000] {
        bytes.extend(varint(value));
    }
    bytes.extend([7; 16]);
    // Symbols of a message, with their length and the message's end.
    bytes.push(0x4f);
    for value in [0, 0, esi, block_len, data.len() as u32] {
        bytes.extend(varint(value));
    }
    bytes.extend(data);
    bytes
}

/// Whether the server answers a SYN with a SYNACK.
fn is_answered(server: SocketAddr, syn: &[u8]) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket.send_to(syn, server).unwrap();
    let mut answer = [0; 2000];
    socket.recv(&mut answer).is_ok_and(|_| answer[0] == 2)
}

/// Forwards between a client and the server, and keeps the client's first datagram.
fn recorder(server: SocketAddr) -> (SocketAddr, std::sync::mpsc::Receiver<Vec<u8>>) {
    let bind = || Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let (inside, outside) = (bind(), bind());
    let address = outside.local_addr().unwrap();
    let (keep, kept) = std::sync::mpsc::channel();
    let client = Arc::new(Mutex::new(address));
    let (to_server, from_client, seen) = (inside.clone(), outside.clone(), client.clone());
    std::thread::spawn(move || {
        let mut bytes = [0; 2000];
        while let Ok((length, from)) = from_client.recv_from(&mut bytes) {
            *seen.lock().unwrap() = from;
            let _ = keep.send(bytes[..length].to_vec());
            to_server.send_to(&bytes[..length], server).unwrap();
        }
    });
    std::thread::spawn(move || {
        let mut bytes = [0; 2000];
        while let Ok(length) = inside.recv(&mut bytes) {
            let client = *client.lock().unwrap();
            outside.send_to(&bytes[..length], client).unwrap();
        }
    });
    (address, kept)
}

async fn fetches(server: SocketAddr, identity: &Identity, dest: &std::path::Path) {
    let url: Url = format!("fontis://{server}/file?key={}", identity.public()).parse().unwrap();
    let client = endpoint(&Identity::generate(), Accept::None);
    let options = SinkOptions::default();
    transfer::get(&client, server, &url, &Dest::new(dest), options, |_| {}).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_syns_are_dropped_and_an_honest_client_still_fetches() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![7; 100_000]).unwrap();
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    tokio::spawn(FileServer::new(server.clone(), folder.path(), None).unwrap().run(|_| {}));
    let address = server.local_addr();
    fetches(address, &identity, &folder.path().join("before")).await;

    let honest = syn(&identity, [1; 8], &hello(1192, 3, 0, b"ask"));
    assert!(is_answered(address, &honest), "a hello within its limits opens");
    for (number, symbol_size) in [(2, 0), (3, 1), (4, 63)] {
        let hostile = syn(&identity, [number; 8], &hello(symbol_size, 3, 0, b"ask"));
        assert!(!is_answered(address, &hostile), "symbols of {symbol_size} bytes");
    }
    // The last symbol of a message of 4 MiB: the connection opens, and nothing is kept.
    let incomplete = syn(&identity, [5; 8], &hello(1192, 4 << 20, 3518, &[1; 848]));
    assert!(is_answered(address, &incomplete));

    fetches(address, &identity, &folder.path().join("after")).await;
    assert_eq!(std::fs::read(folder.path().join("after")).unwrap(), vec![7; 100_000]);
}

/// The token of the RESET that answers a packet of a connection that is not there.
fn reset_token(of: SocketAddr) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut packet = [7; 100];
    packet[0] = 0x40;
    socket.send_to(&packet, of).unwrap();
    let mut answer = [0; 100];
    let length = socket.recv(&mut answer).unwrap();
    assert_eq!((answer[0], length), (4, 25), "a RESET");
    answer[9..25].to_vec()
}

#[tokio::test]
async fn endpoints_of_one_identity_do_not_reset_each_others_connections() {
    let identity = Identity::generate();
    let bind = |address: SocketAddr| {
        let config = EndpointConfig::new(*identity.secret());
        Endpoint::bind(address, config).unwrap()
    };
    let any = "127.0.0.1:0".parse().unwrap();
    let (server, client) = (bind(any), bind(any));
    let tokens = [&server, &client].map(|endpoint| reset_token(endpoint.local_addr()));
    assert_ne!(tokens[0], tokens[1]);

    // One that comes back to its port is known again.
    let address = server.local_addr();
    let again = || async {
        let mut endpoint = Endpoint::bind(address, EndpointConfig::new(*identity.secret()));
        while endpoint.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            endpoint = Endpoint::bind(address, EndpointConfig::new(*identity.secret()));
        }
        let endpoint = endpoint.unwrap();
        let token = reset_token(address);
        endpoint.farewell().await;
        token
    };
    server.farewell().await;
    drop(server);
    assert_eq!(again().await, again().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_unknown_key_ends_no_attempt() {
    let liar = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = liar.local_addr().unwrap();
    let identity = Identity::generate();
    let key = *identity.public().as_bytes();
    let client = endpoint(&Identity::generate(), Accept::None);
    let (doubts, doubted) = tokio::sync::oneshot::channel();
    let attempt =
        tokio::spawn(async move { client.connect_doubting(address, key, None, doubts).await });
    let lie = tokio::task::spawn_blocking(move || {
        let mut syn = [0; 2000];
        let (_, from) = liar.recv_from(&mut syn).unwrap();
        liar.send_to(&[&[5][..], &syn[5..13]].concat(), from).unwrap();
    });
    lie.await.unwrap();
    doubted.await.expect("the caller is told");
    // Longer than the patience with which a stranger's word was taken.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!attempt.is_finished(), "{:?}", attempt.await.unwrap().err());
    let config =
        EndpointConfig { accept: Accept::Anyone, ..EndpointConfig::new(*identity.secret()) };
    let server = Endpoint::bind(address, config).unwrap();
    let connected = tokio::time::timeout(Duration::from_secs(5), attempt).await;
    assert!(connected.expect("another copy of the SYN").unwrap().is_ok());
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_recorded_is_not_answered_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![7; 100_000]).unwrap();
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    let address = server.local_addr();
    tokio::spawn(FileServer::new(server.clone(), folder.path(), None).unwrap().run(|_| {}));
    let (between, recorded) = recorder(address);
    // While the connection lives it is another's, too.
    let client = endpoint(&Identity::generate(), Accept::None);
    let key = *identity.public().as_bytes();
    let connection = client.connect(between, key, None).await.unwrap();
    let first = recorded.recv().unwrap();
    assert_eq!(first[0], 1, "a SYN");
    assert!(connection.confirmed().await);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!is_answered(address, &first));
    connection.close(0, "");
    connection.closed().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..3 {
        assert!(!is_answered(address, &first));
    }
    let accepted = server.status().await.unwrap().accepted;
    assert_eq!(accepted, 1);
    // A SYN that nobody confirms may come again, for its first handshake may be forgotten.
    let other = syn(&identity, [9; 8], &hello(1000, 64, 0, &[7; 64]));
    assert!(is_answered(address, &other) && is_answered(address, &other));
    fetches(address, &identity, &folder.path().join("copy")).await;
}
