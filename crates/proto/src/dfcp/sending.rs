use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Time};
use fontis_codes::{BlockEncoder, BlockShape, Code, RepairJob, RepairSymbols};

use super::block::{Block, Data};
use super::budget::{Account, block_cost};
use super::carrier::{Carrier, Pass};
use super::packet::{BlockStatus, ChannelId, Live, LiveKind, ObjectShape, SymbolsFrame};
use super::paths::PathSet;
use super::redundancy::LossModel;
use super::resume::Held;
use super::shape::live_shape;

/// Blocks whose data is asked for before they can be sent, so that reading does not hold up
/// sending.
const READ_AHEAD: u32 = 2;
/// Blocks of an object that are asked for although the connection is full: one is sent while the
/// next is read.
const LEAST_CHARGED: usize = 2;
/// Blocks of fewer wide symbols would lose more to the last one's padding than they gain.
const LEAST_WIDE: u32 = 32;

/// What a channel sends.
enum Source {
    /// Bytes written by the application, cut into blocks as they are sent.
    Live {
        kind: LiveKind,
        pending: VecDeque<Bytes>,
        pending_bytes: u64,
        finished: bool,
        /// The block that carries the end, once it is cut.
        last: Option<u32>,
    },
    /// An object whose blocks the application supplies when asked.
    Object { shape: ObjectShape, held: Held },
}

/// The sending half of a channel: which symbol of which block goes next.
pub(super) struct SendChannel {
    pub(super) id: ChannelId,
    pub(super) priority: u8,
    pub(super) deadline: Option<Time>,
    /// When the application gave it.
    pub(super) given: Time,
    /// Whether no more symbols leave than there are, before the peer reports that some are missing.
    pub(super) sparing: bool,
    source: Source,
    code: Code,
    symbol_size: u16,
    block_size: u32,
    /// Blocks from `floor` on, as far as they have been begun or asked for.
    blocks: VecDeque<Block>,
    floor: u32,
    /// Every block below has as much in flight as it shall have on average, or is done: of a long
    /// window's many blocks the first that lacks something is looked up once, not for every packet.
    settled: u32,
    limit: u32,
    /// The newest status.
    status: u32,
    /// Blocks whose data the application is to supply, and repair symbols to be prepared.
    wants: VecDeque<Want>,
}

/// What a channel needs done before it can go on.
pub(super) enum Want {
    Data { block: u32 },
    Repair { block: u32, job: RepairJob },
}

impl SendChannel {
    #[expect(clippy::too_many_arguments, reason = "private, and each is one field")]
    pub(super) fn live(
        id: ChannelId,
        kind: LiveKind,
        priority: u8,
        deadline: Option<Time>,
        code: Code,
        symbol_size: u16,
        block_size: u32,
        limit: u32,
    ) -> Self {
        let source = Source::Live {
            kind,
            pending: VecDeque::new(),
            pending_bytes: 0,
            finished: false,
            last: None,
        };
        Self::new(id, priority, deadline, source, code, symbol_size, block_size, limit)
    }

    pub(super) fn object(
        id: ChannelId,
        shape: ObjectShape,
        code: Code,
        priority: u8,
        deadline: Option<Time>,
        window: u32,
        held: Held,
    ) -> Self {
        let floor = held.floor();
        let source = Source::Object { shape, held };
        let limit = floor.saturating_add(window);
        let (symbol_size, block_size) = (shape.symbol_size, shape.block_size);
        let channel =
            Self::new(id, priority, deadline, source, code, symbol_size, block_size, limit);
        Self { floor, ..channel }
    }

    #[expect(clippy::too_many_arguments, reason = "private, and each is one field")]
    fn new(
        id: ChannelId,
        priority: u8,
        deadline: Option<Time>,
        source: Source,
        code: Code,
        symbol_size: u16,
        block_size: u32,
        limit: u32,
    ) -> Self {
        Self {
            id,
            priority,
            deadline,
            given: Time::ZERO,
            sparing: false,
            source,
            code,
            symbol_size,
            block_size,
            blocks: VecDeque::new(),
            floor: 0,
            settled: 0,
            limit,
            status: 0,
            wants: VecDeque::new(),
        }
    }

    /// Takes bytes to send; a message or stream only.
    pub(super) fn write(&mut self, data: Bytes) {
        if let Source::Live { pending, pending_bytes, finished: false, .. } = &mut self.source {
            *pending_bytes += data.len() as u64;
            pending.push_back(data);
        }
    }

