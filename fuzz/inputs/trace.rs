//! Files that `fontis view` and `fontis estimate` are given: traces of ours, pcap, pcapng, qlog,
//! and traces of ns-2.

use std::io::Cursor;

use fontis_trace::read::{Format, read};
use fontis_trace::{Detail, Trace, capture, figure, stream};

const DETAIL: Detail =
    Detail { most: 500, from: fontis_base::Duration::ZERO, until: fontis_base::Duration::MAX };

/// Whatever is read can be written, read again and drawn; whatever is not is refused in one line.
pub(crate) fn run(data: &[u8]) {
    if let Some(trace) = reads(data) {
        is_written(&trace);
    }
    if Format::of(data) == Some(Format::Capture) {
        let _ = capture::arrivals(data);
        let _ = capture::are_of_the_same(data, data);
        let _ = both(data, data);
        let _ = both(&data[..data.len() / 2], data);
    }
}

/// One of these, by the sum of the bytes: reading is the fastest, and what finds most.
#[allow(dead_code, reason = "only the fuzzer runs it")]
pub(crate) fn run_part(data: &[u8]) {
    let part = data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) % 16;
    let is_capture = Format::of(data) == Some(Format::Capture);
    match part {
        0 => run(data),
        1 if is_capture => drop(both(data, data)),
        2 if is_capture => drop(both(&data[..data.len() / 2], data)),
        3 if is_capture => drop(capture::arrivals(data)),
        4 => {
            if let Some(trace) = reads(data) {
                is_written(&trace);
            }
        }
        _ => drop(reads(data)),
    }
}

fn reads(data: &[u8]) -> Option<Trace> {
    match read(Cursor::new(data), "fuzz", DETAIL) {
        Ok(trace) => Some(trace),
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            None
        }
    }
}

fn is_written(trace: &Trace) {
    let bytes = stream::encode(trace);
    let again = stream::decode(&bytes).expect("what was written can be read");
    assert_eq!(stream::encode(&again), bytes);
    assert!(figure::Figure::of(trace).draw(trace).ends_with("</svg>\n"));
}

/// As two captures of the same packets.
fn both(first: &[u8], second: &[u8]) -> Option<Trace> {
    capture::read_both(Cursor::new(first), Cursor::new(second), "fuzz", DETAIL).ok()
}
