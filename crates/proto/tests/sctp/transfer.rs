//! Messages over networks that lose, double and reorder.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fontis_base::{Duration, Stream};
use fontis_proto::congestion::{CongestionKind, Coupling};
use fontis_proto::rate::reorder::ReorderMode;
use fontis_proto::scheduler::SchedulerKind;
use fontis_proto::sctp::{
    AckPolicy, BufferSplit, CmtConfig, CodeReach, CodingConfig, LossRecovery, Multipath,
    Reliability, RepairWait, RepairedLoss, RetransmitPolicy, SctpCode, SctpConfig, SctpData,
    SctpEvent, SctpMessage, SctpSend,
};

use super::pair::{Pair, Way, plain};

/// How often a test over random cases runs.
fn runs() -> u64 {
    std::env::var("FONTIS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(60)
}

fn pick<T: Copy>(stream: &mut Stream, of: &[T]) -> T {
    of[stream.below(of.len() as u64) as usize]
}

fn random_coding(stream: &mut Stream) -> CodingConfig {
    let k = 1 + stream.below(20) as u8;
    let most = 1 + stream.below(128) as u8;
    CodingConfig {
        code: match stream.below(6) {
            0 => SctpCode::adaptive(most),
            4 => SctpCode::adaptive_raptorq(most),
            5 => SctpCode::fixed(k + 1 + stream.below(3) as u8, k, CodeReach::RaptorQ(k)),
            reach => SctpCode::fixed(
                k + 1 + stream.below(3) as u8,
                k,
                [CodeReach::Group, CodeReach::Memory(most), CodeReach::Unacknowledged(most)]
                    [reach as usize - 1],
            ),
        },
        wait: pick(stream, &[RepairWait::None, RepairWait::Published, RepairWait::Outcome]),
        is_inside: stream.below(2) == 0,
        loss: pick(stream, &[RepairedLoss::Hidden, RepairedLoss::Beyond]),
        covers_tail: stream.below(2) == 0,
    }
}

fn random_config(stream: &mut Stream) -> SctpConfig {
    let cmt = CmtConfig {
        scheduler: pick(stream, SchedulerKind::ALL),
        split_fast_retransmit: stream.below(4) > 0,
        own_cumulative: stream.below(4) > 0,
        retransmit: pick(
            stream,
            &[
                RetransmitPolicy::Same,
                RetransmitPolicy::Soonest,
                RetransmitPolicy::LossRate,
                RetransmitPolicy::Window,
                RetransmitPolicy::Threshold,
            ],
        ),
        coupling: pick(stream, &[Coupling::None, Coupling::Lia, Coupling::Olia]),
        buffers: pick(
            stream,
            &[BufferSplit::None, BufferSplit::Receiver, BufferSplit::Sender, BufferSplit::Both],
        ),
        believes_old_sacks: stream.below(4) == 0,
    };
    SctpConfig {
        mtu: 576 + stream.below(1500) as u32,
        most_mtu: [0, 9000][stream.below(2) as usize],
        receive_buffer: 1 << (13 + stream.below(7)),
        send_buffer: 1 << (13 + stream.below(7)),
        streams: 1 + stream.below(20) as u16,
        multipath: if stream.below(3) == 0 {
            Multipath::Failover
        } else {
            Multipath::Concurrent(cmt)
        },
        interleaving: stream.below(2) == 0,
        stamps: stream.below(2) == 0,
        nr_sack: stream.below(2) == 0,
        reorder: pick(
            stream,
            &[
                None,
                None,
                Some((ReorderMode::Hold, Duration::from_millis(50))),
                Some((ReorderMode::Full, Duration::from_millis(10))),
            ],
        ),
        coding: (stream.below(3) > 0).then(|| random_coding(stream)),
        fast_again: stream.below(2) == 0,
        recovery: pick(stream, &[LossRecovery::Reports, LossRecovery::RackTlp]),
        max_burst: [None, Some(4)][stream.below(2) as usize],
        acks: AckPolicy {
            every: 1 + stream.below(2) as u32,
            waits_at_gaps: stream.below(2) == 0,
            ..AckPolicy::default()
        },
        ..plain()
    }
}

fn random_ways(stream: &mut Stream) -> Vec<Way> {
    let way = |stream: &mut Stream| Way {
        buffer: 10_000 + stream.below(200_000),
        loss: pick(stream, &[0.0, 0.01, 0.05, 0.15]),
        reorder: pick(stream, &[0.0, 0.05, 0.3]),
        double: pick(stream, &[0.0, 0.02]),
        ..Way::of(1 + stream.below(100), 1.0 + 20.0 * stream.unit())
    };
    (0..1 + stream.below(3)).map(|_| way(stream)).collect()
}

/// A message that says who it is, of `len` bytes.
fn message(end: u64, number: u64, len: usize) -> SctpData {
    let mut bytes = vec![0; len.max(1)];
    Stream::new(number, &format!("message of {end}")).fill(&mut bytes);
    SctpData::Bytes(Bytes::from(bytes))
}

/// Messages of log-uniform sizes in both directions; gives what each end must get.
fn fill(pair: &mut Pair, stream: &mut Stream, budget: u64) -> [Vec<(SctpSend, SctpData)>; 2] {
    let mut all: [Vec<(SctpSend, SctpData)>; 2] = Default::default();
    for end in 0..2u64 {
        let streams = u64::from(pair.configs[0].streams.min(pair.configs[1].streams));
        let largest = u64::from(pair.configs[end as usize].send_buffer) as f64;
        let (mut bytes, mut number) = (0, 0u64);
        while bytes < budget {
            let len = libm::exp2(stream.unit() * libm::log2(largest)) as usize;
            let send = SctpSend {
                stream: stream.below(streams) as u16,
                protocol: number as u32,
                is_unordered: stream.below(4) == 0,
                reliability: Reliability::Full,
            };
            let data = message(end, number, len);
            bytes += data.len() as u64 + 50;
            number += 1;
            pair.queues[end as usize].push_back((send, data.clone()));
            all[1 - end as usize].push((send, data));
        }
    }
    all
}

/// Each stream's ordered messages came in order, and all as they were.
fn check(seed: u64, wanted: &[(SctpSend, SctpData)], got: &[SctpMessage]) {
    let key = |stream: u16, protocol: u32| (stream, protocol);
    let all: BTreeMap<_, _> =
        wanted.iter().map(|(send, data)| (key(send.stream, send.protocol), (send, data))).collect();
    let mut seen = BTreeSet::new();
    let mut last: BTreeMap<u16, u32> = BTreeMap::new();
    for message in got {
        let id = key(message.stream, message.protocol);
        let (send, data) = all.get(&id).unwrap_or_else(|| panic!("seed {seed}: {id:?} is foreign"));
        assert_eq!(message.data, **data, "seed {seed}: wrong bytes in {id:?}");
        assert_eq!(message.is_unordered, send.is_unordered, "seed {seed}");
        assert!(seen.insert(id), "seed {seed}: {id:?} came twice");
        if !message.is_unordered
            && let Some(before) = last.insert(message.stream, message.protocol)
        {
            assert!(before < message.protocol, "seed {seed}: stream {} order", message.stream);
        }
    }
}

#[test]
fn messages_of_any_size_arrive_once_and_in_order_over_any_network() {
    for seed in 0..runs() {
        let mut stream = Stream::new(seed, "transfer");
        let configs = [random_config(&mut stream), random_config(&mut stream)];
        let ways = random_ways(&mut stream);
        let about = format!("seed {seed}: {ways:?} {configs:?}");
        let mut pair = Pair::of(seed, configs, ways);
        let wanted = fill(&mut pair, &mut stream, 200_000);
        let is_done = |pair: &Pair| {
            (0..2).all(|end| pair.got[end].len() == wanted[end].len())
                || pair.events.iter().flatten().any(|e| matches!(e, SctpEvent::Aborted(_)))
        };
        let done = pair.run(Duration::from_secs(3000), is_done);
        for (end, wanted) in wanted.iter().enumerate() {
            check(seed, wanted, &pair.got[end]);
            let got = (pair.got[end].len(), wanted.len());
            assert!(done && got.0 == got.1, "{about}: end {end} got {got:?} at {:?}", pair.now);
        }
        let now = pair.now;
        pair.end(seed as usize % 2).close(now);
        let closed =
            |pair: &Pair| pair.events.iter().all(|events| events.contains(&SctpEvent::Closed));
        // The last packet may be lost for ever: then the other end gives up by itself.
        let _ = pair.run(Duration::from_secs(600), closed);
        for end in 0..2 {
            assert!(pair.end(end).is_closed(), "{about}: end {end} stays");
        }
    }
}

/// A transfer of 20 MB over 100 Mbit/s and 100 ms with a queue of a bandwidth-delay product:
/// seconds, packets that the network lost, and chunks that left again.
fn bulk(grain: Duration, scheduler: SchedulerKind) -> (f64, u64, u64) {
    let config = SctpConfig {
        congestion: CongestionKind::Cubic,
        batches: grain > Duration::ZERO,
        receive_buffer: 8 << 20,
        send_buffer: 8 << 20,
        multipath: Multipath::Concurrent(CmtConfig { scheduler, ..CmtConfig::default() }),
        ..plain()
    };
    let way = Way { buffer: 1_250_000, ..Way::of(50, 100.0) };
    let mut pair = Pair::new(1, &config, vec![way]);
    pair.grain = grain;
    for _ in 0..200 {
        pair.queues[0].push_back((SctpSend::default(), SctpData::Counted(100_000)));
    }
    let all = |pair: &Pair| pair.got[1].len() == 200;
    assert!(pair.run(Duration::from_secs(100), all), "{:?}", pair.end(0).stats());
    let repeated = pair.end(0).stats().repeated;
    (pair.now.as_secs_f64(), pair.lost, repeated)
}

#[test]
fn what_a_full_sack_cannot_tell_is_not_taken_for_lost() {
    for scheduler in [SchedulerKind::RoundRobin, SchedulerKind::Daps] {
        let (seconds, lost, repeated) = bulk(Duration::ZERO, scheduler);
        // Slow start fills the queue and goes beyond it: every other packet is lost for a while.
        assert!(lost > 500, "{lost}");
        assert!(repeated <= lost + lost / 10, "{scheduler:?}: {repeated} again, {lost} lost");
        assert!(seconds < 3.0, "{scheduler:?}: {seconds}");
    }
}

#[test]
fn a_driver_that_reads_in_batches_is_as_fast() {
    let (seconds, ..) = bulk(Duration::ZERO, SchedulerKind::RoundRobin);
    for grain in [2, 10] {
        let (batched, ..) = bulk(Duration::from_millis(grain), SchedulerKind::RoundRobin);
        assert!(batched < 1.3 * seconds, "{batched} for {seconds}");
    }
}
