//! Packets and an observer for the tests of queues.

use fontis_base::{FlowId, Observer, Packet, PacketId, Time};

/// A packet of a flow.
pub(crate) fn packet(id: u64, flow: u32, size: u32) -> Packet<()> {
    Packet {
        id: PacketId(id),
        src: Default::default(),
        dst: Default::default(),
        flow: FlowId(flow),
        size,
        segments: 1,
        ecn: Default::default(),
        corrupt: false,
        class: 0,
        payload: (),
    }
}

/// Remembers which packets were dropped and which marked.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) dropped: Vec<(u64, &'static str)>,
    pub(crate) marked: Vec<u64>,
}

impl<P> Observer<P> for Log {
    fn dropped(&mut self, _: Time, _: &str, packet: &Packet<P>, why: &'static str) {
        self.dropped.push((packet.id.0, why));
    }

    fn marked(&mut self, _: Time, _: &str, packet: &Packet<P>) {
        self.marked.push(packet.id.0);
    }
}
