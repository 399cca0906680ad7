//! The playout buffer: it decides when each frame is heard, and so which frames come too late.
//!
//! Its delay is the one that the E-model rates best. A longer delay loses fewer frames and hurts
//! the conversation; which of both is worse depends on the way's own delay and on the codec.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use fontis_base::Time;

use crate::bursts::{LossBursts, LossPattern};
use crate::codec::FRAME;
use crate::quality::{Impairment, r_factor};

/// Frames whose arrivals are remembered: ten seconds.
const REMEMBERED: usize = 500;
/// Arrivals that are needed before the delay is chosen by them.
const FEW: usize = 10;
/// Late frames in a row after which the path is another one: what was before tells nothing of it.
const SHIFT: usize = 10;
/// Frames between two choices of the delay.
const CHOICE: u32 = 25;
/// The delay before that, in nanoseconds, and the longest.
const FIRST: i64 = 60_000_000;
const LONGEST: i64 = 1_000_000_000;
/// Turns come this much too early or too late without a change of place.
const SLACK: i64 = 4_000_000;
/// A frame that comes less than this before its turn may as well come behind it.
const MARGIN: i64 = 4_000_000;
/// A rating that is better by this is worth a change.
const GAIN: f64 = 0.5;
/// Frames that may wait; what comes far too early is no voice.
const MOST_WAITING: usize = 256;
/// Losses in a row that are noted one by one.
const MOST_NOTED: u32 = 3000;
const FRAME_NANOS: i64 = FRAME.as_nanos() as i64;

/// A frame on its way to the ear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) seq: u32,
    /// Whether it begins a talkspurt.
    pub(crate) marker: bool,
    /// Whether it describes comfort noise, and is no voice.
    pub(crate) is_noise: bool,
    pub(crate) voice: Bytes,
}

/// What is to be heard for 20 ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing has come yet.
    Quiet,
    /// This packet, and its place in time.
    Play(i64, Waiting),
    /// A frame is missing. The one behind it may hold a part of it.
    Conceal(Option<Bytes>),
}

/// Counters of a playout buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PlayoutStats {
    /// Frames that were heard.
    pub(crate) played: u64,
    /// Frames that were sent and not heard: lost, or late.
    pub(crate) missed: u64,
    /// Frames that came too late.
    pub(crate) late: u64,
    /// Turns whose frame was missing.
    pub(crate) concealed: u64,
    /// The sum of the buffer's delay at each frame heard, in nanoseconds.
    pub(crate) delays: i64,
}

/// The buffer of one call.
pub(crate) struct Playout {
    impairment: Impairment,
    /// Whether the packet behind a lost one makes up for it, if it is there in time.
    rebuilds: bool,
    /// The path's one-way delay in milliseconds, as far as it is known.
    way: f64,
    /// Frames by their place in time.
    waiting: BTreeMap<i64, Waiting>,
    /// The arrivals of late frames against their times, in nanoseconds.
    offsets: VecDeque<i64>,
    /// The time at which place 0 is due at the ear.
    anchor: Option<i64>,
    until_choice: u32,
    /// The place that is heard next.
    next: Option<i64>,
    /// The number of the last frame that was heard or given up.
    last: Option<u32>,
    /// Numbers behind it of packets that have no turn.
    others: BTreeSet<u32>,
    /// Turns without a change of the buffer's length.
    steady: u32,
    /// Late frames in a row.
    late_in_a_row: usize,
    pattern: LossPattern,
    stats: PlayoutStats,
}

impl Playout {
    pub(crate) fn new(impairment: Impairment) -> Self {
        Self {
            impairment,
            rebuilds: false,
            way: 50.0,
            waiting: BTreeMap::new(),
            offsets: VecDeque::new(),
            anchor: None,
            until_choice: CHOICE,
            next: None,
            last: None,
            others: BTreeSet::new(),
            steady: 0,
            late_in_a_row: 0,
            pattern: LossPattern::default(),
            stats: PlayoutStats::default(),
        }
    }

    /// The same, for a codec whose packets hold the frames before them once more, roughly.
    pub(crate) fn with_rebuilding(self, rebuilds: bool) -> Self {
        Self { rebuilds, ..self }
    }

    pub(crate) fn set_way(&mut self, millis: f64) {
        self.way = millis;
    }

