use hashbrown::HashMap;

use super::linear::solve_symmetric;
use super::node::fill;
use super::notion::Notion;
use super::rise::rise;
use super::{FairnessError, User};

/// The relative change of capacities, caps and utilities for which shares are exact at worst.
const PRECISION: f64 = 1e-11;
const MOST_STEPS: usize = 500;
/// Farther from the shares that prices ask for than by this factor, as a logarithm, a step does
/// not lower its target: for small α the linearised conditions hold only near them.
const FAR: f64 = 10.0;
/// How near to zero a step takes a value that must stay positive: what is left of it.
const LEFT: f64 = 0.005;

/// The α-fair shares of a network, by a primal-dual interior-point method.
///
/// A step solves the linearised optimality conditions: for each user α·ln x = ln p − ln(price of
/// the route + price of the cap), and for each node and each cap price · slack = target, where the
/// target goes to zero. It takes time in proportion to the users, to the squares of the lengths of
/// different routes and to the cube of the nodes. The condition of a user stands in logarithms, in
/// which an α far from 1 makes it no less linear.
pub(super) fn solve(
    capacities: &[f64],
    users: &[User],
    routes: &[Vec<usize>],
    alpha: f64,
) -> Result<Vec<f64>, FairnessError> {
    let mut shares = vec![0.0; users.len()];
    // The conditions of a user that can use nothing have no solution.
    let taking: Vec<usize> = (0..users.len()).filter(|user| users[*user].cap > 0.0).collect();
    let own: Vec<User> = taking.iter().map(|user| users[*user]).collect();
    let paths = Paths::new(taking.iter().map(|user| routes[*user].as_slice()));
    let mut problem = Problem::new(capacities, &own, paths, alpha);
    for (user, share) in taking.into_iter().zip(problem.settle()?) {
        shares[user] = share.min(users[user].cap);
    }
    Ok(shares)
}

/// The different routes of users.
struct Paths<'a> {
    routes: Vec<&'a [usize]>,
    /// The path of each user.
    of: Vec<usize>,
}

impl<'a> Paths<'a> {
    fn new(routes: impl Iterator<Item = &'a [usize]>) -> Self {
        let mut known: HashMap<&[usize], usize> = HashMap::new();
        let mut paths = Self { routes: Vec::new(), of: Vec::new() };
        for route in routes {
            let path = *known.entry(route).or_insert_with(|| {
                paths.routes.push(route);
                paths.routes.len() - 1
            });
            paths.of.push(path);
        }
        paths
    }

    /// The sum over the nodes of each path.
    fn sums(&self, of_node: &[f64]) -> Vec<f64> {
        let sum = |route: &&[usize]| route.iter().map(|node| of_node[*node]).sum();
        self.routes.iter().map(sum).collect()
    }

    /// The sum over the paths of each node.
    fn loads(&self, of_path: &[f64], nodes: usize) -> Vec<f64> {
        let mut loads = vec![0.0; nodes];
        for (route, value) in self.routes.iter().zip(of_path) {
            route.iter().for_each(|node| loads[*node] += value);
        }
        loads
    }
}

/// A price and what is left of the thing that it is for; at the optimum one of them is zero.
#[derive(Clone, Copy, Debug)]
struct Limit {
    price: f64,
    slack: f64,
    /// Price times slack at the start.
    unit: f64,
}

impl Limit {
    fn new(price: f64, slack: f64) -> Self {
        Self { price, slack, unit: price * slack }
    }

    /// Price times slack, beside that at the start.
    fn product(&self) -> f64 {
        self.price * self.slack / self.unit
    }

    /// How far a step may go so that both stay positive.
    fn longest(&self, price: f64, slack: f64) -> f64 {
        longest(self.price, price).min(longest(self.slack, slack))
    }
}

/// How far a step may go so that a value stays positive.
fn longest(value: f64, step: f64) -> f64 {
    if step < 0.0 { -(1.0 - LEFT) * value / step } else { f64::INFINITY }
}

/// The larger error; what is not a number is worse than any.
fn worse(error: f64, other: f64) -> f64 {
    if other > error || other.is_nan() { other } else { error }
}

struct Taker {
    log_weight: f64,
    cap: Option<Limit>,
    share: f64,
    step: f64,
}

impl Taker {
    fn cap_price(&self) -> f64 {
        self.cap.map_or(0.0, |cap| cap.price)
    }

    /// The step of the price of the cap if the product of the limit is to be `target`.
    fn cap_step(&self, target: f64) -> f64 {
        self.cap
            .map_or(0.0, |cap| (cap.unit * target + cap.price * self.step) / cap.slack - cap.price)
    }
}

struct Problem<'a> {
    capacities: &'a [f64],
    paths: Paths<'a>,
    alpha: f64,
    nodes: Vec<Limit>,
    takers: Vec<Taker>,
}

