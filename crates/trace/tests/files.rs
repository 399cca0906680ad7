//! Files of other makers, whole and cut off.

use fontis_base::Time;
use fontis_trace::read::{Format, read};
use fontis_trace::{Detail, Fate, Kind, Marks, Trace, capture};

fn of(bytes: &[u8]) -> Trace {
    read(std::io::Cursor::new(bytes.to_vec()), "file", Detail::default()).expect("it is read")
}

/// One way of a dumbbell of ns-2.35: a segment that waits, one that is dropped, an acknowledgement.
const NS2: &str = "\
+ 1 2 0 tcp 1500 ------- 0 2.0 3.0 0 0
- 1 2 0 tcp 1500 ------- 0 2.0 3.0 0 0
r 1.0015 2 0 tcp 1500 ------- 0 2.0 3.0 0 0
+ 1.0015 0 1 tcp 1500 ------- 0 2.0 3.0 0 0
+ 1.002 2 0 tcp 1500 ------- 0 2.0 3.0 1 1
- 1.002 2 0 tcp 1500 ------- 0 2.0 3.0 1 1
- 1.0025 0 1 tcp 1500 ------- 0 2.0 3.0 0 0
r 1.003 2 0 tcp 1500 ------- 0 2.0 3.0 1 1
+ 1.003 0 1 tcp 1500 ------- 0 2.0 3.0 1 1
d 1.003 0 1 tcp 1500 ------- 0 2.0 3.0 1 1
r 1.02 0 1 tcp 1500 ------- 0 2.0 3.0 0 0
+ 1.02 1 3 tcp 1500 ------- 0 2.0 3.0 0 0
- 1.02 1 3 tcp 1500 ------- 0 2.0 3.0 0 0
r 1.021 1 3 tcp 1500 ------- 0 2.0 3.0 0 0
+ 1.021 3 1 ack 40 ------- 0 3.0 2.0 0 2
- 1.021 3 1 ack 40 ------- 0 3.0 2.0 0 2
";

#[test]
fn a_trace_of_ns2_has_queues_and_drops() {
    let trace = of(NS2.as_bytes());
    let names: Vec<&str> = trace.lanes.iter().map(|lane| &*lane.name).collect();
    assert_eq!(names, ["node 2", "node 0", "node 1", "node 3"]);
    assert_eq!(trace.packets.len(), 3);
    let [first, second, ack] = &trace.packets[..] else { panic!("three") };
    assert_eq!((first.fate, first.kind, first.seq), (Fate::Arrived, Kind::Data, 0));
    assert_eq!(first.sent, Time::from_nanos(1_000_000_000));
    assert_eq!(first.ended, Time::from_nanos(1_021_000_000));
    assert_eq!((second.fate, second.place), (Fate::Lost, 1));
    assert_eq!((ack.kind, ack.from, ack.fate), (Kind::Ack, 3, Fate::Unknown));
    let hop = trace.hops[0];
    assert_eq!((hop.packet, hop.lane), (0, 1));
    assert_eq!(hop.leave.since(hop.enter).as_micros(), 1000);
}

#[test]
fn a_trace_of_ns2_with_chunks_of_sctp_has_paths() {
    let text = "\
+ 0.5 1 4 sctp 1500 -------D 0 1.0 4.0 1 1 10 0 0
- 0.5 1 4 sctp 1500 -------D 0 1.0 4.0 1 1 10 0 0
r 0.6 1 4 sctp 1500 -------D 0 1.0 4.0 1 1 10 0 0
+ 0.6 4 1 sctp 48 -------S 0 4.0 1.0 1 1 11 65535 65535
+ 0.61 2 5 sctp 1500 -------D 0 2.0 5.0 1 2 12 0 1
r 0.65 4 1 sctp 48 -------S 0 4.0 1.0 1 1 11 65535 65535
r 0.71 2 5 sctp 1500 -------D 0 2.0 5.0 1 2 12 0 1
";
    let trace = of(text.as_bytes());
    assert_eq!(trace.flows.len(), 1);
    assert_eq!(trace.flows[0].paths, ["1 – 4", "2 – 5"]);
    let kinds: Vec<Kind> = trace.packets.iter().map(|p| p.kind).collect();
    assert_eq!(kinds, [Kind::Data, Kind::Ack, Kind::Data]);
    assert_eq!(trace.packets[2].path, 1);
}

