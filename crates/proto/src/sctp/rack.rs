//! Losses that time tells on a path: RACK-TLP (RFC 8985), carried over to SCTP.
//!
//! A chunk's departure stands for a segment's time and its sequence number, and duplicate TSNs in
//! SACKs stand for DSACK.

use std::collections::VecDeque;

use fontis_base::{Duration, Time};

/// Recoveries for which a window that was raised stays so (RFC 8985 section 6.2 step 4).
const PERSIST: u32 = 16;
/// Chunks that are remembered as sent again, so that their duplicates tell of reordering.
const MOST_REPEATED: usize = 256;

/// The copy that has come and that left last (`RACK.segment`).
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestDelivered {
    pub(super) order: u64,
    /// Its round-trip time (`RACK.rtt`).
    pub(super) rtt: Duration,
}

/// A probe of the tail whose outcome is open (`TLP.end_seq`).
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    pub(super) order: u64,
    pub(super) left: Time,
    /// The chunk that it repeats; `None` if it has brought new data.
    pub(super) repeats: Option<u64>,
}

/// What a path knows of the order in which its copies come.
#[derive(Clone, Debug)]
pub(super) struct PathRack {
    pub(super) newest: Option<NewestDelivered>,
    /// The last departure that earlier SACKs have told of (`RACK.fack`).
    seen: u64,
    /// Whether something has come after what left later.
    has_reordering: bool,
    /// Quarters of the least round-trip time in the window, and the recoveries until it is one.
    quarters: u32,
    persist: u32,
    /// Duplicates raise the window no more until this departure is acknowledged: once in a round
    /// trip.
    round: u64,
    /// TSNs that time has told lost, the newest last.
    repeated: VecDeque<u32>,
    /// When a chunk that is late counts as lost.
    pub(super) late_at: Option<Time>,
    /// When the tail is probed.
    pub(super) probe_at: Option<Time>,
    /// Whether the next departure is a probe, which needs no room in the window.
    pub(super) is_probe_due: bool,
    pub(super) probe: Option<TailProbe>,
    /// Whether a round-trip time was taken since the last probe.
    pub(super) has_sample: bool,
}

impl Default for PathRack {
    fn default() -> Self {
        Self {
            newest: None,
            seen: 0,
            has_reordering: false,
            quarters: 1,
            persist: 0,
            round: 0,
            repeated: VecDeque::new(),
            late_at: None,
            probe_at: None,
            is_probe_due: false,
            probe: None,
            has_sample: true,
        }
    }
}

impl PathRack {
    /// A copy with its place in the order of departures has come, so long after it left; whether
    /// the chunk was sent again. One that was and that comes sooner than the least round-trip time
    /// is a copy that left before (RFC 8985 section 6.2 step 2).
    pub(super) fn note(&mut self, order: u64, rtt: Duration, is_repeat: bool, least: Duration) {
        if is_repeat && rtt < least {
            return;
        }
        // What this SACK alone tells of came in an order that nobody knows.
        self.has_reordering |= !is_repeat && order < self.seen;
        if self.newest.is_none_or(|newest| order > newest.order) {
            self.newest = Some(NewestDelivered { order, rtt });
        }
    }

    /// A SACK has been read, and named these duplicates; `next` is the order of the next departure.
    pub(super) fn finish(&mut self, duplicates: &[u32], next: u64) {
        self.seen = self.newest.map_or(0, |newest| newest.order);
        let before = self.repeated.len();
        self.repeated.retain(|tsn| !duplicates.contains(tsn));
        if self.repeated.len() == before {
            return;
        }
        self.has_reordering = true;
        self.persist = PERSIST;
        if self.seen >= self.round {
            self.quarters = self.quarters.saturating_add(1);
            self.round = next;
        }
    }

    /// Time has told a chunk lost, and it is sent again.
    pub(super) fn note_repeated(&mut self, tsn: u32) {
        if self.repeated.len() == MOST_REPEATED {
            self.repeated.pop_front();
        }
        self.repeated.push_back(tsn);
    }

    /// All that was sent before a loss has been heard of.
    pub(super) const fn leave_recovery(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// Whether the reordering window is none where losses are clear: nothing has been reordered.
    pub(super) const fn is_ordered(&self) -> bool {
        !self.has_reordering
    }

    /// The reordering window: how much later than others a chunk may come.
    pub(super) fn window(&self, least: Duration, srtt: Duration) -> Duration {
        (least.min(srtt) / 4 * u64::from(self.quarters)).min(srtt)
    }

    /// The timer has expired, or the path is gone: nothing waits any more.
    pub(super) fn stop(&mut self) {
        (self.late_at, self.probe_at, self.is_probe_due) = (None, None, false);
        self.probe = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(40);
    const SRTT: Duration = Duration::from_millis(60);

    fn window(rack: &PathRack) -> u64 {
        rack.window(LEAST, SRTT).as_millis()
    }

    #[test]
    fn what_comes_after_something_that_left_later_is_reordering_and_a_repeat_is_none() {
        let mut rack = PathRack::default();
        rack.note(5, SRTT, false, LEAST);
        rack.note(3, SRTT, false, LEAST);
        assert!(rack.is_ordered(), "both are told in one SACK");
        rack.finish(&[], 9);
        rack.note(4, SRTT, true, LEAST);
        assert!(rack.is_ordered());
        rack.note(2, SRTT, false, LEAST);
        assert!(!rack.is_ordered());
        assert_eq!(rack.newest.map(|newest| newest.order), Some(5));
    }

    #[test]
    fn a_repeat_that_comes_too_soon_says_nothing() {
        let mut rack = PathRack::default();
        rack.note(7, LEAST / 2, true, LEAST);
        assert!(rack.newest.is_none());
        rack.note(7, LEAST, true, LEAST);
        assert!(rack.newest.is_some());
    }

    #[test]
    fn duplicates_of_repeats_raise_the_window_once_in_a_round_trip_up_to_a_round_trip() {
        let mut rack = PathRack::default();
        assert_eq!(window(&rack), 10);
        rack.finish(&[1], 10);
        assert_eq!(window(&rack), 10, "the network doubles");
        for tsn in 0..20 {
            rack.note_repeated(tsn);
        }
        rack.finish(&[1], 10);
        rack.finish(&[2], 11);
        assert_eq!(window(&rack), 20);
        for tsn in 3..10_u32 {
            rack.note(10 * u64::from(tsn), SRTT, false, LEAST);
            rack.finish(&[tsn], 10 * u64::from(tsn));
        }
        assert_eq!(window(&rack), 60, "never above the smoothed round-trip time");
        for _ in 0..15 {
            rack.leave_recovery();
        }
        assert_eq!(window(&rack), 60);
        rack.leave_recovery();
        assert_eq!(window(&rack), 10);
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut rack = PathRack::default();
        (0..10_000).for_each(|tsn| rack.note_repeated(tsn));
        assert_eq!(rack.repeated.len(), MOST_REPEATED);
    }
}
