//! The relay over real sockets on the loopback. Bounds are loose above, because the machine is
//! shared; below they are strict, because nothing may ever be early.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fontis_base::{Probability, Rate};
use fontis_lab::relay::{RelayConfig, RelayError, RelayHandle};
use fontis_net::{LinkConfig, Loss, QueueKind};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

const SEED: u64 = 3;
const V4: &str = "127.0.0.1:0";
const V6: &str = "[::1]:0";

fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// A relay to `server`, and a client of it.
fn relay(
    server: &UdpSocket,
    address: &str,
    change: impl FnOnce(&mut RelayConfig),
) -> (RelayHandle, UdpSocket) {
    let listen: SocketAddr = address.parse().unwrap();
    let mut config = RelayConfig::new(listen, server.local_addr().unwrap());
    config.seed = SEED;
    change(&mut config);
    let relay = RelayHandle::spawn(config).unwrap();
    let client = socket(address);
    client.connect(relay.local_addr()).unwrap();
    (relay, client)
}

/// Sends back whatever comes, for as long as the test runs.
fn echo(address: &str) -> UdpSocket {
    let server = socket(address);
    let echo = server.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((n, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..n], from);
        }
    });
    server
}

fn delay(millis: u64) -> impl FnOnce(&mut RelayConfig) {
    let link =
        LinkConfig { delay: fontis_base::Duration::from_millis(millis), ..Default::default() };
    move |config| {
        config.up = link.clone();
        config.down = link;
    }
}

#[test]
fn the_round_trip_takes_twice_the_delay() {
    for address in [V4, V6] {
        let server = echo(address);
        let (_relay, client) = relay(&server, address, delay(25));
        let mut least = Duration::MAX;
        for i in 0..10u8 {
            let sent = Instant::now();
            client.send(&[i; 100]).unwrap();
            let mut buffer = [0; 200];
            assert_eq!(client.recv(&mut buffer).unwrap(), 100);
            assert_eq!(buffer[0], i);
            let rtt = sent.elapsed();
            assert!(rtt >= Duration::from_millis(50), "{address}: early: {rtt:?}");
            least = least.min(rtt);
        }
        assert!(least < Duration::from_millis(80), "{address}: late: {least:?}");
    }
}

#[test]
fn datagrams_leave_at_the_rate_of_the_line() {
    let server = socket(V4);
    let (relay, client) = relay(&server, V4, |config| config.up.rate = Rate::from_mbps(10));
    let begin = Instant::now();
    for _ in 0..100 {
        client.send(&[0; 1250 - 28]).unwrap();
    }
    let mut buffer = [0; 2000];
    for _ in 0..100 {
        server.recv(&mut buffer).unwrap();
    }
    let took = begin.elapsed();
    // A hundred packets of 1 ms.
    assert!(took >= Duration::from_millis(100), "early: {took:?}");
    assert!(took < Duration::from_millis(200), "late: {took:?}");
    let stats = relay.stop().unwrap();
    assert_eq!(stats.up.delivered.packets, 100);
    assert_eq!(stats.up.delivered.bytes, 125_000);
}

