//! Messages in several datagrams.

use std::collections::BTreeMap;

/// The most messages whose fragments are waited for at a time.
const MOST: usize = 1024;

/// The fragments of messages of which more are to come.
#[derive(Clone, Debug, Default)]
pub(super) struct Fragments {
    partial: BTreeMap<u64, Vec<bool>>,
}

impl Fragments {
    /// Notes fragment `fragment` of `fragments` of a message. Whether its message is complete.
    pub(super) fn completes(&mut self, message: u64, fragment: u16, fragments: u16) -> bool {
        if fragments <= 1 {
            return true;
        }
        let blank = || vec![false; fragments.into()];
        let seen = self.partial.entry(message).or_insert_with(blank);
        if let Some(seen) = seen.get_mut(usize::from(fragment)) {
            *seen = true;
        }
        let complete = seen.iter().all(|seen| *seen);
        if complete {
            self.partial.remove(&message);
        } else if self.partial.len() > MOST {
            self.partial.pop_first();
        }
        complete
    }
}
