use core::ops::Range;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Time};
use fontis_codes::{BlockDecoder, BlockShape, Code, DecodeJob, Decoded};

use super::budget::{Account, Charge, ENTRY, Full, block_cost};
use super::packet::{BlockNeed, BlockStatus, ChannelId, Live, LiveKind, ObjectShape, SymbolsFrame};
use super::resume::{Checkpoint, Kept};
use super::shape::foreign_shape;
use super::shape::live_shape;
use super::wire::MAX_BLOCKS;

/// Bytes for which a checkpoint waits longer: on a fast path their block is soon whole, and need
/// not be stored twice.
const MUCH: usize = 256 << 10;

/// What a channel receives.
enum Sink {
    Live {
        kind: LiveKind,
        /// Decoded blocks in order, waiting for the application or for the rest of their message.
        ready: VecDeque<(Bytes, Option<Charge>)>,
        /// Bytes of the message in the blocks that have begun.
        length: u64,
    },
    Object(ObjectShape),
}

enum Block {
    Collecting {
        decoder: BlockDecoder,
        live: Option<Live>,
        fresh: Fresh,
        charge: Charge,
    },
    /// A job decodes it.
    Decoding {
        live: Option<Live>,
        charge: Charge,
    },
    /// Decoded; a live block out of order keeps its data here.
    Decoded {
        data: Option<Bytes>,
        charge: Charge,
    },
    /// Accepted by the application.
    Done,
}

impl Block {
    /// A block that goes on with what `decoder` holds.
    fn collecting(decoder: BlockDecoder, live: Option<Live>, charge: Charge) -> Self {
        Self::Collecting { decoder, live, fresh: Fresh::default(), charge }
    }
}

/// What a channel may take.
pub(super) struct Limits<'a> {
    pub(super) account: &'a Account,
    /// Whether a block is taken although the connection is full: one channel must be able to end,
    /// so that there is room again.
    pub(super) must: bool,
    /// The bytes of a message at most.
    pub(super) longest_message: u64,
}

impl Limits<'_> {
    fn take(&self, bytes: u64) -> Result<Charge, Full> {
        match self.account.take(bytes) {
            Err(Full::Connection) if self.must => Ok(self.account.force(bytes)),
            taken => taken,
        }
    }
}

/// Source symbols of a block that no checkpoint has held yet.
#[derive(Clone, Debug, Default)]
struct Fresh {
    /// They lie in this range.
    esis: Range<u32>,
    /// When the last checkpoint was, or the first symbol came.
    since: Option<Time>,
}

impl Fresh {
    fn add(&mut self, esi: u32, source_symbols: u32) {
        if esi < source_symbols {
            let empty = self.esis.is_empty();
            let start = if empty { esi } else { self.esis.start.min(esi) };
            self.esis = start..self.esis.end.max(esi + 1);
        }
    }
}

/// The receiving half of a channel.
pub(super) struct RecvChannel {
    pub(super) id: ChannelId,
    sink: Sink,
    code: Code,
    symbol_size: u16,
    max_block: u32,
    window_bytes: u32,
    blocks: BTreeMap<u32, Block>,
    /// Every block below is done.
    floor: u32,
    last: Option<u32>,
    /// How often its status was told.
    statuses: u32,
    /// Symbols that were of no use.
    pub(super) wasted: u64,
    /// Of an object: whether the application asked for it.
    pub(super) asked: Option<Asked>,
}

/// Whether the application asked for an object.
pub(super) struct Asked {
    pub(super) label: Bytes,
    pub(super) is: bool,
}

/// What came of some symbols.
pub(super) enum Received {
    /// More are needed, or these were of no use.
    Nothing,
    /// The block has enough: the job decodes it.
    Decode(DecodeJob),
    /// They cannot belong to the channel.
    Violation,
    /// There is no room for their block.
    Full(Full),
    /// The message is longer than allowed.
    TooLong,
}

impl RecvChannel {
    pub(super) fn live(
        id: ChannelId,
        live: Live,
        code: Code,
        symbol_size: u16,
        max_block: u32,
        window: u32,
    ) -> Self {
        let sink = Sink::Live { kind: live.kind, ready: VecDeque::new(), length: 0 };
        Self::new(id, sink, code, symbol_size, max_block, window)
    }

