//! What a client that has connected and then sends anything costs a server, and the others.
//!
//! `FONTIS_HOSTILE=10000x10 cargo test --release -p fontis-cli --test transfer hostile --
//! --nocapture` sends so many packets a second for so many seconds of each kind, and prints what
//! that took of the server beside an honest client at 100 Mbit/s; without the variable it is a
//! small sample. `FONTIS_KIND=Anything` leaves out the other kinds.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fontis::protection::{Header, Initiator, header};
use fontis::{Identity, PublicKey, Url};
use fontis_base::Stream;
use fontis_proto::dfcp::{
    BlockNeed, BlockStatus, ConnectionId, DfcpPacket, Feedback, Frame, Frames, Hello, Live,
    LiveKind, MessageRun, ObjectShape, Open, Params, Session, SymbolsFrame, VERSION, wire,
};

use super::support::{Bench, Listener, content};

/// Bytes of a packet's frames.
const ROOM: usize = 1150;
/// What honest clients get, in Mbit/s.
const HONEST: u64 = 100;

/// What a hostile client sends.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Pings,
    /// Feedback of as many runs as fit.
    Reports,
    /// Objects that nobody asked for.
    Offers,
    /// Long messages, each begun and left.
    Beginnings,
    /// Blocks of a message whose symbols say nothing.
    Nonsense,
    /// Ends of channels here and there.
    Ends,
    /// Statuses of channels that there are not.
    Statuses,
    /// Requests for a file, with the server's secret; nothing of it is taken.
    Requests,
    /// Requests with a wrong secret.
    Guesses,
    Anything,
}

const KINDS: [Kind; 10] = [
    Kind::Pings,
    Kind::Reports,
    Kind::Offers,
    Kind::Beginnings,
    Kind::Nonsense,
    Kind::Ends,
    Kind::Statuses,
    Kind::Requests,
    Kind::Guesses,
    Kind::Anything,
];

/// The server that is attacked.
#[derive(Clone, Copy)]
struct Target<'a> {
    port: u16,
    key: PublicKey,
    secret: &'a [u8],
}

/// A request for the file `file`, in postcard: the first of the kinds, its number, the secret, the
/// path, and whether something is held.
fn request(turn: u32, secret: &[u8]) -> Bytes {
    let id = [turn & 0x7f | 0x80, turn >> 7 & 0x7f | 0x80, turn >> 14 & 0x7f].map(|b| b as u8);
    let secret = [&[secret.len() as u8], secret].concat();
    [&[0][..], &id, &secret, &[4], b"file", &[0]].concat().into()
}

impl Kind {
    fn frame(self, turn: u32, largest: u64, secret: &[u8], random: &mut Stream) -> Frame {
        // The initiator's channels are even.
        let channel = 2 * (turn % 60_000);
        let live = |block_len, fin| Some(Live { kind: LiveKind::Message, block_len, fin });
        let symbol = |channel, esi, live, data: Bytes| {
            let (block, count, whole, long, len) = (0, 1, false, false, data.len() as u16);
            Frame::Symbols(SymbolsFrame {
                channel,
                block,
                esi,
                count,
                live,
                whole,
                long,
                len,
                data,
            })
        };
        let noise = |random: &mut Stream| {
            let mut data = vec![0; 1000];
            random.fill(&mut data);
            Bytes::from(data)
        };
        match self {
            Self::Pings => Frame::Ping,
            Self::Reports => Frame::Feedback(Box::new(Feedback {
                largest,
                received_at_us: u64::from(turn),
                runs: (0..400).map(|_| 1 + random.below(3) as u32).collect(),
                ..Feedback::default()
            })),
            Self::Offers => {
                let object =
                    ObjectShape { size: 1 << 40, block_size: 1 << 20, symbol_size: 1192, code: 1 };
                Frame::Open(Box::new(Open { channel, object, label: Bytes::from(vec![1; 1000]) }))
            }
            Self::Beginnings => symbol(channel, 0, live(256 << 10, false), noise(random)),
            Self::Nonsense => {
                // 300 symbols of 1000 bytes, and then the next message.
                let channel = 2 * ((turn / 300) % 60_000);
                let esi = random.below(1 << 20) as u32;
                symbol(channel, esi, live(256_000, true), noise(random))
            }
            Self::Ends => {
                let first = 2 * random.below(60_000) as u32;
                let run = MessageRun::new(random.below(2) == 0, first, 1 + random.below(3) as u32);
                run.map_or(Frame::Ping, Frame::GivenUp)
            }
            Self::Statuses => Frame::Blocks(Box::new(BlockStatus {
                channel: 1 + channel,
                sequence: turn,
                floor: 0,
                limit: u32::MAX,
                blocks: (0..100)
                    .map(|step| BlockNeed { block: 3 * step, needed: u32::MAX, done: false })
                    .collect(),
            })),
            Self::Requests | Self::Guesses => {
                let wrong = vec![7; secret.len()];
                let is_right = matches!(self, Self::Requests);
                let data = request(turn, if is_right { secret } else { &wrong });
                symbol(channel, 0, live(data.len() as u32, true), data)
            }
            Self::Anything => {
                let kind = KINDS[random.below(KINDS.len() as u64 - 1) as usize];
                kind.frame(turn, largest, secret, random)
            }
        }
    }
}

