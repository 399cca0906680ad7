//! The simulator's packets, against what its links and endpoints have counted themselves.

use fontis_sim::experiment::run::{Watch, Watched};
use fontis_sim::scenario::Scenario;
use fontis_trace::{Detail, Fate, Kind, Marks, NOWHERE, capture, stream};

fn run(protocol: &str, topology: &str, most: usize) -> Watched {
    run_in(1500, protocol, topology, most)
}

/// In packets of at most `mtu` bytes: in large ones DFCP has several symbols.
fn run_in(mtu: u16, protocol: &str, topology: &str, most: usize) -> Watched {
    let text = format!(
        "[scenario]\nid = \"T\"\nduration = \"20 s\"\nuntil_done = true\nwarmup = \"0 s\"\n[topology]\nrate = \"20 Mbit/s\"\n\
         rtt = \"50 ms\"\nbuffer = \"0.5 BDP\"\n{topology}\n[dfcp]\nrate = \"auto\"\nmtu = {mtu}\n\
         [[flow]]\nprotocol = \"{protocol}\"\napp = \"object\"\nsize = \"3 MB\"\n"
    );
    let runs = Scenario::parse(&text).expect("a scenario").runs().expect("runs");
    let detail = Detail { most, ..Detail::default() };
    let watch = Watch { capture: 1_000_000, packets: Some(detail), qlog: false };
    runs[0].experiment.run_watched(watch, |_| false).expect("nobody stops it")
}

#[test]
fn every_packet_is_there_and_ends_where_it_did() {
    for protocol in ["cubic", "dfcp", "dfcp-published"] {
        let Watched { recording, trace, .. } = run(protocol, "loss = \"1%\"", 1_000_000);
        let trace = trace.expect("it was asked for");
        let queue =
            |column: &str| *recording.queue.numbers(column).last().expect("samples") as usize;
        let lost = trace.packets.iter().filter(|p| p.fate == Fate::Lost).count();
        assert_eq!(lost, queue("dropped") + queue("lost"), "{protocol}");
        assert!(lost > 10, "{protocol}: {lost}");
        // What was lost was lost at the bottleneck, the second lane; what crossed it has a stay
        // there.
        let bottleneck = |p: &&fontis_trace::TracePacket| p.fate == Fate::Lost && p.place == 1;
        assert_eq!(trace.packets.iter().filter(bottleneck).count(), lost);
        assert_eq!(trace.lanes[1].name, "bottleneck");
        assert!(trace.packets.iter().all(|p| p.fate == Fate::Lost || p.place == NOWHERE));
        assert_eq!(trace.hops.len(), queue("delivered"), "{protocol}");
        assert!(trace.hops.iter().all(|hop| hop.enter <= hop.leave));
        assert!(trace.packets.iter().all(|p| p.ended >= p.sent));
        assert!(trace.packets.is_sorted_by_key(|p| p.sent));
        assert_eq!(trace.total as usize, trace.packets.len());
    }
}

#[test]
fn retransmissions_are_those_that_tcp_counts() {
    let Watched { recording, trace, .. } = run("cubic", "loss = \"1%\"", 1_000_000);
    let trace = trace.expect("it was asked for");
    let counted = *recording.flow.numbers("retransmitted").last().expect("samples") as u64;
    assert_eq!(trace.flows[0].counts[0].retransmitted, counted);
    let marked = trace.packets.iter().filter(|p| p.marks.has(Marks::RETRANSMITTED)).count();
    assert_eq!(marked as u64, counted);
    // Every byte was new once.
    assert_eq!(trace.flows[0].counts[0].delivered, 3_000_000);
}

#[test]
fn useless_symbols_are_those_that_dfcp_counts() {
    [1500, 9000].into_iter().for_each(useless_symbols_in);
}