    pub(super) fn object(
        id: ChannelId,
        shape: ObjectShape,
        code: Code,
        window: u32,
        kept: Kept,
        asked: Asked,
        account: &Account,
    ) -> Self {
        let sink = Sink::Object(shape);
        let mut channel = Self::new(id, sink, code, shape.symbol_size, shape.block_size, window);
        channel.asked = Some(asked);
        let total = shape.blocks().unwrap_or(0);
        for block in kept.done.into_iter().flat_map(|range| range.start..range.end.min(total)) {
            channel.blocks.insert(block, Block::Done);
        }
        for kept in kept.begun.into_iter().filter(|kept| kept.block < total) {
            if let Some(decoder) = kept.decoder(code, shape.block_len(kept.block)) {
                // The application has it in memory already.
                let charge = account.force(block_cost(decoder.shape()));
                let begun = Block::collecting(decoder, None, charge);
                channel.blocks.entry(kept.block).or_insert(begun);
            }
        }
        channel.rise();
        channel
    }

    fn new(
        id: ChannelId,
        sink: Sink,
        code: Code,
        symbol_size: u16,
        max_block: u32,
        window_bytes: u32,
    ) -> Self {
        Self {
            id,
            sink,
            code,
            symbol_size,
            max_block,
            window_bytes,
            blocks: BTreeMap::new(),
            floor: 0,
            last: None,
            statuses: 0,
            wasted: 0,
            asked: None,
        }
    }

    pub(super) const fn kind(&self) -> Option<LiveKind> {
        match &self.sink {
            Sink::Live { kind, .. } => Some(*kind),
            Sink::Object(_) => None,
        }
    }

    fn total(&self) -> Option<u32> {
        match &self.sink {
            Sink::Live { .. } => self.last.map(|last| last + 1),
            Sink::Object(shape) => shape.blocks(),
        }
    }

    /// Whether every block is done.
    pub(super) fn is_complete(&self) -> bool {
        self.total().is_some_and(|total| self.floor >= total)
    }

    /// Blocks from here on are refused, so that what is held stays below the window.
    pub(super) fn limit(&self) -> u32 {
        self.floor.saturating_add(window_blocks(self.window_bytes, self.max_block))
    }

    /// Whether any of it has been taken.
    pub(super) fn has_begun(&self) -> bool {
        self.floor > 0 || !self.blocks.is_empty()
    }

