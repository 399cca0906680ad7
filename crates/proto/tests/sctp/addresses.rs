//! Addresses that come and go (RFC 5061).

use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Stream, Time};
use fontis_proto::scheduler::SchedulerKind;
use fontis_proto::sctp::{
    AbortReason, AddressChange, AddressParameter, CmtConfig, DynamicAddresses, Multipath,
    SctpAddressError, SctpChunk, SctpConfig, SctpData, SctpEvent, SctpPacket, SctpPathState,
    SctpSend,
};

use super::pair::{Pair, Way, address, plain, runs};

use AddressChange::{Add, Primary, Remove};

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(super) fn dynamic() -> SctpConfig {
    SctpConfig { dynamic: DynamicAddresses::Authenticated, ..plain() }
}

/// Addresses change without authentication, so that a test may write requests itself.
pub(super) fn open() -> SctpConfig {
    SctpConfig { dynamic: DynamicAddresses::Open, ..plain() }
}

fn concurrent(scheduler: SchedulerKind) -> SctpConfig {
    let cmt = CmtConfig { scheduler, ..CmtConfig::default() };
    SctpConfig { multipath: Multipath::Concurrent(cmt), stamps: true, ..dynamic() }
}

/// A pair whose ends have so many addresses, once both are connected and all paths have answered.
pub(super) fn connected(config: &SctpConfig, counts: [usize; 2], ways: Vec<Way>) -> Pair {
    let configs = [config.clone(), config.clone()];
    let mut pair = Pair::with_addresses(3, configs, ways, counts);
    let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
    assert!(pair.run(secs(5), both));
    pair.run(secs(1), |_| false);
    pair.events = Default::default();
    pair
}

pub(super) fn ways(count: usize) -> Vec<Way> {
    vec![Way::of(20, 10.0); count]
}

/// The ends of the paths that are there, and whether they are active.
fn paths(pair: &mut Pair, end: usize) -> Vec<([IpAddr; 2], bool)> {
    let all = pair.end(end).paths().filter(|path| path.state != SctpPathState::Removed);
    all.map(|path| (path.ends, path.state == SctpPathState::Active)).collect()
}

fn has(pair: &Pair, end: usize, event: SctpEvent) -> bool {
    pair.events[end].contains(&event)
}

/// An end asks, and the other agrees.
pub(super) fn change(pair: &mut Pair, end: usize, change: AddressChange) {
    pair.end(end).change_address(change).unwrap();
    let done = |pair: &Pair| has(pair, end, SctpEvent::AddressChanged(change));
    assert!(pair.run(secs(10), done), "{change:?}: {:?}", pair.events);
    assert!(has(pair, 1 - end, SctpEvent::PeerAddress(change)), "{:?}", pair.events);
    pair.run(secs(1), |_| false);
}

#[test]
fn an_address_that_is_added_at_each_end_makes_a_second_path() {
    let mut pair = connected(&concurrent(SchedulerKind::RoundRobin), [1, 1], ways(2));
    let [a, b, x, y] = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(end, path)| address(end, path));
    change(&mut pair, 0, Add(b));
    assert_eq!(paths(&mut pair, 0), [([a, x], true), ([b, x], true)]);
    assert_eq!(paths(&mut pair, 1), [([x, a], true), ([x, b], true)]);
    change(&mut pair, 1, Add(y));
    // The path between the new one and the old one serves nothing any more.
    assert_eq!(paths(&mut pair, 0), [([a, x], true), ([b, y], true)]);
    assert_eq!(paths(&mut pair, 1), [([x, a], true), ([y, b], true)]);
    let message = (SctpSend::default(), SctpData::Counted(1400));
    pair.queues[0] = std::iter::repeat_n(message, 3000).collect();
    assert!(pair.run(secs(10), |pair| pair.got[1].len() == 3000));
    let sent: Vec<u64> = pair.end(0).paths().map(|path| path.sent).collect();
    assert!(sent[0] > 1_500_000 && sent[2] > 1_500_000, "{sent:?}");
}

#[test]
fn what_was_in_flight_where_an_address_is_removed_is_sent_again_elsewhere() {
    for scheduler in SchedulerKind::ALL {
        let mut pair = connected(&concurrent(*scheduler), [2, 2], ways(2));
        let message = (SctpSend::default(), SctpData::Counted(1400));
        pair.queues[0] = std::iter::repeat_n(message, 2000).collect();
        pair.run(Duration::from_millis(300), |_| false);
        let flight: Vec<u64> = pair.end(0).paths().map(|path| path.in_flight).collect();
        assert!(flight.iter().any(|bytes| *bytes > 0), "{scheduler}: {flight:?}");
        // Its interface is gone at once.
        let b = address(0, 1);
        pair.absent = vec![b];
        change(&mut pair, 0, Remove(b));
        pair.keeps = true;
        assert!(pair.run(secs(20), |pair| pair.got[1].len() == 2000), "{scheduler}");
        assert!(pair.sent.iter().all(|(_, _, t)| t.local != b && t.peer != b), "{scheduler}");
        assert_eq!(pair.end(0).own_addresses(), [address(0, 0)]);
        // The other end's second address has still a path.
        assert_eq!(paths(&mut pair, 0).len(), 2, "{scheduler}");
        pair.run(secs(2), |_| false);
        let left = pair.end(0).paths().map(|path| path.in_flight).sum::<u64>();
        assert_eq!(left, 0, "{scheduler}");
    }
}

