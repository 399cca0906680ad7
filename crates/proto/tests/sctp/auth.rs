//! Chunks that are authenticated (RFC 4895).

use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Stream};
use fontis_proto::sctp::{
    AbortReason, AuthChunk, AuthHash, AuthOffer, DataChunk, InitChunk, SctpAssociation, SctpAuth,
    SctpCause, SctpChunk, SctpConfig, SctpData, SctpEvent, SctpPacket, SctpSend, SharedKey,
    respond_without_state,
};

use super::pair::{Pair, Way, address, plain, runs};

/// DATA, SACK, ABORT, COOKIE ECHO and I-DATA.
const DATA: u8 = 0;
const ABORT: u8 = 6;
const COOKIE_ECHO: u8 = 10;
const I_DATA: u8 = 64;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn asking(kinds: &[u8]) -> SctpConfig {
    let auth = SctpAuth { kinds: kinds.iter().copied().collect(), ..SctpAuth::default() };
    SctpConfig { auth: Some(auth), ..plain() }
}

fn connected(configs: [SctpConfig; 2]) -> Pair {
    let mut pair = Pair::of(1, configs, vec![Way::of(50, 10.0)]);
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
    assert!(pair.run(secs(5), both));
    pair
}

fn ends() -> [IpAddr; 2] {
    [address(1, 0), address(0, 0)]
}

fn packet(pair: &mut Pair, chunks: Vec<SctpChunk>) -> SctpPacket {
    SctpPacket { source: 5000, destination: 5000, tag: pair.end(1).tag(), chunks }
}

/// The chunk that would be the client's first.
fn data(pair: &mut Pair) -> SctpChunk {
    SctpChunk::Data(DataChunk {
        tsn: pair.end(0).init().tsn,
        stream: 0,
        message: 0,
        fragment: 0,
        protocol: 0,
        is_interleaved: true,
        is_first: true,
        is_last: true,
        is_unordered: false,
        is_immediate: true,
        data: SctpData::Bytes(Bytes::from_static(b"forged")),
    })
}

/// Random lists, hashes and keys of both ends, over paths that lose, overtake and double: all
/// messages come as they were, and no chunk that the peer has named leaves without a code before
/// it.
#[test]
fn what_the_peer_has_named_is_authenticated_and_all_comes() {
    let mut codes = 0;
    for seed in 0..runs(30) {
        let mut random = Stream::new(seed, "auth");
        let key = |id: u16| SharedKey { id, bytes: vec![id as u8; usize::from(id)] };
        let keys = vec![key(0), key(5), key(300)];
        let named = [DATA, 3, 4, 5, ABORT, 7, 8, 9, COOKIE_ECHO, 11, I_DATA, 0xc0, 0xc2, 0x82];
        let configs = [0, 1].map(|_| {
            let hash = [AuthHash::Sha1, AuthHash::Sha256][random.below(2) as usize];
            let auth = SctpAuth {
                kinds: named.into_iter().filter(|_| random.below(2) == 0).collect(),
                hashes: [hash].into_iter().collect(),
                keys: keys.clone(),
                active: keys[random.below(3) as usize].id,
            };
            let most_mtu = if seed % 3 == 0 { 4000 } else { 0 };
            SctpConfig { auth: Some(auth), interleaving: seed % 2 == 0, most_mtu, ..plain() }
        });
        let way = Way {
            loss: random.unit() * 0.1,
            reorder: random.unit() * 0.1,
            double: random.unit() * 0.05,
            ..Way::of(5 + random.below(50), 1.0 + 20.0 * random.unit())
        };
        let mut pair = Pair::of(seed, configs.clone(), vec![way]);
        pair.keeps = true;
        let mut sent: [Vec<Bytes>; 2] = Default::default();
        for number in 0..40 {
            let side = usize::from(number % 4 == 3);
            let mut content = vec![0; 1 + random.below(9000) as usize];
            random.fill(&mut content);
            sent[side].push(content.clone().into());
            let message = (SctpSend::default(), SctpData::Bytes(content.into()));
            pair.queues[side].push_back(message);
        }
        let is_done = |pair: &Pair| pair.got[1].len() == 30 && pair.got[0].len() == 10;
        // Messages of a server wait until it is there.
        assert!(pair.run(secs(120), is_done), "seed {seed}: {:?}", pair.events);
        for (sent, got) in sent.iter().zip([&pair.got[1], &pair.got[0]]) {
            let got: Vec<&SctpData> = got.iter().map(|message| &message.data).collect();
            let wanted: Vec<SctpData> = sent.iter().cloned().map(SctpData::Bytes).collect();
            assert_eq!(got, wanted.iter().collect::<Vec<_>>(), "seed {seed}");
        }
        for (_, side, transmit) in &pair.sent {
            let peer = configs[1 - side].auth.as_ref().unwrap();
            assert!(!transmit.may_fragment, "seed {seed}: {:?}", transmit.packet);
            let mut is_behind = false;
            for chunk in &transmit.packet.chunks {
                let must = peer.kinds.contains(&chunk.kind());
                assert!(is_behind || !must, "seed {seed}: {:?}", transmit.packet);
                is_behind |= matches!(chunk, SctpChunk::Auth(_));
            }
            codes += u64::from(is_behind);
        }
    }
    assert!(codes > 20 * runs(30), "{codes}");
}