    pub(crate) const fn stats(&self) -> PlayoutStats {
        self.stats
    }

    /// How losses lie in time.
    pub(crate) fn bursts(&self) -> LossBursts {
        self.pattern.bursts()
    }

    /// The number of the last frame that was heard or given up.
    pub(crate) const fn last(&self) -> Option<u32> {
        self.last
    }

    /// The place of the last turn.
    pub(crate) fn place(&self) -> Option<i64> {
        Some(self.next? - 1)
    }

    /// Notes that a packet has come that is heard elsewhere, so that it is not missed.
    pub(crate) fn leave_out(&mut self, seq: u32) {
        if self.last.is_none_or(|last| seq > last) && self.others.len() < MOST_WAITING {
            self.others.insert(seq);
        }
    }

    /// The delay that the buffer adds to that of the fastest frame, in milliseconds.
    pub(crate) fn delay(&self) -> f64 {
        let delay = self.anchor.zip(self.base()).map_or(FIRST, |(anchor, base)| anchor - base);
        delay as f64 / 1e6
    }

    /// The spread of arrivals: the delay that nine tenths of the frames keep, in milliseconds.
    pub(crate) fn jitter(&self) -> f64 {
        let sorted = self.sorted();
        let Some(first) = sorted.first() else { return 0.0 };
        (sorted[(sorted.len() - 1) * 9 / 10] - first) as f64 / 1e6
    }

    /// Takes the frame of place `place` in time.
    pub(crate) fn insert(&mut self, now: Time, place: i64, frame: Waiting) {
        if self.offsets.len() == REMEMBERED {
            self.offsets.pop_front();
        }
        self.offsets.push_back(now.as_nanos() as i64 - place * FRAME_NANOS);
        if self.next.is_some_and(|next| place < next) {
            self.stats.late += u64::from(self.last.is_none_or(|last| frame.seq != last));
            self.late_in_a_row += 1;
            if self.late_in_a_row == SHIFT {
                self.late_in_a_row = 0;
                self.offsets.drain(..self.offsets.len() - SHIFT);
                self.until_choice = 1;
            }
        } else if self.waiting.len() < MOST_WAITING {
            self.late_in_a_row = 0;
            self.waiting.entry(place).or_insert(frame);
        }
    }

    fn sorted(&self) -> Vec<i64> {
        let mut sorted: Vec<i64> = self.offsets.iter().copied().collect();
        sorted.sort_unstable();
        sorted
    }

    /// The time at which place 0 came, or would have come, on the fastest way.
    fn base(&self) -> Option<i64> {
        self.offsets.iter().copied().min()
    }

    /// What is to be heard from `now` on, for one frame. It is called once in each 20 ms.
    pub(crate) fn turn(&mut self, now: Time) -> Turn {
        let Some(base) = self.base() else { return Turn::Quiet };
        let now = now.as_nanos() as i64;
        let mut anchor = self.anchor.unwrap_or(base + FIRST);
        self.until_choice -= 1;
        if self.until_choice == 0 {
            self.until_choice = CHOICE;
            anchor = self.choose(now, anchor);
        }
        self.anchor = Some(anchor);
        let due = (now + SLACK - anchor).div_euclid(FRAME_NANOS);
        let first = self.waiting.first_key_value().map(|(place, _)| *place);
        let next = match (self.next, first) {
            (Some(next), _) => next,
            (None, Some(first)) if due >= first => first,
            (None, _) => return Turn::Quiet,
        };
        self.steady += 1;
        // The buffer is longer than it was: this place waits for another turn.
        if due < next && self.steady > 5 {
            self.steady = 0;
            self.stats.concealed += 1;
            return Turn::Conceal(None);
        }
        // It is shorter: a frame is left out. One that is missing anyway goes first; after a long
        // time without turns all that is too old goes.
        let behind = due - next;
        let is_empty = !self.waiting.contains_key(&next);
        let skipped = if behind > 10 {
            behind
        } else {
            i64::from(behind >= 1 && (is_empty || self.steady > 10))
        };
        if skipped > 0 {
            self.steady = 0;
        }
        let place = next + skipped;
        self.next = Some(place + 1);
        let later = self.waiting.split_off(&place);
        for (_, gone) in std::mem::replace(&mut self.waiting, later) {
            self.pass(gone.seq, false);
        }
        match self.waiting.remove(&place) {
            Some(frame) => {
                self.pass(frame.seq, true);
                self.stats.delays += now - base - place * FRAME_NANOS;
                Turn::Play(place, frame)
            }
            None => {
                self.stats.concealed += 1;
                let following = self.waiting.get(&(place + 1));
                Turn::Conceal(following.map(|frame| frame.voice.clone()))
            }
        }
    }