const QLOG: &str = concat!(
    "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"server\"},\"common_fields\":{\"ODCID\":\"ab\"}}}\n",
    "\u{1e}{\"time\":100.0,\"name\":\"recovery:metrics_updated\",\"data\":{\"smoothed_rtt\":40.0,\"congestion_window\":14000}}\n",
    "\u{1e}{\"time\":101.0,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":7},\"raw\":{\"length\":1200},\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":4,\"offset\":0,\"length\":1100}]}}\n",
    "\u{1e}{\"time\":102.0,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":8},\"raw\":{\"length\":1200},\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":4,\"offset\":1100,\"length\":1100}]}}\n",
    "\u{1e}{\"time\":142.0,\"name\":\"transport:packet_received\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":3},\"raw\":{\"length\":50},\"frames\":[{\"frame_type\":\"ack\",\"ack_delay\":1.0,\"acked_ranges\":[[8,8]]}]}}\n",
    "\u{1e}{\"time\":143.0,\"name\":\"recovery:packet_lost\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":7}}}\n",
    "\u{1e}{\"time\":144.0,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":9},\"raw\":{\"length\":1200},\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":4,\"offset\":0,\"length\":1100}]}}\n",
);

fn check_qlog(trace: &Trace) {
    let fates: Vec<(u64, Fate)> = trace.packets.iter().map(|p| (p.number, p.fate)).collect();
    let expected = [(7, Fate::Lost), (8, Fate::Arrived), (3, Fate::Arrived), (9, Fate::Unknown)];
    assert_eq!(fates, expected);
    assert!(trace.packets[3].marks.has(Marks::RETRANSMITTED));
    assert_eq!(trace.lanes[usize::from(trace.packets[0].from)].name, "server");
    assert_eq!(trace.flows[0].counts[1].lost, 1);
}

#[test]
fn a_qlog_of_any_form_is_read() {
    check_qlog(&of(QLOG.as_bytes()));
    // The same as one text.
    let mut records: Vec<&str> =
        QLOG.split('\u{1e}').map(str::trim).filter(|r| !r.is_empty()).collect();
    let head = records.remove(0);
    let trace = head.split_once("\"trace\":{").expect("a head").1;
    let trace = trace.strip_suffix("}}").expect("its end");
    let whole = format!(
        "{{\"qlog_version\":\"0.3\",\"traces\":[{{{trace},\"events\":[{}]}}]}}",
        records.join(",")
    );
    check_qlog(&of(whole.as_bytes()));
    // And with a line for each text.
    let lines = format!("{head}\n{}\n", records.join("\n"));
    check_qlog(&of(lines.as_bytes()));
}

#[test]
fn a_file_cut_off_anywhere_is_read_up_to_there_or_refused() {
    let pcap = two_ends(0).0;
    for file in [NS2.as_bytes(), QLOG.as_bytes(), &pcap] {
        for length in 0..file.len() {
            let result =
                read(std::io::Cursor::new(file[..length].to_vec()), "cut", Detail::default());
            if let Err(error) = result {
                let text = error.to_string();
                assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
            }
        }
    }
    let cut = of(&pcap[..pcap.len() - 5]);
    assert!(cut.notes.iter().any(|note| note.contains("cut off")), "{:?}", cut.notes);
}

#[test]
fn what_is_nothing_known_is_refused() {
    assert_eq!(Format::of(b"hello, world\n"), None);
    assert_eq!(Format::of(b""), None);
    assert_eq!(Format::of(b"PAR1\x15\x04"), None);
}

#[test]
fn a_capture_without_times_is_refused_with_the_reason() {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = [0x1a2b_3c4d_u32.to_le_bytes(), [1, 0, 0, 0], [0xff; 4], [0xff; 4]].concat();
    let capture = [
        block(0x0a0d_0d0a, &section),
        // Raw IP, of any length.
        block(1, &[101, 0, 0, 0, 0, 0, 0, 0]),
        block(3, &[&20u32.to_le_bytes()[..], &[0x45; 20]].concat()),
    ];
    let capture = std::io::Cursor::new(capture.concat());
    let error = read(capture, "file", Detail::default()).unwrap_err();
    assert!(error.to_string().contains("no times"), "{error}");
}

