//! Requests to change addresses that tests write themselves (RFC 5061).

use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::Duration;
use fontis_proto::sctp::{
    AbortReason, AddressAnswer, AddressChange, AddressParameter, AsconfAckChunk, AsconfChunk,
    SctpAddressError, SctpCause, SctpChunk, SctpEvent, SctpPacket, SctpPathState,
};

use super::addresses::{change, connected, dynamic, is_asconf, open, ways};
use super::pair::{Pair, address};

use AddressChange::{Add, Primary, Remove};

/// The client's request in a packet to the server.
fn request(pair: &mut Pair, ahead: u32, changes: &[AddressChange]) -> SctpPacket {
    let number = pair.end(0).init().tsn.wrapping_add(ahead);
    let parameter =
        |(id, change): (u32, &AddressChange)| AddressParameter::Change { id, change: *change };
    let parameters = (7..).zip(changes).map(parameter).collect();
    let chunk = SctpChunk::Asconf(AsconfChunk { number, lookup: address(0, 0), parameters });
    SctpPacket { source: 5000, destination: 5000, tag: pair.end(1).tag(), chunks: vec![chunk] }
}

/// Gives the server a packet from an address, and takes its answers to changes.
fn give(pair: &mut Pair, from: IpAddr, packet: &SctpPacket) -> Vec<(IpAddr, AsconfAckChunk)> {
    let now = pair.now;
    let server = pair.end(1);
    server.handle(now, [address(1, 0), from], packet, false);
    let mut answers = Vec::new();
    while let Some(transmit) = server.poll(now) {
        for chunk in transmit.packet.chunks {
            if let SctpChunk::AsconfAck(ack) = chunk {
                answers.push((transmit.peer, ack));
            }
        }
    }
    answers
}

/// The codes of the answers to changes; 0 is success.
fn codes(answers: &[(IpAddr, AsconfAckChunk)]) -> Vec<(u32, u16)> {
    let [(_, ack)] = answers else { panic!("{answers:?}") };
    let code = |answer: &AddressAnswer| answer.causes.first().map_or(0, |cause| cause.code);
    ack.answers.iter().map(|answer| (answer.id, code(answer))).collect()
}

/// Rules F7, F8, F9 and F11, and the wildcards.
#[test]
fn what_the_peer_may_not_ask_for_is_refused_with_its_cause() {
    let [a, b, c, d] = [0, 1, 2, 3].map(|path| address(0, path));
    let zeros = IpAddr::from([0; 4]);
    let ask = |count: usize, from: IpAddr, changes: &[AddressChange]| {
        let mut pair = connected(&open(), [count, 1], ways(4));
        let packet = request(&mut pair, 0, changes);
        let answers = give(&mut pair, from, &packet);
        // It goes where the request came from (rule E6).
        assert_eq!(answers[0].0, from);
        (codes(&answers), pair.end(1).peer_addresses().to_vec())
    };
    let (last, source) = (SctpCause::LAST_ADDRESS, SctpCause::SOURCE_ADDRESS);
    assert_eq!(ask(1, a, &[Remove(a)]), (vec![(7, last)], vec![a]));
    assert_eq!(ask(2, a, &[Remove(a)]), (vec![(7, source)], vec![a, b]));
    assert_eq!(ask(2, a, &[Remove(b)]), (vec![], vec![a]));
    assert_eq!(ask(2, b, &[Remove(a), Remove(b)]), (vec![(8, last)], vec![b]));
    assert_eq!(ask(1, b, &[Add(b), Remove(a)]), (vec![], vec![b]));
    // What follows a failure fails, but not the choice of a primary address.
    let refused = vec![(7, source), (8, source), (9, 0)];
    assert_eq!(ask(2, a, &[Remove(a), Add(c), Primary(b)]), (refused, vec![a, b]));
    let bad = vec![(7, SctpCause::UNUSABLE_ADDRESS)];
    assert_eq!(ask(2, a, &[Primary(c)]), (bad.clone(), vec![a, b]));
    assert_eq!(ask(1, a, &[Add("::1".parse().unwrap())]), (bad, vec![a]));
    let bad = vec![(7, SctpCause::INVALID_PARAMETER)];
    assert_eq!(ask(1, a, &[Add(IpAddr::from([224, 0, 0, 1]))]), (bad.clone(), vec![a]));
    assert_eq!(ask(1, a, &[Add(IpAddr::from([255; 4]))]), (bad, vec![a]));
    // Zeros are the source, or all but the source.
    assert_eq!(ask(1, d, &[Add(zeros)]), (vec![], vec![a, d]));
    assert_eq!(ask(3, b, &[Remove(zeros)]), (vec![], vec![b]));
    assert_eq!(ask(1, d, &[Add(zeros), Remove(zeros)]), (vec![], vec![d]));
    assert_eq!(ask(2, d, &[Remove(zeros)]), (vec![(7, last)], vec![a, b]));
    // What is so already.
    assert_eq!(ask(2, a, &[Add(b), Remove(c)]), (vec![], vec![a, b]));
    let many: Vec<AddressChange> = (1..18).map(|path| Add(address(0, path))).collect();
    let (answers, peers) = ask(1, a, &many);
    let shortage = SctpCause::ADDRESS_SHORTAGE;
    assert_eq!((answers, peers.len()), (vec![(22, shortage), (23, shortage)], 16));
}

