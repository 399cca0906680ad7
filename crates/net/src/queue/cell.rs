use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fontis_base::{Duration, FlowId, Observer, Packet, Rate, Stream, Time};

use crate::queue::facts::FlowFacts;
use crate::queue::limit::Limit;
use crate::queue::options::QueueOptions;
use crate::queue::report::{ELEMENT, OVERFLOW};
use crate::queue::shares::{ONE, Shares};

/// A radio cell: time is cut into slots, and each slot is one user's, with the rate that the
/// user's radio has then. It goes to the user with the largest p·r/T^α: the weight p, the present
/// rate r, the mean rate T that the user was served with. For α = 1 that is the proportional fair
/// scheduler (Jalali, Padovani and Pankaj, 2000; Tse's form of it in Viswanath, Tse and Laroia,
/// 2002, section 2): no other schedule has a larger Σ p·log T.
///
/// T is an exponential mean over [`QueueOptions::average`]. A user is a flow, or a traffic class if
/// those take turns. A slot whose user has nothing left ends, and a packet need not end with its
/// slot: the rest of it is sent in the user's next one. The buffer is every user's own.
///
/// With fading a user's rate is its mean times an exponential variable of mean 1, the power that a
/// Rayleigh channel lets through, drawn anew after each [`QueueOptions::coherence`].
#[derive(Clone, Debug)]
pub struct RadioCell<P> {
    users: BTreeMap<FlowId, RadioUser<P>>,
    slot: Option<Slot>,
    /// When the present slot or the packet in it ends; [`Time::MAX`] without a slot.
    ready_at: Time,
    packets: usize,
    bytes: u64,
    limit: Limit,
    shares: Shares,
    facts: Arc<[FlowFacts]>,
    /// The rate of a user whose flow has none of its own.
    rate: Rate,
    alpha: f64,
    slot_length: Duration,
    average: Duration,
    fading: Option<RadioFading>,
}

/// How rates vary.
#[derive(Clone, Copy, Debug)]
struct RadioFading {
    coherence: Duration,
    seed: u64,
}

#[derive(Clone, Debug)]
struct RadioUser<P> {
    packets: VecDeque<Packet<P>>,
    bytes: u64,
    /// Bits of the first packet that were sent in earlier slots.
    sent: f64,
    /// T, in bit/s.
    mean: f64,
    channel: Option<Channel>,
}

/// What fading makes of a user's rate.
#[derive(Clone, Debug)]
struct Channel {
    stream: Stream,
    /// The number of the next draw.
    next: u64,
    gain: f64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    user: FlowId,
    began: Time,
    until: Time,
    /// Bit/s.
    rate: f64,
    /// Up to when what was sent has been counted.
    counted: Time,
    /// Bits that were sent in it.
    sent: f64,
}

/// A mean below this counts as this, so that a user who was never served goes first.
const LEAST_MEAN: f64 = 1.0;

impl<P> RadioCell<P> {
    /// An empty cell.
    pub(crate) fn new(
        limit: Limit,
        options: &QueueOptions,
        stream: impl FnOnce() -> Stream,
    ) -> Self {
        let fading = options.fading.then(|| RadioFading {
            coherence: options.coherence.max(Duration::from_nanos(1)),
            seed: stream().next_u64(),
        });
        Self {
            users: BTreeMap::new(),
            slot: None,
            ready_at: Time::MAX,
            packets: 0,
            bytes: 0,
            limit,
            shares: Shares::plain(options),
            facts: Arc::clone(&options.flows),
            rate: options.radio,
            alpha: options.alpha,
            slot_length: options.slot.max(Duration::from_micros(1)),
            average: options.average.max(Duration::from_micros(1)),
            fading,
        }
    }

