use std::collections::BTreeSet;

use fontis_base::Time;

/// The times of connections' next work, in order.
#[derive(Default)]
pub(super) struct Deadlines(BTreeSet<(Time, u64)>);

impl Deadlines {
    /// The next work of connection `id` is due at `next` and no longer at `before`.
    pub(super) fn set(&mut self, id: u64, before: Option<Time>, next: Option<Time>) {
        if before == next {
            return;
        }
        // In this order the tree of an only connection is not made anew.
        if let Some(next) = next {
            self.0.insert((next, id));
        }
        if let Some(before) = before {
            self.0.remove(&(before, id));
        }
    }

    /// The connections whose work is due.
    pub(super) fn due(&self, now: Time) -> impl Iterator<Item = u64> {
        self.0.range(..=(now, u64::MAX)).map(|(_, id)| *id)
    }

    /// The time of the first work.
    pub(super) fn first(&self) -> Option<Time> {
        self.0.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Duration;

    use super::*;

    #[test]
    fn work_is_due_at_the_latest_time_that_was_set() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut deadlines = Deadlines::default();
        deadlines.set(1, None, Some(at(10)));
        deadlines.set(2, None, Some(at(20)));
        assert_eq!(deadlines.first(), Some(at(10)));
        deadlines.set(1, Some(at(10)), Some(at(30)));
        assert_eq!(deadlines.first(), Some(at(20)));
        assert_eq!(deadlines.due(at(19)).count(), 0);
        assert_eq!(deadlines.due(at(30)).collect::<Vec<_>>(), [2, 1]);
        deadlines.set(2, Some(at(20)), None);
        deadlines.set(1, Some(at(30)), Some(at(30)));
        assert_eq!(deadlines.due(at(30)).collect::<Vec<_>>(), [1]);
    }
}
