//! Chunks whose fate repairs decide.

use fontis_base::Time;

/// A copy that reports say is missing and that waits for its repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) tsn: u64,
    pub(super) order: u64,
    /// Until when, unless acknowledgements tell.
    pub(super) until: Time,
}

/// A chunk that the peer has restored: its copy is lost, or it is late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restored {
    pub(super) tsn: u32,
    pub(super) path: usize,
    pub(super) order: u64,
}

/// The largest share of packets whose loss is taken for chance.
const MOST_CHANCE: f64 = 0.12;
/// Packets that met a short queue, at least, before their losses prove anything.
const LEAST_CALM: f64 = 100.0;
/// Packets after which what was seen before counts half.
const MEMORY: f64 = 2000.0;
/// Losses that chance may owe at most.
const MOST_CREDIT: f64 = 4.0;

/// Which repaired losses of a path are its own, and which tell of congestion. Losses of packets
/// that met a short queue prove chance, up to a bound; where the queue is long, only as many losses
/// as that are taken for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossProof {
    /// Packets that met a short queue, and those of them that were lost.
    calm: f64,
    calm_lost: f64,
    /// Losses that chance owes among packets that met a long queue.
    credit: f64,
}

impl LossProof {
    /// The share of packets that chance loses, as far as it is proved.
    fn chance(&self) -> f64 {
        self.calm_lost / self.calm.max(LEAST_CALM)
    }

    /// So many chunks have arrived.
    pub(super) fn note_arrived(&mut self, chunks: u64, is_calm: bool) {
        if is_calm {
            self.calm += chunks as f64;
            if self.calm > MEMORY {
                (self.calm, self.calm_lost) = (self.calm / 2.0, self.calm_lost / 2.0);
            }
        } else {
            self.credit = (self.credit + self.chance() * chunks as f64).min(MOST_CREDIT);
        }
    }

    /// A chunk was lost and repaired. Whether that tells of congestion.
    pub(super) fn note_repaired(&mut self, is_calm: bool) -> bool {
        if is_calm {
            self.calm += 1.0;
            self.calm_lost += 1.0;
            return self.chance() > MOST_CHANCE;
        }
        let is_owed = self.credit >= 1.0;
        if is_owed {
            self.credit -= 1.0;
        }
        !is_owed
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Stream;

    use super::*;

    /// The share of repaired losses that tell of congestion, of packets that are lost at random and
    /// by a queue that is long for a part of the time.
    fn told(seed: u64, chance: f64, queue: f64) -> f64 {
        let (mut stream, mut proof) = (Stream::new(seed, "losses"), LossProof::default());
        let (mut told, mut losses) = (0, 0);
        for packet in 0..50_000 {
            let is_calm = packet % 400 < 200;
            let loss = if is_calm { chance } else { chance + queue };
            if stream.unit() < loss {
                losses += 1;
                told += u32::from(proof.note_repaired(is_calm));
            } else {
                proof.note_arrived(1, is_calm);
            }
        }
        f64::from(told) / f64::from(losses)
    }

    #[test]
    fn chance_tells_nothing_and_what_is_beyond_it_tells_of_congestion() {
        let seed = 3;
        let mut stream = Stream::new(seed, "chances");
        for _ in 0..20 {
            let chance = 0.002 + 0.09 * stream.unit();
            let only = told(seed, chance, 0.0);
            assert!(only < 0.2, "seed {seed}, {chance}: {only}");
            let queue = 0.02 + 0.1 * stream.unit();
            let both = told(seed, chance, queue);
            // Half of the packets lose by the queue too.
            let share = queue / (2.0 * chance + queue);
            assert!((both - share).abs() < 0.15, "seed {seed}, {chance}, {queue}: {both}, {share}");
        }
    }

    #[test]
    fn loss_above_the_bound_is_never_chance() {
        assert!(told(1, 0.3, 0.0) > 0.5);
    }
}
