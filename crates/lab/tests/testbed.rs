//! Closed-form checks of the testbed's links through real sockets. Where this process cannot make
//! networks, nothing is checked, and that is said.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fontis_base::{Probability, Rate, Size};
use fontis_lab::testbed::{self, Namespace, Shell, ShellConfig, SuperPackets, TestbedError};
use fontis_net::{Limit, LinkConfig, Loss, QueueKind, Reorder};
use fontis_sim::experiment::run::Watch;
use fontis_sim::scenario::Scenario;

/// Bytes of IPv4 and UDP headers.
const HEADERS: usize = 28;

/// Measurements are made one at a time: they would take each other's processors.
static ALONE: Mutex<()> = Mutex::new(());

fn config(up: LinkConfig, down: LinkConfig) -> ShellConfig {
    ShellConfig { up, down, mtu: 1500, seed: 7, super_packets: SuperPackets::Auto }
}

/// Runs `check` with a namespace outside and a shell behind these links.
fn with_shell(config: &ShellConfig, check: impl FnOnce(&Namespace, &Shell)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let outside = match Namespace::new() {
        Ok(outside) => outside,
        Err(error) => return eprintln!("not checked: {error}"),
    };
    match Shell::new(&outside, config) {
        Ok(shell) => check(&outside, &shell),
        Err(error @ TestbedError::Forbidden { .. }) => eprintln!("not checked: {error}"),
        Err(error) => panic!("{error}"),
    }
}

/// A socket outside, and one in the shell that is connected to it.
fn udp_pair(outside: &Namespace, shell: &Shell, ip: IpAddr) -> (UdpSocket, UdpSocket) {
    let bind = |namespace: &Namespace, address: SocketAddr| {
        let socket = namespace.run(|| {
            let socket = UdpSocket::bind(address).expect("a free port");
            // What the link bears is to be measured, not what a small buffer does.
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 32 << 20);
            Ok(socket)
        });
        socket.expect("a namespace")
    };
    let there = bind(outside, SocketAddr::new(ip, 0));
    let any: SocketAddr = if ip.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().expect("any");
    let here = bind(shell.namespace(), any);
    here.connect(there.local_addr().expect("bound")).expect("a way");
    there.set_read_timeout(Some(Duration::from_millis(500))).expect("a time-out");
    here.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    (there, here)
}

fn link() -> LinkConfig {
    LinkConfig::default()
}

#[test]
fn an_echo_takes_twice_the_delay_and_never_less() {
    let delay = fontis_base::Duration::from_millis(20);
    let links = || LinkConfig { delay, ..link() };
    with_shell(&config(links(), links()), |outside, shell| {
        for ip in shell.gateway() {
            let (there, here) = udp_pair(outside, shell, ip);
            let mut times: Vec<Duration> = Vec::new();
            for _ in 0..20 {
                let begin = Instant::now();
                here.send(&[1]).expect("sent");
                let (_, from) = there.recv_from(&mut [0; 8]).expect("it arrives");
                there.send_to(&[2], from).expect("sent");
                here.recv(&mut [0; 8]).expect("the answer arrives");
                times.push(begin.elapsed());
            }
            times.sort();
            assert!(times[0] >= Duration::from_millis(40), "{ip}: early: {times:?}");
            assert!(times[10] < Duration::from_millis(60), "{ip}: {times:?}");
        }
    });
}

