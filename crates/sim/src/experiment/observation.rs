//! The reading of counters at fixed intervals into a recording.

use fontis_base::{Duration, Rate, Time};
use fontis_net::LinkStats;

use crate::experiment::series;
use crate::experiment::{Ends, Experiment, Running};
use crate::host::dfcp::Role;
use crate::host::tcp::Moments;
use crate::recording::METRICS;
use crate::recording::Recording;
use crate::recording::metrics;
use crate::world::{Element, World};

/// A running experiment whose counters can be read, wherever it runs.
pub trait Observed {
    /// How long it has run.
    fn now(&self) -> Time;
    /// What a flow has counted.
    fn flow(&self, index: usize) -> FlowCounters;
    /// What a flow has passed.
    fn stations(&self, index: usize) -> Stations;
    /// What a link has counted up to now, and packets that wait in it.
    fn link(&mut self, index: usize) -> (LinkStats, usize);
    /// What was read of a flow just now, for who watches packets.
    fn tell_flow(&mut self, _index: usize, _name: &str, _counters: FlowCounters) {}
    /// What was read of a queue.
    fn tell_queue(&mut self, _name: &str, _bytes: u64) {}
}

/// Fills a recording while an experiment runs.
pub struct Observation {
    recording: Recording,
    /// Counters at the last sample, by flow and by link.
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

/// What a flow has counted, as the recording's table of flows explains.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowCounters {
    /// Useful bytes that reached the application.
    pub received: u64,
    /// Packets that its sender sent.
    pub sent: u64,
    /// Of them, copies or repair symbols.
    pub retransmitted: u64,
    /// Packets believed or reported lost.
    pub lost: u64,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Symbols received in vain.
    pub wasted: u64,
    /// Symbols received.
    pub symbols: u64,
}

/// When a flow's stations were passed, as far as they were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stations {
    /// Its first packet was sent.
    pub first_sent: Option<Time>,
    /// Data could be exchanged.
    pub connected: Option<Time>,
    /// The first data arrived.
    pub first_data: Option<Time>,
    /// The last data arrived so far.
    pub last_data: Option<Time>,
    /// All had arrived.
    pub completed: Option<Time>,
    /// It ended before its time.
    pub aborted: bool,
}

/// For so many rows room is made at the beginning, if as many are to come.
const MOST_PLANNED: u64 = 1 << 22;

