use std::collections::VecDeque;

use super::config::QueueDrop;
use super::packet::DccpData;

/// The packets that wait between an application and the network.
#[derive(Clone, Debug)]
pub(super) struct SendQueue {
    waiting: VecDeque<DccpData>,
    limit: usize,
    drop: QueueDrop,
    dropped: u64,
}

impl SendQueue {
    pub(super) const fn new(limit: usize, drop: QueueDrop) -> Self {
        Self { waiting: VecDeque::new(), limit, drop, dropped: 0 }
    }

    /// Appends a packet. False if a packet had to be dropped: this one or the oldest.
    pub(super) fn push(&mut self, data: DccpData) -> bool {
        let is_full = self.waiting.len() >= self.limit.max(1);
        self.dropped += u64::from(is_full);
        if is_full && self.drop == QueueDrop::Newest {
            return false;
        }
        if is_full {
            self.waiting.pop_front();
        }
        self.waiting.push_back(data);
        !is_full
    }

    /// Puts back a packet that was taken.
    pub(super) fn put_back(&mut self, data: DccpData) {
        self.waiting.push_front(data);
    }

    /// Drops the packets that are longer than this.
    pub(super) fn keep_up_to(&mut self, most: u32) {
        let before = self.waiting.len();
        self.waiting.retain(|data| data.len() <= most as usize);
        self.dropped += (before - self.waiting.len()) as u64;
    }

    pub(super) fn pop(&mut self) -> Option<DccpData> {
        self.waiting.pop_front()
    }

    pub(super) fn front_len(&self) -> Option<u32> {
        Some(u32::try_from(self.waiting.front()?.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Packets that can be appended without a drop.
    pub(super) fn room(&self) -> usize {
        self.limit.max(1).saturating_sub(self.waiting.len())
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_the_newest_or_the_oldest() {
        for (drop, left) in [(QueueDrop::Newest, [0, 1]), (QueueDrop::Oldest, [1, 2])] {
            let mut queue = SendQueue::new(2, drop);
            let data = |mark| DccpData::Counted { len: 1, mark };
            assert_eq!([0, 1, 2].map(|mark| queue.push(data(mark))), [true, true, false]);
            assert_eq!(
                [queue.pop(), queue.pop(), queue.pop()],
                [Some(data(left[0])), Some(data(left[1])), None]
            );
            assert_eq!(queue.dropped(), 1);
        }
    }
}
