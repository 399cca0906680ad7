use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Span;

use fontis::udp::Clock;
use fontis_base::{Duration, Rate, Time};
use fontis_net::{Limit, LinkStats};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp::{self, TcpConfig};
use fontis_sim::Experiment;
use fontis_sim::app::Application;
use fontis_sim::app::message::MessageLog;
use fontis_sim::experiment::observation::{Observation, Observed};
use fontis_sim::experiment::run::{Watch, Watched};
use fontis_sim::experiment::spec::{Destination, End, FlowSpec, InterfaceIndex, Subject};
use fontis_sim::host::rows;
use fontis_sim::host::{Counters, Milestones};
use fontis_sim::world::observers::capture::Capture;

use super::environment::{Environment, Lateness};
use super::error::{TestbedError, system};
use super::flow;
use super::flow::stage::{Flow, Place, Stage};
use super::network::{Network, Running, Site};
use super::plan::addresses_beside;
use super::swarm;

/// Runs an experiment with real kernels and sockets. Returns the recording and the environment; of
/// `watch` the capture, and of a swarm the ways of its blocks. Calls `stop` at each sample; `None`
/// if it returned true.
pub fn run(
    experiment: &Experiment,
    watch: Watch,
    mut stop: impl FnMut() -> bool,
) -> Result<Option<(Watched, Environment)>, TestbedError> {
    if let Some(spec) = &experiment.swarm {
        return swarm::run(experiment, spec, watch, stop);
    }
    let captured = watch.capture;
    let network = Network::new(experiment, mtu(experiment)?)?;
    let parameters = parameters(experiment);
    let refused = network.set_parameters(&parameters)?;
    let mut environment = Environment::read(network.senders(), network.mtu())?;
    environment.refused = refused;
    environment.ignored = ignored(experiment);
    let capture = (captured > 0).then(|| Capture::new(Vec::new(), captured));
    let capture = capture.map(|capture| Arc::new(Mutex::new(capture)));
    let mut stage = TestbedRun::open(experiment, network, capture.clone())?;
    let mut observation = Observation::new(experiment);
    let end = Time::ZERO + experiment.duration;
    let window = Time::ZERO + experiment.warmup;
    let mut at = Time::ZERO;
    stage.refresh(at);
    observation.sample(experiment, &mut stage);
    if experiment.warmup == Duration::ZERO {
        observation.begin_window();
    }
    while at < end {
        let next = (at + experiment.sample.max(Duration::from_nanos(1))).min(end);
        at = if at < window { next.min(window) } else { next };
        stage.run_to(at);
        stage.refresh(at);
        observation.sample(experiment, &mut stage);
        if at == window {
            observation.begin_window();
        }
        if let Some(failure) = stage.failure() {
            return Err(failure);
        }
        if stop() {
            return Ok(None);
        }
        if experiment.until_done && stage.all_done() {
            break;
        }
    }
    let outcome = observation.outcome(&stage);
    let recording = observation.finish(experiment, &outcome, stage.now);
    environment.lateness = stage.running.lateness().into_iter().map(Lateness::from).collect();
    (environment.unsent, environment.strangers) = stage.running.astray();
    stage.close()?;
    // Whoever wrote to it has ended.
    let capture = capture.and_then(Arc::into_inner);
    let capture = capture.map(|c| c.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(Some((Watched { recording, capture, trace: None }, environment)))
}

/// A run of an experiment: flows and links at work.
struct TestbedRun<'a> {
    experiment: &'a Experiment,
    stage: Stage,
    flows: Vec<Box<dyn Flow>>,
    logs: Vec<Option<MessageLog>>,
    subjects: Vec<Subject>,
    running: Running,
    /// The times at which members of groups come or go, the last first.
    changes: Vec<Time>,
    /// When counters were last read.
    now: Time,
    runtime: tokio::runtime::Runtime,
    /// They live as long as sockets are opened in them.
    _sites: Vec<Site>,
}