#[test]
fn losses_stay_within_four_standard_deviations() {
    let server = socket(V4);
    let p = 0.2;
    let (relay, client) =
        relay(&server, V4, |config| config.up.loss = Loss::Bernoulli(Probability::new(p)));
    let n = 5000;
    for i in 0..n {
        client.send(&[0; 20]).unwrap();
        if i % 50 == 0 {
            // Neither socket buffer may overflow.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    let stats = relay.stop().unwrap();
    assert_eq!(stats.up.entered.packets, n);
    let lost = stats.up.dropped.loss.packets as f64;
    let sigma = (n as f64 * p * (1.0 - p)).sqrt();
    assert!((lost - n as f64 * p).abs() < 4.0 * sigma, "seed {SEED}: {lost} of {n}");
}

#[test]
fn every_client_gets_its_own_answers() {
    let server = echo(V4);
    let (relay, first) = relay(&server, V4, delay(1));
    let clients: Vec<UdpSocket> = (0..50)
        .map(|_| {
            let client = socket(V4);
            client.connect(relay.local_addr()).unwrap();
            client
        })
        .chain([first])
        .collect();
    for round in 0..3u8 {
        for (i, client) in clients.iter().enumerate() {
            client.send(&[i as u8, round]).unwrap();
        }
        for (i, client) in clients.iter().enumerate() {
            let mut buffer = [0; 10];
            assert_eq!(client.recv(&mut buffer).unwrap(), 2);
            assert_eq!(buffer[..2], [i as u8, round]);
        }
    }
    let stats = relay.stop().unwrap();
    assert_eq!((stats.clients, stats.clients_total), (51, 51));
    assert_eq!(stats.down.delivered.packets, 153);
}

#[test]
fn one_client_too_many_is_refused_until_another_is_forgotten() {
    let server = echo(V4);
    let (relay, first) = relay(&server, V4, |config| {
        config.max_clients = 1;
        config.idle = fontis_base::Duration::from_millis(200);
    });
    let mut buffer = [0; 10];
    first.send(b"a").unwrap();
    first.recv(&mut buffer).unwrap();
    let second = socket(V4);
    second.connect(relay.local_addr()).unwrap();
    second.send(b"b").unwrap();
    second.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(second.recv(&mut buffer).is_err());
    std::thread::sleep(Duration::from_millis(400));
    second.send(b"c").unwrap();
    second.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(second.recv(&mut buffer).unwrap(), 1);
    assert_eq!(buffer[0], b'c');
    let stats = relay.stop().unwrap();
    assert_eq!((stats.refused, stats.clients, stats.clients_total), (1, 1, 2));
}

#[test]
fn congestion_notification_passes_both_ways() {
    for address in [V4, V6] {
        let server = socket(address);
        let (_relay, client) = relay(&server, address, delay(1));
        client.send(b"hello").unwrap();
        let (_, from) = server.recv_from(&mut [0; 10]).unwrap();
        let to = client.peer_addr().unwrap();
        for ecn in [EcnCodepoint::Ect0, EcnCodepoint::Ect1, EcnCodepoint::Ce] {
            send_marked(&client, to, ecn);
            assert_eq!(receive_mark(&server), Some(ecn), "{address}: up");
            send_marked(&server, from, ecn);
            assert_eq!(receive_mark(&client), Some(ecn), "{address}: down");
        }
    }
}

fn send_marked(socket: &UdpSocket, destination: SocketAddr, ecn: EcnCodepoint) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    let transmit = Transmit {
        destination,
        ecn: Some(ecn),
        contents: b"marked",
        segment_size: None,
        src_ip: None,
    };
    state.try_send(socket.into(), &transmit).unwrap();
}

fn receive_mark(socket: &UdpSocket) -> Option<EcnCodepoint> {
    let state = UdpSocketState::new(socket.into()).unwrap();
    let mut buffer = [0; 65_536];
    let mut meta = [RecvMeta::default()];
    let deadline = Instant::now() + Duration::from_secs(5);
    while state.recv(socket.into(), &mut [IoSliceMut::new(&mut buffer)], &mut meta).is_err() {
        assert!(Instant::now() < deadline, "nothing came");
        std::thread::sleep(Duration::from_millis(1));
    }
    meta[0].ecn
}

#[test]
fn a_packet_of_the_mtu_passes_and_a_larger_one_does_not() {
    let server = socket(V4);
    let (relay, client) = relay(&server, V4, |_| {});
    client.send(&[0; 1473]).unwrap();
    client.send(&[0; 1472]).unwrap();
    assert_eq!(server.recv(&mut [0; 2000]).unwrap(), 1472);
    assert_eq!(relay.stop().unwrap().oversize, 1);
}

#[test]
fn a_corrupted_datagram_has_exactly_one_bit_flipped() {
    let server = socket(V4);
    let (_relay, client) = relay(&server, V4, |config| config.up.corrupt = Probability::ONE);
    client.send(&[0; 100]).unwrap();
    let mut buffer = [0; 200];
    assert_eq!(server.recv(&mut buffer).unwrap(), 100);
    assert_eq!(buffer.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
}

#[test]
fn a_fair_queue_keeps_a_flood_from_pushing_out_another_client() {
    let server = socket(V4);
    let (relay, flood) = relay(&server, V4, |config| {
        config.up.rate = Rate::from_mbps(1);
        config.up.queue = QueueKind::Drr;
        config.up.buffer = "20kB".parse().unwrap();
    });
    for _ in 0..100 {
        flood.send(&[1; 972]).unwrap();
    }
    let modest = socket(V4);
    modest.connect(relay.local_addr()).unwrap();
    for _ in 0..5 {
        modest.send(&[2; 972]).unwrap();
    }
    // The buffer of twenty is full of the flood, yet all five get in, and out before what was there
    // before them.
    let mut order = Vec::new();
    for _ in 0..20 {
        let mut buffer = [0; 2000];
        server.recv(&mut buffer).unwrap();
        order.push(buffer[0]);
    }
    assert_eq!(order.iter().filter(|sender| **sender == 2).count(), 5, "{order:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_relay_on_all_addresses_answers_from_the_one_that_was_asked() {
    let server = echo(V4);
    let (relay, client) = relay(&server, "0.0.0.0:0", |_| {});
    let asked = SocketAddr::from(([127, 0, 0, 2], relay.local_addr().port()));
    client.connect(asked).unwrap();
    client.send(b"hello").unwrap();
    assert_eq!(client.recv(&mut [0; 10]).unwrap(), 5);
}

#[test]
fn a_server_that_is_not_there_yet_is_no_error() {
    let address = socket(V4).local_addr().unwrap();
    let config = RelayConfig::new(V4.parse().unwrap(), address);
    let relay = RelayHandle::spawn(config).unwrap();
    let client = socket(V4);
    client.connect(relay.local_addr()).unwrap();
    for _ in 0..3 {
        client.send(b"anyone?").unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let server = UdpSocket::bind(address).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.send(b"now").unwrap();
    assert_eq!(server.recv(&mut [0; 10]).unwrap(), 3);
}

#[test]
fn an_empty_datagram_passes() {
    let server = socket(V4);
    let (_relay, client) = relay(&server, V4, |_| {});
    client.send(&[]).unwrap();
    assert_eq!(server.recv(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn a_stranger_cannot_answer_for_the_server() {
    let server = socket(V4);
    let (relay, client) = relay(&server, V4, |_| {});
    client.send(b"hello").unwrap();
    let (_, from) = server.recv_from(&mut [0; 10]).unwrap();
    socket(V4).send_to(b"forged", from).unwrap();
    server.send_to(b"true", from).unwrap();
    let mut buffer = [0; 10];
    assert_eq!(client.recv(&mut buffer).unwrap(), 4);
    assert_eq!(relay.stop().unwrap().strangers, 1);
}

#[test]
fn a_port_in_use_is_an_error_that_says_what_to_do() {
    let server = socket(V4);
    let config = RelayConfig::new(server.local_addr().unwrap(), server.local_addr().unwrap());
    let error = RelayHandle::spawn(config).unwrap_err();
    assert!(matches!(error, RelayError::Listen { .. }));
    let text = error.to_string();
    assert!(text.contains("another port") && !text.contains('\n'), "{text}");
}