/// Rules E1 to E5.
#[test]
fn a_request_is_fulfilled_once_and_answered_as_often_as_it_comes() {
    let mut pair = connected(&open(), [1, 1], ways(4));
    let [a, b, c, d] = [0, 1, 2, 3].map(|path| address(0, path));
    let first = request(&mut pair, 0, &[Add(b)]);
    let answer = give(&mut pair, a, &first);
    assert_eq!(answer.len(), 1);
    assert_eq!(give(&mut pair, a, &first), answer);
    // One that is not next is none.
    for ahead in [2, 3, u32::MAX, 1 << 31] {
        let stray = request(&mut pair, ahead, &[Add(d)]);
        assert_eq!(give(&mut pair, a, &stray), []);
    }
    // The second is the next one; the first comes again beside it, and then alone.
    let second = request(&mut pair, 1, &[Remove(b), Add(c)]);
    let chunks = first.chunks.iter().chain(&second.chunks).cloned().collect();
    let both = SctpPacket { chunks, ..first.clone() };
    let answers = give(&mut pair, a, &both);
    let numbers: Vec<u32> = answers.iter().map(|(_, ack)| ack.number).collect();
    let number = pair.end(0).init().tsn;
    assert_eq!(numbers, [number, number.wrapping_add(1)]);
    assert_eq!(pair.end(1).peer_addresses(), [a, c]);
    assert_eq!(give(&mut pair, a, &first)[0].1.number, number);
    assert_eq!(pair.end(1).peer_addresses(), [a, c]);
    let third = request(&mut pair, 2, &[Remove(c)]);
    assert_eq!(give(&mut pair, a, &third).len(), 1);
    for old in [&first, &second] {
        assert_eq!(give(&mut pair, a, old), []);
    }
    assert_eq!(pair.end(1).peer_addresses(), [a]);
}

#[test]
fn a_request_without_a_code_changes_nothing_nor_does_one_that_comes_again() {
    let mut pair = connected(&dynamic(), [1, 1], ways(4));
    pair.keeps = true;
    let [a, b, c] = [0, 1, 2].map(|path| address(0, path));
    let forged = request(&mut pair, 0, &[Add(c), Primary(c)]);
    assert_eq!(give(&mut pair, a, &forged), []);
    // What goes with it is not heard either (rule D5).
    let mut bundle = forged.clone();
    bundle.chunks.push(SctpChunk::Heartbeat(Bytes::from_static(b"12345678")));
    let before = pair.end(1).stats();
    assert_eq!(give(&mut pair, a, &bundle), []);
    assert_eq!(pair.end(1).stats().sent, before.sent);
    change(&mut pair, 0, Add(b));
    change(&mut pair, 0, Remove(b));
    assert_eq!(pair.end(1).peer_addresses(), [a]);
    let asked: Vec<_> = pair.sent.iter().filter(|(_, _, t)| is_asconf(&t.packet)).collect();
    let asked: Vec<SctpPacket> = asked.iter().map(|(_, _, t)| t.packet.clone()).collect();
    assert_eq!(asked.len(), 2);
    pair.events = Default::default();
    for from in [a, b, c] {
        for packet in &asked {
            give(&mut pair, from, packet);
        }
        // Another address in the same request has another code.
        let mut bytes = Vec::new();
        asked[0].encode(&mut bytes);
        let last = bytes.len() - 1;
        bytes[last] ^= 2;
        bytes[8..12].fill(0);
        let sum = crc32c::crc32c(&bytes).to_le_bytes();
        bytes[8..12].copy_from_slice(&sum);
        let changed = SctpPacket::decode(&bytes.into()).unwrap();
        assert_eq!(give(&mut pair, from, &changed), []);
    }
    assert_eq!(pair.end(1).peer_addresses(), [a]);
    assert_eq!(pair.end(1).event(), None);
}

