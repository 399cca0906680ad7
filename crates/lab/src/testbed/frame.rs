use std::net::IpAddr;
use std::sync::Arc;

use fontis_base::Ecn;

use super::checksum::{Sum, partial};
use super::system::VNET_LEN;

/// A packet from an interface, or a super-packet of TCP or UDP that holds several.
#[derive(Debug)]
pub(super) struct Datagram {
    /// The interface's header and the packet.
    bytes: Vec<u8>,
    ipv6: bool,
    /// Bytes of the IP header, with extensions.
    ip: usize,
    /// Bytes of the IP header and the transport's.
    headers: usize,
    /// Bytes of a segment, for a super-packet; else all of them.
    segment: usize,
    segments: u16,
}

/// Some packets in a row of a datagram; one, if it is no super-packet.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    datagram: Arc<Datagram>,
    first: u16,
    count: u16,
}

/// `struct virtio_net_hdr`: offsets of its fields, and their values.
mod vnet {
    pub(super) const FLAGS: usize = 0;
    pub(super) const GSO_TYPE: usize = 1;
    pub(super) const GSO_SIZE: usize = 4;
    pub(super) const CSUM_START: usize = 6;
    pub(super) const CSUM_OFFSET: usize = 8;
    pub(super) const NEEDS_CSUM: u8 = 1;
    pub(super) const GSO_NONE: u8 = 0;
    pub(super) const GSO_TCPV4: u8 = 1;
    pub(super) const GSO_TCPV6: u8 = 4;
    pub(super) const GSO_UDP_L4: u8 = 5;
    pub(super) const GSO_ECN: u8 = 0x80;
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
/// The most that headers of an interface, of IP and of TCP take together, extensions included.
const MOST_HEADERS: usize = 512;
/// The captured bytes of a packet: IPv6 and TCP with all its options, or a datagram's header and
/// more.
const BEGINNING: usize = 128;
const TCP_FLAGS: usize = 13;
const TCP_FIN_PSH: u8 = 0x09;
const TCP_CWR: u8 = 0x80;

impl Datagram {
    /// Reads a packet from an interface; `None` if it is no IP packet or is inconsistent.
    pub(super) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let packet = bytes.get(VNET_LEN..)?;
        let ipv6 = match packet.first()? >> 4 {
            4 => false,
            6 => true,
            _ => return None,
        };
        let ip = if ipv6 { 40 } else { usize::from(packet[0] & 15) * 4 };
        if packet.len() < ip || ip < 20 {
            return None;
        }
        let kind = bytes[vnet::GSO_TYPE] & !vnet::GSO_ECN;
        let size = usize::from(word(&bytes, vnet::GSO_SIZE));
        if kind == vnet::GSO_NONE || size == 0 {
            let segment = packet.len();
            return Some(Self { bytes, ipv6, ip, headers: 0, segment, segments: 1 });
        }
        // The transport's header begins where its checksum does, behind extensions of IPv6 if there
        // are any.
        let transport = usize::from(word(&bytes, vnet::CSUM_START));
        let headers = transport
            + match kind {
                vnet::GSO_TCPV4 | vnet::GSO_TCPV6 => {
                    usize::from(packet.get(transport + 12)? >> 4) * 4
                }
                vnet::GSO_UDP_L4 => 8,
                _ => return None,
            };
        if transport < ip || headers > packet.len() || VNET_LEN + headers > MOST_HEADERS {
            return None;
        }
        let segments = (packet.len() - headers).div_ceil(size).max(1);
        let segments = u16::try_from(segments).ok()?;
        Some(Self { bytes, ipv6, ip: transport, headers, segment: size, segments })
    }

    fn packet(&self) -> &[u8] {
        &self.bytes[VNET_LEN..]
    }

    /// The source.
    pub(super) fn source(&self) -> IpAddr {
        self.address(if self.ipv6 { 8 } else { 12 })
    }

    /// The destination.
    pub(super) fn destination(&self) -> IpAddr {
        self.address(if self.ipv6 { 24 } else { 16 })
    }

    fn address(&self, at: usize) -> IpAddr {
        let packet = self.packet();
        if self.ipv6 {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&packet[at..at + 16]);
            bytes.into()
        } else {
            [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]].into()
        }
    }

    /// The congestion notification.
    pub(super) fn ecn(&self) -> Ecn {
        let packet = self.packet();
        match if self.ipv6 { packet[1] >> 4 } else { packet[1] } & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// A number that the packets of a transport's flow have in common, and those of others mostly
    /// not.
    pub(super) fn flow_hash(&self) -> u32 {
        let packet = self.packet();
        let (protocol, addresses) =
            if self.ipv6 { (packet[6], &packet[8..40]) } else { (packet[9], &packet[12..20]) };
        let ports = match protocol {
            TCP | UDP => packet.get(self.ip..self.ip + 4).unwrap_or(&[]),
            _ => &[],
        };
        let bytes = addresses.iter().chain(ports).chain([&protocol]);
        // FNV-1a.
        bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }

    /// The number of packets in it.
    pub(super) const fn segments(&self) -> u16 {
        self.segments
    }
}

impl Frame {
    /// All packets of a datagram.
    pub(super) fn whole(datagram: Arc<Datagram>) -> Self {
        let count = datagram.segments;
        Self { datagram, first: 0, count }
    }

    /// One of them.
    pub(super) fn one(datagram: &Arc<Datagram>, index: u16) -> Self {
        Self { datagram: Arc::clone(datagram), first: index, count: 1 }
    }

