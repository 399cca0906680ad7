//! Random transfers over random bad paths, with the real code: every byte equal, every run ends,
//! little is wasted.
//!
//! `FONTIS_RUNS` sets how many (200 by default, 10,000 in `make soak`), `FONTIS_SEED` the first
//! seed. A failure names the seed that repeats it:
//! `FONTIS_SEED=n FONTIS_RUNS=1 cargo test -p fontis-sim --test main transfers`.

use crate::support::number::number;
use crate::support::transfer::Transfer;
use fontis_base::{Duration, Probability, Rate, Size, Stream, Time};
use fontis_net::{Limit, LinkConfig, Loss, LossPosition, Outage, Reorder};
use fontis_proto::dfcp::CloseReason;

/// What a sender that knows nothing of its path begins with.
const FIRST_RATE: Rate = Rate::from_mbps(9);

struct Case {
    transfer: Transfer,
    /// Stationary loss towards the client.
    loss: f64,
    /// Packets of a bandwidth-delay product.
    bdp: f64,
    /// Packets that a sender that knows nothing sends in a round trip.
    first_round: f64,
    /// How long a full buffer takes to drain, in seconds.
    buffer_time: f64,
    outage: bool,
    text: String,
}

fn log_uniform(stream: &mut Stream, low: f64, high: f64) -> f64 {
    (low.ln() + stream.unit() * (high.ln() - low.ln())).exp()
}

fn case(seed: u64) -> Case {
    let mut stream = Stream::new(seed, "case");
    let s = &mut stream;
    let size = log_uniform(s, 1.0, 64e6) as u64;
    // A large object over a slow path tests nothing but patience.
    let slowest = (size as f64 / 60.0 * 8.0 / 1e6).max(1.0);
    let rate = Rate::from_bps((log_uniform(s, slowest, 1000.0f64.max(slowest * 2.0)) * 1e6) as u64);
    let rtt = Duration::from_micros((log_uniform(s, 1.0, 300.0) * 1e3) as u64);
    let bdp = rate.bdp(rtt).as_bytes() as f64 / 1257.0;
    let first_round = FIRST_RATE.bdp(rtt).as_bytes() as f64 / 1257.0;
    let buffer = (bdp * log_uniform(s, 0.1, 2.0)).max(40.0);
    let p = s.unit() * 0.5 * s.unit();
    let loss = match s.below(3) {
        0 => Loss::None,
        1 => Loss::Bernoulli(Probability::new(p)),
        _ => {
            let q = 0.2 + 0.8 * s.unit();
            Loss::Gilbert { p: Probability::new(p * q / (1.0 - p)), q: Probability::new(q) }
        }
    };
    let mut sometimes = |chance: f64, most: f64| {
        let value = s.unit() * most;
        if s.unit() < chance { value } else { 0.0 }
    };
    let link = LinkConfig {
        rate,
        delay: rtt / 2,
        buffer: Limit::Bytes(Size::from_bytes((buffer * 1257.0) as u64)),
        duplicate: Probability::new(sometimes(0.3, 0.05)),
        corrupt: Probability::new(sometimes(0.3, 0.02)),
        jitter: rtt.mul_ratio(sometimes(0.3, 100.0) as u64, 1000),
        reorder: Reorder {
            probability: Probability::new(sometimes(0.3, 0.05)),
            by: rtt.mul_ratio(sometimes(1.0, 300.0) as u64, 1000),
            ..Reorder::default()
        },
        ..LinkConfig::default()
    };
    let up_loss = sometimes(0.5, 0.5);
    let outage_length = Duration::from_secs_f64(sometimes(0.3, 1.0).powi(3) * 30.0);
    let outage_at = Time::ZERO + Duration::from_secs_f64(sometimes(1.0, 2.0));
    let outage = (outage_length > Duration::ZERO).then(|| Outage::once(outage_at, outage_length));
    let position =
        if sometimes(1.0, 1.0) < 0.5 { LossPosition::BeforeQueue } else { LossPosition::AfterLine };
    let mut transfer = Transfer::new(seed, size);
    transfer.config.max_packet_size = 1500;
    transfer.wire = seed.is_multiple_of(2);
    transfer.up =
        LinkConfig { loss: Loss::Bernoulli(Probability::new(up_loss)), outage, ..link.clone() };
    transfer.down = LinkConfig { loss, loss_position: position, outage, ..link };
    let corrupt = transfer.down.corrupt.get();
    let loss = 1.0 - (1.0 - loss.stationary_rate()) * (1.0 - corrupt);
    let text = format!(
        "seed {seed}: {size} B, {rate}, {rtt}, buffer {buffer:.0} packets, loss {loss:.3} ({:?}), up {up_loss:.2}, \
         outage {outage:?}, reorder {:?}, jitter {}",
        transfer.down.loss, transfer.down.reorder, transfer.down.jitter
    );
    let buffer_time = buffer * 1257.0 * 8.0 / rate.as_bps() as f64;
    Case { transfer, loss, bdp, first_round, buffer_time, outage: outage.is_some(), text }
}

#[test]
fn random_transfers_over_bad_paths_end_with_every_byte_equal_and_little_waste() {
    let first = number("FONTIS_SEED", 1);
    let mut failures = Vec::new();
    for seed in first..first + number("FONTIS_RUNS", 200) {
        let case = case(seed);
        let outcome = case.transfer.run();
        let needed = outcome.server.symbols_needed as f64;
        let sent = outcome.server.symbols_sent as f64;
        // What a path of this loss asks for on average, the deviation that a short transfer covers
        // beforehand, what the search for the path's rate may send too much (the first round trip
        // at 9 Mbit/s on a path that is slower, one bandwidth-delay product on one that is faster),
        // and what an outage swallows, after which the search may begin anew.
        let mean = needed / (1.0 - case.loss);
        let tail =
            5.0 * (needed.min(1000.0) * case.loss.max(0.08)).sqrt() / (1.0 - case.loss) + 24.0;
        let overshoot = case.bdp + case.first_round + 150.0;
        let outage = if case.outage { 2.0 * case.bdp + case.first_round + 150.0 } else { 0.0 };
        // A buffer that is shorter than the hosts' own jitter cannot be steered by its delay.
        let share = if case.buffer_time < 4e-3 { 1.6 } else { 1.1 };
        let most = share * mean + tail + overshoot + outage;
        // All copies of a SYN, or what answers them, may be lost: that is an end too, and the
        // application is told.
        if outcome.closed == Some(CloseReason::NoAnswer) && sent == 0.0 {
            continue;
        }
        let verdict = if outcome.duration.is_none() {
            "did not end"
        } else if outcome.wrong_bytes > 0 {
            "wrong bytes"
        } else if sent > most {
            "sent too much"
        } else {
            continue;
        };
        failures.push(format!(
            "{verdict}: {}; sent {sent} of {most:.0} (needed {needed}), drops {:?}, closed {:?}, took {:?}",
            case.text,
            outcome.down.dropped.queue.packets,
            outcome.closed,
            outcome.duration.map(Duration::as_secs_f64)
        ));
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}
