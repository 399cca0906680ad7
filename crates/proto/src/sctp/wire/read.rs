use core::net::IpAddr;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::sctp::chunk::{
    DataChunk, ForwardChunk, InitChunk, Reconfig, RepairChunk, RepairFactors, SackChunk, SctpChunk,
    Skipped, Stamp, StampEcho,
};
use crate::sctp::data::SctpData;
use crate::sctp::offer::AuthOffer;
use crate::sctp::packet::{COMMON_HEADER, SctpPacket};

use super::asconf::OfferReader;
use super::reader::{Read, Reader};
use super::{SctpWireError, kind, parameter};

/// The most addresses of a peer that are read.
const MOST_ADDRESSES: usize = 16;
/// The most parameters that are reported as unknown.
const MOST_UNKNOWN: usize = 16;

impl SctpPacket {
    /// The packet that these bytes are, from the common header on.
    ///
    /// # Errors
    /// If they are none: the packet must be dropped.
    pub fn decode(bytes: &Bytes) -> Result<Self, SctpWireError> {
        let mut reader = Reader { bytes: bytes.clone() };
        let source = reader.u16("the header")?;
        let destination = reader.u16("the header")?;
        let tag = reader.u32("the header")?;
        let sum = reader.take(4, "the header")?;
        let computed = crc32c::crc32c(&bytes[..COMMON_HEADER - 4]);
        let computed = crc32c::crc32c_append(computed, &[0; 4]);
        let computed = crc32c::crc32c_append(computed, &reader.bytes);
        if computed.to_le_bytes() != *sum {
            return Err(SctpWireError::Checksum);
        }
        if source == 0 || destination == 0 {
            return Err(SctpWireError::Value("port"));
        }
        // What is kept of a packet keeps all of it: little content is copied.
        let least = bytes.len() / 2;
        let mut chunks = Vec::with_capacity(2);
        while !reader.bytes.is_empty() {
            let mut chunk = reader.chunk()?;
            if let SctpChunk::Auth(auth) = &mut chunk {
                // RFC 4895 section 5.1.
                if chunks.iter().any(|chunk| matches!(chunk, SctpChunk::Auth(_))) {
                    return Err(SctpWireError::Value("second AUTH chunk"));
                }
                auth.covered = reader.bytes.clone();
            }
            let content = match &mut chunk {
                SctpChunk::Data(DataChunk { data: SctpData::Bytes(data), .. })
                | SctpChunk::Repair(RepairChunk { data: SctpData::Bytes(data), .. }) => Some(data),
                _ => None,
            };
            if let Some(data) = content.filter(|data| data.len() < least) {
                *data = Bytes::copy_from_slice(data);
            }
            // Types whose highest bit is not set end the packet for those who do not know them.
            let is_end = matches!(chunk, SctpChunk::Unknown { kind, .. } if kind < 0x80);
            chunks.push(chunk);
            if is_end {
                break;
            }
        }
        let alone = |chunk: &SctpChunk| {
            matches!(
                chunk,
                SctpChunk::Init(_) | SctpChunk::InitAck(_) | SctpChunk::ShutdownComplete { .. }
            )
        };
        if chunks.len() > 1 && chunks.iter().any(alone) {
            return Err(SctpWireError::Value("bundle"));
        }
        Ok(Self { source, destination, tag, chunks })
    }
}

impl Reader {
    fn chunk(&mut self) -> Read<SctpChunk> {
        let [kind, flags] = self.array("a chunk")?;
        let len = self.u16("a chunk")?;
        let mut content = self.framed(len, "a chunk")?;
        let chunk = match kind {
            kind::DATA | kind::I_DATA => return content.data(flags, kind == kind::I_DATA),
            kind::INIT => SctpChunk::Init(Box::new(content.init()?)),
            kind::INIT_ACK => SctpChunk::InitAck(Box::new(content.init()?)),
            kind::SACK | kind::NR_SACK => {
                SctpChunk::Sack(Box::new(content.sack(flags, kind == kind::NR_SACK)?))
            }
            kind::HEARTBEAT => SctpChunk::Heartbeat(content.heartbeat()?),
            kind::HEARTBEAT_ACK => SctpChunk::HeartbeatAck(content.heartbeat()?),
            kind::ABORT => {
                SctpChunk::Abort { is_reflected: flags & 1 != 0, causes: content.causes()? }
            }
            kind::SHUTDOWN => SctpChunk::Shutdown { cumulative: content.u32("SHUTDOWN")? },
            kind::SHUTDOWN_ACK => SctpChunk::ShutdownAck,
            kind::ERROR => SctpChunk::Error(content.causes()?),
            kind::COOKIE_ECHO => return Ok(SctpChunk::CookieEcho(content.bytes)),
            kind::COOKIE_ACK => SctpChunk::CookieAck,
            kind::ECNE => SctpChunk::EcnEcho(content.u32("ECNE")?),
            kind::CWR => SctpChunk::WindowReduced(content.u32("CWR")?),
            kind::SHUTDOWN_COMPLETE => SctpChunk::ShutdownComplete { is_reflected: flags & 1 != 0 },
            kind::FORWARD | kind::I_FORWARD => {
                SctpChunk::Forward(content.forward(kind == kind::I_FORWARD)?)
            }
            kind::RECONFIG => SctpChunk::Reconfig(content.reconfig()?),
            kind::AUTH => return Ok(SctpChunk::Auth(content.auth()?)),
            kind::ASCONF => SctpChunk::Asconf(content.asconf()?),
            kind::ASCONF_ACK => SctpChunk::AsconfAck(content.asconf_ack()?),
            kind::REPAIR => return content.repair(RepairFactors::Window),
            kind::RAPTORQ_REPAIR => return content.repair(RepairFactors::RaptorQ),
            kind::RESTORED => SctpChunk::Restored(content.restored()?),
            kind::STAMP => SctpChunk::Stamp(content.stamp()?),
            kind::ECHO => SctpChunk::Echo(StampEcho {
                stamp: content.stamp()?,
                received: content.u64("an echo")?,
                held: content.u64("an echo")?,
                number: content.u32("an echo")?,
            }),
            _ => return Ok(SctpChunk::Unknown { kind, flags, value: content.bytes }),
        };
        content.end("a chunk")?;
        Ok(chunk)
    }

