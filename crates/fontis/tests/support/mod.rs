//! What tests of hostile peers share.

use bytes::Bytes;
use fontis::Identity;
use fontis::protection::Initiator;
use fontis_proto::dfcp::{
    ConnectionId, DfcpPacket, Frame, Hello, Live, LiveKind, Params, Session, SymbolsFrame, VERSION,
};

/// A request that opens, as somebody recorded it: whoever has the URL can make one.
pub(crate) fn recorded(server: &Identity, id: [u8; 8], message: Option<&[u8]>) -> Vec<u8> {
    let params = Params::default();
    let symbols = |message: &[u8]| {
        let live =
            Some(Live { kind: LiveKind::Message, block_len: message.len() as u32, fin: true });
        let (len, data) = (message.len() as u16, Bytes::copy_from_slice(message));
        let (channel, block, esi, count) = (0, 0, 0, 1);
        let (whole, long) = (false, false);
        Frame::Symbols(SymbolsFrame { channel, block, esi, count, live, whole, long, len, data })
    };
    let hello = Hello { params, frames: message.map(symbols).into_iter().collect() };
    let packet = DfcpPacket::Syn { version: VERSION, source: ConnectionId(id), hello };
    let secret = *Identity::generate().secret();
    let mut initiator = Initiator::new(secret, *server.public().as_bytes(), None);
    let mut datagram = Vec::new();
    initiator.seal(&packet, &mut datagram).unwrap();
    datagram
}
