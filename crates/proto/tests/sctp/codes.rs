//! Erasure codes inside associations.

use fontis_base::{Duration, Stream};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::sctp::{
    AckPolicy, CmtConfig, CodingConfig, Multipath, Reliability, RepairChunk, RepairFactors,
    RepairWait, RepairedLoss, SctpChunk, SctpConfig, SctpData, SctpPacket, SctpSend, SctpStats,
};

use super::pair::{Pair, Way, address, plain};

fn coded(code: &str) -> SctpConfig {
    let code = code.parse().unwrap();
    SctpConfig {
        multipath: Multipath::Concurrent(CmtConfig::default()),
        max_burst: None,
        acks: AckPolicy { waits_at_gaps: true, ..AckPolicy::default() },
        coding: Some(CodingConfig {
            code,
            wait: RepairWait::Outcome,
            is_inside: true,
            loss: RepairedLoss::Beyond,
            covers_tail: false,
        }),
        ..plain()
    }
}

fn uncoded() -> SctpConfig {
    SctpConfig { coding: None, ..coded("block:10,9") }
}

fn lossy(loss: f64) -> Vec<Way> {
    vec![Way { loss, buffer: 75_000, ..Way::of(50, 1.0) }; 2]
}

/// A pair whose client sends messages of a chunk each, for as long as it may.
fn bulk(seed: u64, config: &SctpConfig, ways: Vec<Way>, reliability: Reliability) -> Pair {
    let mut pair = Pair::new(seed, config, ways);
    let send = SctpSend { reliability, ..SctpSend::default() };
    pair.queues[0] = std::iter::repeat_n((send, SctpData::Counted(1400)), 100_000).collect();
    pair
}

/// Codes as the thesis has them.
fn published(code: &str) -> SctpConfig {
    let mut config = coded(code);
    config.coding = config.coding.map(|coding| CodingConfig {
        is_inside: false,
        loss: RepairedLoss::Hidden,
        ..coding
    });
    config
}

#[test]
fn codes_give_more_than_they_take_where_paths_lose() {
    // Random points of the class: two paths of 1 Mbit/s and 100 ms that lose 4 to 7 %.
    let seed = 11;
    let mut stream = Stream::new(seed, "losses");
    for code in ["block:10,9", "conv:10,9,20", "tetrys:10,9,43", "raptorq:22,20"] {
        let loss = 0.04 + 0.03 * stream.unit();
        let goodput = |config: &SctpConfig| {
            let mut pair = bulk(seed, config, lossy(loss), Reliability::Full);
            pair.run(Duration::from_secs(200), |_| false);
            (pair.end(1).stats(), pair.end(0).stats())
        };
        let without = goodput(&uncoded());
        for (config, least) in [(published(code), 1.1), (coded(code), 1.1)] {
            let with = goodput(&config);
            let gain = with.0.bytes_received as f64 / without.0.bytes_received as f64;
            println!("{code}, {loss:.3} lost: {gain:.3} times");
            assert!(gain > least, "{code}, seed {seed}, {loss}: {gain}");
            assert!(with.0.restored > 300 && without.0.restored == 0, "{code}: {with:?}");
            assert!(with.1.fast_repeated < without.1.fast_repeated, "{code}: {with:?}");
            let share = with.1.repairs_sent as f64 / (with.1.chunks_sent - with.1.repeated) as f64;
            let each = if code.starts_with("raptorq") { 0.1 } else { 1.0 / 9.0 };
            assert!((share / each - 1.0).abs() < 0.05, "{code}: {share} repairs for each chunk");
        }
    }
}

