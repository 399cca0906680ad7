//! Packets that a path does not carry.

use std::cell::Cell;
use std::rc::Rc;

use fontis_base::Duration;
use fontis_proto::dccp::{Ccid, DccpBody, DccpConfig, DccpData, DccpPacket};

use super::pair::Pair;

const BELOW: u32 = 28;

fn config(ccid: Ccid, most_packet: u32) -> DccpConfig {
    DccpConfig { ccid, most_packet, headers_below: BELOW, queue: 64, ..DccpConfig::default() }
}

fn size(packet: &DccpPacket) -> u32 {
    BELOW + (packet.header_len() + packet.data.len()) as u32
}

/// A pair over a path whose longest packet can change.
fn over(config: &DccpConfig, carries: u32) -> (Pair, Rc<Cell<u32>>) {
    let (mut pair, path) = (Pair::of(config), Rc::new(Cell::new(carries)));
    let shared = Rc::clone(&path);
    pair.loses = Box::new(move |_, packet| size(packet) > shared.get());
    (pair, path)
}

/// Sends packets as long as they may be for a while, and returns how many arrived and were sent.
fn fill(pair: &mut Pair, seconds: u64) -> (usize, usize) {
    let (before, mut sent) = (pair.got.len(), 0);
    for _ in 0..seconds * 10 {
        let most = pair.client.most_data().expect("a limit");
        sent += usize::from(pair.client.send(DccpData::Counted { len: most, mark: 0 }) == Ok(true));
        pair.run(Duration::from_millis(100));
    }
    (pair.got.len() - before, sent)
}

#[test]
fn data_above_the_maximum_packet_size_are_refused_with_its_name() {
    let mut pair = Pair::of(&config(Ccid::Two, 1500));
    pair.run(Duration::from_secs(2));
    let most = pair.client.most_data().expect("a limit");
    assert!((1400..=1440).contains(&most), "{most}");
    let of = |len| DccpData::Counted { len, mark: 0 };
    assert_eq!(pair.client.send(of(most)), Ok(true));
    let error = pair.client.send(of(most + 1)).expect_err("it is too long");
    assert_eq!((error.len, error.most), (most as usize + 1, most));
    assert!(error.to_string().contains(&format!("at most {most}")), "{error}");
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.got.len(), 1);
    let without = Pair::of(&DccpConfig::default());
    assert_eq!(without.client.most_data(), None);
}

#[test]
fn the_path_is_tried_with_syncs_that_are_padded_and_answered() {
    let (mut pair, _) = over(&config(Ccid::Four, 9000), 9000);
    pair.run(Duration::from_secs(5));
    let probes = pair.sent[0]
        .iter()
        .filter(|packet| matches!(packet.body, DccpBody::Sync { .. }) && !packet.data.is_empty());
    assert_eq!(probes.map(size).collect::<Vec<_>>(), [1500, 9000]);
    assert!(pair.client.most_data() > Some(8900));
    assert!(pair.got.is_empty(), "padding is no data");
}

#[test]
fn packets_that_vanish_because_they_are_long_become_shorter_over_random_paths() {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (seed, runs): (u64, u64) =
        (given("FONTIS_SEED").unwrap_or(1), given("FONTIS_RUNS").unwrap_or(24).min(1000));
    println!("FONTIS_SEED={seed}");
    for run in 0..runs {
        let draw = |number: u64, least: u64, most: u64| {
            let mixed = [run, number].into_iter().fold(seed, |mixed, number| {
                let mixed = (mixed ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            });
            least + (mixed >> 16) % (most - least + 1)
        };
        let ccid = [Ccid::Two, Ccid::Three, Ccid::Four][draw(0, 0, 2) as usize];
        let most = draw(1, 1280, 9000) as u32;
        let paths = [2, 3].map(|number| draw(number, 576, 9000) as u32);
        let (mut pair, path) = over(&config(ccid, most), paths[0]);
        pair.run(Duration::from_secs(1));
        for carries in paths {
            path.set(carries);
            // A window of one packet after timeouts of up to a minute takes its time.
            fill(&mut pair, 240);
            let most_data = pair.client.most_data().expect("a limit");
            assert!(
                most_data + BELOW <= carries,
                "run {run}: {ccid:?} {most} {paths:?} {most_data}"
            );
            let (arrived, sent) = fill(&mut pair, 30);
            assert!(
                arrived * 10 >= sent * 9 && sent > 0,
                "run {run}: {ccid:?} {most} {paths:?} {arrived} of {sent}"
            );
            for packet in pair.sent.iter().flatten().filter(|packet| packet.body.carries_data()) {
                assert!(size(packet) <= most.max(1500), "an acknowledgement is too much");
            }
        }
        // The best is found within the time after which greater sizes are tried again.
        fill(&mut pair, 700);
        let best = paths[1].min(most);
        let found = pair.client.most_data().expect("a limit") + BELOW + 40;
        assert!(found + 16 >= best, "run {run}: {ccid:?} {most} {paths:?} {found}");
    }
}

#[test]
fn what_waits_is_dropped_when_it_has_become_too_long() {
    let (mut pair, path) = over(&config(Ccid::Three, 1500), 1500);
    pair.run(Duration::from_secs(2));
    path.set(600);
    fill(&mut pair, 60);
    let most = pair.client.most_data().expect("a limit");
    assert!(most < 600, "{most}");
    let late = pair.sent[0].iter().rev().take(20).filter(|packet| packet.body.carries_data());
    assert!(late.map(size).all(|size| size <= 600));
}
