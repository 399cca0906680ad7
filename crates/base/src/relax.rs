use alloc::collections::VecDeque;

/// Gives back the memory of a queue that has become empty, unless it is small: of thousands of
/// queues each is long now and then, and all of them never. For how many entries there was room, if
/// it was given back.
pub fn relax<T>(queue: &mut VecDeque<T>) -> Option<usize> {
    (queue.is_empty() && queue.capacity() > SMALL).then(|| core::mem::take(queue).capacity())
}

/// Appends to a queue. It begins with two places, and a long one grows by a third and not to twice
/// its size: of thousands of queues most are nearly as long as they ever were, and half of their
/// memory would be unused.
#[inline]
pub fn append<T>(queue: &mut VecDeque<T>, value: T) {
    if queue.len() == queue.capacity() {
        grow(queue);
    }
    queue.push_back(value);
}

/// Puts a value before others in a queue, which grows as with [`append`].
///
/// # Panics
/// If `index` is greater than the queue's length.
pub(crate) fn insert<T>(queue: &mut VecDeque<T>, index: usize, value: T) {
    if queue.len() == queue.capacity() {
        grow(queue);
    }
    queue.insert(index, value);
}

#[cold]
fn grow<T>(queue: &mut VecDeque<T>) {
    let len = queue.len();
    queue.reserve_exact(if len < SMALL { len.max(2) } else { len / 3 });
}

/// Entries that may stay.
const SMALL: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_grows_has_little_to_spare() {
        let mut queue = VecDeque::new();
        for value in 0..1000 {
            append(&mut queue, value);
            assert!(queue.capacity() <= (queue.len() * 4 / 3).max(SMALL));
        }
        assert!(queue.into_iter().eq(0..1000));
    }

    #[test]
    fn what_was_long_gives_its_memory_back_when_it_is_empty() {
        let mut queue: VecDeque<u64> = (0..100).collect();
        queue.drain(..99);
        relax(&mut queue);
        assert!(queue.capacity() >= 100 && queue.len() == 1);
        queue.clear();
        relax(&mut queue);
        assert_eq!(queue.capacity(), 0);
        queue.push_back(1);
        let small = queue.capacity();
        queue.clear();
        relax(&mut queue);
        assert_eq!(queue.capacity(), small);
    }
}
