//! What experiments are judged by: pure functions of what was counted. Times are in seconds, rates
//! in one unit throughout; `specs` of the papers give the definitions that each cites.

/// Useful bytes per time, in bit/s (Móczár 2015, section 3.5.1).
pub fn goodput(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// Flow completion time by its definition: from the first packet sent to the last received.
pub fn fct_defined(first_sent: f64, last_received: f64) -> f64 {
    last_received - first_sent
}

/// Flow completion time as the receiver sees it: from the first data packet to the last.
pub fn fct_received(first_data: f64, last_data: f64) -> f64 {
    last_data - first_data
}

/// Jain's index: 1 if all are equal, 1/n if one of n has it all; 1 for nothing at all.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// Performance utilisation: the goodput with a buffer relative to that with one which never limits.
pub fn performance_utilisation(goodput: f64, unlimited: f64) -> f64 {
    ratio(goodput, unlimited)
}

/// Buffer occupancy: the time average of the queue relative to the buffer. `integral` is bytes (or
/// packets) times seconds.
pub fn buffer_occupancy(integral: f64, seconds: f64, buffer: f64) -> f64 {
    ratio(integral, seconds * buffer)
}

/// Normalised aggregate goodput: the sum of all flows' goodputs relative to what a single flow can
/// have at most.
pub fn normalised_aggregate_goodput(goodputs: &[f64], single: f64) -> f64 {
    ratio(goodputs.iter().sum(), single)
}

/// Network utilisation at one time: the mean of the utilisations of all bottleneck links and of the
/// occupancies of their buffers, each between 0 and 1.
pub fn network_utilisation(links: &[f64], buffers: &[f64]) -> f64 {
    let count = links.len() + buffers.len();
    ratio(links.iter().chain(buffers).sum(), count as f64)
}

/// Shares of the time that a network is underloaded (below 0.2), normally loaded, and overloaded
/// (from 0.8 on).
pub fn utilisation_regimes(samples: &[f64]) -> [f64; 3] {
    let mut regimes = [0.0; 3];
    for sample in samples {
        let regime = if *sample < 0.2 { 0 } else { usize::from(*sample >= 0.8) + 1 };
        regimes[regime] += 1.0;
    }
    regimes.map(|count| ratio(count, samples.len() as f64))
}

/// δ-fair convergence time: how long after the second flow's start the two first have shares of at
/// least (1−δ)/2 of the capacity each. `samples` are (time, first, second); `None` if that never
/// comes.
pub fn delta_fair_convergence(
    samples: &[(f64, f64, f64)],
    start: f64,
    capacity: f64,
    delta: f64,
) -> Option<f64> {
    let least = (1.0 - delta) / 2.0 * capacity;
    let after = samples.iter().filter(|(time, _, _)| *time >= start);
    after.into_iter().find(|(_, a, b)| a.min(*b) >= least).map(|(time, _, _)| time - start)
}

/// Adaptation error per flow: the mean over flows of |goodput − fair share| / fair share.
pub fn adaptation_error_per_flow(goodputs: &[f64], fair: &[f64]) -> f64 {
    let errors = goodputs.iter().zip(fair).map(|(g, f)| ratio((g - f).abs(), *f));
    ratio(errors.sum(), goodputs.len() as f64)
}

/// Adaptation error of the aggregate: |Σ goodput − Σ fair share| / Σ fair share. The printed
/// formula has the sum of the differences in it, which contradicts the published values.
pub fn adaptation_error_aggregate(goodputs: &[f64], fair: &[f64]) -> f64 {
    let (got, due): (f64, f64) = (goodputs.iter().sum(), fair.iter().sum());
    ratio((got - due).abs(), due)
}

/// Queue saturation time: from a flow's start to the first dropped packet.
pub fn queue_saturation_time(start: f64, first_drop: Option<f64>) -> Option<f64> {
    first_drop.map(|drop| drop - start)
}

/// Drop rate: packets dropped relative to packets that arrived. At a bottleneck behind another it
/// is the rate of dead packets: they took capacity upstream in vain.
pub fn drop_rate(dropped: u64, arrived: u64) -> f64 {
    ratio(dropped as f64, arrived as f64)
}

/// The highest drop rate between two samples, and the time of the second. `samples` are (time,
/// arrived, dropped), counted from the beginning; `None` if nothing was dropped.
pub fn drop_peak(samples: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    let between = samples.windows(2).map(|pair| {
        let [(_, arrived_before, dropped_before), (time, arrived, dropped)] = [pair[0], pair[1]];
        (time, ratio(dropped - dropped_before, arrived - arrived_before))
    });
    // Of equal ones the first.
    let highest = between.reduce(|best, next| if next.1 > best.1 { next } else { best });
    highest.filter(|(_, share)| *share > 0.0)
}

/// Wasted symbols: received ones that were of no use, relative to all received.
pub fn wasted_symbols(wasted: u64, received: u64) -> f64 {
    ratio(wasted as f64, received as f64)
}

/// Mean and standard deviation; zeros for nothing.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, libm::sqrt(squares / count))
}

