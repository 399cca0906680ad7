//! Endpoints and network elements by themselves, in virtual time.

use std::collections::VecDeque;
use std::time::Instant;

use fontis_base::{
    Address, Duration, Ecn, FlowId, Packet, PacketId, Rate, Serializer, Stream, Time,
};
use fontis_net::{Limit, Link, LinkConfig, Outage, QueueKind, QueueOptions};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::published::{self, Need, PublishedConfig, Sending};
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

/// Useful bits per second, in millions, of the DFCP of 2015 over paths with these rates in Mbit/s,
/// on each of which it sends as fast as that takes: before 5 s and after, when the first path is
/// cut if it is said. Acknowledgements return over the last path.
fn over_paths(rates: &[u64], cut: bool) -> [f64; 2] {
    const HALF: Duration = Duration::from_secs(5);
    let config = PublishedConfig {
        window: 100,
        rate: Rate::from_mbps(rates.iter().sum()),
        need: Need::Code,
        ..PublishedConfig::default()
    };
    let mut paths: Vec<Link<published::PublishedPacket>> = rates
        .iter()
        .enumerate()
        .map(|(index, rate)| {
            let outage = (cut && index == 0).then(|| Outage::once(Time::ZERO + HALF, HALF));
            let config = LinkConfig {
                rate: Rate::from_mbps(*rate),
                delay: Duration::from_millis(10),
                buffer: Limit::Packets(100),
                outage,
                ..LinkConfig::default()
            };
            Link::new(format!("path {index}"), 1, config)
        })
        .collect();
    let mut sender =
        published::PublishedEndpoint::connect(Time::ZERO, config.clone(), [9, 99, 999]);
    sender.write(1 << 40);
    let mut receiver: Option<published::PublishedEndpoint> = None;
    let mut back: VecDeque<(Time, published::PublishedPacket)> = VecDeque::new();
    let mut sent = vec![0u64; rates.len()];
    let (mut now, mut at_half) = (Time::ZERO, None);
    let delivered = |receiver: &Option<published::PublishedEndpoint>| {
        receiver.as_ref().map_or(0, |receiver| receiver.stats().delivered)
    };
    while now < Time::ZERO + HALF * 2 {
        if now >= Time::ZERO + HALF {
            at_half.get_or_insert_with(|| delivered(&receiver));
        }
        while let Some(body) = sender.poll(now) {
            let share = |path: &usize| (sent[*path] + 1) as f64 / rates[*path] as f64;
            let next = (0..paths.len()).min_by(|a, b| share(a).total_cmp(&share(b)));
            let path = next.unwrap_or(0);
            paths[path].enter(now, packet(sent[path], path as u32, body.size(), body));
            sent[path] += 1;
        }
        for path in &mut paths {
            while let Some(arrival) = path.deliver(now) {
                let body = &arrival.packet.payload;
                match &mut receiver {
                    Some(receiver) => receiver.handle(now, body, false),
                    None => {
                        let seed = [8, 88, 888];
                        receiver =
                            published::PublishedEndpoint::accept(now, config.clone(), seed, body);
                    }
                }
            }
        }
        while let Some(answer) = receiver.as_mut().and_then(|receiver| receiver.poll(now)) {
            back.push_back((now + Duration::from_millis(10), answer));
        }
        while back.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, answer)) = back.pop_front() else { break };
            sender.handle(now, &answer, false);
        }
        // A coarse clock would round each packet's turn up.
        let turns = [sender.timeout(), receiver.as_ref().and_then(|receiver| receiver.timeout())];
        let turns = turns.into_iter().flatten().map(|(at, _)| at);
        let arrivals = paths.iter().filter_map(Link::next_delivery);
        let next = turns.chain(arrivals).chain(back.front().map(|(at, _)| *at)).min();
        now = next.unwrap_or(Time::MAX).max(now + Duration::from_micros(1));
    }
    let at_half = at_half.unwrap_or(0);
    let megabits = |bytes: u64| bytes as f64 * 8e-6 / HALF.as_secs_f64();
    [megabits(at_half), megabits(delivered(&receiver) - at_half)]
}

/// Goodput over two paths relative to the sum of the goodputs over each alone; and, once the first
/// is cut, relative to that over the second.
pub(super) fn two_paths() -> Vec<f64> {
    let [first, _] = over_paths(&[60], false);
    let [second, _] = over_paths(&[30], false);
    let [before, after] = over_paths(&[60, 30], true);
    vec![before / (first + second), after / second]
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
    fn a_single_path_carries_what_its_rate_and_the_redundancy_allow() {
        let goodputs = over_paths(&[30], false);
        let most = 30.0 * 1452.0 / 1500.0;
        for goodput in goodputs {
            assert!((0.93 * most..=most).contains(&goodput), "{goodputs:?} of {most}");
        }
    }

    #[test]
    fn two_paths_carry_the_sum_of_both_and_one_goes_on_when_the_other_is_cut() {
        let shares = two_paths();
        assert!(shares.iter().all(|share| (0.95..1.02).contains(share)), "{shares:?}");
    }

    #[test]
    fn losses_without_selective_acknowledgements_are_repaired_one_in_a_round_trip() {
        for lost in [1, 3] {
            let [timeouts, copies, gap] = new_reno(lost)[..] else { panic!("three numbers") };
            assert_eq!((timeouts, copies), (0.0, lost as f64));
            assert!(gap >= 1.0, "{gap}");
        }
    }
}
