//! The flags of commands that make a bad path.

use fontis_base::{Duration, Probability, Rate};
use fontis_lab::Lateness;
use fontis_net::{
    Count, DelayChange, DelaySchedule, DeliveryTrace, Limit, LinkConfig, LinkStats, Loss,
    LossPosition, Outage, Policer, QueueKind, QueueOptions, RateChange, Reorder, Schedule,
    SpecError,
};
use serde_json::{Value, json};

/// The properties of a path.
#[derive(Debug, clap::Args)]
pub(crate) struct LinkArgs {
    /// Rate in each direction, as in 100mbit [default: no limit]
    #[arg(long, help_heading = LINE)]
    pub(crate) rate: Option<Rate>,
    /// Change the rate in both directions at a time after the start, as in 10s:10mbit; may be given
    /// again
    #[arg(long, value_name = "TIME:RATE", help_heading = LINE)]
    rate_at: Vec<RateChange>,
    /// One-way delay, in each direction, as in 50ms; a round trip takes twice that
    #[arg(long, value_name = "TIME", default_value = "0", help_heading = LINE)]
    delay: Duration,
    /// Send towards the client or shell by a trace in place of a rate: a file in mahimahi's format,
    /// a line with the millisecond of each 1500 bytes
    #[arg(long, value_name = "FILE", value_parser = trace, conflicts_with_all = ["rate", "rate_at"], help_heading = LINE)]
    trace: Option<DeliveryTrace>,
    /// The same in the other direction
    #[arg(long, value_name = "FILE", value_parser = trace, conflicts_with_all = ["rate", "rate_at"], help_heading = LINE)]
    trace_up: Option<DeliveryTrace>,
    /// Change the one-way delay in both directions at a time after the start, as in 10s:50ms; may
    /// be given again
    #[arg(long, value_name = "TIME:DELAY", help_heading = LINE)]
    delay_at: Vec<DelayChange>,
    /// Additional random delay in each direction, from zero to this; keeps the order of packets
    #[arg(long, value_name = "TIME", default_value = "0", help_heading = LINE)]
    jitter: Duration,
    /// The largest packet in bytes, headers included; larger ones are dropped
    #[arg(long, value_name = "BYTES", default_value_t = 1500, help_heading = LINE,
          value_parser = clap::value_parser!(u32).range(29..=65_535))]
    pub(crate) mtu: u32,
    /// The buffer in each direction, as in 1.25MB or "100 packets" [default: one bandwidth-delay
    /// product, at least 20 packets]
    #[arg(long, value_name = "SIZE", help_heading = QUEUE)]
    buffer: Option<Limit>,
    /// The queue: fifo, fifo-ecn, drr, drr-literal, sfq and wfq (fair between flows; a relay's
    /// client is one), red, red-ecn, codel, codel-ecn, fq-codel, fq-codel-ecn, priority, two-class,
    /// las (who had least goes first), srpt (lengths are not known here), short-first, cell
    #[arg(long, value_name = "NAME", default_value_t, help_heading = QUEUE)]
    queue: QueueKind,
    /// Drop packets above a rate in each direction, before all else [default BURST: 10 ms at the
    /// rate]
    #[arg(long, value_name = "RATE[:BURST]", help_heading = QUEUE)]
    policer: Option<Policer>,
    /// Random loss towards the client or shell, as in 1%
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    loss: Probability,
    /// Random loss in the other direction
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    loss_up: Probability,
    /// Loss in bursts towards the client or shell, instead of --loss: gilbert:P,Q (P good to bad, Q
    /// bad to good, per packet; every packet is lost in bad) or ge:P,Q,G,B (with the loss in good
    /// and in bad)
    #[arg(long, value_name = "MODEL", conflicts_with = "loss", help_heading = FAULTS)]
    loss_model: Option<Loss>,
    /// The place of loss: before the queue, or after the line, as on a radio
    #[arg(long, value_name = "before|after", default_value = "before", help_heading = FAULTS)]
    loss_at: LossPosition,
    /// Delay some packets in each direction so that later ones overtake them [default BY: 10 ms]
    #[arg(long, value_name = "P[:BY]", help_heading = FAULTS)]
    reorder: Option<Reorder>,
    /// Deliver some packets twice, in each direction
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    duplicate: Probability,
    /// Flip a bit in some packets, in each direction
    #[arg(long, value_name = "P", default_value = "0", help_heading = FAULTS)]
    corrupt: Probability,
    /// Drop all packets for a time, AT after the start, and again every EVERY if given
    #[arg(long, value_name = "AT:FOR[:EVERY]", help_heading = FAULTS)]
    outage: Option<Outage>,
    /// The seed of all randomness, to repeat the same losses [default: a random one, printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Reads a trace.
