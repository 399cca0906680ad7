//! A server flooded with forged connection requests, and the client that it is there for.
//!
//! `FONTIS_FLOOD=100000x10 cargo test --release -p fontis --test flood -- --nocapture` sends so
//! many a second for so many seconds and prints what it measured; without the variable it is a
//! small sample.

#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fontis::transfer::{self, FileServer};
use fontis::udp::{Batch, Socket};
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, Url};
use fontis_base::{Ecn, Rate};
use fontis_proto::dfcp::SendOptions;

use support::recorded;

mod support;

/// What the honest client may use: far from what the machine can do, so that only time on the
/// processor is missing.
const RATE: Rate = Rate::from_mbps(100);

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

/// What a flood was.
#[derive(Debug, Default)]
struct Flood {
    sent: u64,
    bytes_sent: u64,
    answers: u64,
    bytes_answered: u64,
}

/// Sends `rate` requests a second until `over`, each from another address; every second one opens,
/// the others are noise.
fn flood(to: SocketAddr, request: &[u8], rate: u64, over: &AtomicBool) -> Flood {
    let socket = Socket::bind("0.0.0.0:0".parse().unwrap()).unwrap();
    let (mut batch, mut seen) = (Batch::new(), Flood::default());
    let (start, mut number) = (Instant::now(), 0_u64);
    let mut noise = request.to_vec();
    while !over.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        // What a machine too busy to send it in time has missed is not made up for all at once.
        number = number.max(due.saturating_sub(rate / 10));
        while number < due {
            number += 1;
            let [.., a, b, c] = (number as u32).to_be_bytes();
            let from = IpAddr::V4(Ipv4Addr::new(127, 1 + a, b, c));
            noise[5..13].copy_from_slice(&number.to_be_bytes());
            let datagram = if number % 2 == 0 { request } else { &noise };
            if socket.send(to, Some(from), Ecn::NotEct, datagram, None).is_ok() {
                seen.sent += 1;
                seen.bytes_sent += datagram.len() as u64 + 28;
            }
        }
        while socket.receive(&mut batch) || batch.datagrams().next().is_some() {
            for (_, datagram) in batch.datagrams() {
                seen.answers += 1;
                seen.bytes_answered += datagram.len() as u64 + 28;
            }
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    seen
}

async fn get(server: SocketAddr, identity: &Identity, dest: &Path) -> f64 {
    let url: Url = format!("fontis://{server}/file?key={}", identity.public()).parse().unwrap();
    let client = endpoint(&Identity::generate(), Accept::None);
    let (start, options) = (Instant::now(), SinkOptions::default());
    transfer::get(&client, server, &url, &Dest::new(dest), options, |_| {}).await.unwrap();
    start.elapsed().as_secs_f64()
}

/// Memory of this process, in bytes.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn a_flood_of_requests_leaves_room_for_an_honest_client() {
    let asked = std::env::var("FONTIS_FLOOD").ok();
    let (rate, seconds) = match &asked {
        Some(text) => {
            let (rate, seconds) = text.split_once('x').expect("RATExSECONDS");
            (rate.parse().unwrap(), seconds.parse().unwrap())
        }
        None => (10_000, 1),
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("file"),
        vec![7; RATE.bytes_in(fontis_base::Duration::from_secs(seconds)) as usize],
    )
    .unwrap();
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    server.limit(Some(RATE));
    tokio::spawn(FileServer::new(server.clone(), folder.path(), None).unwrap().run(|_| {}));
    let address = server.local_addr();
    let quiet = get(address, &identity, &folder.path().join("quiet")).await;

    let before = memory();
    let over = Arc::new(AtomicBool::new(false));
    let (ends, request) = (over.clone(), recorded(&identity, [1; 8], None));
    let thread = std::thread::spawn(move || flood(address, &request, rate, &ends));
    // The client comes when the flood is there.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let flooded = get(address, &identity, &folder.path().join("flooded")).await;
    let status = server.status().await.unwrap();
    let grown = memory().saturating_sub(before);
    over.store(true, Ordering::Relaxed);
    let flood = thread.join().unwrap();

    let (share, amplification) =
        (quiet / flooded, flood.bytes_answered as f64 / flood.bytes_sent as f64);
    println!(
        "{quiet:.2} s without, {flooded:.2} s with the flood: {share:.3} of the goodput; \
         {} connections, {} turned away, memory + {:.1} MB; {flood:?}: amplification {amplification:.3}",
        status.connections.len(),
        status.turned_away,
        grown as f64 / 1e6,
    );
    assert!(status.turned_away > 1000);
    assert!(status.connections.len() <= 1024 + 1);
    assert!(grown < 100_000_000, "{grown} bytes");
    assert!(amplification < 3.0);
    if asked.is_some() {
        assert!(share >= 0.9, "{share} of the goodput without the flood");
    }
}

