use fontis_base::{Duration, Time};

/// Probes of one size before it is given up.
const TRIES: u32 = 3;
/// How long a probe may be under way, and how long to wait between them.
const PATIENCE: Duration = Duration::from_millis(600);
/// Symbols of a packet that are tried, most first: what a jumbo frame holds, then less. What lies between one and two
/// symbols is no gain, so 1500-byte paths are not probed for it.
const SYMBOLS: [u32; 3] = [7, 3, 2];

/// Path MTU discovery by padded probes (after RFC 8899): the symbol size stays, a packet carries one or more.
#[derive(Clone, Debug)]
pub(super) struct Mtu {
    least: u32,
    size: u32,
    candidates: Vec<u32>,
    tries: u32,
    next: Time,
}

impl Mtu {
    /// Begins at packets of `size` bytes with one symbol of `symbol` bytes; nothing beyond `most` is tried.
    pub(super) fn new(size: u32, most: u32, symbol: u32) -> Self {
        let candidates = SYMBOLS
            .iter()
            .rev()
            .map(|count| size + (count - 1) * symbol)
            .filter(|size| *size <= most)
            .collect();
        Self { least: size, size, candidates, tries: 0, next: Time::ZERO }
    }

    /// Large packets seem to vanish: back to the size that every path carries.
    pub(super) const fn fall_back(&mut self) {
        self.size = self.least;
    }

    /// Bytes of a packet that the path is known to carry.
    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    /// The size of a probe that is due.
    pub(super) fn probe(&mut self, now: Time) -> Option<u32> {
        if now < self.next {
            return None;
        }
        if self.tries >= TRIES {
            self.candidates.pop();
            self.tries = 0;
        }
        let size = *self.candidates.last()?;
        self.tries += 1;
        self.next = now + PATIENCE;
        Some(size)
    }

    /// A probe of `size` bytes arrived: so does everything smaller.
    pub(super) fn arrived(&mut self, size: u32) {
        if size > self.size {
            self.size = size;
            self.candidates.retain(|candidate| *candidate > size);
            self.tries = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_finds_the_largest_size_that_arrives() {
        let mut mtu = Mtu::new(1280, 9000, 1192);
        let mut now = Time::ZERO;
        let mut probes = 0;
        while probes < 20 {
            now += Duration::from_secs(1);
            let Some(size) = mtu.probe(now) else { break };
            probes += 1;
            if size <= 4000 {
                mtu.arrived(size);
            }
        }
        assert_eq!(mtu.size(), 1280 + 2 * 1192);
        assert_eq!(probes, 4, "three for the jumbo frame, one for what fits");
    }
}
