use std::io::Read;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use thiserror::Error;

use super::wire;
use super::wire::ip_packet::IpPacket;

/// What is wrong with a capture.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// It is none.
    #[error("it is neither pcap nor pcapng")]
    Format,
    /// Its frames are of a link layer that is not known here.
    #[error(
        "its link layer is of type {0}, which is not known here; Ethernet, raw IP, loopback and Linux's cooked captures are"
    )]
    Link(i32),
    /// Its frames do not say when they were captured.
    #[error(
        "its frames have no times (simple packets of pcapng); tcpdump and dumpcap write captures that have them"
    )]
    Timeless,
    /// Its blocks make no sense from some place on.
    #[error("frame {0} and what follows cannot be read: the file is damaged there")]
    Damaged(u64),
    /// Captures of both ends are read twice.
    #[error("it cannot be read a second time: {0}")]
    Again(String),
}

/// A frame's number, when it was captured in nanoseconds since 1970, and what is in it.
pub(super) type Numbered = (u64, u64, IpPacket);

/// The frames of a capture, one after the other.
pub(crate) struct Frames<'a> {
    reader: Box<dyn PcapReaderIterator + 'a>,
    is_pcapng: bool,
    /// Of each interface: link layer, units of time in a second, seconds to be added.
    interfaces: Vec<(i32, u64, i64)>,
    /// Units of time in a second, of pcap.
    legacy: Option<(i32, u64)>,
    pub(crate) number: u64,
    /// The last frame was cut off.
    pub(crate) is_cut: bool,
    /// It makes no sense from some frame on.
    pub(crate) damage: Option<CaptureError>,
    /// Why the last frame was not read.
    unread: Option<CaptureError>,
}

/// The largest block that is read: jumbo frames and super-packets fit, and a length that lies asks
/// for no more.
const CAPACITY: usize = 1 << 20;
const NANOS: u64 = 1_000_000_000;
/// How a section of pcapng begins.
const SECTION: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];

impl<'a> Frames<'a> {
    /// Reads the beginning of a capture.
    pub(crate) fn new(input: impl Read + Send + 'a) -> Result<Self, CaptureError> {
        let reader = create_reader(CAPACITY, input).map_err(|_| CaptureError::Format)?;
        Ok(Self {
            is_pcapng: reader.data().starts_with(SECTION),
            reader,
            interfaces: Vec::new(),
            legacy: None,
            number: 0,
            is_cut: false,
            damage: None,
            unread: None,
        })
    }

    /// The next IP packet, and when it was captured in nanoseconds since 1970; `None` at the end,
    /// or where the file is damaged if something could be read before.
    pub(crate) fn next(&mut self) -> Result<Option<Numbered>, CaptureError> {
        while !self.is_cut && self.damage.is_none() {
            let next = match is_damaged(self.is_pcapng, self.reader.data()) {
                true => Err(PcapError::HeaderNotRecognized),
                false => self.reader.next(),
            };
            let (offset, found) = match next {
                Ok((offset, block)) => {
                    let found = take(
                        block,
                        &mut self.interfaces,
                        &mut self.legacy,
                        &mut self.number,
                        &mut self.unread,
                    );
                    (offset, found)
                }
                Err(PcapError::Eof) => break,
                Err(PcapError::Incomplete(_)) => {
                    if self.reader.refill().is_err()
                        || self.reader.reader_exhausted() && {
                            // What is left is no whole block.
                            matches!(self.reader.next(), Err(PcapError::Incomplete(_)))
                        }
                    {
                        self.is_cut = true;
                        break;
                    }
                    continue;
                }
                Err(PcapError::UnexpectedEof) => {
                    self.is_cut = true;
                    break;
                }
                Err(_) => {
                    let error = CaptureError::Damaged(self.number + 1);
                    if self.number == 0 {
                        return Err(error);
                    }
                    self.damage = Some(error);
                    break;
                }
            };
            self.reader.consume(offset);
            if let Some((at, seen)) = found {
                return Ok(Some((self.number, at, seen)));
            }
        }
        match self.unread.clone() {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }
}

/// Whether a block on a process follows that is shorter than such blocks are, 16 bytes: pcap-parser
/// 0.17 computes with that length before it has checked it.
fn is_damaged(is_pcapng: bool, data: &[u8]) -> bool {
    const PROCESS: u32 = 0x8000_0001;
    let Some(&[type_, length]) = data.as_chunks::<4>().0.first_chunk::<2>() else { return false };
    let is_short = |of: fn([u8; 4]) -> u32| of(type_) == PROCESS && of(length) < 16;
    is_pcapng && (is_short(u32::from_le_bytes) || is_short(u32::from_be_bytes))
}

fn take(
    block: PcapBlockOwned<'_>,
    interfaces: &mut Vec<(i32, u64, i64)>,
    legacy: &mut Option<(i32, u64)>,
    number: &mut u64,
    unread: &mut Option<CaptureError>,
) -> Option<(u64, IpPacket)> {
    let (link, at, data) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let units = if header.is_nanosecond_precision() { NANOS } else { 1_000_000 };
            *legacy = Some((header.network.0, units));
            return None;
        }
        PcapBlockOwned::Legacy(frame) => {
            *number += 1;
            let (link, units) = (*legacy)?;
            let fraction = u64::from(frame.ts_usec) * (NANOS / units);
            (link, u64::from(frame.ts_sec) * NANOS + fraction, frame.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            return None;
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            let units = interface.ts_resolution().filter(|units| *units > 0);
            interfaces.push((
                interface.linktype.0,
                units.unwrap_or(1_000_000),
                interface.ts_offset(),
            ));
            return None;
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(frame)) => {
            *number += 1;
            let (link, units, offset) = *interfaces.get(frame.if_id as usize)?;
            let ticks = u128::from(frame.ts_high) << 32 | u128::from(frame.ts_low);
            let nanos = (ticks * u128::from(NANOS) / u128::from(units)) as u64;
            let at = nanos.saturating_add_signed(offset.saturating_mul(NANOS as i64));
            let captured = (frame.caplen as usize).min(frame.data.len());
            (link, at, &frame.data[..captured])
        }
        PcapBlockOwned::NG(Block::SimplePacket(_)) => {
            *number += 1;
            *unread = Some(CaptureError::Timeless);
            return None;
        }
        PcapBlockOwned::NG(_) => return None,
    };
    if !wire::KNOWN_LINKS.contains(&link) {
        *unread = Some(CaptureError::Link(link));
        return None;
    }
    *unread = None;
    Some((at, wire::read(link, data)?))
}

/// So many frames are looked at before the first is judged.
const PRELUDE: usize = 20_000;

pub(super) fn prelude(frames: &mut Frames<'_>) -> Result<Vec<Numbered>, CaptureError> {
    let mut all = Vec::new();
    while all.len() < PRELUDE
        && let Some(frame) = frames.next()?
    {
        all.push(frame);
    }
    Ok(all)
}