impl<'a> TestbedRun<'a> {
    fn open(
        experiment: &'a Experiment,
        network: Network,
        capture: Option<Arc<Mutex<Capture>>>,
    ) -> Result<Self, TestbedError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(system("start threads"))?;
        // Time begins when all is built; what begins at zero begins at once.
        let clock = Clock::start();
        let (sites, running) = network.start(experiment, clock, capture)?;
        let stage = Stage::new(clock);
        let log = |flow: &FlowSpec| {
            let receivers = experiment.receivers(flow).len();
            matches!(flow.application, Application::Messages(_)).then(|| MessageLog::new(receivers))
        };
        let mut logs: Vec<Option<MessageLog>> = experiment.flows.iter().map(log).collect();
        let commons = RefCell::default();
        let mut flows: Vec<Box<dyn Flow>> = Vec::with_capacity(experiment.flows.len());
        for (number, spec) in experiment.flows.iter().enumerate() {
            let (sender, receivers) = Site::ends(&sites, experiment, number);
            let place = Place {
                experiment,
                number,
                spec,
                sender,
                receivers,
                beside: addresses_beside(experiment, number),
                commons: &commons,
                log: logs[number].clone(),
                runtime: &runtime,
            };
            match flow::start(&stage, &place) {
                Ok(flow) => {
                    logs[number] = flow.log().or_else(|| logs[number].take());
                    flows.push(flow);
                }
                Err(error) => {
                    stage.stop.store(true, std::sync::atomic::Ordering::Relaxed);
                    flows.into_iter().for_each(|flow| flow.join());
                    return Err(error);
                }
            }
        }
        let (changes, subjects) = (changes(experiment), experiment.subjects());
        let mut run = Self {
            experiment,
            stage,
            flows,
            logs,
            subjects,
            running,
            changes,
            now: Time::ZERO,
            runtime,
            _sites: sites,
        };
        run.change_groups(Time::ZERO);
        Ok(run)
    }

    /// Lets packets reach the members that groups have at `now`.
    fn change_groups(&mut self, now: Time) {
        if self.changes.last().is_none_or(|at| *at > now) {
            return;
        }
        while self.changes.pop_if(|at| *at <= now).is_some() {}
        for (number, flow) in self.experiment.flows.iter().enumerate() {
            let Destination::Group(group) = flow.to else { continue };
            let members = self.experiment.groups[group].members.iter();
            let present = members.filter(|member| {
                let is_sender = flow.from.machine() == Some(member.at.machine);
                !is_sender && member.join <= now && member.leave.is_none_or(|leave| leave > now)
            });
            let present: Vec<InterfaceIndex> = present.map(|member| member.at).collect();
            self.running.set_members(self.experiment, number, &present);
        }
    }

    /// Waits until a time; members of groups come and go at theirs.
    fn run_to(&mut self, at: Time) {
        while let Some(change) = self.changes.last().copied().filter(|change| *change <= at) {
            self.wait_until(change);
            self.change_groups(change);
        }
        self.wait_until(at);
    }

    fn wait_until(&self, at: Time) {
        let wait = at.since(self.stage.clock.now());
        if wait > Duration::ZERO {
            std::thread::sleep(wait.into());
        }
    }

    /// Reads the counters that need a call, for a sample that is due at `at`.
    fn refresh(&mut self, at: Time) {
        self.flows.iter().for_each(|flow| flow.refresh(&self.runtime));
        // A sample has the time for which it was meant, unless the machine was late by more than
        // that means.
        let late = self.stage.clock.now().since(at);
        self.now = if late < Duration::from_millis(1) { at } else { at + late };
    }

    fn failure(&self) -> Option<TestbedError> {
        if self.running.has_failed() {
            return Some(TestbedError::Unsupported("the links have ended before time".to_owned()));
        }
        self.stage.failure()
    }

    fn all_done(&self) -> bool {
        let mut with_end =
            self.experiment.flows.iter().zip(&self.flows).filter(|(spec, _)| spec.has_end());
        with_end.all(|(_, flow)| flow.is_done())
    }

    fn close(self) -> Result<(), TestbedError> {
        self.stage.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.runtime.shutdown_timeout(Span::from_millis(100));
        self.flows.into_iter().for_each(|flow| flow.join());
        self.running.stop()
    }
}

