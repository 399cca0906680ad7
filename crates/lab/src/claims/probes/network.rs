//! Endpoints and network elements by themselves, in virtual time.

use std::collections::VecDeque;
use std::time::Instant;

use fontis_base::{
    Address, Duration, Ecn, FlowId, Packet, PacketId, Rate, Serializer, Stream, Time,
};
use fontis_net::{Limit, QueueKind, QueueOptions};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::published::{self, PublishedConfig, Sending};
use fontis_proto::tcp;

const STEP: Duration = Duration::from_micros(10);

fn packet<P>(id: u64, flow: u32, size: u32, payload: P) -> Packet<P> {
    Packet {
        id: PacketId(id),
        src: Address(0),
        dst: Address(1),
        flow: FlowId(flow),
        size,
        segments: 1,
        ecn: Ecn::NotEct,
        corrupt: false,
        class: 0,
        payload,
    }
}

/// Useless encoded bytes, for each byte of the message, over 100 Mbit/s and 10 ms: if a block is
/// acknowledged when it has enough symbols, and if it is acknowledged when it is decoded, which
/// takes 5 ms (the time of the byte code for its block of 63,536 bytes).
pub(super) fn early_acknowledgement() -> Vec<f64> {
    [Duration::ZERO, Duration::from_millis(5)].map(in_vain).to_vec()
}

fn in_vain(decoding: Duration) -> f64 {
    let config = PublishedConfig {
        sending: Sending::UntilAcknowledged,
        rate: Rate::from_mbps(100),
        ..PublishedConfig::default()
    };
    let delay = Duration::from_millis(5);
    let mut sender =
        published::PublishedEndpoint::connect(Time::ZERO, config.clone(), [9, 99, 999]);
    sender.write(1 << 40);
    let mut receiver: Option<published::PublishedEndpoint> = None;
    let mut forth: VecDeque<(Time, published::PublishedPacket)> = VecDeque::new();
    let mut back = forth.clone();
    let mut now = Time::ZERO;
    while now < Time::ZERO + Duration::from_secs(3) {
        while let Some(body) = sender.poll(now) {
            forth.push_back((now + delay, body));
        }
        while forth.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, body)) = forth.pop_front() else { break };
            match &mut receiver {
                Some(receiver) => receiver.handle(now, &body, false),
                None => {
                    let seed = [8, 88, 888];
                    receiver =
                        published::PublishedEndpoint::accept(now, config.clone(), seed, &body);
                }
            }
        }
        while let Some(answer) = receiver.as_mut().and_then(|receiver| receiver.poll(now)) {
            let waits = if answer.header.block > 0 { decoding } else { Duration::ZERO };
            back.push_back((now + delay + waits, answer));
        }
        while back.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, answer)) = back.pop_front() else { break };
            sender.handle(now, &answer, false);
        }
        now += STEP;
    }
    let stats = receiver.map(|receiver| receiver.stats()).unwrap_or_default();
    stats.bytes_wasted as f64 / stats.delivered.max(1) as f64
}

/// The recovery of NewReno without selective acknowledgements from one loss of `lost` segments in a
/// row, of a window of about a hundred, over 100 ms: timeouts, copies, and the least time between
/// two copies in round trips.
pub(super) fn new_reno(lost: u64) -> Vec<f64> {
    const FIRST_LOST: u64 = 200;
    let rtt = Duration::from_millis(100);
    let config = tcp::TcpConfig {
        congestion: CongestionKind::NewReno,
        sack: false,
        timestamps: false,
        delayed_ack: None,
        ..tcp::TcpConfig::default()
    };
    let mut sender = tcp::TcpEndpoint::connect(Time::ZERO, config.clone(), 0);
    sender.write(1000 * u64::from(config.segment_len(false)));
    let mut receiver: Option<tcp::TcpEndpoint> = None;
    let mut wire: VecDeque<(Time, bool, tcp::Segment)> = VecDeque::new();
    let (mut now, mut highest, mut segments, mut copies) = (Time::ZERO, 0, 0, Vec::new());
    // What leaves at once would come back at once: a line spreads it.
    let mut line = Serializer::new(Rate::from_mbps(1000));
    while now < Time::ZERO + Duration::from_secs(10) {
        while wire.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, to_receiver, segment)) = wire.pop_front() else { break };
            match (to_receiver, &mut receiver) {
                (false, _) => sender.handle(now, &segment, false),
                (true, Some(receiver)) => receiver.handle(now, &segment, false),
                (true, None) => {
                    receiver = tcp::TcpEndpoint::accept(now, config.clone(), 0, &segment);
                }
            }
            while let Some(answer) = receiver.as_mut().and_then(|receiver| receiver.poll(now)) {
                wire.push_back((now + rtt / 2, false, answer.segment));
            }
        }
        while let Some(transmit) = sender.poll(now) {
            let segment = transmit.segment;
            let mut is_lost = false;
            if segment.len > 0 {
                if segment.seq >= highest {
                    is_lost = (FIRST_LOST..FIRST_LOST + lost).contains(&segments);
                    segments += 1;
                    highest = segment.seq + segment.len;
                } else {
                    copies.push(now.as_secs_f64());
                }
            }
            let sent = line.send(now, u64::from(segment.size()));
            if !is_lost {
                wire.push_back((sent + rtt / 2, true, segment));
            }
        }
        now += STEP;
    }
    let gaps = copies.windows(2).map(|pair| (pair[1] - pair[0]) / rtt.as_secs_f64());
    let timeouts = sender.sender_stats().timeouts as f64;
    vec![timeouts, copies.len() as f64, gaps.fold(f64::INFINITY, f64::min)]
}

/// Nanoseconds that deficit round robin takes for a packet, in and out, among a hundred flows with
/// 50 ms of packets waiting at 0.1, 1 and 10 Gbit/s; the least of five.
pub(super) fn fair_queueing() -> Vec<f64> {
    let cost = |megabits: u64| {
        let waiting = Rate::from_mbps(megabits).bytes_in(Duration::from_millis(50)) / 1500;
        let mut flows = Stream::new(megabits, "flows of a fair queue");
        let options = QueueOptions::default();
        let mut queue = QueueKind::Drr.build(Limit::UNLIMITED, &options, || flows.clone());
        let mut next = || packet(0, flows.below(100) as u32, 1500, ());
        (0..waiting).for_each(|_| queue.enqueue(Time::ZERO, next(), &mut ()));
        const PACKETS: u32 = 200_000;
        let rounds = (0..5).map(|_| {
            let begin = Instant::now();
            for _ in 0..PACKETS {
                queue.enqueue(Time::ZERO, next(), &mut ());
                queue.dequeue(Time::ZERO, &mut ());
            }
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
        });
        rounds.fold(f64::INFINITY, f64::min)
    };
    [100, 1000, 10_000].map(cost).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_without_selective_acknowledgements_are_repaired_one_in_a_round_trip() {
        for lost in [1, 3] {
            let [timeouts, copies, gap] = new_reno(lost)[..] else { panic!("three numbers") };
            assert_eq!((timeouts, copies), (0.0, lost as f64));
            assert!(gap >= 1.0, "{gap}");
        }
    }
}
