use super::chunk::SctpChunk;

/// A packet: the common header (RFC 9260 section 3.1) and chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SctpPacket {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
    /// The tag that the receiver has chosen.
    pub tag: u32,
    /// The chunks, in order.
    pub chunks: Vec<SctpChunk>,
}

/// Bytes of the common header.
pub(super) const COMMON_HEADER: usize = 12;

impl SctpPacket {
    /// Bytes of content in its DATA chunks.
    pub fn data_len(&self) -> usize {
        let content = |chunk: &SctpChunk| match chunk {
            SctpChunk::Data(data) => data.data.len(),
            _ => 0,
        };
        self.chunks.iter().map(content).sum()
    }
}
