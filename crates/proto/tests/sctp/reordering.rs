//! The buffer that puts data back into order before SACKs tell of gaps.

use fontis_base::{Duration, Stream};
use fontis_proto::rate::reorder::ReorderMode;
use fontis_proto::sctp::{LossRecovery, SctpConfig, SctpData, SctpSend, SctpStats};

use super::pair::{Pair, Way, plain, runs};

/// The buffer of an end, and how it recognises losses.
type Means = (Option<(ReorderMode, Duration)>, LossRecovery);

/// Sends so many bytes over a path. How many seconds they take, and the counters of both ends.
fn carry(seed: u64, (reorder, recovery): Means, way: Way, bytes: u64) -> (f64, [SctpStats; 2]) {
    let config = SctpConfig {
        reorder,
        recovery,
        // A SACK answers all that a filled gap sets free.
        batches: true,
        receive_buffer: 4 << 20,
        send_buffer: 4 << 20,
        ..plain()
    };
    let mut pair = Pair::new(seed, &config, vec![way]);
    let messages = bytes / 50_000;
    for _ in 0..messages {
        pair.queues[0].push_back((SctpSend::default(), SctpData::Counted(50_000)));
    }
    let is_there = |pair: &Pair| pair.got[1].len() as u64 == messages;
    assert!(pair.run(Duration::from_secs(600), is_there), "{:?}", pair.end(0).stats());
    assert_eq!(pair.end(1).stats().bytes_received, messages * 50_000);
    (pair.now.as_secs_f64(), [pair.end(0).stats(), pair.end(1).stats()])
}

#[test]
fn reordering_within_the_delay_is_no_loss_and_costs_no_rate() {
    let seed = std::env::var("FONTIS_SEED").map_or(5, |seed| seed.parse().unwrap());
    let mut stream = Stream::new(seed, "points");
    for point in 0..runs(8) {
        let delay = 10 + stream.below(90);
        let way = Way {
            reorder: 0.01 + 0.1 * stream.unit(),
            ..Way::of(delay, 5.0 + 20.0 * stream.unit())
        };
        let hold = Some((ReorderMode::Hold, Duration::from_millis(delay)));
        let full = Some((ReorderMode::Full, Duration::from_millis(delay)));
        let reports = LossRecovery::Reports;
        let ways =
            [(None, reports), (hold, reports), (full, reports), (None, LossRecovery::RackTlp)];
        let found = ways.map(|means| carry(seed + point, means, way, 10_000_000));
        let figures =
            found.map(|(time, [sender, receiver])| (time, sender.lost, receiver.duplicates));
        println!(
            "seed {seed}, {point}: {delay} ms, {:.1} Mbit/s, {:.3} reordered; seconds, losses and \
             repeats to no use with nothing, hold, full, RACK: {figures:.2?}",
            way.rate.as_bps() as f64 / 1e6,
            way.reorder,
        );
        let [nothing, buffered @ ..] = figures;
        for (time, lost, repeats) in &buffered[..2] {
            assert!(*time < 0.7 * nothing.0, "seed {seed}, {point}");
            // The buffer is as large as what came lately: a rate that grows may be ahead of it.
            assert!(20 * lost.max(repeats) < nothing.1, "seed {seed}, {point}");
        }
    }
}

#[test]
fn what_is_lost_is_repaired_as_without_the_buffer() {
    let seed = std::env::var("FONTIS_SEED").map_or(5, |seed| seed.parse().unwrap());
    let mut stream = Stream::new(seed, "losses");
    for point in 0..runs(6) {
        let delay = 10 + stream.below(90);
        let loss = 0.002 + 0.02 * stream.unit();
        let way = Way { loss, ..Way::of(delay, 5.0 + 20.0 * stream.unit()) };
        let reports = LossRecovery::Reports;
        let hold = Some((ReorderMode::Hold, Duration::from_millis(delay)));
        let found =
            [None, hold].map(|reorder| carry(seed + point, (reorder, reports), way, 4_000_000));
        let [(without, _), (with, [sender, _])] = &found;
        println!("seed {seed}, {point}: {delay} ms, {loss:.3} lost: {without:.1} s, {with:.1} s");
        // A loss is known half a round trip later, and a window that is halved grows from there.
        assert!(*with < 2.0 * without, "seed {seed}, {point}: {sender:?}");
    }
}
