use fontis_base::{Duration, Time};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp::{
    Options, SackBlocks, Segment, SynOptions, TcpConfig, TcpEndpoint, TcpFlags,
};

/// Bytes of payload in a full segment of these tests.
pub(crate) const MSS: u64 = 1000;
const ISN: u32 = 1000;
const PEER_ISN: u32 = u32::MAX - 5_000;

/// An endpoint under test, and the time.
pub(crate) struct Script {
    pub(crate) endpoint: TcpEndpoint,
    pub(crate) now: Time,
    peer_next: u32,
}

/// Segments of 1000 bytes, no timestamps, every segment acknowledged, Reno's window.
pub(crate) fn config() -> TcpConfig {
    TcpConfig {
        mtu: 1040,
        timestamps: false,
        delayed_ack: None,
        congestion: CongestionKind::NewReno,
        ..TcpConfig::default()
    }
}

/// Where the connection is set up when a script begins; the round-trip time of its handshake.
pub(crate) const RTT: u64 = 100;

/// Runs a script with an endpoint that has connected to a peer.
///
/// Each line is `+MS` (time since the last line), `<` (the peer's segment arrives) or `>` (the
/// endpoint sends), then in any order: `FROM:TO` payload, `ack N`, `sack FROM:TO…`, `win BYTES`,
/// `F` (FIN), `R` (RST), `E` (ECE), `C` (CWR), `M` (marked, arriving) or `T` (ECN-capable,
/// leaving). Positions are in bytes from the beginning of each stream. All that the endpoint sends
/// must be in the script, in its order, and at its time to the millisecond.
pub(crate) fn run(config: TcpConfig, write: u64, script: &str) -> Script {
    run_until(Script::connected(config), write, script)
}

/// The same with an endpoint that exists.
pub(crate) fn run_until(mut test: Script, write: u64, script: &str) -> Script {
    test.endpoint.write(write);
    let mut sent = test.drain();
    for (number, line) in (1..).zip(script.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        let (after, rest) = line.split_once(' ').expect("a time and more");
        let after: u64 = after.trim_start_matches('+').parse().expect("milliseconds");
        let until = test.now + Duration::from_millis(after);
        // What timers cause on the way is sent too early, unless it is just the next line.
        while sent.is_empty() {
            match test.endpoint.timeout() {
                Some((at, _)) if at <= until => {
                    test.now = test.now.max(at);
                    sent.extend(test.drain());
                    assert!(
                        sent.is_empty() || test.now + Duration::from_millis(1) > until,
                        "line {number}: {line}: sent before, at {}: {sent:?}",
                        test.now
                    );
                }
                _ => break,
            }
        }
        test.now = until;
        let (direction, what) = rest.split_at(1);
        match direction {
            ">" => {
                assert!(!sent.is_empty(), "line {number}: {line}: nothing was sent");
                let got = sent.remove(0);
                assert_eq!(got, normal(what), "line {number}: {line}; then {sent:?}");
            }
            "<" => {
                assert!(sent.is_empty(), "line {number}: {line}: was sent before: {sent:?}");
                let (segment, marked) = test.parse(what);
                test.endpoint.handle(test.now, &segment, marked);
                sent = test.drain();
            }
            _ => panic!("line {number}: {line}: < or >"),
        }
    }
    assert!(sent.is_empty(), "was sent after the script: {sent:?}");
    test
}

fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Script {
    /// An endpoint whose SYN was answered after [`RTT`].
    pub(crate) fn connected(config: TcpConfig) -> Self {
        let ecn = config.ecn;
        let endpoint = TcpEndpoint::connect(Time::ZERO, config, ISN);
        let mut test = Self { endpoint, now: Time::ZERO, peer_next: PEER_ISN };
        let syn = test.endpoint.poll(test.now).expect("a SYN").segment;
        assert!(syn.flags.has(TcpFlags::SYN) && !syn.flags.has(TcpFlags::ACK));
        test.now += Duration::from_millis(RTT);
        let answer = Segment {
            seq: PEER_ISN,
            ack: ISN.wrapping_add(1),
            window: 60_000,
            flags: TcpFlags::SYN
                | TcpFlags::ACK
                | if ecn { TcpFlags::ECE } else { TcpFlags::default() },
            ..Segment::default()
        };
        let options = Options::Syn(SynOptions {
            mss: 1000,
            window_scale: Some(4),
            sack_permitted: syn.syn().is_some_and(|syn| syn.sack_permitted),
        });
        test.endpoint.handle(test.now, &answer.with_options(options), false);
        test.peer_next = PEER_ISN.wrapping_add(1);
        let ack = test.endpoint.poll(test.now).expect("the handshake's third segment").segment;
        assert_eq!(ack.ack, test.peer_next);
        assert!(test.endpoint.poll(test.now).is_none());
        test
    }

    /// What the endpoint sends now, in the script's notation.
    fn drain(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.endpoint.poll(self.now) {
            let segment = transmit.segment;
            let ours = |wire: u32| wire.wrapping_sub(ISN.wrapping_add(1));
            let theirs = |wire: u32| wire.wrapping_sub(PEER_ISN.wrapping_add(1));
            let mut words = Vec::new();
            if segment.len > 0 {
                let start = ours(segment.seq);
                words.push(format!("{start}:{}", start + segment.len));
            }
            if segment.len == 0 || theirs(segment.ack) > 0 {
                words.push(format!("ack {}", theirs(segment.ack)));
            }
            for (left, right) in segment.sack() {
                words.push(format!("sack {}:{}", theirs(*left), theirs(*right)));
            }
            for (flag, name) in [
                (TcpFlags::FIN, "F"),
                (TcpFlags::RST, "R"),
                (TcpFlags::ECE, "E"),
                (TcpFlags::CWR, "C"),
            ] {
                if segment.flags.has(flag) {
                    words.push(name.to_owned());
                }
            }
            if transmit.ecn_capable {
                words.push("T".to_owned());
            }
            sent.push(words.join(" "));
        }
        sent
    }

    fn parse(&self, text: &str) -> (Segment, bool) {
        let base = PEER_ISN.wrapping_add(1);
        let mut segment = Segment {
            seq: base,
            ack: ISN.wrapping_add(1),
            flags: TcpFlags::ACK,
            // 16 times 60 000 bytes: never in the way.
            window: 60_000,
            ..Segment::default()
        };
        let mut marked = false;
        let mut blocks = SackBlocks::default();
        let mut words = text.split_whitespace();
        let range = |word: &str| {
            let (from, to) = word.split_once(':').expect("FROM:TO");
            (from.parse::<u32>().expect("a number"), to.parse::<u32>().expect("a number"))
        };
        while let Some(word) = words.next() {
            match word {
                "ack" => {
                    let position: u32 =
                        words.next().expect("a position").parse().expect("a number");
                    segment.ack = ISN.wrapping_add(1).wrapping_add(position);
                }
                "sack" => {
                    let (from, to) = range(words.next().expect("FROM:TO"));
                    let ours = ISN.wrapping_add(1);
                    assert!(blocks.push(ours.wrapping_add(from), ours.wrapping_add(to)));
                }
                "win" => {
                    let bytes: u32 = words.next().expect("bytes").parse().expect("a number");
                    segment.window = (bytes >> 4) as u16;
                }
                "seq" => {
                    let at: u32 = words.next().expect("a position").parse().expect("a number");
                    segment.seq = base.wrapping_add(at);
                }
                "F" => segment.flags |= TcpFlags::FIN,
                "R" => segment.flags |= TcpFlags::RST,
                "E" => segment.flags |= TcpFlags::ECE,
                "C" => segment.flags |= TcpFlags::CWR,
                "M" => marked = true,
                _ => {
                    let (from, to) = range(word);
                    segment.seq = base.wrapping_add(from);
                    segment.len = to - from;
                }
            }
        }
        let has_blocks = !blocks.is_empty();
        (if has_blocks { segment.with_options(Options::Sack(blocks)) } else { segment }, marked)
    }
}