/// The share of chunks that a code leaves lost where nothing is sent again and no queue overflows,
/// and the chunks that were sent.
fn left(code: &str, seed: u64, loss: f64) -> (f64, f64) {
    let config = SctpConfig { receive_buffer: 64 << 10, ..published(code) };
    let ways = vec![Way { loss, ..Way::of(50, 1.0) }; 2];
    let mut pair = bulk(seed, &config, ways, Reliability::Repeats(0));
    pair.run(Duration::from_secs(400), |_| false);
    pair.queues[0].clear();
    let is_sent = |pair: &Pair| pair.ends[0].as_ref().unwrap().buffered() == 0;
    assert!(pair.run(Duration::from_secs(60), is_sent));
    let (sent, got) = (pair.end(0).stats(), pair.end(1).stats());
    let chunks = sent.chunks_sent as f64;
    (1.0 - got.messages_received as f64 / chunks, chunks)
}

#[test]
fn a_block_code_leaves_the_loss_that_its_formula_says() {
    let seed = std::env::var("FONTIS_SEED").map_or(5, |seed| seed.parse().unwrap());
    let mut stream = Stream::new(seed, "losses");
    for _ in 0..3 {
        let loss = 0.01 + 0.07 * stream.unit();
        let (left, chunks) = left("block:10,9", seed, loss);
        // A chunk is lost for good if it is lost and one of the nine others of its group is too.
        let expected = loss * (1.0 - libm::pow(1.0 - loss, 9.0));
        // Losses of a group come together: one that two tell of counts twice.
        let deviation = libm::sqrt(2.0 * expected / chunks);
        println!("{loss:.4} lost, {left:.5} left, {expected:.5} expected ± {deviation:.5}");
        assert!((left - expected).abs() < 2.0 * deviation, "seed {seed}: {left}, {expected}");
    }
}

/// The probability that so many of `of` packets are lost.
fn chance(lost: u64, of: u64, loss: f64) -> f64 {
    let ways = (0..lost).map(|at| (of - at) as f64 / (at + 1) as f64).product::<f64>();
    ways * libm::pow(loss, lost as f64) * libm::pow(1.0 - loss, (of - lost) as f64)
}

#[test]
fn raptorq_leaves_the_loss_that_the_binomial_tail_says() {
    let seed = std::env::var("FONTIS_SEED").map_or(5, |seed| seed.parse().unwrap());
    let mut stream = Stream::new(seed, "losses");
    for (n, k) in [(12, 10), (23, 20), (26, 24), (33, 30)] {
        let loss = 0.03 + 0.07 * stream.unit();
        let (left, chunks) = left(&format!("raptorq:{n},{k}"), seed, loss);
        // A chunk is lost for good if it is lost and the others of its block lose as many as there
        // are repairs; and, if they lose fewer, where RaptorQ fails: of blocks with h packets more
        // than it has chunks in about one of 100 to the power of h + 1.
        let repairs = n - k;
        let tail = (repairs..n).map(|lost| chance(lost, n - 1, loss)).sum::<f64>();
        let failure = |lost: u64| libm::pow(0.01, (repairs - lost) as f64);
        let failed =
            (0..repairs).map(|lost| chance(lost, n - 1, loss) * failure(lost)).sum::<f64>();
        let expected = loss * (tail + failed);
        // Losses come in blocks, of about so many chunks.
        let together = (repairs + 2) as f64;
        let deviation = libm::sqrt(together * expected / chunks);
        println!(
            "seed {seed}, raptorq:{n},{k}: {loss:.4} lost, {left:.5} left, {expected:.5} expected \
             ± {deviation:.5}"
        );
        assert!((left - expected).abs() < 2.0 * deviation, "seed {seed}: {left}, {expected}");
    }
}

