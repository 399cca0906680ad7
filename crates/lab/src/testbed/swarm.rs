//! A swarm of a scenario with the library's own nodes, each in a namespace, over emulated links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fontis::transfer::{FileServer, Progress, ServerEvent, TransferError, share};
use fontis::udp::Clock;
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, SourceOptions, Url};
use fontis_base::{Duration, Probability, Rate, Size, Stream, Time};
use fontis_net::{Limit, LinkConfig, Loss};
use fontis_sim::Experiment;
use fontis_sim::experiment::run::{Watch, Watched};
use fontis_sim::experiment::swarm::{name, record, trace};
use fontis_sim::swarm::{
    SwarmConduct, SwarmFate, SwarmOutcome, SwarmPeer, SwarmSpec, SwarmTransfer,
};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::emulator::Emulator;
use super::environment::{Environment, Lateness};
use super::error::{TestbedError, system};
use super::namespace::Namespace;
use super::plan::{INTERFACE, addresses};
use super::shell::SuperPackets;
use super::tun::{Interface, Tun};
use super::way::{Flows, Route, Way};

/// The most nodes: each has an endpoint of its own, and all share this machine.
const MOST: usize = 200;
/// The blocks of an object of more than one.
const BLOCK: Size = Size::from_bytes(1 << 20);
const MTU: u32 = 1500;
const PORT: u16 = 4435;
/// The name under which the origin has the object.
const NAME: &str = "object";
/// A queue's time at the rate of its link.
const QUEUE: Duration = Duration::from_millis(50);
/// Time in which nobody has anything, before a node gives up.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Runs the swarm of an experiment; `None` if `stop` said so, which is asked at each sample.
pub(super) fn run(
    experiment: &Experiment,
    spec: &SwarmSpec,
    watch: Watch,
    mut stop: impl FnMut() -> bool,
) -> Result<Option<(Watched, Environment)>, TestbedError> {
    check(spec)?;
    let clock = Clock::start();
    let network = Star::new(spec, experiment.seed, clock)?;
    let mut environment = Environment::read(&network.nodes[0], MTU)?;
    environment.ignored = vec!["swarm.neighbours", "swarm.uploads", "swarm.downloads"];
    let folder = tempfile::tempdir().map_err(system("make a folder for what is fetched"))?;
    let object = folder.path().join(NAME);
    write_object(&object, experiment.seed, spec.blocks)
        .map_err(system("write a swarm's object"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(system("start threads"))?;
    let mut nodes = Nodes::start(spec, &network, folder.path(), clock, &runtime)?;
    let end = Time::ZERO + experiment.duration;
    let mut at = Time::ZERO;
    let mut is_stopped = false;
    while at < end && !nodes.are_done(spec) && !is_stopped {
        // Whoever leaves does so between two samples.
        let next = at + experiment.sample.clamp(Duration::from_millis(1), Duration::from_secs(1));
        at = next.min(end);
        std::thread::sleep(at.since(nodes.age(clock)).into());
        nodes.part(spec, nodes.age(clock));
        if let Some(problem) = nodes.failure() {
            return Err(problem);
        }
        if network.emulator.has_failed() {
            return Err(TestbedError::Unsupported("the links have ended before time".to_owned()));
        }
        is_stopped = stop();
    }
    let outcome = nodes.end();
    drop(runtime);
    {
        let lane = network.emulator.lane(0);
        environment.lateness = vec![Lateness::from(lane.lateness())];
        (environment.unsent, environment.strangers) = (lane.unsent(), lane.way.strangers);
    }
    network.emulator.stop()?;
    let recording = record(spec, &outcome, 0);
    let trace = watch.packets.map(|detail| trace(spec, &outcome, "testbed", detail));
    Ok((!is_stopped).then_some((Watched { recording, capture: None, trace }, environment)))
}

/// Refuses what the library's nodes do not do.
fn check(spec: &SwarmSpec) -> Result<(), TestbedError> {
    let unlike = |peer: &SwarmPeer| peer.conduct != SwarmConduct::Honest;
    let problem = if spec.peers.len() >= MOST {
        format!("a swarm on the testbed has fewer than {MOST} peers: lower swarm.peers")
    } else if spec.block != BLOCK {
        "on the testbed an object has blocks of 1 MiB: leave swarm.block out".to_owned()
    } else if spec.peers.iter().any(unlike) {
        "on the testbed all peers are honest: leave swarm.liars and swarm.silent out".to_owned()
    } else if spec.relays > 0 || spec.partition.is_some() {
        "on the testbed all nodes reach each other: leave swarm.relays and swarm.partition out"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(TestbedError::Unsupported(problem))
}

/// Writes random blocks.
fn write_object(path: &Path, seed: u64, blocks: u32) -> io::Result<()> {
    let mut random = Stream::new(seed, "swarm/object");
    let mut file = io::BufWriter::new(File::create(path)?);
    for _ in 0..u64::from(blocks) * BLOCK.as_bytes() / 8 {
        file.write_all(&random.next_u64().to_le_bytes())?;
    }
    file.flush()
}

fn hash(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize())
}

/// Namespaces around a router: each has an uplink and a downlink, whose queues all of its packets
/// share.
struct Star {
    /// The origin's first.
    nodes: Vec<Namespace>,
    emulator: Emulator,
}

/// The address of a node.
fn address(node: usize) -> IpAddr {
    addresses(node)[0]
}

/// The node of an address.
fn node_of(address: IpAddr, nodes: usize) -> Option<u32> {
    (0..nodes).find(|node| self::address(*node) == address).map(|node| node as u32)
}

impl Star {
    fn new(spec: &SwarmSpec, seed: u64, clock: Clock) -> Result<Self, TestbedError> {
        let all: Vec<&SwarmPeer> = [&spec.origin].into_iter().chain(&spec.peers).collect();
        let (mut nodes, mut ports, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for (number, peer) in all.iter().enumerate() {
            let namespace = Namespace::new()?;
            let interface = Interface {
                name: INTERFACE,
                addresses: &[(address(number), 16)],
                mtu: MTU,
                default_route: false,
                host_routes: &[],
                offload: true,
            };
            ports.push(Tun::open(&namespace, &interface)?);
            nodes.push(namespace);
            let bytes = |rate: Rate| rate.bytes_in(QUEUE).max(20 * u64::from(MTU));
            let queue = |rate: Rate| Limit::Bytes(Size::from_bytes(bytes(rate)));
            let half = spec.delay / 2;
            let up = LinkConfig { rate: peer.up, delay: half, ..LinkConfig::default() };
            let down = LinkConfig {
                rate: peer.down,
                delay: spec.delay - half,
                loss: Loss::Bernoulli(Probability::new(peer.loss)),
                ..LinkConfig::default()
            };
            links.push((format!("up {number}"), LinkConfig { buffer: queue(peer.up), ..up }));
            let down = LinkConfig { buffer: queue(peer.down), ..down };
            links.push((format!("down {number}"), down));
        }
        let count = nodes.len();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let routes = pairs.map(|(from, to)| Route::row(&[2 * from, 2 * to + 1], to, 0)).collect();
        let whole = SuperPackets::Auto.whole(&links.iter().map(|link| &link.1).collect::<Vec<_>>());
        let way = Way::new(seed, links, routes, Flows::Pairs(count), whole);
        let emulator = Emulator::start(clock, ports, vec![(way, (0..count).collect())])?;
        Ok(Self { nodes, emulator })
    }
}

/// What has happened so far.
#[derive(Default)]
struct Log {
    outcome: SwarmOutcome,
    failure: Option<String>,
    sent_by_origin: u64,
    /// Who gave up.
    alone: BTreeSet<u32>,
}

fn lock(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nodes at work. Time is that since they began.
struct Nodes<'a> {
    log: Arc<Mutex<Log>>,
    origin: Option<(Endpoint, JoinHandle<()>)>,
    /// By node, without the origin; none has left.
    peers: BTreeMap<u32, (Endpoint, JoinHandle<()>)>,
    began: Time,
    runtime: &'a Runtime,
}

impl<'a> Nodes<'a> {
    fn start(
        spec: &SwarmSpec,
        network: &Star,
        folder: &Path,
        clock: Clock,
        runtime: &'a Runtime,
    ) -> Result<Self, TestbedError> {
        let bind = |node: usize, identity: &Identity| {
            let config = EndpointConfig {
                accept: Accept::Anyone,
                ..EndpointConfig::new(*identity.secret())
            };
            let problem = |problem: String| TestbedError::Flow { flow: name(node as u32), problem };
            let _inside = runtime.enter();
            network.nodes[node].run(|| {
                Endpoint::bind(SocketAddr::new(address(node), PORT), config)
                    .map_err(|error| problem(error.to_string()))
            })
        };
        let count = network.nodes.len();
        let identity = Identity::generate();
        let log = Arc::<Mutex<Log>>::default();
        lock(&log).outcome.done = vec![None; spec.peers.len()];
        let endpoint = bind(0, &identity)?;
        let object = folder.join(NAME);
        let hashed = hash(&object).map_err(system("read a swarm's object"))?;
        let server =
            FileServer::of_object(endpoint.clone(), &object, &SourceOptions::default(), None)
                .map_err(|error| TestbedError::Flow {
                    flow: name(0),
                    problem: error.to_string(),
                })?;
        let serving = runtime.spawn(async move { server.run(|_: ServerEvent| {}).await });
        let url = Url {
            host: address(0).to_string(),
            port: PORT,
            path: Some(NAME.to_owned()),
            key: identity.public(),
            secret: None,
        };
        let mut endpoints = Vec::new();
        for node in 1..count {
            endpoints.push(bind(node, &Identity::generate())?);
        }
        let began = clock.now();
        let mut peers = BTreeMap::new();
        for (node, endpoint) in (1..).zip(endpoints) {
            let member = Member {
                node,
                count,
                joins: spec.peers[node as usize - 1].joins,
                endpoint: endpoint.clone(),
                url: url.clone(),
                dest: Dest::Path(folder.join(node.to_string())),
                object: hashed,
                log: log.clone(),
                since: Since { clock, began },
            };
            peers.insert(node, (endpoint, runtime.spawn(member.fetch())));
        }
        Ok(Self { log, origin: Some((endpoint, serving)), peers, began, runtime })
    }

    /// The time since the nodes began.
    fn age(&self, clock: Clock) -> Time {
        Since { clock, began: self.began }.time()
    }

    /// Lets those leave whose time has come.
    fn part(&mut self, spec: &SwarmSpec, now: Time) {
        let mut log = lock(&self.log);
        let enough = spec.origin_sends.is_some_and(|most| log.sent_by_origin >= u64::from(most));
        if enough && let Some((endpoint, serving)) = self.origin.take() {
            serving.abort();
            self.runtime.spawn(endpoint.farewell());
            log.outcome.left.insert(0, now);
        }
        for (node, peer) in (1..).zip(&spec.peers) {
            if peer.leaves.is_some_and(|at| at <= now)
                && let Some((endpoint, fetching)) = self.peers.remove(&node)
            {
                fetching.abort();
                self.runtime.spawn(endpoint.farewell());
                log.outcome.left.insert(node, now);
            }
        }
    }

    /// Whether all who stay have everything, or have given up.
    fn are_done(&self, spec: &SwarmSpec) -> bool {
        let log = lock(&self.log);
        let is_done = |node: u32| {
            log.outcome.done[node as usize - 1].is_some()
                || log.outcome.left.contains_key(&node)
                || log.alone.contains(&node)
        };
        (1..=spec.peers.len() as u32).all(is_done)
    }

    fn failure(&self) -> Option<TestbedError> {
        let problem = lock(&self.log).failure.take()?;
        Some(TestbedError::Flow { flow: "swarm".to_owned(), problem })
    }

    /// Ends all; gives what came of it.
    fn end(self) -> SwarmOutcome {
        self.origin.into_iter().for_each(|(_, serving)| serving.abort());
        self.peers.into_values().for_each(|(_, fetching)| fetching.abort());
        let mut outcome = std::mem::take(&mut lock(&self.log).outcome);
        outcome.transfers.sort_by_key(|one| one.ended);
        outcome
    }
}

/// A clock that counts from when the nodes began.
#[derive(Clone, Copy)]
struct Since {
    clock: Clock,
    began: Time,
}

impl Since {
    fn time(self) -> Time {
        Time::ZERO + self.clock.now().since(self.began)
    }
}

/// A peer, and what it needs.
struct Member {
    node: u32,
    count: usize,
    joins: Time,
    endpoint: Endpoint,
    url: Url,
    dest: Dest,
    object: blake3::Hash,
    log: Arc<Mutex<Log>>,
    since: Since,
}

impl Member {
    /// Fetches the object when it is time, compares it, and sends it on until the run is over.
    async fn fetch(self) {
        tokio::time::sleep(self.joins.since(self.since.time()).into()).await;
        let remote = SocketAddr::new(address(0), PORT);
        let progress = |now: Progress| self.see(&now);
        let options = SinkOptions::default();
        let shared =
            share(&self.endpoint, remote, &self.url, &self.dest, options, PATIENCE, progress).await;
        let at = self.since.time();
        let (report, _sharing) = match shared {
            Ok(shared) => shared,
            // Nobody that is left has the rest: it is not complete, which the recording says.
            Err(TransferError::Alone) => {
                lock(&self.log).alone.insert(self.node);
                return;
            }
            Err(error) => return self.fail(error.to_string()),
        };
        let got = report.path.clone().unwrap_or_default();
        let hashed = tokio::task::spawn_blocking(move || {
            let hashed = hash(&got);
            // Tens of copies would fill a disk of memory.
            let _ = std::fs::remove_file(got);
            hashed
        });
        if !matches!(hashed.await, Ok(Ok(hash)) if hash == self.object) {
            return self.fail("it has other bytes than the origin".to_owned());
        }
        lock(&self.log).outcome.done[self.node as usize - 1] = Some(at);
        std::future::pending::<()>().await;
    }

    fn fail(&self, problem: String) {
        lock(&self.log).failure.get_or_insert(format!("{}: {problem}", name(self.node)));
    }

    fn see(&self, progress: &Progress) {
        let ended = self.since.time();
        match progress {
            Progress::Fed { remote, block, took, .. } => {
                let Some(from) = node_of(remote.ip(), self.count) else { return };
                let begun = Time::ZERO + ended.since(Time::ZERO + Duration::from(*took));
                let (to, block, fate) = (self.node, *block, SwarmFate::Came);
                let mut log = lock(&self.log);
                log.sent_by_origin += u64::from(from == 0);
                log.outcome.transfers.push(SwarmTransfer { from, to, block, begun, ended, fate });
            }
            Progress::Dropped { remote, .. } => {
                let Some(from) = node_of(remote.ip(), self.count) else { return };
                lock(&self.log).outcome.named.entry(from).or_insert(ended);
            }
            _ => {}
        }
    }
}
