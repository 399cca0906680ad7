//! A peer of a swarm, and its processes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fontis_base::{Rate, Stream};

use super::disk::Disk;
use super::site::{NAME, PORT, endpoint};
use super::telling::Telling;
use super::transfers::lock;
use super::{net, note, world};
use crate::dest::Dest;
use crate::endpoint::{Accept, Endpoint};
use crate::identity::Identity;
use crate::sink::SinkOptions;
use crate::transfer::{Progress, Report, share};
use crate::url::Url;

/// Bytes that an endpoint may hold for its peers: some thirty of the longest blocks.
pub(super) const MEMORY: u64 = 4 << 20;
/// The time in which nobody has what is lacking, and after which a peer gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time that a peer waits before trying again, times the attempts so far.
const PAUSE: Duration = Duration::from_millis(500);

/// What one sends on that gives nearly nothing.
const LITTLE: Rate = Rate::from_bps(20_000);

/// How long a peer stays that has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// As long as the run.
    Always,
    /// So long, and as long as it is needed.
    For(Duration),
    /// Not at all.
    Leaves,
}

pub(super) struct Node {
    /// Its machine.
    pub(super) number: usize,
    pub(super) disk: Disk,
    pub(super) stay: Stay,
    /// The rate at which it sends on.
    pub(super) rate: Option<Rate>,
    pub(super) telling: Arc<Mutex<Telling>>,
    pub(super) endpoint: Arc<Mutex<Option<Endpoint>>>,
    /// Its processes so far.
    pub(super) process: Arc<Mutex<u32>>,
    pub(super) may_leave: Arc<Mutex<bool>>,
    pub(super) attempts: u32,
    /// Whether it is to begin no more: it has everything, is gone, or nobody has the rest.
    pub(super) is_over: bool,
    /// Whether the object was reported as stored, so that it is there for ever.
    pub(super) is_promised: bool,
    /// Bytes of the partial that were whole when its process began, and of the object.
    intact: u64,
    size: u64,
}

/// The identity of a machine.
pub(super) fn identity(number: usize) -> Identity {
    Identity::of_secret([10 + number as u8; 32].into())
}

/// The address of its endpoint.
pub(super) fn address(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number as u8 + 1], PORT))
}

impl Node {
    pub(super) fn new(number: usize, seed: u64) -> Self {
        let mut random = Stream::new(seed ^ ((number as u64) << 40), "node");
        let disk = Disk::new(seed ^ ((number as u64) << 40), u64::MAX);
        disk.writeback([0, 5][random.below(2) as usize]);
        let time = Duration::from_millis(random.below(20_000));
        let stay = [Stay::Always, Stay::Always, Stay::For(time), Stay::Leaves];
        // Some send nothing on, or slowly.
        let rate = match random.below(8) {
            0 => Some(LITTLE),
            1..=4 => Some(Rate::from_bps(200_000 << random.below(8))),
            _ => None,
        };
        Self {
            number,
            disk,
            stay: stay[random.below(4) as usize],
            rate,
            telling: Arc::default(),
            endpoint: Arc::default(),
            process: Arc::default(),
            may_leave: Arc::default(),
            attempts: 0,
            is_over: false,
            is_promised: false,
            intact: 0,
            size: 0,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        address(self.number)
    }

    /// Whether its process runs.
    pub(super) fn runs(&self) -> bool {
        lock(&self.endpoint).is_some()
    }

    /// Whether it sends on what it has.
    pub(super) fn serves(&self) -> bool {
        let telling = lock(&self.telling);
        self.runs() && self.rate != Some(LITTLE) && telling.done.is_some() && !telling.has_left
    }

    /// Begins a process that fetches the object of `size` bytes, and begins at the node `first`.
    pub(super) fn start(&mut self, first: usize, size: u64, intact: u64) {
        (self.intact, self.size) = (intact, size);
        self.telling = Arc::default();
        *lock(&self.process) += 1;
        let (telling, running, may_leave) =
            (self.telling.clone(), self.endpoint.clone(), self.may_leave.clone());
        let (number, rate, stay) = (self.number, self.rate, self.stay);
        let begin = world::now() + PAUSE * (self.attempts - 1);
        world::on(number, || {
            world::spawn(async move {
                world::until(begin).await;
                let endpoint = endpoint(&identity(number), address(number), Accept::Anyone, MEMORY);
                endpoint.limit(rate);
                *lock(&running) = Some(endpoint.clone());
                let remote = net::seen(address(first));
                let (host, key) = (remote.ip().to_string(), identity(first).public());
                let path = Some(NAME.to_owned());
                let url = Url { host, port: PORT, path, key, secret: None };
                let see = |progress| {
                    if !matches!(progress, Progress::Moved { .. }) {
                        note(|| format!("peer {number} sees {progress:?}"));
                    }
                    lock(&telling).see(progress, size);
                };
                let (dest, options) = (Dest::new("/"), SinkOptions::default());
                match share(&endpoint, remote, &url, &dest, options, PATIENCE, see).await {
                    Ok((report, sharing)) => {
                        lock(&telling).result = Some(Ok(report));
                        match stay {
                            Stay::Leaves => {}
                            Stay::For(time) => sharing.last(time).await,
                            Stay::Always => {
                                while !*lock(&may_leave) {
                                    world::until(world::now() + Duration::from_secs(1)).await;
                                }
                                sharing.last(Duration::ZERO).await;
                            }
                        }
                        note(|| format!("peer {number} leaves"));
                        drop(sharing);
                        endpoint.farewell().await;
                        lock(&telling).has_left = true;
                    }
                    Err(error) => {
                        endpoint.farewell().await;
                        lock(&telling).result = Some(Err(error));
                    }
                }
            });
        });
    }

    /// Ends its process.
    pub(super) fn end(&mut self, is_power_loss: bool) {
        self.disk.crash();
        world::end(self.number);
        *lock(&self.endpoint) = None;
        self.telling = Arc::default();
        if is_power_loss {
            self.disk.lose_power();
        } else {
            self.disk.restart();
        }
    }

    /// Whether a report is that of its process.
    pub(super) fn check(&self, report: &Report) -> Result<(), String> {
        let done = lock(&self.telling).done;
        if done != Some(self.size) || report.bytes != self.size {
            return Err(format!("{done:?} bytes are told of {}, {report:?}", self.size));
        }
        if report.resumed < self.intact && !self.disk.has_failed() {
            return Err(format!("{} were intact, {} resumed", self.intact, report.resumed));
        }
        Ok(())
    }

    /// Nobody is blamed but the machine `liar`.
    pub(super) fn check_blame(&self, liar: usize) -> Result<(), String> {
        let telling = lock(&self.telling);
        if let Some(fault) = &telling.fault {
            return Err(format!("peer {} tells what cannot be: {fault}", self.number));
        }
        let is_just = |(remote, _): &&(SocketAddr, String)| remote.ip() == address(liar).ip();
        let wrong = telling.dropped.iter().find(|dropped| !is_just(dropped));
        match wrong {
            Some(wrong) => Err(format!("peer {} blames {wrong:?}", self.number)),
            None => Ok(()),
        }
    }
}
