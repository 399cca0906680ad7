//! Blocking of a receiver's window by paths that differ (Sarwar 2014, section 6.4).

/// A path between sender and receiver, without loss or queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockingPath {
    /// Its rate in bit/s.
    pub rate: f64,
    /// Its one-way delay in seconds.
    pub delay: f64,
}

/// The longest time that a packet waits at the receiver for one before it (Equation 6.3), from the
/// arrivals in the order of the packets: a lower bound, because nothing is lost. In the unit of the
/// arrivals.
pub fn blocking_time(arrivals: &[f64]) -> f64 {
    let (mut worst, mut latest) = (0.0f64, f64::NEG_INFINITY);
    for arrival in arrivals {
        worst = worst.max(latest - arrival);
        latest = latest.max(*arrival);
    }
    worst
}

/// The arrivals in seconds of packets of so many bytes that leave over the paths in turn, `rounds`
/// on each (Equation 6.2: the n-th on a path leaves after n transmission times).
pub fn round_robin_arrivals(paths: &[BlockingPath], bytes: u32, rounds: u32) -> Vec<f64> {
    let bits = f64::from(bytes) * 8.0;
    let arrival = |round: u32, path: &BlockingPath| {
        let time = bits / path.rate;
        f64::from(round) * time + time + path.delay
    };
    (0..rounds).flat_map(|round| paths.iter().map(move |path| arrival(round, path))).collect()
}

/// The receive buffer in bytes that avoids blocking (Equation 7.2): all rates in the longest round
/// trip.
pub fn unblocked_buffer(paths: &[BlockingPath]) -> f64 {
    let rates: f64 = paths.iter().map(|path| path.rate).sum();
    let longest = paths.iter().map(|path| path.delay * 2.0).fold(0.0, f64::max);
    rates / 8.0 * longest
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBIT: f64 = 1e3;

    fn path(rate: f64, rtt: f64) -> BlockingPath {
        BlockingPath { rate, delay: rtt / 2.0 }
    }

    fn two_packets(paths: [BlockingPath; 2]) -> f64 {
        // The packet on the slower path is before the other.
        let arrivals = round_robin_arrivals(&[paths[1], paths[0]], 1460, 1);
        blocking_time(&arrivals) * 1e3
    }

    #[test]
    fn the_model_of_two_packets_gives_the_derived_values() {
        let wifi = path(1000.0 * KBIT, 0.02);
        // E6.1: half the difference of the round-trip times.
        let other = two_packets([wifi, path(1000.0 * KBIT, 0.5)]);
        assert!((other - 240.0).abs() < 1e-9, "{other}");
        // E6.2: the difference of the transmission times.
        let slow = two_packets([wifi, path(100.0 * KBIT, 0.02)]);
        assert!((slow - 105.12).abs() < 1e-9, "{slow}");
        // E6.4: Table 6.1 prints 62.82, which its parameters do not give.
        let mobile = two_packets([wifi, path(400.0 * KBIT, 0.1)]);
        assert!((mobile - 57.52).abs() < 1e-9, "{mobile}");
    }

    #[test]
    fn packets_in_order_do_not_block_and_the_worst_wait_counts() {
        assert_eq!(blocking_time(&[]), 0.0);
        assert_eq!(blocking_time(&[1.0, 2.0, 3.0]), 0.0);
        assert_eq!(blocking_time(&[1.0, 7.0, 3.0, 2.0, 9.0]), 5.0);
    }

    #[test]
    fn equation_7_2_gives_the_printed_buffers() {
        let small = unblocked_buffer(&[path(1600.0 * KBIT, 0.02), path(400.0 * KBIT, 0.2)]);
        assert!((small - 50e3).abs() < 1e-6, "{small}");
        let large = unblocked_buffer(&[path(1e7, 0.02), path(1e6, 0.2)]);
        assert!((large - 275e3).abs() < 1e-6, "{large}");
    }
}
