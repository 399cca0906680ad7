use fontis_base::Stream;

/// The packets before the first number that is left out, at least; twice as many at most. It
/// doubles each time, up to the second.
const EVERY: (u64, u64) = (1000, 64_000);

/// Which packet numbers are left out: a receiver that tells their arrival does not go by what came
/// (RFC 9000 section 21.4).
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftOut {
    seed: u64,
    every: u64,
    next: u64,
}

impl LeftOut {
    /// Begins by an unguessable seed, for the path of this number.
    pub(super) fn new(seed: u64, path: u8) -> Self {
        let seed = seed.wrapping_add(u64::from(path));
        let mut new = Self { seed, every: EVERY.0, next: 0 };
        new.choose(0);
        new
    }

    fn choose(&mut self, after: u64) {
        let mut random = Stream::new(self.seed ^ after, "numbers left out");
        self.next = after + self.every + random.below(self.every);
        self.every = (self.every * 2).min(EVERY.1);
    }

    /// Whether this number, or the next that can be, is to be left out.
    pub(super) fn has(&mut self, number: u64) -> bool {
        let is_due = number >= self.next;
        if is_due {
            self.choose(number);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_left_out_ever_more_seldom() {
        let mut left_out = LeftOut::new(7, 0);
        let all: Vec<u64> = (0..1_000_000).filter(|number| left_out.has(*number)).collect();
        assert!((1000..2000).contains(&all[0]), "{all:?}");
        assert!((10..20).contains(&all.len()), "{all:?}");
        let mut other = LeftOut::new(8, 0);
        assert!(!other.has(all[0]) || !other.has(all[1]), "they are not to be guessed");
    }
}
