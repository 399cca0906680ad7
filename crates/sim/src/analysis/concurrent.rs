//! The goodput of concurrent multipath transfer as a formula (Sarwar 2014, Equations 8.6 to 8.11).

/// A path in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConcurrentPath {
    /// The round-trip time in seconds.
    pub rtt: f64,
    /// The share of packets that are lost, after repair by a code if there is one.
    pub loss: f64,
}

/// What all paths of the model have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConcurrentModel {
    /// Packets that a SACK answers.
    pub per_ack: f64,
    /// The timeout in seconds.
    pub timeout: f64,
    /// The receiver's window in packets.
    pub window: f64,
}

impl ConcurrentModel {
    /// The packets a second that each path carries (Equation 8.6; the print has lost its brackets).
    pub fn rates(&self, paths: &[ConcurrentPath]) -> Vec<f64> {
        (0..paths.len()).map(|at| self.rate(paths, at)).collect()
    }

    fn rate(&self, paths: &[ConcurrentPath], at: usize) -> f64 {
        let ConcurrentPath { rtt, loss } = paths[at];
        let most = self.window / rtt;
        if loss <= 0.0 {
            return most;
        }
        let window = self.mean_window(loss);
        let repair = self.average_of_others(paths, at);
        let timeouts = timeout_share(window, loss);
        let packets = timeouts * (1.5 * window - 2.0) + 1.25 * window + (1.0 - loss) / loss;
        let regrowth = libm::log((window + 2.0) / 2.0) / libm::log(2.5);
        let time = timeouts * self.timeout
            + repair.0 * (0.5 + repaired_packets(window, loss) / repair.1)
            + rtt * (timeouts * regrowth + (window - 2.0) / 2.0);
        most.min(packets / time)
    }

    /// The mean window in packets at a loss (Equation 8.11).
    pub fn mean_window(&self, loss: f64) -> f64 {
        let third = 4.0 / (3.0 * self.per_ack);
        third + (8.0 / (3.0 * self.per_ack * loss) + third * third).sqrt()
    }

    /// Round-trip time and window of the other paths, those with less loss counting for more
    /// (Equations 8.8 and 8.9); of an only path its own.
    fn average_of_others(&self, paths: &[ConcurrentPath], at: usize) -> (f64, f64) {
        let others = || paths.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, p)| p);
        // A path without loss has all the weight.
        let weight = |path: &ConcurrentPath| 1.0 / path.loss.max(1e-9);
        let sum: f64 = others().map(weight).sum();
        if sum == 0.0 {
            return (paths[at].rtt, self.mean_window(paths[at].loss));
        }
        let rtt = others().map(|path| path.rtt * weight(path)).sum::<f64>() / sum;
        let window = |path: &ConcurrentPath| self.mean_window(path.loss.max(1e-9)) * weight(path);
        (rtt, others().map(window).sum::<f64>() / sum)
    }
}

/// The share of losses that end in a timeout (Equation 8.7).
pub fn timeout_share(window: f64, loss: f64) -> f64 {
    let arrives = 1.0 - loss;
    let four = libm::pow(arrives, 4.0);
    let share = (1.0 - four) * (1.0 + four * (1.0 - libm::pow(arrives, window - 3.0)))
        / (1.0 - libm::pow(arrives, window));
    share.min(1.0)
}

/// The packets that are sent again in a repair (Equation 8.10).
pub fn repaired_packets(window: f64, p: f64) -> f64 {
    let (squared, cubed) = (p * p, p * p * p);
    ((3.0 - window) * cubed
        + (4.0 * window - 11.0) * squared
        + (14.0 - 6.0 * window) * p
        + (4.0 * window - 6.0))
        / (-cubed + 4.0 * squared - 6.0 * p + 4.0)
}

/// The share of packets that repair, of a code that sends `n` packets for `k` of data.
pub fn redundancy(n: u32, k: u32) -> f64 {
    f64::from(n.saturating_sub(k)) / f64::from(n)
}

/// The share of packets that a block code of `n` packets, `k` of them data, leaves lost, if each is
/// lost with probability `loss` by itself.
pub fn residual_loss(n: u32, k: u32, loss: f64) -> f64 {
    let (mut binomial, mut sum) = (1.0, 0.0);
    for lost in 0..=n {
        if lost > n - k {
            let probability = binomial
                * libm::pow(loss, f64::from(lost))
                * libm::pow(1.0 - loss, f64::from(n - lost));
            sum += probability * f64::from(lost) / f64::from(n);
        }
        binomial *= f64::from(n - lost) / f64::from(lost + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_gives_the_derived_goodputs() {
        let model = ConcurrentModel { per_ack: 2.0, timeout: 1.0, window: 43.7 };
        let wanted = [1800.0, 1415.0, 975.0, 746.0, 606.0, 512.0, 445.0, 395.0, 356.0, 328.0];
        for (percent, wanted) in (1..).zip(wanted) {
            let path = ConcurrentPath { rtt: 0.1, loss: f64::from(percent) / 100.0 };
            let packets: f64 = model.rates(&[path, path]).iter().sum();
            let goodput = (packets * 1468.0 * 8.0 / 1e3).min(1800.0);
            assert!((goodput - wanted).abs() < 0.6, "{percent} %: {goodput} and {wanted}");
        }
    }

    #[test]
    fn without_loss_the_window_alone_limits_and_a_repair_is_the_window_less_one_and_a_half() {
        let model = ConcurrentModel { per_ack: 2.0, timeout: 1.0, window: 40.0 };
        assert_eq!(model.rates(&[ConcurrentPath { rtt: 0.1, loss: 0.0 }]), [400.0]);
        assert!((repaired_packets(20.0, 1e-9) - 18.5).abs() < 1e-6);
    }

    #[test]
    fn the_block_code_leaves_the_exact_row() {
        let row = [0.086, 0.333, 0.719, 1.230, 1.849, 2.562, 3.357, 4.223, 5.149, 6.126];
        for (percent, wanted) in (1..).zip(row) {
            let residual = residual_loss(10, 9, f64::from(percent) / 100.0) * 100.0;
            assert!((residual - wanted).abs() < 5e-4, "{percent} %: {residual}");
            let p = f64::from(percent) / 100.0;
            let closed = p * (1.0 - libm::pow(1.0 - p, 9.0)) * 100.0;
            assert!((residual - closed).abs() < 1e-9);
        }
    }
}
