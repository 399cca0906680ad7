use super::node::allocate;
use super::notion::Notion;
use super::{FairnessError, User, check};

/// Shares the time of a radio cell, in which x of a user whose radio has the rate r takes the part
/// x/r: shares maximise the utilities of the notion where Σ x/r is at most 1. `rate` is that of
/// users who have none of their own.
///
/// They are min(c, (λ·p·r)^(1/α)). For α = 1 users who need more than they get have the time
/// in parts that are as their weights, whatever their rates.
pub fn allocate_cell(rate: f64, users: &[User], notion: Notion) -> Result<Vec<f64>, FairnessError> {
    check(&[rate], users)?;
    let radio = |user: &User| user.radio.unwrap_or(rate);
    let fastest = users.iter().map(radio).fold(0.0, f64::max);
    let heaviest = users.iter().map(|user| user.weight).fold(0.0, f64::max);
    // The time y = x/r has the utility p·r^(1−α)·y^(1−α)/(1−α): it is as the weight
    // p^(1/α)·r^(1/α−1) at a node of capacity 1.
    let weight = |user: &User| {
        let power = notion.alpha().recip() - 1.0;
        let part = notion.ratio(user.weight / heaviest);
        (part * libm::pow(radio(user) / fastest, power)).clamp(f64::MIN_POSITIVE, f64::MAX)
    };
    let of_time = |user: &User| {
        let cap = user.cap / radio(user);
        match notion {
            Notion::Throughput => {
                let weight = user.weight / heaviest * (radio(user) / fastest);
                User { weight: weight.max(f64::MIN_POSITIVE), cap, radio: None }
            }
            Notion::Alpha(_) | Notion::MaxMin => User { weight: weight(user), cap, radio: None },
        }
    };
    let times: Vec<User> = users.iter().map(of_time).collect();
    let notion = match notion {
        Notion::Throughput => Notion::Throughput,
        Notion::Alpha(_) | Notion::MaxMin => Notion::Alpha(1.0),
    };
    let parts = allocate(1.0, &times, notion)?;
    let share = |(part, user): (f64, &User)| (part * radio(user)).min(user.cap);
    Ok(parts.into_iter().zip(users).map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(weight: f64, radio: f64) -> User {
        User { radio: Some(radio), ..User::of(weight) }
    }

    #[test]
    fn notions_share_the_time_of_a_cell_as_they_are_known_to() {
        let users = [user(1.0, 10.0), user(1.0, 2.0)];
        let of = |notion| allocate_cell(5.0, &users, notion).expect("shares");
        let close = |got: Vec<f64>, want: [f64; 2]| {
            assert!(
                got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9),
                "{got:?} for {want:?}"
            );
        };
        // Proportional: half of the time each. Max-min: equal rates x with x/10 + x/2 = 1.
        // Throughput: all for the faster. Delay: x as the root of r.
        close(of(Notion::Alpha(1.0)), [5.0, 1.0]);
        close(of(Notion::MaxMin), [10.0 / 6.0; 2]);
        close(of(Notion::Throughput), [10.0, 0.0]);
        let level = 1.0 / (10f64.sqrt() / 10.0 + 2f64.sqrt() / 2.0);
        close(of(Notion::Alpha(2.0)), [level * 10f64.sqrt(), level * 2f64.sqrt()]);
        // A cap of 1 takes a tenth of the time, and the other has the rest.
        let capped = [User { cap: 1.0, ..users[0] }, User { radio: None, ..users[1] }];
        close(allocate_cell(2.0, &capped, Notion::Alpha(1.0)).expect("shares"), [1.0, 1.8]);
    }

    #[test]
    fn where_all_radios_are_alike_a_cell_is_a_node() {
        let users = [User::of(1.0), User { cap: 3.0, ..User::of(5.0) }, User::of(0.2)];
        for notion in [Notion::Alpha(0.3), Notion::Alpha(4.0), Notion::MaxMin, Notion::Throughput] {
            let cell = allocate_cell(10.0, &users, notion).expect("shares");
            let node = allocate(10.0, &users, notion).expect("shares");
            assert!(cell.iter().zip(&node).all(|(a, b)| (a - b).abs() < 1e-9), "{cell:?} {node:?}");
        }
    }
}
