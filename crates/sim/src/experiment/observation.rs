//! The reading of counters at fixed intervals into a recording.

use fontis_base::{Duration, Rate, Time};
use fontis_net::LinkStats;

use crate::app::message::MessageLog;
use crate::experiment::messages::{self, MessageMetrics};
use crate::experiment::series;
use crate::experiment::spec::{Experiment, Subject};
use crate::host::{Counters, Milestones};
use crate::recording::{Recording, metrics};

/// A running experiment whose counters can be read, on any platform. Subjects are numbered as
/// [`Experiment::subjects`] lists them.
pub trait Observed {
    /// How long it has run.
    fn now(&self) -> Time;
    /// The counters of a subject.
    fn counters(&self, subject: usize) -> Counters;
    /// The milestones of a subject.
    fn milestones(&self, subject: usize) -> Milestones;
    /// What a subject's transport alone counts: names of metrics, and their values.
    fn metrics(&self, _subject: usize) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    /// The same of the sender of a flow to a group, of which each receiver is a subject.
    fn group_metrics(&self, _flow: usize) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
    /// The messages of a flow, if its application sends messages.
    fn messages(&self, _flow: usize) -> Option<MessageLog> {
        None
    }
    /// The counters of a link up to now, and the packets that wait in it.
    fn link(&mut self, index: usize) -> (LinkStats, usize);
    /// Hands counters of a flow that were just read to the observers of packets.
    fn tell_flow(&mut self, _flow: usize, _name: &str, _counters: Counters) {}
    /// Hands a queue's length that was just read to the observers of packets.
    fn tell_queue(&mut self, _name: &str, _bytes: u64) {}
}

/// The milestones and the messages of a run at its end.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// By subject.
    pub milestones: Vec<Milestones>,
    /// What transports alone count, by subject.
    pub metrics: Vec<Vec<(&'static str, f64)>>,
    /// The same of senders to groups, by flow.
    pub group_metrics: Vec<Vec<(&'static str, f64)>>,
    /// By flow.
    pub messages: Vec<Option<MessageLog>>,
}

/// Fills a recording while an experiment runs.
pub struct Observation {
    recording: Recording,
    subjects: Vec<Subject>,
    /// Counters at the last sample, by subject and by link.
    flows: Vec<Arrived>,
    links: Vec<LinkCounters>,
    /// Bytes received by each flow and the links' counters when the measurement window began.
    window: Option<(Vec<u64>, Vec<LinkCounters>)>,
    first_drops: Vec<Option<Time>>,
    /// Network utilisation at each sample of the window, and that of links alone.
    utilisation: Vec<f64>,
    link_utilisation: Vec<f64>,
    now: Time,
}

/// Of a flow's counters what is summed up in the end.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    received: u64,
    wasted: u64,
    symbols: u64,
}

/// When a link was read, and what it had counted.
type LinkCounters = (Time, LinkStats);

/// For so many rows room is made at the beginning, if as many are to come.
const MOST_PLANNED: u64 = 1 << 22;

