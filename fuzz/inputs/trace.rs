//! Files that `fontis view` and `fontis estimate` are given: traces of ours, pcap, pcapng, qlog,
//! and traces of ns-2.

use fontis_trace::read::read;
use fontis_trace::{Detail, capture, figure, stream};

/// Whatever is read can be written, read again and drawn; whatever is not is refused in one line.
pub(crate) fn run(data: &[u8]) {
    let detail = Detail { most: 500, ..Detail::default() };
    match read(std::io::Cursor::new(data.to_vec()), "fuzz", detail) {
        Ok(trace) => {
            let bytes = stream::encode(&trace);
            let again = stream::decode(&bytes).expect("what was written can be read");
            assert_eq!(stream::encode(&again), bytes);
            assert!(figure::Figure::of(&trace).draw(&trace).ends_with("</svg>\n"));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    let _ = capture::arrivals(data);
    // As two captures of the same packets, cut anywhere.
    let (first, second) = data.split_at(data.len() / 2);
    let _ = capture::read_both(
        std::io::Cursor::new(data.to_vec()),
        std::io::Cursor::new(data.to_vec()),
        "fuzz",
        detail,
    );
    let _ = capture::read_both(
        std::io::Cursor::new(first.to_vec()),
        std::io::Cursor::new(second.to_vec()),
        "fuzz",
        detail,
    );
}
