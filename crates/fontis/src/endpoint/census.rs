use std::collections::HashMap;

use super::unconfirmed::Network;

/// The part of all connections that one network may have.
const SHARE: usize = 4;

/// The confirmed connections of clients, counted by their networks.
pub(super) struct Census {
    most: usize,
    all: usize,
    networks: HashMap<Network, usize>,
}

impl Census {
    /// A census that allows `most` connections.
    pub(super) fn new(most: usize) -> Self {
        Self { most, all: 0, networks: HashMap::new() }
    }

    /// Counts another connection; false if there are too many.
    pub(super) fn enter(&mut self, network: Network) -> bool {
        let held = self.networks.get(&network).copied().unwrap_or(0);
        let has_room = self.all < self.most && held < self.most.div_ceil(SHARE);
        if has_room {
            self.all += 1;
            self.networks.insert(network, held + 1);
        }
        has_room
    }

    /// A connection that was counted is over.
    pub(super) fn leave(&mut self, network: Network) {
        if let Some(held) = self.networks.get_mut(&network) {
            self.all -= 1;
            *held -= 1;
            if *held == 0 {
                self.networks.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_a_quarter_of_all_connections() {
        let network = |last: u8| Network::from(std::net::IpAddr::from([192, 0, last, 1]));
        let mut census = Census::new(8);
        assert_eq!([1, 1, 1].map(|last| census.enter(network(last))), [true, true, false]);
        census.leave(network(1));
        assert_eq!([1, 1].map(|last| census.enter(network(last))), [true, false]);
        let others = [2, 2, 3, 3, 4, 4, 5].map(|last| census.enter(network(last)));
        assert_eq!(others, [true, true, true, true, true, true, false]);
    }
}
