use super::notion::{Notion, root};
use super::{FairnessError, User, check};

/// Users, and the nodes that each crosses.
struct Problem<'a> {
    capacities: &'a [f64],
    users: &'a [User],
    routes: &'a [Vec<usize>],
    alpha: f64,
    /// p^(1/α) of each user.
    ratios: Vec<f64>,
}

/// The shares and the excess of capacity at given prices of nodes.
struct Response {
    shares: Vec<f64>,
    spare: Vec<f64>,
    /// How fast each share falls as its route's price rises.
    slopes: Vec<f64>,
    /// The dual objective without the barrier.
    value: f64,
}

/// Complementarity of the last barrier, relative to the utilities.
const PRECISION: f64 = 1e-13;
/// How much smaller each barrier is than the one before.
const STEP: f64 = 0.1;
const MOST_STEPS: usize = 400;

/// The allocation of all nodes at once that maximises the sum of utilities: user i crosses the
/// nodes `routes[i]`, numbered from 0, and no node gives more than its capacity.
///
/// Prices of nodes are found by Newton's method with a barrier on the dual problem. A step takes
/// time in proportion to users and to the cube of nodes. The greatest throughput of a network has
/// no optimum of its own in general (a linear program) and is refused.
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
        Notion::MaxMin => Ok(rise(capacities, users, routes)),
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

/// All users rise together; one stops when it has what it can use or a node of its is full.
///
/// Users reach their caps in the order of these, and each full node is looked for once, so that
/// many caps cost no more than many users.
fn rise(capacities: &[f64], users: &[User], routes: &[Vec<usize>]) -> Vec<f64> {
    let mut shares: Vec<Option<f64>> = vec![None; users.len()];
    let mut left = capacities.to_vec();
    let mut crossing = vec![0usize; capacities.len()];
    routes.iter().flatten().for_each(|node| crossing[*node] += 1);
    let mut order: Vec<usize> = (0..users.len()).collect();
    order.sort_by(|a, b| users[*a].cap.total_cmp(&users[*b].cap));
    let mut order = order.into_iter().peekable();
    let mut level = 0.0;
    loop {
        while order.next_if(|user| shares[*user].is_some()).is_some() {}
        let Some(first) = order.peek().copied() else { break };
        let rooms = left.iter().zip(&crossing).map(|(left, users)| left / *users as f64);
        let rooms: Vec<f64> = rooms.collect();
        // A node that nobody crosses any more has room without end, or none that anybody wants.
        let open = (0..rooms.len()).filter(|node| crossing[*node] > 0);
        let full = open.min_by(|a, b| rooms[*a].total_cmp(&rooms[*b]));
        let room = full.map_or(f64::INFINITY, |node| rooms[node]);
        let step = room.min(users[first].cap - level).max(0.0);
        level += step;
        for (left, users) in left.iter_mut().zip(&crossing) {
            *left = (*left - step * *users as f64).max(0.0);
        }
        let stopped: Vec<usize> = match full {
            Some(full) if step >= room => (0..users.len())
                .filter(|user| shares[*user].is_none() && routes[*user].contains(&full))
                .collect(),
            _ => vec![first],
        };
        for user in stopped {
            shares[user] = Some(level.min(users[user].cap));
            routes[user].iter().for_each(|node| crossing[*node] -= 1);
        }
    }
    shares.into_iter().map(|share| share.unwrap_or(0.0)).collect()
}

fn solve(
    capacities: &[f64],
    users: &[User],
    routes: &[Vec<usize>],
    alpha: f64,
) -> Result<Vec<f64>, FairnessError> {
    // In units of what an average user of the largest node would have, prices are near 1.
    let unit = capacities.iter().copied().fold(0.0, f64::max) / users.len() as f64;
    let largest = users.iter().map(|user| user.weight).fold(0.0, f64::max);
    let scaled: Vec<f64> = capacities.iter().map(|capacity| capacity / unit).collect();
    let own: Vec<User> = users
        .iter()
        .map(|user| User { weight: user.weight / largest, cap: user.cap / unit })
        .collect();
    let ratios = own.iter().map(|user| root(user.weight, alpha)).collect();
    let problem = Problem { capacities: &scaled, users: &own, routes, alpha, ratios };
    let shares = problem.solve()?;
    Ok(shares.into_iter().map(|share| share * unit).collect())
}

