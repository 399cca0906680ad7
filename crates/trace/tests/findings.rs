//! Traces that contain exactly one fault: it is found, with its place, and nothing else is.

use fontis_base::{Duration, Time};
use fontis_trace::{
    BlockReport, Builder, ChannelStatus, Detail, Kind, LaneKind, Marks, PacketHeader, SymbolRange,
    Trace, TracePacket,
};

const WAY: u64 = 20;

/// A connection of TCP between two hosts, with a way of 20 ms; times are milliseconds.
struct Talk {
    builder: Builder,
    flow: u16,
    number: u64,
}

impl Talk {
    fn new() -> Self {
        let mut builder = Builder::new("built", Time::ZERO, Detail::default());
        builder.lane("sender", LaneKind::Host);
        builder.lane("receiver", LaneKind::Host);
        let flow = builder.flow("flow", "TCP", "bytes");
        Self { builder, flow, number: 0 }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn send(
        &mut self,
        at: u64,
        path: u8,
        header: PacketHeader,
        back: bool,
    ) -> fontis_trace::Handle {
        self.number += 1;
        let (from, to) = if back { (1, 0) } else { (0, 1) };
        let mut packet = TracePacket::sent(self.number, Self::at(at), from, to, header.len + 40);
        packet.flow = self.flow;
        packet.path = path;
        self.builder.sent(Self::at(at), packet, header, back, false)
    }

    /// Data leaves and, if `takes` says when, arrives.
    fn data(&mut self, at: u64, path: u8, seq: u64, takes: Option<u64>) {
        let header = PacketHeader {
            kind: Kind::Data,
            seq: Some(seq),
            len: 1000,
            bits: 32,
            ..PacketHeader::default()
        };
        let handle = self.send(at, path, header, false);
        match takes {
            Some(millis) => self.builder.arrived(handle, Self::at(at + millis)),
            None => self.builder.lost(handle, Some(1), Some(Self::at(at + 1))),
        }
    }

    /// An acknowledgement leaves, and arrives after the way.
    fn ack(&mut self, at: u64, ack: u64, window: u32) {
        let header = PacketHeader {
            kind: Kind::Ack,
            ack: Some(ack),
            window: Some(window),
            window_is_whole: true,
            bits: 32,
            ..PacketHeader::default()
        };
        let handle = self.send(at, 0, header, true);
        self.builder.arrived(handle, Self::at(at + WAY));
    }

    fn texts(self) -> (Trace, Vec<String>) {
        let trace = self.builder.finish();
        let texts = trace.findings.iter().map(|finding| finding.text.clone()).collect();
        (trace, texts)
    }
}

/// A segment and its acknowledgement every 10 ms, in the order of time.
fn smooth(talk: &mut Talk, from: u64, until: u64, window: u32) {
    for step in from..until {
        talk.data(step * 50, 0, step * 1000, Some(WAY));
        talk.ack(step * 50 + WAY, (step + 1) * 1000, window);
    }
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let mut talk = Talk::new();
    smooth(&mut talk, 0, 100, 1 << 20);
    assert_eq!(talk.texts().1, Vec::<String>::new());
}

#[test]
fn a_window_that_limits_is_found_where_it_does() {
    let mut talk = Talk::new();
    smooth(&mut talk, 0, 20, 4000);
    // From 1.0 s to 3.0 s the window of four segments is always full.
    let mut seq = 20_000;
    for round in 0..40 {
        let at = 1000 + round * 50;
        for _ in 0..4 {
            talk.data(at, 0, seq, Some(WAY));
            seq += 1000;
        }
        talk.ack(at + WAY, seq, 4000);
    }
    for step in 0..40 {
        talk.data(3000 + step * 50, 0, seq, Some(WAY));
        seq += 1000;
        talk.ack(3000 + step * 50 + WAY, seq, 4000);
    }
    let (trace, texts) = talk.texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].starts_with("flow: window-limited from 1.0 s to 3.0 s"), "{texts:?}");
    let finding = &trace.findings[0];
    assert_eq!(finding.from, Talk::at(1000));
    assert!(finding.until.since(Talk::at(2900)) <= Duration::from_millis(150));
}