    /// Nothing more will be written.
    pub(super) fn finish(&mut self) {
        if let Source::Live { finished, .. } = &mut self.source {
            *finished = true;
        }
    }

    /// Bytes written that are in no block yet, and those in blocks that are not done.
    pub(super) fn buffered(&self) -> u64 {
        let blocks: u64 =
            self.blocks.iter().filter(|b| !b.done).map(|b| u64::from(b.shape().len())).sum();
        match &self.source {
            Source::Live { pending_bytes, .. } => pending_bytes + blocks,
            Source::Object { .. } => blocks,
        }
    }

    /// Whether its deadline has passed, or will have before it arrives, `way` after it leaves.
    /// What had no more time from the beginning leaves all the same.
    pub(super) fn is_late(&self, now: Time, way: Duration) -> bool {
        let Some(deadline) = self.deadline else { return false };
        let has_waited = deadline <= now + way && self.given + way < deadline;
        deadline <= now || (has_waited && !self.has_begun())
    }

    pub(super) fn has_begun(&self) -> bool {
        self.floor > 0 || self.blocks.iter().any(|block| block.begun)
    }

    pub(super) const fn is_message(&self) -> bool {
        matches!(self.kind(), Some(LiveKind::Message | LiveKind::Ordered { .. }))
    }

    pub(super) const fn is_unordered_message(&self) -> bool {
        matches!(self.kind(), Some(LiveKind::Message))
    }

    /// Whether every block has been done.
    pub(super) fn is_complete(&self) -> bool {
        self.total().is_some_and(|total| self.floor >= total)
    }

    fn total(&self) -> Option<u32> {
        match &self.source {
            Source::Live { last, .. } => last.map(|last| last + 1),
            Source::Object { shape, .. } => shape.blocks(),
        }
    }

    pub(super) fn next_want(&mut self) -> Option<Want> {
        self.wants.pop_front()
    }

    /// The data of a block that was asked for.
    pub(super) fn supply(&mut self, index: u32, data: Bytes) -> bool {
        let Some(block) = self.block_mut(index) else { return true };
        let Data::Absent { shape, asked: true } = block.data else { return true };
        let expected = if shape.code().carries_bytes() { shape.len() as usize } else { 0 };
        if data.len() != expected {
            return false;
        }
        block.data = Data::Present(BlockEncoder::new(shape, data));
        true
    }

    pub(super) fn set_repair(&mut self, index: u32, repair: RepairSymbols) {
        if let Some(Block { data: Data::Present(encoder), .. }) = self.block_mut(index)
            && encoder.shape() == repair.shape()
        {
            encoder.set_repair(repair);
        }
    }

    /// Packets have become smaller: blocks whose symbols no longer fit are sent anew in smaller
    /// ones.
    pub(super) fn refit(&mut self, room: usize, loss: &LossModel) {
        let (code, symbol_size) = (self.code, self.symbol_size);
        for block in self.blocks.iter_mut().filter(|block| !block.done && block.live.is_none()) {
            let shape = block.shape();
            if usize::from(shape.symbol_size()) <= room || shape.symbol_size() <= symbol_size {
                continue;
            }
            let Ok(shape) = BlockShape::new(code, shape.len(), symbol_size) else { continue };
            let data = match &block.data {
                Data::Absent { asked, .. } => Data::Absent { shape, asked: *asked },
                Data::Present(encoder) => {
                    Data::Present(BlockEncoder::new(shape, encoder.data().clone()))
                }
            };
            *block = Block { charge: block.charge.take(), ..Block::new(data, None, false, loss) };
        }
        self.settled = self.floor;
    }

    /// Symbols of a block were reported as received, lost or forgotten.
    pub(super) fn resolved(&mut self, path: usize, index: u32, count: u16, received: bool) {
        self.settled = self.settled.min(index);
        if let Some(block) = self.block_mut(index) {
            block.in_flight.remove(path, u32::from(count));
            if received {
                block.needed = block.needed.saturating_sub(u32::from(count)).max(1);
            }
        }
    }

