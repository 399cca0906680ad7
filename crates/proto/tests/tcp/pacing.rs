use std::collections::BTreeMap;

use fontis_base::{Duration, Rate, Serializer, Time};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp::{TcpConfig, TcpEndpoint};

/// The longest run of segments that leave at one time, and all segments: of data without end over a
/// line of this rate and 20 ms there and back, in the third second.
fn bursts(congestion: CongestionKind, rate: Rate) -> (u32, u32) {
    let config = TcpConfig { congestion, ..TcpConfig::default() };
    let mut near = TcpEndpoint::connect(Time::ZERO, config.clone(), 0);
    let syn = near.poll(Time::ZERO).expect("a SYN").segment;
    let far = TcpEndpoint::accept(Time::ZERO, config, 0, &syn).expect("an answer");
    near.write(1 << 40);
    let mut ends = [near, far];
    let mut line = Serializer::new(rate);
    let mut flight = BTreeMap::new();
    let (mut now, mut sequence, mut longest, mut all) = (Time::ZERO, 0, 0, 0);
    while now < Time::ZERO + Duration::from_secs(3) {
        for (from, end) in ends.iter_mut().enumerate() {
            let mut burst = 0;
            while let Some(transmit) = end.poll(now) {
                let size = u64::from(transmit.segment.size());
                let left = if from == 0 { line.send(now, size) } else { now };
                sequence += 1;
                let at = left + Duration::from_millis(10);
                flight.insert((at, sequence), (1 - from, transmit.segment));
                burst += 1;
            }
            if from == 0 && now > Time::ZERO + Duration::from_secs(2) {
                longest = longest.max(burst);
                all += burst;
            }
        }
        let timers = ends.iter().filter_map(|end| end.timeout().map(|(at, _)| at));
        let arrival = flight.first_key_value().map(|((at, _), _)| *at);
        now = timers.chain(arrival).min().expect("data without end").max(now);
        while let Some(entry) = flight.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, segment) = entry.remove();
            ends[to].handle(now, &segment, false);
        }
    }
    (longest, all)
}

#[test]
fn bbr_sends_a_millisecond_s_worth_at_once_and_no_more_than_the_line_carries() {
    // At one and a quarter of the rate, which it probes with: 10.4 segments of 1500 bytes. Below 24
    // Mbit/s two, below 1.2 one.
    for (mbps, burst) in [(100, 8..=10), (10, 2..=2), (1, 1..=2)] {
        let (longest, all) = bursts(CongestionKind::Bbr, Rate::from_mbps(mbps));
        assert!(burst.contains(&longest), "{longest} segments at once at {mbps} Mbit/s");
        let share = f64::from(all) * 12e3 / (mbps as f64 * 1e6);
        assert!((0.85..1.1).contains(&share), "{all} segments in a second at {mbps} Mbit/s");
    }
}
