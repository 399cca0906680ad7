use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Span;

use fontis::udp::Clock;
use fontis_base::{Duration, Rate, Time};
use fontis_net::{Limit, LinkStats};
use fontis_proto::congestion::CongestionKind;
use fontis_proto::tcp;
use fontis_sim::Experiment;
use fontis_sim::app::Application;
use fontis_sim::app::source::Pattern;
use fontis_sim::experiment::observation::{Observation, Observed};
use fontis_sim::experiment::run::Watched;
use fontis_sim::experiment::spec::{End, FlowSpec};
use fontis_sim::host::rows;
use fontis_sim::host::{Counters, Milestones};
use fontis_sim::world::observers::capture::Capture;

use super::environment::{Environment, Lateness};
use super::error::{TestbedError, system};
use super::flow::{Commands, Datagrams, Dfcp, Flow, Object, Place, Stage, Tcp};
use super::namespace::Namespace;
use super::network::{Network, Running, addresses, addresses_beside};

/// Runs an experiment with real kernels and sockets; gives what was recorded, with a capture of the
/// first `captured` packets that senders send and receive, if there are to be any; and on what
/// machine. `None` if `stop` said so, which is asked at each sample.
pub fn run(
    experiment: &Experiment,
    captured: u64,
    mut stop: impl FnMut() -> bool,
) -> Result<Option<(Watched, Environment)>, TestbedError> {
    let network = Network::new(experiment, mtu(experiment)?)?;
    let parameters = parameters(experiment);
    let refused = network.set_parameters(&parameters)?;
    let mut environment = Environment::read(network.senders(), network.mtu())?;
    environment.refused = refused;
    environment.ignored = ignored(experiment);
    let capture = (captured > 0).then(|| Capture::new(Vec::new(), captured));
    let capture = capture.map(|capture| Arc::new(Mutex::new(capture)));
    let mut stage = Theatre::open(experiment, network, capture.clone())?;
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
        stage.wait_until(at);
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
    environment.lateness = stage.running.lateness().map(Lateness::from);
    (environment.unsent, environment.strangers) = stage.running.astray();
    stage.close()?;
    // Whoever wrote to it has ended.
    let capture = capture.and_then(Arc::into_inner);
    let capture = capture.map(|c| c.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(Some((Watched { recording, capture, trace: None }, environment)))
}

/// Everything that is at work during a run.
struct Theatre<'a> {
    experiment: &'a Experiment,
    stage: Stage,
    flows: Vec<Flow>,
    running: Running,
    /// When counters were last read.
    now: Time,
    runtime: tokio::runtime::Runtime,
    /// They live as long as sockets are opened in them.
    _namespaces: [Namespace; 2],
}

impl<'a> Theatre<'a> {
    fn open(
        experiment: &'a Experiment,
        network: Network,
        capture: Option<Arc<Mutex<Capture>>>,
    ) -> Result<Self, TestbedError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(system("start threads"))?;
        // Time begins when all is built; what begins at zero begins at once.
        let clock = Clock::start();
        let (senders, receivers, running) = network.start(experiment, clock, capture)?;
        let stage = Stage::new(clock);
        let mut flows = Vec::with_capacity(experiment.flows.len());
        for (number, spec) in experiment.flows.iter().enumerate() {
            let [sender, receiver] = addresses(number);
            let beside = addresses_beside(experiment, number);
            let place = Place { number, spec, sender, receiver, beside };
            let sides = [&senders, &receivers];
            match start(experiment, &stage, &place, sides, &runtime) {
                Ok(flow) => flows.push(flow),
                Err(error) => {
                    stage.stop.store(true, std::sync::atomic::Ordering::Relaxed);
                    flows.into_iter().for_each(Flow::join);
                    return Err(error);
                }
            }
        }
        let _namespaces = [senders, receivers];
        Ok(Self { experiment, stage, flows, running, now: Time::ZERO, runtime, _namespaces })
    }

    fn wait_until(&self, at: Time) {
        let wait = at.since(self.stage.clock.now());
        if wait > Duration::ZERO {
            std::thread::sleep(wait.into());
        }
    }

    /// Reads what has to be asked for, for a sample that is due at `at`.
    fn refresh(&mut self, at: Time) {
        let asked = self.flows.iter().filter_map(|flow| match flow {
            Flow::Dfcp(flow) => Some(flow.refresh()),
            _ => None,
        });
        for asked in asked {
            self.runtime.block_on(asked);
        }
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
        self.flows.into_iter().for_each(Flow::join);
        self.running.stop()
    }
}