/// The value that this share of all is no larger than; 0 for nothing.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64 + 0.5) as usize).copied().unwrap_or(0.0)
}

fn ratio(value: f64, of: f64) -> f64 {
    if of > 0.0 { value / of } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-9, "{got}, not {want}");
    }

    #[test]
    fn goodput_counts_bits_per_second() {
        near(goodput(1_250_000, 10.0), 1e6);
        near(goodput(1, 0.0), 0.0);
    }

    #[test]
    fn completion_times_begin_at_either_end() {
        near(fct_defined(1.0, 3.5), 2.5);
        near(fct_received(1.05, 3.5), 2.45);
    }

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_a_monopoly() {
        near(jain(&[3.0, 3.0, 3.0]), 1.0);
        near(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        // (1+2+3)² / (3·(1+4+9)) = 36/42.
        near(jain(&[1.0, 2.0, 3.0]), 6.0 / 7.0);
        near(jain(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn relative_figures_are_what_they_say() {
        near(performance_utilisation(540.0, 1000.0), 0.54);
        // A queue of 50 packets for 6 of 10 s in a buffer of 100.
        near(buffer_occupancy(50.0 * 6.0, 10.0, 100.0), 0.3);
        near(normalised_aggregate_goodput(&[100.0, 120.0], 1000.0), 0.22);
        near(drop_rate(5, 200), 0.025);
        near(wasted_symbols(1, 50), 0.02);
        near(drop_rate(0, 0), 0.0);
    }

    #[test]
    fn the_utilisation_of_a_network_is_the_mean_of_links_and_buffers() {
        near(network_utilisation(&[1.0, 0.5], &[0.1, 0.0]), 0.4);
        let regimes = utilisation_regimes(&[0.0, 0.19, 0.2, 0.79, 0.8, 1.0, 0.5, 0.5]);
        assert_eq!(regimes, [0.25, 0.5, 0.25]);
    }

    #[test]
    fn convergence_is_counted_from_the_second_flow_s_start() {
        let samples = [
            (99.0, 1000.0, 0.0),
            (100.0, 900.0, 100.0),
            (101.0, 700.0, 300.0),
            (102.0, 540.0, 460.0),
        ];
        assert_eq!(delta_fair_convergence(&samples, 100.0, 1000.0, 0.5), Some(1.0));
        assert_eq!(delta_fair_convergence(&samples, 100.0, 1000.0, 0.1), Some(2.0));
        assert_eq!(delta_fair_convergence(&samples, 100.0, 1000.0, 0.01), None);
    }

    #[test]
    fn adaptation_errors_of_the_specification_s_vector() {
        let (goodputs, fair) = ([80.0, 20.0], [50.0, 50.0]);
        near(adaptation_error_per_flow(&goodputs, &fair), 0.6);
        near(adaptation_error_aggregate(&goodputs, &fair), 0.0);
    }

    #[test]
    fn the_highest_drop_rate_is_the_first_of_the_highest_between_two_samples() {
        let samples = [(0.0, 0.0, 0.0), (1.0, 100.0, 5.0), (2.0, 110.0, 10.0), (3.0, 120.0, 15.0)];
        assert_eq!(drop_peak(&samples), Some((2.0, 0.5)));
        assert_eq!(drop_peak(&samples[..1]), None);
        assert_eq!(drop_peak(&[(0.0, 9.0, 1.0), (1.0, 20.0, 1.0), (2.0, 20.0, 1.0)]), None);
    }

    #[test]
    fn saturation_is_counted_from_the_start() {
        assert_eq!(queue_saturation_time(10.0, Some(10.5)), Some(0.5));
        assert_eq!(queue_saturation_time(10.0, None), None);
    }
}