/// A client that has connected.
struct Client {
    socket: UdpSocket,
    session: Initiator,
    server: ConnectionId,
    /// The next packet's number, and the highest that came.
    number: u64,
    largest: u64,
    /// Bytes that came, and that nobody has counted yet.
    came: u64,
}

impl Client {
    fn connect(port: u16, key: PublicKey, turn: u64) -> Option<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let secret = *Identity::generate().secret();
        let mut session = Initiator::new(secret, *key.as_bytes(), None);
        let hello = Hello { params: Params::default(), frames: Vec::new() };
        let source = ConnectionId(turn.to_be_bytes());
        let (mut datagram, mut answer) = (Vec::new(), [0; 2000]);
        session.seal(&DfcpPacket::Syn { version: VERSION, source, hello }, &mut datagram).ok()?;
        socket.send(&datagram).ok()?;
        loop {
            let length = socket.recv(&mut answer).ok()?;
            if let Some(Header::Cookie { cookie, .. }) = header(&answer[..length]) {
                socket.send(session.prove(&cookie)?).ok()?;
                continue;
            }
            if let Ok(DfcpPacket::SynAck { source: server, .. }) =
                session.open(BytesMut::from(&answer[..length]))
            {
                socket.set_nonblocking(true).unwrap();
                let mut client = Self { socket, session, server, number: 0, largest: 0, came: 0 };
                client.send([Frame::Confirm].into_iter().collect());
                return Some(client);
            }
        }
    }

    fn send(&mut self, frames: Frames) {
        let number = self.number;
        let packet = DfcpPacket::Sealed { destination: self.server, path: 0, number, frames };
        let mut datagram = Vec::new();
        if self.session.seal(&packet, &mut datagram).is_ok() {
            let _ = self.socket.send(&datagram);
        }
        self.number += 1;
    }

    /// Takes what came; false if the server has ended the connection.
    fn hear(&mut self) -> bool {
        let mut answer = [0; 2000];
        while let Ok(length) = self.socket.recv(&mut answer) {
            self.came += length as u64;
            if let Ok(DfcpPacket::Sealed { number, frames, .. }) =
                self.session.open(BytesMut::from(&answer[..length]))
            {
                self.largest = self.largest.max(number);
                if frames.iter().any(|frame| matches!(frame, Frame::Close { .. })) {
                    return false;
                }
            }
        }
        true
    }
}

/// What an attacker did: packets sent, connections made, and bytes that came.
#[derive(Clone, Copy, Debug, Default)]
struct Attack {
    sent: u64,
    connections: u64,
    came: u64,
}