    fn data(mut self, flags: u8, is_interleaved: bool) -> Read<SctpChunk> {
        let tsn = self.u32("DATA")?;
        let stream = self.u16("DATA")?;
        let is_first = flags & 2 != 0;
        let (message, fragment, protocol);
        if is_interleaved {
            self.u16("I-DATA")?;
            message = self.u32("I-DATA")?;
            let last = self.u32("I-DATA")?;
            (fragment, protocol) = if is_first { (0, last) } else { (last, 0) };
        } else {
            message = self.u16("DATA")?.into();
            (fragment, protocol) = (0, self.u32("DATA")?);
        }
        if self.bytes.is_empty() {
            return Err(SctpWireError::Value("DATA chunk without data"));
        }
        Ok(SctpChunk::Data(DataChunk {
            tsn,
            stream,
            message,
            fragment,
            protocol,
            is_interleaved,
            is_first,
            is_last: flags & 1 != 0,
            is_unordered: flags & 4 != 0,
            is_immediate: flags & 8 != 0,
            data: SctpData::Bytes(self.bytes),
        }))
    }

    fn repair(mut self, factors: RepairFactors) -> Read<SctpChunk> {
        let first = self.u32("a repair")?;
        let count = self.u16("a repair")?;
        self.u16("a repair")?;
        let id = self.u32("a repair")?;
        let head = self.array("a repair")?;
        if count == 0 || self.bytes.is_empty() {
            return Err(SctpWireError::Value("sum of nothing"));
        }
        let data = SctpData::Bytes(self.bytes);
        Ok(SctpChunk::Repair(RepairChunk { first, count, id, factors, head, data }))
    }

    fn restored(&mut self) -> Read<SmallVec<[u32; 4]>> {
        let mut tsns = SmallVec::new();
        while !self.bytes.is_empty() {
            tsns.push(self.u32("restored chunks")?);
        }
        Ok(tsns)
    }

    fn init(&mut self) -> Read<InitChunk> {
        let mut init = InitChunk {
            tag: self.u32("INIT")?,
            window: self.u32("INIT")?,
            outbound: self.u16("INIT")?,
            inbound: self.u16("INIT")?,
            tsn: self.u32("INIT")?,
            addresses: SmallVec::new(),
            cookie: None,
            extensions: SmallVec::new(),
            forwards: false,
            ecn: false,
            auth: AuthOffer::None,
            unknown: Vec::new(),
        };
        if init.tag == 0 {
            return Err(SctpWireError::Value("tag of zero"));
        }
        if init.outbound == 0 || init.inbound == 0 {
            return Err(SctpWireError::Value("number of streams of zero"));
        }
        let mut offer = OfferReader::default();
        while !self.bytes.is_empty() {
            let kind = self.u16("a parameter")?;
            let len = self.u16("a parameter")?;
            let mut value = self.framed(len, "a parameter")?;
            match kind {
                parameter::IPV4 => init.address(IpAddr::from(value.array::<4>("an address")?)),
                parameter::IPV6 => init.address(IpAddr::from(value.array::<16>("an address")?)),
                parameter::COOKIE => init.cookie = Some(value.bytes),
                parameter::ECN => init.ecn = true,
                parameter::FORWARDS => init.forwards = true,
                parameter::EXTENSIONS => {
                    init.extensions = value.bytes.iter().take(64).copied().collect();
                }
                parameter::RANDOM | parameter::CHUNKS | parameter::HASHES => {
                    offer.take(kind, &value.bytes);
                }
                // It is the upper layer's (RFC 5061 section 4.2.6), and none here wants it.
                parameter::ADAPTATION => {}
                // What the peer does not know: it will not use it.
                parameter::UNKNOWN => {}
                _ => {
                    if kind & 0x4000 != 0 && init.unknown.len() < MOST_UNKNOWN {
                        init.unknown.push((kind, value.bytes));
                    }
                    if kind & 0x8000 == 0 && !is_known(kind) {
                        self.bytes.clear();
                    }
                }
            }
        }
        init.auth = offer.offer();
        Ok(init)
    }

