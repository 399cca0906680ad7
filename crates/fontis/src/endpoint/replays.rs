use std::collections::HashSet;

use crate::protection::SynMark;

/// Handshakes that are remembered at least; twice as many at most.
const REMEMBERED: usize = 1 << 15;

/// The SYNs of the handshakes that were confirmed. Who recorded one and sends it again gets no
/// answer, and causes no work.
///
/// SYNs that nobody confirmed are not among them: a client whose handshake was forgotten, for want
/// of room or because its path is slow, may send the same SYN again.
pub(super) struct Replays {
    /// Peers choose these; the hash is one that none can foresee.
    recent: HashSet<SynMark>,
    older: HashSet<SynMark>,
}

impl Replays {
    pub(super) fn new() -> Self {
        Self { recent: HashSet::new(), older: HashSet::new() }
    }

    /// Remembers the SYN of a handshake that was confirmed.
    pub(super) fn remember(&mut self, mark: SynMark) {
        if self.recent.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(mark);
    }

    /// Returns true if the handshake of this SYN was confirmed before.
    pub(super) fn has(&self, mark: &SynMark) -> bool {
        self.recent.contains(mark) || self.older.contains(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_handshakes_are_remembered_and_their_number_is_bounded() {
        let mut replays = Replays::new();
        let mark = |number: usize| {
            let mut mark = [0; 16];
            mark[..8].copy_from_slice(&number.to_le_bytes());
            mark
        };
        for number in 0..5 * REMEMBERED {
            assert!(!replays.has(&mark(number)));
            replays.remember(mark(number));
            assert!(replays.has(&mark(number)));
            assert!(number < REMEMBERED || replays.has(&mark(number - REMEMBERED)));
        }
        assert!(replays.recent.len() + replays.older.len() <= 2 * REMEMBERED);
        assert!(!replays.has(&mark(0)));
    }
}
