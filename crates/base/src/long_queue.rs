use alloc::collections::VecDeque;

use crate::relax;
use crate::relax::append;
use crate::relax::insert;

/// A queue that may become long. It grows by pieces and gives each back when it is used up, so that
/// it takes hardly more memory than what is in it, and what is in it is never copied to grow. A
/// short one is a single piece that grows as with [`append`].
#[derive(Clone, Debug)]
pub struct LongQueue<T> {
    first: VecDeque<T>,
    /// What stands behind the first piece; all but the last are full.
    others: VecDeque<VecDeque<T>>,
}

/// Entries of a piece.
const PIECE: usize = 64;

impl<T> Default for LongQueue<T> {
    fn default() -> Self {
        Self { first: VecDeque::new(), others: VecDeque::new() }
    }
}

impl<T> LongQueue<T> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        let others =
            self.others.back().map_or(0, |last| (self.others.len() - 1) * PIECE + last.len());
        self.first.len() + others
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// For how many entries the first piece has room.
    pub fn capacity(&self) -> usize {
        self.first.capacity()
    }

    /// Makes room in the first piece for so many entries in all, or for as many as it may have.
    pub fn reserve(&mut self, entries: usize) {
        self.first.reserve_exact(entries.min(PIECE).saturating_sub(self.first.len()));
    }

    /// The first entry.
    pub fn front(&self) -> Option<&T> {
        self.first.front()
    }

    /// The last entry.
    pub fn back(&self) -> Option<&T> {
        self.others.back().unwrap_or(&self.first).back()
    }

    /// The entry before which so many others are.
    pub fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(self.first.len()) {
            None => self.first.get(index),
            Some(behind) => self.others.get(behind / PIECE)?.get(behind % PIECE),
        }
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match index.checked_sub(self.first.len()) {
            None => self.first.get_mut(index),
            Some(behind) => self.others.get_mut(behind / PIECE)?.get_mut(behind % PIECE),
        }
    }

    /// Appends an entry.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        let last = self.others.back_mut().unwrap_or(&mut self.first);
        match last.len() < PIECE {
            true => append(last, value),
            false => self.push_piece(value),
        }
    }

    fn push_piece(&mut self, value: T) {
        let mut piece = VecDeque::with_capacity(PIECE);
        piece.push_back(value);
        self.others.push_back(piece);
    }

    /// Puts an entry before others. It costs as much as it moves: of each piece behind the entry
    /// one to the next, and a part of its own piece.
    ///
    /// # Panics
    /// If `index` is greater than the length.
    pub fn insert(&mut self, index: usize, value: T) {
        let (mut number, mut place) = match index.checked_sub(self.first.len()) {
            None => (0, index),
            Some(0) if self.others.is_empty() && self.first.len() < PIECE => (0, index),
            Some(behind) => (behind / PIECE + 1, behind % PIECE),
        };
        let mut moved = value;
        loop {
            let piece = match number {
                0 => &mut self.first,
                _ => match self.others.get_mut(number - 1) {
                    Some(piece) => piece,
                    None => return self.push_piece(moved),
                },
            };
            let last = (piece.len() == PIECE).then(|| piece.pop_back()).flatten();
            insert(piece, place, moved);
            let Some(last) = last else { return };
            (number, place, moved) = (number + 1, 0, last);
        }
    }

    /// Takes the first entry.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let value = self.first.pop_front();
        if self.first.is_empty()
            && let Some(next) = self.others.pop_front()
        {
            self.first = next;
        }
        value
    }

    /// Gives memory back if there is no entry, unless it is little; for how many entries the last
    /// piece had room, if so.
    pub fn relax(&mut self) -> Option<usize> {
        relax(&mut self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_does_what_a_plain_queue_does(
            operations in prop::collection::vec((0u8..8, 0usize..200), 1..2000),
        ) {
            let (mut queue, mut plain) = (LongQueue::default(), VecDeque::new());
            for (number, (operation, from_back)) in operations.into_iter().enumerate() {
                match operation {
                    0..3 => {
                        queue.push_back(number);
                        plain.push_back(number);
                    }
                    3..5 => {
                        let place = plain.len().saturating_sub(from_back);
                        queue.insert(place, number);
                        plain.insert(place, number);
                    }
                    5 => {
                        for _ in 0..from_back / 20 {
                            prop_assert_eq!(queue.pop_front(), plain.pop_front());
                        }
                    }
                    _ => {
                        let changed = [queue.get_mut(from_back), plain.get_mut(from_back)];
                        changed.into_iter().flatten().for_each(|value| *value += 1);
                    }
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!((queue.front(), queue.back()), (plain.front(), plain.back()));
                prop_assert_eq!(queue.get(from_back), plain.get(from_back));
            }
            prop_assert!((0..plain.len() + 1).all(|index| queue.get(index) == plain.get(index)));
        }
    }

    #[test]
    fn what_is_used_up_is_given_back() {
        let mut queue = LongQueue::default();
        (0..10_000).for_each(|value| queue.push_back(value));
        assert_eq!(queue.others.len(), 10_000usize.div_ceil(PIECE) - 1);
        assert!((0..9_990).all(|value| queue.pop_front() == Some(value)));
        assert!(queue.others.is_empty() && queue.capacity() <= PIECE);
        assert!((9_990..10_000).all(|value| queue.pop_front() == Some(value)));
        queue.relax();
        assert_eq!(queue.capacity(), 0);
    }
}
