use std::collections::VecDeque;

/// The number of closed loss intervals that count.
const INTERVALS: usize = 8;
/// Their weights, the newest first (RFC 5348 section 5.4).
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The loss intervals of a connection, from which the loss event rate follows.
#[derive(Clone, Debug, Default)]
pub struct LossHistory {
    /// Closed intervals, the newest first.
    closed: VecDeque<LossInterval>,
}

/// From the first loss of an event up to the first of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossInterval {
    /// Packets in it.
    pub packets: f64,
    /// Losses in it.
    pub losses: u32,
    /// Whether it was at most two round trips long.
    pub is_short: bool,
}

impl LossInterval {
    /// The length that counts: packets, or for small packets in a short interval packets a loss
    /// (RFC 4828 section 4.4).
    fn length(&self, small_packets: bool) -> f64 {
        match small_packets && self.is_short {
            true => self.packets / f64::from(self.losses.max(1)),
            false => self.packets,
        }
    }
}

impl LossHistory {
    /// Whether there was no loss so far.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }

    /// The closed intervals, the newest first.
    pub fn closed(&self) -> impl Iterator<Item = &LossInterval> {
        self.closed.iter()
    }

    /// Adds an interval.
    pub fn close(&mut self, interval: LossInterval) {
        self.closed.push_front(interval);
        self.closed.truncate(INTERVALS);
    }

    /// The loss event rate, with `open` as the interval that is not over; zero without loss (RFC
    /// 5348 section 5.4). The open interval of small packets counts when it is longer than two
    /// round trips (RFC 4828 section 4.4).
    pub fn loss_event_rate(&self, open: &LossInterval, small_packets: bool) -> f64 {
        if self.closed.is_empty() {
            return 0.0;
        }
        let lengths = || self.closed.iter().map(|interval| interval.length(small_packets));
        let weighted = |lengths: &mut dyn Iterator<Item = f64>| -> (f64, f64) {
            WEIGHTS.iter().zip(lengths).fold((0.0, 0.0), |(sum, total), (weight, length)| {
                (sum + weight * length, total + weight)
            })
        };
        let (sum, total) = weighted(&mut lengths());
        let closed = sum / total;
        let mean = if small_packets && open.is_short {
            closed
        } else {
            // The same number of intervals, the open one first.
            let open = [open.length(small_packets)].into_iter();
            let (sum, total) = weighted(&mut open.chain(lengths()).take(self.closed.len()));
            closed.max(sum / total)
        };
        (1.0 / mean.max(1.0)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(packets: f64) -> LossInterval {
        LossInterval { packets, losses: 1, is_short: false }
    }

    #[test]
    fn equal_intervals_give_their_inverse() {
        let mut history = LossHistory::default();
        assert_eq!(history.loss_event_rate(&of(5.0), false), 0.0);
        for _ in 0..12 {
            history.close(of(100.0));
            let rate = history.loss_event_rate(&of(1.0), false);
            assert!((rate - 0.01).abs() < 1e-12, "{rate}");
        }
        assert_eq!(history.closed().count(), INTERVALS);
    }

    #[test]
    fn a_long_open_interval_lowers_the_rate_and_a_short_one_does_not_raise_it() {
        let mut history = LossHistory::default();
        (0..8).for_each(|_| history.close(of(100.0)));
        // Weights 1 1 1 1 .8 .6 .4 .2 of 6 in all, the first on the open interval.
        let rate = history.loss_event_rate(&of(700.0), false);
        assert!((rate - 6.0 / (700.0 + 5.0 * 100.0)).abs() < 1e-12, "{rate}");
        assert_eq!(history.loss_event_rate(&of(0.0), false), 0.01);
    }

    #[test]
    fn short_intervals_of_small_packets_count_every_loss() {
        let mut history = LossHistory::default();
        let short = LossInterval { packets: 40.0, losses: 4, is_short: true };
        (0..8).for_each(|_| history.close(short));
        assert_eq!(history.loss_event_rate(&short, true), 0.1);
        assert_eq!(history.loss_event_rate(&short, false), 1.0 / 40.0);
    }
}