impl Observed for Theatre<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn counters(&self, index: usize) -> Counters {
        match &self.flows[index] {
            Flow::Commands(_) => {
                let received = self.running.carried(index);
                Counters { received, ..Counters::default() }
            }
            flow => flow.counters(),
        }
    }

    fn milestones(&self, index: usize) -> Milestones {
        self.flows[index].milestones()
    }

    fn link(&mut self, index: usize) -> (LinkStats, usize) {
        self.running.link(index)
    }
}

fn start(
    experiment: &Experiment,
    stage: &Stage,
    place: &Place<'_>,
    sides: [&Namespace; 2],
    runtime: &tokio::runtime::Runtime,
) -> Result<Flow, TestbedError> {
    let (spec, seed) = (place.spec, experiment.seed);
    let transport = spec.transport.as_any();
    if let Some(tcp) = transport.downcast_ref::<rows::tcp::Tcp>() {
        return Ok(Flow::Tcp(Tcp::start(stage, place, &tcp.config, sides, seed)?));
    }
    if let Some(dfcp) = transport.downcast_ref::<rows::dfcp::Dfcp>() {
        let size = match spec.application {
            Application::Source(Pattern::Object { size }) => size,
            _ => experiment.more_than_fits(spec),
        };
        let object = Object { size, block: Some(dfcp.block), seed: seed ^ place.number as u64 };
        let flow = Dfcp::start(stage, place, &dfcp.config, &object, sides, runtime)?;
        return Ok(Flow::Dfcp(flow));
    }
    if let Some(command) = transport.downcast_ref::<rows::command::Command>() {
        let lines = [&*command.sender, &*command.receiver];
        return Ok(Flow::Commands(Commands::start(stage, place, lines, sides)?));
    }
    if transport.is::<rows::datagrams::Datagrams>() {
        let Application::Source(pattern) = spec.application else {
            return Err(TestbedError::Unsupported(format!(
                "{}: datagrams make no requests",
                spec.name
            )));
        };
        return Ok(Flow::Datagrams(Datagrams::start(stage, place, pattern, sides, seed)?));
    }
    Err(TestbedError::Unsupported(format!(
        "{}: {} is for the simulator only: it knows no sockets",
        spec.name,
        spec.transport.row().name
    )))
}

/// The TCP flows' settings, which kernels have in common.
fn tcp_configs(experiment: &Experiment) -> impl Iterator<Item = (&FlowSpec, &tcp::TcpConfig)> {
    experiment.flows.iter().filter_map(|flow| {
        let tcp = flow.transport.as_any().downcast_ref::<rows::tcp::Tcp>()?;
        Some((flow, &*tcp.config))
    })
}

/// The interfaces' MTU: that of TCP's packets.
fn mtu(experiment: &Experiment) -> Result<u32, TestbedError> {
    let mut sizes: Vec<u32> = tcp_configs(experiment).map(|(_, config)| config.mtu).collect();
    sizes.sort_unstable();
    sizes.dedup();
    match sizes[..] {
        [] => Ok(1500),
        [one] => Ok(one),
        _ => Err(TestbedError::Unsupported(
            "flows with different tcp.mtu share an interface on the testbed: choose one".to_owned(),
        )),
    }
}

/// What is set of the kernels.
fn parameters(experiment: &Experiment) -> Vec<(&'static str, String)> {
    let configs: Vec<&tcp::TcpConfig> = tcp_configs(experiment).map(|(_, config)| config).collect();
    let flag =
        |of: fn(&tcp::TcpConfig) -> bool| u8::from(configs.iter().any(|c| of(c))).to_string();
    let buffers = format!("4096 131072 {}", socket_buffer(experiment));
    let mut parameters = vec![
        ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
        ("net/ipv4/tcp_wmem", buffers.clone()),
        ("net/ipv4/tcp_rmem", buffers),
    ];
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

/// Bytes of a socket's buffer: four times what the longest path holds, in flight and in its buffer.
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

/// What the scenario asks for and a kernel does not do.
fn ignored(experiment: &Experiment) -> Vec<&'static str> {
    let default = tcp::TcpConfig::default();
    let any = |of: &dyn Fn(&tcp::TcpConfig) -> bool| tcp_configs(experiment).any(|(_, c)| of(c));
    let mut ignored = Vec::new();
    if any(&|config| config.initial_window != default.initial_window) {
        ignored.push("tcp.initial_window");
    }
    if any(&|config| config.delayed_ack != default.delayed_ack) {
        ignored.push("tcp.delayed_ack");
    }
    if any(&|config| config.min_rto != default.min_rto) {
        ignored.push("tcp.min_rto");
    }
    if any(&|config| config.pacing) {
        ignored.push("tcp.pacing");
    }
    if any(&|config| config.congestion == CongestionKind::Cubic) {
        ignored.push("cubic without HyStart: the kernel's has it");
    }
    ignored
}