fn useless_symbols_in(mtu: u16) {
    let loss = "loss = \"gilbert:1%,25%\"";
    let Watched { recording, trace, .. } = run_in(mtu, "dfcp", loss, 1_000_000);
    let trace = trace.expect("it was asked for");
    let share = recording.metric("wasted_symbols", "flow1").expect("a metric");
    // The endpoint counts until it has all and closes; the recorder sees what comes after that,
    // too.
    let events = recording.event.texts("event").expect("events");
    let completed = events.iter().position(|event| event == "completed");
    let completed = recording.event.numbers("time")[completed.expect("it completes")];
    let (mut received, mut useless) = (0, 0);
    for packet in &trace.packets {
        let symbols =
            packet.fate == Fate::Arrived && matches!(packet.kind, Kind::Data | Kind::Repair);
        if symbols && packet.ended.as_secs_f64() <= completed {
            received += packet.len;
            useless += if packet.marks.has(Marks::USELESS) { packet.len } else { 0 };
        }
    }
    // Of the packet that completes a block the endpoint knows which of its symbols were too many; a
    // trace does not.
    let most =
        trace.packets.iter().filter(|p| p.kind == Kind::Data).map(|p| p.len).max().expect("data");
    let between = trace.blocks.len() as u32 * (most - 1);
    let counted = (share * f64::from(received)).round();
    assert!((share * f64::from(received) - counted).abs() < 1e-6, "the same symbols were received");
    let range = f64::from(useless)..=f64::from(useless + between);
    assert!(useless > 0 && range.contains(&counted), "{useless} of {received}, counted {counted}");
    let all: u32 = trace.blocks.iter().map(|block| block.useless).sum();
    assert!(all >= useless);
    assert!(trace.blocks.iter().all(|block| block.k > 0 && block.received >= block.k));
    assert!(trace.packets.iter().any(|p| p.kind == Kind::Repair && p.marks.has(Marks::REDUNDANT)));
}

#[test]
fn a_thinned_trace_is_small_and_keeps_what_stands_out() {
    let whole = run("cubic", "loss = \"1%\"", 1_000_000).trace.expect("it was asked for");
    let thin = run("cubic", "loss = \"1%\"", 500).trace.expect("it was asked for");
    assert!(
        thin.packets.len() <= 500 && thin.kept[0] > 1,
        "{} {:?}",
        thin.packets.len(),
        thin.kept
    );
    assert_eq!(
        (thin.total, &thin.flows, &thin.findings),
        (whole.total, &whole.flows, &whole.findings)
    );
    let lost =
        |trace: &fontis_trace::Trace| trace.packets.iter().filter(|p| p.fate == Fate::Lost).count();
    assert_eq!(lost(&thin), lost(&whole), "lost packets are kept");
    assert!(thin.hops.iter().all(|hop| (hop.packet as usize) < thin.packets.len()));
}

#[test]
fn a_trace_is_the_same_after_its_way_as_bytes() {
    for protocol in ["cubic", "dfcp"] {
        let trace = run(protocol, "loss = \"1%\"", 1_000_000).trace.expect("it was asked for");
        let bytes = stream::encode(&trace);
        let again = stream::decode(&bytes).expect("what was written");
        assert_eq!(again.packets, trace.packets);
        assert_eq!(
            (&again.hops, &again.blocks, &again.lanes),
            (&trace.hops, &trace.blocks, &trace.lanes)
        );
        assert_eq!((&again.flows, &again.findings), (&trace.flows, &trace.findings));
        assert_eq!(stream::encode(&again), bytes);
        // Cut anywhere it is an error or a shorter trace, never a panic.
        for length in (0..bytes.len()).step_by(997) {
            let _ = stream::decode(&bytes[..length]);
        }
    }
}

#[test]
fn the_senders_capture_tells_what_the_recorder_saw() {
    let Watched { capture, trace, .. } = run("cubic", "loss = \"1%\"", 1_000_000);
    let truth = trace.expect("it was asked for");
    let bytes = capture.expect("it was asked for").as_bytes().to_vec();
    let seen =
        capture::read(std::io::Cursor::new(bytes), "sender", Detail::default()).expect("a capture");
    let (truth, seen) = (truth.flows[0].counts[0], seen.flows[0].counts[0]);
    assert_eq!(seen.packets, truth.packets);
    assert_eq!(seen.data, truth.data);
    assert_eq!(seen.retransmitted, truth.retransmitted);
    // What was lost is concluded: of a segment lost twice both times, of the last perhaps not.
    assert!(seen.lost.abs_diff(truth.lost) <= 2, "{} {}", seen.lost, truth.lost);
}
