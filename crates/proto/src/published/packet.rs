use bytes::{Buf, BufMut, Bytes};

use super::header::{HeaderError, PublishedFlags, PublishedHeader};

/// A packet: the header, and what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedPacket {
    /// The header.
    pub header: PublishedHeader,
    /// What follows it.
    pub body: Body,
}

/// What follows the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    None,
    /// What SYN and SYNACK say of the code (D-10).
    Parameters(Parameters),
    /// Encoded bytes.
    Symbols(PublishedSymbols),
    /// Of an acknowledgement, with [`Control::Marks`](super::Control::Marks): packets of the block
    /// that arrived, and how many of them were marked.
    Marks {
        /// Packets that arrived.
        packets: u32,
        /// Packets that were marked.
        marked: u32,
    },
}

/// What both ends must know before data can be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// k, bytes of a block.
    pub block: u32,
    /// W, blocks.
    pub window: u32,
    /// ε in millionths.
    pub redundancy: u32,
}

/// Encoded bytes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedSymbols {
    /// How many.
    pub len: u32,
    /// The bytes, or none if they are only counted.
    pub bytes: Bytes,
    /// How many bytes of the block count, if they are only counted; otherwise the block itself says
    /// it.
    pub message: u32,
}

/// Bytes of an IPv4 header.
const IP: u32 = 20;
const PARAMETERS: u32 = 12;

impl PublishedPacket {
    /// Bytes at the IP layer.
    pub fn size(&self) -> u32 {
        IP + PublishedHeader::SIZE
            + match &self.body {
                Body::None => 0,
                Body::Parameters(_) => PARAMETERS,
                Body::Symbols(symbols) => symbols.len,
                Body::Marks { .. } => 8,
            }
    }

    /// Writes it as bytes behind an IP header. Bytes that are only counted are zeros.
    pub fn encode(&self, pseudo: &[u8], out: &mut Vec<u8>) {
        let mut data = Vec::new();
        match &self.body {
            Body::None => {}
            Body::Parameters(parameters) => {
                data.put_u32(parameters.block);
                data.put_u32(parameters.window);
                data.put_u32(parameters.redundancy);
            }
            Body::Symbols(symbols) if symbols.bytes.is_empty() => {
                data.resize(symbols.len as usize, 0);
            }
            Body::Symbols(symbols) => data.extend_from_slice(&symbols.bytes),
            Body::Marks { packets, marked } => {
                data.put_u32(*packets);
                data.put_u32(*marked);
            }
        }
        self.header.encode(pseudo, &data, out);
    }

    /// Reads it back.
    pub fn decode(pseudo: &[u8], bytes: &[u8]) -> Result<Self, HeaderError> {
        let (header, mut data) = PublishedHeader::decode(pseudo, bytes)?;
        let body = if header.flags.has(PublishedFlags::SYN) {
            if data.len() < PARAMETERS as usize {
                return Err(HeaderError::Short);
            }
            let (block, window) = (data.get_u32(), data.get_u32());
            Body::Parameters(Parameters { block, window, redundancy: data.get_u32() })
        } else if header.flags.has(PublishedFlags::ACK) && data.len() >= 8 {
            Body::Marks { packets: data.get_u32(), marked: data.get_u32() }
        } else if data.is_empty() {
            Body::None
        } else {
            let bytes = Bytes::copy_from_slice(data);
            Body::Symbols(PublishedSymbols { len: bytes.len() as u32, bytes, message: 0 })
        };
        Ok(Self { header, body })
    }
}