impl Observed for TestbedRun<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn counters(&self, subject: usize) -> Counters {
        let Subject { flow, receiver, .. } = self.subjects[subject];
        let counters = self.flows[flow].counters(receiver);
        // The bytes of commands are only seen on the network.
        match self.experiment.flows[flow].transport.is_simulated() {
            true => counters,
            false => Counters { received: self.running.carried(flow), ..counters },
        }
    }

    fn milestones(&self, subject: usize) -> Milestones {
        let Subject { flow, receiver, .. } = self.subjects[subject];
        self.flows[flow].milestones(receiver)
    }

    fn messages(&self, flow: usize) -> Option<MessageLog> {
        self.logs[flow].clone()
    }

    fn link(&mut self, index: usize) -> (LinkStats, usize) {
        self.running.link(index)
    }
}

/// The times at which members of groups come or go, the last first.
fn changes(experiment: &Experiment) -> Vec<Time> {
    let members = experiment.groups.iter().flat_map(|group| &group.members);
    let mut changes: Vec<Time> =
        members.flat_map(|member| [Some(member.join), member.leave]).flatten().collect();
    changes.sort();
    changes.dedup();
    changes.reverse();
    changes
}

/// The TCP flows' settings, which kernels have in common.
fn tcp_configs(experiment: &Experiment) -> impl Iterator<Item = (&FlowSpec, &TcpConfig)> {
    experiment.flows.iter().filter_map(|flow| {
        let tcp = flow.transport.as_any().downcast_ref::<rows::tcp::Tcp>()?;
        Some((flow, &*tcp.config))
    })
}

/// Bytes that UDP adds to a packet of a transport that the simulator has directly on IP.
const UDP_HEADER: u32 = 8;

/// The interfaces' MTU: that of TCP's packets. Without TCP it is what the largest packet takes.
fn mtu(experiment: &Experiment) -> Result<u32, TestbedError> {
    let mut sizes: Vec<u32> = tcp_configs(experiment).map(|(_, config)| config.mtu).collect();
    sizes.sort_unstable();
    sizes.dedup();
    match sizes[..] {
        [] => {
            let published = |flow: &FlowSpec| {
                let transport =
                    flow.transport.as_any().downcast_ref::<rows::published::Published>();
                transport.map(|published| published.config.payload + 48 + UDP_HEADER)
            };
            Ok(experiment.flows.iter().filter_map(published).fold(1500, u32::max))
        }
        [one] => Ok(one),
        _ => Err(TestbedError::Unsupported(
            "flows with different tcp.mtu share an interface on the testbed: choose one".to_owned(),
        )),
    }
}

/// The settings of the kernels.
fn parameters(experiment: &Experiment) -> Vec<(&'static str, String)> {
    let configs: Vec<&TcpConfig> = tcp_configs(experiment).map(|(_, config)| config).collect();
    let flag = |of: fn(&TcpConfig) -> bool| u8::from(configs.iter().any(|c| of(c))).to_string();
    let most = socket_buffer(experiment);
    let buffers = format!("4096 131072 {most}");
    let simulated = TcpConfig::default().receive_buffer;
    let first = configs.iter().map(|config| config.receive_buffer).filter(|b| *b != simulated);
    let first = first.max().unwrap_or(131_072).max(4096);
    let receive = format!("4096 {first} {}", most.max(first));
    let mut parameters = vec![
        ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
        ("net/ipv4/tcp_wmem", buffers.clone()),
        ("net/ipv4/tcp_rmem", receive),
    ];
    if experiment.flows.iter().any(|flow| !flow.paths.is_empty()) {
        // Packets of a path come over another interface than the first route to their source's.
        parameters.push(("net/ipv4/conf/all/rp_filter", "2".to_owned()));
    }
    if !configs.is_empty() {
        let rack = configs.iter().any(|config| config.recovery == tcp::Recovery::RackTlp);
        parameters.extend([
            ("net/ipv4/tcp_sack", flag(|config| config.sack)),
            ("net/ipv4/tcp_timestamps", flag(|config| config.timestamps)),
            ("net/ipv4/tcp_ecn", flag(|config| config.ecn)),
            ("net/ipv4/tcp_recovery", u8::from(rack).to_string()),
            ("net/ipv4/tcp_early_retrans", if rack { "3" } else { "0" }.to_owned()),
        ]);
    }
    parameters
}

