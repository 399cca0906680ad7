//! Transfers whose client appears under another address in the middle, as behind a NAT that forgot,
//! or in another network.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::{Bench, Running, content, hash};

/// How soon what was sent must flow again. On a quiet machine it takes less than a second.
const PATIENCE: Duration = Duration::from_secs(8);

/// Passes datagrams between one client and a server, and shows the server an address that can
/// change.
struct Nat {
    port: u16,
    change: Sender<Ipv4Addr>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Nat {
    fn new(server: u16) -> Self {
        let inside = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = inside.local_addr().unwrap().port();
        let outside = move |ip: Ipv4Addr| {
            let socket = UdpSocket::bind((ip, 0)).unwrap();
            socket.connect(("127.0.0.1", server)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        inside.set_nonblocking(true).unwrap();
        let (change, changes) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let thread = std::thread::spawn(move || {
            let mut socket = outside(Ipv4Addr::LOCALHOST);
            let mut client: Option<SocketAddr> = None;
            let mut buffer = [0; 65_536];
            while !ends.load(Ordering::Relaxed) {
                if let Ok(ip) = changes.try_recv() {
                    // What is on its way to the old address is lost with it.
                    socket = outside(ip);
                }
                let mut idle = true;
                while let Ok((length, from)) = inside.recv_from(&mut buffer) {
                    client = Some(from);
                    let _ = socket.send(&buffer[..length]);
                    idle = false;
                }
                while let Ok(length) = socket.recv(&mut buffer) {
                    let _ = client.map(|client| inside.send_to(&buffer[..length], client));
                    idle = false;
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self { port, change, over, thread: Some(thread) }
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Another port of the same host, and another host.
const CHANGES: [Ipv4Addr; 3] =
    [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)];

/// Changes the address each time that so much has moved, and sees it move on.
fn roam(running: &mut Running, nat: &Nat, expected: &str) {
    let mut moved = 0;
    for ip in CHANGES {
        while moved < 1_000_000 {
            moved = running.event("progress")["bytes"].as_u64().unwrap();
        }
        nat.change.send(ip).unwrap();
        let (begin, before) = (Instant::now(), moved);
        while moved < before + 3_000_000 {
            moved = running.event("progress")["bytes"].as_u64().unwrap();
        }
        println!("{ip}: on after {:?}", begin.elapsed());
        assert!(begin.elapsed() < PATIENCE, "{ip}: {:?}", begin.elapsed());
    }
    running.event(expected);
}

#[test]
fn a_fetch_survives_changes_of_its_address() {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content(24_000_000)).unwrap();
    let server = bench.serve(&["--rate", "24mbit"]);
    let nat = Nat::new(server.port);
    let url = server.url_with("127.0.0.1", nat.port, "file");
    let mut get = Running::start(bench.command(&["get", &url, "got", "--json", "--retries", "0"]));
    roam(&mut get, &nat, "done");
    assert_eq!(hash(&bench.path("got")), hash(&bench.path("served/file")));
}

#[test]
fn a_delivery_survives_changes_of_its_address() {
    let bench = Bench::new();
    fs::write(bench.path("name"), content(24_000_000)).unwrap();
    fs::create_dir(bench.path("inbox")).unwrap();
    let receiver = bench.receive(&[]);
    let nat = Nat::new(receiver.port);
    let url = receiver.url_with("127.0.0.1", nat.port, "");
    let rate = ["--rate", "24mbit", "--json", "--retries", "0"];
    let mut send = Running::start(bench.command(&[&["send", "name", &url][..], &rate].concat()));
    roam(&mut send, &nat, "sent");
    assert_eq!(hash(&bench.path("inbox/name")), hash(&bench.path("name")));
}