#[test]
fn a_closed_window_is_found() {
    let mut talk = Talk::new();
    smooth(&mut talk, 0, 20, 1 << 20);
    talk.ack(1000, 20_000, 0);
    talk.ack(2000, 20_000, 1 << 20);
    smooth(&mut talk, 42, 60, 1 << 20);
    let (_, texts) = talk.texts();
    assert!(
        texts.iter().any(|t| t == "flow: the receiver's window was closed from 1.0 s to 2.0 s"),
        "{texts:?}"
    );
}

#[test]
fn spurious_retransmissions_are_counted() {
    let mut talk = Talk::new();
    for step in 0..100 {
        talk.data(step * 50, 0, step * 1000, Some(WAY));
        if step % 20 == 3 {
            // Its acknowledgement was on the way when it was sent again.
            talk.data(step * 50 + 30, 0, step * 1000, Some(WAY));
        }
        talk.ack(step * 50 + WAY, (step + 1) * 1000, 1 << 20);
    }
    let (trace, texts) = talk.texts();
    assert_eq!(texts, ["flow: spurious retransmissions: 5 of 5"]);
    assert_eq!(trace.packets.iter().filter(|p| p.marks.has(Marks::SPURIOUS)).count(), 5);
    assert_eq!(trace.findings[0].marks, Marks::SPURIOUS);
}

#[test]
fn needed_retransmissions_are_not_spurious() {
    let mut talk = Talk::new();
    smooth(&mut talk, 0, 50, 1 << 20);
    talk.data(2500, 0, 50_000, None);
    talk.data(2560, 0, 50_000, Some(WAY));
    talk.ack(2580, 51_000, 1 << 20);
    smooth(&mut talk, 53, 100, 1 << 20);
    let (_, texts) = talk.texts();
    assert_eq!(
        texts,
        ["flow: 1.0 % of packets were lost (1 of 99), all of them at receiver"],
        "{texts:?}"
    );
}

#[test]
fn a_wait_for_the_retransmission_timer_is_found() {
    let mut talk = Talk::new();
    smooth(&mut talk, 0, 20, 1 << 20);
    talk.data(1000, 0, 20_000, None);
    talk.data(2200, 0, 20_000, Some(WAY));
    talk.ack(2220, 21_000, 1 << 20);
    let (trace, texts) = talk.texts();
    let text = "flow: nothing was sent for 1.2 s from 1.0 s on: the sender waited for its retransmission timer";
    assert_eq!(texts[0], text);
    assert_eq!((trace.findings[0].from, trace.findings[0].until), (Talk::at(1000), Talk::at(2200)));
}

#[test]
fn a_receiver_blocked_by_a_slow_path_is_found_with_the_path() {
    let mut talk = Talk::new();
    assert_eq!(talk.builder.path(talk.flow, "fast"), 0);
    assert_eq!(talk.builder.path(talk.flow, "slow"), 1);
    // Every round the first segment takes the slow path, and three others wait for it from 21 to 60
    // ms.
    let mut arrivals = Vec::new();
    for round in 0..50u64 {
        for part in 0..4u64 {
            let (path, takes) = if part == 0 { (1, 60) } else { (0, WAY) };
            arrivals.push((round * 100 + part, path, round * 4000 + part * 1000, takes));
        }
    }
    let mut events: Vec<(u64, usize, bool)> = Vec::new();
    for (index, (at, _, _, takes)) in arrivals.iter().enumerate() {
        events.push((*at, index, true));
        events.push((at + takes, index, false));
    }
    events.sort_unstable();
    let mut handles = vec![None; arrivals.len()];
    for (at, index, leaves) in events {
        let (_, path, seq, _) = arrivals[index];
        if leaves {
            let header = PacketHeader {
                kind: Kind::Data,
                seq: Some(seq),
                len: 1000,
                bits: 32,
                ..PacketHeader::default()
            };
            handles[index] = Some(talk.send(at, path, header, false));
        } else if let Some(handle) = handles[index] {
            talk.builder.arrived(handle, Talk::at(at));
        }
    }
    let (_, texts) = talk.texts();
    // 39 of every 100 ms; the last round ends earlier.
    assert_eq!(texts, ["flow: receiver blocked 39 % of the time by path 2 (slow)"]);
}

