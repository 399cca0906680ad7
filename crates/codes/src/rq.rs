//! The `raptorq` crate behind our contract. It panics on input that breaks its expectations, so everything that
//! reaches it has been checked against a [`BlockShape`] before.

use bytes::Bytes;
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder,
};

use crate::BlockShape;

fn config(shape: BlockShape) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(shape.padded_len() as u64, shape.symbol_size(), 1, 1, 1)
}

/// The intermediate symbols of a block, from which any repair symbol follows.
pub(crate) struct Encoder {
    inner: SourceBlockEncoder,
    k: u32,
}

impl Encoder {
    /// Solves for the intermediate symbols: the costly step.
    pub(crate) fn new(shape: BlockShape, data: &Bytes) -> Self {
        let inner = if data.len() == shape.padded_len() {
            SourceBlockEncoder::new(0, &config(shape), data)
        } else {
            let mut padded = Vec::with_capacity(shape.padded_len());
            padded.extend_from_slice(data);
            padded.resize(shape.padded_len(), 0);
            SourceBlockEncoder::new(0, &config(shape), &padded)
        };
        Self { inner, k: shape.source_symbols() }
    }

    /// Repair symbol `esi`, which must not be a source symbol's.
    pub(crate) fn repair(&self, esi: u32) -> Bytes {
        let packet = self.inner.repair_packets(esi - self.k, 1).remove(0);
        Bytes::from(packet.split().1)
    }
}

/// Decodes a block from the source symbols marked in `have` and the repair symbols; `None` if the equations lack
/// rank. `data` is the padded block with the source symbols in place.
pub(crate) fn decode(
    shape: BlockShape,
    data: &[u8],
    have: &[bool],
    repair: &[(u32, Bytes)],
) -> Option<Vec<u8>> {
    let size = usize::from(shape.symbol_size());
    let sources = have.iter().enumerate().filter(|(_, have)| **have).map(|(i, _)| {
        EncodingPacket::new(PayloadId::new(0, i as u32), data[i * size..(i + 1) * size].to_vec())
    });
    let repairs = repair
        .iter()
        .map(|(esi, bytes)| EncodingPacket::new(PayloadId::new(0, *esi), bytes.to_vec()));
    let mut decoder = SourceBlockDecoder::new(0, &config(shape), shape.padded_len() as u64);
    decoder.decode(sources.chain(repairs))
}