impl Problem<'_> {
    fn solve(&self) -> Result<Vec<f64>, FairnessError> {
        let mut prices = vec![1.0; self.capacities.len()];
        let mut barrier = self.users.len() as f64 / prices.len() as f64;
        let last = PRECISION * self.users.len() as f64;
        let mut steps = 0..MOST_STEPS;
        loop {
            let mut response = self.respond(&prices);
            loop {
                steps.next().ok_or(FairnessError::Unsettled)?;
                let is_settled = self.improve(&mut prices, &mut response, barrier)?;
                if is_settled {
                    break;
                }
            }
            if barrier <= last {
                return Ok(response.shares);
            }
            barrier = (barrier * STEP).max(last);
        }
    }

    fn respond(&self, prices: &[f64]) -> Response {
        let mut response = Response {
            shares: Vec::with_capacity(self.users.len()),
            spare: self.capacities.to_vec(),
            slopes: Vec::with_capacity(self.users.len()),
            value: prices.iter().zip(self.capacities).map(|(price, c)| price * c).sum(),
        };
        for ((user, ratio), route) in self.users.iter().zip(&self.ratios).zip(self.routes) {
            let price: f64 = route.iter().map(|node| prices[*node]).sum();
            let wanted = ratio / root(price, self.alpha);
            let share = wanted.min(user.cap);
            let slope = if wanted < user.cap { share / (self.alpha * price) } else { 0.0 };
            for node in route {
                response.spare[*node] -= share;
            }
            response.value += self.utility(user.weight, share) - price * share;
            response.shares.push(share);
            response.slopes.push(slope);
        }
        response
    }

    fn utility(&self, weight: f64, share: f64) -> f64 {
        if share == 0.0 {
            0.0
        } else if self.alpha == 1.0 {
            weight * libm::log(share)
        } else {
            weight * libm::pow(share, 1.0 - self.alpha) / (1.0 - self.alpha)
        }
    }

    /// A step of Newton's method; whether it was too small to matter.
    fn improve(
        &self,
        prices: &mut Vec<f64>,
        response: &mut Response,
        barrier: f64,
    ) -> Result<bool, FairnessError> {
        let nodes = prices.len();
        let gradient: Vec<f64> = response
            .spare
            .iter()
            .zip(&*prices)
            .map(|(spare, price)| spare - barrier / price)
            .collect();
        let mut matrix = vec![0.0; nodes * nodes];
        for (slope, route) in response.slopes.iter().zip(self.routes) {
            for a in route {
                for b in route {
                    matrix[a * nodes + b] += slope;
                }
            }
        }
        for (node, price) in prices.iter().enumerate() {
            matrix[node * nodes + node] += barrier / (price * price);
        }
        let step = descend(matrix, &gradient).ok_or(FairnessError::Unsettled)?;
        let decrement: f64 = step.iter().zip(&gradient).map(|(step, slope)| -step * slope).sum();
        // No price may fall to zero.
        let falls = step.iter().zip(&*prices).filter(|(step, _)| **step < 0.0);
        let mut length = falls.map(|(step, price)| -0.95 * price / step).fold(1.0, f64::min);
        let objective = |value: f64, prices: &[f64]| {
            value - barrier * prices.iter().map(|price| libm::log(*price)).sum::<f64>()
        };
        let before = objective(response.value, prices);
        for _ in 0..60 {
            let tried: Vec<f64> =
                prices.iter().zip(&step).map(|(price, step)| price + length * step).collect();
            let answer = self.respond(&tried);
            let after = objective(answer.value, &tried);
            // What rounding hides is no reason to go shorter.
            let slack = 1e-13 * before.abs().max(1.0);
            if after <= before - 0.1 * length * decrement + slack {
                (*prices, *response) = (tried, answer);
                break;
            }
            length *= 0.5;
        }
        Ok(decrement <= 1e-4 * barrier * nodes as f64)
    }
}

/// Solves `matrix · step = −gradient` for a symmetric, positive matrix (Cholesky); `None` if it is
/// not.
fn descend(mut matrix: Vec<f64>, gradient: &[f64]) -> Option<Vec<f64>> {
    let n = gradient.len();
    for row in 0..n {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|k| matrix[row * n + k] * matrix[column * n + k]).sum();
            let rest = matrix[row * n + column] - dot;
            matrix[row * n + column] = if row > column {
                rest / matrix[column * n + column]
            } else if rest > 0.0 {
                libm::sqrt(rest)
            } else {
                return None;
            };
        }
    }
    let mut step: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
    for row in 0..n {
        let dot: f64 = (0..row).map(|k| matrix[row * n + k] * step[k]).sum();
        step[row] = (step[row] - dot) / matrix[row * n + row];
    }
    for row in (0..n).rev() {
        let dot: f64 = (row + 1..n).map(|k| matrix[k * n + row] * step[k]).sum();
        step[row] = (step[row] - dot) / matrix[row * n + row];
    }
    Some(step)
}