#[test]
fn what_has_no_code_or_a_wrong_one_changes_nothing() {
    let mut pair = connected([asking(&[]), asking(&[DATA, I_DATA, ABORT])]);
    pair.keeps = true;
    let now = pair.now;
    let send = SctpSend { stream: 5, ..SctpSend::default() };
    let forged = data(&mut pair);
    let abort = SctpChunk::Abort { is_reflected: false, causes: Vec::new() };
    let code = |hash, code| {
        SctpChunk::Auth(AuthChunk { key: 0, hash, code, covered: Bytes::from_static(&[0; 40]) })
    };
    let [short, long] = [20, 32].map(|len| Bytes::from(vec![7; len]));
    let all = [
        vec![forged.clone()],
        vec![abort.clone()],
        vec![code(1, short.clone()), forged.clone()],
        vec![code(3, long), forged.clone()],
        vec![code(1, Bytes::new()), abort],
        // The code covers only what is behind it.
        vec![forged.clone(), code(1, short)],
    ];
    for chunks in all {
        let packet = packet(&mut pair, chunks);
        pair.end(1).handle(now, ends(), &packet, false);
        assert_eq!(pair.end(1).stats().chunks_received, 0, "{packet:?}");
        assert!(!pair.end(1).is_closed());
    }
    // What is good is taken, and taken once; with another content it is not.
    pair.end(0).send(now, send, SctpData::Bytes(Bytes::from_static(b"good"))).unwrap();
    assert!(pair.run(secs(1), |pair| pair.got[1].len() == 1));
    let good = pair.sent.iter().find(|(_, side, transmit)| {
        *side == 0 && matches!(transmit.packet.chunks[..], [SctpChunk::Auth(_), ..])
    });
    let mut bytes = Vec::new();
    good.unwrap().2.packet.encode(&mut bytes);
    let at = bytes.windows(4).position(|window| window == b"good").unwrap();
    bytes[at] ^= 1;
    let tsn_at = at - 20 + 4;
    bytes[tsn_at + 3] = bytes[tsn_at + 3].wrapping_add(1);
    bytes[8..12].fill(0);
    let sum = crc32c::crc32c(&bytes).to_le_bytes();
    bytes[8..12].copy_from_slice(&sum);
    let changed = SctpPacket::decode(&bytes.into()).unwrap();
    let before = pair.end(1).stats();
    pair.end(1).handle(now, ends(), &changed, false);
    assert_eq!(pair.end(1).stats().chunks_received, before.chunks_received);
}