    /// The receiver's own account. One that is no newer than what is known is ignored; whether this
    /// one was not.
    pub(super) fn on_status(&mut self, status: &BlockStatus) -> bool {
        if self.status >= status.sequence {
            return false;
        }
        self.status = status.sequence;
        self.limit = self.limit.max(status.limit);
        let floor = status.floor.min(self.floor + self.blocks.len() as u32);
        for index in self.floor..floor {
            if let Some(block) = self.block_mut(index) {
                block.done = true;
            }
        }
        for need in &status.blocks {
            if let Some(block) = self.block_mut(need.block) {
                // A receiver that asks for more than a block can take asks for nothing sensible.
                let most = 2 * block.shape().source_symbols() + 16;
                block.needed = need.needed.min(most);
                block.done |= need.done;
            }
        }
        self.advance();
        true
    }

    /// The receiver has all of it.
    pub(super) fn on_done(&mut self) {
        for block in &mut self.blocks {
            block.done = true;
        }
        self.advance();
        if let (Source::Object { .. }, Some(total)) = (&self.source, self.total()) {
            self.floor = total;
        }
    }

    fn advance(&mut self) {
        while self.blocks.front().is_some_and(|block| block.done) {
            self.blocks.pop_front();
            self.floor += 1;
        }
        // The data of a block that is done serves nobody.
        for block in self.blocks.iter_mut().filter(|block| block.done) {
            block.charge = None;
            if let Data::Present(encoder) = &block.data {
                block.data = Data::Absent { shape: encoder.shape(), asked: false };
            }
        }
    }

    /// Recomputes how much to send, after the measured loss or a block's need has changed.
    pub(super) fn retarget(&mut self, loss: &LossModel) {
        let none = LossModel::new();
        let loss = if self.sparing { &none } else { loss };
        for block in self.blocks.iter_mut().filter(|block| !block.done) {
            block.retarget(loss);
        }
        self.settled = self.floor;
    }

    /// Others count of what is on its way than before.
    pub(super) const fn unsettle(&mut self) {
        self.settled = self.floor;
    }

    /// Cuts or announces the blocks that may come next, and asks for their data.
    ///
    /// Blocks of an object have symbols of `wide` bytes if a packet holds that much more than the
    /// object's own. Of all objects `ahead` further bytes are asked for, which this uses up; each
    /// has [`LEAST_CHARGED`] blocks whatever is left.
    pub(super) fn prepare(
        &mut self,
        loss: &LossModel,
        wide: Option<u16>,
        room: usize,
        account: &Account,
        ahead: &mut u64,
    ) {
        loop {
            let index = self.floor + self.blocks.len() as u32;
            if index >= self.limit || self.total().is_some_and(|total| index >= total) {
                return;
            }
            let unsent = |block: &&Block| block.done || !block.begun;
            let unsent = self.blocks.iter().rev().take_while(unsent).filter(|b| !b.done).count();
            if unsent as u32 >= READ_AHEAD {
                return;
            }
            let Some(mut block) = self.cut(index, loss, wide, room) else { return };
            if matches!(block.data, Data::Absent { asked: true, .. }) {
                if self.charged() >= LEAST_CHARGED && *ahead == 0 {
                    return;
                }
                let cost = block_cost(block.shape());
                block.charge = match account.take(cost) {
                    Ok(charge) => Some(charge),
                    // A peer that never says that a block is done gets no more of them.
                    Err(_) if self.charged() >= LEAST_CHARGED => return,
                    Err(_) => Some(account.force(cost)),
                };
            }
            if matches!(block.data, Data::Absent { asked: true, .. }) {
                *ahead = ahead.saturating_sub(u64::from(block.shape().len()));
                self.wants.push_back(Want::Data { block: index });
            }
            self.blocks.push_back(block);
            self.advance();
        }
    }

    /// Blocks whose data is held or asked for.
    fn charged(&self) -> usize {
        self.blocks.iter().filter(|block| block.charge.is_some()).count()
    }

    /// Their bytes.
    pub(super) fn held(&self) -> u64 {
        let held = self.blocks.iter().filter(|block| block.charge.is_some());
        held.map(|block| u64::from(block.shape().len())).sum()
    }

