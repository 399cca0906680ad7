//! How many symbols to send so that enough arrive.

/// Standard normal quantile of 0.999: the success probability asked of a tail's first flight.
const TAIL_QUANTILE: f64 = 3.0902;
/// The success probability asked of what is given up if it is late, and its quantile: messages come
/// all the time, and what each takes too much is missed.
const TIMELY: (f64, f64) = (0.996, 2.652);
/// Packets of a block of which the probabilities are added up; of more the formula is exact enough.
const FEW: u32 = 200;

/// The same for what is topped up later: fewer than one block in ten gets more than it needs.
const SPARING_QUANTILE: f64 = -1.5;
/// Packets of a block's first flight that may be fewer than suffice on average.
const MANY: u32 = 64;

/// Packets after which half of what was measured has been forgotten.
const MEMORY: f64 = 4096.0;
/// The same for what is compared with it, to see whether the path has become another.
const SHORT_MEMORY: f64 = 256.0;
/// Standard deviations between the two that make it so.
const OTHER_PATH: f64 = 4.5;

/// What became of packets, the older the less it counts.
#[derive(Clone, Copy, Debug, Default)]
struct Fading {
    received: f64,
    lost: f64,
    bursts: f64,
}

impl Fading {
    fn observe(&mut self, received: u64, lost: u64, bursts: u64, memory: f64) {
        let keep = libm::exp2(-((received + lost) as f64) / memory);
        self.received = self.received * keep + received as f64;
        self.lost = self.lost * keep + lost as f64;
        self.bursts = self.bursts * keep + bursts as f64;
    }

    fn total(&self) -> f64 {
        self.received + self.lost
    }

    fn loss(&self) -> f64 {
        if self.total() < 1.0 { 0.0 } else { self.lost / self.total() }
    }

    fn mean_burst(&self) -> f64 {
        if self.bursts < 1.0 { 1.0 } else { (self.lost / self.bursts).max(1.0) }
    }
}

/// Loss measured on a path, as a two-state Gilbert process: p good→bad and q bad→good per packet.
#[derive(Clone, Debug)]
pub(super) struct LossModel {
    known: Fading,
    recent: Fading,
    ever_lost: bool,
    observed: u64,
    /// The most that is the path's own.
    most: f64,
}

impl LossModel {
    pub(super) fn new() -> Self {
        let nothing = Fading::default();
        Self { known: nothing, recent: nothing, ever_lost: false, observed: 0, most: 1.0 }
    }

    /// No more than this is the path's own. The rest is overload, and more packets would add to it.
    pub(super) const fn bound(&mut self, most: f64) {
        self.most = most;
    }

    /// Adds what a feedback decided: packets received and lost, and how many runs the losses made.
    pub(super) fn observe(&mut self, received: u64, lost: u64, bursts: u64) {
        self.known.observe(received, lost, bursts, MEMORY);
        self.recent.observe(received, lost, bursts, SHORT_MEMORY);
        self.ever_lost |= lost > 0;
        self.observed += received + lost;
        if self.is_another_path() {
            self.known = self.recent;
        }
    }

    /// Whether so little loss as came last cannot be chance on a path that loses as it did: an
    /// overload has passed, or a link was changed. More loss may be an outage, and is waited for.
    fn is_another_path(&self) -> bool {
        let (known, recent) = (self.known.loss(), self.recent.loss());
        // Losses of a run are no independent witnesses.
        let witnesses = self.recent.total() / (2.0 * self.known.mean_burst() - 1.0);
        let deviation = libm::sqrt(known * (1.0 - known) / witnesses.max(1.0));
        self.recent.total() > SHORT_MEMORY && known - recent > OTHER_PATH * deviation + 0.01
    }

    /// A packet that had been counted as lost came after all.
    pub(super) fn correct(&mut self) {
        for tally in [&mut self.known, &mut self.recent] {
            tally.received += 1.0;
            tally.lost = (tally.lost - 1.0).max(0.0);
            tally.bursts = tally.bursts.min(tally.lost);
        }
    }

    /// The measured share of packets lost; until something is measured, zero.
    pub(super) fn loss(&self) -> f64 {
        self.known.loss()
    }

    /// The mean length of a run of losses; one if none was seen.
    pub(super) fn mean_burst(&self) -> f64 {
        self.known.mean_burst()
    }

