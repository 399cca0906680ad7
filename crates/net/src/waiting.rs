use fontis_base::{Packet, Stream};

use crate::config::LinkConfig;
use crate::queue::cell::RadioCell;
use crate::queue::discipline::Queue;
use crate::queue::options::QueueOptions;
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
            false => {
                let options = QueueOptions { radio: config.rate, ..queue_options.clone() };
                Self::In(Box::new(queue.build(buffer, &options, stream)))
            }
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

    /// The radio cell in which it waits, if it is one.
    pub(crate) fn cell(&self) -> Option<&RadioCell<P>> {
        match self {
            Self::Behind(_) => None,
            Self::In(queue) => queue.cell(),
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
