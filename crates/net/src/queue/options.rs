use std::sync::Arc;

use fontis_base::{Duration, Probability, Rate, Size};

use crate::queue::facts::FlowFacts;
use crate::queue::limit::Limit;
use crate::queue::quanta::Quanta;
use crate::queue::weights::ClassWeights;

/// What can be set of queue disciplines; each looks at what concerns it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOptions {
    /// `drr`, `drr-literal`, `sfq`, `fq-codel`: bytes that a flow may send in a turn.
    pub quantum: u32,
    /// `drr`: the same by traffic class, in place of `quantum`: weighted deficit round robin.
    pub quanta: Option<Quanta>,
    /// `drr`, `wfq`: weights p by traffic class; 1 for all if not set.
    pub class_weights: Option<ClassWeights>,
    /// `drr`, `wfq`: a weight p has p^(1/α) of the line beside one of weight 1.
    pub alpha: f64,
    /// `drr`, `wfq`: traffic classes take turns in place of flows.
    pub by_class: bool,
    /// `short-first`: flows that have had fewer bytes go first.
    pub short: Size,
    /// `cell`: the rate of a user whose flow has none of its own; a link sets its own rate.
    pub radio: Rate,
    /// `cell`: the length of a slot, a microsecond at least.
    pub slot: Duration,
    /// `cell`: the time over which the mean served rate is taken.
    pub average: Duration,
    /// `cell`: rates vary as a Rayleigh channel lets power through.
    pub fading: bool,
    /// `cell`: how long a rate stays when it varies.
    pub coherence: Duration,
    /// What the queue is told of flows, by their numbers; of those behind the last, nothing.
    pub flows: Arc<[FlowFacts]>,
    /// `drr`, `sfq`, `wfq`: the buffer is every flow's own instead of shared.
    pub per_flow: bool,
    /// `sfq`, `fq-codel`: how many queues flows are spread over.
    pub buckets: u32,
    /// `fifo-ecn`: packets are marked when this much waits.
    pub mark_above: Limit,
    /// `red`: the mean queue at which drops begin; a sixth of the buffer if not set.
    pub min_threshold: Option<Limit>,
    /// `red`: the mean queue at which the probability of a drop reaches its maximum; half the
    /// buffer if not set.
    pub max_threshold: Option<Limit>,
    /// `red`: the probability of a drop at the upper threshold.
    pub max_probability: Probability,
    /// `red`: the weight of a packet in the mean queue.
    pub weight: f64,
    /// `codel`, `fq-codel`: the standing delay that is accepted.
    pub target: Duration,
    /// `codel`, `fq-codel`: the order of a worst-case round-trip time.
    pub interval: Duration,
    /// `two-class`: the share of the line and of the buffer that traffic class 0 has.
    pub share: Probability,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            quantum: 1500,
            quanta: None,
            class_weights: None,
            alpha: 1.0,
            by_class: false,
            // The threshold of FLD_TCP (section 3.1 of the thesis).
            short: Size::from_bytes(2 << 20),
            radio: Rate::MAX,
            // A transmission time interval of HSDPA (3GPP TS 25.308), and the thousand slots of
            // 1.67 ms that 1xEV-DO takes means over (Jalali and others, 2000), about.
            slot: Duration::from_millis(2),
            average: Duration::from_secs(2),
            fading: false,
            coherence: Duration::from_millis(20),
            flows: Arc::default(),
            per_flow: false,
            buckets: 1024,
            // What the DCTCP paper (Alizadeh and others, 2010, section 4) uses at 10 Gbit/s.
            mark_above: Limit::Packets(65),
            min_threshold: None,
            max_threshold: None,
            max_probability: Probability::new(0.1),
            weight: 0.002,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            share: Probability::new(0.5),
        }
    }
}