/// The bytes of a socket's buffer: four times the content of the longest path and its buffer.
fn socket_buffer(experiment: &Experiment) -> u64 {
    const LEAST: u64 = 4 << 20;
    const MOST: u64 = 1 << 30;
    let links = || experiment.links.iter().filter(|link| link.bottleneck);
    let rate = links().map(|link| link.config.rate).max().unwrap_or(Rate::MAX);
    let own = |end: &End| end.own_link().map_or(Duration::ZERO, |link| link.delay);
    let delay = |flow: &FlowSpec| {
        let ends = experiment.receivers(flow);
        own(&flow.from) + ends.iter().map(own).max().unwrap_or(Duration::ZERO)
    };
    let own = experiment.flows.iter().map(delay).max().unwrap_or(Duration::ZERO);
    let rtt = links().fold(own, |sum, link| sum + link.config.delay * 2);
    let queue = links().map(|link| match link.config.buffer {
        Limit::Bytes(size) => size.as_bytes(),
        Limit::Packets(packets) => packets.saturating_mul(1500),
    });
    let queue = queue.max().unwrap_or(0);
    let bdp = if rate == Rate::MAX { MOST } else { rate.bytes_in(rtt) };
    bdp.saturating_add(queue.min(MOST)).saturating_mul(4).clamp(LEAST, MOST)
}

/// Settings of the scenario that a kernel does not follow.
fn ignored(experiment: &Experiment) -> Vec<&'static str> {
    let default = TcpConfig::default();
    let any = |of: &dyn Fn(&TcpConfig) -> bool| tcp_configs(experiment).any(|(_, c)| of(c));
    let mut ignored = Vec::new();
    let of_subflows = |flow: &FlowSpec| !flow.subflows.is_empty();
    let has_window = |c: &TcpConfig| c.initial_window != default.initial_window;
    if any(&has_window) && experiment.flows.iter().any(of_subflows) {
        ignored.push("tcp.initial_window of subflows");
    }
    if any(&|config| config.delayed_ack != default.delayed_ack) {
        ignored.push("tcp.delayed_ack");
    }
    if any(&|config| config.quick_acks != default.quick_acks) {
        ignored.push("tcp.quick_acks");
    }
    if any(&|config| config.min_rto != default.min_rto) {
        ignored.push("tcp.min_rto");
    }
    if any(&|config| config.pacing) {
        ignored.push("tcp.pacing");
    }
    // Kernel parameters are those of a namespace, whichever flows it has.
    let differ = |of: fn(&TcpConfig) -> bool| any(&|config| of(config)) && any(&|c| !of(c));
    for (key, of) in [
        ("tcp.sack of single flows", (|config| config.sack) as fn(&TcpConfig) -> bool),
        ("tcp.timestamps of single flows", |config| config.timestamps),
        ("tcp.ecn of single flows", |config| config.ecn),
        ("tcp.recovery of single flows", |config| config.recovery == tcp::Recovery::RackTlp),
    ] {
        if differ(of) {
            ignored.push(key);
        }
    }
    if any(&|config| config.congestion == CongestionKind::Cubic) {
        ignored.push("cubic without HyStart: the kernel's has it");
    }
    ignored
}
