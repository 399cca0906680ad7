use fontis_base::{Observer, Packet, Time};

use super::cell::RadioCell;
use super::classes::{Priority, TwoClass};
use super::codel::CoDel;
use super::drr::Drr;
use super::fifo::Fifo;
use super::fq_codel::FqCoDel;
use super::ranked::Ranked;
use super::red::Red;
use super::wfq::Wfq;

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
    /// The flow that comes first by what it has had, or needs.
    Ranked(Ranked<P>),
    /// A radio cell.
    Cell(RadioCell<P>),
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
            Queue::Ranked($inner) => $body,
            Queue::Cell($inner) => $body,
        }
    };
}

impl<P> Queue<P> {
    /// Takes a packet. What it drops, this packet or another, it tells the observer.
    #[inline(never)]
    pub fn enqueue(&mut self, now: Time, packet: Packet<P>, observer: &mut impl Observer<P>) {
        each!(self, queue => queue.enqueue(now, packet, observer));
    }

    /// Gives the next packet, or none if none is left, or if a [cell](RadioCell) has none ready
    /// yet. What it drops or marks on the way, it tells the observer.
    #[inline(never)]
    pub fn dequeue(&mut self, now: Time, observer: &mut impl Observer<P>) -> Option<Packet<P>> {
        each!(self, queue => queue.dequeue(now, observer))
    }

    /// The radio cell, which is queue and line in one, if it is one.
    pub(crate) fn cell(&self) -> Option<&RadioCell<P>> {
        match self {
            Self::Cell(cell) => Some(cell),
            _ => None,
        }
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
