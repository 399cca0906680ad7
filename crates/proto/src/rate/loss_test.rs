/// Losses counted over a span of packet numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    received: u64,
    lost: u64,
}

impl Tally {
    pub(super) fn add(&mut self, received: bool) {
        if received {
            self.received += 1;
        } else {
            self.lost += 1;
        }
    }

    pub(super) const fn total(&self) -> u64 {
        self.received + self.lost
    }

    pub(super) fn loss(&self) -> f64 {
        if self.total() == 0 { 0.0 } else { self.lost as f64 / self.total() as f64 }
    }
}

/// What a test found out about losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// They stayed when the rate was reduced: the path loses packets at random, with this
    /// probability.
    Random(f64),
    /// They went when the rate was reduced: somebody dropped what was too much; this is what
    /// remained.
    Congestive(f64),
}

/// Tells random loss from overload: send less for a round and see whether the loss goes away.
#[derive(Clone, Debug)]
pub(super) struct LossTest {
    first: u64,
    last: Option<u64>,
    loss_before: f64,
    /// The loss that would remain if all above the reduced rate had been overload.
    loss_if_congestive: f64,
    delivered_before: f64,
    /// Packets that it takes to tell the two apart.
    packets: u64,
    tally: Tally,
}

/// The packets that a test takes, at least and at most.
const PACKETS: (f64, f64) = (40.0, 600.0);
/// Standard deviations that the two outcomes should lie apart.
const APART: f64 = 4.0;

impl LossTest {
    /// Begins a test with packet number `first`: the rate is reduced to `factor` of what it was
    /// when packets were lost with probability `loss`, in runs of `mean_burst`, and `delivered`
    /// bits per second arrived.
    pub(super) fn new(first: u64, loss: f64, mean_burst: f64, factor: f64, delivered: f64) -> Self {
        let loss_if_congestive = (1.0 - (1.0 - loss) / factor).max(0.0);
        let gap = (loss - loss_if_congestive).max(0.01);
        let variance = loss * (1.0 - loss) * (2.0 * mean_burst - 1.0).max(1.0);
        let packets = (APART * APART * variance / (gap * gap)).clamp(PACKETS.0, PACKETS.1);
        Self {
            first,
            last: None,
            loss_before: loss,
            loss_if_congestive,
            delivered_before: delivered,
            packets: packets as u64,
            tally: Tally::default(),
        }
    }

    /// Whether what was decided up to packet number `largest` suffices.
    pub(super) const fn suffices(&self, largest: u64) -> bool {
        largest >= self.first + self.packets
    }

    /// How many packets it takes.
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// The loss that would remain if all above the reduced rate had been overload.
    pub(super) const fn loss_if_congestive(&self) -> f64 {
        self.loss_if_congestive
    }

    pub(super) const fn delivered_before(&self) -> f64 {
        self.delivered_before
    }

    /// The reduced rate ends before packet number `last`.
    pub(super) const fn end(&mut self, last: u64) {
        if self.last.is_none() {
            self.last = Some(last);
        }
    }

    pub(super) const fn is_sending(&self) -> bool {
        self.last.is_none()
    }

    pub(super) fn decided(&mut self, number: u64, received: bool) {
        if number >= self.first && self.last.is_none_or(|last| number < last) {
            self.tally.add(received);
        }
    }

    /// The verdict, once feedback covers all of the test's packets.
    pub(super) fn verdict(&self, largest: u64) -> Option<Verdict> {
        if largest < self.last? {
            return None;
        }
        let loss = self.tally.loss();
        Some(
            if self.tally.total() == 0 || loss * 2.0 > self.loss_before + self.loss_if_congestive {
                Verdict::Random(if self.tally.total() == 0 { self.loss_before } else { loss })
            } else {
                Verdict::Congestive(loss)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(lost_of_hundred: u64) -> Verdict {
        let mut test = LossTest::new(10, 0.2, 1.0, 0.8, 1e6);
        for number in 10..110 {
            test.decided(number, number % 100 >= lost_of_hundred);
        }
        assert_eq!(test.verdict(200), None, "the test still sends");
        test.end(110);
        test.decided(150, false);
        test.verdict(110).unwrap()
    }

    #[test]
    fn loss_that_stays_is_random() {
        assert!(matches!(verdict(18), Verdict::Random(loss) if (loss - 0.18).abs() < 1e-9));
    }

    #[test]
    fn the_smaller_the_difference_the_more_packets_it_takes() {
        let coarse = LossTest::new(0, 0.3, 1.0, 0.7, 1e6);
        let fine = LossTest::new(0, 0.3, 1.0, 0.85, 1e6);
        assert!(coarse.suffices(45) && !fine.suffices(200) && fine.suffices(230));
    }

    #[test]
    fn loss_that_goes_was_overload() {
        assert!(matches!(verdict(1), Verdict::Congestive(loss) if loss < 0.02));
    }
}
