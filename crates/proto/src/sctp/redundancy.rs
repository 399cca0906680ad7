//! How many repairs measured loss asks for.

/// The share of packets that decoding may leave lost, of what is lost at random at the share that
/// was measured.
const LEFT: f64 = 1e-5;
/// The largest share of packets that repairs are made for.
const MOST_LOSS: f64 = 0.15;
/// Packets after which what was seen before counts half.
const MEMORY: f64 = 2000.0;
/// What a beginning is taken for: so many packets, and so many of them lost. Before anything is
/// known repairs are there for loss that would end slow start.
const PRIOR: Share = Share { packets: 100.0, lost: 4.0 };

/// A share of packets that is forgotten slowly.
#[derive(Clone, Copy, Debug)]
struct Share {
    packets: f64,
    lost: f64,
}

impl Share {
    fn note(&mut self, packets: f64, lost: f64) {
        self.packets += packets;
        self.lost += lost;
        if self.packets > MEMORY {
            (self.packets, self.lost) = (self.packets / 2.0, self.lost / 2.0);
        }
    }

    /// The share, and a standard deviation of what was counted.
    fn upper(&self) -> f64 {
        (self.lost + libm::sqrt(self.lost)) / self.packets
    }
}

/// The loss that repairs are made for. A queue's loss is not: more repairs would fill it more. So
/// it is the lesser of two shares: that of packets that met a short queue, whose loss is chance;
/// and that of all, which is known also where a queue stands all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossEstimate {
    calm: Share,
    all: Share,
}

impl LossEstimate {
    pub(super) const fn new() -> Self {
        Self { calm: PRIOR, all: PRIOR }
    }

    /// So many chunks have come, those among them that were restored.
    pub(super) fn note_arrived(&mut self, chunks: u64, is_calm: bool) {
        self.note(chunks as f64, 0.0, is_calm);
    }

    /// A chunk was lost, restored or not.
    pub(super) fn note_lost(&mut self, is_calm: bool) {
        self.note(0.0, 1.0, is_calm);
    }

    fn note(&mut self, packets: f64, lost: f64, is_calm: bool) {
        self.all.note(packets, lost);
        if is_calm {
            self.calm.note(packets, lost);
        }
    }

    pub(super) fn loss(&self) -> f64 {
        self.calm.upper().min(self.all.upper()).min(MOST_LOSS)
    }
}

/// The fewest repairs for `most` chunks, at least one, with which at most [`LEFT`] of the packets
/// stay lost where each of them is lost at random with the probability `loss`. They restore all
/// where no more than so many of both are lost, so that a packet stays lost if it is lost and as
/// many of the others are.
pub(super) fn repairs_for(most: u8, loss: f64) -> u64 {
    let most = u64::from(most);
    let is_enough = |repairs: &u64| loss * at_least(*repairs, most + *repairs - 1, loss) <= LEFT;
    (1..most).find(is_enough).unwrap_or(most)
}

/// The probability that at least `count` of `of` are lost.
fn at_least(count: u64, of: u64, loss: f64) -> f64 {
    let mut term = libm::pow(1.0 - loss, of as f64);
    let mut fewer = 0.0;
    for lost in 0..count {
        fewer += term;
        term *= (of - lost) as f64 / (lost + 1) as f64 * loss / (1.0 - loss);
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use fontis_base::Stream;

    use super::*;

    #[test]
    fn repairs_are_the_fewest_that_leave_what_may_be_left() {
        for (loss, repairs) in [(0.0, 1), (0.0005, 2)] {
            assert_eq!(repairs_for(128, loss), repairs, "{loss}");
        }
        let seed = 4;
        let mut stream = Stream::new(seed, "losses");
        for _ in 0..50 {
            let (most, loss) = (1 + stream.below(128) as u8, MOST_LOSS * stream.unit());
            let repairs = repairs_for(most, loss);
            let left = |repairs| {
                let packets = u64::from(most) + repairs;
                // Summed over how many are lost.
                let mut chance = vec![1.0];
                for _ in 0..packets {
                    let mut next = vec![0.0; chance.len() + 1];
                    for (lost, share) in chance.iter().enumerate() {
                        next[lost] += share * (1.0 - loss);
                        next[lost + 1] += share * loss;
                    }
                    chance = next;
                }
                let beyond = chance.iter().enumerate().skip(repairs as usize + 1);
                beyond.map(|(lost, share)| lost as f64 * share).sum::<f64>() / packets as f64
            };
            let named = format!("seed {seed}: {most} chunks, {loss}, {repairs} repairs");
            assert!(repairs == u64::from(most) || left(repairs) <= LEFT * 1.001, "{named}");
            assert!(repairs == 1 || left(repairs - 1) > LEFT * 0.999, "{named}");
        }
    }

    #[test]
    fn loss_in_a_queue_asks_for_no_repairs_and_what_is_over_is_forgotten() {
        let mut estimate = LossEstimate::new();
        let mut stream = Stream::new(1, "losses");
        let mut run = |packets: u32, calm: f64, queued: f64| {
            for packet in 0..packets {
                let is_calm = packet % 4 == 0;
                estimate.note_arrived(1, is_calm);
                if stream.unit() < if is_calm { calm } else { queued } {
                    estimate.note_lost(is_calm);
                }
            }
            estimate.loss()
        };
        assert!(run(50_000, 0.0, 0.05) < 0.001);
        let both = run(50_000, 0.03, 0.08);
        assert!((0.02..0.045).contains(&both), "{both}");
        assert!(run(50_000, 0.0, 0.0) < 0.001);
    }
}