/// A host moves: its only address is gone, and the request comes from one that the peer does not
/// know (sections 5.3.2 and 5.2).
#[test]
fn an_only_address_is_replaced_while_data_go_both_ways() {
    for config in [dynamic(), open(), concurrent(SchedulerKind::LowestDelay)] {
        let mut pair = connected(&config, [1, 1], ways(2));
        pair.keeps = true;
        for side in 0..2 {
            let message = (SctpSend::default(), SctpData::Counted(1400));
            pair.queues[side] = std::iter::repeat_n(message, 1500).collect();
        }
        pair.run(Duration::from_millis(500), |_| false);
        let [a, b] = [address(0, 0), address(0, 1)];
        pair.absent = vec![a];
        let begin = pair.sent.len();
        let last = Err(SctpAddressError::Last { address: a });
        assert_eq!(pair.end(0).change_address(Remove(a)), last);
        pair.end(0).change_address(Add(b)).unwrap();
        pair.end(0).change_address(Remove(a)).unwrap();
        let is_done = |pair: &Pair| pair.got.iter().all(|got| got.len() == 1500);
        assert!(pair.run(secs(30), is_done), "{:?}", pair.events);
        assert_eq!(pair.events[0][..2], [Add(b), Remove(a)].map(SctpEvent::AddressChanged));
        assert_eq!(pair.events[1][..2], [Add(b), Remove(a)].map(SctpEvent::PeerAddress));
        // One request leaves, and the old address is its key to the association.
        let ours = pair.sent[begin..].iter().filter(|(_, side, _)| *side == 0);
        let asked: Vec<_> = ours.clone().filter(|(_, _, t)| is_asconf(&t.packet)).collect();
        assert_eq!(asked.len(), 1);
        let request = asked[0].2.packet.chunks.iter().find_map(|chunk| match chunk {
            SctpChunk::Asconf(asconf) => Some(asconf.lookup),
            _ => None,
        });
        assert_eq!((request, asked[0].2.local), (Some(a), b));
        assert!(ours.clone().all(|(_, _, transmit)| transmit.local == b));
        // Data to the new address wait until it has answered.
        let theirs = || pair.sent[begin..].iter().filter(|(_, _, t)| t.peer == b);
        let first = theirs().position(|(_, _, t)| t.packet.data_len() > 0).unwrap();
        let before: Vec<_> = theirs().take(first).flat_map(|(_, _, t)| &t.packet.chunks).collect();
        let asks = |chunk: &&SctpChunk| matches!(chunk, SctpChunk::Heartbeat(_));
        assert!(before.iter().copied().any(|chunk| asks(&chunk)), "{before:?}");
    }
}

pub(super) fn is_asconf(packet: &SctpPacket) -> bool {
    packet.chunks.iter().any(|chunk| matches!(chunk, SctpChunk::Asconf(_)))
}

#[test]
fn the_peer_sends_to_the_address_that_it_is_asked_to_prefer() {
    let mut pair = connected(&dynamic(), [2, 2], ways(2));
    change(&mut pair, 1, Primary(address(1, 1)));
    assert_eq!(pair.end(0).primary(), 1);
    let message = (SctpSend::default(), SctpData::Counted(1400));
    pair.queues[0] = std::iter::repeat_n(message, 100).collect();
    assert!(pair.run(secs(5), |pair| pair.got[1].len() == 100));
    let sent: Vec<u64> = pair.end(0).paths().map(|path| path.sent).collect();
    assert_eq!(sent, [0, 140_000]);
    // One that is new becomes it once it has answered.
    let mut pair = connected(&dynamic(), [1, 1], ways(2));
    pair.end(1).change_address(Add(address(1, 1))).unwrap();
    change(&mut pair, 1, Primary(address(1, 1)));
    assert_eq!(pair.end(0).primary(), 1);
}

