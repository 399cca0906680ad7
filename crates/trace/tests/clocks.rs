//! Captures of both ends, of clocks that differ and drift.

use std::io::Cursor;

use fontis_base::Stream;
use fontis_trace::{Detail, Fate, Trace, capture};

use crate::files::frame;

const BASE: u64 = 1_700_000_000_000_000_000;
/// Nanoseconds that the fastest packet takes.
const WAY: u64 = 10_000_000;
const MILLI: u64 = 1_000_000;

/// A segment and its acknowledgement every 20 ms for a minute; `queue` says how long a segment
/// waits that leaves at this time. The second clock is ahead by `ahead` ns in the beginning and
/// gains `drift`.
fn captured(ahead: u64, drift: f64, queue: impl Fn(u64, u64) -> u64, acks: bool) -> Trace {
    let mut stream = Stream::new(9, "clocks");
    let mut seen: [Vec<(u64, Vec<u8>)>; 2] = [Vec::new(), Vec::new()];
    let there = |at: u64| (BASE + ahead + at).saturating_add_signed((at as f64 * drift) as i64);
    let mut see = |side: usize, at: u64, back: bool, seq: u32, ack: u32, len: u16| {
        let clock = if side == 0 { BASE + at } else { there(at) };
        seen[side].push((clock, frame(clock, back, seq, ack, len, 0x18)));
    };
    for step in 0..3000u32 {
        let at = 1_000_000_000 + u64::from(step) * 20 * MILLI;
        let noise = stream.below(2 * MILLI);
        let arrives = at + WAY + queue(at, noise);
        let (seq, next) = (101 + step * 100, 201 + step * 100);
        see(0, at, false, seq, 901, 100);
        see(1, arrives, false, seq, 901, 100);
        if acks {
            see(1, arrives + 1000, true, 901, next, 0);
            see(0, arrives + 1000 + WAY + stream.below(MILLI), true, 901, next, 0);
        }
    }
    let files = seen.map(|mut frames| {
        frames.sort();
        let head = [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
        frames.into_iter().fold(head, |mut file, (_, frame)| {
            file.extend(frame);
            file
        })
    });
    let [here, there] = files.map(Cursor::new);
    capture::read_both(here, there, "both", Detail::default()).expect("captures")
}

/// The shortest way in milliseconds of each direction, in the first and in the last tenth of the
/// packets.
fn shortest(trace: &Trace) -> [[f64; 2]; 2] {
    let tenth = trace.packets.len() / 10;
    let parts = [&trace.packets[..tenth], &trace.packets[trace.packets.len() - tenth..]];
    parts.map(|packets| {
        [0, 1].map(|from| {
            let arrived = packets.iter().filter(|p| p.fate == Fate::Arrived && p.from == from);
            let ways =
                arrived.map(|p| (p.ended.as_nanos() as f64 - p.sent.as_nanos() as f64) / 1e6);
            ways.fold(f64::INFINITY, f64::min)
        })
    })
}

#[test]
fn a_drift_between_the_clocks_is_taken_off() {
    for drift in [50e-6, -120e-6, 0.0] {
        let trace = captured(3_000_000_000, drift, |_, noise| noise, true);
        assert_eq!(trace.total, 6000);
        for ways in shortest(&trace).as_flattened() {
            assert!((ways - 10.0).abs() < 0.1, "{drift}: {ways} ms");
        }
        let note = trace.notes.iter().find(|note| note.contains("second clock")).expect("a note");
        let said = note.contains("ppm");
        if drift != 0.0 {
            let ppm: f64 = note
                .split(" ppm")
                .next()
                .and_then(|text| text.rsplit(' ').next())
                .expect("it")
                .parse()
                .expect("a number");
            assert!(said && (ppm - drift.abs() * 1e6).abs() < 3.0, "{drift}: {note}");
            assert_eq!(note.contains("runs fast"), drift > 0.0, "{note}");
        }
    }
}

#[test]
fn a_queue_that_grows_is_no_drift() {
    // Three milliseconds in a minute: what a clock would gain at 50 ppm.
    let grows = |at: u64, noise: u64| noise + at / 20_000;
    let trace = captured(0, 0.0, grows, true);
    let [first, last] = shortest(&trace);
    assert!((first[0] - 10.0).abs() < 0.5 && (last[0] - 13.0).abs() < 0.5, "{first:?} {last:?}");
    assert!((first[1] - 10.0).abs() < 0.2 && (last[1] - 10.0).abs() < 0.2, "{first:?} {last:?}");
}

#[test]
fn a_drift_shows_in_one_direction_too() {
    let trace = captured(1_000_000, 80e-6, |_, noise| noise, false);
    // Nobody knows how long the fastest packet took.
    let [first, last] = shortest(&trace);
    assert!(first[0].abs() < 0.1 && last[0].abs() < 0.1, "{first:?} {last:?}");
}