/// Shares, and the relative change of the problem that makes them optimal.
struct Settled {
    error: f64,
    shares: Vec<f64>,
}

/// The sums over users that a step needs, and how far they are from the optimum.
struct Sums {
    /// What each path carries.
    shares: Vec<f64>,
    /// The least price of a user of each path, its cap's included.
    least: Vec<f64>,
    /// How fast what a path carries falls with its price.
    slopes: Vec<f64>,
    /// How much more it would carry at the same price.
    gains: Vec<f64>,
    /// The largest distance of a user's share from the one that its price asks for, as a logarithm.
    distance: f64,
    /// The largest relative error of a user.
    error: f64,
}

impl<'a> Problem<'a> {
    fn new(capacities: &'a [f64], users: &[User], paths: Paths<'a>, alpha: f64) -> Self {
        let mut crossing: Vec<Vec<usize>> = vec![Vec::new(); capacities.len()];
        for (user, path) in paths.of.iter().enumerate() {
            paths.routes[*path].iter().for_each(|node| crossing[*node].push(user));
        }
        // What a node that shared itself among all that cross it would give, and its price then,
        // which is no lower than the solution's.
        let mut alone: Vec<f64> = users.iter().map(|user| user.cap).collect();
        let mut log_prices = vec![f64::NEG_INFINITY; capacities.len()];
        for ((capacity, crossing), log_price) in
            capacities.iter().zip(&crossing).zip(&mut log_prices)
        {
            let own: Vec<User> = crossing.iter().map(|user| users[*user]).collect();
            let (given, level) = fill(*capacity, &own, Notion::Alpha(alpha));
            *log_price = -alpha * level;
            for (user, share) in crossing.iter().zip(given) {
                alone[*user] = alone[*user].min(share);
            }
        }
        // Above 1, max-min shares are nearer to the solution. Nine tenths are within all limits.
        let routes = paths.of.iter().map(|path| paths.routes[*path]);
        let near =
            if alpha > 1.0 { rise(capacities, users, &routes.collect::<Vec<_>>()) } else { alone };
        let shares: Vec<f64> =
            near.into_iter().map(|share| (0.9 * share).max(f64::MIN_POSITIVE)).collect();
        let log_unit = log_prices.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_unit = if log_unit.is_finite() { log_unit } else { 0.0 };
        let worth = |user: usize| {
            libm::exp(libm::log(users[user].weight) - alpha * libm::log(shares[user]) - log_unit)
        };
        let node = |node: usize| {
            let crossing = &crossing[node];
            let load: f64 = crossing.iter().map(|user| shares[*user]).sum();
            let least = crossing.iter().map(|user| worth(*user)).fold(f64::INFINITY, f64::min);
            let price = libm::exp(log_prices[node] - log_unit);
            let price = match price {
                0.0 => 0.01 * least,
                _ if alpha > 1.0 => price.min(least),
                _ => price,
            };
            let price = price.clamp(f64::MIN_POSITIVE, 1e100);
            Limit::new(price, capacities[node] - load)
        };
        let nodes = (0..capacities.len()).map(node).collect();
        let taker = |(user, of): (usize, &User)| Taker {
            log_weight: libm::log(of.weight) - log_unit,
            cap: of.cap.is_finite().then(|| Limit::new(0.1 * worth(user), of.cap - shares[user])),
            share: shares[user],
            step: 0.0,
        };
        let takers = users.iter().enumerate().map(taker).collect();
        Self { capacities, paths, alpha, nodes, takers }
    }

    fn settle(&mut self) -> Result<Vec<f64>, FairnessError> {
        let (mut length, mut distance) = (0.0, f64::INFINITY);
        let mut best = Settled { error: f64::INFINITY, shares: Vec::new() };
        for _ in 0..MOST_STEPS {
            let limits =
                || self.nodes.iter().chain(self.takers.iter().filter_map(|t| t.cap.as_ref()));
            let (sum, count) =
                limits().fold((0.0, 0.0), |(sum, n), limit| (sum + limit.product(), n + 1.0));
            let closer = match length {
                _ if distance > FAR => 0.9,
                0.95.. => 0.02,
                0.3.. => 0.1,
                _ => 0.7,
            };
            let target = closer * sum / count;
            let sums = self.sums(target);
            let error = self.error(&sums);
            // Steps go on until rounding keeps them from gaining anything. Where a limit is reached
            // exactly without a price, a step halves the error.
            if best.error <= PRECISION && (error.is_nan() || error >= 0.75 * best.error) {
                return Ok(best.shares);
            }
            if error <= PRECISION {
                let shares = self.takers.iter().map(|taker| taker.share).collect();
                best = Settled { error, shares };
            }
            distance = sums.distance;
            length = self.advance(&sums, target);
        }
        Err(FairnessError::Unsettled)
    }