    /// Takes symbols. A block that they begin must be within the limits.
    pub(super) fn receive(&mut self, symbols: &SymbolsFrame, limits: &Limits<'_>) -> Received {
        let index = symbols.block;
        if index < self.floor {
            self.wasted += u64::from(symbols.count);
            return Received::Nothing;
        }
        if index >= self.limit() || self.total().is_some_and(|total| index >= total) {
            return Received::Violation;
        }
        let Some(shape) = self.shape_of(symbols) else { return Received::Violation };
        let whole = usize::from(shape.symbol_size());
        if let Some(Live { fin: true, .. }) = symbols.live {
            self.last = Some(index);
        }
        let block = match self.blocks.entry(index) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let charge = match limits.take(block_cost(shape)) {
                    Ok(charge) => charge,
                    Err(full) => return Received::Full(full),
                };
                if let Sink::Live { length, kind, .. } = &mut self.sink {
                    *length += u64::from(shape.len());
                    if *kind != LiveKind::Stream && *length > limits.longest_message {
                        return Received::TooLong;
                    }
                }
                let decoder = BlockDecoder::new(shape);
                place.insert(Block::Collecting {
                    decoder,
                    live: symbols.live,
                    fresh: Fresh::default(),
                    charge,
                })
            }
        };
        let Block::Collecting { decoder, live, fresh, charge } = block else {
            self.wasted += u64::from(symbols.count);
            return Received::Nothing;
        };
        if *live != symbols.live {
            return Received::Violation;
        }
        if decoder.shape() != shape {
            if live.is_some() {
                return Received::Violation;
            }
            // A block that is begun anew has smaller symbols than before. Numbers of packets do not
            // tell which came later: each path has its own.
            let is_empty = decoder.needed() >= decoder.shape().source_symbols();
            if !is_empty && shape.symbol_size() > decoder.shape().symbol_size() {
                self.wasted += u64::from(symbols.count);
                return Received::Nothing;
            }
            // The sender has begun the block anew, in symbols that fit the path as it is now.
            *decoder = BlockDecoder::new(shape);
            charge.set(block_cost(shape));
            *fresh = Fresh::default();
        }
        let mut rest = &symbols.data[..];
        for offset in 0..u32::from(symbols.count) {
            let Some(esi) = symbols.esi.checked_add(offset) else { return Received::Violation };
            let length = if self.code.carries_bytes() { shape.symbol_len(esi) } else { 0 };
            let taken = if symbols.whole && length > 0 { whole } else { length };
            let Some((symbol, after)) = rest.split_at_checked(taken) else {
                return Received::Violation;
            };
            rest = after;
            match decoder.add(esi, &symbol[..length]) {
                Ok(true) => fresh.add(esi, shape.source_symbols()),
                Ok(false) => self.wasted += 1,
                Err(_) => return Received::Violation,
            }
        }
        if !rest.is_empty() && self.code.carries_bytes() {
            return Received::Violation;
        }
        if decoder.needed() > 0 {
            return Received::Nothing;
        }
        let Some(Block::Collecting { decoder, live, charge, .. }) = self.blocks.remove(&index)
        else {
            return Received::Nothing;
        };
        self.blocks.insert(index, Block::Decoding { live, charge });
        Received::Decode(decoder.decode_job())
    }

    fn shape_of(&self, symbols: &SymbolsFrame) -> Option<BlockShape> {
        match (&self.sink, symbols.live) {
            (Sink::Object(object), None) => {
                let size =
                    if symbols.whole { symbols.len / symbols.count } else { self.symbol_size };
                foreign_shape(self.code, object.block_len(symbols.block), size)
            }
            (Sink::Live { kind, .. }, Some(live))
                if *kind == live.kind && live.block_len <= self.max_block =>
            {
                live_shape(self.code, live.block_len, self.symbol_size)
            }
            _ => None,
        }
    }

    /// Takes the result of a decoding; the block's data if the application is to have it now. A
    /// live channel keeps it for [`take_ready`](Self::take_ready).
    pub(super) fn decoded(&mut self, index: u32, result: Decoded) -> Option<Bytes> {
        if !matches!(self.blocks.get(&index), Some(Block::Decoding { .. })) {
            return None;
        }
        let Some(Block::Decoding { live, mut charge }) = self.blocks.remove(&index) else {
            return None;
        };
        match result {
            Decoded::Failed(decoder) => {
                self.blocks.insert(index, Block::collecting(decoder, live, charge));
                None
            }
            Decoded::Block(data) => {
                if matches!(self.sink, Sink::Object(_)) {
                    charge.set(ENTRY + data.len() as u64);
                    self.blocks.insert(index, Block::Decoded { data: None, charge });
                    return Some(data);
                }
                // The blocks of a message are joined at its end.
                charge.set(ENTRY + 2 * data.len() as u64);
                self.blocks.insert(index, Block::Decoded { data: Some(data), charge });
                self.collect();
                None
            }
        }
    }

    /// Moves live blocks that are in order to where they are read from. A message's blocks count as
    /// done at once; a stream's when they are read.
    fn collect(&mut self) {
        let Sink::Live { ready, kind, .. } = &mut self.sink else { return };
        let mut next = self.floor + if *kind == LiveKind::Stream { ready.len() as u32 } else { 0 };
        while let Some(Block::Decoded { data: data @ Some(_), .. }) = self.blocks.get_mut(&next) {
            let Some(data) = data.take() else { break };
            let mut held = None;
            if *kind != LiveKind::Stream {
                if let Some(Block::Decoded { charge, .. }) = self.blocks.remove(&next) {
                    held = Some(charge);
                }
                self.floor += 1;
            }
            ready.push_back((data, held));
            next += 1;
        }
    }

    /// The next stretch of a stream, if one is there.
    pub(super) fn take_ready(&mut self) -> Option<Bytes> {
        let Sink::Live { ready, kind: LiveKind::Stream, .. } = &mut self.sink else { return None };
        let (data, _) = ready.pop_front()?;
        self.blocks.remove(&self.floor);
        self.floor += 1;
        Some(data)
    }

    /// Whether a stream can be read from.
    pub(super) fn is_readable(&self) -> bool {
        matches!(&self.sink, Sink::Live { ready, kind: LiveKind::Stream, .. } if !ready.is_empty())
    }

    /// The whole message, if it is complete.
    pub(super) fn take_message(&mut self) -> Option<(Bytes, Charge)> {
        if !self.is_complete() {
            return None;
        }
        let Sink::Live { ready, .. } = &mut self.sink else { return None };
        let length: usize = ready.iter().map(|(data, _)| data.len()).sum();
        let (first, charge) = ready.pop_front()?;
        let mut charge = charge?;
        let mut message = first;
        if !ready.is_empty() {
            let mut joined = BytesMut::with_capacity(length);
            joined.extend_from_slice(&message);
            for (piece, _) in ready.drain(..) {
                joined.extend_from_slice(&piece);
            }
            message = joined.freeze();
        }
        charge.set(ENTRY + length as u64);
        Some((message, charge))
    }

    /// The application accepts a block of an object.
    pub(super) fn release(&mut self, index: u32) {
        if let Some(block @ Block::Decoded { .. }) = self.blocks.get_mut(&index) {
            *block = Block::Done;
        }
        self.rise();
    }

    fn rise(&mut self) {
        while let Some(Block::Done) = self.blocks.get(&self.floor) {
            self.blocks.remove(&self.floor);
            self.floor += 1;
        }
    }

    /// The symbols of a block of an object that came since the last time, if that is long ago.
    pub(super) fn checkpoint(
        &mut self,
        now: Time,
        index: u32,
        every: Duration,
    ) -> Option<Checkpoint> {
        let Block::Collecting { decoder, live: None, fresh, .. } = self.blocks.get_mut(&index)?
        else {
            return None;
        };
        let waited = now.since(*fresh.since.get_or_insert(now));
        let symbol_size = decoder.shape().symbol_size();
        let is_much = fresh.esis.len() * usize::from(symbol_size) > MUCH;
        if fresh.esis.is_empty() || waited < if is_much { every * 3 } else { every } {
            return None;
        }
        fresh.since = Some(now);
        let esis = core::mem::take(&mut fresh.esis);
        let (data, runs) = decoder.source_span(esis.clone())?;
        let offset = esis.start * u32::from(symbol_size);
        let data = Bytes::copy_from_slice(data);
        Some(Checkpoint { block: index, symbol_size, offset, data, runs })
    }

    /// The application refuses a block of an object: it is collected anew.
    pub(super) fn reject(&mut self, index: u32) {
        if let (Some(block @ Block::Decoded { .. }), Sink::Object(object)) =
            (self.blocks.get_mut(&index), &self.sink)
            && let Ok(shape) = BlockShape::new(self.code, object.block_len(index), self.symbol_size)
            && let Block::Decoded { mut charge, .. } = std::mem::replace(block, Block::Done)
        {
            // It stays in the status as one that lacks everything: left out, it would read as
            // unchanged.
            charge.set(block_cost(shape));
            *block = Block::collecting(BlockDecoder::new(shape), None, charge);
        }
    }

    /// What to tell the sender.
    pub(super) fn status(&mut self) -> BlockStatus {
        self.statuses = self.statuses.saturating_add(1);
        // Beyond the limit nothing is sent, whatever the sender knows of it.
        let blocks = self
            .blocks
            .range(..self.limit())
            .take(MAX_BLOCKS)
            .map(|(index, block)| {
                let (needed, done) = match block {
                    Block::Collecting { decoder, .. } => (decoder.needed(), false),
                    // The sender keeps a block until the application has accepted it.
                    Block::Decoding { .. } | Block::Decoded { data: None, .. } => (0, false),
                    Block::Decoded { data: Some(_), .. } | Block::Done => (0, true),
                };
                BlockNeed { block: *index, needed, done }
            })
            .collect();
        let (channel, sequence) = (self.id, self.statuses);
        BlockStatus { channel, sequence, floor: self.floor, limit: self.limit(), blocks }
    }
}

/// How many blocks a window holds: two at least, for one is decoded while the next arrives. Blocks
/// count as `LEAST_COUNTED` bytes at least, because a small one costs about that, too.
pub(super) fn window_blocks(window_bytes: u32, block_size: u32) -> u32 {
    (window_bytes / block_size.max(LEAST_COUNTED)).max(2)
}

const LEAST_COUNTED: u32 = 1 << 10;