    /// (p, q) of the Gilbert process, pulled towards a loss of `PRIOR` while little has been seen.
    /// On a path that has shown hundreds of packets and no loss, p is zero: there nothing should
    /// ever be encoded.
    fn gilbert(&self) -> (f64, f64) {
        const PRIOR_PACKETS: f64 = 20.0;
        const PRIOR_LOSS: f64 = 0.08;
        if !self.ever_lost && self.observed >= 200 {
            return (0.0, 1.0);
        }
        let received = self.known.received + PRIOR_PACKETS * (1.0 - PRIOR_LOSS);
        let lost = self.known.lost + PRIOR_PACKETS * PRIOR_LOSS;
        let bursts = self.known.bursts + PRIOR_PACKETS * PRIOR_LOSS * (1.0 - PRIOR_LOSS);
        let (p, q) = ((bursts / received).min(1.0), (bursts / lost).clamp(0.01, 1.0));
        (p.min(q * self.most / (1.0 - self.most).max(1e-6)), q)
    }

    /// How many packets to send at first so that `needed` arrive and few more, by what has been
    /// measured and nothing else: somewhat fewer than suffice on average, because what a block
    /// lacks can follow and what it has too much of was sent in vain. Few are not worth another
    /// round trip.
    pub(super) fn packets_at_first(&self, needed: u32) -> u32 {
        let average = libm::ceil(f64::from(needed) / (1.0 - self.loss()).max(0.02) - 1e-9) as u32;
        let known = &self.known;
        if needed < MANY || known.bursts < 1.0 || known.received < 1.0 {
            return average;
        }
        let p = (known.bursts / known.received).min(1.0);
        n_star(needed, p, known.bursts / known.lost, SPARING_QUANTILE).clamp(needed, average)
    }

    /// The same for a message, which asks for little: the rate's controller hardly bounds it, and
    /// whoever overloads a path with messages must not ask for more the more it loses. It does not
    /// leave twice where hardly one of its packets will be lost.
    pub(super) fn packets_of_message(&self, needed: u32) -> u32 {
        let average = f64::from(needed) / (1.0 - self.loss().min(self.most)).max(0.02);
        if average - f64::from(needed) < 0.5 {
            return needed;
        }
        libm::ceil(average - 1e-9) as u32
    }

    /// n*: how many packets to send so that `needed` arrive almost surely (specs: Gilbert loss; it
    /// reduces to Bernoulli's formula where p = 1 − q). Zero if none is needed.
    pub(super) fn packets_almost_surely(&self, needed: u32) -> u32 {
        if needed == 0 {
            return 0;
        }
        let (p, q) = self.gilbert();
        n_star(needed, p, q, TAIL_QUANTILE)
    }

    /// The same for what has a deadline, with the probability of [`TIMELY`].
    pub(super) fn packets_in_time(&self, needed: u32) -> u32 {
        if needed == 0 {
            return 0;
        }
        let (p, q) = self.gilbert();
        let normal = n_star(needed, p, q, TIMELY.1);
        // Of few packets one more is much. Where losses come in runs they depend on each other.
        if needed > FEW || self.mean_burst() > 1.5 {
            return normal;
        }
        let loss = p / (p + q);
        // The probability that so many are lost before enough have arrived, and of no more.
        let mut lost = libm::pow(1.0 - loss, f64::from(needed));
        let (mut enough, mut spare) = (lost, 0);
        while enough < TIMELY.0 && needed + spare < normal {
            lost *= loss * f64::from(needed + spare) / f64::from(spare + 1);
            enough += lost;
            spare += 1;
        }
        needed + spare
    }
}

