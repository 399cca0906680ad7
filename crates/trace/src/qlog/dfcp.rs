use bytes::Bytes;
use fontis_proto::dfcp::{
    self, BlockNeed, BlockStatus, ConnectionId, Feedback, Frame, Live, LiveKind, ObjectShape, Open,
    SymbolsFrame,
};
use serde::Deserialize;
use serde_json::Value;

use super::frames::PacketFacts;
use crate::header::PacketHeader;
use crate::packet::Kind;

/// A frame as `--qlog` tells it.
#[derive(Debug, Deserialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum QlogFrame {
    Symbols {
        channel: u32,
        block: u32,
        esi: u32,
        count: u16,
        length: u16,
        block_length: Option<u32>,
        #[serde(default)]
        fin: bool,
        #[serde(default)]
        whole: bool,
    },
    Feedback {
        /// Milliseconds.
        ack_delay: f64,
        acked_ranges: Vec<(u64, u64)>,
    },
    Blocks {
        channel: u32,
        #[serde(default)]
        sequence: u32,
        floor: u32,
        blocks: Vec<Need>,
    },
    Open {
        channel: u32,
        size: u64,
        block_size: u32,
        symbol_size: u16,
    },
    Done {
        channel: u32,
    },
    Confirm,
    Fin,
    FinAck,
    Close,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Need {
    block: u32,
    needed: u32,
}

/// What a packet of DFCP says.
pub(super) fn said(number: Option<u64>, frames: &[Value]) -> PacketFacts {
    let mut acks = Vec::new();
    let frames =
        frames.iter().filter_map(|frame| of(QlogFrame::deserialize(frame).ok()?, &mut acks));
    let packet = dfcp::DfcpPacket::Sealed {
        destination: ConnectionId([0; 8]),
        path: 0,
        number: number.unwrap_or(0),
        frames: frames.collect(),
    };
    let mut header = PacketHeader::of_dfcp(&packet);
    if number.is_none() {
        // The handshake's messages are not numbered.
        (header.seq, header.len) = (None, 0);
        if header.kind != Kind::Data {
            header.kind = Kind::Handshake;
        }
    }
    PacketFacts { header, acks, stream: None, again: false }
}

fn of(told: QlogFrame, acks: &mut Vec<(u64, u64)>) -> Option<Frame> {
    Some(match told {
        QlogFrame::Symbols { channel, block, esi, count, length, block_length, fin, whole } => {
            // Which kind of channel it is does not matter here.
            let kind = LiveKind::Message;
            let live = block_length.map(|block_len| Live { kind, block_len, fin });
            let (long, len, data) = (false, length, Bytes::new());
            Frame::Symbols(SymbolsFrame {
                channel,
                block,
                esi,
                count,
                live,
                whole,
                long,
                len,
                data,
            })
        }
        QlogFrame::Feedback { ack_delay, acked_ranges } => {
            let largest = acked_ranges.iter().map(|(_, high)| *high).max()?;
            acks.extend(acked_ranges);
            let delay_us = (ack_delay.max(0.0) * 1e3) as u32;
            Frame::Feedback(Box::new(Feedback { largest, delay_us, ..Feedback::default() }))
        }
        QlogFrame::Blocks { channel, sequence, floor, blocks } => {
            let blocks = blocks.into_iter();
            let blocks = blocks
                .map(|Need { block, needed }| BlockNeed { block, needed, done: needed == 0 })
                .collect();
            let limit = u32::MAX;
            Frame::Blocks(Box::new(BlockStatus { channel, sequence, floor, limit, blocks }))
        }
        QlogFrame::Open { channel, size, block_size, symbol_size } => Frame::Open(Box::new(Open {
            channel,
            object: ObjectShape { size, block_size, symbol_size, code: 0 },
            label: Bytes::new(),
        })),
        QlogFrame::Done { channel } => Frame::Done { channel },
        QlogFrame::Confirm => Frame::Confirm,
        QlogFrame::Fin => Frame::Fin,
        QlogFrame::FinAck => Frame::FinAck,
        QlogFrame::Close => Frame::Close { code: 0, reason: String::new() },
        QlogFrame::Other => return None,
    })
}