#[test]
fn raptorq_gives_back_what_was_sent_whatever_is_given_up() {
    let seed = std::env::var("FONTIS_SEED").map_or(5, |seed| seed.parse().unwrap());
    let reliabilities =
        [Reliability::Full, Reliability::Repeats(0), Reliability::Lifetime(Duration::from_secs(3))];
    for reliability in reliabilities {
        let [without, with] = [None, Some("raptorq:24,20")].map(|code| {
            let config =
                SctpConfig { receive_buffer: 64 << 10, ..code.map_or_else(uncoded, coded) };
            let mut pair = Pair::new(seed, &config, lossy(0.05));
            let mut stream = Stream::new(seed, "messages");
            for protocol in 0..600 {
                let mut bytes = vec![0; 1 + stream.below(3000) as usize];
                Stream::new(protocol, "bytes").fill(&mut bytes);
                let send = SctpSend {
                    stream: (protocol % 3) as u16,
                    protocol: protocol as u32,
                    is_unordered: true,
                    reliability,
                };
                pair.queues[0].push_back((send, SctpData::Bytes(bytes.into())));
            }
            let is_sent = |pair: &Pair| {
                pair.queues[0].is_empty() && pair.ends[0].as_ref().unwrap().buffered() == 0
            };
            assert!(pair.run(Duration::from_secs(200), is_sent), "{:?}", pair.end(0).stats());
            pair.run(Duration::from_secs(5), |_| false);
            for message in &pair.got[1] {
                let SctpData::Bytes(bytes) = &message.data else { panic!("no bytes") };
                let mut wanted = vec![0; bytes.len()];
                Stream::new(message.protocol.into(), "bytes").fill(&mut wanted);
                assert_eq!(*bytes, wanted, "seed {seed}, {reliability:?}");
            }
            (pair.got[1].len(), pair.end(1).stats().restored)
        });
        println!("seed {seed}, {reliability:?}: {} arrive without, {with:?} restored", without.0);
        assert!(with.1 > 20 && without.1 == 0, "{with:?}");
        match reliability {
            Reliability::Full => assert_eq!((with.0, without.0), (600, 600)),
            Reliability::Repeats(_) => assert!(with.0 > without.0 + 10, "{with:?} {without:?}"),
            // Repairs take time from messages that have little.
            Reliability::Lifetime(_) => assert!(with.0 > without.0 / 2, "{with:?} {without:?}"),
        }
    }
}

#[test]
fn a_peer_without_codes_gets_none() {
    for configs in [[coded("block:4,2"), uncoded()], [uncoded(), coded("block:4,2")]] {
        let mut pair = Pair::of(3, configs, lossy(0.05));
        let message = (SctpSend::default(), SctpData::Counted(1400));
        pair.queues[0] = std::iter::repeat_n(message, 200).collect();
        let done = |pair: &Pair| pair.got[1].len() == 200;
        assert!(pair.run(Duration::from_secs(60), done));
        assert_eq!((pair.end(0).stats().repairs_sent, pair.end(1).stats().restored), (0, 0));
    }
}

#[test]
fn repairs_that_fit_nothing_restore_nothing_and_take_little() {
    let seed = 9;
    let config = SctpConfig { receive_buffer: 64 << 10, ..coded("tetrys:10,9,43") };
    let mut pair = Pair::new(seed, &config, lossy(0.0));
    let message = (SctpSend::default(), SctpData::Counted(1400));
    pair.queues[0] = std::iter::repeat_n(message, 50).collect();
    assert!(pair.run(Duration::from_secs(20), |pair| pair.got[1].len() == 50));
    let (now, next) = (pair.now, pair.end(0).init().tsn.wrapping_add(50));
    let server = pair.end(1);
    let (tag, mut stream) = (server.tag(), Stream::new(seed, "repairs"));
    for _ in 0..20_000 {
        let mut head = [0; RepairChunk::HEAD];
        stream.fill(&mut head);
        let mut data = vec![0; 1 + stream.below(1400) as usize];
        stream.fill(&mut data);
        let repair = RepairChunk {
            first: next.wrapping_sub(100).wrapping_add(stream.below(400) as u32),
            count: 1 + stream.below(130) as u16,
            id: stream.next_u64() as u32 >> stream.below(32),
            factors: [RepairFactors::Window, RepairFactors::RaptorQ][stream.below(2) as usize],
            head,
            data: SctpData::Bytes(data.into()),
        };
        let chunks = vec![SctpChunk::Repair(repair)];
        let packet = SctpPacket { source: 5000, destination: 5000, tag, chunks };
        server.handle(now, [address(1, 0), address(0, 0)], &packet, false);
        while server.poll(now).is_some() {}
    }
    // A sum of one chunk that has not come is that chunk: whoever has the tag could send it as
    // well. Random heads are hardly ever one.
    let stats = server.stats();
    assert!(stats.repairs_received >= 20_000 && stats.restored < 20, "{stats:?}");
    assert!(stats.held <= 64 << 10, "{stats:?}");
    assert!(!server.is_closed(), "{stats:?}");
}