    /// Notes that a frame was heard or left out. Numbers between it and the last one were missed;
    /// pauses have none.
    fn pass(&mut self, seq: u32, is_heard: bool) {
        let before = match self.last {
            Some(last) => seq.saturating_sub(last).saturating_sub(1),
            None => seq,
        };
        let later = self.others.split_off(&seq);
        let others = std::mem::replace(&mut self.others, later).len() as u32;
        let before = before.saturating_sub(others);
        self.last = Some(self.last.map_or(seq, |last| last.max(seq)));
        self.stats.missed += u64::from(before) + u64::from(!is_heard);
        self.stats.played += u64::from(is_heard);
        (0..before.min(MOST_NOTED)).for_each(|_| self.pattern.note(true));
        self.pattern.note(!is_heard);
    }

    /// Chooses when place 0 is due: by the delay that is rated best for the frames of the last
    /// seconds. Turns come once in 20 ms, so that only delays a number of frames apart differ.
    fn choose(&self, now: i64, anchor: i64) -> i64 {
        let sorted = self.sorted();
        if sorted.len() < FEW {
            return anchor;
        }
        let (count, first) = (sorted.len(), sorted[0]);
        let total = self.stats.missed.saturating_sub(self.stats.late) as f64;
        let lost = total / (total + (self.stats.played + self.stats.late) as f64).max(1.0);
        let rate = |delay: i64| {
            let in_time = sorted.partition_point(|offset| offset - first + MARGIN <= delay);
            let late = (count - in_time) as f64 / count as f64;
            let waits = self.rebuilds && delay >= FRAME_NANOS + MARGIN;
            let lost = if waits { lost * lost } else { lost };
            let loss = 1.0 - (1.0 - lost) * (1.0 - late);
            let ear = self.way + (delay + FRAME_NANOS) as f64 / 1e6;
            r_factor(ear, loss, self.impairment)
        };
        let phase = (now - first).rem_euclid(FRAME_NANOS);
        let delays = (phase..LONGEST).step_by(FRAME_NANOS as usize);
        // The delay of this anchor, as turns have it.
        let present =
            -(first + phase + SLACK - anchor).div_euclid(FRAME_NANOS) * FRAME_NANOS + phase;
        let best = delays.map(|delay| (rate(delay), delay)).max_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((rating, delay)) if rating > rate(present) + GAIN => first + delay,
            _ => first + present,
        }
    }
}

#[cfg(test)]
mod tests {
    use fontis_base::Duration;

    use super::*;

    const G711: Impairment = Impairment { equipment: 0.0, robustness: 25.1 };

    /// Runs `frames` frames that take `delay` milliseconds each, or none, and returns the buffer.
    fn run(frames: i64, way: f64, delay: impl Fn(i64) -> Option<u64>) -> Playout {
        let mut playout = Playout::new(G711);
        playout.set_way(way);
        let mut arrivals: Vec<(u64, i64)> = (0..frames)
            .filter_map(|place| Some((place as u64 * 20 + delay(place)?, place)))
            .collect();
        arrivals.sort_unstable();
        let mut arrivals = arrivals.into_iter().peekable();
        for at in 0..frames as u64 + 100 {
            let now = Time::ZERO + Duration::from_millis(at * 20 + 7);
            while let Some((time, place)) = arrivals.next_if(|(time, _)| *time <= at * 20 + 7) {
                let voice = Bytes::copy_from_slice(&place.to_be_bytes());
                let time = Time::ZERO + Duration::from_millis(time);
                let frame = Waiting { seq: place as u32, marker: false, is_noise: false, voice };
                playout.insert(time, place, frame);
            }
            playout.turn(now);
        }
        playout
    }

