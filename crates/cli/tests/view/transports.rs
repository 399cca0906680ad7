//! Transports that this kernel may not have, and link layers: packets made by hand that tshark
//! finds correct, read as it reads them.

use std::fs;
use std::path::Path;
use std::process::Command;

use fontis_trace::{Kind, Trace};
use sha2::{Digest, Sha256};

use crate::packets::{
    End, Form, dccp, frame, pcap, sctp, sctp_data, sctp_init, sctp_sack, tcp, udp, vlan,
};
use crate::tshark::has;
use crate::{ours, text};

/// The fields of every frame that has the first of them, as tshark reads them with every checksum
/// checked.
fn tshark(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    for preference in [
        "ip.check_checksum:TRUE",
        "tcp.check_checksum:TRUE",
        "udp.check_checksum:TRUE",
        "sctp.checksum:CRC-32c",
        "tcp.relative_sequence_numbers:FALSE",
        "sctp.relative_tsns:FALSE",
        "dccp.relative_sequence_numbers:FALSE",
    ] {
        command.args(["-o", preference]);
    }
    command.args(["-n", "-T", "fields", "-E", "occurrence=a", "-E", "separator=|"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.arg("-r").arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let rows = lines.lines().map(|line| line.split('|').map(str::to_owned).collect());
    rows.filter(|row: &Vec<String>| !row[0].is_empty()).collect()
}

fn end(address: &str, port: u16) -> End {
    (address.parse().unwrap(), port)
}

const PLAIN: Form = Form { is_big_endian: false, is_nanos: true };
const BASE: u64 = 1_700_000_000_000_000_000;

/// A millisecond between each frame and the next.
fn timed(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
    (0..).zip(frames).map(|(index, frame)| (BASE + index * 1_000_000, frame)).collect()
}

fn packet(trace: &Trace, number: usize) -> &fontis_trace::TracePacket {
    trace.packets.iter().find(|packet| packet.number == number as u64).unwrap()
}

/// Source, destination and size of every packet, as tshark has them.
fn same_ends(trace: &Trace, path: &Path, ip: &str) {
    let size = if ip == "ip" { "ip.len" } else { "ipv6.plen" };
    let rows = tshark(path, &["frame.number", &format!("{ip}.src"), &format!("{ip}.dst"), size]);
    assert_eq!(rows.len(), trace.packets.len());
    for row in rows {
        let packet = packet(trace, row[0].parse().unwrap());
        let lane = |lane: u16| &*trace.lanes[usize::from(lane)].name;
        assert_eq!((lane(packet.from), lane(packet.to)), (&*row[1], &*row[2]), "{row:?}");
        let header = if ip == "ip" { 0 } else { 40 };
        assert_eq!(packet.size, row[3].parse::<u32>().unwrap() + header, "{row:?}");
    }
}

/// A connection of SCTP: handshake, six chunks of which one is late, in two directions of
/// addresses.
fn association(one: End, two: End) -> Vec<Vec<u8>> {
    let (up, down) = ((one, two), (two, one));
    let (mine, yours, first, other) = (0x1111_2222, 0x3333_4444, 0xffff_fffe, 700);
    vec![
        sctp(up, 0, &[sctp_init(false, mine, first)]),
        sctp(down, mine, &[sctp_init(true, yours, other)]),
        sctp(up, yours, &[vec![10, 0, 0, 8, 1, 2, 3, 4]]),
        sctp(down, mine, &[vec![11, 0, 0, 4]]),
        // The numbers wrap.
        sctp(up, yours, &[sctp_data(first, 1000)]),
        sctp(up, yours, &[sctp_data(0xffff_ffff, 400), sctp_data(0, 401)]),
        sctp(up, yours, &[sctp_data(2, 1000)]),
        sctp(down, mine, &[sctp_sack(0, &[(2, 2)])]),
        sctp(up, yours, &[sctp_data(1, 1000)]),
        sctp(down, mine, &[sctp_sack(2, &[]), sctp_data(other, 100)]),
    ]
}

#[test]
fn sctp_is_read_as_tshark_reads_it() {
    if !has("tshark") {
        return println!("not compared: tshark is not installed (Debian: tshark)");
    }
    let folder = tempfile::tempdir().unwrap();
    for (ip, one, two) in [("ip", "10.0.0.1", "10.0.0.2"), ("ipv6", "2001:db8::1", "2001:db8::2")] {
        let path = folder.path().join(format!("{ip}.pcap"));
        let frames = association(end(one, 5001), end(two, 36_412));
        let link = if ip == "ip" { 228 } else { 229 };
        fs::write(&path, pcap(link, PLAIN, &timed(frames))).unwrap();
        let trace = ours(&path);
        same_ends(&trace, &path, ip);
        let flow = &trace.flows[0];
        assert_eq!((trace.flows.len(), &*flow.protocol, &*flow.unit), (1, "SCTP", "chunks"));
        let rows = tshark(
            &path,
            &[
                "sctp.verification_tag",
                "frame.number",
                "sctp.checksum.status",
                "sctp.data_tsn_raw",
                "sctp.sack_cumulative_tsn_ack_raw",
                "sctp.srcport",
            ],
        );
        assert_eq!(rows.len(), 10);
        for row in &rows {
            assert_eq!(row[2], "1", "the checksum of {row:?}");
            let packet = packet(&trace, row[1].parse().unwrap());
            let tsns: Vec<u32> = row[3].split(',').filter_map(|tsn| tsn.parse().ok()).collect();
            let (base, acked) =
                if row[5] == "5001" { (0xffff_fffe, 700) } else { (700, 0xffff_fffe) };
            if let Some(tsn) = tsns.first() {
                assert_eq!(packet.seq, u64::from(tsn.wrapping_sub(base)), "{row:?}");
                assert_eq!((packet.len as usize, packet.kind), (tsns.len(), Kind::Data), "{row:?}");
            }
            if let Ok(ack) = row[4].parse::<u32>() {
                let next = ack.wrapping_sub(acked).wrapping_add(1);
                assert_eq!(packet.ack, u64::from(next), "{row:?}");
                assert!(matches!(packet.kind, Kind::Ack | Kind::Data));
            }
        }
        assert_eq!(rows.iter().filter(|row| !row[3].is_empty()).count(), 5);
        // Four packets of data one way, one the other.
        assert_eq!(flow.counts.map(|counts| counts.data), [4, 1]);
    }
}

#[test]
fn dccp_is_read_as_tshark_reads_it() {
    if !has("tshark") {
        return println!("not compared: tshark is not installed (Debian: tshark)");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dccp.pcap");
    for (ip, one, two) in [("ip", "10.0.0.1", "10.0.0.2"), ("ipv6", "2001:db8::1", "2001:db8::2")] {
        let (up, down) = ((end(one, 5002), end(two, 6002)), (end(two, 6002), end(one, 5002)));
        let (seq, other) = (0x1234_5678_9abc, 0x0fed_cba9_8765);
        let mut frames = vec![
            dccp(up, 0, seq, None, true, &[]),
            dccp(down, 1, other, Some(seq), true, &[]),
            dccp(up, 3, seq + 1, Some(other), true, &[]),
        ];
        for step in 0..5 {
            frames.push(dccp(up, 4, seq + 2 + step, Some(other + step), true, &[7; 600]));
            frames.push(dccp(down, 3, other + 1 + step, Some(seq + 2 + step), true, &[]));
        }
        frames.push(dccp(up, 2, seq + 7, None, true, &[7; 300]));
        frames.push(dccp(up, 7, seq + 8, Some(other + 5), true, &[]));
        let link = if ip == "ip" { 228 } else { 229 };
        fs::write(&path, pcap(link, PLAIN, &timed(frames))).unwrap();
        compare_dccp(&path, ip, 15, seq, other);
        // Short numbers, in a flow whose beginning was not captured.
        let frames = [
            dccp(up, 2, 0x00ab_cdef, None, false, &[1; 40]),
            dccp(up, 2, 0x00ab_cdf0, None, false, &[1; 40]),
            dccp(down, 3, 0x0012_3456, Some(0x00ab_cdf0), false, &[]),
        ];
        fs::write(&path, pcap(link, PLAIN, &timed(frames))).unwrap();
        compare_dccp(&path, ip, 3, 0x00ab_cdef, 0x0012_3456);
    }
}

fn compare_dccp(path: &Path, ip: &str, count: usize, first: u64, other: u64) {
    let trace = ours(path);
    same_ends(&trace, path, ip);
    assert_eq!(trace.flows[0].protocol, "DCCP");
    let fields = [
        "dccp.type",
        "frame.number",
        "dccp.checksum.status",
        "dccp.seq_raw",
        "dccp.ack_raw",
        "dccp.srcport",
        // Where numbers are short tshark has them under these names only.
        "dccp.seq",
        "dccp.ack",
    ];
    let rows = tshark(path, &fields);
    assert_eq!(rows.len(), count);
    for row in rows {
        assert_eq!(row[2], "1", "the checksum of {row:?}");
        let packet = packet(&trace, row[1].parse().unwrap());
        let number = |raw: usize, short: usize| row[raw].parse().or(row[short].parse::<u64>()).ok();
        let (base, acked) = if row[5] == "5002" { (first, other) } else { (other, first) };
        assert_eq!(packet.seq + base, number(3, 6).unwrap(), "{row:?}");
        if let Some(ack) = number(4, 7) {
            assert_eq!(packet.ack + acked, ack + 1, "{row:?}");
        }
        let expected = match &*row[0] {
            "2" | "4" => Kind::Data,
            "3" => Kind::Ack,
            _ => Kind::Handshake,
        };
        assert_eq!(packet.kind, expected, "{row:?}");
    }
}

/// The beginning of a QUIC packet with a long header of this version and type (RFC 9000 section
/// 17.2), and what else is in it as nobody without the keys can tell it from chance.
fn quic(first: u8, version: u32, id: u8) -> Vec<u8> {
    let mut data = vec![first];
    data.extend(version.to_be_bytes());
    data.push(8);
    data.extend([id; 8]);
    data.extend([0, 0]);
    // The length of the rest: 1180 bytes.
    data.extend([0x44, 0x9c]);
    let mut chance = Sha256::digest([id, first]).to_vec();
    chance.resize(1180, 0x55);
    data.extend(chance);
    data
}

#[test]
fn quic_is_a_flow_of_opaque_datagrams_as_tshark_has_them() {
    if !has("tshark") {
        return println!("not compared: tshark is not installed (Debian: tshark)");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quic.pcap");
    for (ip, one, two) in [("ip", "10.0.0.1", "10.0.0.2"), ("ipv6", "2001:db8::1", "2001:db8::2")] {
        let (up, down) = ((end(one, 5003), end(two, 443)), (end(two, 443), end(one, 5003)));
        let options = ip == "ipv6";
        let mut frames =
            vec![udp(up, &quic(0xc3, 1, 1), options), udp(down, &quic(0xe1, 1, 2), options)];
        for step in 0..6u8 {
            // A short header, and what follows is sealed.
            let mut sealed = vec![0x41 | step];
            sealed.extend(Sha256::digest([step]).repeat(20));
            frames.push(udp(if step % 2 == 0 { up } else { down }, &sealed, options));
        }
        // Another flow, whose first byte is one of QUIC and whose version is nobody's.
        frames.push(udp((end(one, 9), end(two, 10)), &quic(0xc0, 0x1234_5678, 3), options));
        let link = if ip == "ip" { 1 } else { 113 };
        let frames = frames.into_iter().map(|packet| frame(link, &packet));
        fs::write(&path, pcap(link, PLAIN, &timed(frames))).unwrap();
        let trace = ours(&path);
        same_ends(&trace, &path, ip);
        let protocols: Vec<&str> = trace.flows.iter().map(|flow| &*flow.protocol).collect();
        assert_eq!(protocols, ["QUIC", "UDP"]);
        let rows =
            tshark(&path, &["udp.length", "frame.number", "udp.checksum.status", "quic.version"]);
        assert_eq!(rows.len(), 9);
        for row in &rows {
            assert_eq!(row[2], "1", "the checksum of {row:?}");
            let packet = packet(&trace, row[1].parse().unwrap());
            let header = match (ip, options) {
                ("ip", _) => 20,
                (_, true) => 64,
                _ => 40,
            };
            assert_eq!(packet.size, row[0].parse::<u32>().unwrap() + header, "{row:?}");
            let is_long = row[3] == "0x00000001";
            let expected = if is_long { Kind::Handshake } else { Kind::Opaque };
            assert_eq!(packet.kind, expected, "{row:?}");
        }
    }
}

/// The option of Multipath TCP with the connection's numbers (RFC 8684 section 3.3), in its forms
/// of four and eight bytes.
fn sequence(ack: u64, mapping: Option<(u64, u32, u16)>, is_long: bool) -> Vec<u8> {
    let mut option = vec![30, 0, 0x20, 1 | u8::from(is_long) << 1];
    let mut number = |value: u64| {
        option.extend(if is_long {
            value.to_be_bytes().to_vec()
        } else {
            (value as u32).to_be_bytes().to_vec()
        });
    };
    number(ack);
    if let Some((data, ..)) = mapping {
        number(data);
    }
    if let Some((_, subflow, length)) = mapping {
        option[3] |= 4 | u8::from(is_long) << 3;
        option.extend(subflow.to_be_bytes());
        option.extend(length.to_be_bytes());
    }
    option[1] = option.len() as u8;
    option.resize(option.len().next_multiple_of(4), 1);
    option
}

#[test]
fn the_options_of_multipath_tcp_are_read_as_tshark_reads_them() {
    if !has("tshark") {
        return println!("not compared: tshark is not installed (Debian: tshark)");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mptcp.pcap");
    for (ip, hosts) in [
        ("ip", ["10.0.0.1", "10.1.0.1", "10.0.0.2"]),
        ("ipv6", ["2001:db8::1", "2001:db8:1::1", "2001:db8::2"]),
    ] {
        let [one, other, two] = hosts;
        let first = (end(one, 5004), end(two, 80));
        let second = (end(other, 5005), end(two, 80));
        let turn = |(a, b): (End, End)| (b, a);
        let keys = [0x0102_0304_0506_0708u64, 0x1112_1314_1516_1718];
        let of = |key: u64| Sha256::digest(key.to_be_bytes());
        let token = |key: u64| of(key)[..4].to_vec();
        let initial =
            |key: u64| u64::from_be_bytes(of(key)[24..].try_into().unwrap()).wrapping_add(1);
        let capable = |keys: &[u64], length: u8| {
            let mut option = vec![30, length, 0x01, 0x01];
            option.extend(keys.iter().flat_map(|key| key.to_be_bytes()));
            option
        };
        let join = |token: &[u8]| [&[30, 12, 0x10, 1][..], token, &[9, 9, 9, 9]].concat();
        let answer = [&[30, 16, 0x10, 1][..], &[8; 8], &[7; 4]].concat();
        let proof = [&[30, 24, 0x10, 0][..], &[6; 20]].concat();
        let (data, back) = (initial(keys[0]), initial(keys[1]));
        let mut frames = vec![
            tcp(first, (100, 0), 2, &capable(&[], 4), &[]),
            tcp(turn(first), (900, 101), 0x12, &capable(&keys[1..], 12), &[]),
            tcp(first, (101, 901), 0x10, &capable(&keys, 20), &[]),
        ];
        for step in 0..4u32 {
            let long = step % 2 == 1;
            let at = 101 + step * 1000;
            let mapping = (data + u64::from(step) * 1000, 1 + step * 1000, 1000);
            frames.push(tcp(
                first,
                (at, 901),
                0x18,
                &sequence(back, Some(mapping), long),
                &[1; 1000],
            ));
            let acked = data + u64::from(step + 1) * 1000;
            frames.push(tcp(
                turn(first),
                (901, at + 1000),
                0x10,
                &sequence(acked, None, long),
                &[],
            ));
        }
        frames.extend([
            tcp(second, (5000, 0), 2, &join(&token(keys[1])), &[]),
            tcp(turn(second), (7000, 5001), 0x12, &answer, &[]),
            tcp(second, (5001, 7001), 0x10, &proof, &[]),
        ]);
        for step in 0..3u32 {
            let mapping = (data + 4000 + u64::from(step) * 500, 1 + step * 500, 500);
            let at = (5001 + step * 500, 7001);
            frames.push(tcp(second, at, 0x18, &sequence(back, Some(mapping), true), &[2; 500]));
        }
        let link = if ip == "ip" { 101 } else { 276 };
        let frames = frames.into_iter().map(|packet| frame(link, &packet));
        fs::write(&path, pcap(link, PLAIN, &timed(frames))).unwrap();
        let trace = ours(&path);
        same_ends(&trace, &path, ip);
        let flow = &trace.flows[0];
        assert_eq!((trace.flows.len(), &*flow.protocol), (1, "MPTCP"), "{:?}", trace.flows);
        assert_eq!(flow.paths, [format!("{one} – {two}"), format!("{other} – {two}")]);
        let rows = tshark(
            &path,
            &[
                "tcp.options.mptcp.subtype",
                "frame.number",
                "tcp.checksum.status",
                "tcp.len",
                "tcp.options.mptcp.rawdataseqno",
                "tcp.options.mptcp.rawdataack",
                "tcp.srcport",
            ],
        );
        assert_eq!(rows.len(), 17);
        let mut seen = 0;
        for row in &rows {
            assert_eq!(row[2], "1", "the checksum of {row:?}");
            let packet = packet(&trace, row[1].parse().unwrap());
            let is_second = matches!(row[1].parse(), Ok(12..=17));
            assert_eq!(packet.path, u8::from(is_second), "{row:?}");
            if let Ok(number) = row[4].parse::<u64>() {
                // Those of four bytes lack the upper half.
                assert_eq!(packet.seq as u32, (number as u32).wrapping_sub(data as u32), "{row:?}");
                assert_eq!(packet.len, row[3].parse::<u32>().unwrap(), "{row:?}");
                seen += 1;
            }
            if let Ok(ack) = row[5].parse::<u64>()
                && row[6] == "80"
            {
                assert_eq!(packet.ack as u32, (ack as u32).wrapping_sub(data as u32), "{row:?}");
            }
        }
        assert_eq!(seen, 7);
        assert_eq!((flow.counts[0].retransmitted, flow.counts[0].data), (0, 7));
    }
}

/// An IPv6 packet and an IPv4 one of the same flow's ports, in every link layer and form of file
/// that is read.
#[test]
fn every_link_layer_and_form_of_file_is_read_as_tshark_reads_it() {
    if !has("tshark") || !has("editcap") {
        return println!("not compared: tshark or editcap is not installed (Debian: tshark)");
    }
    let folder = tempfile::tempdir().unwrap();
    let four = (end("10.0.0.1", 5), end("10.0.0.2", 6));
    let six = (end("fe80::1", 5), end("fe80::2", 6));
    let data = |step: u32, pair| tcp(pair, (1000 + step * 100, 1), 0x18, &[], &[3; 100]);
    let packets: Vec<Vec<u8>> =
        (0..6).map(|step| data(step, if step < 3 { four } else { six })).collect();
    let tags: [&[(u16, u16)]; 3] = [&[(0x8100, 7)], &[(0x88a8, 8), (0x8100, 9)], &[]];
    let tagged = packets.iter().zip(tags.iter().cycle()).map(|(packet, tags)| vlan(tags, packet));
    let mut cases = vec![("vlan".to_owned(), 1, tagged.collect::<Vec<_>>())];
    for link in [0, 1, 101, 108, 113, 276] {
        let frames = packets.iter().map(|packet| frame(link, packet)).collect();
        cases.push((format!("link {link}"), link, frames));
    }
    cases.push(("link 228".to_owned(), 228, packets[..3].to_vec()));
    cases.push(("link 229".to_owned(), 229, packets[3..].to_vec()));
    for (name, link, frames) in cases {
        for (is_big_endian, is_nanos) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let form = Form { is_big_endian, is_nanos };
            let path = folder.path().join("some.pcap");
            fs::write(&path, pcap(link, form, &timed(frames.clone()))).unwrap();
            let other = folder.path().join("some.pcapng");
            let made =
                Command::new("editcap").args(["-F", "pcapng"]).arg(&path).arg(&other).output();
            assert!(made.unwrap().status.success());
            for path in [&path, &other] {
                let trace = ours(path);
                let fields = ["tcp.seq_raw", "frame.number", "ip.src", "ipv6.src", "tcp.len"];
                let rows = tshark(
                    path,
                    &[&fields[..], &["frame.time_epoch", "tcp.checksum.status"]].concat(),
                );
                assert_eq!(
                    (rows.len(), trace.packets.len()),
                    (frames.len(), frames.len()),
                    "{name}"
                );
                let mut first = None;
                for row in rows {
                    let packet = packet(&trace, row[1].parse().unwrap());
                    let source = &trace.lanes[usize::from(packet.from)].name;
                    assert_eq!(*source, format!("{}{}", row[2], row[3]), "{name} {form:?}");
                    assert_eq!((packet.len.to_string(), &*row[6]), (row[4].clone(), "1"), "{name}");
                    let seq: u64 = row[0].parse().unwrap();
                    // The second flow's base is its own first number.
                    let base = if row[2].is_empty() { 1300 } else { 1000 };
                    assert_eq!(packet.seq + base, seq, "{name} {form:?}");
                    let at: f64 = row[5].parse().unwrap();
                    let since = at - *first.get_or_insert(at);
                    let ours = packet.sent.as_nanos() as f64 / 1e9;
                    assert!((ours - since).abs() < 2e-6, "{name} {form:?}: {ours} {since}");
                }
            }
        }
    }
    // What is not known is said.
    let path = folder.path().join("unknown.pcap");
    fs::write(&path, pcap(147, PLAIN, &timed(packets))).unwrap();
    let (code, said) = crate::refused(&["view", text(&path)]);
    assert!(code == 1 && said.contains("link layer is of type 147"), "{said}");
}