#[test]
fn changes_that_cannot_be_are_refused_at_once() {
    let mut pair = connected(&dynamic(), [2, 1], ways(2));
    let [a, b, c] = [0, 1, 2].map(|path| address(0, path));
    let end = pair.end(0);
    let unknown = Err(SctpAddressError::Unknown { address: c });
    assert_eq!(end.change_address(Remove(c)), unknown);
    assert_eq!(end.change_address(Primary(c)), unknown);
    for bad in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "ff02::1", "2001:db8::1"] {
        let address = bad.parse().unwrap();
        let unusable = Err(SctpAddressError::Unusable { address });
        assert_eq!(end.change_address(Add(address)), unusable);
    }
    end.change_address(Remove(a)).unwrap();
    assert_eq!(end.change_address(Remove(b)), Err(SctpAddressError::Last { address: b }));
    for number in 2..17 {
        end.change_address(Add(address(0, number))).unwrap();
    }
    let many = Err(SctpAddressError::TooMany { most: 16 });
    assert_eq!(end.change_address(Add(address(0, 17))), many);
    pair.ways = ways(20);
    pair.run(secs(5), |_| false);
    assert_eq!(pair.end(0).own_addresses().len(), 16);
    assert_eq!(pair.end(1).peer_addresses().len(), 16);
    // Ends of which one permits nothing.
    for configs in [[plain(), dynamic()], [dynamic(), plain()]] {
        let mut pair = Pair::with_addresses(1, configs, ways(2), [1, 1]);
        pair.run(secs(2), |_| false);
        for end in 0..2 {
            let change = Add(address(end, 1));
            assert_eq!(pair.end(end).change_address(change), Err(SctpAddressError::NotAgreed));
        }
    }
}

/// An end that is told of addresses that are not its peer's sends heartbeats there, and few.
#[test]
fn nothing_but_heartbeats_goes_to_an_address_that_has_not_answered() {
    let mut pair = connected(&concurrent(SchedulerKind::RoundRobin), [1, 1], ways(4));
    let victims = [1, 2, 3].map(|path| address(0, path));
    pair.absent = victims.to_vec();
    pair.keeps = true;
    // The first request must come from an address that is there.
    for victim in victims {
        pair.end(0).change_address(Add(victim)).unwrap();
    }
    pair.end(0).change_address(Primary(victims[0])).unwrap();
    let message = (SctpSend::default(), SctpData::Counted(1400));
    pair.queues[1] = std::iter::repeat_n(message, 4000).collect();
    let begin = pair.now;
    assert!(pair.run(secs(20), |pair| pair.got[0].len() == 4000), "{}", pair.got[0].len());
    assert_eq!(pair.end(1).peer_addresses().len(), 4);
    pair.run(secs(60), |_| false);
    for victim in victims {
        let to = pair.sent.iter().filter(|(_, side, t)| *side == 1 && t.peer == victim);
        let packets: Vec<&SctpPacket> = to.map(|(_, _, t)| &t.packet).collect();
        let is_heartbeat =
            |packet: &&SctpPacket| matches!(packet.chunks[..], [SctpChunk::Heartbeat(_)]);
        assert!(packets.iter().all(is_heartbeat), "{packets:?}");
        assert!((1..10).contains(&packets.len()), "{} in {}", packets.len(), pair.now.since(begin));
    }
}

/// All is lost but what leaves from the new address: the request goes that way, too.
#[test]
fn a_request_that_is_not_answered_takes_another_way() {
    let mut pair = connected(&dynamic(), [1, 1], ways(2));
    let [a, b] = [address(0, 0), address(0, 1)];
    pair.absent = vec![a];
    pair.end(0).change_address(Add(b)).unwrap();
    let done = |pair: &Pair| has(pair, 0, SctpEvent::AddressChanged(Add(b)));
    assert!(pair.run(secs(10), done), "{:?}", pair.events);
    let message = (SctpSend::default(), SctpData::Counted(1400));
    pair.queues[0] = std::iter::repeat_n(message, 100).collect();
    assert!(pair.run(secs(20), |pair| pair.got[1].len() == 100));
    // Where nothing is answered the association ends.
    let mut pair = connected(&dynamic(), [1, 1], ways(2));
    pair.absent = vec![a, b];
    pair.end(0).change_address(Add(b)).unwrap();
    pair.run(secs(900), |_| false);
    let silence = SctpEvent::Aborted(AbortReason::Silence);
    assert_eq!(pair.events[0].last(), Some(&silence));
}

