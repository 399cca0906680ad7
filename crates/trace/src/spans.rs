use fontis_base::{Duration, Time};

/// Spans of time in which something was so. What is interrupted only shortly is one span.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    since: Option<Time>,
    ended: Vec<(Time, Time)>,
}

impl Spans {
    /// Whether it is so from `at` on; `patience` is how long an interruption may be that does not
    /// count.
    pub(crate) fn say(&mut self, at: Time, is_so: bool, patience: Duration) {
        match (self.since, is_so) {
            (None, true) => {
                let again = self.ended.last().is_some_and(|(_, end)| at.since(*end) <= patience);
                let last = if again { self.ended.pop() } else { None };
                self.since = Some(last.map_or(at, |(begin, _)| begin));
            }
            (Some(begin), false) => {
                self.ended.push((begin, at.max(begin)));
                self.since = None;
            }
            _ => {}
        }
    }

    /// All of them, the one that has not ended included, from the longest down.
    pub(crate) fn longest_first(&self, end: Time) -> Vec<(Time, Time)> {
        let mut all = self.ended.clone();
        all.extend(self.since.map(|begin| (begin, end.max(begin))));
        all.sort_by_key(|(begin, end)| core::cmp::Reverse(end.since(*begin)));
        all
    }
}
