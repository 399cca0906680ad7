use std::io::Read;
use std::net::IpAddr;

use super::frames::Frames;
use super::wire;
use crate::capture::frames::CaptureError;
use crate::capture::wire::ip_packet::{IpPacket, Protocol};

/// A packet of a capture, for who looks at times and sizes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it was captured, in nanoseconds of its clock.
    pub nanos: u64,
    /// Bytes of the IP packet, headers included.
    pub size: u32,
    /// Where it goes.
    pub destination: IpAddr,
    /// The destination port of UDP.
    pub udp_port: Option<u16>,
}

impl Arrival {
    fn of(nanos: u64, seen: &IpPacket) -> Self {
        let (destination, port) = seen.destination;
        let is_udp = matches!(seen.protocol, Protocol::Udp | Protocol::Quic | Protocol::Dfcp);
        Self { nanos, size: seen.size, destination, udp_port: is_udp.then_some(port) }
    }

    /// Reads a packet that begins with its IP header, and was seen at `nanos`; `None` if it is
    /// none.
    pub fn read(nanos: u64, packet: &[u8]) -> Option<Self> {
        Some(Self::of(nanos, &wire::read(wire::RAW, packet)?))
    }
}

/// The IP packets of a capture, in the order of the file, and whether its last frame is cut off.
pub fn arrivals(input: impl Read + Send) -> Result<(Vec<Arrival>, bool), CaptureError> {
    let mut frames = Frames::new(input)?;
    let mut arrivals = Vec::new();
    while let Some((_, nanos, seen)) = frames.next()? {
        arrivals.push(Arrival::of(nanos, &seen));
    }
    match frames.damage {
        Some(damage) => Err(damage),
        None => Ok((arrivals, frames.is_cut)),
    }
}
