use fontis_base::Duration;
use fontis_proto::dfcp::{DfcpPacket, Frame};
use fontis_proto::{dccp, published, sctp, tcp};

use crate::packet::{Kind, Marks};

/// What can be read of a packet's transport header, in the terms that all transports share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PacketHeader {
    /// What the packet is for.
    pub kind: Kind,
    /// The first byte, chunk or symbol that it carries, as the wire counts.
    pub seq: Option<u64>,
    /// How many.
    pub len: u32,
    /// Bytes of data in it, if they are not what is counted.
    pub data: Option<u32>,
    /// The cumulative acknowledgement: the next that is wanted, as the wire counts.
    pub ack: Option<u64>,
    /// What has arrived beyond it: begin and end, exclusive.
    pub sack: Vec<(u64, u64)>,
    /// How long ago what is acknowledged had arrived when this was sent.
    pub ack_delay: Duration,
    /// The receive window, as it stands in the header.
    pub window: Option<u32>,
    /// Whether that is the window itself, and no scale is to be applied.
    pub window_is_whole: bool,
    /// By how much the windows of its sender are to be shifted, in a SYN.
    pub window_scale: Option<u8>,
    /// It begins a connection.
    pub syn: bool,
    /// TSval and TSecr (RFC 7323), or what the transport has like them.
    pub timestamps: Option<(u32, u32)>,
    /// Bits in the counters of the wire: they wrap at two to this power. 64 where packets are
    /// numbered, each once.
    pub bits: u8,
    /// The path, if the header names one.
    pub path: u8,
    /// Symbols of a block, and what is said of blocks.
    pub blocks: BlockReport,
    /// Whether all of it was sent before, if that does not follow from the order of numbers.
    pub again: Option<bool>,
    /// Marks that the header itself says.
    pub marks: Marks,
}

/// What a packet says of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockReport {
    /// Symbols that it carries.
    pub symbols: Vec<SymbolRange>,
    /// How objects are cut: channel, bytes in the object, in a block, in a symbol.
    pub opened: Vec<(u32, u64, u32, u32)>,
    /// What the receiver says.
    pub status: Vec<ChannelStatus>,
    /// It ends the connection: nothing more is wanted.
    pub closes: bool,
}

/// What a receiver says of a channel's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelStatus {
    /// The channel.
    pub channel: u32,
    /// All blocks below this one are done.
    pub floor: u32,
    /// Single blocks, and how many symbols each lacks.
    pub needs: Vec<(u32, u32)>,
}

/// Consecutive symbols of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolRange {
    /// The channel.
    pub channel: u32,
    /// The block.
    pub block: u32,
    /// The first symbol.
    pub esi: u32,
    /// How many.
    pub count: u32,
    /// Symbols of the block itself, if the packet says it.
    pub k: Option<u32>,
    /// Bytes of each, if it is not what was said when the channel was opened.
    pub size: Option<u32>,
}

impl PacketHeader {
    /// A packet of which nothing but its kind can be said.
    pub fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Whether packets are numbered, each once, in place of what they carry.
    pub const fn is_numbered(&self) -> bool {
        self.bits >= 64
    }

    /// What a segment of the simulator's TCP says.
    pub fn of_tcp(segment: &tcp::Segment) -> Self {
        use tcp::TcpFlags;
        let has = |flag| segment.flags.has(flag);
        let kind = match () {
            () if has(TcpFlags::SYN) || has(TcpFlags::FIN) && segment.len == 0 => Kind::Handshake,
            () if has(TcpFlags::RST) => Kind::Handshake,
            () if segment.len > 0 => Kind::Data,
            () => Kind::Ack,
        };
        let sack = segment.sack().iter();
        Self {
            kind,
            seq: Some(u64::from(segment.seq) + u64::from(has(TcpFlags::SYN))),
            len: segment.len,
            ack: has(TcpFlags::ACK).then_some(u64::from(segment.ack)),
            sack: sack.map(|(left, right)| (u64::from(*left), u64::from(*right))).collect(),
            window: Some(u32::from(segment.window)),
            window_scale: segment.syn().and_then(|syn| syn.window_scale),
            syn: has(TcpFlags::SYN),
            timestamps: segment.timestamps().map(|at| (at.value, at.echo)),
            bits: 32,
            ..Self::default()
        }
    }

    /// What a DCCP packet says.
    pub fn of_dccp(packet: &dccp::DccpPacket) -> Self {
        use dccp::DccpBody;
        let kind = match packet.body {
            DccpBody::Data | DccpBody::DataAck { .. } => Kind::Data,
            DccpBody::Ack { .. } => Kind::Ack,
            _ => Kind::Handshake,
        };
        Self {
            kind,
            seq: Some(packet.seq.get()),
            len: 1,
            ack: packet.ack().map(|ack| ack.next().get()),
            // Every packet has a number of its own (RFC 4340 section 7).
            bits: 64,
            ..Self::default()
        }
    }

