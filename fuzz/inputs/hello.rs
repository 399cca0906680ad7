//! What a handshake message carries, decoded.

use bytes::Bytes;
use fontis_proto::dfcp::wire;

/// Whatever decodes can be encoded, has the length that was foretold, and decodes to the same bytes
/// again.
pub(crate) fn run(data: &[u8]) {
    let Ok(hello) = wire::decode_hello(Bytes::copy_from_slice(data)) else { return };
    let mut first = Vec::new();
    wire::encode_hello(&hello, &mut first);
    assert_eq!(wire::hello_len(&hello), first.len());
    let again = wire::decode_hello(Bytes::from(first.clone())).expect("what we encode decodes");
    let mut second = Vec::new();
    wire::encode_hello(&again, &mut second);
    assert_eq!(first, second);
}
