use super::User;

/// All users rise together; one stops when it has what it can use or a node of its is full.
///
/// Users reach their caps in the order of these, and each full node is looked for once, so that
/// many caps cost no more than many users.
pub(super) fn rise(capacities: &[f64], users: &[User], routes: &[&[usize]]) -> Vec<f64> {
    let mut shares: Vec<Option<f64>> = vec![None; users.len()];
    let mut left = capacities.to_vec();
    let mut crossing = vec![0usize; capacities.len()];
    routes.iter().copied().flatten().for_each(|node| crossing[*node] += 1);
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
        // Rounding of the level must not leave a user without a trace of what it can use.
        let (stopped, share) = match full {
            Some(full) if step >= room => {
                let rising = (0..users.len()).filter(|user| shares[*user].is_none());
                (rising.filter(|user| routes[*user].contains(&full)).collect(), level)
            }
            _ => (vec![first], f64::INFINITY),
        };
        for user in stopped {
            shares[user] = Some(share.min(users[user].cap));
            routes[user].iter().for_each(|node| crossing[*node] -= 1);
        }
    }
    shares.into_iter().map(|share| share.unwrap_or(0.0)).collect()
}
