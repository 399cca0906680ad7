//! The wire format of frames and handshake payloads: what packet protection seals.
//! `docs/protocol.md` is its specification. Decoding never panics and never allocates more than the
//! input's length justifies.

use bytes::{Buf, Bytes};
use fontis_base::Rate;
use smallvec::SmallVec;
use thiserror::Error;

use super::feedback::Feedback;
use super::message_run::MessageRun;
use super::packet::{
    BlockNeed, BlockStatus, Frame, Frames, Hello, Live, LiveKind, ObjectShape, Open, SymbolsFrame,
};
use super::params::{ParamFields, Params};
use crate::wire::{self, take_varint};

/// Bytes of a token at most.
pub const MAX_TOKEN: usize = 128;
/// The most frames that a packet holds: many small ones cost more than a long one.
pub const MAX_FRAMES: usize = 128;
/// The highest limit that can be told, in bit/s.
const MAX_LIMIT: u64 = (1 << 62) - 2;

mod kind {
    pub(super) const PADDING: u8 = 0x00;
    pub(super) const PING: u8 = 0x01;
    pub(super) const CONFIRM: u8 = 0x02;
    pub(super) const FEEDBACK: u8 = 0x03;
    pub(super) const BLOCKS: u8 = 0x04;
    pub(super) const OPEN: u8 = 0x05;
    pub(super) const DONE: u8 = 0x06;
    pub(super) const ABANDON: u8 = 0x07;
    pub(super) const FIN: u8 = 0x08;
    pub(super) const FINACK: u8 = 0x09;
    pub(super) const CLOSE: u8 = 0x0a;
    pub(super) const CHALLENGE: u8 = 0x0b;
    pub(super) const RESPONSE: u8 = 0x0c;
    pub(super) const LIMIT: u8 = 0x0d;
    pub(super) const TOKEN: u8 = 0x0e;
    pub(super) const PATH_CLOSED: u8 = 0x0f;
    pub(super) const SPARE: u8 = 0x10;
    pub(super) const GIVEN_UP: u8 = 0x11;
    pub(super) const GIVEN_UP_ORDERED: u8 = 0x12;
    /// Symbols: the low six bits are flags.
    pub(super) const SYMBOLS: u8 = 0x40;
}

mod flag {
    /// The data's length is given; without it the data ends with the packet.
    pub(super) const LENGTH: u8 = 0x01;
    /// The block is described here.
    pub(super) const LIVE: u8 = 0x02;
    /// The block is the channel's last.
    pub(super) const FIN: u8 = 0x04;
    /// The same bit where no block is described: its symbols have the size of these.
    pub(super) const WHOLE: u8 = FIN;
    /// The channel is a message.
    pub(super) const MESSAGE: u8 = 0x08;
    /// The channel is an ordered message.
    pub(super) const ORDERED: u8 = 0x10;
    /// More than one symbol.
    pub(super) const COUNT: u8 = 0x20;
}

/// Bytes that packet protection adds to the frames of a sealed packet: type, connection identifier,
/// packet number, tag.
pub const SEALED_OVERHEAD: usize = 1 + 8 + 4 + 16;
/// Bytes of a SYN around its hello: type, version, identifier, length, and Noise's keys and tags.
pub const SYN_OVERHEAD: usize = 1 + 4 + 8 + 2 + 96;
/// Bytes of a SYNACK around its hello: type, destination, length, Noise's key and tag, and the
/// sender's identifier.
pub const SYNACK_OVERHEAD: usize = 1 + 8 + 2 + 48 + 8;
/// Bytes of a RESET.
pub const RESET_LEN: usize = 1 + 8 + 16;

