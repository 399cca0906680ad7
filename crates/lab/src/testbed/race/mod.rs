//! The same file over the same paths by several transports: who is there first.
//!
//! Start here: a [`Race`] is a file, paths and the [`Runner`]s. Each runner has a network of its
//! own with links like the others'. One that uses a single path has the best. A receiver requests
//! the file; its time ends with the last byte, if the BLAKE3 hash is right.

mod lane;
mod path;
mod picture;
mod quic;
mod runner;
mod tcp;
mod tquic;
mod track;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as Span;

use fontis::transfer::{self, FileServer, Progress};
use fontis::udp::Clock;
use fontis::{Accept, Dest, Endpoint, EndpointConfig, Identity, LocalInterface, SinkOptions, Url};
use fontis_base::{Duration, Rate};
use fontis_net::{Limit, QueueKind};

pub use path::{RacePath, UnknownRacePath};
pub use picture::draw;
pub use runner::Runner;
pub use track::Standing;

use self::lane::{Lane, Setting, window};
use self::track::{Prize, Start, Track, wait};
use super::error::{TestbedError, system};
use super::namespace::Namespace;
use super::plan::INTERFACE;

/// A file, paths, and who races over them.
#[derive(Clone, Debug)]
pub struct Race {
    /// The file.
    pub file: PathBuf,
    /// The paths, one at least.
    pub paths: Vec<RacePath>,
    /// The buffer of each; `None`: a bandwidth-delay product, and at least 20 packets.
    pub buffer: Option<Limit>,
    /// The queue.
    pub queue: QueueKind,
    /// The runners.
    pub runners: Vec<Runner>,
    /// After this time a race is over for those who have not arrived.
    pub limit: Duration,
    /// The seed of all losses; every runner has different losses.
    pub seed: u64,
    /// A folder for the qlogs of both ends of Fontis's transfers.
    pub qlog: Option<PathBuf>,
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
    /// The share of its packets that the paths lost at random and in queues.
    pub lost: [f64; 2],
}

impl Race {
    /// The least time that the file can take: two round trips of the shortest path, and the file in
    /// packets of 1500 bytes, of which IP and UDP take 28, over all paths.
    pub fn bound(&self, size: u64) -> Duration {
        let bytes = size.saturating_mul(1500) / 1472;
        let rtt = self.paths.iter().map(|path| path.rtt).min().unwrap_or_default();
        let rate: u64 = self.paths.iter().map(|path| path.rate.as_bps()).sum();
        rtt * 2 + Rate::from_bps(rate).time_for(bytes)
    }

    /// The paths of a runner: all, or the one that carries most, of equals the shortest.
    fn paths_of(&self, runner: Runner) -> Vec<RacePath> {
        if runner.is_multipath() {
            return self.paths.clone();
        }
        let best = self.paths.iter().max_by(|one, other| {
            one.goodput().total_cmp(&other.goodput()).then(other.rtt.cmp(&one.rtt))
        });
        best.copied().into_iter().collect()
    }

    /// Runs it, all at the same time. `watch` is called ten times a second; the race ends if it
    /// answers false.
    pub fn run(
        &self,
        mut watch: impl FnMut(&Standing) -> bool,
    ) -> Result<Vec<Finish>, TestbedError> {
        let file = Arc::new(Prize::open(&self.file)?);
        let clock = Clock::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(system("start threads"))?;
        let folder = tempfile::tempdir().map_err(system("make a folder for what arrives"))?;
        let standing = Standing::new(self.runners.len());
        let stop = Arc::new(AtomicBool::new(false));
        let lanes = self.runners.iter().map(|runner| {
            let paths = &self.paths_of(*runner);
            let Self { buffer, queue, limit, seed, .. } = *self;
            Lane::start(*runner, &Setting { paths, buffer, queue, limit, seed }, clock)
        });
        let lanes: Vec<Lane> = lanes.collect::<Result<_, _>>()?;
        let begin = clock.now() + Duration::from_millis(100);
        let mut threads = Vec::new();
        for (index, (runner, lane)) in self.runners.iter().zip(&lanes).enumerate() {
            let (from, to) = lane.addresses();
            let track = Track {
                from: SocketAddr::new(from, 5001),
                to,
                file: Arc::clone(&file),
                arrival: folder.path().join(format!("{index}")),
                index,
                standing: standing.clone(),
                stop: Arc::clone(&stop),
                window: window(&self.paths_of(*runner)),
            };
            let (sides, start) = (lane.sides(), (clock, begin));
            match runner {
                Runner::Tcp(name) => threads.extend(tcp::start(track, name, false, sides, start)?),
                Runner::Mptcp(name) => threads.extend(tcp::start(track, name, true, sides, start)?),
                Runner::Tquic => threads.extend(tquic::start(track, sides, start)?),
                Runner::Quic => quic::start(track, sides, start, &runtime)?,
                Runner::Fontis | Runner::FontisOne => {
                    start_fontis(track, self.qlog.as_ref(), sides, start, &runtime)?;
                }
            }
        }
        let mut courses = vec![vec![(0.0, 0)]; self.runners.len()];
        let mut goes_on = true;
        while goes_on {
            std::thread::sleep(Span::from_millis(100));
            let at = clock.now().since(begin);
            for (lane, course) in courses.iter_mut().enumerate() {
                if standing.end(lane).is_none() {
                    course.push((at.as_secs_f64(), standing.bytes(lane)));
                }
            }
            let all_there = (0..self.runners.len()).all(|lane| standing.end(lane).is_some());
            goes_on = watch(&standing) && !all_there && at < self.limit;
            if lanes.iter().any(Lane::has_failed) {
                return Err(TestbedError::Unsupported("the links have ended".to_owned()));
            }
        }
        let finish = |(index, mut course): (usize, Vec<(f64, u64)>)| {
            let end = standing.end(index);
            let bytes = standing.bytes(index);
            if let Some(Ok(time)) = end {
                course.push((time.as_secs_f64(), bytes));
            }
            let (runner, lost) = (self.runners[index], lanes[index].lost());
            Finish { runner, time: end.transpose(), bytes, course, lost }
        };
        let finishes: Vec<Finish> = courses.into_iter().enumerate().map(finish).collect();
        stop.store(true, Ordering::Relaxed);
        runtime.shutdown_timeout(Span::from_millis(200));
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        lanes.into_iter().try_for_each(Lane::stop)?;
        Ok(finishes)
    }
}

fn start_fontis(
    track: Track,
    qlog: Option<&PathBuf>,
    [senders, receivers]: [&Namespace; 2],
    start: Start,
    runtime: &tokio::runtime::Runtime,
) -> Result<(), TestbedError> {
    let identity = Identity::generate();
    let failed = |problem: String| TestbedError::Flow { flow: "fontis".to_owned(), problem };
    let bind = |namespace: &Namespace, address, identity: &Identity, accept| {
        let qlog = qlog.cloned();
        let config = EndpointConfig { accept, qlog, ..EndpointConfig::new(*identity.secret()) };
        namespace.run(|| Endpoint::bind(address, config).map_err(|error| failed(error.to_string())))
    };
    let server = bind(senders, track.from, &identity, Accept::Anyone)?;
    let client = SocketAddr::new(track.to[0], 0);
    let client = bind(receivers, client, &Identity::generate(), Accept::None)?;
    let interface = |address: &_| LocalInterface {
        name: INTERFACE.to_owned(),
        address: *address,
        spare: false,
    };
    client.use_interfaces(track.to[1..].iter().map(interface).collect());
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
