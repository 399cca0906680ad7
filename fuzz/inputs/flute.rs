//! Any datagrams for a receiver of FLUTE, each behind two bytes that say how long it is.

use fontis_codes::ReedSolomonPoints;
use fontis_proto::flute::{FluteEvent, FluteReceiver, FluteReceiverConfig};

/// What the receiver may keep.
const MEMORY: usize = 1 << 16;

/// Whatever comes in, nothing panics; the receiver keeps its budget, and what it says adds up.
pub(crate) fn run(mut data: &[u8]) {
    let config = FluteReceiverConfig {
        tsi: None,
        memory: MEMORY,
        max_files: 100,
        points: ReedSolomonPoints::Reference,
    };
    let mut receiver = FluteReceiver::new(config);
    let mut coming = std::collections::BTreeMap::new();
    while let Some((length, rest)) = data.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length));
        let (datagram, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        let _ = receiver.handle(datagram);
        while let Some(event) = receiver.poll_event() {
            match event {
                FluteEvent::Announced(file) => {
                    let known = coming.insert(file.toi, file.length.expect("a length"));
                    assert_eq!(known, None, "a file is announced once");
                }
                FluteEvent::Block { toi, data, .. } => {
                    let left = coming.get_mut(&toi).expect("an announced file");
                    *left = left.checked_sub(data.len() as u64).expect("no byte comes twice");
                }
                FluteEvent::Received { toi } => assert_eq!(coming.get(&toi), Some(&0)),
                FluteEvent::Refused(_) => {}
            }
        }
        assert!(receiver.held() <= MEMORY);
        let status = receiver.status();
        assert!(status.received + status.refused <= status.announced);
    }
}
