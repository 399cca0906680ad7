//! The same file over the same path by several transports: who is there first.
//!
//! Start here: a [`Race`] is a path, a file and the [`Runner`]s. Each runner has its own links,
//! alike the others', and its own addresses. A receiver requests the file; its time ends with the
//! last byte, if the BLAKE3 hash is right.

mod picture;
mod quic;
mod tcp;
mod track;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Span;

use fontis::transfer::{self, FileServer, Progress};
use fontis::udp::Clock;
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, SinkOptions, Url};
use fontis_base::{Duration, Rate, Time};
use fontis_net::{FlowFacts, Limit, LinkConfig, Loss, QueueKind};
use fontis_sim::Experiment;
use fontis_sim::app::Application;
use fontis_sim::app::source::Pattern;
use fontis_sim::experiment::spec::{Destination, End, FlowSpec, LinkSpec};
use fontis_sim::host::rows::datagrams::Datagrams;

pub use picture::draw;
pub use track::Standing;

use self::track::{Prize, Start, Track, wait};
use super::error::{TestbedError, system};
use super::namespace::Namespace;
use super::network::{Network, Site, addresses};

/// A file, a path, and who races over it.
#[derive(Clone, Debug)]
pub struct Race {
    /// The file.
    pub file: PathBuf,
    /// The line's rate, both ways.
    pub rate: Rate,
    /// The round-trip time without queues.
    pub rtt: Duration,
    /// Random loss towards the receiver, before the queue.
    pub loss: Loss,
    /// The buffer.
    pub buffer: Limit,
    /// The queue.
    pub queue: QueueKind,
    /// The runners.
    pub runners: Vec<Runner>,
    /// After this time a race is over for those who have not arrived.
    pub limit: Duration,
    /// The seed of all losses; every runner has different losses.
    pub seed: u64,
}

/// A transport that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// Fontis's own, with its controller `auto`.
    Fontis,
    /// The kernel's TCP with this congestion control.
    Tcp(&'static str),
    /// QUIC by quinn, with its BBR.
    Quic,
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fontis => "fontis",
            Self::Tcp(name) => name,
            Self::Quic => "quic",
        })
    }
}

/// The congestion controls of kernels that race.
const TCP: [&str; 4] = ["cubic", "bbr", "reno", "vegas"];

impl FromStr for Runner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fontis" => Ok(Self::Fontis),
            "quic" => Ok(Self::Quic),
            _ => TCP.into_iter().find(|name| *name == text).map(Self::Tcp).ok_or_else(|| {
                format!("{text:?} does not race; choose of fontis, quic, {}", TCP.join(", "))
            }),
        }
    }
}

/// The result of a runner.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The runner.
    pub runner: Runner,
    /// The time from the first packet to the last verified byte; `None` if it did not finish in
    /// time, or the reason why it cannot.
    pub time: Result<Option<Span>, String>,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Seconds since the start, and bytes that had arrived.
    pub course: Vec<(f64, u64)>,
    /// The share of its packets that the path lost at random and in the queue.
    pub lost: [f64; 2],
}

impl Race {
    /// The least time that the file can take: two round trips, and the file in packets of 1500
    /// bytes, of which IP and UDP take 28.
    pub fn bound(&self, size: u64) -> Duration {
        let bytes = size.saturating_mul(1500) / 1472;
        self.rtt * 2 + self.rate.time_for(bytes)
    }

    /// Runs it, all at the same time. `watch` is called ten times a second; the race ends if it
    /// answers false.
    pub fn run(
        &self,
        mut watch: impl FnMut(&Standing) -> bool,
    ) -> Result<Vec<Finish>, TestbedError> {
        let file = Arc::new(Prize::open(&self.file)?);
        let experiment = self.experiment();
        let network = Network::new(&experiment, 1500)?;
        let room = format!("4096 131072 {}", 8 * self.rate.bdp(self.rtt).as_bytes().max(1 << 20));
        network.set_parameters(&[
            ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("net/ipv4/tcp_wmem", room.clone()),
            ("net/ipv4/tcp_rmem", room),
        ])?;
        let clock = Clock::start();
        let (sites, running) = network.start(&experiment, clock, None)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(system("start threads"))?;
        let folder = tempfile::tempdir().map_err(system("make a folder for what arrives"))?;
        let standing = Standing::new(self.runners.len());
        let stop = Arc::new(AtomicBool::new(false));
        let start = Time::ZERO + Duration::from_millis(100);
        let mut threads = Vec::new();
        for (index, runner) in self.runners.iter().enumerate() {
            let [from, to] = addresses(index);
            let track = Track {
                from: SocketAddr::new(from, 5001),
                to,
                file: Arc::clone(&file),
                arrival: folder.path().join(format!("{index}")),
                index,
                standing: standing.clone(),
                stop: Arc::clone(&stop),
                window: (8 * self.rate.bdp(self.rtt).as_bytes()).max(4 << 20),
            };
            let (sender, receivers) = Site::ends(&sites, &experiment, index);
            let (sides, start) = ([sender.namespace, receivers[0].namespace], (clock, start));
            match runner {
                Runner::Tcp(name) => threads.extend(tcp::start(track, name, sides, start)?),
                Runner::Quic => quic::start(track, sides, start, &runtime)?,
                Runner::Fontis => start_fontis(track, sides, start, &runtime)?,
            }
        }
        let mut courses = vec![vec![(0.0, 0)]; self.runners.len()];
        let mut goes_on = true;
        while goes_on {
            std::thread::sleep(Span::from_millis(100));
            let at = clock.now().since(start);
            for (lane, course) in courses.iter_mut().enumerate() {
                if standing.end(lane).is_none() {
                    course.push((at.as_secs_f64(), standing.bytes(lane)));
                }
            }
            let all_there = (0..self.runners.len()).all(|lane| standing.end(lane).is_some());
            goes_on = watch(&standing) && !all_there && at < self.limit;
            if running.has_failed() {
                return Err(TestbedError::Unsupported("the links have ended".to_owned()));
            }
        }
        let finish = |(index, mut course): (usize, Vec<(f64, u64)>)| {
            let (stats, ..) = running.link(index);
            let share = |count: u64| count as f64 / stats.entered.packets.max(1) as f64;
            let end = standing.end(index);
            let bytes = standing.bytes(index);
            if let Some(Ok(time)) = end {
                course.push((time.as_secs_f64(), bytes));
            }
            Finish {
                runner: self.runners[index],
                time: end.transpose(),
                bytes,
                course,
                lost: [share(stats.dropped.loss.packets), share(stats.dropped.queue.packets)],
            }
        };
        let finishes: Vec<Finish> = courses.into_iter().enumerate().map(finish).collect();
        stop.store(true, Ordering::Relaxed);
        runtime.shutdown_timeout(Span::from_millis(200));
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        running.stop()?;
        Ok(finishes)
    }

