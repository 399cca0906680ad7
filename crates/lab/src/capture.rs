//! Captures of packets in files: pcap and pcapng.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

/// An IP packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it was captured, in nanoseconds of its clock.
    pub nanos: u64,
    /// Bytes of the IP packet, headers included.
    pub size: u32,
    /// The destination address; IPv4 addresses as mapped ones.
    pub destination: std::net::Ipv6Addr,
    /// The destination port of UDP.
    pub udp_port: Option<u16>,
}

/// Reads the IP packets of a capture in the order of the file; what is no IP packet is left out. An error says what is wrong
/// with the file.
pub fn read(path: &Path) -> Result<Vec<Seen>, String> {
    let place = path.display();
    let fail = |error: PcapError| format!("{place}: {error}");
    let file = File::open(path).map_err(|error| format!("{place}: {error}"))?;
    let mut file = BufReader::new(file);
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(|_| format!("{place}: it is too short for a capture"))?;
    let whole = (&magic[..]).chain(file);
    let mut seen = Vec::new();
    if magic == [0x0a, 0x0d, 0x0d, 0x0a] {
        let mut reader = PcapNgReader::new(whole).map_err(fail)?;
        let mut interfaces: Vec<DataLink> = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.map_err(fail)? {
                Block::SectionHeader(_) => interfaces.clear(),
                Block::InterfaceDescription(interface) => interfaces.push(interface.linktype),
                Block::EnhancedPacket(packet) => {
                    let link = interfaces.get(packet.interface_id as usize).copied();
                    let Some(link) = link else { continue };
                    let nanos = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
                    seen.extend(packet_of(link, nanos, &packet.data));
                }
                _ => {}
            }
        }
    } else {
        let mut reader = PcapReader::new(whole)
            .map_err(|_| format!("{place}: it is neither pcap nor pcapng"))?;
        let link = reader.header().datalink;
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(fail)?;
            let nanos = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
            seen.extend(packet_of(link, nanos, &packet.data));
        }
    }
    Ok(seen)
}

pub(crate) fn packet_of(link: DataLink, nanos: u64, data: &[u8]) -> Option<Seen> {
    let ip = match link {
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => data,
        DataLink::ETHERNET => {
            // A VLAN tag lies before the type.
            let at = if data.get(12..14)? == [0x81, 0x00] { 16 } else { 12 };
            let kind = data.get(at..at + 2)?;
            if kind != [0x08, 0x00] && kind != [0x86, 0xdd] {
                return None;
            }
            data.get(at + 2..)?
        }
        DataLink::LINUX_SLL => data.get(16..)?,
        _ => return None,
    };
    let short = |at: usize| Some(u16::from_be_bytes(ip.get(at..at + 2)?.try_into().ok()?));
    let (size, destination, protocol, header) = match ip.first()? >> 4 {
        4 => {
            let address: [u8; 4] = ip.get(16..20)?.try_into().ok()?;
            let header = usize::from(ip[0] & 0xf) * 4;
            let mapped = std::net::Ipv4Addr::from(address).to_ipv6_mapped();
            (u32::from(short(2)?), mapped, *ip.get(9)?, header)
        }
        6 => {
            let address: [u8; 16] = ip.get(24..40)?.try_into().ok()?;
            (u32::from(short(4)?) + 40, address.into(), *ip.get(6)?, 40)
        }
        _ => return None,
    };
    let udp_port = if protocol == 17 { short(header + 2) } else { None };
    Some(Seen { nanos, size, destination, udp_port })
}
