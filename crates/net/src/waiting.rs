use fontis_base::{Packet, Stream, Time};

use crate::config::LinkConfig;
use crate::queue::discipline::Queue;
use crate::queue::tail::Tail;

/// What waits for a line.
#[derive(Clone, Debug)]
pub(crate) enum Waiting<P> {
    /// In the order in which it will travel: it stands behind what travels, and need not be moved
    /// when its turn comes.
    Behind(Tail),
    /// In a queue that decides.
    In(Box<Queue<P>>),
}

impl<P> Waiting<P> {
    /// Nothing yet.
    pub(crate) fn new(config: &LinkConfig, stream: impl FnOnce() -> Stream) -> Self {
        let LinkConfig { queue, buffer, ref queue_options, .. } = *config;
        match queue.is_plain() && config.keeps_order() {
            true => Self::Behind(queue.tail(buffer, queue_options)),
            false => Self::In(Box::new(queue.build(buffer, queue_options, stream))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Behind(tail) => tail.len(),
            Self::In(queue) => queue.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Behind(tail) => tail.bytes(),
            Self::In(queue) => queue.bytes(),
        }
    }

    /// When what waits is ready, if the queue is the one to say.
    pub(crate) fn ready_at(&self) -> Option<Time> {
        match self {
            Self::Behind(_) => None,
            Self::In(queue) => queue.ready_at(),
        }
    }

    /// Whether a packet that came now, for a line that is free, would leave at once, and nothing
    /// would be dropped or marked.
    pub(crate) fn lets_pass(&self, packet: &Packet<P>) -> bool {
        match self {
            Self::Behind(tail) => tail.lets_pass(packet),
            Self::In(_) => false,
        }
    }
}
