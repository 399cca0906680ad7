use fontis_base::Time;

/// The grain of time in which delays are compared, in nanoseconds: longer than feedback takes, and
/// than most hosts pause.
const GRAIN: u64 = 100_000_000;
/// How many of these are remembered, and how many must be known of both paths for a judgement.
const MEMORY: usize = 100;
const LEAST_KNOWN: usize = 40;
/// Behind the bottleneck one path may be longer by so many grains.
const LAG: i64 = 2;
/// The correlation of the changes of delay from which on two paths share a bottleneck, and below
/// which they do not.
const SHARED: f64 = 0.5;
const APART: f64 = 0.25;
/// Judgements in a row that it takes to change one.
const STEADY: u32 = 20;
/// The most that a change of delay counts for, in units of what is usual for the path.
const MOST: f64 = 3.0;
/// Changes of delay of less than this, in seconds, say nothing: hosts make them.
const NOISE: f64 = 0.3e-3;

/// Which paths of a connection wait in the same queue.
///
/// Packets of two paths that pass one bottleneck meet the same queue at the same time, so that
/// their delays change together; those of paths that share nothing change each on its own
/// (Rubenstein, Kurose, Towsley 2002). Changes are compared and not delays, because two queues that
/// both grow slowly resemble each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedBottlenecks {
    paths: Vec<Delays>,
    /// Each path with all of lower numbers, in their order ([`place`]).
    pairs: Vec<Pair>,
}

/// The least delay of each grain of time, of one path.
#[derive(Clone, Debug)]
struct Delays {
    /// The grain that is being filled.
    grain: u64,
    /// When it was last judged, on this side's clock.
    judged: Time,
    /// The first delay: clocks differ by an unknown constant.
    first_ns: Option<i64>,
    /// In seconds beyond the first, by the grain's number modulo [`MEMORY`]; not a number where
    /// none is known.
    least: [f32; MEMORY],
}

/// Two paths.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    share: bool,
    /// Judgements in a row against that.
    against: u32,
}

/// The place of a pair of two different paths.
fn place(one: usize, other: usize) -> usize {
    let (low, high) = (one.min(other), one.max(other));
    high * (high - 1) / 2 + low
}

impl Delays {
    const fn new() -> Self {
        Self { grain: 0, judged: Time::ZERO, first_ns: None, least: [f32::NAN; MEMORY] }
    }

    /// Goes on to a grain; whether it is a new one.
    fn reach(&mut self, grain: u64) -> bool {
        let passed = grain.saturating_sub(self.grain);
        for step in 0..passed.min(MEMORY as u64) {
            self.least[((grain - step) % MEMORY as u64) as usize] = f32::NAN;
        }
        self.grain = self.grain.max(grain);
        passed > 0
    }

    fn at(&self, grain: u64) -> Option<f64> {
        let is_kept = grain < self.grain && self.grain - grain < MEMORY as u64;
        let least = f64::from(self.least[(grain % MEMORY as u64) as usize]);
        (is_kept && !least.is_nan()).then_some(least)
    }

    /// The changes of delay up to each grain of a range, in units of what is usual. Larger ones
    /// count as [`MOST`], lest a single event that both paths meet, such as a pause of a host,
    /// decides.
    fn changes(&self, first: u64, end: u64) -> Vec<Option<f64>> {
        let change = |grain: u64| Some(self.at(grain)? - self.at(grain.checked_sub(1)?)?);
        let mut changes: Vec<Option<f64>> = (first..end).map(change).collect();
        let mut sizes: Vec<f64> = changes.iter().flatten().map(|change| change.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let usual = sizes.get(sizes.len() / 2).map_or(NOISE, |median| median.max(NOISE));
        for change in changes.iter_mut().flatten() {
            *change = (*change / usual).clamp(-MOST, MOST);
        }
        changes
    }
}

impl SharedBottlenecks {
    /// Takes the least one-way delay, in nanoseconds, that a feedback about a path tells at `now`,
    /// and when that came to the receiver, on its clock.
    pub(crate) fn observe(&mut self, path: usize, now: Time, received_at: Time, delay_ns: i64) {
        while self.paths.len() <= path {
            self.pairs.resize(self.pairs.len() + self.paths.len(), Pair::default());
            self.paths.push(Delays::new());
        }
        let delays = &mut self.paths[path];
        let grain = received_at.as_nanos() / GRAIN;
        let is_new = delays.reach(grain);
        if delays.grain - grain < MEMORY as u64 {
            let beyond = delay_ns.wrapping_sub(*delays.first_ns.get_or_insert(delay_ns));
            let least = &mut delays.least[(grain % MEMORY as u64) as usize];
            *least = least.min(beyond as f32 / 1e9);
        }
        // The receiver's clock may say what it likes: it must not cost more than an honest one.
        if is_new && now.since(delays.judged).as_nanos() >= GRAIN / 2 {
            delays.judged = now;
            self.judge(path);
        }
    }