    /// The rate of a user whose flow has none of its own.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// When it gives a packet or begins a slot; [`Time::MAX`] if nothing waits that it can send.
    pub fn ready_at(&self) -> Time {
        self.ready_at
    }

    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<P>,
        observer: &mut impl Observer<P>,
    ) {
        let (id, size) = (self.shares.turn(&packet), u64::from(packet.size));
        let fading = self.fading;
        let user = self.users.entry(id).or_insert_with(|| RadioUser {
            packets: VecDeque::new(),
            bytes: 0,
            sent: 0.0,
            mean: 0.0,
            channel: fading.map(|fading| Channel {
                stream: Stream::new(fading.seed, &format!("user {}", id.0)),
                next: 0,
                gain: 1.0,
            }),
        });
        if !self.limit.holds(user.packets.len() + 1, user.bytes + size) {
            return observer.dropped(now, ELEMENT, &packet, OVERFLOW);
        }
        user.bytes += size;
        user.packets.push_back(packet);
        self.bytes += size;
        self.packets += 1;
        if self.slot.is_none() {
            self.begin_slot(now);
        }
    }

    /// Goes on to `now`, which is not after [`ready_at`](Self::ready_at); the packet that was sent
    /// to its end then, if one was.
    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Packet<P>> {
        let mut slot = self.slot?;
        let user = self.users.get_mut(&slot.user)?;
        let bits = slot.rate * now.since(slot.counted).as_secs_f64();
        user.sent += bits;
        slot.sent += bits;
        slot.counted = now;
        let ends = user.packets.front().is_some_and(|head| user.sent + TINY >= bits_of(head));
        let packet = if ends { user.packets.pop_front() } else { None };
        if let Some(packet) = &packet {
            let size = u64::from(packet.size);
            user.sent = 0.0;
            user.bytes -= size;
            self.bytes -= size;
            self.packets -= 1;
        }
        if let Some(next) = user.packets.front() {
            observer.nears(next);
        }
        if user.packets.is_empty() || now >= slot.until {
            self.end_slot(now, &slot);
            self.begin_slot(now);
        } else {
            self.go_on(slot);
        }
        packet
    }

    /// Means are those at the end of a slot.
    fn end_slot(&mut self, now: Time, slot: &Slot) {
        let length = now.since(slot.began).as_secs_f64();
        if length > 0.0 {
            let keep = libm::exp(-length / self.average.as_secs_f64());
            for (id, user) in &mut self.users {
                let served = if *id == slot.user { slot.sent / length } else { 0.0 };
                user.mean = keep * user.mean + (1.0 - keep) * served;
            }
            // A user without packets whose mean has faded is as good as a new one.
            self.users.retain(|_, user| !user.packets.is_empty() || user.mean >= LEAST_MEAN);
        }
        self.slot = None;
        self.ready_at = Time::MAX;
    }

    fn begin_slot(&mut self, now: Time) {
        let mut best: Option<(f64, f64, FlowId)> = None;
        for (id, user) in &mut self.users {
            let Some(head) = user.packets.front() else { continue };
            let own = self.facts.get(head.flow.0 as usize).and_then(|facts| facts.radio);
            let mut rate = own.unwrap_or(self.rate).as_bps() as f64;
            if rate == 0.0 {
                continue;
            }
            if let (Some(channel), Some(fading)) = (&mut user.channel, &self.fading) {
                rate = (rate * channel.at(now, fading.coherence)).max(1.0);
            }
            let weight = self.shares.of(head) as f64 / ONE as f64;
            let value = weight * rate / libm::pow(user.mean.max(LEAST_MEAN), self.alpha);
            if best.is_none_or(|(most, ..)| value > most) {
                best = Some((value, rate, *id));
            }
        }
        if let Some((_, rate, user)) = best {
            let until = now + self.slot_length;
            self.go_on(Slot { user, began: now, until, rate, counted: now, sent: 0.0 });
        }
    }

    /// The slot, and when something ends in it.
    fn go_on(&mut self, slot: Slot) {
        let user = self.users.get(&slot.user);
        let left = user.and_then(|user| Some(bits_of(user.packets.front()?) - user.sent));
        let nanos = libm::ceil(left.unwrap_or(0.0).max(0.0) / slot.rate * 1e9);
        self.ready_at = slot.until.min(slot.counted + Duration::from_nanos(nanos as u64));
        self.slot = Some(slot);
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Bits that rounding may leave.
const TINY: f64 = 1e-6;

fn bits_of<P>(packet: &Packet<P>) -> f64 {
    8.0 * f64::from(packet.size)
}

impl Channel {
    /// The gain at a time; times do not go backwards.
    fn at(&mut self, now: Time, coherence: Duration) -> f64 {
        let block = now.as_nanos() / coherence.as_nanos();
        while self.next <= block {
            self.gain = -libm::log(1.0 - self.stream.unit());
            self.next += 1;
        }
        self.gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    fn cell(seed: u64, options: &QueueOptions) -> RadioCell<()> {
        RadioCell::new(Limit::UNLIMITED, options, || Stream::new(seed, "cell"))
    }

    fn with_radios(radios: &[u64]) -> QueueOptions {
        let facts = |kbps: &u64| FlowFacts {
            radio: Some(Rate::from_bps(kbps * 1000)),
            ..FlowFacts::default()
        };
        QueueOptions { flows: radios.iter().map(facts).collect(), ..QueueOptions::default() }
    }

    /// Bit/s of users that always have packets waiting, of a size that is drawn for each.
    fn saturated(cell: &mut RadioCell<()>, users: u32, seconds: u64, s: &mut Stream) -> Vec<f64> {
        let mut add = |cell: &mut RadioCell<()>, now: Time, user: u32| {
            cell.enqueue(now, packet(0, user, 40 + s.below(1461) as u32), &mut ());
        };
        (0..users).cycle().take(3 * users as usize).for_each(|user| add(cell, Time::ZERO, user));
        let mut bits = vec![0.0; users as usize];
        let end = Time::from_nanos(seconds * 1_000_000_000);
        while cell.ready_at() <= end {
            let now = cell.ready_at();
            if let Some(packet) = cell.dequeue(now, &mut ()) {
                bits[packet.flow.0 as usize] += bits_of(&packet);
                add(cell, now, packet.flow.0);
            }
        }
        bits.iter().map(|bits| bits / seconds as f64).collect()
    }

    #[test]
    fn users_whose_rates_are_steady_get_them_in_equal_parts_of_the_time_or_by_weight_and_alpha() {
        for seed in 1..=6 {
            let mut s = Stream::new(seed, "steady");
            let users = 2 + s.below(5) as u32;
            let radios: Vec<u64> = (0..users).map(|_| 500 + s.below(20_000)).collect();
            let weights: Vec<f64> = (0..users).map(|_| 1.0 + 3.0 * s.unit()).collect();
            for (alpha, weighted) in [(1.0, false), (1.0, true), (2.0, true), (0.7, false)] {
                let mut options = QueueOptions { alpha, ..with_radios(&radios) };
                let weight = |user: usize| if weighted { weights[user] } else { 1.0 };
                let flows = options.flows.iter().enumerate();
                options.flows = flows
                    .map(|(user, facts)| FlowFacts { weight: Some(weight(user)), ..*facts })
                    .collect();
                let got = saturated(&mut cell(seed, &options), users, 60, &mut s);
                // x = (p·r/μ)^(1/α), where the parts x/r of the time sum to 1.
                let level =
                    |user: usize| libm::pow(weight(user) * options.radio_of(user), 1.0 / alpha);
                let parts = (0..users as usize).map(|user| level(user) / options.radio_of(user));
                let sum: f64 = parts.sum();
                for (user, got) in got.iter().enumerate() {
                    let off = got / (level(user) / sum) - 1.0;
                    assert!(off.abs() < 0.03, "seed {seed}, α {alpha}, user {user}: {off}");
                }
            }
        }
    }

    impl QueueOptions {
        fn radio_of(&self, user: usize) -> f64 {
            self.flows[user].radio.expect("a rate").as_bps() as f64
        }
    }

    #[test]
    fn fading_users_gain_the_harmonic_number_of_their_count() {
        // The largest of n exponential variables of mean 1 has the mean 1 + 1/2 + … + 1/n, and
        // alike users have it in turn.
        for users in [1u32, 2, 4, 8] {
            let options = QueueOptions {
                radio: Rate::from_mbps(2),
                fading: true,
                average: Duration::from_secs(10),
                ..QueueOptions::default()
            };
            let mut s = Stream::new(u64::from(users), "fading");
            let got = saturated(&mut cell(3, &options), users, 400, &mut s);
            let harmonic: f64 = (1..=users).map(|n| f64::from(n).recip()).sum();
            let off = got.iter().sum::<f64>() / (2e6 * harmonic) - 1.0;
            assert!(off.abs() < 0.05, "{users} users: {off}");
            let mean = got.iter().sum::<f64>() / f64::from(users);
            for of in got {
                assert!((of / mean - 1.0).abs() < 0.05, "{users} users: {of} of {mean}");
            }
        }
    }

    #[test]
    fn a_user_who_needs_little_gets_it_and_the_others_share_the_rest_of_the_time() {
        let mut cell = cell(1, &with_radios(&[4000, 4000, 1000]));
        let (mut bits, mut next) = ([0.0; 3], Time::ZERO);
        for user in [1, 1, 2, 2] {
            cell.enqueue(Time::ZERO, packet(0, user, 1000), &mut ());
        }
        // The first user is offered 400 kbit/s, a tenth of the time.
        while next < Time::from_nanos(30_000_000_000) {
            while cell.ready_at() <= next {
                let now = cell.ready_at();
                if let Some(packet) = cell.dequeue(now, &mut ()) {
                    bits[packet.flow.0 as usize] += bits_of(&packet) / 30.0;
                    if packet.flow.0 > 0 {
                        cell.enqueue(now, packet, &mut ());
                    }
                }
            }
            cell.enqueue(next, packet(0, 0, 1000), &mut ());
            next += Duration::from_millis(20);
        }
        for (got, want) in bits.iter().zip([400e3, 0.45 * 4e6, 0.45 * 1e6]) {
            assert!((got / want - 1.0).abs() < 0.02, "{got} for {want}");
        }
    }
}