    fn cut(
        &mut self,
        index: u32,
        loss: &LossModel,
        wide: Option<u16>,
        room: usize,
    ) -> Option<Block> {
        match &mut self.source {
            Source::Object { shape: object, held } => {
                let len = object.block_len(index);
                if let Some((shape, begun)) = held.begun_block(index, self.code, len, room) {
                    let mut block =
                        Block::new(Data::Absent { shape, asked: true }, None, false, loss);
                    (block.next_esi, block.needed) = (begun.next_esi, begun.needed);
                    block.retarget(loss);
                    return Some(block);
                }
                if held.is_done(index) {
                    let shape = BlockShape::new(self.code, len, self.symbol_size).ok()?;
                    let block = Block::new(Data::Absent { shape, asked: false }, None, false, loss);
                    return Some(Block { done: true, ..block });
                }
                let wide = wide.filter(|size| len >= LEAST_WIDE * u32::from(*size));
                let symbol_size = wide.unwrap_or(self.symbol_size);
                let shape = BlockShape::new(self.code, len, symbol_size).ok()?;
                Some(Block::new(Data::Absent { shape, asked: true }, None, false, loss))
            }
            Source::Live { kind, pending, pending_bytes, finished, last } => {
                let ends = *finished && *pending_bytes <= u64::from(self.block_size);
                if *pending_bytes == 0 && !ends {
                    return None;
                }
                // A message is sent when it is complete; a stream flows as it is written.
                if !*finished && !matches!(kind, LiveKind::Stream) {
                    return None;
                }
                let length = (*pending_bytes).min(u64::from(self.block_size)) as usize;
                let data = gather(pending, length);
                *pending_bytes -= length as u64;
                if ends {
                    *last = Some(index);
                }
                let live = Live { kind: *kind, block_len: length as u32, fin: ends };
                let shape = live_shape(self.code, live.block_len, self.symbol_size)?;
                let data = if self.code.carries_bytes() { data } else { Bytes::new() };
                let none = LossModel::new();
                let loss = if self.sparing { &none } else { loss };
                let data = Data::Present(BlockEncoder::new(shape, data));
                Some(Block::new(data, Some(live), self.deadline.is_some(), loss))
            }
        }
    }

    /// Whether the channel is at its end for now: nothing waits to be begun.
    fn is_tail(&self) -> bool {
        let index = self.floor + self.blocks.len() as u32;
        let drained = match &self.source {
            Source::Live { pending_bytes, .. } => *pending_bytes == 0,
            Source::Object { .. } => self.total().is_some_and(|total| index >= total),
        };
        drained && !self.sparing && self.blocks.iter().all(|block| block.done || block.begun)
    }

    /// The paths whose symbols on their way count. At an end what a slow path brings is not waited
    /// for, but by what has a deadline.
    fn counted(&self, pass: Pass, carrier: Carrier) -> PathSet {
        match pass {
            Pass::Tail if self.deadline.is_none() => carrier.early,
            Pass::Tail | Pass::Mean | Pass::Endless | Pass::Probe => carrier.answering,
        }
    }

    /// Whether [`next_symbols`](Self::next_symbols) may give some: most channels have sent all, and
    /// wait for their end.
    pub(super) fn may_lack(&self, pass: Pass, carrier: Carrier) -> bool {
        let counted = self.counted(pass, carrier);
        let flies = |block: &Block| block.in_flight.on(counted);
        let lacks = |block: &Block| !block.done && flies(block) < block.tail_target;
        match pass {
            Pass::Mean => self.settled < self.floor + self.blocks.len() as u32,
            Pass::Tail => self.is_tail() && self.blocks.iter().any(lacks),
            Pass::Endless | Pass::Probe => true,
        }
    }

