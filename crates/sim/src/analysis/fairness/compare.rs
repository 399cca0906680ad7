//! What an allocation is better in than another (section 4.1.4 of the thesis).

use super::notion::{Notion, root};

/// Differences below this share of the larger value are rounding.
const ROUNDING: f64 = 1e-9;

fn gains(before: f64, after: f64) -> bool {
    if after == f64::INFINITY {
        return before < after;
    }
    after - before > ROUNDING * before.abs().max(after.abs())
}

/// Whether somebody gains and nobody loses (Pareto).
pub fn is_pareto_better(before: &[f64], after: &[f64]) -> bool {
    let pairs = || before.iter().zip(after);
    pairs().any(|(b, a)| gains(*b, *a)) && !pairs().any(|(b, a)| gains(*a, *b))
}

/// Whether those who gain could compensate those who lose (Kaldor and Hicks): the sum of shares is
/// larger.
pub fn is_kaldor_hicks_better(before: &[f64], after: &[f64]) -> bool {
    gains(before.iter().sum(), after.iter().sum())
}

/// Whether nobody can have more of one node without another's loss: all of it is given away, or
/// everybody has what he can use.
pub fn is_pareto_optimal(capacity: f64, caps: &[f64], shares: &[f64]) -> bool {
    let is_given_away = !gains(shares.iter().sum(), capacity);
    is_given_away || caps.iter().zip(shares).all(|(cap, share)| !gains(*share, *cap))
}

/// The point of a social indifference curve of two users: what the second must have beside `first`
/// so that both together are worth as much as the point `through`, under a notion and weights.
///
/// `None` where no share of the second makes up for what the first lacks, or where the first alone
/// is worth more.
pub fn indifferent(
    notion: Notion,
    weights: [f64; 2],
    through: [f64; 2],
    first: f64,
) -> Option<f64> {
    let [p, q] = weights;
    let [x, y] = through;
    let second = match notion {
        Notion::Throughput => y + p * (x - first) / q,
        Notion::MaxMin if gains(first, x.min(y)) => return None,
        Notion::MaxMin => x.min(y),
        Notion::Alpha(1.0) => y * libm::pow(x / first, p / q),
        Notion::Alpha(alpha) => {
            let power = |x: f64| libm::pow(x, 1.0 - alpha);
            let rest = power(y) + p * (power(x) - power(first)) / q;
            if rest < 0.0 {
                return None;
            }
            // x^(1/(1−α)); the root's index is 1 − α, which is negative above 1.
            root(rest, 1.0 - alpha)
        }
    };
    (second.is_finite() && second >= 0.0).then_some(second)
}
