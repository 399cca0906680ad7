//! Transfers over 100 Mbit/s and 100 ms at several loss rates, beside their bound.
//!
//! `cargo run --release -p fontis-sim --example wan [BYTES]`

#[path = "../tests/support/mod.rs"]
mod support;

use fontis_base::{Duration, Probability, Rate};
use fontis_net::{Limit, LinkConfig, Loss};
use support::transfer::Transfer;

fn main() {
    let size = std::env::args().nth(1).map_or(100_000_000, |text| text.parse().expect("bytes"));
    let rate = Rate::from_mbps(100);
    let rtt = Duration::from_millis(100);
    for loss in [0.0, 0.01, 0.05, 0.1, 0.2, 0.3] {
        let mut transfer = Transfer::new(1, size);
        transfer.config.max_packet_size = 1500;
        let link = LinkConfig {
            rate,
            delay: rtt / 2,
            buffer: Limit::Bytes(rate.bdp(rtt)),
            ..LinkConfig::default()
        };
        transfer.up = link.clone();
        transfer.down = LinkConfig { loss: Loss::Bernoulli(Probability::new(loss)), ..link };
        let outcome = transfer.run();
        let bound = transfer.bound(rate, rtt);
        let took = outcome.duration.unwrap_or(Duration::MAX);
        println!(
            "loss {:>4.0}%: {:.3} s, {:.3} of the bound; symbols / ideal {:.3}; queue drops {}; max queue {} B; \
             wrong {}; wasted {}; failures {}; {} events",
            loss * 100.0,
            took.as_secs_f64(),
            bound.as_secs_f64() / took.as_secs_f64(),
            outcome.server.symbols_sent as f64
                / (outcome.server.symbols_needed as f64 / (1.0 - loss)),
            outcome.down.dropped.queue.packets,
            outcome.down.max_queue_bytes,
            outcome.wrong_bytes,
            outcome.client.symbols_wasted,
            outcome.client.decode_failures,
            outcome.events,
        );
    }
}
