//! Tables of a run, and the metrics that sum them up.

pub mod metrics;
pub mod table;

use crate::recording::table::{ColumnKind, ColumnSchema, Table};

/// What was recorded of a run: tidy tables, and how the run was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Counters of each flow at fixed intervals.
    pub flow: Table,
    /// Counters of each bottleneck at fixed intervals.
    pub queue: Table,
    /// What happened when: flows begin and end, the first drop of each bottleneck.
    pub event: Table,
    /// The messages of flows that send messages.
    pub message: Table,
    /// The blocks of a swarm, each on its way from one node to another.
    pub transfer: Table,
    /// One number for each metric and subject, over the measurement window.
    pub summary: Table,
    /// Events that the world processed.
    pub events: u64,
    /// Packets that left the bottlenecks.
    pub packets: u64,
}

impl Recording {
    /// A recording of nothing.
    pub fn new() -> Self {
        Self {
            flow: Table::new(FLOW),
            queue: Table::new(QUEUE),
            event: Table::new(EVENT),
            message: Table::new(MESSAGE),
            transfer: Table::new(TRANSFER),
            summary: Table::new(SUMMARY),
            events: 0,
            packets: 0,
        }
    }

    /// The tables and their names.
    pub const fn tables(&self) -> [(&'static str, &Table); 6] {
        [
            ("flow", &self.flow),
            ("queue", &self.queue),
            ("event", &self.event),
            ("message", &self.message),
            ("transfer", &self.transfer),
            ("summary", &self.summary),
        ]
    }

    /// Adds a metric of a subject.
    pub(crate) fn put(&mut self, metric: &str, subject: &str, value: f64) {
        let row = METRICS.iter().find(|(name, ..)| is_named(name, metric));
        let unit = row.map_or("", |(_, unit, ..)| unit);
        self.summary.push([metric.into(), subject.into(), value.into(), unit.into()]);
    }

    /// The value of a metric for a subject, if there is one.
    pub fn metric(&self, metric: &str, subject: &str) -> Option<f64> {
        let (metrics, subjects) = (self.summary.texts("metric")?, self.summary.texts("subject")?);
        let row = metrics.iter().zip(subjects.iter()).position(|row| row == (metric, subject))?;
        self.summary.numbers("value").get(row).copied()
    }

    /// All metrics, by name and subject.
    pub fn metrics(&self) -> std::collections::BTreeMap<(String, String), f64> {
        let texts = |name| self.summary.texts(name).into_iter().flat_map(|texts| texts.iter());
        let names = texts("metric").map(str::to_owned).zip(texts("subject").map(str::to_owned));
        names.zip(self.summary.numbers("value")).collect()
    }

    /// What there is to know of the tables, for people: Markdown.
    pub fn describe() -> String {
        let mut text = String::from(INTRODUCTION);
        for (name, table) in Self::new().tables() {
            text.push_str(&format!(
                "\n## {name}\n\n| column | unit | type | meaning |\n|---|---|---|---|\n"
            ));
            for column in table.schema() {
                let kind = match column.kind {
                    ColumnKind::Integer => "integer",
                    ColumnKind::Real => "real",
                    ColumnKind::Text => "text",
                };
                text.push_str(&format!(
                    "| `{}` | {} | {kind} | {} |\n",
                    column.name, column.unit, column.meaning
                ));
            }
        }
        text.push_str("\n## Metrics in `summary`\n\n| metric | unit | subject | meaning |\n|---|---|---|---|\n");
        for (name, unit, subject, meaning) in METRICS {
            text.push_str(&format!("| `{name}` | {unit} | {subject} | {meaning} |\n"));
        }
        text
    }
}

/// The beginning of the page on recordings.
const INTRODUCTION: &str = "# Recordings

Each run leaves six tables, as Parquet files in a folder of its own, beside `run.json`, which says
how the run was made: every setting, the seed, the version. The summaries of all runs of a scenario
are in `summary.parquet` above them, with the run's number, variant and sweep in front. Times are
seconds since the run began, of virtual time in the simulator and of real time on the testbed, where
`run.json` also says on which machine. This page is made from the code
(`crates/sim/src/recording/mod.rs`).
";

/// Whether a metric is the one of this name, where capital letters at the end stand for digits.
fn is_named(name: &str, metric: &str) -> bool {
    match name.strip_suffix("_NN").or(name.strip_suffix("_DD")) {
        Some(stem) => metric.starts_with(stem),
        None => name == metric,
    }
}

impl Default for Recording {
    fn default() -> Self {
        Self::new()
    }
}

const fn column(
    name: &'static str,
    unit: &'static str,
    kind: ColumnKind,
    meaning: &'static str,
) -> ColumnSchema {
    ColumnSchema { name, unit, meaning, kind }
}

use ColumnKind::{Integer, Real, Text};

const FLOW: &[ColumnSchema] = &[
    column("time", "s", Real, "when it was read"),
    column("flow", "", Integer, "the flow's number, from 0 in the order of the scenario"),
    column("name", "", Text, "the flow's name"),
    column("received", "B", Integer, "useful bytes that had reached the application"),
    column("sent", "packets", Integer, "packets that its sender had sent"),
    column("retransmitted", "packets", Integer, "TCP: copies; DFCP: repair symbols"),
    column(
        "lost",
        "packets",
        Integer,
        "DFCP: packets reported lost; TCP: segments believed lost, copies included",
    ),
    column("window", "B", Integer, "TCP: congestion window; 0 for others"),
    column("in_flight", "B", Integer, "bytes that the sender believed in the network"),
    column("srtt", "s", Real, "smoothed round-trip time; NaN before the first sample"),
];

const QUEUE: &[ColumnSchema] = &[
    column("time", "s", Real, "when it was read"),
    column("queue", "", Text, "the bottleneck"),
    column("bytes", "B", Integer, "bytes that waited"),
    column("packets", "packets", Integer, "packets that waited"),
    column("mean_bytes", "B", Real, "time average of the bytes that waited since the last row"),
    column(
        "mean_packets",
        "packets",
        Real,
        "time average of the packets that waited since the last row",
    ),
    column("arrived", "packets", Integer, "packets that had arrived"),
    column("delivered", "packets", Integer, "packets that had crossed the link"),
    column("delivered_bytes", "B", Integer, "bytes at the IP layer that had crossed the link"),
    column("dropped", "packets", Integer, "packets that the queue had dropped"),
    column("lost", "packets", Integer, "packets lost to random loss, outages and policers"),
    column("marked", "packets", Integer, "packets marked with congestion experienced"),
];

const EVENT: &[ColumnSchema] = &[
    column("time", "s", Real, "when it happened"),
    column("subject", "", Text, "the flow, bottleneck or node"),
    column(
        "event",
        "",
        Text,
        "`start`, `connected`, `first data`, `completed`, `aborted`, `first drop`; of a swarm's node also `left`, and `named` when it was found to send what is wrong",
    ),
];

const MESSAGE: &[ColumnSchema] = &[
    column("time", "s", Real, "when the message was made"),
    column("flow", "", Integer, "the flow's number, from 0 in the order of the scenario"),
    column("name", "", Text, "the flow's name; of a group's members `flow@host`"),
    column("number", "", Integer, "the message's number in its flow, from 0"),
    column("kind", "", Text, "of a video the kind of frame: `I`, `P` or `B`"),
    column("bytes", "B", Integer, "its length"),
    column("delay", "s", Real, "until it had arrived whole; NaN if it never did"),
];

const TRANSFER: &[ColumnSchema] = &[
    column("begun", "s", Real, "when the block began to leave"),
    column("ended", "s", Real, "when it was there whole, or came no more"),
    column("from", "", Integer, "the node that sent it: 0 is the origin, N is peer N"),
    column("to", "", Integer, "the node to which it was sent"),
    column("block", "", Integer, "the block, from 0"),
    column(
        "fate",
        "",
        Text,
        "`came`; `wrong`: it was not what its hash says; `cut`: one of the two left, or did not reach the other",
    ),
];

const SUMMARY: &[ColumnSchema] = &[
    column("metric", "", Text, "the metric, as listed below"),
    column("subject", "", Text, "the flow, the bottleneck, or `all`"),
    column("value", "", Real, "its value, in the metric's unit"),
    column("unit", "", Text, "the unit"),
];

/// Name, unit, subject and meaning of every metric in the summary.
const METRICS: &[(&str, &str, &str, &str)] = &[
    ("goodput", "Mbit/s", "flow, all", "useful bytes per time in the measurement window"),
    ("connected", "", "all", "share of the flows whose connection came about"),
    ("jain", "", "all", "Jain's index of the flows' goodputs"),
    (
        "fct",
        "s",
        "flow",
        "from the first packet sent to the last data received, if the flow completed",
    ),
    (
        "fct_received",
        "s",
        "flow",
        "from the first data received to the last, if the flow completed",
    ),
    ("completed", "", "all", "share of the flows with an end that completed"),
    ("messages", "", "flow", "messages made in the measurement window"),
    ("messages_in_time", "", "flow", "share of them that arrived before their deadline"),
    ("messages_lost", "", "flow", "share of them that never arrived"),
    ("message_delay", "ms", "flow", "median delay of the messages that arrived"),
    ("message_delay_p95", "ms", "flow", "95th percentile of the same"),
    ("message_delay_p99", "ms", "flow", "99th percentile of the same"),
    (
        "message_jitter",
        "ms",
        "flow",
        "mean difference of the gaps before two successive messages, as they arrive",
    ),
    ("message_jitter_max", "ms", "flow", "the greatest such difference"),
    ("utilisation", "", "bottleneck", "bits that crossed the link relative to what it could carry"),
    ("occupancy", "", "bottleneck", "time average of the queue relative to the buffer"),
    ("mean_queue", "packets", "bottleneck", "time average of the queue"),
    ("drop_rate", "", "bottleneck", "packets dropped by the queue relative to those that arrived"),
    ("loss_rate", "", "bottleneck", "packets lost at random relative to those that arrived"),
    ("drop_peak", "", "bottleneck", "the highest drop rate between two of the window's samples"),
    ("drop_peak_time", "s", "bottleneck", "when that was: the time of the second"),
    ("saturation", "s", "bottleneck", "from the first flow's start to the first drop"),
    ("normalised_goodput", "", "all", "sum of goodputs relative to the bottleneck's rate"),
    ("network_utilisation", "", "all", "mean of all bottlenecks' utilisations and occupancies"),
    (
        "wasted_symbols",
        "",
        "flow",
        "symbols of DFCP and of casts and SCTP's chunks received in vain, relative to all received",
    ),
    (
        "object_rate",
        "Mbit/s",
        "flow",
        "cast: bytes of the object relative to the time from asking for it to having it",
    ),
    ("group_loss", "", "flow", "cast: share of the group's packets that did not come"),
    (
        "limiting_share",
        "",
        "flow",
        "cast: share of the time that the sender's states name this receiver as the one that \
         bounds the rate",
    ),
    (
        "symbols_sent",
        "",
        "flow",
        "cast: symbols that the sender sent, relative to source symbols of head and body, if it \
         sent as many",
    ),
    (
        "report_share",
        "",
        "flow",
        "cast: bytes of reports that the sender got, relative to bytes that it sent to the group",
    ),
    (
        "window_blocked",
        "",
        "flow",
        "SCTP: share of the time that the peer's window alone stops data",
    ),
    ("retransmissions", "", "flow", "TCP: segments that left again; SCTP: chunks"),
    ("fast_retransmissions", "", "flow", "SCTP: chunks that reports counted as lost"),
    ("timeouts", "", "flow", "expiries of the timer, TCP's or of SCTP's paths; not on the testbed"),
    (
        "loss_event_rate",
        "",
        "flow",
        "DCCP: time average of the loss event rate from the first report on; not on the testbed",
    ),
    ("out_of_order", "", "flow", "SCTP: share of the chunks that came before lower ones"),
    ("reorder_wait", "ms", "flow", "SCTP: mean wait of those for the lower ones"),
    ("reorder_wait_max", "ms", "flow", "SCTP: the longest such wait"),
    ("held", "kB", "flow", "SCTP: time average of what waits at the receiver"),
    ("held_max", "kB", "flow", "SCTP: the most that waited"),
    ("repairs", "packets", "flow", "SCTP with a code: repairs sent"),
    ("restored", "chunks", "flow", "SCTP with a code: lost chunks that the receiver restored"),
    (
        "flight",
        "kB",
        "flow",
        "SCTP: time average of the bytes that the sender believes on their way",
    ),
    (
        "srtt_path_NN",
        "ms",
        "flow",
        "SCTP: time average of path NN's smoothed round-trip time from the first sample on; four paths",
    ),
    ("duplicates", "", "flow", "SCTP: chunks that the receiver had already"),
    (
        "return_share",
        "",
        "flow",
        "SCTP: bytes that the receiver sends at the IP layer, relative to useful ones that it gets",
    ),
    (
        "release_jitter",
        "ms",
        "flow",
        "SCTP: mean difference of the gaps before two successive messages, as the application gets them",
    ),
    (
        "underloaded",
        "",
        "all",
        "share of the window's samples with a network utilisation below 0.2",
    ),
    ("normal", "", "all", "the same from 0.2 to 0.8"),
    ("overloaded", "", "all", "the same from 0.8 on"),
    ("median_utilisation", "", "all", "median of the samples' network utilisation"),
    (
        "median_link_utilisation",
        "",
        "all",
        "median of the mean of the bottlenecks' utilisations alone",
    ),
    (
        "queue_variation",
        "",
        "bottleneck",
        "standard deviation of the samples' mean queue, relative to its mean",
    ),
    ("jain_mean", "", "all", "mean of Jain's index over the window's samples"),
    ("jain_deviation", "", "all", "its standard deviation"),
    (
        "goodput_variation",
        "",
        "flow, all",
        "standard deviation of the samples' goodput, relative to its mean",
    ),
    ("goodput_variation_long", "", "flow, all", "the same for means of 60 samples"),
    (
        "goodput_bin_NN",
        "Mbit/s",
        "flow",
        "goodput in the NNth of 30 equal parts of the run; up to ten flows",
    ),
    ("window_max", "kB", "flow", "TCP: the largest congestion window of the run's samples"),
    (
        "window_bin_NN",
        "kB",
        "flow",
        "TCP: mean congestion window in the NNth of 30 equal parts of the run; up to ten flows",
    ),
    ("spread", "Mbit/s", "all", "largest difference between two flows' goodputs over ten samples"),
    (
        "delivery_time",
        "s",
        "flow, all",
        "time from the window's beginning in which scenario.measure was delivered; of all, the longest",
    ),
    (
        "equivalent_redundancy",
        "",
        "all",
        "the redundancy at which an ideal fountain would take as long for scenario.measure, headers left out",
    ),
    (
        "settling",
        "s",
        "all",
        "from the last flow's start until all flows' goodputs over ten samples are within a tenth of their mean",
    ),
    (
        "convergence_DD",
        "s",
        "all",
        "from the second flow's start until the two first have (1−δ)/2 of the bottleneck each; δ is 0.DD",
    ),
    (
        "error",
        "",
        "all",
        "adaptation error per flow, mean over samples: |goodput − fair share| ÷ fair share",
    ),
    ("error_deviation", "", "all", "its standard deviation over samples"),
    ("error_p5", "", "all", "its 5th percentile"),
    ("error_p95", "", "all", "its 95th percentile"),
    ("aggregate_error", "", "all", "adaptation error of the sum of flows, mean over samples"),
    ("aggregate_error_deviation", "", "all", "its standard deviation over samples"),
    ("aggregate_error_median", "", "all", "its median"),
    ("aggregate_error_small", "", "all", "share of samples in which it is below a tenth"),
    ("swarm_time", "s", "all", "when the last peer of a swarm had everything"),
    ("swarm_bound", "s", "all", "T: the least time in which all could have it (docs/swarm.md)"),
    ("swarm_time_ratio", "", "all", "swarm_time ÷ swarm_bound"),
    ("swarm_median", "s", "all", "when half of those who have everything had it"),
    ("swarm_p99", "s", "all", "when 99 % of them had it"),
    ("swarm_spread", "", "all", "swarm_p99 ÷ swarm_median"),
    ("swarm_origin_share", "", "all", "blocks that the origin sent ÷ blocks of the object"),
    (
        "swarm_sent_share",
        "",
        "all",
        "whole blocks that all sent ÷ the blocks of the object, once for each peer",
    ),
    (
        "swarm_vain_share",
        "",
        "all",
        "blocks that were wrong, and the parts that came of those cut off, ÷ the same",
    ),
    ("swarm_top_share", "", "all", "share of all blocks that the peer sent that sent most"),
    ("swarm_refused", "", "all", "offers that were refused ÷ the same"),
    ("swarm_messages", "", "all", "messages between neighbours ÷ the same"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_recordings_is_made_from_the_code() {
        let page = include_str!("../../../../docs/recording.md");
        assert!(page == Recording::describe(), "make it anew: fontis sim --reference docs");
    }
}
