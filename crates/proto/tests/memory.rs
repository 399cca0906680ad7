//! How much memory connections hold for peers that have proved nothing, and for peers that are
//! hostile after the handshake, counted by the allocator for each thread.

#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use fontis_base::{Duration, Ecn, Rate, Time};
use fontis_codes::Code;
use fontis_proto::dfcp::{
    BlockStatus, ConnectionId, DfcpConfig, DfcpConnection, DfcpEvent, DfcpPacket, Feedback, Frame,
    Hello, Live, LiveKind, MemoryBudget, ObjectShape, Open, ParamFields, Params, SendOptions,
    SymbolsFrame, VERSION,
};
use fontis_proto::rate::RateKind;

/// Counts the bytes that are allocated.
struct Counting;

thread_local! {
    /// The bytes that this thread has allocated, without those that it has freed. A test runs on a
    /// thread of its own. What another test's thread frees as it ends, its caches, is not counted.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

fn allocated() -> usize {
    ALLOCATED.get()
}

// SAFETY: every call is the system allocator's, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(allocated().wrapping_add(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.set(allocated().wrapping_sub(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// SYNs that a responder takes without a cookie.
const SYNS: usize = 512;

/// The symbols of a message that cost a responder most: the last of a long block, and more of them
/// for other channels, as many as fit into a SYN.
fn hostile(frames: u32) -> Hello {
    let block_len = 4 << 20;
    let last = (block_len - 1) / 1192;
    let len = (block_len - last * 1192) as u16;
    let frame = |number: u32| {
        let live = Live { kind: LiveKind::Message, block_len, fin: true };
        Frame::Symbols(SymbolsFrame {
            channel: 2 * number,
            block: 0,
            esi: last,
            count: 1,
            live: Some(live),
            whole: false,
            long: false,
            len,
            data: vec![1; usize::from(len)].into(),
        })
    };
    Hello { params: Params::default(), frames: (0..frames).map(frame).collect() }
}

/// The bytes that responders hold for this many copies of a SYN, once they have answered.
fn held(hello: &Hello) -> usize {
    let mut servers = Vec::with_capacity(SYNS);
    let start = Time::ZERO;
    let before = allocated();
    for number in 0..SYNS {
        let (local, remote) = (ConnectionId([2; 8]), ConnectionId((number as u64).to_be_bytes()));
        let config = DfcpConfig::default();
        let mut server =
            Box::new(DfcpConnection::accept(start, config, local, remote, VERSION, hello, 1228));
        for ms in 0..400 {
            let now = start + Duration::from_millis(ms);
            while server.poll(now).is_some() {}
            while server.event().is_some() {}
        }
        servers.push(server);
    }
    allocated() - before
}

#[test]
fn unconfirmed_syns_hold_nothing_but_their_connections() {
    let plain = held(&Hello { params: Params::default(), frames: Vec::new() });
    for frames in [1, 6] {
        let hostile = held(&hostile(frames));
        println!("{SYNS} SYNs: {plain} bytes without messages, {hostile} with {frames} hostile");
        assert!(hostile <= plain + 16 * SYNS, "{hostile} bytes, {plain} without messages");
    }
    // The connection, its path, and what it keeps of the peer's parameters and its own.
    let each = size_of::<DfcpConnection>() + 2500;
    assert!(plain <= each * SYNS, "{plain} bytes, more than {each} each");
    let early = Hello {
        params: Params::default(),
        frames: vec![Frame::Symbols(SymbolsFrame {
            channel: 0,
            block: 0,
            esi: 0,
            count: 1,
            live: Some(Live { kind: LiveKind::Message, block_len: 900, fin: true }),
            whole: false,
            long: false,
            len: 900,
            data: Bytes::from(vec![1; 900]),
        })],
    };
    let early = held(&early);
    println!("{early} bytes with early messages that have been delivered");
    assert!(early <= plain + 4000 * SYNS, "{early} bytes, {plain} without messages");
}

/// What a connection with these parameters may hold for its peer.
const BUDGET: usize = 64 << 20;
/// The longest message that it takes.
const LONGEST: u32 = 8 << 20;

/// A connection whose peer is hostile.
struct Victim {
    connection: DfcpConnection,
    now: Time,
    number: u64,
    /// The number of its last packet.
    sent: u64,
    before: usize,
    most: usize,
}

impl Victim {
    fn new(config: DfcpConfig) -> Self {
        let before = allocated();
        let fields = ParamFields { window: 1 << 20, max_block: 64 << 10, ..ParamFields::default() };
        let params = Params::new(fields).unwrap();
        let config = DfcpConfig { params, longest_message: LONGEST, ..config };
        let hello = Hello { params: Params::default(), frames: Vec::new() };
        let (local, remote) = (ConnectionId([2; 8]), ConnectionId([1; 8]));
        let now = Time::ZERO;
        let connection = DfcpConnection::accept(now, config, local, remote, VERSION, &hello, 1228);
        let mut victim = Self { connection, now, number: 0, sent: 0, before, most: 0 };
        victim.take(Frame::Confirm);
        assert!(victim.connection.is_established());
        victim
    }

    /// Takes a packet with this frame, and does what a driver does.
    fn take(&mut self, frame: Frame) -> Vec<DfcpEvent> {
        let packet = DfcpPacket::Sealed {
            destination: ConnectionId([2; 8]),
            path: 0,
            number: self.number,
            frames: [frame].into_iter().collect(),
        };
        self.number += 1;
        self.connection.handle(self.now, packet, 1280, Ecn::NotEct);
        if self.number.is_multiple_of(100) {
            self.now += Duration::from_millis(1);
        }
        while let Some(outgoing) = self.connection.poll(self.now) {
            if let DfcpPacket::Sealed { number, .. } = outgoing.packet {
                self.sent = number;
            }
        }
        while let Some(job) = self.connection.job() {
            self.connection.job_done(self.now, job.run());
        }
        let events = core::iter::from_fn(|| self.connection.event()).collect();
        let held = allocated().saturating_sub(self.before);
        self.most = self.most.max(held);
        events
    }

    /// Takes a message's symbol, the `esi`-th of its `block`-th block.
    fn symbol(
        &mut self,
        channel: u32,
        kind: LiveKind,
        block: u32,
        (block_len, fin): (u32, bool),
        esi: u32,
    ) -> Vec<DfcpEvent> {
        let size = block_len.next_multiple_of(8).clamp(8, 1192);
        let len = size.min(block_len - esi * size) as u16;
        let live = Some(Live { kind, block_len, fin });
        let data = vec![1; usize::from(len)].into();
        let (count, whole, long) = (1, false, false);
        self.take(Frame::Symbols(SymbolsFrame {
            channel,
            block,
            esi,
            count,
            live,
            whole,
            long,
            len,
            data,
        }))
    }

    /// Says after every hundredth message that the victim's packets have come, so that it does not
    /// wait for that.
    fn acknowledge(&mut self, number: u32) {
        if number.is_multiple_of(100) {
            self.take(acknowledgement(self.sent));
        }
    }

    fn open(&mut self, channel: u32, block_size: u32) {
        let object = ObjectShape { size: 1 << 31, block_size, symbol_size: 64, code: 1 };
        let label = Bytes::from_static(b"object");
        self.take(Frame::Open(Box::new(Open { channel, object, label })));
    }
}

#[test]
fn a_hostile_peer_makes_a_connection_hold_no_more_than_its_budget() {
    let most = BUDGET + 3 * LONGEST as usize + (8 << 20);
    let rate = RateKind::Fixed(Rate::from_mbps(10_000));
    let config = || DfcpConfig { holds_messages: true, rate, ..DfcpConfig::default() };
    let check = |what: &str, victim: Victim| {
        println!("{what}: {} bytes at most", victim.most);
        assert!(victim.most <= most, "{what}: {} bytes, not {most}", victim.most);
        drop(victim);
    };

    let mut victim = Victim::new(config());
    for block in 0..300_000 {
        victim.symbol(0, LiveKind::Message, block, (1192, false), 0);
    }
    check("a message without an end", victim);

    let mut victim = Victim::new(config());
    victim.open(0, 2);
    for block in 0..300_000 {
        let data = Bytes::from_static(&[1, 1]);
        let (channel, esi, count, len) = (0, 0, 1, 2);
        let (live, whole, long) = (None, false, false);
        victim.take(Frame::Symbols(SymbolsFrame {
            channel,
            block,
            esi,
            count,
            live,
            whole,
            long,
            len,
            data,
        }));
    }
    check("an object with blocks of two bytes", victim);

    let mut victim = Victim::new(config());
    for round in 0..20 {
        for channel in 0..1000 {
            for block in 0..2 {
                let live = (64 << 10, block == 1);
                victim.symbol(2 * channel, LiveKind::Message, block, live, round);
            }
        }
    }
    check("a thousand messages that are begun", victim);

    let mut victim = Victim::new(config());
    for sequence in 1..100_000 {
        let kind = LiveKind::Ordered { sequence };
        victim.symbol(2 * sequence, kind, 0, (1192, true), 0);
        victim.acknowledge(sequence);
    }
    check("ordered messages without the first", victim);

    let (mut victim, mut taken) = (Victim::new(config()), Vec::new());
    for number in 0..300_000 {
        taken.extend(victim.symbol(2 * number, LiveKind::Message, 0, (1, true), 0));
        victim.acknowledge(number);
    }
    check("messages that the application does not take", victim);
}

/// Feedback that says that all packets up to `largest` have come.
fn acknowledgement(largest: u64) -> Frame {
    let runs = [u32::try_from(largest + 1).unwrap_or(u32::MAX).min(8000)].into_iter().collect();
    let packets = largest + 1;
    let received_at_us = 1000 + largest * 10;
    Frame::Feedback(Box::new(Feedback {
        largest,
        received_at_us,
        packets,
        bytes: packets * 1280,
        runs,
        ..Feedback::default()
    }))
}

#[test]
fn a_sender_keeps_no_more_blocks_than_its_budget_for_a_peer_that_never_has_them() {
    let rate = RateKind::Fixed(Rate::from_mbps(10_000));
    let mut victim = Victim::new(DfcpConfig { rate, ..DfcpConfig::default() });
    let shape = ObjectShape::partition(1 << 30, 1192, Code::RaptorQ);
    let connection = &mut victim.connection;
    let now = victim.now;
    let options = SendOptions::default();
    let channel = connection.send_object(now, shape, Bytes::new(), options).unwrap();
    let mut given = 0;
    for sequence in 1..=2000 {
        victim.now += Duration::from_micros(500);
        let all = BlockStatus { channel, sequence, floor: 0, limit: u32::MAX, blocks: Vec::new() };
        let mut events = victim.take(Frame::Blocks(Box::new(all)));
        events.extend(victim.take(acknowledgement(victim.sent)));
        for event in events {
            if let DfcpEvent::BlockWanted { block, .. } = event {
                given += 1;
                let data = vec![7; shape.block_len(block) as usize];
                victim.connection.supply_block(channel, block, data.into());
            }
        }
    }
    println!("{given} blocks of 1 MiB supplied: {} bytes at most", victim.most);
    assert!(given > 20, "{given} blocks");
    assert!(victim.most <= BUDGET + (16 << 20), "{} bytes", victim.most);
}

#[test]
fn connections_of_an_endpoint_hold_no_more_than_its_budget_together() {
    let budget = MemoryBudget::new(100 << 20);
    let config = DfcpConfig { budget: Some(budget.clone()), ..DfcpConfig::default() };
    let before = allocated();
    let mut victims: Vec<_> = (0..8).map(|_| Victim::new(config.clone())).collect();
    for victim in &mut victims {
        for channel in 0..700 {
            victim.symbol(2 * channel, LiveKind::Message, 0, (64 << 10, true), 0);
        }
    }
    let held = allocated() - before;
    println!("{held} bytes for eight connections, {} charged", budget.used());
    assert!(budget.used() <= 100 << 20 && held <= 110 << 20, "{held} bytes");
    drop(victims);
    assert_eq!(budget.used(), 0, "all is given back");
}
