//! Datagrams of a cast: of strangers, and what a member, the sender or a receiver puts into one.

use bytes::Bytes;
use fontis_proto::cast::{
    decode_live_symbol, decode_receipt, decode_report, decode_state, decode_symbol,
    encode_live_symbol, encode_receipt, encode_report, encode_state, encode_symbol,
};

/// What is not sealed is not opened; whatever is read is written so that it reads the same.
pub(crate) fn run(data: &[u8]) {
    fontis::readers::cast(data);
    let bytes = Bytes::copy_from_slice(data);
    let mut again = Vec::new();
    if let Ok(symbol) = decode_symbol(bytes.clone()) {
        encode_symbol(&symbol, &mut again);
        assert_eq!(again, data, "a symbol has one form");
    }
    if let Ok(symbol) = decode_live_symbol(bytes.clone()) {
        again.clear();
        encode_live_symbol(&symbol, &mut again);
        assert_eq!(again, data, "a symbol of a stream has one form");
    }
    if let Ok(receipt) = decode_receipt(bytes.clone()) {
        again.clear();
        encode_receipt(&receipt, &mut again);
        assert_eq!(again, data, "a receipt has one form");
    }
    if let Ok(state) = decode_state(bytes.clone()) {
        again.clear();
        encode_state(&state, &mut again);
        assert_eq!(decode_state(again.clone().into()), Ok(state));
    }
    if let Ok(report) = decode_report(bytes) {
        again.clear();
        encode_report(&report, &mut again);
        assert_eq!(decode_report(again.into()), Ok(report));
    }
}
