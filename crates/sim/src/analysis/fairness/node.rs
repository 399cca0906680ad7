use super::notion::Notion;
use super::{FairnessError, User, check};

/// Shares a node's capacity between users: min(c, λ·p^(1/α)), with the level λ at which all is
/// given away, or what each can use, if that is less.
///
/// It takes the time of sorting the users. Shares and caps have the unit of the capacity.
pub fn allocate(capacity: f64, users: &[User], notion: Notion) -> Result<Vec<f64>, FairnessError> {
    check(&[capacity], users)?;
    Ok(match notion {
        Notion::Throughput => largest_first(capacity, users),
        Notion::Alpha(_) | Notion::MaxMin => fill(capacity, users, notion).0,
    })
}

/// Flow-rate equality: nobody has more than an equal part, and what somebody cannot use of it is
/// not given to others.
pub fn equal_shares(capacity: f64, users: &[User]) -> Result<Vec<f64>, FairnessError> {
    check(&[capacity], users)?;
    let part = capacity / users.len() as f64;
    Ok(users.iter().map(|user| user.cap.min(part)).collect())
}

/// The shares, and the logarithm of the level λ to which users fill up: infinite if the caps leave
/// something.
///
/// Ratios of weights p^(1/α) need not be numbers that a float can hold, so users are ordered by
/// logarithms and shared between by the ratios of those whose caps do not bind.
pub(super) fn fill(capacity: f64, users: &[User], notion: Notion) -> (Vec<f64>, f64) {
    let power = notion.alpha().recip();
    let ratio = |user: &User| libm::log(user.weight) * power;
    let full_at = |user: &User| libm::log(user.cap) - ratio(user);
    let mut order: Vec<(f64, usize)> = users.iter().map(full_at).zip(0..).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut shares: Vec<f64> = users.iter().map(|user| user.cap).collect();
    // The logarithm of the sum of ratios of each user and those behind it.
    let mut behind: Vec<f64> = Vec::with_capacity(order.len());
    for (_, user) in order.iter().rev() {
        behind.push(log_sum(behind.last().copied(), ratio(&users[*user])));
    }
    let mut left = capacity;
    let mut full = 0;
    for ((full_at, user), behind) in order.iter().zip(behind.iter().rev()) {
        if *full_at > libm::log(left) - behind {
            break;
        }
        left = (left - users[*user].cap).max(0.0);
        full += 1;
    }
    let mut rising: Vec<usize> = order[full..].iter().map(|(_, user)| *user).collect();
    loop {
        let largest = rising.iter().map(|user| users[*user].weight).fold(0.0, f64::max);
        let relative = |user: &usize| notion.ratio(users[*user].weight / largest);
        let sum: f64 = rising.iter().map(relative).sum();
        for user in &rising {
            shares[*user] = left * (relative(user) / sum);
        }
        let before = rising.len();
        // Rounding of logarithms may have left somebody here who is full.
        rising.retain(|user| {
            let User { cap, .. } = users[*user];
            let is_full = shares[*user] >= cap;
            if is_full {
                shares[*user] = cap;
                left = (left - cap).max(0.0);
            }
            !is_full
        });
        if rising.len() == before {
            let level = libm::log(left) - libm::log(sum) - power * libm::log(largest);
            return (shares, if rising.is_empty() { f64::INFINITY } else { level });
        }
    }
}

/// The logarithm of a sum, from the logarithms of its two terms.
fn log_sum(sum: Option<f64>, term: f64) -> f64 {
    let sum = sum.unwrap_or(f64::NEG_INFINITY);
    let (small, large) = (sum.min(term), sum.max(term));
    large + libm::log1p(libm::exp(small - large))
}

/// The largest weights have all that they can use; equal ones share as max-min.
fn largest_first(capacity: f64, users: &[User]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..users.len()).collect();
    order.sort_by(|a, b| users[*b].weight.total_cmp(&users[*a].weight));
    let mut shares = vec![0.0; users.len()];
    let mut left = capacity;
    for equals in order.chunk_by(|a, b| users[*a].weight == users[*b].weight) {
        let of: Vec<User> = equals.iter().map(|at| users[*at]).collect();
        for (at, share) in equals.iter().zip(fill(left, &of, Notion::MaxMin).0) {
            shares[*at] = share;
            left = (left - share).max(0.0);
        }
    }
    shares
}