    /// The packets one by one.
    pub(super) fn packets(&self) -> impl Iterator<Item = Self> + '_ {
        (0..self.count).map(|index| Self::one(&self.datagram, self.first + index))
    }

    /// The first bytes of its packet, with all headers, and how many it has. Checksums that the
    /// interface was to do are not done.
    pub(super) fn beginning(&self, ecn: Ecn) -> (Vec<u8>, u32) {
        self.emit(ecn, |header, payload| {
            let header = &header[VNET_LEN..];
            let mut bytes = header[..header.len().min(BEGINNING)].to_vec();
            bytes.extend_from_slice(&payload[..payload.len().min(BEGINNING - bytes.len())]);
            (bytes, (header.len() + payload.len()) as u32)
        })
    }

    /// Bytes at the IP layer, the headers of every packet counted.
    pub(super) fn size(&self) -> usize {
        usize::from(self.count) * self.datagram.headers + self.payload().len()
    }

    /// Takes the packets of `next` behind its own, if they follow each other in the same datagram.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        let follows =
            Arc::ptr_eq(&self.datagram, &next.datagram) && self.first + self.count == next.first;
        if follows {
            self.count += next.count;
        }
        follows
    }

    /// The payload of its packets; for a single packet, all of it.
    fn payload(&self) -> &[u8] {
        let Datagram { headers, segment, .. } = *self.datagram;
        let packet = self.datagram.packet();
        let begin = headers + usize::from(self.first) * segment;
        let end = begin + usize::from(self.count) * segment;
        &packet[begin.min(packet.len())..end.min(packet.len())]
    }

    /// Writes header and payload to `write`, with this congestion notification.
    pub(super) fn emit<T>(&self, ecn: Ecn, write: impl FnOnce(&[u8], &[u8]) -> T) -> T {
        let datagram = &*self.datagram;
        let untouched = ecn == datagram.ecn();
        if self.count == datagram.segments && untouched {
            return write(&datagram.bytes, &[]);
        }
        if datagram.segments == 1 {
            let mut bytes = datagram.bytes.clone();
            set_ecn(&mut bytes[VNET_LEN..], datagram, ecn);
            return write(&bytes, &[]);
        }
        let mut buffer = [0; MOST_HEADERS];
        let header = &mut buffer[..VNET_LEN + datagram.headers];
        self.fill_headers(header);
        if !untouched {
            set_ecn(&mut header[VNET_LEN..], datagram, ecn);
        }
        write(header, self.payload())
    }

    /// The packets with all checksums done, and then the bit `flip` of them, counted around, the
    /// other way.
    pub(super) fn damaged(&self, ecn: Ecn, flip: u64) -> Vec<u8> {
        let mut bytes = self.emit(ecn, |header, payload| [header, payload].concat());
        if bytes[vnet::FLAGS] & vnet::NEEDS_CSUM != 0 && bytes[vnet::GSO_TYPE] == vnet::GSO_NONE {
            let start = usize::from(word(&bytes, vnet::CSUM_START));
            let at = start + usize::from(word(&bytes, vnet::CSUM_OFFSET));
            let (_, packet) = bytes.split_at_mut(VNET_LEN);
            if at + 2 <= packet.len() {
                // The field holds the sum over the pseudo-header.
                let sum = Sum::default().add(&packet[start..]).finish();
                packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            }
            bytes[..VNET_LEN].fill(0);
        }
        let bits = (bytes.len() - VNET_LEN) as u64 * 8;
        let bit = flip % bits.max(1);
        bytes[VNET_LEN + (bit / 8) as usize] ^= 1 << (bit % 8);
        bytes
    }

    /// The headers of these packets alone: lengths, sequence number, flags and checksums are
    /// theirs.
    fn fill_headers(&self, header: &mut [u8]) {
        let datagram = &*self.datagram;
        header.copy_from_slice(&datagram.bytes[..header.len()]);
        let (vnet, packet) = header.split_at_mut(VNET_LEN);
        let (ip, payload) = (datagram.ip, self.payload().len());
        let length = datagram.headers + payload;
        let transport = (length - ip) as u32;
        let is_last = self.first + self.count == datagram.segments;
        if self.count == 1 {
            vnet[vnet::GSO_TYPE] = vnet::GSO_NONE;
            vnet[vnet::GSO_SIZE..vnet::GSO_SIZE + 2].fill(0);
        }
        let is_udp = word(vnet, vnet::CSUM_OFFSET) == 6;
        if datagram.ipv6 {
            packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(self.first);
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            sum_ipv4_header(&mut packet[..ip]);
        }
        let pseudo = partial(datagram.ipv6, packet, if is_udp { UDP } else { TCP }, transport);
        let at = ip + usize::from(word(vnet, vnet::CSUM_OFFSET));
        packet[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
        if is_udp {
            packet[ip + 4..ip + 6].copy_from_slice(&(transport as u16).to_be_bytes());
            return;
        }
        let skipped = u32::from(self.first) * datagram.segment as u32;
        let sequence = &mut packet[ip + 4..ip + 8];
        let number = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
        sequence.copy_from_slice(&number.wrapping_add(skipped).to_be_bytes());
        if !is_last {
            packet[ip + TCP_FLAGS] &= !TCP_FIN_PSH;
        }
        if self.first > 0 {
            packet[ip + TCP_FLAGS] &= !TCP_CWR;
        }
    }
}

/// Sets the congestion notification of a packet.
fn set_ecn(packet: &mut [u8], datagram: &Datagram, ecn: Ecn) {
    let bits = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    if datagram.ipv6 {
        packet[1] = packet[1] & !0x30 | bits << 4;
    } else {
        packet[1] = packet[1] & !3 | bits;
        let header = usize::from(packet[0] & 15) * 4;
        sum_ipv4_header(&mut packet[..header]);
    }
}

fn sum_ipv4_header(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = Sum::default().add(header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// A field of the interface's header, in the machine's order of bytes.
fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}
