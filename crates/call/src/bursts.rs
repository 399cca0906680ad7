use crate::codec::FRAME;

/// Packets received between losses that end a burst (RFC 3611 section 4.7.2).
pub(crate) const GMIN: u8 = 16;

/// Counts transitions between losses in bursts and in gaps, as appendix A.2 of RFC 3611 does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LossPattern {
    /// Packets since the last loss, and losses in a row of near ones.
    received: u64,
    lost: u64,
    gaps: u64,
    single: u64,
    bursts: u64,
    within: u64,
    spaced: u64,
    adjacent: u64,
}

/// How losses lie in time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LossBursts {
    /// The share of packets lost in bursts and in gaps.
    pub(crate) burst_density: f64,
    pub(crate) gap_density: f64,
    /// Their mean lengths in milliseconds.
    pub(crate) burst_millis: f64,
    pub(crate) gap_millis: f64,
}

impl LossPattern {
    /// Takes what became of the next packet.
    pub(crate) const fn note(&mut self, is_lost: bool) {
        if !is_lost {
            self.received += 1;
            return;
        }
        if self.received >= GMIN as u64 {
            if self.lost == 1 {
                self.single += 1;
            } else {
                self.bursts += 1;
            }
            self.lost = 1;
            self.gaps += self.received;
        } else {
            self.lost += 1;
            if self.received == 0 {
                self.adjacent += 1;
            } else {
                self.spaced += 1;
                self.within += self.received - 1;
            }
        }
        self.received = 0;
    }

    /// How losses have lain.
    pub(crate) fn bursts(&self) -> LossBursts {
        let frame = FRAME.as_secs_f64() * 1e3;
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let gap = self.gaps + self.received;
        if self.bursts == 0 {
            let gap_density = ratio(self.single, gap + self.single);
            let gap_millis = (gap + self.single) as f64 * frame;
            return LossBursts { gap_density, gap_millis, ..LossBursts::default() };
        }
        let into_loss = match self.within + self.spaced {
            0 => 1.0,
            all => 1.0 - self.within as f64 / all as f64,
        };
        let out_of_loss = ratio(self.spaced, self.bursts + self.spaced + self.adjacent);
        let in_gaps = self.gaps + self.single + self.bursts;
        // Each transition out of a burst, and each from loss to reception within one, is a packet.
        let in_bursts = self.within + 2 * self.spaced + self.bursts + self.adjacent;
        LossBursts {
            burst_density: into_loss / (into_loss + out_of_loss),
            gap_density: ratio(self.single, self.gaps + self.single),
            burst_millis: ratio(in_bursts, self.bursts) * frame,
            gap_millis: ratio(in_gaps, self.bursts) * frame,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_far_apart_are_none_of_bursts_and_near_ones_are() {
        let mut alone = LossPattern::default();
        (0..1000).for_each(|number| alone.note(number % 50 == 49));
        let bursts = alone.bursts();
        assert!(bursts.burst_density == 0.0 || bursts.burst_millis <= 40.0, "{bursts:?}");
        assert!((bursts.gap_density - 0.02).abs() < 0.005, "{bursts:?}");
        let mut near = LossPattern::default();
        // Bursts of ten packets, of which every other is lost, in two hundred.
        (0..2000).for_each(|number| near.note(number % 200 < 10 && number % 2 == 0));
        let bursts = near.bursts();
        assert!((0.4..0.65).contains(&bursts.burst_density), "{bursts:?}");
        assert!(bursts.gap_density < 0.01, "{bursts:?}");
        assert!((140.0..260.0).contains(&bursts.burst_millis), "{bursts:?}");
        assert!((3000.0..4500.0).contains(&bursts.gap_millis), "{bursts:?}");
    }
}