impl Observation {
    /// An empty one.
    pub fn new(experiment: &Experiment) -> Self {
        let mut recording = Recording::new();
        if !experiment.until_done && experiment.measure.is_none() {
            // It runs to its end, so that as many rows come as were planned: none need be moved to
            // make room for more.
            let samples = experiment.duration.as_nanos() / experiment.sample.as_nanos().max(1) + 2;
            let rows = samples.saturating_mul(experiment.flows.len() as u64);
            recording.flow.reserve(rows.min(MOST_PLANNED) as usize);
        }
        Self {
            recording,
            flows: vec![Arrived::default(); experiment.flows.len()],
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
        for (index, spec) in experiment.flows.iter().enumerate() {
            let counters = running.flow(index);
            let FlowCounters { received, wasted, symbols, .. } = counters;
            self.flows[index] = Arrived { received, wasted, symbols };
            running.tell_flow(index, &spec.name, counters);
            self.recording.flow.push([
                time.into(),
                (index as u64).into(),
                spec.name.as_str().into(),
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

    /// What the flows have passed in the end.
    pub fn stations(&self, running: &impl Observed) -> Vec<Stations> {
        (0..self.flows.len()).map(|flow| running.stations(flow)).collect()
    }

    /// Sums up, and gives the recording. What ran needs not be there any more: the tables may take
    /// its memory.
    pub fn finish(
        mut self,
        experiment: &Experiment,
        stations: &[Stations],
        end: Time,
    ) -> Recording {
        let (flows_before, links_before) = self.window.take().unwrap_or_else(|| {
            // The run ended before its window began: all of it counts.
            let zero = (Time::ZERO, LinkStats::default());
            (vec![0; self.flows.len()], vec![zero; self.links.len()])
        });
        let begin = links_before.iter().map(|(at, _)| *at).max().unwrap_or(Time::ZERO);
        let span = end.since(begin).as_secs_f64();
        let mut goodputs = Vec::with_capacity(self.flows.len());
        let (mut with_end, mut completed) = (0u32, 0u32);
        for (index, spec) in experiment.flows.iter().enumerate() {
            let (now, before) = (self.flows[index], flows_before[index]);
            let goodput = metrics::goodput(now.received - before, span);
            goodputs.push(goodput);
            self.put("goodput", &spec.name, goodput * 1e-6);
            let stations = stations[index];
            self.put_events(&spec.name, stations);
            if spec.has_end() {
                with_end += 1;
                completed += u32::from(stations.completed.is_some());
                self.put_completion(&spec.name, stations);
            }
            if now.symbols > 0 {
                self.put(
                    "wasted_symbols",
                    &spec.name,
                    metrics::wasted_symbols(now.wasted, now.symbols),
                );
            }
        }
        let connected = stations.iter().filter(|flow| flow.connected.is_some()).count();
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
        let unit = METRICS
            .iter()
            .find(|(name, ..)| is_named(name, metric))
            .map_or("", |(_, unit, ..)| unit);
        self.recording.summary.push([metric.into(), subject.into(), value.into(), unit.into()]);
    }

    fn put_events(&mut self, name: &str, stations: Stations) {
        let mut put = |at: Option<Time>, event: &str| {
            if let Some(at) = at {
                self.recording.event.push([at.as_secs_f64().into(), name.into(), event.into()]);
            }
        };
        put(stations.first_sent, "start");
        put(stations.connected, "connected");
        put(stations.first_data, "first data");
        put(stations.completed, if stations.aborted { "aborted" } else { "completed" });
    }

    fn put_completion(&mut self, name: &str, stations: Stations) {
        let (Some(last), true) = (stations.last_data, stations.completed.is_some()) else { return };
        let last = last.as_secs_f64();
        if let Some(first) = stations.first_sent {
            self.put("fct", name, metrics::fct_defined(first.as_secs_f64(), last));
        }
        if let Some(first) = stations.first_data {
            self.put("fct_received", name, metrics::fct_received(first.as_secs_f64(), last));
        }
    }
}

/// Whether a metric is the one of this name, where capital letters at the end stand for digits.
fn is_named(name: &str, metric: &str) -> bool {
    match name.strip_suffix("_NN").or(name.strip_suffix("_DD")) {
        Some(stem) => metric.starts_with(stem),
        None => name == metric,
    }
}

fn utilisation(bits: f64, capacity: f64) -> f64 {
    if capacity > 0.0 { (bits / capacity).min(1.0) } else { 0.0 }
}

impl Observed for Running {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn flow(&self, index: usize) -> FlowCounters {
        // Of thousands of flows the next ones are brought near while this one is read.
        for (step, after) in (0..).zip([10, 8, 6, 4]) {
            if let Some(ends) = self.ends.get(index + after) {
                self.world.bring_near(ends.sender, step);
                self.world.bring_near(ends.receiver, step);
            }
        }
        FlowCounters::read(&self.world, self.ends[index])
    }

    fn stations(&self, index: usize) -> Stations {
        Stations::read(&self.world, self.ends[index])
    }

    fn tell_flow(&mut self, index: usize, name: &str, counters: FlowCounters) {
        let now = self.world.now();
        if let Some(recorder) = self.world.recorder_mut() {
            recorder.flow_counters(now, index, name, counters);
        }
    }

    fn tell_queue(&mut self, name: &str, bytes: u64) {
        let now = self.world.now();
        if let Some(recorder) = self.world.recorder_mut() {
            recorder.queue_bytes(now, name, bytes);
        }
    }

    fn link(&mut self, index: usize) -> (LinkStats, usize) {
        let now = self.world.now();
        let link = self.world.link_mut(self.links[index]);
        (link.observe(now), link.queue_len())
    }
}

impl FlowCounters {
    fn read(world: &World, ends: Ends) -> Self {
        match (world.element(ends.sender), world.element(ends.receiver)) {
            (Element::Tcp(sender), Element::Tcp(receiver)) => {
                let (sent, got) = (sender.sender_stats(), receiver.receiver_stats());
                Self {
                    received: got.received,
                    sent: sender.packets(),
                    retransmitted: sent.retransmitted,
                    lost: sent.lost / 1448,
                    window: sent.cwnd,
                    in_flight: sent.in_flight,
                    srtt: sent.srtt,
                    ..Self::default()
                }
            }
            (Element::Host(sender), Element::Host(receiver)) => {
                let (sent, got) = (sender.stats(), receiver.stats());
                let received = match receiver.role() {
                    Role::Fetch(fetch) => fetch.bytes,
                    Role::Serve(_) => 0,
                };
                Self {
                    received,
                    sent: sent.packets_sent,
                    retransmitted: sent.repair_symbols_sent,
                    lost: sent.packets_lost,
                    window: 0,
                    in_flight: sent.in_flight,
                    srtt: (sent.srtt > Duration::ZERO).then_some(sent.srtt),
                    wasted: got.symbols_wasted,
                    symbols: got.symbols_received,
                }
            }
            (Element::Published(sender), Element::Published(receiver)) => {
                let (sent, got) = (sender.stats(), receiver.stats());
                Self {
                    received: got.delivered,
                    sent: sender.packets(),
                    retransmitted: sent.repairs_sent,
                    in_flight: sent.in_flight,
                    wasted: got.bytes_wasted,
                    symbols: got.bytes_received,
                    ..Self::default()
                }
            }
            (Element::Datagram(sender), Element::Datagram(receiver)) => {
                Self { received: receiver.received_bytes(), sent: sender.sent(), ..Self::default() }
            }
            _ => unreachable!("both ends of a flow speak the same"),
        }
    }
}

impl Stations {
    /// What the two ends of a connection noted.
    fn of(from: Moments, to: Moments) -> Self {
        let first = [from.first_sent, to.first_sent].into_iter().flatten().min();
        Self {
            first_sent: first,
            connected: from.connected,
            first_data: to.first_data,
            last_data: to.last_data,
            completed: to.completed.or(to.closed),
            aborted: from.aborted || to.aborted,
        }
    }

    fn read(world: &World, ends: Ends) -> Self {
        match (world.element(ends.sender), world.element(ends.receiver)) {
            (Element::Tcp(sender), Element::Tcp(receiver)) => {
                Self::of(sender.moments(), receiver.moments())
            }
            (Element::Published(sender), Element::Published(receiver)) => {
                Self::of(sender.moments(), receiver.moments())
            }
            (_, Element::Host(receiver)) => match receiver.role() {
                Role::Fetch(fetch) => Self {
                    first_sent: Some(receiver.start()),
                    connected: fetch.connected_at,
                    first_data: fetch.first_data_at,
                    last_data: fetch.completed_at.or(fetch.block_times.last().copied()),
                    completed: fetch.completed_at,
                    aborted: false,
                },
                Role::Serve(_) => Self::default(),
            },
            (_, Element::Datagram(receiver)) => {
                let (first_data, last_data) = receiver.arrivals();
                Self { first_data, last_data, ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}