/// What both ends have counted when a code whose rate follows the loss has had a path of 100 Mbit/s
/// and 100 ms for so long, with a queue of so many bytes.
fn adaptive(
    code: &str,
    seed: u64,
    losses: &[f64],
    span: Duration,
    buffer: u64,
) -> Vec<[SctpStats; 2]> {
    let config = SctpConfig {
        receive_buffer: 8 << 20,
        send_buffer: 8 << 20,
        stamps: true,
        first_window: Some(10),
        batches: true,
        congestion: CongestionKind::Cubic,
        max_burst: Some(4),
        acks: AckPolicy::default(),
        ..coded(code)
    };
    let way = Way { buffer, ..Way::of(50, 100.0) };
    let mut pair = bulk(seed, &config, vec![way], Reliability::Full);
    let send = SctpSend::default();
    pair.queues[0] = std::iter::repeat_n((send, SctpData::Counted(32 << 10)), 50_000).collect();
    pair.grain = Duration::from_micros(500);
    let each = losses.iter().map(|loss| {
        pair.ways[0].loss = *loss;
        pair.run(span, |_| false);
        pair.got[1].clear();
        [pair.end(0).stats(), pair.end(1).stats()]
    });
    each.collect()
}

#[test]
fn where_nothing_is_lost_an_adaptive_code_takes_a_hundredth() {
    let seed = 1;
    let [sent, got] =
        adaptive("tetrys:adaptive,128", seed, &[0.0], Duration::from_secs(20), 1_250_000)[0];
    let share = sent.repairs_sent as f64 / sent.chunks_sent as f64;
    let rate = got.bytes_received as f64 * 8e-6 / 20.0;
    println!("{share:.4} repairs for each chunk, {rate:.1} Mbit/s");
    assert!(share < 0.015 && rate > 85.0, "seed {seed}: {share}, {rate}");
}

#[test]
fn an_adaptive_code_leaves_little_of_any_loss_and_follows_it() {
    let seed = std::env::var("FONTIS_SEED").map_or(7, |seed| seed.parse().unwrap());
    let mut stream = Stream::new(seed, "losses");
    for code in ["tetrys:adaptive,128"; 3].into_iter().chain(["raptorq:adaptive,64"; 3]) {
        let loss = 0.01 + 0.09 * stream.unit();
        let span = Duration::from_secs(10);
        // No queue overflows.
        let stats = adaptive(code, seed, &[loss, 0.0, loss / 2.0], span, 1 << 30);
        let part = |at: usize| {
            let before = if at == 0 { SctpStats::default() } else { stats[at - 1][0] };
            let sent = stats[at][0];
            let chunks = (sent.chunks_sent - before.chunks_sent) as f64;
            let repairs = (sent.repairs_sent - before.repairs_sent) as f64 / chunks;
            (chunks, repairs, (sent.repeated - before.repeated) as f64 / chunks)
        };
        let parts = [part(0), part(1), part(2)];
        println!("{code}, {loss:.3} lost: {parts:.6?} chunks, repairs and repeats for each");
        let named = format!("seed {seed}, {loss}: {parts:?}");
        let rate = stats[0][1].bytes_received as f64 * 8e-6 / 10.0;
        assert!(parts[0].2 < 0.001 && rate > 4.0, "{named}");
        // At least what is lost, and at most what a hundred thousandth takes.
        // A block of half as many chunks needs more.
        let most = if code.starts_with("raptorq") { 4.0 * loss + 0.06 } else { 3.0 * loss + 0.04 };
        assert!(parts[0].1 > loss && parts[0].1 < most, "{named}");
        assert!(parts[2].1 > loss / 2.0 && parts[2].1 < parts[0].1, "{named}");
    }
}