/// A frame of TCP as raw IPv4 in a record of pcap with nanoseconds.
pub(crate) fn frame(nanos: u64, back: bool, seq: u32, ack: u32, len: u16, flags: u8) -> Vec<u8> {
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (source, destination) = if back { (b, a) } else { (a, b) };
    let ports: [u16; 2] = if back { [80, 5001] } else { [5001, 80] };
    let total = 40 + len;
    let mut ip = vec![0x45, 0];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(source);
    ip.extend(destination);
    ip.extend(ports.map(u16::to_be_bytes).concat());
    ip.extend([seq, ack].map(u32::to_be_bytes).concat());
    ip.extend([0x50, flags]);
    ip.extend([0xff, 0xff, 0, 0, 0, 0]);
    let seconds = [nanos / 1_000_000_000, nanos % 1_000_000_000, ip.len() as u64, u64::from(total)];
    let mut record: Vec<u8> =
        seconds.iter().flat_map(|word| (*word as u32).to_le_bytes()).collect();
    record.extend(ip);
    record
}

/// The same connection seen by its sender and, with a clock that is ahead by `ahead` ns, by its
/// receiver, 10 ms away. The third segment is lost.
fn two_ends(ahead: u64) -> (Vec<u8>, Vec<u8>) {
    let head = [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    let (mut here, mut there) = (head.clone(), head);
    let base = 1_700_000_000_000_000_000u64;
    let way = 10_000_000;
    let mut seen_here = Vec::new();
    let mut seen_there = Vec::new();
    let mut pass = |at: u64, back: bool, seq: u32, ack: u32, len: u16, flags: u8, lost: bool| {
        let (near, far) = if back {
            (&mut seen_there, &mut seen_here)
        } else {
            (&mut seen_here, &mut seen_there)
        };
        near.push((base + at, back, seq, ack, len, flags));
        if !lost {
            far.push((base + at + way, back, seq, ack, len, flags));
        }
    };
    pass(0, false, 100, 0, 0, 2, false);
    pass(way, true, 900, 101, 0, 18, false);
    pass(2 * way, false, 101, 901, 0, 16, false);
    for segment in 0..6u32 {
        let at = 2 * way + 1_000_000 * u64::from(segment + 1);
        pass(at, false, 101 + segment * 1000, 901, 1000, 24, segment == 2);
        pass(
            at + way,
            true,
            901,
            101 + segment.min(2) * 1000 + 1000 * u32::from(segment < 2),
            0,
            16,
            false,
        );
    }
    pass(5 * way, false, 2101, 901, 1000, 24, false);
    pass(6 * way, true, 901, 6101, 0, 16, false);
    seen_here.sort();
    seen_there.sort();
    for (at, back, seq, ack, len, flags) in seen_here {
        here.extend(frame(at, back, seq, ack, len, flags));
    }
    for (at, back, seq, ack, len, flags) in seen_there {
        there.extend(frame(at + ahead, back, seq, ack, len, flags));
    }
    (here, there)
}

#[test]
fn a_capture_at_one_end_concludes_what_happened_at_the_other() {
    for (which, is_sender) in [(0, true), (1, false)] {
        let files = two_ends(0);
        let trace = of(if which == 0 { &files.0 } else { &files.1 });
        let counts = trace.flows[0].counts[0];
        assert_eq!(
            (counts.retransmitted, counts.spurious),
            (u64::from(is_sender || which == 1), 0),
            "{which}"
        );
        if is_sender {
            assert_eq!(counts.lost, 1);
            let lost: Vec<u64> =
                trace.packets.iter().filter(|p| p.fate == Fate::Lost).map(|p| p.seq).collect();
            assert_eq!(lost, [2000]);
        }
        // A way of 10 ms, from round trips of 20 ms.
        let segment = trace.packets.iter().find(|p| p.kind == Kind::Data).expect("data");
        assert_eq!(segment.ended.since(segment.sent).as_millis(), 10, "{which}");
        assert!(segment.marks.has(Marks::ESTIMATED));
    }
}

#[test]
fn captures_of_both_ends_are_put_on_one_clock() {
    for ahead in [0, 5_000_000_000] {
        let (here, there) = two_ends(ahead);
        let open = |bytes: &[u8]| std::io::Cursor::new(bytes.to_vec());
        assert!(capture::are_of_the_same(open(&here), open(&there)));
        let trace = capture::read_both(open(&here), open(&there), "both", Detail::default());
        let trace = trace.expect("captures");
        // Every packet once, with both times; the lost one was seen at one end only.
        assert_eq!(trace.total, 17);
        let ways = trace.packets.iter().filter(|p| p.fate == Fate::Arrived);
        assert!(ways.clone().all(|p| p.ended.since(p.sent).as_micros() == 10_000), "{ahead}");
        assert_eq!(ways.count(), 16);
        assert!(trace.packets.iter().all(|p| !p.marks.has(Marks::ESTIMATED)));
    }
    let (here, _) = two_ends(0);
    let other: Vec<u8> = here.iter().map(|byte| if *byte == 10 { 11 } else { *byte }).collect();
    assert!(!capture::are_of_the_same(std::io::Cursor::new(here), std::io::Cursor::new(other)));
}

/// The kernel's Multipath TCP over three pairs of addresses: 700,000 bytes, captured where they
/// were sent.
const MPTCP: &[u8] = include_bytes!("../../../fuzz/corpus/trace/mptcp.pcapng");

#[test]
fn subflows_of_multipath_tcp_are_paths_of_one_connection() {
    let trace = of(MPTCP);
    let flow = trace.flows.iter().position(|flow| flow.protocol == "MPTCP").expect("one");
    let connections = trace.flows.iter().filter(|flow| flow.protocol.starts_with("MPTCP")).count();
    assert_eq!(connections, 1, "{:?}", trace.flows);
    let paths = ["10.0.0.1 – 10.0.0.2", "10.1.0.1 – 10.1.0.2", "10.1.0.1 – 10.0.0.2"];
    let mut named = trace.flows[flow].paths.clone();
    named.sort();
    let mut expected = paths.map(str::to_owned);
    expected.sort();
    assert_eq!(named, expected);
    // In the connection's numbers every byte is there once, over all paths.
    let mut bytes = vec![0u8; 700_000];
    let mut by_path = [0u64; 3];
    let data = trace.packets.iter().filter(|p| p.kind == Kind::Data && usize::from(p.flow) == flow);
    for packet in data {
        let begin = packet.seq as usize;
        bytes[begin..begin + packet.len as usize].iter_mut().for_each(|times| *times += 1);
        by_path[usize::from(packet.path)] += u64::from(packet.len);
    }
    assert!(bytes.iter().all(|times| *times == 1));
    assert!(by_path.iter().all(|sent| *sent > 10_000), "{by_path:?}");
    assert_eq!(trace.flows[flow].counts[0].retransmitted, 0);
    // The connection's acknowledgements reach its end.
    let acknowledged = trace.packets.iter().map(|packet| packet.ack).max();
    assert!(acknowledged.is_some_and(|ack| (700_000..=700_001).contains(&ack)), "{acknowledged:?}");
}

/// What `--qlog` leaves at a sender: an object of one block with two symbols. Of five that are sent
/// the first is lost; when the second and third have come, the receiver says that it is done, and
/// the last two come too late.
fn dfcp_qlog() -> String {
    let head = r#"{"qlog_format":"JSON-SEQ","qlog_version":"0.3","trace":{"vantage_point":{"type":"server"},"common_fields":{"ODCID":"ab","time_format":"relative","protocol_type":["DFCP"]}}}"#;
    let event = |time: f64, name: &str, number: u64, frames: &str| {
        format!(
            r#"{{"time":{time},"name":"{name}","data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1100}},"frames":[{frames}]}}}}"#
        )
    };
    let open = r#"{"frame_type":"open","channel":3,"size":2000,"block_size":2048,"symbol_size":1000,"code":1}"#;
    let symbol = |esi: u32| {
        format!(
            r#"{{"frame_type":"symbols","channel":3,"block":0,"esi":{esi},"count":1,"length":1000}}"#
        )
    };
    let (sent, received) = ("transport:packet_sent", "transport:packet_received");
    let needs = |floor: u32| {
        format!(r#"{{"frame_type":"blocks","channel":3,"floor":{floor},"limit":9,"blocks":[]}}"#)
    };
    let feedback = |low: u64, high: u64| {
        format!(
            r#"{{"frame_type":"feedback","ack_delay":0,"acked_ranges":[[{low},{high}]],"packets":2,"ce":0}}"#
        )
    };
    let records = [
        head.to_owned(),
        event(0.0, sent, 0, &format!("{open},{}", symbol(0))),
        event(1.0, sent, 1, &symbol(1)),
        event(2.0, sent, 2, &symbol(2)),
        event(3.0, sent, 3, &symbol(3)),
        event(4.0, sent, 4, &symbol(4)),
        event(42.0, received, 0, &format!("{},{}", feedback(1, 2), needs(1))),
        r#"{"time":42.0,"name":"recovery:packet_lost","data":{"header":{"packet_number":0}}}"#
            .to_owned(),
        event(44.0, received, 1, &feedback(1, 4)),
    ];
    records.map(|record| format!("\u{1e}{record}\n")).concat()
}

#[test]
fn packets_of_two_paths_may_have_the_same_numbers_in_a_qlog() {
    let head = r#"{"qlog_format":"JSON-SEQ","qlog_version":"0.3","trace":{"vantage_point":{"type":"server"},"common_fields":{"ODCID":"ab","time_format":"relative","protocol_type":["DFCP"]}}}"#;
    let event = |time: f64, name: &str, path: u8, frames: &str| {
        format!(
            r#"{{"time":{time},"name":"transport:{name}","data":{{"header":{{"packet_type":"1RTT","packet_number":7}},"raw":{{"length":1100}},"path_id":{path},"frames":[{frames}]}}}}"#
        )
    };
    let symbol =
        r#"{"frame_type":"symbols","channel":3,"block":0,"esi":0,"count":1,"length":1000}"#;
    let feedback =
        r#"{"frame_type":"feedback","ack_delay":0,"acked_ranges":[[7,7]],"packets":1,"ce":0}"#;
    let lost = r#"{"time":60.0,"name":"recovery:packet_lost","data":{"header":{"packet_number":7},"path_id":2}}"#;
    let records = [
        head.to_owned(),
        event(0.0, "packet_sent", 0, symbol),
        event(1.0, "packet_sent", 1, symbol),
        event(2.0, "packet_sent", 2, symbol),
        event(41.0, "packet_received", 1, feedback),
        lost.to_owned(),
    ];
    let trace = of(records.map(|record| format!("\u{1e}{record}\n")).concat().as_bytes());
    let sent = trace.packets.iter().filter(|packet| packet.size == 1100 && packet.len > 0);
    let mut fates: Vec<_> = sent.map(|packet| (packet.path, packet.fate)).collect();
    fates.sort_by_key(|(path, _)| *path);
    // Of the second path also the packet with the feedback. Of the first nothing was heard.
    let arrived = (1, Fate::Arrived);
    assert_eq!(fates, [(0, Fate::Unknown), arrived, arrived, (2, Fate::Lost)]);
}

#[test]
fn a_qlog_of_dfcp_tells_what_became_of_its_blocks() {
    let trace = of(dfcp_qlog().as_bytes());
    let [block] = trace.blocks[..] else { panic!("{:?}", trace.blocks) };
    assert_eq!((block.channel, block.block, block.k), (3, 0, 2));
    assert_eq!((block.sent, block.received, block.useless), (5, 4, 2));
    // A round trip takes 40 ms: the receiver said so at 22 ms.
    assert_eq!((block.begun.as_nanos(), block.done.as_nanos()), (0, 22_000_000));
    let data: Vec<_> =
        trace.packets.iter().filter(|packet| packet.len > 0 && packet.size == 1100).collect();
    let fates: Vec<Fate> = data.iter().map(|packet| packet.fate).collect();
    assert_eq!(
        fates[..5],
        [Fate::Lost, Fate::Arrived, Fate::Arrived, Fate::Arrived, Fate::Arrived]
    );
    let is_useless: Vec<bool> =
        data[..5].iter().map(|packet| packet.marks.has(Marks::USELESS)).collect();
    assert_eq!(is_useless, [false, false, false, true, true]);
    let kinds: Vec<Kind> = data[..5].iter().map(|packet| packet.kind).collect();
    assert_eq!(kinds, [Kind::Data, Kind::Data, Kind::Repair, Kind::Repair, Kind::Repair]);
    let delivered = trace.series.iter().find(|series| series.name.ends_with("delivered"));
    let most = delivered.and_then(|series| series.points.last()).map(|(_, bytes)| *bytes);
    assert_eq!(most, Some(2000.0));
}
