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
pub use wfq::Wfq;

use fontis_base::{FlowId, Observer, Packet, Time};

/// A packet before which no more than so many wait will leave soon.
const NEAR: usize = 3;

/// Packets that wait for a line. The line calls [`dequeue`](Self::dequeue) when it is free; the queue decides order
/// and drops only.
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// First in, first out: what nearly all links have.
    Fifo(Fifo<P>),
    /// Another discipline.
    Other(Box<Discipline<P>>),
}

/// A queue discipline beside the plain one.
#[derive(Clone, Debug)]
pub enum Discipline<P> {
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
            Discipline::Drr($inner) => $body,
            Discipline::CoDel($inner) => $body,
            Discipline::Red($inner) => $body,
            Discipline::Wfq($inner) => $body,
            Discipline::FqCoDel($inner) => $body,
            Discipline::Priority($inner) => $body,
            Discipline::TwoClass($inner) => $body,
        }
    };
}

impl<P> Queue<P> {
    /// Takes a packet. What it drops, this packet or another, it tells the observer.
    pub fn enqueue(&mut self, now: Time, packet: Packet<P>, observer: &mut impl Observer<P>) {
        match self {
            Self::Fifo(queue) => queue.enqueue(now, packet, observer),
            Self::Other(other) => other.enqueue(now, packet, observer),
        }
    }

    /// Whether a packet that came now, for a line that is free, would leave at once, and nothing would be dropped or marked.
    pub(crate) fn lets_pass(&self, packet: &Packet<P>) -> bool {
        match self {
            Self::Fifo(queue) => queue.lets_pass(packet),
            Self::Other(_) => false,
        }
    }

    /// The packet before which so many others will leave, where the order is that of arrival.
    pub(crate) fn get(&self, index: usize) -> Option<&Packet<P>> {
        match self {
            Self::Fifo(queue) => queue.get(index),
            Self::Other(_) => None,
        }
    }

    /// Gives the next packet, or none if none is left. What it drops or marks on the way, it tells the observer.
    pub fn dequeue(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Packet<P>> {
        match self {
            Self::Fifo(queue) => queue.dequeue(now, observer),
            Self::Other(other) => other.dequeue(now, observer),
        }
    }

    /// How many packets wait.
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Other(other) => each!(&**other, queue => queue.len()),
        }
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes wait.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Fifo(queue) => queue.bytes(),
            Self::Other(other) => each!(&**other, queue => queue.bytes()),
        }
    }
}

impl<P> Discipline<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Time, packet: Packet<P>, observer: &mut impl Observer<P>) {
        each!(self, queue => queue.enqueue(now, packet, observer));
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Packet<P>> {
        each!(self, queue => queue.dequeue(now, observer))
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
