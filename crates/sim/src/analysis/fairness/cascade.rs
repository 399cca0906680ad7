use super::cell::allocate_cell;
use super::node::allocate;
use super::notion::Notion;
use super::{FairnessError, User};

/// A node that shares its capacity by a notion of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedNode {
    /// Its capacity, above zero; of a cell the rate of users whose radios have none of their own.
    pub capacity: f64,
    /// How it shares it.
    pub notion: Notion,
    /// Whether it is a radio cell, which shares its time.
    pub is_cell: bool,
}

/// Shares that users have after each of some nodes in a row: a node gives a user no more than the
/// node before it did, and does not know the nodes behind it (section 4.3 of the thesis).
///
/// Senders that do not respond to loss meet weighted fair queues so. Senders that do leave to
/// others what a later node refuses them, and have other shares.
pub fn cascade(nodes: &[SharedNode], users: &[User]) -> Result<Vec<Vec<f64>>, FairnessError> {
    let mut users = users.to_vec();
    let mut shares = Vec::with_capacity(nodes.len());
    for (number, node) in nodes.iter().enumerate() {
        let share = if node.is_cell { allocate_cell } else { allocate };
        let given = share(node.capacity, &users, node.notion).map_err(|error| match error {
            FairnessError::Capacity(_) => FairnessError::Capacity(number + 1),
            other => other,
        })?;
        for (user, share) in users.iter_mut().zip(&given) {
            user.cap = *share;
        }
        shares.push(given);
    }
    Ok(shares)
}