impl Observation {
    /// An empty one.
    pub fn new(experiment: &Experiment) -> Self {
        let mut recording = Recording::new();
        let subjects = experiment.subjects();
        if !experiment.until_done && experiment.measure.is_none() {
            // It runs to its end, so that as many rows come as were planned: none need be moved to
            // make room for more.
            let samples = experiment.duration.as_nanos() / experiment.sample.as_nanos().max(1) + 2;
            let rows = samples.saturating_mul(subjects.len() as u64);
            recording.flow.reserve(rows.min(MOST_PLANNED) as usize);
        }
        Self {
            recording,
            flows: vec![Arrived::default(); subjects.len()],
            subjects,
            links: vec![(Time::ZERO, LinkStats::default()); experiment.links.len()],
            window: None,
            first_drops: vec![None; experiment.links.len()],
            utilisation: Vec::new(),
            link_utilisation: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// Reads all counters.
    pub fn sample(&mut self, experiment: &Experiment, running: &mut impl Observed) {
        self.now = running.now();
        let time = self.now.as_secs_f64();
        for (index, subject) in self.subjects.iter().enumerate() {
            let counters = running.counters(index);
            let Counters { received, wasted, symbols, .. } = counters;
            self.flows[index] = Arrived { received, wasted, symbols };
            let name = subject.name(experiment);
            if subject.receiver == 0 {
                running.tell_flow(subject.flow, &experiment.flows[subject.flow].name, counters);
            }
            self.recording.flow.push([
                time.into(),
                (subject.flow as u64).into(),
                name.into(),
                counters.received.into(),
                counters.sent.into(),
                counters.retransmitted.into(),
                counters.lost.into(),
                counters.window.into(),
                counters.in_flight.into(),
                counters.srtt.map_or(f64::NAN, Duration::as_secs_f64).into(),
            ]);
        }
        let (mut busy, mut full) = (Vec::new(), Vec::new());
        for (index, spec) in experiment.links.iter().enumerate().filter(|(_, l)| l.bottleneck) {
            let (stats, packets) = running.link(index);
            let (before, last) = self.links[index];
            let span = self.now.since(before);
            let mean = |now: u128, last: u128| {
                if span > Duration::ZERO {
                    (now - last) as f64 / span.as_nanos() as f64
                } else {
                    0.0
                }
            };
            let mean_bytes = mean(stats.queue_byte_nanos, last.queue_byte_nanos);
            let mean_packets = mean(stats.queue_packet_nanos, last.queue_packet_nanos);
            if self.first_drops[index].is_none() && stats.dropped.queue.packets > 0 {
                self.first_drops[index] = stats.first_queue_drop;
            }
            let sent = (stats.delivered.bytes - last.delivered.bytes) as f64 * 8.0;
            busy.push(utilisation(sent, spec.config.capacity(before, self.now)));
            if let Some((buffer, in_bytes)) = spec.buffer() {
                full.push((if in_bytes { mean_bytes } else { mean_packets }) / buffer.max(1.0));
            }
            self.recording.queue.push([
                time.into(),
                spec.name.as_str().into(),
                stats.queue_bytes.into(),
                (packets as u64).into(),
                mean_bytes.into(),
                mean_packets.into(),
                stats.entered.packets.into(),
                stats.delivered.packets.into(),
                stats.delivered.bytes.into(),
                stats.dropped.queue.packets.into(),
                (stats.dropped.total().packets - stats.dropped.queue.packets).into(),
                stats.marked.into(),
            ]);
            self.links[index] = (self.now, stats);
            running.tell_queue(&spec.name, stats.queue_bytes);
        }
        if self.window.is_some() {
            self.utilisation.push(metrics::network_utilisation(&busy, &full));
            self.link_utilisation.push(metrics::network_utilisation(&busy, &[]));
        }
    }

    /// The measurement window begins with the last sample.
    pub fn begin_window(&mut self) {
        let received = self.flows.iter().map(|flow| flow.received).collect();
        self.window = Some((received, self.links.clone()));
    }

    /// Whether every flow has delivered, since the window began, what is to be measured.
    pub(crate) fn all_measured(&self, experiment: &Experiment) -> bool {
        let (Some(bytes), Some((before, _))) = (experiment.measure, &self.window) else {
            return false;
        };
        self.flows.iter().zip(before).all(|(now, before)| now.received - before >= bytes)
    }

    /// The milestones and the messages at the end of a run.
    pub fn outcome(&self, running: &impl Observed) -> Outcome {
        let flows = self.subjects.last().map_or(0, |last| last.flow + 1);
        Outcome {
            milestones: (0..self.subjects.len()).map(|at| running.milestones(at)).collect(),
            metrics: (0..self.subjects.len()).map(|at| running.metrics(at)).collect(),
            group_metrics: (0..flows).map(|flow| running.group_metrics(flow)).collect(),
            messages: (0..flows).map(|flow| running.messages(flow)).collect(),
        }
    }

    /// Sums up, and gives the recording. The world may be gone: the tables may take its memory.
    pub fn finish(mut self, experiment: &Experiment, outcome: &Outcome, end: Time) -> Recording {
        let (flows_before, links_before) = self.window.take().unwrap_or_else(|| {
            // The run ended before its window began: all of it counts.
            let zero = (Time::ZERO, LinkStats::default());
            (vec![0; self.flows.len()], vec![zero; self.links.len()])
        });
        let begin = links_before.iter().map(|(at, _)| *at).max().unwrap_or(Time::ZERO);
        let span = end.since(begin).as_secs_f64();
        let mut goodputs = Vec::with_capacity(self.flows.len());
        let (mut with_end, mut completed) = (0u32, 0u32);
        for (index, subject) in core::mem::take(&mut self.subjects).iter().enumerate() {
            let spec = &experiment.flows[subject.flow];
            let name = subject.name(experiment);
            let (now, before) = (self.flows[index], flows_before[index]);
            let goodput = metrics::goodput(now.received - before, span);
            goodputs.push(goodput);
            self.put("goodput", name, goodput * 1e-6);
            let milestones = outcome.milestones[index];
            self.put_events(name, milestones);
            if spec.has_end() {
                with_end += 1;
                completed += u32::from(milestones.completed.is_some());
                self.put_completion(name, milestones);
            }
            if now.symbols > 0 {
                self.put("wasted_symbols", name, metrics::wasted_symbols(now.wasted, now.symbols));
            }
            self.put_counted(experiment, outcome, index, subject);
            if let (Some(log), Some(deadline)) =
                (&outcome.messages[subject.flow], spec.application.deadline())
            {
                let window = [begin, end];
                let messages = MessageMetrics::read(log, subject.receiver, window, deadline);
                self.put_messages(name, &messages);
                let of = (subject.flow, subject.receiver, name);
                messages::record(&mut self.recording.message, log, of);
            }
        }
        let connected = outcome.milestones.iter().filter(|flow| flow.connected.is_some()).count();
        self.put("connected", "all", connected as f64 / self.flows.len().max(1) as f64);
        self.put("goodput", "all", goodputs.iter().sum::<f64>() * 1e-6);
        self.put("jain", "all", metrics::jain(&goodputs));
        if with_end > 0 {
            self.put("completed", "all", f64::from(completed) / f64::from(with_end));
        }
        let start = experiment.flows.iter().map(|flow| flow.start).min().unwrap_or(Time::ZERO);
        let mut slowest: Option<f64> = None;
        for (index, spec) in experiment.links.iter().enumerate().filter(|(_, l)| l.bottleneck) {
            let ((_, now), (_, before)) = (self.links[index], links_before[index]);
            let arrived = now.entered.packets - before.entered.packets;
            let dropped = now.dropped.queue.packets - before.dropped.queue.packets;
            let all = now.dropped.total().packets - before.dropped.total().packets;
            let sent = (now.delivered.bytes - before.delivered.bytes) as f64 * 8.0;
            let rate = spec.config.rate;
            if rate < Rate::MAX {
                let bps = rate.as_bps() as f64;
                slowest = Some(slowest.map_or(bps, |slowest| slowest.min(bps)));
                let capacity = spec.config.capacity(begin, end);
                self.put("utilisation", &spec.name, sent / capacity.max(1.0));
            }
            let packets = (now.queue_packet_nanos - before.queue_packet_nanos) as f64 * 1e-9;
            let bytes = (now.queue_byte_nanos - before.queue_byte_nanos) as f64 * 1e-9;
            self.put("mean_queue", &spec.name, if span > 0.0 { packets / span } else { 0.0 });
            if let Some((buffer, in_bytes)) = spec.buffer() {
                let integral = if in_bytes { bytes } else { packets };
                self.put(
                    "occupancy",
                    &spec.name,
                    metrics::buffer_occupancy(integral, span, buffer),
                );
            }
            self.put("drop_rate", &spec.name, metrics::drop_rate(dropped, arrived));
            self.put("loss_rate", &spec.name, metrics::drop_rate(all - dropped, arrived));
            if let Some(first) = self.first_drops[index] {
                self.recording.event.push([
                    first.as_secs_f64().into(),
                    spec.name.as_str().into(),
                    "first drop".into(),
                ]);
                let begin = start.as_secs_f64();
                let first = Some(first.as_secs_f64());
                if let Some(saturation) = metrics::queue_saturation_time(begin, first) {
                    self.put("saturation", &spec.name, saturation);
                }
            }
            self.recording.packets += now.delivered.packets;
        }
        if let Some(slowest) = slowest {
            let normalised = metrics::normalised_aggregate_goodput(&goodputs, slowest);
            self.put("normalised_goodput", "all", normalised);
        }
        if !self.utilisation.is_empty() {
            let mean = self.utilisation.iter().sum::<f64>() / self.utilisation.len() as f64;
            self.put("network_utilisation", "all", mean);
            let regimes = metrics::utilisation_regimes(&self.utilisation);
            for (name, share) in ["underloaded", "normal", "overloaded"].into_iter().zip(regimes) {
                self.put(name, "all", share);
            }
            let median = metrics::quantile(&self.utilisation, 0.5);
            self.put("median_utilisation", "all", median);
            let median = metrics::quantile(&self.link_utilisation, 0.5);
            self.put("median_link_utilisation", "all", median);
        }
        for (metric, subject, value) in series::metrics(experiment, &self.recording, begin) {
            self.put(&metric, &subject, value);
        }
        self.recording
    }

    fn put(&mut self, metric: &str, subject: &str, value: f64) {
        self.recording.put(metric, subject, value);
    }

    /// What the transport alone counts at a receiver, and with the first of a group at the sender.
    fn put_counted(
        &mut self,
        experiment: &Experiment,
        outcome: &Outcome,
        index: usize,
        subject: &Subject,
    ) {
        for (metric, value) in outcome.metrics.get(index).into_iter().flatten() {
            self.put(metric, subject.name(experiment), *value);
        }
        let of_group = outcome.group_metrics.get(subject.flow).filter(|_| subject.receiver == 0);
        for (metric, value) in of_group.into_iter().flatten() {
            self.put(metric, &experiment.flows[subject.flow].name, *value);
        }
    }

    fn put_messages(&mut self, name: &str, messages: &MessageMetrics) {
        self.put("messages", name, messages.made as f64);
        self.put("messages_in_time", name, messages.in_time);
        self.put("messages_lost", name, messages.lost);
        for (metric, share) in
            [("message_delay", 0.5), ("message_delay_p95", 0.95), ("message_delay_p99", 0.99)]
        {
            if let Some(delay) = messages.delay(share) {
                self.put(metric, name, delay);
            }
        }
        if let Some([mean, most]) = messages.jitter() {
            self.put("message_jitter", name, mean);
            self.put("message_jitter_max", name, most);
        }
    }

    fn put_events(&mut self, name: &str, milestones: Milestones) {
        let mut put = |at: Option<Time>, event: &str| {
            if let Some(at) = at {
                self.recording.event.push([at.as_secs_f64().into(), name.into(), event.into()]);
            }
        };
        put(milestones.first_sent, "start");
        put(milestones.connected, "connected");
        put(milestones.first_data, "first data");
        put(milestones.completed, if milestones.aborted { "aborted" } else { "completed" });
    }

    fn put_completion(&mut self, name: &str, milestones: Milestones) {
        let (Some(last), true) = (milestones.last_data, milestones.completed.is_some()) else {
            return;
        };
        let last = last.as_secs_f64();
        if let Some(first) = milestones.first_sent {
            self.put("fct", name, metrics::fct_defined(first.as_secs_f64(), last));
        }
        if let Some(first) = milestones.first_data {
            self.put("fct_received", name, metrics::fct_received(first.as_secs_f64(), last));
        }
    }
}

fn utilisation(bits: f64, capacity: f64) -> f64 {
    if capacity > 0.0 { (bits / capacity).min(1.0) } else { 0.0 }
}
