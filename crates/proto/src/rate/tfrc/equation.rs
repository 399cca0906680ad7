/// The rate of a TCP connection in bytes a second, from the packet size in bytes, the round-trip
/// time and the retransmission timeout in seconds, and the loss event rate (RFC 5348 section 3.1).
/// Infinite without loss.
pub fn throughput(size: f64, rtt: f64, rto: f64, loss: f64) -> f64 {
    if loss <= 0.0 {
        return f64::INFINITY;
    }
    let avoidance = rtt * libm::sqrt(2.0 * loss / 3.0);
    let timeouts = rto * 3.0 * libm::sqrt(3.0 * loss / 8.0) * loss * (1.0 + 32.0 * loss * loss);
    size / (avoidance + timeouts).max(f64::MIN_POSITIVE)
}

/// The loss event rate at which [`throughput`], with a timeout of four round trips, is this rate in
/// bytes a second; at most 1.
pub fn loss_rate_for(size: f64, rtt: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (1e-12, 1.0);
    // Fifty halvings of the logarithm are more than a double can tell apart.
    for _ in 0..50 {
        let middle = libm::sqrt(low * high);
        match throughput(size, rtt, 4.0 * rtt, middle) > rate {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_equation_gives_the_rates_of_the_specification() {
        let rows = [
            (1460.0, 1.0, 0.01, 16_400.5),
            (1000.0, 0.1, 0.01, 112_332.2),
            (1460.0, 0.1, 0.05, 53_813.9),
            (500.0, 0.1, 0.0166, 41_304.1),
        ];
        for (size, rtt, loss, rate) in rows {
            let got = throughput(size, rtt, 4.0 * rtt, loss);
            assert!((got - rate).abs() < 0.06, "{got} {rate}");
        }
    }

    proptest! {
        #[test]
        fn both_printings_of_the_equation_agree(rtt in 0.01f64..2.0, loss in 1e-5f64..1.0) {
            // Thesis, equation 3.1, in which the timeout is four round trips.
            let printed = 1460.0
                / (rtt * ((2.0 * loss / 3.0).sqrt()
                    + 12.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss)));
            let ours = throughput(1460.0, rtt, 4.0 * rtt, loss);
            prop_assert!((ours / printed - 1.0).abs() < 1e-12);
        }

        #[test]
        fn the_loss_rate_of_a_rate_gives_the_rate(rtt in 0.01f64..2.0, loss in 1e-6f64..0.9) {
            let rate = throughput(1000.0, rtt, 4.0 * rtt, loss);
            let back = loss_rate_for(1000.0, rtt, rate);
            prop_assert!((back / loss - 1.0).abs() < 1e-6, "{} {}", loss, back);
        }
    }
}
