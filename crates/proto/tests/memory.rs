//! How much memory connections hold for peers that have proved nothing, counted by the allocator.

#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use fontis_base::{Duration, Time};
use fontis_proto::dfcp::{
    ConnectionId, DfcpConfig, DfcpConnection, Frame, Hello, Live, LiveKind, Params, SymbolsFrame,
    VERSION,
};

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is the system allocator's, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
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
    let before = ALLOCATED.load(Ordering::Relaxed);
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
    ALLOCATED.load(Ordering::Relaxed) - before
}

#[test]
fn unconfirmed_syns_hold_nothing_but_their_connections() {
    let plain = held(&Hello { params: Params::default(), frames: Vec::new() });
    for frames in [1, 6] {
        let hostile = held(&hostile(frames));
        println!("{SYNS} SYNs: {plain} bytes without messages, {hostile} with {frames} hostile");
        assert!(hostile <= plain + 16 * SYNS, "{hostile} bytes, {plain} without messages");
    }
    // The connection, and what it keeps of the peer's parameters and its own.
    let each = size_of::<DfcpConnection>() + 1200;
    assert!(plain <= each * SYNS, "{plain} bytes");
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