#[test]
fn standing_queues_are_found() {
    let mut talk = Talk::new();
    for step in 0..100u64 {
        talk.data(step * 200, 0, step * 1000, Some(if step < 10 { WAY } else { 5 * WAY }));
        let takes = if step < 10 { WAY } else { 5 * WAY };
        talk.ack(step * 200 + takes, (step + 1) * 1000, 1 << 20);
    }
    let (_, texts) = talk.texts();
    assert_eq!(
        texts,
        ["flow: round trips took 112.0 ms in the mean, 2.8 times the shortest: queues stand"]
    );
}

#[test]
fn reordering_and_marks_are_counted() {
    let mut talk = Talk::new();
    for step in 0..100u64 {
        let header = PacketHeader {
            kind: Kind::Data,
            seq: Some(step),
            len: 1,
            bits: 64,
            marks: if step % 10 == 0 { Marks::CONGESTION } else { Marks(0) },
            ..PacketHeader::default()
        };
        let first = talk.send(step * 10, 0, header.clone(), false);
        if step % 25 == 0 {
            let second = talk.send(
                step * 10 + 1,
                0,
                PacketHeader { seq: Some(1000 + step), marks: Marks(0), ..header },
                false,
            );
            talk.builder.arrived(second, Talk::at(step * 10 + 2));
        }
        talk.builder.arrived(first, Talk::at(step * 10 + 5));
    }
    let (_, texts) = talk.texts();
    let expected = [
        "flow: 9.6 % of packets were marked: congestion experienced",
        "flow: 3.8 % of packets arrived after one sent later (4)",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn useless_symbols_are_found() {
    let mut builder = Builder::new("built", Time::ZERO, Detail::default());
    builder.lane("sender", LaneKind::Host);
    builder.lane("receiver", LaneKind::Host);
    let flow = builder.flow("flow", "DFCP", "symbols");
    let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
    // Ten blocks of 25 symbols; of each one more arrives after the receiver said that enough were
    // there.
    let mut under_way = Vec::new();
    for block in 0..10u32 {
        for esi in 0..26u32 {
            let begin = u64::from(block) * 100 + u64::from(esi);
            let mut packet = TracePacket::sent(1, at(begin), 0, 1, 1000);
            packet.flow = flow;
            let symbols =
                vec![SymbolRange { channel: 0, block, esi, count: 1, k: Some(25), size: None }];
            let blocks = BlockReport { symbols, ..BlockReport::default() };
            let header = PacketHeader { kind: Kind::Data, blocks, ..PacketHeader::default() };
            under_way.push(builder.sent(at(begin), packet, header, false, false));
        }
        let all = std::mem::take(&mut under_way);
        for (esi, handle) in (0..).zip(all) {
            let arrives = u64::from(block) * 100 + 30 + esi;
            if esi == 25 {
                let mut packet = TracePacket::sent(2, at(arrives - 1), 1, 0, 60);
                packet.flow = flow;
                let blocks = BlockReport {
                    status: vec![ChannelStatus { channel: 0, floor: 0, needs: vec![(block, 0)] }],
                    ..BlockReport::default()
                };
                let header = PacketHeader { kind: Kind::Ack, blocks, ..PacketHeader::default() };
                let ack = builder.sent(at(arrives - 1), packet, header, true, false);
                builder.arrived(ack, at(arrives + 19));
            }
            builder.arrived(handle, at(arrives));
        }
    }
    let trace = builder.finish();
    let texts: Vec<&str> = trace.findings.iter().map(|finding| &*finding.text).collect();
    assert_eq!(
        texts,
        ["flow: 3.8 % of symbols were useless (10 of 260): their block was complete"]
    );
    assert_eq!(trace.findings[0].marks, Marks::USELESS);
    assert_eq!(trace.packets.iter().filter(|p| p.marks.has(Marks::USELESS)).count(), 10);
    assert_eq!(trace.packets.iter().filter(|p| p.marks.has(Marks::REDUNDANT)).count(), 10);
}