/// The longest label of an [`Open`] frame, in bytes.
pub const MAX_LABEL: usize = 1024;
/// The most blocks that one [`BlockStatus`] lists.
pub const MAX_BLOCKS: usize = 128;
/// The most runs that one [`Feedback`] lists.
pub const MAX_RUNS: usize = 512;
/// The most receive times that one [`Feedback`] lists.
pub const MAX_SAMPLES: usize = 32;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DfcpWireError {
    /// The input ends inside a field.
    #[error("the packet is truncated")]
    Truncated,
    /// A frame of a kind that this version does not know.
    #[error("unknown frame type {0:#04x}")]
    UnknownFrame(u8),
    /// A field has a value that it may not have.
    #[error("the field {0} has a forbidden value")]
    Forbidden(&'static str),
}

/// Where encoded bytes go: a buffer, or only a count of them.
trait Sink {
    fn slice(&mut self, bytes: &[u8]);

    /// A variable-length integer as in RFC 9000, section 16.
    fn varint(&mut self, value: u64) {
        self.long_varint(value, 1);
    }

    /// The same, in `least` bytes or more.
    fn long_varint(&mut self, value: u64, least: usize) {
        wire::varint(value, least, |bytes| self.slice(bytes));
    }

    fn zeros(&mut self, count: usize) {
        for _ in 0..count {
            self.slice(&[0]);
        }
    }
}

impl Sink for Vec<u8> {
    fn slice(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
}

struct Counter(usize);

impl Sink for Counter {
    fn slice(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn zeros(&mut self, count: usize) {
        self.0 += count;
    }
}

/// Encodes frames; only the last may be of indefinite length, so only there is a symbol's length
/// left out.
pub fn encode_frames(frames: &[Frame], out: &mut Vec<u8>) {
    for (index, frame) in frames.iter().enumerate() {
        encode(frame, index + 1 == frames.len(), out);
    }
}

/// The number of bytes that [`encode_frames`] writes (for symbols without bytes, what they stand
/// for).
pub fn frames_len(frames: &[Frame]) -> usize {
    let mut counter = Counter(0);
    for (index, frame) in frames.iter().enumerate() {
        encode(frame, index + 1 == frames.len(), &mut counter);
    }
    counter.0
}

/// The number of bytes of one frame with its length spelt out.
pub fn frame_len(frame: &Frame) -> usize {
    let mut counter = Counter(0);
    encode(frame, false, &mut counter);
    counter.0
}

/// The number of bytes of a feedback frame.
pub(super) fn feedback_len(feedback: &Feedback) -> usize {
    let mut counter = Counter(0);
    encode_feedback(feedback, &mut counter);
    counter.0
}

/// Decodes the frames of a sealed packet. Symbols, and nothing else, refer to the packet's bytes
/// without copying them.
pub fn decode_frames(bytes: Bytes) -> Result<Frames, DfcpWireError> {
    let mut frames = Frames::new();
    decode_frames_into(bytes, &mut frames)?;
    Ok(frames)
}

/// The same, added to `frames`; if it fails some may be there.
pub fn decode_frames_into(mut bytes: Bytes, frames: &mut Frames) -> Result<(), DfcpWireError> {
    while bytes.has_remaining() {
        if frames.len() >= MAX_FRAMES {
            return Err(DfcpWireError::Forbidden("number of frames"));
        }
        frames.push(decode(&mut bytes)?);
    }
    Ok(())
}

/// Encodes what a handshake message carries.
pub fn encode_hello(hello: &Hello, out: &mut Vec<u8>) {
    hello_into(hello, out);
}

/// The number of bytes that [`encode_hello`] writes.
pub fn hello_len(hello: &Hello) -> usize {
    let mut counter = Counter(0);
    hello_into(hello, &mut counter);
    counter.0
}

/// Decodes what a handshake message carries.
pub fn decode_hello(mut bytes: Bytes) -> Result<Hello, DfcpWireError> {
    let count = usize::from(u8_of(&mut bytes)?);
    let codes = take(&mut bytes, count)?.to_vec();
    let params = Params::new(ParamFields {
        codes,
        window: u32_of(&mut bytes, "window")?,
        max_block: u32_of(&mut bytes, "max_block")?,
        symbol_size: u16_of(&mut bytes, "symbol_size")?,
        idle_timeout_ms: u32_of(&mut bytes, "idle_timeout")?,
        reset_token: array(&mut bytes)?,
    })
    .map_err(|error| DfcpWireError::Forbidden(error.field))?;
    let frames = decode_frames(bytes)?.into_vec();
    Ok(Hello { params, frames })
}

fn hello_into(hello: &Hello, out: &mut impl Sink) {
    let params = hello.params.fields();
    out.slice(&[params.codes.len() as u8]);
    out.slice(&params.codes);
    out.varint(u64::from(params.window));
    out.varint(u64::from(params.max_block));
    out.varint(u64::from(params.symbol_size));
    out.varint(u64::from(params.idle_timeout_ms));
    out.slice(&params.reset_token);
    for (index, frame) in hello.frames.iter().enumerate() {
        encode(frame, index + 1 == hello.frames.len(), out);
    }
}

fn encode(frame: &Frame, last: bool, out: &mut impl Sink) {
    match frame {
        Frame::Padding(length) => {
            out.slice(&[kind::PADDING]);
            out.slice(&length.to_be_bytes());
            out.zeros(usize::from(*length));
        }
        Frame::Ping => out.slice(&[kind::PING]),
        Frame::Confirm => out.slice(&[kind::CONFIRM]),
        Frame::Symbols(symbols) => encode_symbols(symbols, last, out),
        Frame::Feedback(feedback) => encode_feedback(feedback, out),
        Frame::Blocks(status) => encode_status(status, out),
        Frame::Open(open) => {
            out.slice(&[kind::OPEN]);
            out.varint(u64::from(open.channel));
            out.varint(open.object.size);
            out.varint(u64::from(open.object.block_size));
            out.varint(u64::from(open.object.symbol_size));
            out.slice(&[open.object.code]);
            out.varint(open.label.len() as u64);
            out.slice(&open.label);
        }
        Frame::Done { channel } => {
            out.slice(&[kind::DONE]);
            out.varint(u64::from(*channel));
        }
        Frame::Abandon { channel, code, sequence } => {
            out.slice(&[kind::ABANDON]);
            out.varint(u64::from(*channel));
            out.varint(u64::from(*code));
            out.varint(sequence.map_or(0, |sequence| u64::from(sequence) + 1));
        }
        Frame::GivenUp(run) => {
            out.slice(&[if run.is_ordered() { kind::GIVEN_UP_ORDERED } else { kind::GIVEN_UP }]);
            out.varint(u64::from(run.first()));
            out.varint(u64::from(run.count()));
        }
        Frame::Fin => out.slice(&[kind::FIN]),
        Frame::FinAck => out.slice(&[kind::FINACK]),
        Frame::Challenge(token) => {
            out.slice(&[kind::CHALLENGE]);
            out.slice(token);
        }
        Frame::Response(token) => {
            out.slice(&[kind::RESPONSE]);
            out.slice(token);
        }
        Frame::Token(token) => {
            out.slice(&[kind::TOKEN]);
            out.varint(token.len() as u64);
            out.slice(token);
        }
        Frame::Limit { sequence, rate } => {
            out.slice(&[kind::LIMIT]);
            out.varint(u64::from(*sequence));
            // Zero says none; a rate of n is written as n + 1.
            out.varint(rate.map_or(0, |rate| rate.as_bps().min(MAX_LIMIT) + 1));
        }
        Frame::Spare => out.slice(&[kind::SPARE]),
        Frame::PathClosed { path } => out.slice(&[kind::PATH_CLOSED, *path]),
        Frame::Close { code, reason } => {
            out.slice(&[kind::CLOSE]);
            out.varint(u64::from(*code));
            let reason = truncate(reason, 255);
            out.slice(&[reason.len() as u8]);
            out.slice(reason.as_bytes());
        }
    }
}

fn encode_symbols(symbols: &SymbolsFrame, last: bool, out: &mut impl Sink) {
    let mut flags = 0;
    if !last {
        flags |= flag::LENGTH;
    }
    if symbols.count != 1 {
        flags |= flag::COUNT;
    }
    if symbols.whole {
        flags |= flag::WHOLE;
    }
    if let Some(live) = symbols.live {
        flags |= flag::LIVE;
        if live.fin {
            flags |= flag::FIN;
        }
        match live.kind {
            LiveKind::Stream => {}
            LiveKind::Message => flags |= flag::MESSAGE,
            LiveKind::Ordered { .. } => flags |= flag::ORDERED,
        }
    }
    out.slice(&[kind::SYMBOLS | flags]);
    out.varint(u64::from(symbols.channel));
    let least = if symbols.long { [4, 2] } else { [1, 1] };
    out.long_varint(u64::from(symbols.block), least[0]);
    out.long_varint(u64::from(symbols.esi), least[1]);
    if symbols.count != 1 {
        out.varint(u64::from(symbols.count));
    }
    if let Some(live) = symbols.live {
        out.varint(u64::from(live.block_len));
        if let LiveKind::Ordered { sequence } = live.kind {
            out.varint(u64::from(sequence));
        }
    }
    if !last {
        out.varint(u64::from(symbols.len));
    }
    if symbols.data.is_empty() {
        out.zeros(usize::from(symbols.len));
    } else {
        out.slice(&symbols.data);
    }
}

fn encode_feedback(feedback: &Feedback, out: &mut impl Sink) {
    out.slice(&[kind::FEEDBACK, feedback.path]);
    out.varint(feedback.largest);
    out.varint(feedback.received_at_us);
    out.varint(u64::from(feedback.delay_us));
    out.varint(feedback.packets);
    out.varint(feedback.bytes);
    out.varint(feedback.ce);
    out.varint(feedback.runs.len() as u64);
    for run in &feedback.runs {
        out.varint(u64::from(*run));
    }
    out.varint(feedback.samples.len() as u64);
    for (below, before_us) in &feedback.samples {
        out.varint(u64::from(*below));
        out.varint(u64::from(*before_us));
    }
}

fn encode_status(status: &BlockStatus, out: &mut impl Sink) {
    out.slice(&[kind::BLOCKS]);
    out.varint(u64::from(status.channel));
    out.varint(u64::from(status.sequence));
    out.varint(u64::from(status.floor));
    out.varint(u64::from(status.limit.saturating_sub(status.floor)));
    out.varint(status.blocks.len() as u64);
    let mut next = status.floor;
    for need in &status.blocks {
        // Zero says done; a need of n is written as n + 1.
        out.varint(u64::from(need.block.wrapping_sub(next)));
        out.varint(if need.done { 0 } else { u64::from(need.needed) + 1 });
        next = need.block.wrapping_add(1);
    }
}

fn decode(bytes: &mut Bytes) -> Result<Frame, DfcpWireError> {
    let kind = u8_of(bytes)?;
    if kind & 0xc0 == kind::SYMBOLS {
        return decode_symbols(kind & 0x3f, bytes).map(Frame::Symbols);
    }
    Ok(match kind {
        kind::PADDING => {
            let length = u16::from_be_bytes(array(bytes)?);
            take(bytes, usize::from(length))?;
            Frame::Padding(length)
        }
        kind::PING => Frame::Ping,
        kind::CONFIRM => Frame::Confirm,
        kind::FEEDBACK => Frame::Feedback(Box::new(decode_feedback(bytes)?)),
        kind::BLOCKS => Frame::Blocks(Box::new(decode_status(bytes)?)),
        kind::OPEN => {
            let channel = u32_of(bytes, "channel")?;
            let size = varint(bytes)?;
            let block_size = u32_of(bytes, "block_size")?;
            let symbol_size = u16_of(bytes, "symbol_size")?;
            let code = u8_of(bytes)?;
            let length = limited(bytes, MAX_LABEL, "label")?;
            let label = copy(bytes, length)?;
            let object = ObjectShape { size, block_size, symbol_size, code };
            Frame::Open(Box::new(Open { channel, object, label }))
        }
        kind::DONE => Frame::Done { channel: u32_of(bytes, "channel")? },
        kind::ABANDON => {
            let channel = u32_of(bytes, "channel")?;
            let code = u32_of(bytes, "code")?;
            let sequence = match varint(bytes)? {
                0 => None,
                n => Some(u32::try_from(n - 1).map_err(|_| DfcpWireError::Forbidden("sequence"))?),
            };
            Frame::Abandon { channel, code, sequence }
        }
        kind::GIVEN_UP | kind::GIVEN_UP_ORDERED => {
            let (first, count) = (u32_of(bytes, "first")?, u32_of(bytes, "count")?);
            let run = MessageRun::new(kind == kind::GIVEN_UP_ORDERED, first, count);
            Frame::GivenUp(run.ok_or(DfcpWireError::Forbidden("count"))?)
        }
        kind::FIN => Frame::Fin,
        kind::FINACK => Frame::FinAck,
        kind::CHALLENGE => Frame::Challenge(array(bytes)?),
        kind::RESPONSE => Frame::Response(array(bytes)?),
        kind::TOKEN => {
            let length = usize::from(u16_of(bytes, "token length")?);
            if length > MAX_TOKEN {
                return Err(DfcpWireError::Forbidden("token length"));
            }
            Frame::Token(copy(bytes, length)?)
        }
        kind::SPARE => Frame::Spare,
        kind::PATH_CLOSED => Frame::PathClosed { path: u8_of(bytes)? },
        kind::LIMIT => Frame::Limit {
            sequence: u32_of(bytes, "sequence")?,
            rate: varint(bytes)?.checked_sub(1).map(Rate::from_bps),
        },
        kind::CLOSE => {
            let code = u32_of(bytes, "code")?;
            let length = usize::from(u8_of(bytes)?);
            let reason = String::from_utf8_lossy(&take(bytes, length)?).into_owned();
            Frame::Close { code, reason }
        }
        unknown => return Err(DfcpWireError::UnknownFrame(unknown)),
    })
}

fn decode_symbols(flags: u8, bytes: &mut Bytes) -> Result<SymbolsFrame, DfcpWireError> {
    let channel = u32_of(bytes, "channel")?;
    let block = u32_of(bytes, "block")?;
    let esi = u32_of(bytes, "esi")?;
    let count = if flags & flag::COUNT != 0 { u16_of(bytes, "count")? } else { 1 };
    if count == 0 {
        return Err(DfcpWireError::Forbidden("count"));
    }
    let live = if flags & flag::LIVE != 0 {
        let block_len = u32_of(bytes, "block_len")?;
        let kind = match flags & (flag::MESSAGE | flag::ORDERED) {
            0 => LiveKind::Stream,
            flag::MESSAGE => LiveKind::Message,
            flag::ORDERED => LiveKind::Ordered { sequence: u32_of(bytes, "sequence")? },
            _ => return Err(DfcpWireError::Forbidden("kind")),
        };
        Some(Live { kind, block_len, fin: flags & flag::FIN != 0 })
    } else if flags & (flag::MESSAGE | flag::ORDERED) != 0 {
        return Err(DfcpWireError::Forbidden("flags"));
    } else {
        None
    };
    let length = if flags & flag::LENGTH != 0 {
        limited(bytes, usize::from(u16::MAX), "length")?
    } else {
        bytes.len()
    };
    let data = take(bytes, length)?;
    let len = u16::try_from(length).map_err(|_| DfcpWireError::Forbidden("length"))?;
    let whole = live.is_none() && flags & flag::WHOLE != 0;
    if whole && (len == 0 || len % count != 0) {
        return Err(DfcpWireError::Forbidden("length"));
    }
    Ok(SymbolsFrame { channel, block, esi, count, live, whole, long: false, len, data })
}

fn decode_feedback(bytes: &mut Bytes) -> Result<Feedback, DfcpWireError> {
    let mut feedback = Feedback {
        path: u8_of(bytes)?,
        largest: varint(bytes)?,
        received_at_us: varint(bytes)?,
        delay_us: u32_of(bytes, "delay")?,
        packets: varint(bytes)?,
        bytes: varint(bytes)?,
        ce: varint(bytes)?,
        runs: SmallVec::new(),
        samples: SmallVec::new(),
    };
    for _ in 0..limited(bytes, MAX_RUNS, "runs")? {
        feedback.runs.push(u32_of(bytes, "run")?);
    }
    for _ in 0..limited(bytes, MAX_SAMPLES, "samples")? {
        feedback.samples.push((u32_of(bytes, "sample")?, u32_of(bytes, "sample")?));
    }
    Ok(feedback)
}

fn decode_status(bytes: &mut Bytes) -> Result<BlockStatus, DfcpWireError> {
    let channel = u32_of(bytes, "channel")?;
    let sequence = u32_of(bytes, "status")?;
    let floor = u32_of(bytes, "floor")?;
    let limit = floor.saturating_add(u32_of(bytes, "limit")?);
    let count = limited(bytes, MAX_BLOCKS, "blocks")?;
    let mut blocks = Vec::with_capacity(count);
    let mut next = floor;
    for _ in 0..count {
        let step = u32_of(bytes, "block")?;
        let block = next.checked_add(step).ok_or(DfcpWireError::Forbidden("block"))?;
        next = block.checked_add(1).ok_or(DfcpWireError::Forbidden("block"))?;
        let value = u32_of(bytes, "needed")?;
        blocks.push(BlockNeed { block, needed: value.saturating_sub(1), done: value == 0 });
    }
    Ok(BlockStatus { channel, sequence, floor, limit, blocks })
}

fn take(bytes: &mut Bytes, count: usize) -> Result<Bytes, DfcpWireError> {
    if bytes.len() < count {
        return Err(DfcpWireError::Truncated);
    }
    Ok(bytes.split_to(count))
}

/// What is kept when its packet has been handled has memory of its own: a packet's may be part of a
/// much larger read.
fn copy(bytes: &mut Bytes, count: usize) -> Result<Bytes, DfcpWireError> {
    take(bytes, count).map(|taken| Bytes::copy_from_slice(&taken))
}

fn array<const N: usize>(bytes: &mut Bytes) -> Result<[u8; N], DfcpWireError> {
    let mut array = [0; N];
    bytes.try_copy_to_slice(&mut array).map_err(|_| DfcpWireError::Truncated)?;
    Ok(array)
}

fn u8_of(bytes: &mut Bytes) -> Result<u8, DfcpWireError> {
    bytes.try_get_u8().map_err(|_| DfcpWireError::Truncated)
}

fn varint(bytes: &mut Bytes) -> Result<u64, DfcpWireError> {
    take_varint(bytes).ok_or(DfcpWireError::Truncated)
}

fn u32_of(bytes: &mut Bytes, field: &'static str) -> Result<u32, DfcpWireError> {
    u32::try_from(varint(bytes)?).map_err(|_| DfcpWireError::Forbidden(field))
}

fn u16_of(bytes: &mut Bytes, field: &'static str) -> Result<u16, DfcpWireError> {
    u16::try_from(varint(bytes)?).map_err(|_| DfcpWireError::Forbidden(field))
}

fn limited(bytes: &mut Bytes, most: usize, field: &'static str) -> Result<usize, DfcpWireError> {
    usize::try_from(varint(bytes)?)
        .ok()
        .filter(|n| *n <= most)
        .ok_or(DfcpWireError::Forbidden(field))
}

/// The longest beginning of `text` that has at most `most` bytes and ends between characters.
fn truncate(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
