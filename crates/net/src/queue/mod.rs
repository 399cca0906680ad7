//! Queue disciplines: what waits, in which order it leaves, and what is dropped.

mod classes;
mod codel;
mod drr;
mod fifo;
mod fq_codel;
mod kind;
mod limit;
mod options;
mod red;
mod tail;
mod wfq;

pub use classes::{Priority, TwoClass};
pub use codel::CoDel;
pub use drr::Drr;
pub use fifo::Fifo;
pub use fq_codel::FqCoDel;
pub use kind::QueueKind;
pub use limit::Limit;
pub use options::QueueOptions;
pub use red::Red;
pub(crate) use tail::Tail;
pub use wfq::Wfq;

use fontis_base::{FlowId, Observer, Packet, Time};

/// A packet before which no more than so many wait will leave soon.
pub(crate) const NEAR: usize = 3;

/// Packets that wait for a line. The line calls [`dequeue`](Self::dequeue) when it is free; the
/// queue decides order and drops only.
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// First in, first out.
    Fifo(Fifo<P>),
    /// Deficit round robin.
    Drr(Drr<P>),
    /// Controlled delay.
    CoDel(CoDel<P>),
    /// Random early detection.
    Red(Red<P>),
    /// Weighted fair queueing.
    Wfq(Wfq<P>),
    /// Flow queue CoDel.
    FqCoDel(FqCoDel<P>),
    /// Strict priority.
    Priority(Priority<P>),
    /// Two classes with fixed shares.
    TwoClass(TwoClass<P>),
}

/// Does the same with whichever queue it is.
macro_rules! each {
    ($queue:expr, $inner:ident => $body:expr) => {
        match $queue {
            Queue::Fifo($inner) => $body,
            Queue::Drr($inner) => $body,
            Queue::CoDel($inner) => $body,
            Queue::Red($inner) => $body,
            Queue::Wfq($inner) => $body,
            Queue::FqCoDel($inner) => $body,
            Queue::Priority($inner) => $body,
            Queue::TwoClass($inner) => $body,
        }
    };
}

impl<P> Queue<P> {
    /// Takes a packet. What it drops, this packet or another, it tells the observer.
    #[inline(never)]
    pub fn enqueue(&mut self, now: Time, packet: Packet<P>, observer: &mut impl Observer<P>) {
        each!(self, queue => queue.enqueue(now, packet, observer));
    }

    /// Gives the next packet, or none if none is left. What it drops or marks on the way, it tells
    /// the observer.
    #[inline(never)]
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

/// Which of `buckets` queues a flow is in: the same one always, another with another salt.
fn bucket_of(flow: FlowId, salt: u64, buckets: u32) -> u32 {
    // SplitMix64's finaliser spreads the bits.
    let mut hash = (u64::from(flow.0) ^ salt).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((hash ^ (hash >> 31)) % u64::from(buckets.max(1))) as u32
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
}
