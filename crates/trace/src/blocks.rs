use std::collections::BTreeMap;

use fontis_base::Time;

use super::series::{Group, Series};
use crate::header::{ChannelStatus, PacketHeader, SymbolRange};
use crate::packet::{Kind, Marks, TracePacket};

/// What became of a block of symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The flow.
    pub flow: u16,
    /// The channel.
    pub channel: u32,
    /// The block.
    pub block: u32,
    /// How many symbols it has itself; zero if the trace does not say.
    pub k: u32,
    /// Symbols that were sent.
    pub sent: u32,
    /// Symbols that arrived.
    pub received: u32,
    /// Of them, those that came when enough were there.
    pub useless: u32,
    /// When the first was sent.
    pub begun: Time,
    /// When the receiver said that enough were there; [`Time::MAX`] if it never did.
    pub done: Time,
}

/// The blocks of one direction of a flow.
#[derive(Clone, Debug)]
pub(crate) struct BlockBook {
    flow: u16,
    /// By channel: object, block and symbol size.
    shapes: BTreeMap<u32, (u64, u32, u32)>,
    pub(crate) blocks: BTreeMap<(u32, u32), Block>,
    /// By channel: all blocks below are done.
    floors: BTreeMap<u32, u32>,
    under_way: Series,
    lacking: i64,
}

impl BlockBook {
    pub(crate) fn new(flow: u16, name: &str) -> Self {
        let under_way = Series::new(Group::Blocks, format!("{name} symbols lacking"), Some(flow));
        Self {
            flow,
            shapes: BTreeMap::new(),
            blocks: BTreeMap::new(),
            floors: BTreeMap::new(),
            under_way,
            lacking: 0,
        }
    }

    /// A packet with symbols leaves.
    pub(crate) fn sent(&mut self, at: Time, packet: &mut TracePacket, header: &PacketHeader) {
        for (channel, size, block_size, symbol_size) in &header.blocks.opened {
            self.shapes.insert(*channel, (*size, *block_size, *symbol_size));
        }
        let mut redundant = !header.blocks.symbols.is_empty();
        for symbols in &header.blocks.symbols {
            let k = symbols.k.unwrap_or_else(|| self.k(symbols));
            let block =
                self.blocks.entry((symbols.channel, symbols.block)).or_insert_with(|| Block {
                    flow: self.flow,
                    channel: symbols.channel,
                    block: symbols.block,
                    begun: at,
                    done: Time::MAX,
                    ..Block::default()
                });
            if block.k == 0 && k > 0 {
                block.k = k;
                self.lacking += i64::from(k);
            }
            block.sent = block.sent.saturating_add(symbols.count);
            redundant &= block.k > 0 && symbols.esi >= block.k;
        }
        if let Some(first) = header.blocks.symbols.first() {
            packet.channel = u16::try_from(first.channel).unwrap_or(u16::MAX);
            packet.block = first.block;
            packet.seq = u64::from(first.esi);
            let counts = header.blocks.symbols.iter().map(|symbols| symbols.count);
            packet.len = counts.fold(0, u32::saturating_add);
            if redundant {
                packet.marks.set(Marks::REDUNDANT);
                packet.kind = Kind::Repair;
            }
        }
    }

    /// A packet with symbols arrives; gives how many of them their blocks lacked, and all.
    pub(crate) fn arrived(
        &mut self,
        at: Time,
        packet: &mut TracePacket,
        header: &PacketHeader,
    ) -> Option<(u64, u64)> {
        let (mut all, mut useless, mut wanted) = (0, 0, 0);
        for symbols in &header.blocks.symbols {
            let below =
                self.floors.get(&symbols.channel).is_some_and(|floor| symbols.block < *floor);
            let Some(block) = self.blocks.get_mut(&(symbols.channel, symbols.block)) else {
                continue;
            };
            let count = u64::from(symbols.count);
            all += count;
            let lacked = block.k.saturating_sub(block.received);
            block.received = block.received.saturating_add(symbols.count);
            let came = lacked - block.k.saturating_sub(block.received);
            self.lacking -= i64::from(came);
            if below || block.done <= at {
                block.useless = block.useless.saturating_add(symbols.count);
                useless += count;
            } else if block.k == 0 {
                wanted += count;
            }
            wanted += u64::from(came);
        }
        if all > 0 {
            self.under_way.push(at, self.lacking.max(0) as f64);
            if useless == all {
                packet.marks.set(Marks::USELESS);
            }
        }
        (all > 0).then_some((wanted, all))
    }

    /// The receiver says what blocks lack, at the time at which it says it.
    pub(crate) fn told(&mut self, at: Time, header: &PacketHeader) {
        if header.blocks.closes {
            let complete = self.blocks.values_mut().filter(|b| b.k > 0 && b.received >= b.k);
            complete.for_each(|block| block.done = block.done.min(at));
        }
        for ChannelStatus { channel, floor, needs } in &header.blocks.status {
            let known = self.floors.entry(*channel).or_default();
            if *floor > *known {
                let range = (*channel, *known)..(*channel, *floor);
                for (_, block) in self.blocks.range_mut(range) {
                    block.done = block.done.min(at);
                }
                *known = *floor;
            }
            for (block, needed) in needs.iter().filter(|(block, _)| block >= known) {
                let Some(block) = self.blocks.get_mut(&(*channel, *block)) else { continue };
                // Symbols that were enough in number may turn out not to be independent.
                block.done = if *needed == 0 { block.done.min(at) } else { Time::MAX };
            }
        }
    }

    fn k(&self, symbols: &SymbolRange) -> u32 {
        let Some((size, block_size, symbol_size)) = self.shapes.get(&symbols.channel) else {
            return 0;
        };
        let begin = u64::from(symbols.block) * u64::from(*block_size);
        let len = size.saturating_sub(begin).min(u64::from(*block_size)) as u32;
        len.div_ceil(symbols.size.unwrap_or(*symbol_size).max(1))
    }

    /// The series of what is lacking, if there were blocks.
    pub(crate) fn series(&self) -> Option<Series> {
        let mut series = self.under_way.clone();
        series.finish();
        (series.points.len() > 1).then_some(series)
    }
}
