use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use fontis_base::{Duration, Time};

use super::limiter::Limiter;
use crate::protection::octets;

/// The time that an initiator has to confirm. Its SYNACK and its confirmation are repeated several
/// times meanwhile.
pub(super) const LIFE: Duration = Duration::from_secs(5);
/// The connections of a room.
const PLACES: usize = 512;
/// Those of one network.
const SHARE: usize = 64;
/// Networks whose rates are remembered. Those that pause are forgotten sooner.
const MAX_RATES: usize = 1 << 12;

/// A network whose hosts share their limits: a /24 of IPv4, a /56 of IPv6. One customer has as many
/// addresses as that, and mostly no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Network([u8; 15]);

impl From<IpAddr> for Network {
    fn from(ip: IpAddr) -> Self {
        let octets = octets(ip);
        let kept = if ip.to_canonical().is_ipv4() { 15 } else { 7 };
        let mut network = [0; 15];
        network[..kept].copy_from_slice(&octets[..kept]);
        Self(network)
    }
}

/// The connections whose handshake is not confirmed, of SYNs without a cookie or of those with one.
pub(super) struct Unconfirmed {
    /// SYNs opened in a second.
    all: Limiter,
    /// Those of one network.
    share: u64,
    rates: HashMap<Network, Limiter>,
    /// The connections, the oldest first.
    places: BTreeMap<u64, Network>,
    networks: HashMap<Network, BTreeSet<u64>>,
}

impl Unconfirmed {
    /// A room for which `all` SYNs a second are opened, `share` of them for one network.
    pub(super) fn new(all: u64, share: u64) -> Self {
        Self {
            all: Limiter::new(all),
            share,
            rates: HashMap::new(),
            places: BTreeMap::new(),
            networks: HashMap::new(),
        }
    }

    /// Whether neither the room nor the network's share of it is full.
    pub(super) fn has_room(&self, network: Network) -> bool {
        self.places.len() < PLACES && self.held(network) < SHARE
    }

    /// Whether another SYN of `network` may be opened now; it counts as opened then.
    pub(super) fn allows(&mut self, now: Time, network: Network) -> bool {
        if self.rates.len() >= MAX_RATES {
            self.rates.retain(|_, rate| !rate.is_at_rest(now));
        }
        let share = self.share;
        match self.rates.get_mut(&network) {
            Some(rate) => rate.is_free(now) && self.all.allows(now) && rate.allows(now),
            // Only a SYN that is opened makes the network known, so `all` bounds their number.
            None if self.all.allows(now) => {
                self.rates.entry(network).or_insert_with(|| Limiter::new(share)).allows(now)
            }
            None => false,
        }
    }

    /// Gives a new connection its place. Returns the connection that has to go for it: the oldest
    /// of the network if its share is full, or else of the network that has the most.
    pub(super) fn enter(&mut self, id: u64, network: Network) -> Option<u64> {
        let crowded = if self.held(network) >= SHARE {
            Some(network)
        } else if self.places.len() >= PLACES {
            // The older one of two networks that have as many.
            let held = |(id, of): &(&u64, &Network)| (self.held(**of), std::cmp::Reverse(**id));
            self.places.iter().max_by_key(held).map(|(_, of)| *of)
        } else {
            None
        };
        let oldest = crowded.and_then(|network| self.networks.get(&network)?.first().copied());
        if let Some(oldest) = oldest {
            self.leave(oldest);
        }
        self.places.insert(id, network);
        self.networks.entry(network).or_default().insert(id);
        oldest
    }

    /// A connection is confirmed, or over.
    pub(super) fn leave(&mut self, id: u64) {
        let Some(network) = self.places.remove(&id) else { return };
        if let Some(ids) = self.networks.get_mut(&network) {
            ids.remove(&id);
            if ids.is_empty() {
                self.networks.remove(&network);
            }
        }
    }

    fn held(&self, network: Network) -> usize {
        self.networks.get(&network).map_or(0, BTreeSet::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn a_network_is_a_24_of_ipv4_or_a_56_of_ipv6() {
        assert_eq!(network("192.0.2.1"), network("192.0.2.255"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.7"));
        assert_ne!(network("192.0.2.1"), network("192.0.3.1"));
        assert_eq!(network("2001:db8:0:100::1"), network("2001:db8:0:1ff::2"));
        assert_ne!(network("2001:db8:0:100::1"), network("2001:db8:0:200::1"));
    }

    #[test]
    fn a_network_with_a_full_share_loses_its_own_oldest_connection() {
        let mut room = Unconfirmed::new(1000, 100);
        assert_eq!(room.enter(0, network("192.0.2.1")), None);
        for id in 1..=SHARE as u64 {
            assert_eq!(room.enter(id, network("198.51.100.1")), None);
        }
        assert!(!room.has_room(network("198.51.100.9")) && room.has_room(network("192.0.2.1")));
        assert_eq!(room.enter(100, network("198.51.100.2")), Some(1));
        assert_eq!(room.enter(101, network("198.51.100.3")), Some(2));
        room.leave(3);
        assert_eq!(room.enter(102, network("198.51.100.3")), None);
    }

    #[test]
    fn a_full_room_takes_from_the_network_that_has_the_most() {
        let mut room = Unconfirmed::new(1000, 100);
        let mut id = 0;
        assert_eq!(room.enter(1000, network("203.0.113.1")), None);
        while room.places.len() < PLACES {
            let network = network(&format!("10.0.{}.1", id % 20));
            assert_eq!(room.enter(id, network), None);
            id += 1;
        }
        // Networks 0 to 10 have one more than the others, and the oldest of network 0 is oldest.
        assert_eq!(room.enter(2000, network("192.0.2.1")), Some(0));
        assert_eq!(room.enter(2001, network("192.0.2.1")), Some(1));
        assert_eq!(room.places.len(), PLACES);
        assert!(room.places.contains_key(&1000), "the honest one");
    }

    #[test]
    fn a_network_uses_up_its_own_rate_and_leaves_that_of_others() {
        let mut room = Unconfirmed::new(1000, 100);
        let start = Time::ZERO + Duration::from_secs(10);
        let mut opened = 0;
        for ms in 0..1000 {
            let now = start + Duration::from_millis(ms);
            for _ in 0..10 {
                opened += u32::from(room.allows(now, network("198.51.100.1")));
            }
            if ms % 100 == 0 {
                assert!(room.allows(now, network("192.0.2.1")), "{ms} ms");
            }
        }
        assert!((190..=210).contains(&opened), "{opened} in a second, 100 of them at once");
    }

    #[test]
    fn forged_networks_do_not_fill_the_memory() {
        let mut room = Unconfirmed::new(2000, 200);
        for number in 0..100_000_u32 {
            let now = Time::ZERO + Duration::from_secs(10) + Duration::from_micros(number.into());
            let [a, b, c, d] = (number << 8).to_be_bytes();
            room.allows(now, IpAddr::from([a, b, c, d]).into());
        }
        assert!(room.rates.len() <= MAX_RATES, "{}", room.rates.len());
    }
}
