use super::interior::solve;
use super::notion::Notion;
use super::rise::rise;
use super::{FairnessError, User, check};

/// The allocation of all nodes at once that maximises the sum of utilities: user i crosses the
/// nodes `routes[i]`, numbered from 0, and no node gives more than its capacity.
///
/// α-fair shares are exact for capacities, caps and utilities that differ from the given ones by
/// less than 1e−11 of them. The largest throughput of a network is a linear program, which may have
/// many solutions, and is refused.
pub fn network(
    capacities: &[f64],
    users: &[User],
    routes: &[Vec<usize>],
    notion: Notion,
) -> Result<Vec<f64>, FairnessError> {
    check(capacities, users)?;
    check_routes(capacities.len(), users.len(), routes)?;
    match notion {
        _ if users.is_empty() => Ok(Vec::new()),
        Notion::MaxMin => {
            Ok(rise(capacities, users, &routes.iter().map(Vec::as_slice).collect::<Vec<_>>()))
        }
        Notion::Throughput => Err(FairnessError::Throughput),
        Notion::Alpha(alpha) => solve(capacities, users, routes, alpha),
    }
}

fn check_routes(nodes: usize, users: usize, routes: &[Vec<usize>]) -> Result<(), FairnessError> {
    if routes.len() != users {
        return Err(FairnessError::Routes { routes: routes.len(), users });
    }
    for (number, route) in routes.iter().enumerate() {
        let is_known = route.iter().all(|node| *node < nodes);
        let is_simple = (1..route.len()).all(|at| !route[..at].contains(&route[at]));
        if route.is_empty() || !is_known || !is_simple {
            return Err(FairnessError::Route(number + 1));
        }
    }
    Ok(())
}
