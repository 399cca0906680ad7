use std::collections::BTreeMap;

use fontis_base::{Duration, Time};

use super::blocks::BlockBook;
use super::direction::FlowDirection;
use crate::header::PacketHeader;
use crate::packet::TracePacket;
use crate::trace::TraceFlow;

/// A flow while its trace is being built.
#[derive(Clone, Debug)]
pub(crate) struct FlowState {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) unit: &'static str,
    pub(crate) paths: Vec<String>,
    /// By direction: what the first speaker sends, and what the other one does.
    pub(crate) halves: [FlowDirection; 2],
    pub(crate) blocks: [BlockBook; 2],
    /// When the first and the last packet was seen.
    pub(crate) begun: Option<Time>,
    pub(crate) ended: Time,
    /// By lane: packets lost there.
    pub(crate) lost_at: BTreeMap<u16, u64>,
}

impl FlowState {
    /// One of which nothing has been seen.
    pub(crate) fn new(index: u16, name: &str, protocol: &str, unit: &'static str) -> Self {
        let back = format!("{name} ←");
        Self {
            name: name.to_owned(),
            protocol: protocol.to_owned(),
            unit,
            paths: Vec::new(),
            halves: [FlowDirection::new(index, name), FlowDirection::new(index, &back)],
            blocks: [BlockBook::new(index, name), BlockBook::new(index, &back)],
            begun: None,
            ended: Time::ZERO,
            lost_at: BTreeMap::new(),
        }
    }

    /// What the trace keeps of it.
    pub(crate) fn summary(&self) -> TraceFlow {
        TraceFlow {
            counts: self.halves.each_ref().map(|half| half.counts),
            name: self.name.clone(),
            protocol: self.protocol.clone(),
            unit: self.unit.to_owned(),
            paths: self.paths.clone(),
        }
    }

    /// Whether it carried data in this direction.
    pub(crate) fn has_data(&self, side: usize) -> bool {
        self.halves[side].counts.data > 0
    }

    /// How long it was seen.
    pub(crate) fn span(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| self.ended.since(begun))
    }

    /// A packet of a direction arrived.
    pub(crate) fn arrived(
        &mut self,
        at: Time,
        packet: &mut TracePacket,
        header: &PacketHeader,
        back: bool,
    ) {
        let side = usize::from(back);
        let new = self.halves[side].arrived(at, packet, header);
        let useful = self.blocks[side].arrived(at, packet, header);
        let (useful, all) = useful.unwrap_or((new, u64::from(header.len.max(1))));
        let bytes = match header.data {
            Some(bytes) => u64::from(bytes) * useful.min(all) / all,
            None if header.is_numbered() => 0,
            None => new,
        };
        self.halves[side].delivered(at, bytes);
    }
}