    /// The next symbols to send on a path, and how many source symbols their block has; the oldest
    /// block that lacks some comes first.
    pub(super) fn next_symbols(
        &mut self,
        pass: Pass,
        carrier: Carrier,
    ) -> Option<(SymbolsFrame, u32)> {
        let Carrier { path, room, .. } = carrier;
        let counted = self.counted(pass, carrier);
        if pass == Pass::Tail && !self.is_tail() {
            return None;
        }
        let mut waiting = false;
        self.settled = self.settled.max(self.floor);
        let first = if pass == Pass::Mean { self.settled } else { self.floor };
        let known = ((first - self.floor) as usize).min(self.blocks.len());
        for (index, block) in (first..).zip(self.blocks.range_mut(known..)) {
            let in_flight = block.in_flight.on(counted);
            let target = match pass {
                Pass::Mean => block.target,
                Pass::Tail => block.tail_target,
                Pass::Endless | Pass::Probe => in_flight + 1,
            };
            if block.done || in_flight >= target {
                if pass == Pass::Mean && index == self.settled {
                    self.settled += 1;
                }
                continue;
            }
            if index >= self.limit {
                return None;
            }
            let Data::Present(encoder) = &block.data else { continue };
            let shape = encoder.shape();
            if !carries(self.symbol_size, room, shape) {
                continue;
            }
            let k = shape.source_symbols();
            // Repair symbols take time to prepare: ask while source symbols are still being sent. A
            // probe needs one symbol: a host that paused is no reason to encode all blocks.
            let short = target - in_flight;
            let last_wanted = block.next_esi + short;
            let is_enough = pass == Pass::Probe && waiting;
            if last_wanted > k && !block.repair_asked && !is_enough {
                block.repair_asked = true;
                self.wants.push_back(Want::Repair { block: index, job: encoder.repair_job() });
            }
            if block.next_esi >= k && !encoder.has_repair() {
                waiting = true;
                continue;
            }
            let fits = symbols_in(room, shape.symbol_size().into()) as u32;
            let available = if encoder.has_repair() { u32::MAX } else { k - block.next_esi };
            // Packets are lost whole: more than the receiver lacks is of no use in one of them.
            let count = fits.min(short).min(available).min(block.needed.max(1)).min(64);
            let whole = block.live.is_none() && shape.symbol_size() != self.symbol_size;
            let symbols = block.take_symbols(self.id, index, count, whole, path)?;
            return Some((symbols, k));
        }
        None
    }

    /// The bytes of symbols that are still to be sent on average, if nothing waits to be begun.
    pub(super) fn bytes_left(&self, counted: PathSet) -> Option<u64> {
        let left = |block: &Block| {
            let short = block.target.saturating_sub(block.in_flight.on(counted));
            u64::from(short) * u64::from(block.shape().symbol_size())
        };
        self.is_tail().then(|| self.blocks.iter().filter(|block| !block.done).map(left).sum())
    }

    /// Whether [`next_symbols`](Self::next_symbols) would give some.
    pub(super) fn has_symbols(&self, endless: bool, carrier: Carrier) -> bool {
        let tail = self.is_tail();
        self.blocks.iter().zip(self.floor..self.limit.max(self.floor)).any(|(block, _)| {
            let lacks = |pass, target| block.in_flight.on(self.counted(pass, carrier)) < target;
            let short = endless
                || lacks(Pass::Mean, block.target)
                || (tail && lacks(Pass::Tail, block.tail_target));
            let short = short && carries(self.symbol_size, carrier.room, block.shape());
            let ready = match &block.data {
                Data::Present(encoder) => {
                    block.next_esi < encoder.shape().source_symbols() || encoder.has_repair()
                }
                Data::Absent { .. } => false,
            };
            !block.done && short && ready
        })
    }

    pub(super) const fn kind(&self) -> Option<LiveKind> {
        match &self.source {
            Source::Live { kind, .. } => Some(*kind),
            Source::Object { .. } => None,
        }
    }

    fn block_mut(&mut self, index: u32) -> Option<&mut Block> {
        self.blocks.get_mut(index.checked_sub(self.floor)? as usize)
    }
}

/// Whether a packet with so much room holds symbols of this shape. The channel's own, which are the
/// smallest, go on every path.
fn carries(smallest: u16, room: usize, shape: BlockShape) -> bool {
    let size = shape.symbol_size();
    size <= smallest || usize::from(size) <= room
}

/// How many symbols a packet holds: one, however large it is. Most packets hold one, which takes no
/// division.
pub(super) const fn symbols_in(room: usize, symbol: usize) -> usize {
    if room < 2 * symbol { 1 } else { room / symbol }
}

/// Takes exactly `length` bytes from the front of `pending`.
fn gather(pending: &mut VecDeque<Bytes>, length: usize) -> Bytes {
    if let Some(front) = pending.front_mut() {
        if front.len() == length {
            return pending.pop_front().unwrap_or_default();
        }
        if front.len() > length {
            return front.split_to(length);
        }
    }
    let mut joined = BytesMut::with_capacity(length);
    while joined.len() < length {
        let Some(mut piece) = pending.pop_front() else { break };
        let rest = piece.split_off(piece.len().min(length - joined.len()));
        joined.extend_from_slice(&piece);
        if !rest.is_empty() {
            pending.push_front(rest);
        }
    }
    joined.freeze()
}

#[cfg(test)]
mod tests;