/// What comes back within half a second for `datagram`, to a sender that says nothing more.
fn answered(to: SocketAddr, datagram: &[u8]) -> usize {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket.send_to(datagram, to).unwrap();
    let mut buffer = [0; 65_536];
    let sizes = std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|length| length + 28));
    // What is sent again and again never ends; three times what was sent is soon exceeded.
    sizes.take(500).sum()
}

#[tokio::test]
async fn a_cookie_that_nobody_made_proves_no_address() {
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    let address = server.local_addr();
    // It answers a request at once and at length, before the client has confirmed.
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            connection.send_message(vec![1; 1_000_000], SendOptions::default());
            tokio::spawn(async move { connection.closed().await });
        }
    });
    for byte in [1, 2] {
        let syn = recorded(&identity, [byte; 8], Some(b"ask"));
        let datagram = if byte == 1 { syn } else { [&[7][..], &[9; 16], &syn].concat() };
        let sent = datagram.len() + 28;
        let back = tokio::task::spawn_blocking(move || answered(address, &datagram)).await.unwrap();
        assert!(back > 0 && back <= 3 * sent, "{back} bytes for {sent}, datagram {byte}");
    }
}

/// SYNs of one host, each with another source id and another key, and all of them open.
fn requests(server: &Identity, count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|number| recorded(server, number.to_be_bytes(), None)).collect()
}

/// Sends `requests` again and again from `from` until `over`, some thousand a second, and returns
/// the cookie of each that is asked for one.
fn returning_flood(to: SocketAddr, from: Ipv4Addr, requests: &[Vec<u8>], over: &AtomicBool) -> u64 {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let (mut buffer, mut proved) = ([0; 2048], 0);
    for request in requests.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let _ = socket.send_to(request, to);
        while let Ok(length) = socket.recv(&mut buffer) {
            let [6, answer @ ..] = &buffer[..length] else { continue };
            let (id, cookie) = answer.split_at(8);
            let number = u64::from_be_bytes(id.try_into().unwrap());
            let proof = [&[7][..], cookie, &requests[number as usize]].concat();
            proved += u64::from(socket.send_to(&proof, to).is_ok());
        }
        std::thread::sleep(Duration::from_micros(250));
    }
    proved
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_returns_its_cookies_locks_nobody_else_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), vec![7; 100_000]).unwrap();
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    tokio::spawn(FileServer::new(server.clone(), folder.path(), None).unwrap().run(|_| {}));
    let address = server.local_addr();
    let requests = requests(&identity, 2000);
    let over = Arc::new(AtomicBool::new(false));
    let ends = over.clone();
    let host = Ipv4Addr::new(127, 77, 0, 1);
    let thread = std::thread::spawn(move || returning_flood(address, host, &requests, &ends));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let dest = folder.path().join("copy");
    let fetched =
        tokio::time::timeout(Duration::from_secs(5), get(address, &identity, &dest)).await;
    let status = server.status().await.unwrap();
    over.store(true, Ordering::Relaxed);
    let proved = thread.join().unwrap();
    println!("{fetched:?}: {proved} cookies returned, {} connections", status.connections.len());
    assert!(proved > 200, "{proved} cookies returned: no flood");
    assert!(fetched.is_ok(), "an honest client of another network waited for five seconds");
    assert!(status.connections.len() < 200, "{} connections of one host", status.connections.len());
    // What is not confirmed goes soon.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let left = server.status().await.unwrap().connections.len();
    assert!(left == 0, "{left} connections six seconds later");
}
