use fontis_base::{Ecn, Observer, Packet, Time};

use crate::queue::limit::Limit;
use crate::queue::report::{ELEMENT, OVERFLOW};

/// What decides who may join a queue that is first in, first out, wherever its packets wait.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    packets: usize,
    bytes: u64,
    limit: Limit,
    /// A packet that finds more than this waiting is marked, if its transport understands marks.
    mark_above: Option<Box<Limit>>,
}

impl Tail {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { packets: 0, bytes: 0, limit, mark_above: None }
    }

    /// The same, but it marks what finds more than `threshold` waiting, as DCTCP wants it (RFC 8257
    /// section 3.1).
    pub(crate) fn marking_above(self, threshold: Limit) -> Self {
        Self { mark_above: Some(Box::new(threshold)), ..self }
    }

    /// Whether nothing waits and the packet could.
    pub(crate) fn lets_pass<P>(&self, packet: &Packet<P>) -> bool {
        self.packets == 0 && self.limit.holds(1, u64::from(packet.size))
    }

    /// Whether a packet that comes may wait, which counts as waiting from now on.
    pub(crate) fn takes<P>(
        &mut self,
        now: Time,
        packet: &mut Packet<P>,
        observer: &mut impl Observer<P>,
    ) -> bool {
        let bytes = self.bytes.saturating_add(u64::from(packet.size));
        if !self.limit.holds(self.packets + 1, bytes) {
            observer.dropped(now, ELEMENT, packet, OVERFLOW);
            return false;
        }
        let above = |threshold: &Limit| !threshold.holds(self.packets, self.bytes);
        if packet.ecn != Ecn::NotEct && self.mark_above.as_deref().is_some_and(above) {
            packet.ecn = Ecn::Ce;
            observer.marked(now, ELEMENT, packet);
        }
        self.packets += 1;
        self.bytes = bytes;
        true
    }

    /// A packet of so many bytes does not wait any more.
    pub(crate) fn lets_go(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