#[test]
fn a_flood_arrives_at_the_rate_of_the_line() {
    let rate = Rate::from_mbps(20);
    let up = LinkConfig { rate, buffer: Limit::Packets(50), ..link() };
    with_shell(&config(up, link()), |outside, shell| {
        let (there, here) = udp_pair(outside, shell, shell.gateway()[0]);
        let size = 1000.0;
        let sending = std::thread::spawn(move || {
            let begin = Instant::now();
            // 40 Mbit/s, in small bursts.
            let mut sent = 0;
            while begin.elapsed() < Duration::from_secs(2) {
                let due = begin.elapsed().as_micros() / 200;
                while sent < due {
                    let _ = here.send(&[0; 1000 - HEADERS]);
                    sent += 1;
                }
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let mut arrivals = Vec::new();
        while there.recv(&mut [0; 2048]).is_ok() {
            arrivals.push(Instant::now());
        }
        sending.join().expect("it sends");
        // A tenth of a second each. In the median one: a host that pauses for longer than the queue
        // lasts leaves the line idle.
        let starts: Vec<_> = arrivals.iter().step_by(250).collect();
        let mut spans: Vec<_> =
            starts.windows(2).map(|pair| pair[1].duration_since(*pair[0])).collect();
        spans.sort();
        assert!(spans.len() >= 15, "{} packets of some 5000", arrivals.len());
        let got = 250.0 * size * 8.0 / spans[spans.len() / 2].as_secs_f64();
        let ratio = got / rate.as_bps() as f64;
        assert!((ratio - 1.0).abs() < 0.02, "{got} bit/s of {rate}");
    });
}

#[test]
fn random_loss_is_binomial_and_counted() {
    let probability = 0.05;
    let loss = Loss::Bernoulli(Probability::new(probability));
    with_shell(&config(LinkConfig { loss, ..link() }, link()), |outside, shell| {
        let (there, here) = udp_pair(outside, shell, shell.gateway()[0]);
        let sent = 20_000u32;
        for index in 0..sent {
            here.send(&[0; 100]).expect("sent");
            if index % 100 == 99 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let mut got = 0;
        while there.recv(&mut [0; 256]).is_ok() {
            got += 1;
        }
        let stats = shell.stats();
        // The kernels have a few words of their own over IPv6, which may be lost too.
        let others = stats.up.dropped.loss.packets.checked_sub(u64::from(sent - got));
        assert!(others.is_some_and(|others| others < 10), "{stats:?}: {got} of {sent} arrived");
        let expected = f64::from(sent) * probability;
        let sigma = (expected * (1.0 - probability)).sqrt();
        let lost = f64::from(sent - got);
        assert!((lost - expected).abs() < 4.0 * sigma, "seed 7: {lost} lost, not {expected}");
    });
}

#[test]
fn who_joins_a_full_queue_waits_for_all_of_it() {
    // 51 packets of 1000 bytes at 10 Mbit/s take 40.8 ms, then 5 ms of propagation.
    let delay = fontis_base::Duration::from_millis(5);
    let rate = Rate::from_mbps(10);
    let up = LinkConfig { rate, delay, buffer: Limit::Packets(50), ..link() };
    with_shell(&config(up, link()), |outside, shell| {
        let (there, here) = udp_pair(outside, shell, shell.gateway()[0]);
        let epoch = Instant::now();
        let sending = std::thread::spawn(move || {
            // Twice the line's rate; what a thread that slept too long has missed follows at once.
            for number in 0..2500 {
                let due = Duration::from_micros(400) * number;
                std::thread::sleep(due.saturating_sub(epoch.elapsed()));
                let mut bytes = [0; 1000 - HEADERS];
                bytes[..8].copy_from_slice(&(epoch.elapsed().as_nanos() as u64).to_le_bytes());
                let _ = here.send(&bytes);
            }
        });
        let mut delays = Vec::new();
        let mut bytes = [0; 2048];
        while there.recv(&mut bytes).is_ok() {
            let sent = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            delays.push(epoch.elapsed().as_nanos() as f64 - sent as f64);
        }
        sending.join().expect("it sends");
        delays.drain(..delays.len() / 2);
        delays.sort_by(f64::total_cmp);
        let median = delays[delays.len() / 2] * 1e-6;
        // A packet finds between 49 and 50 others, and a part of one on the line.
        assert!(median > 44.0 && median < 60.0, "{median} ms, not 45.8");
    });
}

/// Sends bytes through TCP from the shell outwards and back; they must be the same.
fn transfer(config: &ShellConfig, megabytes: usize) {
    with_shell(config, |outside, shell| {
        for ip in shell.gateway() {
            let listener = outside.run(|| Ok(TcpListener::bind((ip, 0)).expect("a free port")));
            let listener = listener.expect("a namespace");
            let to = listener.local_addr().expect("bound");
            let mut client =
                shell.namespace().run(|| Ok(std::net::TcpStream::connect(to).expect("it listens")));
            let client = client.as_mut().expect("a namespace");
            let mut server = listener.accept().expect("a client").0;
            client.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
            server.set_read_timeout(Some(Duration::from_secs(30))).expect("a time-out");
            let mut bytes = vec![0; megabytes << 20];
            fontis_base::Stream::new(7, "content").fill(&mut bytes);
            std::thread::scope(|scope| {
                let content = &bytes;
                scope.spawn(move || {
                    let mut got = vec![0; content.len()];
                    server.read_exact(&mut got).expect("all arrives");
                    assert!(got == *content, "{ip}: what arrived is not what was sent");
                    server.write_all(&got).expect("all leaves");
                });
                client.write_all(content).expect("all leaves");
                let mut got = vec![0; content.len()];
                client.read_exact(&mut got).expect("all comes back");
                assert!(got == *content, "{ip}: what came back is not what was sent");
            });
        }
    });
}

#[test]
fn super_packets_arrive_whole_cut_and_unmade() {
    let links = || LinkConfig { delay: fontis_base::Duration::from_millis(1), ..link() };
    for super_packets in [SuperPackets::Whole, SuperPackets::Cut, SuperPackets::None] {
        transfer(&ShellConfig { super_packets, ..config(links(), links()) }, 8);
    }
}

#[test]
fn nothing_wrong_arrives_through_loss_reordering_copies_marks_and_flipped_bits() {
    let one = Probability::new(0.01);
    let links = || LinkConfig {
        rate: Rate::from_mbps(200),
        delay: fontis_base::Duration::from_millis(1),
        queue: QueueKind::FifoEcn,
        buffer: Limit::Bytes(Size::from_bytes(200_000)),
        loss: Loss::Bernoulli(Probability::new(0.001)),
        corrupt: one,
        duplicate: one,
        reorder: Reorder {
            probability: one,
            by: fontis_base::Duration::from_millis(2),
            ..Reorder::default()
        },
        ..link()
    };
    transfer(&config(links(), links()), 2);
}

#[test]
fn super_packets_are_charged_as_the_packets_that_they_stand_for() {
    let links = || LinkConfig { delay: fontis_base::Duration::from_millis(1), ..link() };
    let whole = ShellConfig { super_packets: SuperPackets::Whole, ..config(links(), links()) };
    with_shell(&whole, |outside, shell| {
        let ip = shell.gateway()[0];
        let listener = outside.run(|| Ok(TcpListener::bind((ip, 0)).expect("a free port")));
        let listener = listener.expect("a namespace");
        let to = listener.local_addr().expect("bound");
        let mut client =
            shell.namespace().run(|| Ok(std::net::TcpStream::connect(to).expect("it listens")));
        let client = client.as_mut().expect("a namespace");
        let mut server = listener.accept().expect("a client").0;
        let size = 10_000_000;
        std::thread::scope(|scope| {
            scope.spawn(|| server.read_exact(&mut vec![0; size]).expect("all arrives"));
            client.write_all(&vec![0; size]).expect("all leaves");
        });
        let up = shell.stats().up.entered;
        // 1448 bytes of each 1500 are payload.
        let charged = size as f64 * 1500.0 / 1448.0;
        let ratio = up.bytes as f64 / charged;
        assert!((ratio - 1.0).abs() < 0.01, "{} bytes, not {charged}", up.bytes);
        assert!((up.packets as f64) < charged / 3000.0, "{} reads: none were super", up.packets);
    });
}

#[test]
fn nodes_of_a_swarm_feed_each_other() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = "[scenario]\nid = \"S\"\nduration = \"60 s\"\nsample = \"100 ms\"\n\
                [swarm]\npeers = 3\nblocks = 6\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n";
    let runs = Scenario::parse(text).and_then(|scenario| scenario.runs()).expect("a scenario");
    let watch = Watch { packets: Some(Default::default()), ..Watch::default() };
    let (watched, _) = match testbed::run(&runs[0].experiment, watch, || false) {
        Err(error @ TestbedError::Forbidden { .. }) => return eprintln!("not checked: {error}"),
        ran => ran.expect("a testbed").expect("nobody stops it"),
    };
    let metric = |name: &str| watched.recording.metric(name, "all").expect(name);
    assert_eq!(metric("completed"), 1.0);
    assert!(metric("swarm_sent_share") >= 1.0, "every block came to every peer");
    assert!(metric("swarm_origin_share") < 3.0, "the origin did not send all by itself");
    assert!(metric("swarm_time_ratio") > 1.0, "sooner than is possible");
    assert!(watched.trace.is_some());
}
