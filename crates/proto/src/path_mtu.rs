//! The search for the largest packet that a path carries.

use fontis_base::{Duration, Time};

/// Probes of one size before it is given up.
const TRIES: u32 = 3;
/// How long a probe may be under way, and how long to wait between them.
const PATIENCE: Duration = Duration::from_millis(600);
/// How long nothing is tried after a path that carried a size carries nothing.
const REST: Duration = Duration::from_secs(10);
/// The packet of Ethernet, which most paths carry.
const ETHERNET: u32 = 1500;
/// Sizes that are tried, last first: Ethernet's packet, then a jumbo frame, then what is left of
/// Ethernet's in most tunnels.
const SIZES: [u32; 3] = [1420, 9000, ETHERNET];
/// Large packets lost in a row that make a black hole, if as many small ones as here arrive
/// meanwhile.
const BLACK_HOLE: (u32, u32) = (10, 3);

/// Path MTU discovery by padded probes (after RFC 8899).
#[derive(Clone, Debug)]
pub(crate) struct Mtu {
    least: u32,
    most: u32,
    size: u32,
    candidates: Vec<u32>,
    tries: u32,
    next: Time,
    large_lost: u32,
    small_arrived: u32,
}

impl Mtu {
    /// Begins at packets of `size` bytes; nothing beyond `most` is tried.
    pub(crate) fn new(size: u32, most: u32) -> Self {
        let candidates = SIZES.into_iter().filter(|probe| (size + 1..=most).contains(probe));
        Self {
            least: size,
            most,
            size,
            candidates: candidates.collect(),
            tries: 0,
            next: Time::ZERO,
            large_lost: 0,
            small_arrived: 0,
        }
    }

    /// Bytes of a packet that the path is known to carry.
    pub(crate) const fn size(&self) -> u32 {
        self.size
    }

    /// The size to try with the very first packets, if it is worth a packet before anything is
    /// known.
    pub(crate) fn first_probe(&self) -> Option<u32> {
        self.candidates.last().copied().filter(|size| *size == ETHERNET)
    }

    /// The size of a probe that is due after `packets` data packets: a size that most paths carry
    /// is soon worth it.
    pub(crate) fn probe(&mut self, now: Time, packets: u64) -> Option<u32> {
        if now < self.next {
            return None;
        }
        if self.tries >= TRIES {
            self.candidates.pop();
            self.tries = 0;
        }
        let size = *self.candidates.last()?;
        if packets < if size == ETHERNET { 64 } else { 2000 } {
            return None;
        }
        self.tries += 1;
        self.next = now + PATIENCE;
        Some(size)
    }

    /// A probe of `size` bytes arrived: so does everything smaller.
    pub(crate) fn arrived(&mut self, size: u32) {
        if size > self.size {
            self.size = size;
            self.candidates.retain(|candidate| *candidate > size);
            self.tries = 0;
        }
    }

    /// A packet that was no probe arrived or was lost. True if large packets vanish where small
    /// ones pass: the path has changed, and the size falls back to what every path carries.
    pub(crate) fn decided(&mut self, size: u32, received: bool) -> bool {
        match (size > self.least, received) {
            (true, true) => (self.large_lost, self.small_arrived) = (0, 0),
            (true, false) => self.large_lost += 1,
            (false, true) if self.large_lost > 0 => self.small_arrived += 1,
            (false, _) => {}
        }
        let hole = self.large_lost >= BLACK_HOLE.0 && self.small_arrived >= BLACK_HOLE.1;
        if hole {
            let smaller = self.least + 1..self.size;
            self.candidates = SIZES.into_iter().filter(|size| smaller.contains(size)).collect();
            (self.size, self.tries) = (self.least, 0);
            (self.large_lost, self.small_arrived) = (0, 0);
        }
        hole
    }

    /// Nothing large comes, and whether small ones would is not known: the path may be down, or
    /// another. The size falls back to what every path carries, and all is tried anew later.
    pub(crate) fn fall_back(&mut self, now: Time) {
        if self.size > self.least {
            let next = now + REST;
            *self = Self { next, ..Self::new(self.least, self.most) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size found on a path that carries `most` bytes, and the probes that took.
    fn found(path: u32, most: u32) -> (u32, u32) {
        let mut mtu = Mtu::new(1280, most);
        let mut now = Time::ZERO;
        let mut probes = 0;
        while probes < 20 {
            now += Duration::from_secs(1);
            let Some(size) = mtu.probe(now, 2000) else { break };
            probes += 1;
            if size <= path {
                mtu.arrived(size);
            }
        }
        (mtu.size(), probes)
    }

    #[test]
    fn discovery_finds_the_largest_size_that_arrives() {
        assert_eq!(
            found(4000, 9000),
            (1500, 1 + TRIES),
            "one for Ethernet, three for the jumbo frame"
        );
        assert_eq!(found(9000, 9000), (9000, 2));
        assert_eq!(found(1450, 9000), (1420, 2 * TRIES + 1));
        assert_eq!(found(9000, 1500), (1500, 1));
        assert_eq!(found(1300, 1280), (1280, 0));
    }

    #[test]
    fn after_silence_all_is_tried_anew_but_not_at_once() {
        let mut mtu = Mtu::new(1280, 9000);
        mtu.arrived(9000);
        mtu.fall_back(Time::ZERO);
        assert_eq!((mtu.size(), mtu.probe(Time::ZERO, 2000)), (1280, None));
        assert_eq!(mtu.probe(Time::ZERO + REST, 2000), Some(1500));
    }

    #[test]
    fn large_packets_that_vanish_among_small_ones_are_a_black_hole() {
        let mut mtu = Mtu::new(1280, 1500);
        mtu.arrived(1500);
        for _ in 0..100 {
            assert!(!mtu.decided(1500, false), "an outage takes everything");
        }
        assert!(!mtu.decided(1500, true));
        for _ in 0..9 {
            assert!(!mtu.decided(1500, false));
            assert!(!mtu.decided(100, true));
        }
        assert!(mtu.decided(1500, false));
        assert_eq!(mtu.size(), 1280);
        assert_eq!(mtu.probe(Time::ZERO, 2000), Some(1420), "a tunnel may remain");
    }
}