fn trace(path: &str) -> Result<DeliveryTrace, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.parse().map_err(|error: SpecError| error.to_string())
}

const LINE: &str = "Line";
const QUEUE: &str = "Queue";
const FAULTS: &str = "Faults";

impl LinkArgs {
    /// The path from the client or shell, and the path to it.
    pub(crate) fn both_ways(&self) -> (LinkConfig, LinkConfig) {
        let rate = self.rate.unwrap_or(Rate::MAX);
        let link = LinkConfig {
            rate,
            rate_changes: Schedule::new(self.rate_at.iter().copied()),
            trace: None,
            delay: self.delay,
            delay_changes: DelaySchedule::new(self.delay_at.iter().copied()),
            queue: self.queue,
            queue_options: QueueOptions::default(),
            buffer: Limit::UNLIMITED,
            loss: Loss::None,
            loss_position: self.loss_at,
            outage: self.outage,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            jitter: self.jitter,
            reorder: self.reorder.unwrap_or_default(),
            policer: self.policer,
        };
        let loss = |probability| match probability {
            Probability::ZERO => Loss::None,
            probability => Loss::Bernoulli(probability),
        };
        let way = |loss: Loss, trace: &Option<DeliveryTrace>| {
            let rate = trace.as_ref().map_or(rate, DeliveryTrace::mean_rate);
            let buffer = self.buffer.unwrap_or_else(|| Limit::one_bdp(rate, self.delay * 2));
            LinkConfig { rate, trace: trace.clone(), loss, buffer, ..link.clone() }
        };
        let down = self.loss_model.unwrap_or(loss(self.loss));
        (way(loss(self.loss_up), &self.trace_up), way(down, &self.trace))
    }

    /// The requested seed, or a random one.
    pub(crate) fn seed(&self) -> Result<u64, getrandom::Error> {
        self.seed.map_or_else(getrandom::u64, Ok)
    }
}

/// The counters of a link, in a line.
pub(crate) fn as_text(name: &str, stats: &LinkStats) -> String {
    let dropped = &stats.dropped;
    let mut text = format!(
        "{name}  in {} packets ({}), out {} ({})",
        stats.entered.packets,
        fontis_base::Size::from_bytes(stats.entered.bytes),
        stats.delivered.packets,
        fontis_base::Size::from_bytes(stats.delivered.bytes),
    );
    let details = [
        (dropped.queue.packets, "dropped by the queue"),
        (dropped.loss.packets, "lost"),
        (dropped.outage.packets, "lost in outages"),
        (dropped.policer.packets, "policed"),
        (stats.duplicated.packets, "duplicated"),
        (stats.corrupted, "corrupted"),
        (stats.reordered, "reordered"),
        (stats.marked, "marked"),
        (stats.held.packets, "still on the way"),
    ];
    for (count, what) in details.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {what} {count}");
    }
    text + &format!("; queue at most {}", fontis_base::Size::from_bytes(stats.max_queue_bytes))
}

/// The counters of a link, for programs.
pub(crate) fn as_json(stats: &LinkStats) -> Value {
    let count = |count: Count| json!({ "packets": count.packets, "bytes": count.bytes });
    json!({
        "entered": count(stats.entered),
        "duplicated": count(stats.duplicated),
        "delivered": count(stats.delivered),
        "dropped": {
            "queue": count(stats.dropped.queue),
            "loss": count(stats.dropped.loss),
            "outage": count(stats.dropped.outage),
            "policer": count(stats.dropped.policer),
        },
        "held": count(stats.held),
        "marked": stats.marked,
        "corrupted": stats.corrupted,
        "reordered": stats.reordered,
        "queue_bytes": stats.queue_bytes,
        "max_queue_bytes": stats.max_queue_bytes,
    })
}

/// The lateness of packets, in a line.
pub(crate) fn lateness(late: &Lateness) -> String {
    format!(
        "mean {} us, median {} us, p99 {} us, max {} us",
        late.mean.as_micros(),
        late.median.as_micros(),
        late.p99.as_micros(),
        late.max.as_micros()
    )
}

/// The lateness of packets, for programs.
pub(crate) fn lateness_json(late: &Lateness) -> Value {
    json!({
        "mean": late.mean.as_micros(),
        "median": late.median.as_micros(),
        "p99": late.p99.as_micros(),
        "max": late.max.as_micros(),
    })
}
