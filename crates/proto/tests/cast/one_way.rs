use bytes::Bytes;
use fontis_base::{Duration, Rate, Stream, Time};
use fontis_codes::Code;
use fontis_proto::cast::{
    Carousel, CarouselConfig, CarouselTransmit, CastReceiver, CastReceiverConfig, CastShape,
    CastState, CastSymbol,
};

use super::room::SYMBOL;

fn config(loss: f64, failure: f64, rounds: Option<u32>) -> CarouselConfig {
    CarouselConfig { rate: Rate::from_mbps(100), loss, failure, rounds }
}

/// Sends everything to one receiver that loses a share of the packets and hears nothing before
/// packet `from`; gives whether it has everything, and how many symbols were sent.
fn send(shape: CastShape, config: CarouselConfig, loss: f64, from: u64, seed: u64) -> (bool, u64) {
    let mut carousel = Carousel::new(config, shape);
    let mut receiver = CastReceiver::new(CastReceiverConfig::default(), shape, 0, seed);
    let mut stream = Stream::new(seed, "one way");
    let (mut now, mut number, mut symbols, mut has_heard) = (Time::ZERO, 0, 0, false);
    while !carousel.is_over() && !receiver.is_complete() {
        now = now.max(carousel.timeout());
        while let Some(transmit) = carousel.poll(now) {
            number += 1;
            let comes = number >= from && stream.unit() >= loss;
            let CarouselTransmit::Symbol { round: visit, block, esi } = transmit else {
                has_heard |= comes;
                continue;
            };
            symbols += 1;
            // Before an announcement nobody knows what the symbols are of.
            if !comes || !has_heard {
                continue;
            }
            let symbol = CastSymbol { visit, block, esi, timing: None, data: Bytes::new() };
            receiver.symbol(number, &symbol, now);
            while let Some((block, job)) = receiver.take_job() {
                if receiver.decoded(block, job.run()).is_some() {
                    receiver.accept(block);
                }
            }
        }
    }
    assert_eq!(receiver.poll(now), None, "nobody would hear it");
    (receiver.is_complete(), symbols)
}

#[test]
fn what_was_sent_before_somebody_listened_is_asked_of_others() {
    let shape = CastShape::new(300, 10 << 20, 1 << 20, SYMBOL, Code::Counting).unwrap();
    let (begun, now) = (shape.head_blocks() + 7, Time::ZERO);
    let mut receiver = CastReceiver::new(CastReceiverConfig::default(), shape, 0, 1);
    let symbol = CastSymbol { visit: 5, block: 4, esi: 0, timing: None, data: Bytes::new() };
    receiver.symbol(1, &symbol, now);
    let state = CastState { pass: begun, visit: 9, rate: 1000, members: 1, ..CastState::default() };
    assert_eq!(receiver.pace(), None);
    receiver.state(2, state, now);
    assert_eq!(receiver.pace(), Some(1000));
    receiver.pass_over();
    // Of block 4 something came, and the last three are still to come.
    let passed: Vec<u32> = (0..shape.blocks()).filter(|block| receiver.has(*block)).collect();
    assert_eq!(passed, (0..begun).filter(|block| *block != 4).collect::<Vec<_>>());
    assert_eq!(
        receiver.lacking(),
        shape.symbols_of(4, 5) - 1 + shape.symbols_of(begun, shape.blocks())
    );
}

#[test]
fn one_round_suffices_at_the_stated_loss() {
    let seed = std::env::var("FONTIS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let runs = std::env::var("FONTIS_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    println!("seed {seed}");
    let mut stream = Stream::new(seed, "shapes");
    let mut incomplete = 0;
    for run in 0..runs {
        let (size, loss) = (1 + stream.below(3 << 20), stream.unit() * 0.4);
        let size = if run % 10 == 0 { size % 3000 } else { size };
        let shape = CastShape::new(300, size, 1 << 20, SYMBOL, Code::Counting).unwrap();
        let (has_all, _) = send(shape, config(loss, 5e-5, Some(1)), loss, 0, seed + run);
        incomplete += u64::from(!has_all);
    }
    println!("{incomplete} of {runs} incomplete");
    assert!(incomplete <= runs / 10_000 + 1);
}

#[test]
fn the_overhead_is_the_theorys() {
    // 64 blocks of 880 symbols, 20 % lost: each needs so many symbols that 880 and two more arrive
    // but for 5e-5 ÷ 65; by the normal distribution 880/.8 + 4.8 √(880 × .2)/.8.
    let shape = CastShape::new(2500, 64 << 20, 1 << 20, SYMBOL, Code::RaptorQ).unwrap();
    let carousel = Carousel::new(config(0.2, 5e-5, Some(1)), shape);
    let theory = (880.0 + 4.8 * (880.0_f64 * 0.2).sqrt()) / 0.8 / 880.0;
    let ratio = carousel.symbols_for_each() / theory;
    println!("{:.4} symbols for each, {ratio:.4} of the theory", carousel.symbols_for_each());
    assert!((0.99..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn who_begins_in_the_middle_goes_on_in_the_next_round() {
    let shape = CastShape::new(2500, 4 << 20, 1 << 20, SYMBOL, Code::Counting).unwrap();
    let once = send(shape, config(0.05, 1e-3, Some(1)), 0.05, 0, 3).1;
    for from in [10, once / 3, once - 10, once + 100] {
        let (has_all, symbols) = send(shape, config(0.05, 1e-3, Some(3)), 0.05, from, 4);
        println!("from {from}: {has_all} after {symbols} symbols, a round has {once}");
        assert!(has_all);
        // It waits for an announcement, which comes twice a second and may be lost.
        let unknown = Rate::from_mbps(100).bytes_in(Duration::from_secs(1)) / u64::from(SYMBOL);
        assert!(symbols <= from + unknown + once + once / 10, "{symbols}");
    }
    assert!(send(shape, config(0.05, 1e-3, None), 0.6, 0, 5).0, "a carousel without end ends well");
    assert!(!send(shape, config(0.0, 1e-3, Some(1)), 0.3, 0, 6).0);
}