    /// What an SCTP packet says.
    pub fn of_sctp(packet: &sctp::SctpPacket) -> Self {
        use sctp::SctpChunk;
        let mut header = Self { kind: Kind::Control, bits: 32, ..Self::default() };
        for chunk in &packet.chunks {
            match chunk {
                SctpChunk::Data(data) => {
                    header.kind = Kind::Data;
                    header.seq.get_or_insert(data.tsn.into());
                    header.len += 1;
                    *header.data.get_or_insert(0) += data.data.len() as u32;
                }
                SctpChunk::Sack(sack) => {
                    header.kind = if header.len > 0 { Kind::Data } else { Kind::Ack };
                    let next = u64::from(sack.cumulative.wrapping_add(1));
                    header.ack = Some(next);
                    let runs = sack.gaps.iter().chain(sack.kept.iter().flatten());
                    let tsn =
                        |offset: u16| u64::from(sack.cumulative.wrapping_add(u32::from(offset)));
                    let run = |(first, last): &(u16, u16)| {
                        (tsn(*first), u64::from((tsn(*last) as u32).wrapping_add(1)))
                    };
                    header.sack = runs.map(run).collect();
                    (header.window, header.window_is_whole) = (Some(sack.window), true);
                }
                SctpChunk::Stamp(stamp) => header.path = stamp.path,
                SctpChunk::Echo(echo) => header.ack_delay = Duration::from_nanos(echo.held),
                SctpChunk::Init(_)
                | SctpChunk::InitAck(_)
                | SctpChunk::CookieEcho(_)
                | SctpChunk::CookieAck => header.kind = Kind::Handshake,
                _ => {}
            }
        }
        header
    }

    /// What a DFCP packet says, when it can be read.
    pub fn of_dfcp(packet: &DfcpPacket) -> Self {
        let (path, number, frames) = match packet {
            DfcpPacket::Sealed { path, number, frames, .. } => (*path, *number, &frames[..]),
            _ => return Self::of(Kind::Handshake),
        };
        let mut header = Self {
            kind: Kind::Control,
            path,
            seq: Some(number),
            len: 1,
            bits: 64,
            ..Self::default()
        };
        let (mut data, mut ack, mut ends) = (false, false, false);
        for frame in frames {
            match frame {
                Frame::Symbols(symbols) => {
                    data = true;
                    let bytes = header.data.get_or_insert(0);
                    *bytes = bytes.saturating_add(symbols.len.into());
                    let size = u32::from(symbols.len).checked_div(u32::from(symbols.count));
                    let k = symbols
                        .live
                        .zip(size)
                        .map(|(live, size)| live.block_len.div_ceil(size.max(1)));
                    header.blocks.symbols.push(SymbolRange {
                        channel: symbols.channel,
                        block: symbols.block,
                        esi: symbols.esi,
                        count: u32::from(symbols.count),
                        k,
                        size: size.filter(|_| symbols.whole),
                    });
                }
                Frame::Feedback(feedback) => {
                    ack = true;
                    header.ack = Some(feedback.largest.saturating_add(1));
                    header.ack_delay = Duration::from_micros(u64::from(feedback.delay_us));
                }
                Frame::Blocks(status) => {
                    ack = true;
                    let needs =
                        status.blocks.iter().map(|need| (need.block, need.needed)).collect();
                    let (channel, floor) = (status.channel, status.floor);
                    header.blocks.status.push(ChannelStatus { channel, floor, needs });
                }
                Frame::Open(open) => header.blocks.opened.push((
                    open.channel,
                    open.object.size,
                    open.object.block_size,
                    u32::from(open.object.symbol_size),
                )),
                Frame::Done { channel } => {
                    ack = true;
                    let needs = Vec::new();
                    header.blocks.status.push(ChannelStatus {
                        channel: *channel,
                        floor: u32::MAX,
                        needs,
                    });
                }
                Frame::Close { .. } => {
                    ends = true;
                    header.blocks.closes = true;
                }
                Frame::Confirm | Frame::Fin | Frame::FinAck => ends = true,
                _ => {}
            }
        }
        header.kind = match () {
            () if data => Kind::Data,
            () if ends => Kind::Handshake,
            () if ack => Kind::Ack,
            () => Kind::Control,
        };
        header
    }

    /// What a packet of the DFCP of 2015 says.
    pub fn of_published(packet: &published::PublishedPacket) -> Self {
        use published::{Body, PublishedFlags};
        let flags = packet.header.flags;
        let block = packet.header.block;
        let kind = match () {
            () if flags.has(PublishedFlags::SYN)
                || flags.has(PublishedFlags::FIN)
                || flags.has(PublishedFlags::RST) =>
            {
                Kind::Handshake
            }
            () if flags.has(PublishedFlags::ACK) => Kind::Ack,
            () => Kind::Data,
        };
        let mut header = Self { kind, bits: 32, ..Self::default() };
        if let Body::Symbols(symbols) = &packet.body {
            header.data = Some(symbols.len);
            // Its symbols are bytes without numbers: they are counted as they come.
            header.blocks.symbols.push(SymbolRange {
                channel: 0,
                block,
                esi: 0,
                count: symbols.len,
                k: None,
                size: None,
            });
        }
        if kind == Kind::Ack && block > 0 {
            let needs = vec![(block, 0)];
            header.blocks.status.push(ChannelStatus { channel: 0, floor: 0, needs });
        }
        header
    }
}
