use std::sync::Arc;

use fontis_base::{Duration, FlowId, HostId, Rate, Size, Stream, Time};
use fontis_net::{Limit, LinkConfig};
use fontis_proto::qlog::Records;
use fontis_proto::{dfcp, published, tcp};

use crate::observation::Observation;
use crate::trace::{Detail, Recorder, Trace};
use crate::{
    Capture, Controlled, Controller, ControllerConfig, DatagramHost, Element, Fetch, Host, Network,
    NodeIndex, Pattern, PatternObject, PublishedHost, Qlog, Recording, Requests, Role, Serve,
    Source, TcpHost, World, network,
};

/// Flows over a network of routers and links, run in virtual time and recorded.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Decides every random process.
    pub seed: u64,
    /// How many routers there are.
    pub routers: usize,
    /// The links between them.
    pub links: Vec<LinkSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// Who tells those flows their rates that have nobody else to.
    pub controller: ControllerConfig,
    /// How long it runs.
    pub duration: Duration,
    /// When the measurement window begins; it ends with the run.
    pub warmup: Duration,
    /// How often counters are read.
    pub sample: Duration,
    /// Of each flow, the time that so many bytes take from the window's beginning is recorded; the
    /// run ends when all have them.
    pub measure: Option<u64>,
    /// Whether to stop as soon as every flow that has an end has come to it.
    pub until_done: bool,
    /// Whether every packet of TCP and DFCP passes through the wire format and back; the recording
    /// is the same.
    pub wire: bool,
}

/// A link between two routers, in one direction.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub from: usize,
    /// Where it leads.
    pub to: usize,
    /// What it does.
    pub config: LinkConfig,
    /// Whether it is recorded.
    pub bottleneck: bool,
}

/// A flow between two hosts of its own.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its name.
    pub name: String,
    /// The router that its sender is behind.
    pub from: usize,
    /// The router that its receiver is behind.
    pub to: usize,
    /// When it begins.
    pub start: Time,
    /// What transports it.
    pub transport: Transport,
    /// What is transported.
    pub application: Application,
    /// The sender's link to its router. Of thousands of flows most have the same.
    pub access: Arc<LinkConfig>,
    /// The receiver's link to its router, which carries what goes back.
    pub back: Arc<LinkConfig>,
    /// The traffic class of its packets.
    pub class: u8,
    /// What the subflows of the kernel's Multipath TCP cross, which the testbed has; none is plain
    /// TCP.
    pub subflows: Vec<Subflow>,
}

/// The links between routers that a subflow crosses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subflow {
    /// Towards the receiver, by their places in the experiment's list.
    pub forth: Vec<usize>,
    /// Towards the sender.
    pub back: Vec<usize>,
}

/// What transports a flow.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP. Of thousands of flows most behave the same.
    Tcp(Arc<tcp::Config>),
    /// DFCP, with blocks of this size if one is given.
    Dfcp(Box<dfcp::Config>, Option<u32>),
    /// The DFCP of 2015.
    Published(Box<published::Config>, Control),
    /// Nothing: datagrams.
    Datagrams,
    /// What a command makes of it. It runs at the sender, another perhaps at the receiver; on the
    /// testbed only.
    Command {
        /// The command line for `sh` at the sender, from the flow's start on.
        sender: String,
        /// The same at the receiver, from the beginning; empty is none.
        receiver: String,
    },
}

/// What is the network's part in a flow of the DFCP of 2015.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Whether the network's controller decides its rate.
    pub by_controller: bool,
    /// The traffic class of what carries no data.
    pub class: u8,
}

/// What is transported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Application {
    /// What a source gives.
    Source(Pattern),
    /// Requests and answers; TCP only.
    Requests(Requests),
}

/// What is to be kept of a run beside its recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// A capture of so many of the first packets that the flows' senders send and receive; zero for
    /// none.
    pub capture: u64,
    /// Every packet's life, in this detail.
    pub packets: Option<Detail>,
    /// What the flows' senders do and believe, as a qlog.
    pub qlog: bool,
}

/// What there is to see of a run at a sample.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Who watches the packets, if somebody does.
    pub recorder: Option<&'a Recorder>,
    /// What the qlog says since the last sample, whole records; at the last sample that is all that
    /// is left.
    pub qlog: Option<Records>,
}

/// What was kept of a run.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its recording.
    pub recording: Recording,
    /// The capture, if there was to be one.
    pub capture: Option<Capture>,
    /// Every packet's life, if it was to be kept.
    pub trace: Option<Trace>,
}

/// The nodes of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) sender: NodeIndex,
    pub(crate) receiver: NodeIndex,
}

/// The nodes of a running experiment.
pub(crate) struct Running {
    pub(crate) world: World,
    pub(crate) ends: Vec<Ends>,
    /// By [`LinkSpec`].
    pub(crate) links: Vec<NodeIndex>,
}

