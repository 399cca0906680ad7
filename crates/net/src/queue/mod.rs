//! Queue disciplines: what waits, in which order it leaves, and what is dropped.

mod codel;
mod drr;
mod fifo;
mod kind;
mod limit;

pub use codel::CoDel;
pub use drr::Drr;
pub use fifo::Fifo;
pub use kind::QueueKind;
pub use limit::Limit;

use fontis_base::{Observer, Packet, Time};

/// Packets that wait for a line. The line calls [`dequeue`](Self::dequeue) when it is free; the queue decides order
/// and drops only.
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// First in, first out.
    Fifo(Fifo<P>),
    /// Deficit round robin.
    Drr(Drr<P>),
    /// Controlled delay.
    CoDel(CoDel<P>),
}

/// Does the same with whichever queue it is.
macro_rules! each {
    ($queue:expr, $inner:ident => $body:expr) => {
        match $queue {
            Queue::Fifo($inner) => $body,
            Queue::Drr($inner) => $body,
            Queue::CoDel($inner) => $body,
        }
    };
}

impl<P> Queue<P> {
    /// Takes a packet. What it drops, this packet or another, it tells the observer.
    pub fn enqueue(&mut self, now: Time, packet: Packet<P>, observer: &mut impl Observer<P>) {
        each!(self, queue => queue.enqueue(now, packet, observer));
    }

    /// Gives the next packet, or none if none is left. What it drops or marks on the way, it tells the observer.
    pub fn dequeue(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Packet<P>> {
        each!(self, queue => queue.dequeue(now, observer))
    }

    /// How many packets wait.
    pub fn len(&self) -> usize {
        each!(self, queue => queue.len())
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes wait.
    pub fn bytes(&self) -> u64 {
        each!(self, queue => queue.bytes())
    }
}

/// The name under which queues report; their link replaces it with its own.
const ELEMENT: &str = "queue";
/// Why a packet was dropped: there was no room.
const OVERFLOW: &str = "queue overflow";

#[cfg(test)]
pub(crate) mod testing {
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
}
