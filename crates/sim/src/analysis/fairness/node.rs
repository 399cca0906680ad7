use super::notion::Notion;
use super::{FairnessError, User, check};

/// A user of a node whose line is not yet drawn.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The level at which it has all that it can use.
    full_at: f64,
    cap: f64,
    ratio: f64,
}

/// Shares a node's capacity between users: min(c, λ·p^(1/α)), with the level λ at which all is
/// given away, or what each can use, if that is less.
///
/// It takes time in proportion to the users. Shares and caps have the unit of the capacity.
pub fn allocate(capacity: f64, users: &[User], notion: Notion) -> Result<Vec<f64>, FairnessError> {
    check(&[capacity], users)?;
    Ok(match notion {
        Notion::Throughput => largest_first(capacity, users),
        Notion::Alpha(_) | Notion::MaxMin => fill(capacity, users, notion),
    })
}

/// Flow-rate equality: nobody has more than an equal part, and what somebody cannot use of it is
/// not given to others.
pub fn equal_shares(capacity: f64, users: &[User]) -> Result<Vec<f64>, FairnessError> {
    check(&[capacity], users)?;
    let part = capacity / users.len() as f64;
    Ok(users.iter().map(|user| user.cap.min(part)).collect())
}

fn fill(capacity: f64, users: &[User], notion: Notion) -> Vec<f64> {
    // Only the ratios of weights count; the largest is 1, so that none is too large for a number.
    let largest = users.iter().map(|user| user.weight).fold(0.0, f64::max);
    let ratios: Vec<f64> = users
        .iter()
        .map(|user| notion.ratio(user.weight / largest).max(f64::MIN_POSITIVE))
        .collect();
    let pairs = users.iter().zip(&ratios);
    let level = level(capacity, pairs.clone().map(|(user, ratio)| (user.cap, *ratio)).collect());
    pairs.map(|(user, ratio)| user.cap.min(level * ratio)).collect()
}

/// The level to which users of these caps and ratios fill up; infinite if the caps leave something.
fn level(capacity: f64, users: Vec<(f64, f64)>) -> f64 {
    let mut open: Vec<Open> =
        users.into_iter().map(|(cap, ratio)| Open { full_at: cap / ratio, cap, ratio }).collect();
    // What users take that are full, and the ratios of those that are not.
    let (mut taken, mut rising) = (0.0, 0.0);
    while !open.is_empty() {
        let middle = open.len() / 2;
        open.select_nth_unstable_by(middle, |a, b| a.full_at.total_cmp(&b.full_at));
        let pivot = open[middle].full_at;
        let full: f64 = open[..=middle].iter().map(|user| user.cap).sum();
        let others: f64 = open[middle + 1..].iter().map(|user| user.ratio).sum();
        let is_reached = pivot.is_finite() && taken + full + pivot * (others + rising) <= capacity;
        if is_reached {
            taken += full;
            open.drain(..=middle);
        } else {
            rising += open[middle..].iter().map(|user| user.ratio).sum::<f64>();
            open.truncate(middle);
        }
    }
    if rising == 0.0 { f64::INFINITY } else { (capacity - taken).max(0.0) / rising }
}

/// The largest weights have all that they can use; equal ones share as max-min.
fn largest_first(capacity: f64, users: &[User]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..users.len()).collect();
    order.sort_by(|a, b| users[*b].weight.total_cmp(&users[*a].weight));
    let mut shares = vec![0.0; users.len()];
    let mut left = capacity;
    for equals in order.chunk_by(|a, b| users[*a].weight == users[*b].weight) {
        let of: Vec<User> = equals.iter().map(|at| users[*at]).collect();
        for (at, share) in equals.iter().zip(fill(left, &of, Notion::MaxMin)) {
            shares[*at] = share;
            left = (left - share).max(0.0);
        }
    }
    shares
}
