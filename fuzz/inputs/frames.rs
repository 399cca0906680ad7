//! The bytes of a sealed packet, decoded.

use bytes::Bytes;
use fontis_proto::dfcp::wire;

/// Whatever decodes can be encoded, has the length that was foretold, and decodes to the same bytes
/// again.
pub(crate) fn run(data: &[u8]) {
    let Ok(frames) = wire::decode_frames(Bytes::copy_from_slice(data)) else { return };
    let mut first = Vec::new();
    wire::encode_frames(&frames, &mut first);
    assert_eq!(wire::frames_len(&frames), first.len());
    let again = wire::decode_frames(Bytes::from(first.clone())).expect("what we encode decodes");
    let mut second = Vec::new();
    wire::encode_frames(&again, &mut second);
    assert_eq!(first, second);
}