    #[test]
    fn a_steady_path_gets_a_short_buffer() {
        let playout = run(1000, 50.0, |_| Some(50));
        // The buffer gets shorter by two frames, which nobody hears.
        assert!(playout.stats().missed <= 3);
        assert!(playout.delay() < 30.0, "{}", playout.delay());
        assert!(playout.stats().played > 990);
    }

    #[test]
    fn losses_are_counted() {
        let playout = run(1000, 50.0, |place| (place % 20 != 3).then_some(50));
        let stats = playout.stats();
        // 50 were lost, and the buffer gets shorter by two frames.
        assert!((50..=53).contains(&stats.missed), "{stats:?}");
        assert_eq!(stats.played + stats.missed, 1000);
    }

    #[test]
    fn pauses_are_no_losses() {
        let mut playout = Playout::new(G711);
        let mut seq = 0;
        for place in 0..1000_i64 {
            let now = Time::ZERO + Duration::from_millis(place as u64 * 20);
            // A second of voice, a second without packets.
            if place % 100 < 50 {
                let voice = Bytes::from_static(b"v");
                playout.insert(now, place, Waiting { seq, marker: false, is_noise: false, voice });
                seq += 1;
            }
            playout.turn(now + Duration::from_millis(3));
        }
        let stats = playout.stats();
        assert!(stats.missed <= 3, "{stats:?}");
        assert!(stats.played >= 490, "{stats:?}");
    }

    #[test]
    fn a_path_that_becomes_longer_is_followed_at_once() {
        let playout = run(1500, 300.0, |place| Some(if place < 700 { 300 } else { 520 }));
        let stats = playout.stats();
        // Those that came before the change was clear, and the turns until the buffer is longer.
        assert!(stats.missed < 80, "{stats:?}");
        assert_eq!(stats.played + stats.missed, 1500);
    }

    #[test]
    fn jitter_is_waited_for_where_the_path_is_short_and_less_where_it_is_long() {
        // A tenth of the frames take up to 200 ms longer.
        let jitter =
            |place: i64| Some(50 + if place % 10 == 3 { (place * 37 % 200) as u64 } else { 0 });
        let (near, far) = (run(2000, 20.0, jitter), run(2000, 400.0, jitter));
        assert!(near.delay() > 50.0, "{}", near.delay());
        let share = |playout: &Playout| {
            let stats = playout.stats();
            stats.missed as f64 / (stats.missed + stats.played) as f64
        };
        assert!(share(&near) < 0.05, "{}", share(&near));
        assert!(share(&far) < 0.12, "{}", share(&far));
    }

    #[test]
    fn the_rating_of_the_chosen_delay_is_near_the_best_for_random_paths() {
        let seed = std::env::var("FONTIS_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or_else(|| {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(1, |now| now.as_nanos() as u64)
        });
        println!("FONTIS_SEED={seed}");
        for run_number in 0..20_u64 {
            let mix = |value: u64| {
                let hash = blake3::hash(&[seed, run_number, value].map(u64::to_be_bytes).concat());
                u64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
            };
            let (way, spread) = (mix(1) % 500, 1 + mix(2) % 150);
            let loss = mix(3) % 10;
            let delay = |place: i64| {
                let random = mix(1000 + place as u64);
                (random % 100 >= loss).then_some(way + (random / 100) % spread)
            };
            // The first frames are heard before anything is known of the path.
            let (begin, end) =
                (run(250, way as f64, delay).stats(), run(1500, way as f64, delay).stats());
            let played = (end.played - begin.played) as f64;
            let missed = (end.missed - begin.missed) as f64;
            let mean = (end.delays - begin.delays) as f64 / played / 1e6;
            let heard = r_factor(way as f64 + mean + 20.0, missed / (missed + played), G711);
            let lost = (250..1500).filter(|place| delay(*place).is_none()).count() as f64 / 1250.0;
            let best = (0..40)
                .map(|step| {
                    let buffer = f64::from(step) * 5.0;
                    let late = (1.0 - buffer / spread as f64).max(0.0);
                    let share = 1.0 - (1.0 - lost) * (1.0 - late);
                    r_factor(way as f64 + buffer + 20.0, share, G711)
                })
                .fold(f64::MIN, f64::max);
            // Turns are 20 ms apart, which costs up to 2.5 where delay counts most.
            assert!(heard > best - 5.0, "run {run_number}: {heard} of {best}");
        }
    }
}
