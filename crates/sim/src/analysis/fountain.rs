//! What a fountain with fair queueing achieves, in closed form (report of 2011, sections 5.4 to 9;
//! dissertation, equation 3.4). Rates are in one unit throughout, redundancies are shares of the
//! message.

use crate::analysis::share::{Demand, hop_by_hop_shares, max_min_network};

/// Goodput of a flow with this share and redundancy ε: s/(1+ε). The print divides twice in two of
/// its three cases.
pub fn goodput(share: f64, redundancy: f64) -> f64 {
    share / (1.0 + redundancy)
}

/// The share of the link that redundancy costs: 1 − 1/(1+ε), which is not linear.
pub fn redundancy_cost(redundancy: f64) -> f64 {
    1.0 - 1.0 / (1.0 + redundancy)
}

/// t: the share of its packets that a flow with this access rate gets through.
pub fn success_ratio(access: f64, share: f64) -> f64 {
    if access > share { share / access } else { 1.0 }
}

/// b: the mean length of a run of drops, in packets; 0 if none are dropped.
pub fn burst_length(access: f64, share: f64) -> f64 {
    if access > share { (access / share - 1.0).max(1.0) } else { 0.0 }
}

/// n: packets to send so that (1+ε)k arrive.
pub fn packets_to_send(k: f64, redundancy: f64, success: f64) -> f64 {
    (1.0 + redundancy) * k / success
}

/// Transmission redundancy: how much more is sent than arrives, 1/t − 1, whatever the size of the
/// message.
pub fn transmission_redundancy(success: f64) -> f64 {
    1.0 / success - 1.0
}

/// Redundancy at which an ideal fountain would be as fast as this transfer: T·C/(D·N) − 1 (section
/// 7).
pub fn equivalent_redundancy(seconds: f64, capacity: f64, bits: f64, flows: f64) -> f64 {
    if bits > 0.0 { seconds * capacity / (bits * flows) - 1.0 } else { f64::INFINITY }
}

/// What a fountain with practical redundancy gains over a transfer of this equivalent redundancy.
pub fn rate_increase(equivalent: f64, practical: f64) -> f64 {
    (1.0 + equivalent) / (1.0 + practical) - 1.0
}

/// Of what max-min fair rates would carry over these links, the share that fair queues carry that
/// know nothing of one another (section 9).
pub fn hop_by_hop_efficiency(capacities: &[f64], demands: &[Demand]) -> f64 {
    let sum = |rates: Vec<f64>| rates.iter().sum::<f64>();
    sum(hop_by_hop_shares(capacities, demands)) / sum(max_min_network(capacities, demands))
}

/// The share of a packet on the wire that is payload.
pub fn header_efficiency(payload: f64, headers: f64) -> f64 {
    payload / (payload + headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got}, not {want}");
    }

    #[test]
    fn redundancy_costs_what_the_specification_s_vectors_say() {
        for (redundancy, cost) in [(0.05, 0.0476), (0.10, 0.0909), (0.5, 0.333), (0.031_48, 0.0305)]
        {
            near(redundancy_cost(redundancy), cost, 5e-4);
        }
        // 1 Gbit/s, MTU 1500, 28-byte header over IPv4, without and with 38 bytes of Ethernet; the
        // 24-byte header.
        for (redundancy, payload, headers, goodput_mbps) in [
            (0.10, 1452.0, 48.0, 880.0),
            (0.10, 1452.0, 86.0, 858.0),
            (0.05, 1452.0, 48.0, 922.0),
            (0.05, 1452.0, 86.0, 899.0),
            (0.10, 1456.0, 44.0, 882.0),
            (0.05, 1456.0, 82.0, 902.0),
        ] {
            let share = 1000.0 * header_efficiency(payload, headers);
            near(goodput(share, redundancy), goodput_mbps, 0.6);
        }
    }

    #[test]
    fn a_flow_of_a_fifth_through_five_times_its_share() {
        let t = success_ratio(1000.0, 200.0);
        near(t, 0.2, 1e-12);
        near(burst_length(1000.0, 200.0), 4.0, 1e-12);
        near(burst_length(300.0, 200.0), 1.0, 1e-12);
        near(burst_length(100.0, 200.0), 0.0, 0.0);
        near(packets_to_send(1000.0, 0.05, t), 5250.0, 1e-9);
        near(transmission_redundancy(t), 4.0, 1e-12);
    }

    #[test]
    fn equivalent_redundancy_and_what_a_fountain_gains() {
        // 8 Mbit in 1.15 s through 1 of 1 shares of 8 Mbit/s.
        near(equivalent_redundancy(1.15, 8e6, 8e6, 1.0), 0.15, 1e-12);
        near(rate_increase(0.15, 0.05), 1.15 / 1.05 - 1.0, 1e-12);
        near(rate_increase(0.15, 0.05), 0.0952, 1e-4);
        near(rate_increase(4.25, 0.05), 4.0, 1e-9);
        near(rate_increase(0.47, 0.05), 0.4, 1e-9);
    }

    #[test]
    fn blind_queues_waste_what_the_report_says() {
        let flow = |links: &[usize]| Demand { limit: 10.0, links: links.to_vec() };
        near(hop_by_hop_efficiency(&[10.0, 2.0], &[flow(&[0, 1]), flow(&[0])]), 0.7, 1e-12);
        // Five flows, the first one also through 50 Mbit/s: what remains of C_B1 relative to it.
        for (capacity, loss) in
            [(100.0, 0.0), (300.0, 0.033), (500.0, 0.10), (700.0, 0.129), (1000.0, 0.15)]
        {
            let flow = |links: &[usize]| Demand { limit: 1000.0, links: links.to_vec() };
            let mut demands = vec![flow(&[0]); 5];
            demands[0] = flow(&[0, 1]);
            near(hop_by_hop_efficiency(&[capacity, 50.0], &demands), 1.0 - loss, 5e-4);
        }
    }
}