    /// Judges the pairs of a path.
    fn judge(&mut self, path: usize) {
        for other in (0..self.paths.len()).filter(|other| *other != path) {
            let Some(likeness) = likeness(&self.paths[path], &self.paths[other]) else { continue };
            let pair = &mut self.pairs[place(path, other)];
            let is_against = if pair.share { likeness < APART } else { likeness > SHARED };
            pair.against = if is_against { pair.against + 1 } else { 0 };
            if pair.against >= STEADY {
                (pair.share, pair.against) = (!pair.share, 0);
            }
        }
    }

    /// What was known of a path holds no longer.
    pub(crate) fn forget(&mut self, path: usize) {
        let Some(delays) = self.paths.get_mut(path) else { return };
        *delays = Delays::new();
        for other in (0..self.paths.len()).filter(|other| *other != path) {
            self.pairs[place(path, other)] = Pair::default();
        }
    }

    /// The lowest number of a path that waits in the same queue as this one, which may be itself.
    pub(crate) fn first_sharing(&self, path: usize) -> usize {
        (0..path).find(|other| self.share(*other, path)).unwrap_or(path)
    }

    /// Whether two paths wait in the same queue.
    pub(crate) fn share(&self, one: usize, other: usize) -> bool {
        one != other && self.pairs.get(place(one, other)).is_some_and(|pair| pair.share)
    }
}

/// The correlation of the changes of two paths' delays, at the lag at which it is highest. None if
/// too little is known, or if nothing changes.
fn likeness(one: &Delays, other: &Delays) -> Option<f64> {
    let newest = one.grain.min(other.grain);
    let first = newest.saturating_sub(MEMORY as u64 - 1);
    let [ones, others] = [one, other].map(|path| path.changes(first, newest));
    let at = |lag: i64| {
        let (mut n, mut xx, mut yy, mut xy) = (0usize, 0.0, 0.0, 0.0);
        for (at, a) in ones.iter().enumerate() {
            let shifted = at.checked_add_signed(lag as isize);
            let b = shifted.and_then(|at| others.get(at).copied().flatten());
            let (Some(a), Some(b)) = (*a, b) else { continue };
            n += 1;
            (xx, yy, xy) = (xx + a * a, yy + b * b, xy + a * b);
        }
        (n >= LEAST_KNOWN && xx.min(yy) > 0.0).then(|| xy / libm::sqrt(xx * yy))
    };
    (-LAG..=LAG).filter_map(at).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use fontis_base::Stream;

    use super::*;

    /// Two paths for so many seconds, each with a queue of its own or both with one; one is longer
    /// by 30 ms behind it, and its receiver's clock is an hour off.
    fn run(bottlenecks: &mut SharedBottlenecks, s: &mut Stream, seconds: (u64, u64), one: bool) {
        let mut queues = [5e6, 5e6];
        for at in seconds.0 * 50..seconds.1 * 50 {
            for queue in &mut queues {
                *queue = (*queue * 0.9 + 2e6 * s.unit()).max(0.0);
            }
            if one {
                queues[1] = queues[0];
            }
            for (path, queue) in queues.iter().enumerate() {
                let jitter = 5e5 * s.unit();
                let extra = path as u64 * 30_000_000;
                let arrived = Time::from_nanos(at * 20_000_000 + extra);
                let delay = (queue + jitter) as i64 + extra as i64 - 3_600_000_000_000;
                bottlenecks.observe(path, arrived, arrived, delay);
            }
        }
    }

    #[test]
    fn a_queue_that_two_paths_meet_is_told_from_two_queues() {
        for seed in 0..20 {
            let s = &mut Stream::new(seed, "queues");
            let mut bottlenecks = SharedBottlenecks::default();
            run(&mut bottlenecks, s, (0, 30), false);
            assert!(!bottlenecks.share(0, 1), "seed {seed}: two queues");
            run(&mut bottlenecks, s, (30, 60), true);
            assert!(bottlenecks.share(1, 0), "seed {seed}: one queue");
            assert_eq!(bottlenecks.first_sharing(1), 0);
            run(&mut bottlenecks, s, (60, 90), false);
            assert!(!bottlenecks.share(0, 1), "seed {seed}: two queues again");
        }
    }

    #[test]
    fn a_path_on_another_network_shares_nothing_yet() {
        let mut bottlenecks = SharedBottlenecks::default();
        run(&mut bottlenecks, &mut Stream::new(1, "queues"), (0, 30), true);
        bottlenecks.forget(1);
        assert!(!bottlenecks.share(0, 1));
    }

    #[test]
    fn any_clock_is_taken() {
        let mut bottlenecks = SharedBottlenecks::default();
        let s = &mut Stream::new(1, "clocks");
        for _ in 0..10_000 {
            let at = Time::from_nanos(s.below(u64::MAX) >> s.below(64));
            let now = Time::from_nanos(s.below(1 << 40));
            bottlenecks.observe(s.below(3) as usize, now, at, s.below(u64::MAX) as i64);
        }
    }
}