    /// The sums of a step towards limits of this product.
    fn sums(&mut self, target: f64) -> Sums {
        let prices: Vec<f64> = self.nodes.iter().map(|node| node.price).collect();
        let prices = self.paths.sums(&prices);
        let zeros = || vec![0.0; prices.len()];
        let mut sums = Sums {
            shares: zeros(),
            least: vec![f64::INFINITY; prices.len()],
            slopes: zeros(),
            gains: zeros(),
            distance: 0.0,
            error: 0.0,
        };
        for (taker, path) in self.takers.iter_mut().zip(&self.paths.of) {
            let price = prices[*path] + taker.cap_price();
            let rest = taker.log_weight - self.alpha * libm::log(taker.share) - libm::log(price);
            let mut slope = self.alpha * price / taker.share;
            let mut gain = price * rest;
            let mut error = rest.abs() / self.alpha;
            sums.distance = sums.distance.max(error);
            if let Some(cap) = taker.cap {
                slope += cap.price / cap.slack;
                gain += cap.price - cap.unit * target / cap.slack;
                let least = cap.price / (price * self.alpha);
                error = worse(error, least.min(cap.slack / (cap.slack + taker.share)));
            }
            taker.step = gain;
            sums.shares[*path] += taker.share;
            sums.least[*path] = sums.least[*path].min(price);
            sums.slopes[*path] += slope.recip();
            sums.gains[*path] += gain / slope;
            sums.error = worse(sums.error, error);
        }
        sums
    }

    /// The largest relative change of a capacity, a cap or a utility that makes the shares optimal.
    fn error(&self, sums: &Sums) -> f64 {
        let loads = self.paths.loads(&sums.shares, self.nodes.len());
        let mut effects = vec![0.0f64; self.nodes.len()];
        for (route, least) in self.paths.routes.iter().zip(&sums.least) {
            for node in *route {
                effects[*node] = effects[*node].max(self.nodes[*node].price / (least * self.alpha));
            }
        }
        let nodes = self.nodes.iter().zip(self.capacities).zip(loads).zip(effects);
        nodes.fold(sums.error, |error, (((node, capacity), load), effect)| {
            let gap = (capacity - node.slack - load).abs() / capacity;
            worse(worse(error, gap), effect.min(node.slack / capacity))
        })
    }

    /// A step towards limits of this product; its length, of the whole step.
    fn advance(&mut self, sums: &Sums, target: f64) -> f64 {
        let count = self.nodes.len();
        let loads = self.paths.loads(&sums.shares, count);
        let gains = self.paths.loads(&sums.gains, count);
        let mut matrix = vec![0.0; count * count];
        for (route, slope) in self.paths.routes.iter().zip(&sums.slopes) {
            for a in *route {
                for b in *route {
                    matrix[a * count + b] += slope;
                }
            }
        }
        let mut side = Vec::with_capacity(count);
        for (at, node) in self.nodes.iter().enumerate() {
            matrix[at * count + at] += node.slack / node.price;
            side.push(
                node.unit * target / node.price - self.capacities[at] + loads[at] + gains[at],
            );
        }
        let steps = solve_symmetric(matrix, &side);
        let mut length = 1.0f64;
        let slack_step = |node: &Limit, step: f64| {
            (node.unit * target - node.slack * step) / node.price - node.slack
        };
        for (node, step) in self.nodes.iter().zip(&steps) {
            length = length.min(node.longest(*step, slack_step(node, *step)));
        }
        let prices: Vec<f64> = self.nodes.iter().map(|node| node.price).collect();
        let (prices, of_paths) = (self.paths.sums(&prices), self.paths.sums(&steps));
        for (taker, path) in self.takers.iter_mut().zip(&self.paths.of) {
            let price = prices[*path] + taker.cap_price();
            let mut slope = self.alpha * price / taker.share;
            if let Some(cap) = taker.cap {
                slope += cap.price / cap.slack;
            }
            taker.step = (taker.step - of_paths[*path]) / slope;
            length = length.min(longest(taker.share, taker.step));
            if let Some(cap) = taker.cap {
                length = length.min(cap.longest(taker.cap_step(target), -taker.step));
            }
        }
        for (node, step) in self.nodes.iter_mut().zip(&steps) {
            let slack = slack_step(node, *step);
            node.price += length * step;
            node.slack += length * slack;
        }
        for taker in &mut self.takers {
            let price = taker.cap_step(target);
            taker.share += length * taker.step;
            if let Some(cap) = &mut taker.cap {
                cap.price += length * price;
                cap.slack -= length * taker.step;
            }
        }
        length
    }
}
