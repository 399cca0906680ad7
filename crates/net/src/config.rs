use core::str::FromStr;

use fontis_base::{Duration, Probability, Rate, Time};

use crate::delay::DelaySchedule;
use crate::delivery_trace::DeliveryTrace;
use crate::error::SpecError;
use crate::loss::Loss;
use crate::outage::Outage;
use crate::policer::Policer;
use crate::queue::kind::QueueKind;
use crate::queue::limit::Limit;
use crate::queue::options::QueueOptions;
use crate::reorder::Reorder;
use crate::schedule::Schedule;

/// What a link does to its packets. The default does nothing: infinite rate, no delay, no
/// impairments.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast the line sends.
    pub rate: Rate,
    /// How its rate changes during a run.
    pub rate_changes: Schedule,
    /// When it can send at all, in place of a rate and its changes.
    pub trace: Option<DeliveryTrace>,
    /// One-way propagation delay, from the last bit sent to the packet delivered.
    pub delay: Duration,
    /// How the delay changes during a run.
    pub delay_changes: DelaySchedule,
    /// The queue discipline.
    pub queue: QueueKind,
    /// What is set of it.
    pub queue_options: QueueOptions,
    /// How much waits at most; what is on the line or in flight does not count.
    pub buffer: Limit,
    /// Random loss.
    pub loss: Loss,
    /// Where the random loss happens.
    pub loss_position: LossPosition,
    /// When all is lost.
    pub outage: Option<Outage>,
    /// How many packets come twice; a copy goes through queue and line behind its original.
    pub duplicate: Probability,
    /// How many packets have a bit flipped, shown by
    /// [`Packet::corrupt`](fontis_base::Packet::corrupt).
    pub corrupt: Probability,
    /// Extra delay, uniform in [0, jitter] but never so that packets change order.
    pub jitter: Duration,
    /// Packets held back so that later ones overtake them.
    pub reorder: Reorder,
    /// A limit on the rate that enters the link, enforced by drops.
    pub policer: Option<Policer>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: Rate::MAX,
            rate_changes: Schedule::default(),
            trace: None,
            delay: Duration::ZERO,
            delay_changes: DelaySchedule::default(),
            queue: QueueKind::Fifo,
            queue_options: QueueOptions::default(),
            buffer: Limit::UNLIMITED,
            loss: Loss::None,
            loss_position: LossPosition::BeforeQueue,
            outage: None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            jitter: Duration::ZERO,
            reorder: Reorder::default(),
            policer: None,
        }
    }
}

impl LinkConfig {
    /// The mean rate in bit/s that the line offers between two times.
    pub fn mean_rate(&self, from: Time, to: Time) -> f64 {
        match &self.trace {
            Some(trace) => trace.mean(from, to),
            None => self.rate_changes.mean(from, to, self.rate),
        }
    }

    /// The bits that the line carries between two times at most; zero if there is no limit.
    pub fn capacity(&self, from: Time, to: Time) -> f64 {
        match self.rate {
            Rate::MAX if self.trace.is_none() => 0.0,
            _ => self.mean_rate(from, to) * to.since(from).as_secs_f64(),
        }
    }

    /// Whether anything may happen to a packet beside waiting and travelling, with jitter or
    /// without.
    pub(crate) fn has_faults(&self) -> bool {
        self.loss != Loss::None
            || self.outage.is_some()
            || self.duplicate != Probability::ZERO
            || self.corrupt != Probability::ZERO
            || self.reorder.probability != Probability::ZERO
            || self.policer.is_some()
            || !self.delay_changes.is_empty()
    }

    /// Whether all packets that go on the line arrive, in their order.
    pub(crate) fn keeps_order(&self) -> bool {
        let loses = self.loss != Loss::None && self.loss_position == LossPosition::AfterLine;
        !loses && self.reorder.probability == Probability::ZERO
    }
}

/// Where on a link the random loss happens. Reads `"before"` and `"after"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPosition {
    /// Before the queue: lost packets take no buffer and no time on the line.
    #[default]
    BeforeQueue,
    /// After the line, as on a radio: lost packets have taken their share of both.
    AfterLine,
}

impl FromStr for LossPosition {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text {
            "before" => Ok(Self::BeforeQueue),
            "after" => Ok(Self::AfterLine),
            _ => Err(SpecError::UnknownName {
                text: text.to_owned(),
                kind: "place of loss",
                names: "before, after".to_owned(),
            }),
        }
    }
}
