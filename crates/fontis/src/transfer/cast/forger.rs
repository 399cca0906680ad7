//! A receiver that has the URL, joins, and sends symbols that look like the sender's, over real
//! sockets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis_base::{Rate, Stream};
use fontis_proto::cast::{CastRate, CastState, CastSymbol};
use fontis_proto::dfcp::SendOptions;
use socket2::{Domain, Protocol, Socket as RawSocket, Type};

use super::caster::{CastOptions, Caster};
use super::content::Content;
use super::group::CastGroup;
use super::invitation::{Invitation, Promise};
use super::join::{Joined, invited, join};
use super::seal::{GroupPacket, GroupSeal};
use crate::dest::Dest;
use crate::endpoint::{Accept, Endpoint, EndpointConfig};
use crate::identity::Identity;
use crate::random::random;
use crate::sink::SinkOptions;
use crate::source::SourceOptions;
use crate::transfer::get::ID;
use crate::transfer::message::{Request, encode};
use crate::transfer::{FileServer, Progress};
use crate::udp::{Batch, GroupInterface, group_receiver};
use crate::url::Url;

const SIZE: usize = 6 << 20;
/// It tells its packets from the sender's by their address.
const FORGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const LOOPBACK: GroupInterface =
    GroupInterface { index: 0, address: IpAddr::V4(Ipv4Addr::LOCALHOST) };

fn endpoint(identity: &Identity, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind(([127, 0, 0, 1], 0).into(), config).unwrap()
}

/// Sends one packet for ten of the sender's, until it is stopped, and returns how many it sent.
fn forge(invitation: &Invitation, seed: u64, stop: &AtomicBool) -> u64 {
    let group = invitation.group;
    let raw = RawSocket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    raw.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    raw.bind(&SocketAddr::from((FORGER, 0)).into()).unwrap();
    let out = UdpSocket::from(raw);
    let ears = group_receiver(group, Ipv4Addr::LOCALHOST.into(), LOOPBACK).unwrap();
    let seal = GroupSeal::new(invitation.id, &invitation.group_secret);
    let (mut stream, mut batch) = (Stream::new(seed, "forger"), Batch::new());
    let Some(Promise::Object(Content { shape, .. })) = invitation.promise() else { panic!() };
    let blocks = shape.blocks();
    let (mut sent, mut old) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let is_more = ears.receive(&mut batch);
        for (meta, datagram) in batch.datagrams() {
            let Some(opened) = seal.open(datagram.into()) else { continue };
            if meta.addr.ip() == IpAddr::V4(FORGER) || stream.below(10) != 0 {
                continue;
            }
            let number = opened.number + stream.below(60);
            let data = Bytes::from(vec![0xee; usize::from(shape.symbol_size())]);
            let (block, esi) = (stream.below(u64::from(blocks)) as u32, stream.below(1200) as u32);
            let packet = match (stream.below(8), opened.packet) {
                // The same number, block and symbol, with other bytes.
                (0..=2, GroupPacket::Symbol(symbol)) => {
                    GroupPacket::Symbol(CastSymbol { data, ..symbol })
                }
                // What it makes of a state, with the signature of the true one.
                (3, GroupPacket::State(state, signature)) => {
                    GroupPacket::State(CastState { idle: true, members: 9999, ..state }, signature)
                }
                (4, _) => GroupPacket::State(CastState::default(), [7; 64]),
                _ => GroupPacket::Symbol(CastSymbol { visit: 1, block, esi, timing: None, data }),
            };
            let mut bytes = Vec::new();
            match stream.below(6) {
                0 if !old.is_empty() => {
                    bytes.clone_from(&old[stream.below(old.len() as u64) as usize]);
                }
                _ => {
                    seal.seal(number, &packet, &mut bytes);
                    sent += 1;
                }
            }
            old.push(datagram.to_vec());
            let _ = out.send_to(&bytes, group);
        }
        if !is_more {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    sent
}

/// The time that one receiver takes beside another that forges, or only listens; how many packets
/// that one forged, and how many the receiver has told of, by address.
async fn cast(is_forging: bool, seed: u64) -> (f64, u64, Vec<(IpAddr, u64)>) {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..SIZE).map(|i| (i * 31 + i / 251) as u8).collect();
    let from = folder.path().join("file");
    std::fs::write(&from, &content).unwrap();
    let identity = Identity::generate();
    let server = endpoint(&identity, Accept::Anyone);
    let [a, b] = random();
    let address = SocketAddr::from(([239, 255, a, b], 20_000 + u16::from(b)));
    let options = CastOptions {
        group: CastGroup { address, interface: LOOPBACK, hops: 1 },
        rate: CastRate::Fixed(Rate::from_mbps(40)),
        wait_for: 2,
    };
    let caster = Caster::new(&from, &SourceOptions::default(), options).unwrap();
    let remote = server.local_addr();
    let running = tokio::spawn(FileServer::of_cast(server, caster, None).run(|_| {}));
    let evil = endpoint(&Identity::generate(), Accept::None);
    let connection = evil.connect(remote, *identity.public().as_bytes(), None).await.unwrap();
    let request = encode(&Request::Join { id: ID, secret: Vec::new(), path: String::new() });
    connection.send_message(request, SendOptions::default());
    let invitation = invited(&connection).await.unwrap();
    let stop = Arc::new(AtomicBool::new(!is_forging));
    let forging = std::thread::spawn({
        let stop = stop.clone();
        move || forge(&invitation, seed, &stop)
    });
    let url: Url = format!("fontis://{remote}/file?key={}", identity.public()).parse().unwrap();
    let client = endpoint(&Identity::generate(), Accept::None);
    let told = Mutex::new(std::collections::BTreeMap::new());
    let progress = |now: Progress| {
        if let Progress::Forged { from, packets } = now {
            told.lock().unwrap().insert(from, packets);
        }
    };
    let (begin, to) = (Instant::now(), folder.path().join("got"));
    let dest = Dest::new(&to);
    let joining =
        join(&client, remote, &url, Some(LOOPBACK), &dest, SinkOptions::default(), progress);
    let (_, how) = tokio::time::timeout(Duration::from_secs(30), joining).await.unwrap().unwrap();
    let took = begin.elapsed().as_secs_f64();
    assert_eq!(how, Joined::Group);
    assert!(std::fs::read(&to).unwrap() == content, "seed {seed}: wrong bytes");
    stop.store(true, Ordering::Relaxed);
    let sent = forging.join().unwrap();
    running.abort();
    (took, sent, told.into_inner().unwrap().into_iter().collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_url_and_forges_is_named_and_delays_nobody() {
    let mut outcomes = Vec::new();
    for seed in 1..=3 {
        let (honest, _, told) = cast(false, seed).await;
        assert_eq!(told, [], "nobody forges");
        let (forged, sent, told) = cast(true, seed).await;
        println!(
            "seed {seed}: {honest:.3} s, beside {sent} forged packets {forged:.3} s: {told:?}"
        );
        assert!(sent > 200, "seed {seed}: {sent}");
        let [(from, packets)] = told[..] else { panic!("seed {seed}: {told:?}") };
        assert_eq!(from, IpAddr::V4(FORGER), "seed {seed}");
        // Those that came just at the end are not judged, and some replace lost receipts.
        assert!(packets * 10 > sent * 7 && packets <= sent, "seed {seed}: {packets} of {sent}");
        outcomes.push(forged / honest);
        if forged < honest * 1.1 {
            return;
        }
    }
    // The machine may have been busy once or twice.
    panic!("{outcomes:?} times as long");
}