#[test]
fn a_hash_that_was_not_named_is_reported() {
    let auth = SctpAuth { hashes: [AuthHash::Sha1].into_iter().collect(), ..SctpAuth::default() };
    let config = SctpConfig { auth: Some(auth), ..plain() };
    let mut pair = connected([config.clone(), config]);
    let now = pair.now;
    for hash in [0, 2, 3, 99] {
        let code = Bytes::from(vec![0; 32]);
        let chunk = AuthChunk { key: 0, hash, code, covered: Bytes::new() };
        let packet = packet(&mut pair, vec![SctpChunk::Auth(chunk)]);
        pair.end(1).handle(now, ends(), &packet, false);
        let answer = pair.end(1).poll(now).unwrap().packet;
        let [SctpChunk::Error(causes)] = &answer.chunks[..] else { panic!("{answer:?}") };
        let details = Bytes::copy_from_slice(&u16::to_be_bytes(hash));
        assert_eq!(causes[..], [SctpCause { code: SctpCause::UNKNOWN_HASH, details }]);
    }
}

/// A server that wants cookies authenticated makes associations with those who have its key.
#[test]
fn only_who_has_the_key_gets_an_association() {
    let with_key = |bytes: &[u8]| {
        let keys = vec![SharedKey { id: 1, bytes: bytes.to_vec() }];
        let kinds = [COOKIE_ECHO].into_iter().collect();
        let auth = SctpAuth { kinds, keys, active: 1, ..SctpAuth::default() };
        SctpConfig { auth: Some(auth), ..plain() }
    };
    let run = |keys: [&[u8]; 2]| {
        let mut pair = Pair::of(1, keys.map(with_key), vec![Way::of(50, 10.0)]);
        let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
        let is_up = pair.run(secs(100), both);
        (is_up, pair.ends[1].is_some())
    };
    assert_eq!(run([b"one key", b"one key"]), (true, true));
    assert_eq!(run([b"another", b"one key"]), (false, false));
    assert_eq!(run([b"", b"one key"]), (false, false));
}

#[test]
fn who_authenticates_nothing_is_refused_by_who_asks_for_it() {
    for configs in [[plain(), asking(&[I_DATA])], [asking(&[I_DATA]), plain()]] {
        let mut pair = Pair::of(1, configs, vec![Way::of(50, 10.0)]);
        pair.run(secs(10), |_| false);
        let end = pair.events[0].last();
        let is_refused = matches!(
            end,
            Some(SctpEvent::Aborted(AbortReason::Peer(_) | AbortReason::Violation(_)))
        );
        assert!(is_refused, "{end:?}");
        assert!(pair.ends[1].is_none());
    }
    // Who only could is content.
    connected([plain(), asking(&[])]);
    connected([asking(&[]), plain()]);
}

fn init_of(config: &SctpConfig) -> (Pair, SctpPacket) {
    let mut pair = Pair::new(1, config, vec![Way::of(50, 10.0)]);
    let now = pair.now;
    let packet = pair.end(0).poll(now).unwrap().packet;
    (pair, packet)
}

/// An INIT with parameters of authentication in bytes.
fn init_with(packet: &SctpPacket, parameters: &[u8]) -> SctpPacket {
    let SctpChunk::Init(init) = &packet.chunks[0] else { panic!("{packet:?}") };
    let plain = InitChunk { auth: AuthOffer::None, ..(**init).clone() };
    let packet = SctpPacket { chunks: vec![SctpChunk::Init(Box::new(plain))], ..packet.clone() };
    let mut bytes = Vec::new();
    packet.encode(&mut bytes);
    bytes.extend_from_slice(parameters);
    let len = (bytes.len() - 12) as u16;
    bytes[14..16].copy_from_slice(&len.to_be_bytes());
    bytes[8..12].fill(0);
    let sum = crc32c::crc32c(&bytes).to_le_bytes();
    bytes[8..12].copy_from_slice(&sum);
    SctpPacket::decode(&bytes.into()).unwrap()
}

