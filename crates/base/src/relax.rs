use std::collections::VecDeque;

/// Gives back the memory of a queue that has become empty, unless it is small: of thousands of queues each is long now
/// and then, and all of them never.
pub fn relax<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > SMALL {
        *queue = VecDeque::new();
    }
}

/// Entries that may stay.
const SMALL: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

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