#[test]
fn an_end_behind_a_nat_names_no_address() {
    let unnamed = SctpConfig { dynamic: DynamicAddresses::Unnamed, ..plain() };
    let mut pair = connected(&unnamed, [1, 1], ways(3));
    pair.keeps = true;
    let [a, b, c] = [0, 1, 2].map(|path| address(0, path));
    change(&mut pair, 0, Add(b));
    change(&mut pair, 0, Primary(b));
    pair.end(0).change_address(Remove(a)).unwrap();
    let done = |pair: &Pair| has(pair, 0, SctpEvent::AddressChanged(Remove(a)));
    assert!(pair.run(secs(5), done));
    assert_eq!(pair.end(1).peer_addresses(), [b]);
    change(&mut pair, 0, Add(c));
    change(&mut pair, 0, Add(a));
    assert_eq!(pair.end(0).change_address(Remove(b)), Err(SctpAddressError::Unnamed));
    for (_, _, transmit) in &pair.sent {
        for chunk in &transmit.packet.chunks {
            let SctpChunk::Asconf(asconf) = chunk else { continue };
            assert!(asconf.lookup.is_unspecified());
            let is_named = |parameter: &AddressParameter| match parameter {
                AddressParameter::Change { change, .. } => !change.address().is_unspecified(),
                AddressParameter::Unknown { .. } => true,
            };
            assert!(!asconf.parameters.iter().any(is_named), "{asconf:?}");
        }
    }
}

/// The content of the `number`-th message of an end.
fn content(side: usize, number: usize) -> Bytes {
    let len = 1 + number * 7919 % 12_000;
    (0..len).map(|at| (at ^ number ^ (side << 5)) as u8).collect::<Vec<u8>>().into()
}

/// Both ends add and remove addresses, and name primary ones, at random times, over paths that
/// lose, overtake and double, while a megabyte goes each way: every byte comes in order, and in the
/// end both know the same addresses.
#[test]
fn addresses_come_and_go_at_random_while_data_flow() {
    for seed in 0..runs(40) {
        let mut random = Stream::new(seed, "addresses");
        let kinds = SchedulerKind::ALL;
        let mut config = match random.below(3) {
            0 => dynamic(),
            _ => concurrent(kinds[random.below(kinds.len() as u64) as usize]),
        };
        config.nr_sack = random.below(2) == 0;
        config.most_mtu = if random.below(2) == 0 { 0 } else { 4000 };
        let way = |random: &mut Stream| Way {
            loss: random.unit() * 0.05,
            reorder: random.unit() * 0.05,
            double: random.unit() * 0.02,
            ..Way::of(2 + random.below(40), 2.0 + 20.0 * random.unit())
        };
        let ways: Vec<Way> = (0..5).map(|_| way(&mut random)).collect();
        let counts = [1 + random.below(3) as usize, 1 + random.below(3) as usize];
        let configs = [config.clone(), config];
        let mut pair = Pair::with_addresses(seed, configs, ways, counts);
        let both = |pair: &Pair| pair.events.iter().all(|e| e.contains(&SctpEvent::Connected));
        assert!(pair.run(secs(60), both), "seed {seed}");
        let mut wanted = [0; 2];
        for (side, wanted) in wanted.iter_mut().enumerate() {
            let mut bytes = 0;
            while bytes < 1_000_000 {
                let content = content(side, *wanted);
                bytes += content.len();
                pair.queues[side].push_back((SctpSend::default(), SctpData::Bytes(content)));
                *wanted += 1;
            }
        }
        let mut changes = 0;
        for _ in 0..60 {
            let side = random.below(2) as usize;
            let address = address(side, random.below(5) as usize);
            let change = [Add, Remove, Primary][random.below(3) as usize](address);
            changes += u32::from(pair.end(side).change_address(change).is_ok());
            pair.run(Duration::from_millis(random.below(150)), |_| false);
        }
        let all_came = |pair: &Pair| (0..2).all(|side| pair.got[1 - side].len() == wanted[side]);
        let is_over = pair.run(secs(300), all_came);
        let state = |pair: &mut Pair| [0, 1].map(|end| pair.end(end).paths().collect::<Vec<_>>());
        assert!(is_over, "seed {seed}: {:?} {:?}", state(&mut pair), pair.events);
        for side in 0..2 {
            for (number, message) in pair.got[1 - side].iter().enumerate() {
                let wanted = SctpData::Bytes(content(side, number));
                assert_eq!(message.data, wanted, "seed {seed}: {number}");
            }
        }
        assert!(changes > 10, "seed {seed}: {changes}");
        pair.run(secs(60), |_| false);
        for side in 0..2 {
            let mut own = pair.end(side).own_addresses().to_vec();
            let mut known = pair.end(1 - side).peer_addresses().to_vec();
            own.sort();
            known.sort();
            assert_eq!(own, known, "seed {seed}: {:?}", pair.events);
            for address in own {
                let live = paths(&mut pair, side);
                assert!(live.iter().any(|(ends, _)| ends[0] == address), "seed {seed}: {live:?}");
            }
            assert_eq!(pair.end(side).buffered(), 0, "seed {seed}");
        }
        assert!(pair.now > Time::ZERO);
    }
}
