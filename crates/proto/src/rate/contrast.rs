use fontis_base::{Duration, Time};

use super::fading::Fading;
use super::feedback::FeedbackSummary;

/// How long a flow looks on before it compares: what was lost while a crowd was finding its shares
/// says nothing. In time, and in round trips, at least.
const LOOKS_ON: (Duration, u64) = (Duration::from_secs(10), 100);
/// Packets after which half of what was lost has been forgotten.
const MEMORY: f64 = 200.0;
/// Packets with a short queue that a comparison takes.
const LEAST: f64 = 40.0;
/// They are lost as often as the others if they are at least so often as those.
const ALIKE: f64 = 0.75;
/// More is no path's own loss, for all that so few packets tell.
const MOST: f64 = 0.35;

/// Losses of packets that met a short queue, beside those of packets that met a longer one.
///
/// A buffer that overflows drops what meets a long queue. Where chance loses packets both are lost
/// alike, however long a queue others keep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contrast {
    short: Fading,
    long: Fading,
    /// When what is lost begins to count. None: it has just begun to look on.
    from: Option<Time>,
}

impl Contrast {
    /// It looks on from now on.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Takes a packet that met a short queue or a longer one.
    pub(super) fn add(&mut self, sample: &FeedbackSummary, met_short: bool, received: bool) {
        let from = *self.from.get_or_insert(sample.now + sample.at_least(LOOKS_ON));
        if sample.now >= from {
            let side = if met_short { &mut self.short } else { &mut self.long };
            side.add(1.0, f64::from(!received), MEMORY);
        }
    }

    /// Whether so high a loss is as high where the queue is short.
    pub(super) fn is_alike(&self, loss: f64) -> bool {
        self.short.packets >= LEAST
            && loss < MOST
            && self.short.loss() >= ALIKE * loss.max(self.long.loss())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet each 50 ms for so many seconds, of which every other one meets a short queue; so
    /// many of twenty are lost of either.
    fn after(seconds: u64, lost: [u64; 2]) -> Contrast {
        let mut contrast = Contrast::default();
        for n in 0..seconds * 20 {
            let side = n as usize % 2;
            let received = n / 2 % 20 >= lost[side];
            contrast.add(&FeedbackSummary::example(n * 50), side == 0, received);
        }
        contrast
    }

    #[test]
    fn chance_loses_what_meets_a_short_queue_as_often() {
        assert!(after(20, [2, 2]).is_alike(0.1));
        assert!(!after(20, [0, 4]).is_alike(0.1), "a buffer overflowed");
        assert!(!after(20, [1, 3]).is_alike(0.1));
        assert!(!after(20, [8, 8]).is_alike(0.4), "no path loses so much by itself");
    }

    #[test]
    fn it_looks_on_first() {
        assert!(!after(13, [2, 2]).is_alike(0.1));
        let mut contrast = after(20, [2, 2]);
        contrast.restart();
        assert!(!contrast.is_alike(0.1));
    }
}