#[test]
fn an_answer_that_nobody_asked_for_is_an_end() {
    let mut pair = connected(&open(), [1, 1], ways(1));
    let (now, next) = (pair.now, pair.end(0).init().tsn);
    let ends = [address(0, 0), address(1, 0)];
    let ack = |pair: &mut Pair, number: u32| {
        let answers = Default::default();
        let chunks = vec![SctpChunk::AsconfAck(AsconfAckChunk { number, answers })];
        let tag = pair.end(0).tag();
        let packet = SctpPacket { source: 5000, destination: 5000, tag, chunks };
        pair.end(0).handle(now, ends, &packet, false);
        pair.end(0).is_closed() || pair.end(0).poll(now).is_some()
    };
    for old in [1, 2, 1 << 31] {
        assert!(!ack(&mut pair, next.wrapping_sub(old)), "{old}");
    }
    assert!(ack(&mut pair, next.wrapping_add(5)));
    let end = pair.end(0).event();
    let violation = AbortReason::Violation("an answer without a request");
    assert_eq!(end, Some(SctpEvent::Aborted(violation)));
}

/// Rules A7 to A9, and what is refused is taken back.
#[test]
fn refusals_are_told_and_taken_back() {
    let ends = [address(0, 0), address(1, 0)];
    let b = address(0, 1);
    let ask = |answer: &dyn Fn(&AsconfChunk) -> SctpChunk| {
        let mut pair = connected(&open(), [2, 1], ways(4));
        let end = pair.end(0);
        end.change_address(Remove(b)).unwrap();
        end.change_address(Add(address(0, 2))).unwrap();
        end.change_address(Add(address(0, 3))).unwrap();
        let now = pair.now;
        let packet = pair.end(0).poll(now).unwrap().packet;
        let SctpChunk::Asconf(asconf) = &packet.chunks[0] else { panic!("{packet:?}") };
        assert_eq!(pair.end(0).paths().filter(|p| p.ends[0] == b).count(), 1);
        assert!(pair.end(0).paths().all(|p| p.ends[0] != b || p.state == SctpPathState::Removed));
        let (tag, chunks) = (pair.end(0).tag(), vec![answer(asconf)]);
        let packet = SctpPacket { source: 5000, destination: 5000, tag, chunks };
        pair.end(0).handle(now, ends, &packet, false);
        let events: Vec<_> = std::iter::from_fn(|| pair.end(0).event()).collect();
        (events, pair)
    };
    let failed = |asconf: &AsconfChunk, at: usize, done: &[usize]| {
        let id = |at: usize| match asconf.parameters[at] {
            AddressParameter::Change { id, .. } => id,
            AddressParameter::Unknown { .. } => panic!("{asconf:?}"),
        };
        let causes = vec![SctpCause::of(SctpCause::ADDRESS_SHORTAGE)];
        let failed = AddressAnswer { id: id(at), causes };
        let done = done.iter().map(|at| AddressAnswer { id: id(*at), causes: Vec::new() });
        let answers = std::iter::once(failed).chain(done).collect();
        SctpChunk::AsconfAck(AsconfAckChunk { number: asconf.number, answers })
    };
    let [c, d] = [2, 3].map(|path| address(0, path));
    let (done, refused) = (SctpEvent::AddressChanged, SctpEvent::AddressRefused);
    let code = SctpCause::ADDRESS_SHORTAGE;
    let (events, _) = ask(&|asconf| failed(asconf, 1, &[]));
    assert_eq!(events, [done(Remove(b)), refused(Add(c), code), refused(Add(d), code)]);
    let (events, mut pair) = ask(&|asconf| failed(asconf, 0, &[2]));
    assert_eq!(events, [refused(Remove(b), code), refused(Add(c), code), done(Add(d))]);
    assert_eq!(pair.end(0).own_addresses(), [address(0, 0), b, d]);
    let live = pair.end(0).paths().filter(|path| path.state != SctpPathState::Removed);
    assert_eq!(live.filter(|path| path.ends[0] == b).count(), 1);
    // A peer that does not know the chunk after all.
    let (events, mut pair) = ask(&|_| {
        let details = Bytes::from_static(&[0xc1, 0, 0, 4]);
        SctpChunk::Error(vec![SctpCause { code: SctpCause::UNKNOWN_CHUNK, details }])
    });
    let code = SctpCause::UNKNOWN_CHUNK;
    assert_eq!(events, [Remove(b), Add(c), Add(d)].map(|change| refused(change, code)));
    assert_eq!(pair.end(0).change_address(Add(c)), Err(SctpAddressError::NotAgreed));
}

