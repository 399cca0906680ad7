//! A block on the sending side: what of it is on its way, and what shall be.

use bytes::BytesMut;
use fontis_base::prefetch;
use fontis_codes::{BlockEncoder, BlockShape};

use super::budget::Charge;
use super::in_flight::InFlight;
use super::packet::{ChannelId, Live, LiveKind, SymbolsFrame};
use super::redundancy::LossModel;

/// A block that is not done.
pub(super) struct Block {
    pub(super) data: Data,
    pub(super) next_esi: u32,
    /// Symbols that the receiver lacks, as far as is known.
    pub(super) needed: u32,
    pub(super) in_flight: InFlight,
    /// Symbols to have in flight: on average enough, and enough with high probability.
    pub(super) target: u32,
    pub(super) tail_target: u32,
    pub(super) repair_asked: bool,
    /// Whether symbols of it have been sent.
    pub(super) begun: bool,
    pub(super) done: bool,
    pub(super) live: Option<Live>,
    /// Whether it is a message's that is given up if it is late.
    pub(super) is_timely: bool,
    /// The memory of its data, if the application supplies it when it is asked.
    pub(super) charge: Option<Charge>,
}

pub(super) enum Data {
    Absent { shape: BlockShape, asked: bool },
    Present(BlockEncoder),
}

impl Block {
    pub(super) fn new(data: Data, live: Option<Live>, is_timely: bool, loss: &LossModel) -> Self {
        let mut block = Self {
            data,
            next_esi: 0,
            needed: 0,
            in_flight: InFlight::default(),
            target: 0,
            tail_target: 0,
            repair_asked: false,
            begun: false,
            done: false,
            live,
            is_timely,
            charge: None,
        };
        block.needed = block.shape().source_symbols();
        block.retarget(loss);
        block
    }

    pub(super) fn shape(&self) -> BlockShape {
        match &self.data {
            Data::Absent { shape, .. } => *shape,
            Data::Present(encoder) => encoder.shape(),
        }
    }

    pub(super) fn retarget(&mut self, loss: &LossModel) {
        let kind = self.live.map(|live| live.kind);
        self.target = match kind {
            Some(LiveKind::Message | LiveKind::Ordered { .. }) => {
                loss.packets_of_message(self.needed)
            }
            Some(LiveKind::Stream) | None => loss.packets_at_first(self.needed),
        };
        self.tail_target = match self.is_timely {
            true => loss.packets_in_time(self.needed),
            false => loss.packets_almost_surely(self.needed),
        };
    }

    /// The next `count` symbols of this block, the `index`-th of `channel`; `whole` says that a
    /// short one is to be padded. They leave on `path`.
    pub(super) fn take_symbols(
        &mut self,
        channel: ChannelId,
        index: u32,
        count: u32,
        whole: bool,
        path: usize,
    ) -> Option<SymbolsFrame> {
        let Data::Present(encoder) = &self.data else { return None };
        let shape = encoder.shape();
        let esi = self.next_esi;
        let whole_len = usize::from(shape.symbol_size());
        let len = |esi| if whole { whole_len } else { shape.symbol_len(esi) };
        let mut data = encoder.symbol(esi)?;
        if count > 1 || (whole && shape.symbol_len(esi) < whole_len && !data.is_empty()) {
            // Each symbol has its padding behind it: others may follow.
            let mut joined = BytesMut::with_capacity(count as usize * whole_len);
            for esi in esi..esi + count {
                joined.extend_from_slice(&encoder.symbol(esi)?);
                if !joined.is_empty() {
                    joined.resize(joined.len() + len(esi) - shape.symbol_len(esi), 0);
                }
            }
            data = joined.freeze();
        }
        let len: usize = (esi..esi + count).map(len).sum();
        self.next_esi += count;
        // The next symbol is brought from another thread's cache while this one is encrypted.
        if shape.code().carries_bytes() && self.next_esi < shape.source_symbols() {
            prefetch(&encoder.data()[shape.source_range(self.next_esi)]);
        }
        self.begun = true;
        self.in_flight.add(path, count);
        Some(SymbolsFrame {
            channel,
            block: index,
            esi,
            count: count as u16,
            live: self.live,
            whole,
            long: false,
            len: len as u16,
            data,
        })
    }
}
