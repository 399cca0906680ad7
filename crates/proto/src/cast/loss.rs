/// Packets after which half of what was counted has been forgotten.
const MEMORY: f64 = 4096.0;
/// Packets in a row that were not lost one by one: the receiver was away. What it lacks says so
/// already; its path is no worse for that.
const OUTAGE: u64 = 256;

/// The share of packets that are lost, of which old ones count less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FadingLoss {
    received: f64,
    lost: f64,
    /// Runs of losses.
    runs: f64,
    next: u64,
    begun: bool,
}

impl FadingLoss {
    /// Takes the number of a packet that came. Those between it and the newest before it are lost,
    /// unless they come later.
    pub(super) fn came(&mut self, number: u64) {
        let gap = if self.begun { number.saturating_sub(self.next) } else { 0 };
        if self.begun && number < self.next {
            self.lost = (self.lost - 1.0).max(0.0);
            self.received += 1.0;
            return;
        }
        let gap = if gap > OUTAGE { 0.0 } else { gap as f64 };
        let keep = libm::exp2(-(gap + 1.0) / MEMORY);
        self.received = self.received * keep + 1.0;
        self.lost = self.lost * keep + gap;
        self.runs = self.runs * keep + if gap > 0.0 { 1.0 } else { 0.0 };
        self.next = number.saturating_add(1);
        self.begun = true;
    }

    /// The mean length of runs of losses, one at least.
    pub(super) fn mean_run(&self) -> f64 {
        if self.runs < 1.0 { 1.0 } else { (self.lost / self.runs).max(1.0) }
    }

    /// The share that is lost; zero until something came.
    pub(super) fn share(&self) -> f64 {
        let all = self.received + self.lost;
        if all < 1.0 { 0.0 } else { self.lost / all }
    }
}

/// How many symbols to send over a path that loses a share `loss` so that `lacking` arrive with
/// `margin` standard deviations to spare.
pub(super) fn symbols_to_send(lacking: u32, loss: f64, margin: f64) -> u32 {
    let arriving = 1.0 - loss.clamp(0.0, 0.95);
    let lacking = f64::from(lacking);
    let mean = lacking / arriving;
    // The deviation of a negative binomial: losses before so many arrivals.
    let deviation = libm::sqrt(lacking * loss) / arriving;
    libm::ceil(mean + margin * deviation - 1e-9) as u32
}

#[cfg(test)]
mod tests {
    use fontis_base::{Probability, Stream};

    use super::*;

    #[test]
    fn the_share_is_that_of_the_path() {
        let mut stream = Stream::new(1, "fading");
        let mut loss = FadingLoss::default();
        for number in 0..40_000 {
            if !stream.chance(Probability::new(0.1)) {
                loss.came(number);
            }
        }
        assert!((loss.share() - 0.1).abs() < 0.015, "{}", loss.share());
        let before = loss.share();
        loss.came(1);
        assert!(loss.share() < before, "what came late is not lost");
    }

    #[test]
    fn a_margin_of_standard_deviations_is_one() {
        let mut stream = Stream::new(2, "margin");
        for (lacking, loss) in [(10, 0.3), (100, 0.1), (700, 0.02)] {
            let sent = symbols_to_send(lacking, loss, 2.0);
            let enough = (0..2000)
                .filter(|_| {
                    let lost = (0..sent).filter(|_| stream.unit() < loss).count() as u32;
                    sent - lost >= lacking
                })
                .count();
            assert!(enough > 1900, "{lacking} {loss}: {enough} of 2000");
        }
        assert_eq!(symbols_to_send(5, 0.0, 3.0), 5);
        assert_eq!(symbols_to_send(0, 0.5, 3.0), 0);
    }
}
