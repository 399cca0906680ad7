//! What may happen to packets on a link beside waiting and travelling.

use core::num::NonZeroU64;

use fontis_base::{Duration, Packet, Probability, Stream, Time};

use crate::config::{LinkConfig, LossPosition};
use crate::delay::DelaySchedule;
use crate::loss::LossProcess;
use crate::outage::Outage;
use crate::policer::TokenBucket;
use crate::reorder::Reorder;
use crate::stats::{Count, DropCounts};

/// A delay of each packet's own. The links of hosts have it, thousands of them, and nothing else of
/// what may happen.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    /// What it stays below, in nanoseconds.
    bound: NonZeroU64,
    stream: Stream,
}

impl Jitter {
    pub(crate) fn new(name: &str, seed: u64, jitter: Duration) -> Option<Self> {
        let most = NonZeroU64::new(jitter.as_nanos())?;
        Some(Self {
            bound: most.saturating_add(1),
            stream: Stream::new(seed, &format!("{name}/jitter")),
        })
    }

    pub(crate) fn next(&mut self) -> Duration {
        Duration::from_nanos(self.stream.below(self.bound.get()))
    }
}

/// What happens to packets beside waiting and travelling. A link without any is smaller and faster.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    policer: Option<TokenBucket>,
    pub(crate) loss: LossProcess,
    pub(crate) loss_position: LossPosition,
    outage: Option<Outage>,
    pub(crate) duplicate: Chance,
    pub(crate) next_copy: u64,
    corrupt: Chance,
    pub(crate) reorder: Reorder,
    pub(crate) reorder_stream: Stream,
    /// The delay at first, and what becomes of it.
    delay: (Duration, DelaySchedule),
    /// What was lost, not by the queue.
    pub(crate) dropped: DropCounts,
    pub(crate) duplicated: Count,
    pub(crate) corrupted: u64,
    pub(crate) reordered: u64,
}

impl Faults {
    pub(crate) fn new(name: &str, seed: u64, config: &LinkConfig) -> Option<Box<Self>> {
        if !config.has_faults() {
            return None;
        }
        let stream = |process: &str| Stream::new(seed, &format!("{name}/{process}"));
        let chance = |process, probability| Chance { probability, stream: stream(process) };
        Some(Box::new(Self {
            policer: config.policer.map(TokenBucket::new),
            loss: LossProcess::new(config.loss, stream("loss")),
            loss_position: config.loss_position,
            outage: config.outage,
            duplicate: chance("duplicate", config.duplicate),
            next_copy: stream("copies").next_u64() | FIRST_COPY,
            corrupt: chance("corrupt", config.corrupt),
            reorder: config.reorder,
            reorder_stream: stream("reorder"),
            delay: (config.delay, config.delay_changes.clone()),
            dropped: DropCounts::default(),
            duplicated: Count::default(),
            corrupted: 0,
            reordered: 0,
        }))
    }

    /// Why a packet that enters is dropped, if it is.
    pub(crate) fn refuse(&mut self, now: Time, bytes: u64) -> Option<Reason> {
        if self.policer.as_mut().is_some_and(|bucket| !bucket.admit(now, bytes)) {
            return Some(Reason::Policer);
        }
        if self.loss_position == LossPosition::BeforeQueue && self.loss.next_is_lost() {
            return Some(Reason::Loss);
        }
        self.outage.is_some_and(|outage| outage.is_down(now)).then_some(Reason::Outage)
    }

    /// How long a packet travels that was sent at `sent`, jitter aside; a bit of it may be flipped.
    pub(crate) fn travel<P>(&mut self, sent: Time, packet: &mut Packet<P>) -> Duration {
        if self.corrupt.comes() {
            packet.corrupt = true;
            self.corrupted += 1;
        }
        self.delay.1.at(sent, self.delay.0)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Chance {
    probability: Probability,
    stream: Stream,
}

impl Chance {
    pub(crate) fn comes(&mut self) -> bool {
        self.stream.chance(self.probability)
    }
}

/// Copies have the upper half of the packet ids to themselves; each link begins at a random place
/// in it.
pub(crate) const FIRST_COPY: u64 = 1 << 63;

/// Why a packet is dropped, not by the queue.
pub(crate) enum Reason {
    Loss,
    Outage,
    Policer,
}
