/// Packets and losses, of which what is long ago counts less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fading {
    pub(super) packets: f64,
    pub(super) lost: f64,
}

impl Fading {
    /// Takes so many packets. After `memory` of them half of what was known is forgotten.
    pub(super) fn add(&mut self, packets: f64, lost: f64, memory: f64) {
        let keep = libm::exp2(-packets / memory);
        self.packets = self.packets * keep + packets;
        self.lost = self.lost * keep + lost;
    }

    /// So many half-lives pass.
    pub(super) fn fade(&mut self, lives: f64) {
        let keep = libm::exp2(-lives);
        self.packets *= keep;
        self.lost *= keep;
    }

    pub(super) fn loss(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }

    /// The most that it may be, for all that is known.
    pub(super) fn bound(&self) -> f64 {
        ((self.lost + 0.5 + 1.5 * libm::sqrt(self.lost)) / self.packets.max(1.0)).min(0.9)
    }
}