/// n* = ⌈k(p+q)/q + R·√(kp(2−p−q))/q⌉ for k packets over a Gilbert channel (report of 2011, section
/// 5.2); Bernoulli's where q = 1 − p. `quantile` is R, the standard normal quantile of the success
/// probability asked for.
pub fn n_star(k: u32, p: f64, q: f64, quantile: f64) -> u32 {
    let k = f64::from(k);
    let mean = k * (p + q) / q;
    let deviation = libm::sqrt(k * p * (2.0 - p - q).max(0.0)) / q;
    // The margin keeps a mean that is whole but for rounding from costing a packet.
    libm::ceil(mean + quantile * deviation - 1e-9) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_star_matches_the_published_vectors() {
        const R99: f64 = 2.326_347_874;
        const R6: f64 = 4.753_424_309;
        for (k, p, q, quantile, expected) in [
            (100, 0.1, 0.9, R99, 120),
            (1000, 0.01, 0.99, R99, 1018),
            (1000, 0.1, 0.9, R99, 1137),
            (1000, 0.1, 0.9, R6, 1164),
            (1000, 0.5, 0.5, R6, 2213),
            (10_000, 0.05, 0.95, R6, 10_639),
            (1000, 0.01, 0.25, R99, 1079),
            (1000, 0.01, 0.25, R6, 1120),
            (1000, 0.05, 0.5, R99, 1140),
            (1000, 0.1, 0.5, R99, 1256),
            (100, 0.05, 0.25, R99, 148),
            (10_000, 0.01, 0.2, R6, 10_818),
        ] {
            assert_eq!(n_star(k, p, q, quantile), expected, "k={k} p={p} q={q}");
        }
    }

    #[test]
    fn a_clean_path_needs_no_redundancy() {
        let mut model = LossModel::new();
        assert!(model.packets_almost_surely(9) > 9, "an unknown path may lose packets");
        assert_eq!(model.packets_at_first(9), 9);
        model.observe(300, 0, 0);
        assert_eq!(model.packets_almost_surely(1000), 1000);
    }

    #[test]
    fn an_overload_that_has_passed_is_forgotten_and_chance_is_not_taken_for_change() {
        let mut model = LossModel::new();
        model.observe(600, 800, 300);
        for _ in 0..60 {
            model.observe(20, 0, 0);
        }
        assert!(model.loss() < 0.1, "{}", model.loss());
        let mut model = LossModel::new();
        for round in 0..200 {
            model.observe(
                if round % 2 == 0 { 95 } else { 85 },
                if round % 2 == 0 { 5 } else { 15 },
                5,
            );
            assert!(round < 40 || (model.loss() - 0.1).abs() < 0.01, "{}", model.loss());
        }
    }

    #[test]
    fn what_has_a_deadline_has_the_fewest_packets_that_bring_it_in_time() {
        // One of a thousand is lost: three packets come with .997, and ten with .990.
        for (lost, needed, packets) in
            [(1, 2, 2), (1, 3, 3), (1, 10, 11), (10, 1, 2), (10, 100, 104), (50, 20, 24)]
        {
            let mut model = LossModel::new();
            for _ in 0..50 {
                model.observe(1000 - lost, lost, lost);
            }
            let found = model.packets_in_time(needed);
            assert_eq!(found, packets, "{lost} of 1000, {needed} needed");
        }
        let mut model = LossModel::new();
        model.observe(300, 0, 0);
        assert_eq!((model.packets_in_time(0), model.packets_in_time(9)), (0, 9));
    }

    #[test]
    fn overload_asks_for_no_copies() {
        let mut model = LossModel::new();
        model.observe(600, 400, 240);
        assert!(model.packets_almost_surely(1) >= 5);
        model.bound(0.02);
        assert_eq!(model.packets_almost_surely(1), 2);
        model.bound(0.0);
        assert_eq!(model.packets_almost_surely(1), 1);
        assert_eq!(model.packets_of_message(1), 1);
    }

    #[test]
    fn a_message_leaves_twice_only_where_a_third_is_lost() {
        for (lost, needed, packets) in [(0, 1, 1), (30, 1, 1), (40, 1, 2), (1, 20, 20), (5, 20, 22)]
        {
            let mut model = LossModel::new();
            model.observe(100 - lost, lost, lost);
            assert_eq!(model.packets_of_message(needed), packets, "{lost} of 100, {needed} needed");
        }
    }

    #[test]
    fn the_model_follows_what_it_sees() {
        let mut model = LossModel::new();
        for _ in 0..100 {
            model.observe(90, 10, 9);
        }
        assert_eq!(model.packets_at_first(10), 12);
        let sent = model.packets_at_first(1000);
        assert!((1090..=1100).contains(&sent), "{sent}: 1111 less 1.5 times 11");
        assert!((model.loss() - 0.1).abs() < 1e-9);
    }
}
