use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Time};
use fontis_codes::{BlockDecoder, BlockShape, Code, DecodeJob, Decoded};

use super::packet::{BlockNeed, BlockStatus, ChannelId, Live, LiveKind, ObjectShape, SymbolsFrame};
use super::resume::{Checkpoint, Kept};
use super::sending::live_shape;
use super::wire::MAX_BLOCKS;

/// What a channel receives.
enum Sink {
    Live {
        kind: LiveKind,
        /// Decoded blocks in order, waiting for the application or for the rest of their message.
        ready: VecDeque<Bytes>,
    },
    Object(ObjectShape),
}

enum Block {
    Collecting {
        decoder: BlockDecoder,
        live: Option<Live>,
        /// The packet that began it.
        since: u64,
        fresh: Fresh,
    },
    /// A job decodes it.
    Decoding { live: Option<Live> },
    /// Decoded; a live block out of order keeps its data here.
    Decoded { data: Option<Bytes> },
    /// Accepted by the application.
    Done,
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
    /// Symbols that were of no use.
    pub(super) wasted: u64,
}

/// What came of some symbols.
pub(super) enum Received {
    /// More are needed, or these were of no use.
    Nothing,
    /// The block has enough: the job decodes it.
    Decode(DecodeJob),
    /// They cannot belong to the channel.
    Violation,
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
        let sink = Sink::Live { kind: live.kind, ready: VecDeque::new() };
        Self::new(id, sink, code, symbol_size, max_block, window)
    }

    pub(super) fn object(
        id: ChannelId,
        shape: ObjectShape,
        code: Code,
        window: u32,
        kept: Kept,
    ) -> Self {
        let sink = Sink::Object(shape);
        let mut channel = Self::new(id, sink, code, shape.symbol_size, shape.block_size, window);
        let total = shape.blocks().unwrap_or(0);
        for block in kept.done.into_iter().flat_map(|range| range.start..range.end.min(total)) {
            channel.blocks.insert(block, Block::Done);
        }
        for kept in kept.begun.into_iter().filter(|kept| kept.block < total) {
            if let Some(decoder) = kept.decoder(code, shape.block_len(kept.block)) {
                let begun =
                    Block::Collecting { decoder, live: None, since: 0, fresh: Fresh::default() };
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
            wasted: 0,
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

    /// Bytes that the channel's blocks may take, those that have begun to arrive counted whole.
    pub(super) fn held(&self) -> u64 {
        self.blocks.len() as u64 * u64::from(self.max_block)
    }

    /// Whether the block has begun to arrive, or is done.
    pub(super) fn knows(&self, index: u32) -> bool {
        index < self.floor || self.blocks.contains_key(&index)
    }

    /// Takes symbols of packet `number`.
    pub(super) fn receive(&mut self, number: u64, symbols: &SymbolsFrame) -> Received {
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
        let block = self.blocks.entry(index).or_insert_with(|| Block::Collecting {
            decoder: BlockDecoder::new(shape),
            live: symbols.live,
            since: number,
            fresh: Fresh::default(),
        });
        let Block::Collecting { decoder, live, since, fresh } = block else {
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
            if number < *since {
                self.wasted += u64::from(symbols.count);
                return Received::Nothing;
            }
            // The sender has begun the block anew, in symbols that fit the path as it is now.
            *decoder = BlockDecoder::new(shape);
            *since = number;
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
        let live = *live;
        let Some(Block::Collecting { decoder, .. }) =
            self.blocks.insert(index, Block::Decoding { live })
        else {
            return Received::Nothing;
        };
        Received::Decode(decoder.decode_job())
    }

    fn shape_of(&self, symbols: &SymbolsFrame) -> Option<BlockShape> {
        match (&self.sink, symbols.live) {
            (Sink::Object(object), None) => {
                let size =
                    if symbols.whole { symbols.len / symbols.count } else { self.symbol_size };
                BlockShape::new(self.code, object.block_len(symbols.block), size).ok()
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
        let Some(Block::Decoding { live }) = self.blocks.get(&index) else { return None };
        let live = *live;
        match result {
            Decoded::Failed(decoder) => {
                self.blocks.insert(
                    index,
                    Block::Collecting { decoder, live, since: 0, fresh: Fresh::default() },
                );
                None
            }
            Decoded::Block(data) => {
                if matches!(self.sink, Sink::Object(_)) {
                    self.blocks.insert(index, Block::Decoded { data: None });
                    return Some(data);
                }
                self.blocks.insert(index, Block::Decoded { data: Some(data) });
                self.collect();
                None
            }
        }
    }

    /// Moves live blocks that are in order to where they are read from. A message's blocks count as
    /// done at once; a stream's when they are read.
    fn collect(&mut self) {
        let Sink::Live { ready, kind } = &mut self.sink else { return };
        let mut next = self.floor + if *kind == LiveKind::Stream { ready.len() as u32 } else { 0 };
        while let Some(Block::Decoded { data: data @ Some(_) }) = self.blocks.get_mut(&next) {
            ready.extend(data.take());
            if *kind != LiveKind::Stream {
                self.blocks.remove(&next);
                self.floor += 1;
            }
            next += 1;
        }
    }

    /// The next stretch of a stream, if one is there.
    pub(super) fn take_ready(&mut self) -> Option<Bytes> {
        let Sink::Live { ready, kind: LiveKind::Stream } = &mut self.sink else { return None };
        let data = ready.pop_front()?;
        self.blocks.remove(&self.floor);
        self.floor += 1;
        Some(data)
    }

    /// Whether a stream can be read from.
    pub(super) fn is_readable(&self) -> bool {
        matches!(&self.sink, Sink::Live { ready, kind: LiveKind::Stream } if !ready.is_empty())
    }

    /// The whole message, if it is complete.
    pub(super) fn take_message(&mut self) -> Option<Bytes> {
        if !self.is_complete() {
            return None;
        }
        let Sink::Live { ready, .. } = &mut self.sink else { return None };
        if ready.len() == 1 {
            return ready.pop_front();
        }
        let mut joined = BytesMut::with_capacity(ready.iter().map(Bytes::len).sum());
        for piece in ready.drain(..) {
            joined.extend_from_slice(&piece);
        }
        Some(joined.freeze())
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
        let since = *fresh.since.get_or_insert(now);
        if fresh.esis.is_empty() || now.since(since) < every {
            return None;
        }
        fresh.since = Some(now);
        let esis = core::mem::take(&mut fresh.esis);
        let (data, runs) = decoder.source_span(esis.clone())?;
        let offset = esis.start * u32::from(decoder.shape().symbol_size());
        let symbol_size = decoder.shape().symbol_size();
        let data = Bytes::copy_from_slice(data);
        Some(Checkpoint { block: index, symbol_size, offset, data, runs })
    }

    /// The application refuses a block of an object: it is collected anew.
    pub(super) fn reject(&mut self, index: u32) {
        if let (Some(Block::Decoded { .. }), Sink::Object(object)) =
            (self.blocks.get(&index), &self.sink)
            && let Ok(shape) = BlockShape::new(self.code, object.block_len(index), self.symbol_size)
        {
            // It stays in the status as one that lacks everything: left out, it would read as
            // unchanged.
            let decoder = BlockDecoder::new(shape);
            self.blocks.insert(
                index,
                Block::Collecting { decoder, live: None, since: 0, fresh: Fresh::default() },
            );
        }
    }

    /// What to tell the sender.
    pub(super) fn status(&self) -> BlockStatus {
        // Beyond the limit nothing is sent, whatever the sender knows of it.
        let blocks = self
            .blocks
            .range(..self.limit())
            .take(MAX_BLOCKS)
            .map(|(index, block)| {
                let (needed, done) = match block {
                    Block::Collecting { decoder, .. } => (decoder.needed(), false),
                    // The sender keeps a block until the application has accepted it.
                    Block::Decoding { .. } | Block::Decoded { data: None } => (0, false),
                    Block::Decoded { data: Some(_) } | Block::Done => (0, true),
                };
                BlockNeed { block: *index, needed, done }
            })
            .collect();
        BlockStatus { channel: self.id, floor: self.floor, limit: self.limit(), blocks }
    }
}

/// How many blocks a window holds: two at least, for one is decoded while the next arrives.
pub(super) fn window_blocks(window_bytes: u32, block_size: u32) -> u32 {
    (window_bytes / block_size.max(1)).max(2)
}
