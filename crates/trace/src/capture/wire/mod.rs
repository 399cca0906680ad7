//! Headers in bytes: Ethernet and what is like it, IP, TCP with the options of Multipath TCP, SCTP,
//! DCCP, UDP with DFCP and QUIC.
//!
//! A capture may keep only the first bytes of each packet: what is not there is left out, and
//! nothing panics.

pub(crate) mod bytes;
mod dccp;
pub(crate) mod ip_packet;
pub(crate) mod mptcp;
mod sctp;
mod tcp;
mod udp;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use self::bytes::{short, word};
use self::ip_packet::{IpPacket, Protocol};
use crate::header::PacketHeader;
use crate::packet::{Kind, Marks};

/// Frames that begin with the IP header ("LINKTYPE_RAW").
pub(crate) const RAW: i32 = 101;
/// Link layers, as captures number them ("LINKTYPE").
pub(crate) const KNOWN_LINKS: [i32; 10] = [0, 1, 12, 14, RAW, 108, 113, 228, 229, 276];

/// Reads a frame of a capture; `None` if there is no IP packet in it.
pub(crate) fn read(link: i32, frame: &[u8]) -> Option<IpPacket> {
    let ip = match link {
        0 | 108 => frame.get(4..)?,
        1 => {
            let mut at = 12;
            // VLAN tags lie before the type.
            while matches!(short(frame, at)?, 0x8100 | 0x88a8) {
                at += 4;
            }
            matches!(short(frame, at)?, 0x0800 | 0x86dd).then(|| frame.get(at + 2..))??
        }
        12 | 14 | RAW | 228 | 229 => frame,
        113 => frame.get(16..)?,
        276 => frame.get(20..)?,
        _ => return None,
    };
    read_ip(ip)
}

fn read_ip(ip: &[u8]) -> Option<IpPacket> {
    let (size, source, destination, protocol, header, identity, ecn): (
        _,
        IpAddr,
        IpAddr,
        _,
        _,
        _,
        _,
    ) = match ip.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(Ipv4Addr::from(word(ip, at)?).into());
            // A fragment that is not the first has no header to be read.
            let is_first = short(ip, 6)? & 0x1fff == 0;
            let length = usize::from(ip[0] & 15) * 4;
            let protocol = if is_first { *ip.get(9)? } else { 255 };
            // Offloads leave the length for the card to fill in.
            let size = u32::from(short(ip, 2)?);
            (
                size,
                address(12)?,
                address(16)?,
                protocol,
                length.max(20),
                short(ip, 4)?,
                ip.get(1)? & 3,
            )
        }
        6 => {
            let address = |at: usize| -> Option<IpAddr> {
                let bytes: [u8; 16] = ip.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(bytes).into())
            };
            let (mut next, mut at) = (*ip.get(6)?, 40);
            // Hop-by-hop options, routing and destination options may lie between.
            for _ in 0..8 {
                if !matches!(next, 0 | 43 | 60) {
                    break;
                }
                next = *ip.get(at)?;
                at += 8 + usize::from(*ip.get(at + 1)?) * 8;
            }
            let ecn = (ip.get(1)? >> 4) & 3;
            (u32::from(short(ip, 4)?) + 40, address(8)?, address(24)?, next, at, 0, ecn)
        }
        _ => return None,
    };
    let body = ip.get(header..).unwrap_or(&[]);
    let payload = size.saturating_sub(header as u32);
    let mut seen = IpPacket {
        source: (source, 0),
        destination: (destination, 0),
        protocol: Protocol::Other,
        size,
        identity: u64::from(identity),
        header: PacketHeader::of(Kind::Opaque),
        tags: [None; 2],
        sealed: None,
        multipath: None,
    };
    if matches!(protocol, 6 | 17 | 33 | 132) {
        seen.source.1 = short(body, 0).unwrap_or(0);
        seen.destination.1 = short(body, 2).unwrap_or(0);
    }
    match protocol {
        6 => seen.protocol = Protocol::Tcp,
        17 => seen.protocol = Protocol::Udp,
        33 => seen.protocol = Protocol::Dccp,
        132 => seen.protocol = Protocol::Sctp,
        _ => {}
    }
    let read = match protocol {
        6 => tcp::read(body, payload, &mut seen),
        17 => udp::read(body, &mut seen),
        33 => dccp::read(body, &mut seen),
        132 => sctp::read(body, &mut seen),
        _ => None,
    };
    if read.is_none() {
        // What is cut off is still a packet of its flow.
        seen.header = PacketHeader::of(seen.header.kind);
    }
    if ecn == 3 {
        seen.header.marks.set(Marks::CONGESTION);
    }
    Some(seen)
}
