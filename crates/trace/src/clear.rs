use bytes::{Buf, Bytes, BytesMut};
use fontis_proto::dfcp::{ConnectionId, DfcpPacket, OpenError, SealError, Session, wire};

/// Packet protection that protects nothing: every packet passes through the wire format and back.
/// It exists for simulations and nowhere else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clear;

const SYN: u8 = 1;
const SYNACK: u8 = 2;
const SEALED: u8 = 0x40;

impl Session for Clear {
    fn seal(&mut self, packet: &DfcpPacket, out: &mut Vec<u8>) -> Result<(), SealError> {
        match packet {
            DfcpPacket::Syn { version, source, hello } => {
                out.push(SYN);
                out.extend_from_slice(&version.to_be_bytes());
                out.extend_from_slice(&source.0);
                wire::encode_hello(hello, out);
            }
            DfcpPacket::SynAck { destination, source, hello } => {
                out.push(SYNACK);
                out.extend_from_slice(&destination.0);
                out.extend_from_slice(&source.0);
                wire::encode_hello(hello, out);
            }
            DfcpPacket::Sealed { destination, path, number, frames } => {
                out.push(SEALED | path);
                out.extend_from_slice(&destination.0);
                out.extend_from_slice(&number.to_be_bytes());
                wire::encode_frames(frames, out);
            }
            DfcpPacket::Reset { .. } | DfcpPacket::VersionNegotiation { .. } => {
                return Err(SealError);
            }
        }
        Ok(())
    }

    fn open(&mut self, datagram: BytesMut) -> Result<DfcpPacket, OpenError> {
        let mut bytes = datagram.freeze();
        let kind = bytes.try_get_u8().map_err(|_| OpenError::Malformed)?;
        let malformed = |_| OpenError::Malformed;
        Ok(match kind {
            SYN => {
                let version = bytes.try_get_u32().map_err(|_| OpenError::Malformed)?;
                let source = id(&mut bytes)?;
                DfcpPacket::Syn {
                    version,
                    source,
                    hello: wire::decode_hello(bytes).map_err(malformed)?,
                }
            }
            SYNACK => {
                let destination = id(&mut bytes)?;
                let source = id(&mut bytes)?;
                DfcpPacket::SynAck {
                    destination,
                    source,
                    hello: wire::decode_hello(bytes).map_err(malformed)?,
                }
            }
            _ if kind & 0xc0 == SEALED => {
                let destination = id(&mut bytes)?;
                let number = bytes.try_get_u64().map_err(|_| OpenError::Malformed)?;
                let frames = wire::decode_frames(bytes).map_err(malformed)?;
                DfcpPacket::Sealed { destination, path: kind & 0x3f, number, frames }
            }
            _ => return Err(OpenError::Malformed),
        })
    }
}

fn id(bytes: &mut Bytes) -> Result<ConnectionId, OpenError> {
    if bytes.len() < 8 {
        return Err(OpenError::Malformed);
    }
    let mut id = [0; 8];
    bytes.copy_to_slice(&mut id);
    Ok(ConnectionId(id))
}