fn parameter(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend_from_slice(&(4 + value.len() as u16).to_be_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[test]
fn parameters_that_contradict_the_text_end_the_attempt() {
    let (pair, init) = init_of(&asking(&[]));
    let answer = |parameters: &[u8]| {
        let init = init_with(&init, parameters);
        let config = &pair.configs[1];
        respond_without_state(pair.now, config, ends(), &init).unwrap().chunks.remove(0)
    };
    let random = parameter(0x8002, &[7; 32]);
    let hashes = parameter(0x8004, &[0, 3, 0, 1]);
    let good = answer(&[random.clone(), hashes.clone()].concat());
    assert!(matches!(good, SctpChunk::InitAck(_)), "{good:?}");
    for bad in [
        [parameter(0x8002, &[7; 31]), hashes.clone()].concat(),
        [parameter(0x8002, &[7; 33]), hashes.clone()].concat(),
        [random.clone(), random.clone(), hashes.clone()].concat(),
        [random.clone(), parameter(0x8004, &[0, 3, 0])].concat(),
        [random.clone(), parameter(0x8004, &[0, 2])].concat(),
        [random.clone(), parameter(0x8004, &[])].concat(),
        [random.clone(), parameter(0x8004, &[0, 1].repeat(17))].concat(),
        [random.clone(), parameter(0x8003, &[0; 256]), hashes.clone()].concat(),
    ] {
        let answer = answer(&bad);
        let SctpChunk::Abort { causes, .. } = &answer else { panic!("{answer:?}") };
        assert_eq!(causes[0].code, SctpCause::VIOLATION);
    }
}

#[test]
fn every_prefix_of_a_packet_is_refused_or_a_packet() {
    let (mut pair, init) = init_of(&asking(&[DATA, I_DATA]));
    let code = Bytes::from(vec![9; 32]);
    let covered = Bytes::new();
    let auth = SctpChunk::Auth(AuthChunk { key: 1, hash: 3, code, covered });
    let forged = data(&mut pair);
    let packet = SctpPacket { source: 1, destination: 2, tag: 3, chunks: vec![auth, forged] };
    for packet in [init, packet] {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        for len in 12..bytes.len() {
            let mut part = bytes[..len].to_vec();
            part[8..12].fill(0);
            let sum = crc32c::crc32c(&part).to_le_bytes();
            part[8..12].copy_from_slice(&sum);
            let decoded = SctpPacket::decode(&part.into());
            // A whole number of chunks is left, or content whose padding is cut off.
            let is_whole = len == 12
                || decoded.as_ref().is_ok_and(|part| {
                    part.chunks.len() < packet.chunks.len() || len + 3 >= bytes.len()
                });
            assert!(decoded.is_err() || is_whole, "{len}: {decoded:?}");
        }
    }
}

#[test]
fn keys_begin_anew_with_an_association() {
    let mut pair = connected([asking(&[DATA, I_DATA]), asking(&[DATA, I_DATA])]);
    let text = |text: &'static str| SctpData::Bytes(Bytes::from_static(text.as_bytes()));
    let ends = [address(0, 0), address(1, 0)];
    let config = pair.configs[0].clone();
    let mut anew = SctpAssociation::connect(pair.now, config, ends);
    // With data beside the cookie: their code is that of the new keys.
    anew.send(pair.now, SctpSend::default(), text("early")).unwrap();
    pair.ends[0] = Some(anew);
    pair.events = Default::default();
    assert!(pair.run(secs(5), |pair| pair.events[1].contains(&SctpEvent::Restarted)));
    let now = pair.now;
    pair.end(1).send(now, SctpSend::default(), text("to the new one")).unwrap();
    assert!(pair.run(secs(5), |pair| pair.got[0].len() == 1 && pair.got[1].len() == 1));
    assert_eq!(pair.got[1][0].data, text("early"));
    assert_eq!(pair.got[0][0].data, text("to the new one"));
}

#[test]
fn two_ends_that_connect_at_once_have_the_same_keys() {
    let config = asking(&[DATA, I_DATA, COOKIE_ECHO]);
    let mut pair = Pair::new(5, &config, vec![Way::of(50, 10.0)]);
    let server = pair.configs[1].clone();
    pair.ends[1] = Some(SctpAssociation::connect(pair.now, server, ends()));
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
    assert!(pair.run(secs(5), both));
    for end in 0..2 {
        let now = pair.now;
        pair.end(end).send(now, SctpSend::default(), SctpData::Counted(9)).unwrap();
    }
    assert!(pair.run(secs(5), |pair| pair.got.iter().all(|got| got.len() == 1)));
}
