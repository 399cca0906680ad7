//! The bytes of packets in captures.

use bytes::BufMut;
use fontis_proto::tcp::wire::Addresses;

const UDP: u8 = 17;
/// Bytes of the headers of IPv4 and UDP.
pub const HEADERS: u32 = 28;

/// Appends an IPv4 and a UDP header without a checksum (RFC 768 allows none), and as much of the
/// payload as a packet of `size` bytes holds.
pub fn encode_datagram(addresses: Addresses, payload: &[u8], size: u32, out: &mut Vec<u8>) {
    let total = encode_ip(addresses, UDP, size.max(HEADERS), out);
    out.put_u16(addresses.source.1);
    out.put_u16(addresses.destination.1);
    out.put_u16(total - 20);
    out.put_u16(0);
    let room = usize::from(total) - HEADERS as usize;
    out.put_slice(&payload[..payload.len().min(room)]);
}

/// Appends the IPv4 header of a packet of `size` bytes; gives its length as the header has it.
pub fn encode_ip(addresses: Addresses, protocol: u8, size: u32, out: &mut Vec<u8>) -> u16 {
    let begin = out.len();
    let total = size.min(0xffff) as u16;
    out.put_slice(&[0x45, 0]);
    out.put_u16(total);
    out.put_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
    out.put_u32(addresses.source.0);
    out.put_u32(addresses.destination.0);
    let words = out[begin..].chunks_exact(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum: u32 = words.sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    let check = !((folded >> 16) as u16 + folded as u16);
    out[begin + 10..begin + 12].copy_from_slice(&check.to_be_bytes());
    total
}