    /// A lane for each runner: two routers, a link there and one back.
    fn experiment(&self) -> Experiment {
        let link = LinkConfig {
            rate: self.rate,
            delay: self.rtt / 2,
            buffer: self.buffer,
            queue: self.queue,
            ..LinkConfig::default()
        };
        let lanes = 0..self.runners.len();
        let spec = |lane: usize, forth: bool| LinkSpec {
            name: format!("lane {lane}{}", if forth { "" } else { " back" }),
            from: 2 * lane + usize::from(!forth),
            to: 2 * lane + usize::from(forth),
            config: LinkConfig { loss: if forth { self.loss } else { Loss::None }, ..link.clone() },
            bottleneck: forth,
        };
        let forth = lanes.clone().map(|lane| spec(lane, true));
        let back = lanes.clone().map(|lane| spec(lane, false));
        let flow = |lane: usize| FlowSpec {
            name: self.runners[lane].to_string(),
            from: End::Own { router: 2 * lane, link: Arc::default() },
            to: Destination::One(End::Own { router: 2 * lane + 1, link: Arc::default() }),
            start: Time::ZERO,
            transport: Arc::new(Datagrams),
            application: Application::Source(Pattern::Bulk),
            class: 0,
            facts: FlowFacts::default(),
            paths: Vec::new(),
            subflows: Vec::new(),
        };
        Experiment {
            seed: self.seed,
            vertices: 2 * self.runners.len(),
            machines: Vec::new(),
            groups: Vec::new(),
            links: forth.chain(back).collect(),
            flows: lanes.map(flow).collect(),
            swarm: None,
            duration: self.limit,
            warmup: Duration::ZERO,
            sample: Duration::from_millis(100),
            controller: Default::default(),
            measure: None,
            until_done: true,
            wire: true,
        }
    }
}

fn start_fontis(
    track: Track,
    [senders, receivers]: [&Namespace; 2],
    start: Start,
    runtime: &tokio::runtime::Runtime,
) -> Result<(), TestbedError> {
    let identity = Identity::generate();
    let failed = |problem: String| TestbedError::Flow { flow: "fontis".to_owned(), problem };
    let bind = |namespace: &Namespace, address, identity: &Identity, accept| {
        let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
        namespace.run(|| Endpoint::bind(address, config).map_err(|error| failed(error.to_string())))
    };
    let server = bind(senders, track.from, &identity, Accept::Anyone)?;
    let client = SocketAddr::new(track.to, 0);
    let client = bind(receivers, client, &Identity::generate(), Accept::None)?;
    let path = std::path::absolute(&track.file.path).map_err(system("find the file"))?;
    let (folder, name) = (path.parent(), path.file_name().and_then(|name| name.to_str()));
    let (Some(folder), Some(name)) = (folder, name) else {
        return Err(failed("the file's name must be UTF-8".to_owned()));
    };
    let url = Url {
        host: track.from.ip().to_string(),
        port: track.from.port(),
        path: Some(name.to_owned()),
        key: identity.public(),
        secret: None,
    };
    let server =
        FileServer::new(server, folder, None).map_err(|error| failed(error.to_string()))?;
    runtime.spawn(server.run(|_| {}));
    runtime.spawn(async move {
        tokio::time::sleep(wait(start)).await;
        let moved = |progress| {
            if let Progress::Moved { done, .. } = progress {
                track.moved(done);
            }
        };
        let dest = Dest::new(&track.arrival);
        let options = SinkOptions { overwrite: true, restart: true, ..SinkOptions::default() };
        let got = transfer::get(&client, track.from, &url, &dest, options, moved).await;
        // The report's time ends when the file is checked and has its name; then the connection is
        // closed, which takes a round trip that says nothing about the file.
        let took = got.as_ref().map_or(Span::ZERO, |report| report.duration);
        track.arrived(took, got.map(|report| report.hash).map_err(|error| error.to_string()));
    });
    Ok(())
}