impl Experiment {
    /// Whether only the testbed can run it: which flow is to blame, and for what.
    pub fn testbed_only(&self) -> Option<(&FlowSpec, &'static str)> {
        self.flows.iter().find_map(|flow| match flow.transport {
            Transport::Command { .. } => Some((flow, "commands run")),
            _ if !flow.subflows.is_empty() => Some((flow, "Multipath TCP runs")),
            _ => None,
        })
    }

    /// The links that packets from one router to another cross, in their order: as few as possible;
    /// of several such ways, the one whose first link was made first. `None` if no way leads there.
    pub fn route(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let ends: Vec<_> = self.links.iter().map(|link| (link.from, link.to)).collect();
        network::route(self.routers, &ends, from, to)
    }

    /// Runs it and gives what was recorded; `None` if `stop` said so, which is asked at each
    /// sample.
    pub fn run(&self, mut stop: impl FnMut() -> bool) -> Option<Recording> {
        Some(self.run_watched(Watch::default(), |_| stop())?.recording)
    }

    /// The same, with more to be kept of its packets; `stop` is shown what there is of them.
    pub fn run_watched(
        &self,
        watch: Watch,
        mut stop: impl FnMut(Seen<'_>) -> bool,
    ) -> Option<Watched> {
        let mut running = self.build();
        if watch.capture > 0 {
            let senders = running.ends.iter().map(|ends| ends.sender);
            let capture = Capture::new(senders, watch.capture);
            running.world.set_capture(capture);
        }
        if let Some(detail) = watch.packets {
            let recorder = self.recorder(&running, detail);
            running.world.set_recorder(recorder);
        }
        if watch.qlog {
            let flows = running.ends.iter().zip(&self.flows);
            let flows =
                flows.map(|(ends, flow)| (ends.sender, &*flow.name, flow.transport.protocol()));
            running.world.set_qlog(Qlog::new(flows));
        }
        let mut observation = Observation::new(self);
        running.world.start();
        let end = Time::ZERO + self.duration;
        let window = Time::ZERO + self.warmup;
        let mut at = Time::ZERO;
        observation.sample(self, &mut running);
        if self.warmup == Duration::ZERO {
            observation.begin_window();
        }
        while at < end {
            let next = (at + self.sample.max(Duration::from_nanos(1))).min(end);
            // The window begins with a sample of its own, wherever the others lie.
            let next = if at < window { next.min(window) } else { next };
            at = next;
            running.world.run_to(at);
            observation.sample(self, &mut running);
            if at == window {
                observation.begin_window();
            }
            let qlog = running.world.qlog_mut().map(Qlog::take);
            if stop(Seen { recorder: running.world.recorder(), qlog }) {
                return None;
            }
            if observation.all_measured(self) {
                break;
            }
            if self.until_done && self.all_done(&running) {
                break;
            }
        }
        let events = running.world.processed();
        let capture = running.world.capture().cloned();
        let trace = running.world.take_recorder().map(Recorder::finish);
        let stations = observation.stations(&running);
        drop(running);
        let mut recording = observation.finish(self, &stations, at);
        recording.events = events;
        Some(Watched { recording, capture, trace })
    }

    /// Who watches the packets: senders on the left, bottlenecks, receivers.
    fn recorder(&self, running: &Running, detail: Detail) -> Recorder {
        let mut recorder = Recorder::new("simulation", detail);
        let hosts = || (0u32..).zip(&running.ends).zip(&self.flows);
        for ((number, ends), flow) in hosts() {
            recorder.host(ends.sender, HostId(2 * number), &format!("{} sender", flow.name));
        }
        for (spec, link) in self.links.iter().zip(&running.links) {
            match spec.bottleneck {
                true => recorder.queue(*link, &spec.name, spec.config.delay),
                false => recorder.line(*link),
            }
        }
        for ((number, ends), flow) in hosts() {
            recorder.host(
                ends.receiver,
                HostId(2 * number + 1),
                &format!("{} receiver", flow.name),
            );
            let unit = match flow.transport {
                Transport::Tcp(_) => "bytes",
                Transport::Dfcp(..) | Transport::Published(..) => "symbols",
                Transport::Datagrams | Transport::Command { .. } => "datagrams",
            };
            recorder.flow(&flow.name, flow.transport.protocol(), unit);
        }
        recorder
    }

    fn all_done(&self, running: &Running) -> bool {
        let mut with_end = self.flows.iter().zip(&running.ends).filter(|(flow, _)| flow.has_end());
        with_end.all(|(_, ends)| match running.world.element(ends.receiver) {
            Element::Tcp(host) => host.moments().completed.is_some() || host.moments().aborted,
            Element::Published(host) => {
                host.moments().completed.is_some() || host.moments().aborted
            }
            Element::Host(host) => host.is_finished(),
            _ => true,
        })
    }

    fn build(&self) -> Running {
        let mut network = Network::new(self.seed);
        for _ in 0..self.routers {
            network.router();
        }
        let links = self
            .links
            .iter()
            .map(|link| network.link(&link.name, link.from, link.to, link.config.clone()));
        let links: Vec<NodeIndex> = links.collect();
        // A flow has two hosts, and two links of its own if they are in no bundle.
        network.reserve(4 * self.flows.len(), 2 * self.flows.len());
        let mut shared = Shared::default();
        let ends = (0u32..).zip(&self.flows).map(|(number, flow)| {
            let hosts = [HostId(2 * number), HostId(2 * number + 1)];
            let [sender, receiver] = self.hosts(number, flow, hosts, &mut shared);
            let mut host = |id, router, element, side: &str, config: &LinkConfig| {
                let name = format!("{}/{side}", flow.name);
                let uplink = (*config != LinkConfig::default()).then(|| (&*name, config.clone()));
                network.host(id, router, element, uplink)
            };
            Ends {
                sender: host(hosts[0], flow.from, sender, "access", &flow.access),
                receiver: host(hosts[1], flow.to, receiver, "back", &flow.back),
            }
        });
        let ends: Vec<Ends> = ends.collect();
        let senders = ends.iter().map(|ends| ends.sender).collect::<Vec<_>>();
        self.add_controller(&mut network, &senders);
        Running { world: network.build(), ends, links }
    }

    /// The address behind those of all hosts.
    fn controller_id(&self) -> HostId {
        HostId(2 * self.flows.len() as u32)
    }

    /// Adds a controller if there is a flow for it, with a way to the senders that is nobody
    /// else's.
    fn add_controller(&self, network: &mut Network, senders: &[NodeIndex]) {
        let is_controlled = |spec: &FlowSpec| match &spec.transport {
            Transport::Published(_, control) => control.by_controller,
            _ => false,
        };
        let flows: Vec<usize> =
            (0..self.flows.len()).filter(|flow| is_controlled(&self.flows[*flow])).collect();
        if flows.is_empty() {
            return;
        }
        let controlled = flows.iter().map(|index| {
            let spec = &self.flows[*index];
            Controlled {
                flow: FlowId(*index as u32),
                sender: HostId(2 * *index as u32),
                limit: spec.access.rate,
                links: self.route(spec.from, spec.to).unwrap_or_default(),
                is_active: false,
            }
        });
        let links = self.links.iter();
        let links = links.map(|link| (link.config.rate, link.config.rate_changes.clone()));
        let stream = Stream::new(self.seed, "controller");
        let (id, links) = (self.controller_id(), links.collect());
        let controller = Controller::new(id, self.controller, links, controlled.collect(), stream);
        let ways = flows.iter().map(|index| (HostId(2 * *index as u32), senders[*index]));
        network.aside(id, Element::Controller(Box::new(controller)), ways);
    }

    /// The sending and the receiving host of a flow.
    fn hosts(
        &self,
        number: u32,
        spec: &FlowSpec,
        [from, to]: [HostId; 2],
        shared: &mut Shared,
    ) -> [Element; 2] {
        let flow = FlowId(number);
        let mut stream = Stream::new(self.seed, &format!("{}/application", spec.name));
        let isn = [stream.next_u64() as u32, stream.next_u64() as u32];
        let class = spec.class;
        match &spec.transport {
            Transport::Tcp(config) => {
                // What is somebody else's governs who sends the data.
                let config = Arc::clone(config);
                let plain = match &config.foreign {
                    None => Arc::clone(&config),
                    Some(_) => shared.of(&tcp::Config { foreign: None, ..(*config).clone() }),
                };
                let (sender, requests) = match spec.application {
                    Application::Source(pattern) => {
                        let source = Source::new(pattern, spec.start, stream);
                        (TcpHost::sender(from, to, flow, config, source, isn[0]), None)
                    }
                    Application::Requests(requests) => {
                        // The client is the receiver of the flow's data: it asks the sender.
                        let asker = (spec.start, requests, stream);
                        let client = TcpHost::asker(to, from, flow, plain, asker, isn[0]);
                        let server =
                            TcpHost::receiver(from, to, flow, config, Some(requests), isn[1]);
                        return [server, client].map(|host| {
                            Element::Tcp(Box::new(host.with_class(class).with_wire(self.wire)))
                        });
                    }
                };
                let receiver = TcpHost::receiver(to, from, flow, plain, requests, isn[1]);
                [sender, receiver]
                    .map(|host| Element::Tcp(Box::new(host.with_class(class).with_wire(self.wire))))
            }
            Transport::Dfcp(config, block_size) => {
                let size = match spec.application {
                    Application::Source(Pattern::Object { size }) => size,
                    // More than the access link carries in the time that is left.
                    _ => self.more_than(spec),
                };
                let object = PatternObject { seed: self.seed ^ u64::from(number) };
                let config = |_| (**config).clone();
                let mut serve = Serve::new(config(()).params.codes().next(), size);
                serve.block_size = *block_size;
                let fetch = Role::Fetch(Fetch { size, ..Fetch::default() });
                let host = |id, peer, role| {
                    let host =
                        Host::new(id, peer, flow, config(()), role, object, self.wire, spec.start);
                    Element::Host(Box::new(host.with_class(class)))
                };
                [host(from, to, Role::Serve(serve)), host(to, from, fetch)]
            }
            Transport::Published(config, control) => {
                let pattern = match spec.application {
                    Application::Source(pattern) => pattern,
                    Application::Requests(_) => Pattern::Object { size: 0 },
                };
                let mut seed = || [0; 3].map(|_: u32| stream.next_u64() as u32);
                let seeds = [seed(), seed()];
                let source = Source::new(pattern, spec.start, stream);
                let config = || (**config).clone();
                let sender = PublishedHost::sender(from, to, flow, config(), source, seeds[0]);
                let sender = if control.by_controller {
                    sender.with_controller(self.controller_id())
                } else {
                    sender
                };
                let receiver = PublishedHost::receiver(to, from, flow, config(), seeds[1]);
                [sender, receiver].map(|host| {
                    let host = host.with_classes(class, control.class).with_wire(self.wire);
                    Element::Published(Box::new(host))
                })
            }
            // Of a command the simulator knows nothing; who runs it has refused it before.
            Transport::Datagrams | Transport::Command { .. } => {
                let pattern = match spec.application {
                    Application::Source(pattern) => pattern,
                    Application::Requests(_) => Pattern::Object { size: 0 },
                };
                let source = Source::new(pattern, spec.start, stream);
                let sender = DatagramHost::sender(from, to, flow, source).with_class(class);
                let receiver = DatagramHost::receiver(to, from, flow).with_class(class);
                [sender, receiver].map(|host| Element::Datagram(Box::new(host)))
            }
        }
    }

    /// More bytes than a flow can send while the experiment lasts.
    pub fn more_than(&self, spec: &FlowSpec) -> u64 {
        let rate = match spec.access.rate {
            Rate::MAX => {
                self.links.iter().map(|link| link.config.rate).filter(|r| *r < Rate::MAX).max()
            }
            rate => Some(rate),
        };
        rate.unwrap_or(Rate::from_mbps(10_000)).bytes_in(self.duration).saturating_mul(2).max(1)
    }
}

/// The configurations of the last receivers of flows that something foreign governs.
#[derive(Default)]
struct Shared {
    last: Vec<Arc<tcp::Config>>,
}

impl Shared {
    fn of(&mut self, config: &tcp::Config) -> Arc<tcp::Config> {
        if let Some(same) = self.last.iter().find(|last| ***last == *config) {
            return Arc::clone(same);
        }
        let config = Arc::new(config.clone());
        self.last.insert(0, Arc::clone(&config));
        self.last.truncate(8);
        config
    }
}

impl Transport {
    /// The names of protocols.
    pub(crate) const PROTOCOLS: [&'static str; 4] = ["TCP", "DFCP", "DFCP of 2015", "datagrams"];

    /// The name of its protocol.
    pub(crate) const fn protocol(&self) -> &'static str {
        let [tcp, dfcp, published, datagrams] = Self::PROTOCOLS;
        match self {
            Self::Tcp(_) => tcp,
            Self::Dfcp(..) => dfcp,
            Self::Published(..) => published,
            Self::Datagrams | Self::Command { .. } => datagrams,
        }
    }
}

impl FlowSpec {
    /// Whether it ends by itself.
    pub fn has_end(&self) -> bool {
        match self.application {
            _ if matches!(self.transport, Transport::Command { .. }) => true,
            Application::Source(Pattern::Object { .. }) => {
                !matches!(self.transport, Transport::Datagrams)
            }
            Application::Source(_) => false,
            Application::Requests(requests) => requests.count.is_some(),
        }
    }
}

impl LinkSpec {
    /// The buffer in the unit in which its queue is summed up: bytes, or packets.
    pub(crate) fn buffer(&self) -> Option<(f64, bool)> {
        match self.config.buffer {
            Limit::Bytes(size) if size == Size::from_bytes(u64::MAX) => None,
            Limit::Bytes(size) => Some((size.as_bytes() as f64, true)),
            Limit::Packets(packets) => Some((packets as f64, false)),
        }
    }
}