    fn sack(&mut self, flags: u8, is_kept: bool) -> Read<SackChunk> {
        const OF: &str = "SACK";
        let cumulative = self.u32(OF)?;
        let window = self.u32(OF)?;
        let gaps = usize::from(self.u16(OF)?);
        let kept = if is_kept { usize::from(self.u16(OF)?) } else { 0 };
        let duplicates = usize::from(self.u16(OF)?);
        if is_kept {
            self.u16(OF)?;
        }
        if self.bytes.len() != (gaps + kept + duplicates) * 4 {
            return Err(SctpWireError::Length(OF));
        }
        let mut runs = |count| -> Read<SmallVec<[(u16, u16); 4]>> {
            let run = |_| {
                let (first, last) = (self.u16(OF)?, self.u16(OF)?);
                if first == 0 || last < first {
                    return Err(SctpWireError::Value("gap block"));
                }
                Ok((first, last))
            };
            (0..count).map(run).collect()
        };
        let gaps = runs(gaps)?;
        let kept = if is_kept { Some(runs(kept)?) } else { None };
        let duplicates = (0..duplicates).map(|_| self.u32(OF)).collect::<Read<_>>()?;
        Ok(SackChunk { cumulative, window, gaps, kept, duplicates, packets: flags >> 6 })
    }

    fn heartbeat(&mut self) -> Read<Bytes> {
        let kind = self.u16("HEARTBEAT")?;
        let len = self.u16("HEARTBEAT")?;
        if kind != 1 {
            return Err(SctpWireError::Value("HEARTBEAT"));
        }
        Ok(self.framed(len, "HEARTBEAT")?.bytes)
    }

    fn forward(&mut self, is_interleaved: bool) -> Read<ForwardChunk> {
        const OF: &str = "FORWARD-TSN";
        let cumulative = self.u32(OF)?;
        let mut skipped = SmallVec::new();
        while !self.bytes.is_empty() {
            let stream = self.u16(OF)?;
            skipped.push(if is_interleaved {
                let is_unordered = self.u16(OF)? & 1 != 0;
                Skipped { stream, is_unordered, message: self.u32(OF)? }
            } else {
                Skipped { stream, is_unordered: false, message: self.u16(OF)?.into() }
            });
        }
        Ok(ForwardChunk { cumulative, is_interleaved, skipped })
    }

    /// Requests and answers: a chunk holds two of them at most (RFC 6525 section 3.1).
    fn reconfig(&mut self) -> Read<SmallVec<[Reconfig; 2]>> {
        const OF: &str = "RE-CONFIG";
        let mut parameters = SmallVec::new();
        while !self.bytes.is_empty() {
            if parameters.len() == 2 {
                return Err(SctpWireError::Value("third parameter of RE-CONFIG"));
            }
            let kind = self.u16(OF)?;
            let len = self.u16(OF)?;
            let mut value = self.framed(len, OF)?;
            let number = value.u32(OF)?;
            parameters.push(match kind {
                parameter::RESET_OUTGOING => Reconfig::ResetOutgoing {
                    number,
                    answers: value.u32(OF)?,
                    last: value.u32(OF)?,
                    streams: value.streams()?,
                },
                parameter::RESET_INCOMING => {
                    Reconfig::ResetIncoming { number, streams: value.streams()? }
                }
                parameter::ANSWER => {
                    Reconfig::Answer { number, result: value.u32(OF)?, details: value.bytes }
                }
                parameter::RESET_NUMBERS | parameter::ADD_OUTGOING | parameter::ADD_INCOMING => {
                    Reconfig::Other { kind, number, details: value.bytes }
                }
                _ => return Err(SctpWireError::Value("parameter of RE-CONFIG")),
            });
        }
        Ok(parameters)
    }

    fn streams(&mut self) -> Read<SmallVec<[u16; 4]>> {
        let mut streams = SmallVec::new();
        while !self.bytes.is_empty() {
            streams.push(self.u16("RE-CONFIG")?);
        }
        Ok(streams)
    }

    fn stamp(&mut self) -> Read<Stamp> {
        let [path, ..] = self.array::<4>("a stamp")?;
        Ok(Stamp { path, sent: self.u64("a stamp")? })
    }
}

/// Whether a parameter is known, and means nothing here: a cookie's preservative, a host name,
/// supported types of addresses.
const fn is_known(kind: u16) -> bool {
    matches!(kind, 9 | 11 | 12)
}

impl InitChunk {
    fn address(&mut self, address: IpAddr) {
        if self.addresses.len() < MOST_ADDRESSES {
            self.addresses.push(address);
        }
    }
}