/// Sends packets of a kind until `over`.
fn attack(kind: Kind, server: Target<'_>, rate: u64, over: &AtomicBool) -> Attack {
    let mut random = Stream::new(7, "hostile");
    let (start, mut sent, mut connections, mut turn) = (Instant::now(), 0, 0, 0);
    let mut came = 0;
    let mut client = None;
    while !over.load(Ordering::Relaxed) {
        let Some(one) = &mut client else {
            client = Client::connect(server.port, server.key, connections + 1);
            connections += u64::from(client.is_some());
            turn = 0;
            continue;
        };
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        sent = sent.max(due.saturating_sub(rate / 10));
        while sent < due {
            let mut frames = Frames::new();
            let mut room = ROOM;
            loop {
                let frame = kind.frame(turn, one.largest, server.secret, &mut random);
                let length = wire::frame_len(&frame);
                if length > room || frames.len() == wire::MAX_FRAMES {
                    break;
                }
                room -= length;
                turn += 1;
                frames.push(frame);
            }
            one.send(frames);
            sent += 1;
        }
        let goes_on = one.hear();
        came += std::mem::take(&mut one.came);
        if !goes_on {
            client = None;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Attack { sent, connections, came }
}

/// Seconds of processor that a process has taken, and the most bytes that it held.
fn cost(process: u32) -> (f64, u64) {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|n| n.parse::<u64>().unwrap()).sum();
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    (ticks as f64 / 100.0, kib << 10)
}

/// What a server took while an honest client fetched a file, and somebody else something.
#[derive(Debug)]
struct Cost {
    processor: f64,
    memory: u64,
    /// How long the honest client took.
    honest: f64,
}

fn measure(seconds: f64, beside: impl FnOnce(&Bench, &Listener, &AtomicBool) + Send) -> Cost {
    let bench = Bench::new();
    fs::write(bench.path("served/file"), content((HONEST as f64 * 125e3 * seconds) as usize))
        .unwrap();
    if seconds > 1.0 {
        // A file that has just changed is hashed for each request.
        std::thread::sleep(Duration::from_secs(4));
    }
    let server = bench.serve(&[]);
    server.forget_errors();
    let (before, _) = cost(server.id());
    let over = AtomicBool::new(false);
    let limit = format!("{HONEST}mbit");
    let honest = std::thread::scope(|scope| {
        scope.spawn(|| beside(&bench, &server, &over));
        std::thread::sleep(Duration::from_millis(200));
        let start = Instant::now();
        let got = bench.run(&["get", &server.url_of("file"), "got/", "--limit", &limit]);
        let took = start.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        assert_eq!(got.code, 0, "{}", got.stderr);
        took
    });
    let (after, memory) = cost(server.id());
    Cost { processor: (after - before) / honest, memory, honest }
}

/// Seconds of processor in a second that a client takes which sends so many bytes in a second.
fn cost_of_an_upload(rate: f64, seconds: f64) -> f64 {
    let bench = Bench::new();
    fs::write(bench.path("upload"), content((rate * seconds) as usize)).unwrap();
    fs::create_dir(bench.path("inbox")).unwrap();
    let receiver = bench.receive(&[]);
    receiver.forget_errors();
    let (before, _) = cost(receiver.id());
    let limit = format!("{}kbit", (rate / 125.0) as u64);
    let start = Instant::now();
    let sent = bench.run(&["send", "upload", &receiver.url, "--limit", &limit]);
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    let (after, _) = cost(receiver.id());
    (after - before) / start.elapsed().as_secs_f64()
}

#[test]
fn a_client_that_sends_anything_costs_little() {
    let asked = std::env::var("FONTIS_HOSTILE").ok();
    let (rate, seconds): (u64, f64) = match &asked {
        Some(text) => {
            let (rate, seconds) = text.split_once('x').expect("PACKETSxSECONDS");
            (rate.parse().unwrap(), seconds.parse().unwrap())
        }
        None => (2000, 0.2),
    };
    // The other client loses so many percent of what is sent to it.
    let beside = |limit: String, loss: u32| {
        measure(seconds, move |bench, server, over| {
            let path = ["--loss", &format!("{loss}%"), "--seed", "1"];
            let relay = (loss > 0).then(|| bench.relay("127.0.0.1", server.port, &path));
            let port = relay.as_ref().map_or(server.port, |relay| relay.port);
            let url = server.url_with("127.0.0.1", port, "file");
            let get = ["get", &url, "other/", "--limit", &limit];
            let mut get = bench.command(&get);
            let get = get.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut get = get.spawn().unwrap();
            while !over.load(Ordering::Relaxed) && get.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = get.kill();
            assert!(get.wait().is_ok());
        })
    };
    let honest = beside(format!("{HONEST}mbit"), 0);
    println!("two honest clients: {honest:.3?}");
    let named = std::env::var("FONTIS_KIND").ok();
    let is_named = |kind: &Kind| named.as_ref().is_none_or(|name| *name == format!("{kind:?}"));
    for kind in KINDS.into_iter().filter(is_named) {
        let mut attacked = Attack::default();
        let with = measure(seconds, |_, server, over| {
            let url: Url = server.url_of("file").parse().unwrap();
            let secret = url.secret.as_ref().unwrap().as_bytes();
            let target = Target { port: server.port, key: url.key, secret };
            attacked = attack(kind, target, rate, over);
        });
        let Attack { sent, connections, came } = attacked;
        let (mut more, share) = (with.processor - honest.processor, honest.honest / with.honest);
        println!(
            "{kind:?}: {sent} packets, {connections} connections; {more:+.3} of a processor, \
             {:+.1} MB, {share:.2} of the honest client's rate; {:.1} Mbit/s came",
            with.memory as f64 / 1e6 - honest.memory as f64 / 1e6,
            came as f64 / with.honest / 125e3,
        );
        assert!(sent > 0 && connections > 0, "{kind:?}");
        if matches!(kind, Kind::Requests) {
            assert_eq!(connections, 1, "a server parts from who sends what it cannot read");
        }
        assert!(with.memory < honest.memory + (64 << 20), "{kind:?}: {with:?}");
        if asked.is_some() {
            if matches!(kind, Kind::Anything) {
                // It reports that half of what leaves arrives, so the file is sent to it, as to an
                // honest client with such a path, and it sends as much as one that sends a file.
                let limit = format!("{}kbit", (came as f64 / with.honest / 125.0) as u64);
                let same = beside(limit, 50);
                let upload = cost_of_an_upload((sent * ROOM as u64) as f64 / with.honest, seconds);
                more = with.processor - same.processor - upload;
                println!(
                    "as much sent to an honest client: {same:.3?}; by one: {upload:.3} of a \
                     processor; {more:+.3} beyond both"
                );
            }
            assert!(share >= 0.9 && more < 0.15, "{kind:?}: {with:?}");
        }
    }
}
