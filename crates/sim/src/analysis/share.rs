//! The shares that fair queues leave to flows.

/// Max-min fair shares of one link between flows with the given limits, in the limits' unit.
pub fn max_min_shares(capacity: f64, limits: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..limits.len()).collect();
    order.sort_by(|a, b| limits[*a].total_cmp(&limits[*b]));
    let mut shares = vec![0.0; limits.len()];
    let mut left = capacity;
    for (position, index) in order.into_iter().enumerate() {
        let share = limits[index].min(left / (limits.len() - position) as f64);
        shares[index] = share;
        left -= share;
    }
    shares
}

/// Shares of one link as the report of 2011 prints them (section 5.4): what slow flows leave is
/// shared out once, so that a flow may be given more than its limit. Max-min is what a fair queue
/// does.
pub fn printed_shares(capacity: f64, limits: &[f64]) -> Vec<f64> {
    let equal = capacity / limits.len() as f64;
    let slow: f64 = limits.iter().filter(|limit| **limit < equal).sum();
    let fast = limits.iter().filter(|limit| **limit >= equal).count();
    let of = |limit: &f64| {
        if *limit <= equal { *limit } else { (capacity - slow) / fast.max(1) as f64 }
    };
    let shares: Vec<f64> = limits.iter().map(of).collect();
    // A limit that is exactly the equal share counts as fast in the printed sum.
    if slow == 0.0 && fast == limits.len() { vec![equal; limits.len()] } else { shares }
}

/// What a flow asks of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The most that it can send.
    pub limit: f64,
    /// The links that it crosses, by their place in the list of capacities.
    pub links: Vec<usize>,
}

/// Max-min fair rates over a network: all flows rise together, and one stops when its limit or a
/// link of its path is full. Capacities and limits are in one unit.
pub fn max_min_network(capacities: &[f64], demands: &[Demand]) -> Vec<f64> {
    let mut rates = vec![0.0; demands.len()];
    let mut rising: Vec<bool> = demands.iter().map(|demand| demand.limit > 0.0).collect();
    let mut left = capacities.to_vec();
    while rising.contains(&true) {
        let crossing = |link: usize| {
            let flows = demands.iter().zip(&rising);
            flows.filter(|(demand, rises)| **rises && demand.links.contains(&link)).count()
        };
        // The step to the next limit or full link.
        let links = (0..left.len()).filter(|link| crossing(*link) > 0);
        let room = links.map(|link| left[link].max(0.0) / crossing(link) as f64);
        let flows = (0..demands.len()).filter(|flow| rising[*flow]);
        let step = room.chain(flows.map(|flow| demands[flow].limit - rates[flow]));
        let step = step.fold(f64::INFINITY, f64::min);
        if !step.is_finite() {
            // Nothing limits them: what is without bounds needs no share.
            return rates
                .iter()
                .zip(&rising)
                .map(|(rate, rises)| if *rises { f64::INFINITY } else { *rate })
                .collect();
        }
        let counts: Vec<usize> = (0..left.len()).map(crossing).collect();
        for (left, count) in left.iter_mut().zip(&counts) {
            *left -= step * *count as f64;
        }
        let scale = capacities.iter().copied().fold(0.0, f64::max).max(1.0);
        for (flow, demand) in demands.iter().enumerate() {
            if !rising[flow] {
                continue;
            }
            rates[flow] += step;
            let full = demand.links.iter().any(|link| left[*link] <= 1e-12 * scale);
            if full || rates[flow] >= demand.limit {
                rising[flow] = false;
            }
        }
    }
    rates
}

/// What arrives of flows that send at their limits through fair queues that know nothing of one
/// another: each link shares itself max-min between what reaches it. Links are crossed in the order
/// of their numbers.
pub fn hop_by_hop_shares(capacities: &[f64], demands: &[Demand]) -> Vec<f64> {
    let mut rates: Vec<f64> = demands.iter().map(|demand| demand.limit).collect();
    for (link, capacity) in capacities.iter().enumerate() {
        let crossing: Vec<usize> =
            (0..demands.len()).filter(|flow| demands[*flow].links.contains(&link)).collect();
        let limits: Vec<f64> = crossing.iter().map(|flow| rates[*flow]).collect();
        for (flow, share) in crossing.into_iter().zip(max_min_shares(*capacity, &limits)) {
            rates[flow] = share;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_specification_s_vectors() {
        for (capacity, limits, printed, max_min) in [
            (1000.0, vec![1000.0; 5], vec![200.0; 5], vec![200.0; 5]),
            (100.0, vec![10.0, 100.0, 100.0], vec![10.0, 45.0, 45.0], vec![10.0, 45.0, 45.0]),
            (100.0, vec![10.0, 35.0, 100.0], vec![10.0, 45.0, 45.0], vec![10.0, 35.0, 55.0]),
            (
                1000.0,
                vec![100.0, 400.0, 1000.0, 1000.0],
                vec![100.0, 300.0, 300.0, 300.0],
                vec![100.0, 300.0, 300.0, 300.0],
            ),
            (100.0, vec![10.0, 20.0, 30.0], vec![10.0, 20.0, 30.0], vec![10.0, 20.0, 30.0]),
        ] {
            assert_eq!(printed_shares(capacity, &limits), printed, "{limits:?}");
            assert_eq!(max_min_shares(capacity, &limits), max_min, "{limits:?}");
            let demands: Vec<Demand> =
                limits.iter().map(|limit| Demand { limit: *limit, links: vec![0] }).collect();
            let network = max_min_network(&[capacity], &demands);
            assert!(network.iter().zip(&max_min).all(|(a, b)| (a - b).abs() < 1e-9), "{network:?}");
        }
    }

    #[test]
    fn a_second_bottleneck_is_known_to_max_min_and_not_to_the_queues() {
        let flow = |links: &[usize]| Demand { limit: 10.0, links: links.to_vec() };
        let demands = [flow(&[0, 1]), flow(&[0])];
        assert_eq!(hop_by_hop_shares(&[10.0, 2.0], &demands), [2.0, 5.0]);
        assert_eq!(max_min_network(&[10.0, 2.0], &demands), [2.0, 8.0]);
    }

    #[test]
    fn the_parking_lot_of_the_rate_control_experiment() {
        let flow = |links: &[usize]| Demand { limit: 1000.0, links: links.to_vec() };
        let demands = [flow(&[0, 1]), flow(&[0]), flow(&[1])];
        assert_eq!(max_min_network(&[1000.0, 400.0], &demands[..2]), [400.0, 600.0]);
        assert_eq!(max_min_network(&[1000.0, 400.0], &demands), [200.0, 800.0, 200.0]);
        assert_eq!(max_min_network(&[], &[Demand { limit: 7.0, links: vec![] }]), [7.0]);
    }
}