#[test]
fn every_prefix_of_a_request_and_of_an_answer_is_refused() {
    let parameters = [Add(address(0, 1)), Remove(IpAddr::from([7; 16])), Primary(address(0, 2))];
    let change = |(id, change)| AddressParameter::Change { id, change };
    let parameters = (1..).zip(parameters).map(change).collect();
    let asconf = AsconfChunk { number: 5, lookup: address(0, 0), parameters };
    let details = Bytes::from_static(b"12345");
    let cause = SctpCause { code: SctpCause::SOURCE_ADDRESS, details };
    let answers = [vec![], vec![cause.clone(), cause]];
    let answers = (1..).zip(answers).map(|(id, causes)| AddressAnswer { id, causes }).collect();
    let ack = AsconfAckChunk { number: 5, answers };
    for chunk in [SctpChunk::Asconf(asconf), SctpChunk::AsconfAck(ack)] {
        let packet = SctpPacket { source: 1, destination: 2, tag: 3, chunks: vec![chunk] };
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        assert_eq!(SctpPacket::decode(&bytes.clone().into()), Ok(packet.clone()));
        let decode = |mut bytes: Vec<u8>| {
            bytes[8..12].fill(0);
            let sum = crc32c::crc32c(&bytes).to_le_bytes();
            bytes[8..12].copy_from_slice(&sum);
            SctpPacket::decode(&bytes.into())
        };
        for len in 13..bytes.len() {
            assert!(decode(bytes[..len].to_vec()).is_err(), "{len}");
        }
        // Another byte is another packet, or none; the chunk's length is what it must be.
        for at in 14..16 {
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            assert_ne!(decode(changed), Ok(packet.clone()), "{at}");
        }
    }
}

/// Rule F4: the request was on its way to an address that is gone when it comes.
#[test]
fn an_answer_leaves_from_an_address_that_is_there() {
    let mut pair = connected(&open(), [2, 1], ways(2));
    let [a, b, x] = [address(0, 0), address(0, 1), address(1, 0)];
    change(&mut pair, 0, Remove(b));
    pair.end(1).change_address(Add(address(1, 1))).unwrap();
    let now = pair.now;
    let packet = pair.end(1).poll(now).unwrap().packet;
    assert!(is_asconf(&packet));
    pair.end(0).handle(now, [b, x], &packet, false);
    let is_answer = |chunk: &SctpChunk| matches!(chunk, SctpChunk::AsconfAck(_));
    let answers: Vec<[IpAddr; 2]> = std::iter::from_fn(|| pair.end(0).poll(now))
        .filter(|transmit| transmit.packet.chunks.iter().any(is_answer))
        .map(|transmit| [transmit.local, transmit.peer])
        .collect();
    assert_eq!(answers, [[a, x]]);
}

/// A peer answers what was on its way to an address that it has lost as if it had no association,
/// maybe from another address. Later such an answer is an end.
#[test]
fn an_answer_to_what_missed_an_address_is_no_end() {
    let mut pair = connected(&open(), [2, 1], ways(2));
    let [a, b, x] = [address(0, 0), address(0, 1), address(1, 0)];
    let request = request(&mut pair, 0, &[Remove(b)]);
    give(&mut pair, a, &request);
    let chunks = vec![SctpChunk::Abort { is_reflected: true, causes: Vec::new() }];
    // It bears the tag of the packet that it answers.
    let packet = SctpPacket { source: 5000, destination: 5000, tag: pair.end(0).tag(), chunks };
    for (seconds, is_end) in [(0, false), (1, false), (3, true)] {
        let now = pair.now + Duration::from_secs(seconds);
        pair.end(1).handle(now, [x, a], &packet, false);
        assert_eq!(pair.end(1).is_closed(), is_end, "after {seconds} s");
    }
}
