//! One client that fetches an object from several real servers in one world.
//!
//! The client may have two interfaces, of which the second comes and goes, loses all or is slow.
//! Some servers have another object under its name, send wrong blocks, or do not have it; servers
//! crash, come back or stay away, and the network reaches some of them only. The client crashes and
//! goes on, on a disk with every trouble. It may not give wrong bytes a final name, lose what it
//! reported as stored, fetch what is intact, blame a server that is honest, or wait for ever; it
//! succeeds as long as one honest server is there; a server that lies is named; in the end nothing
//! is held in memory for anybody.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use fontis_base::Stream;

use super::disk::Disk;
use super::net::{self, Trouble};
use super::site::{Honesty, MEMORY, NAME, Site, endpoint, object, whole_blocks, whole_bytes};
use super::telling::Telling;
use super::transfers::{held, lock};
use super::{first_seed, note, runs, world};
use crate::dest::Dest;
use crate::endpoint::{Accept, Endpoint, LocalInterface};
use crate::hash_tree::HashTree;
use crate::identity::Identity;
use crate::sink::SinkOptions;
use crate::transfer::{self, Report, SourceServer, TransferError};

/// The time in which a run is over: much longer than all timeouts of the library.
const LIMIT: Duration = Duration::from_secs(900);
/// The time for a server to answer.
const ANSWER: Duration = Duration::from_secs(60);
/// Attempts after which a transfer is taken for one that never succeeds.
const ATTEMPTS: u32 = 14;
/// The time that the client waits before trying again, times the attempts so far.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bytes that an endpoint of the client may hold where memory is scarce, which it is for so many
/// attempts.
const LITTLE: u64 = 200 << 10;
const SCARCE: u32 = 3;
/// The time in which a lie is noticed on a network without trouble, after a server has begun.
const NOTICED: Duration = Duration::from_secs(12);

/// Seeds that have found something: a server that answers nothing was waited for for ever when the
/// connection to the honest one was lost (103); a client that had no memory for what it had asked
/// for waited for it for ever (28); one that had none for a block that had begun blamed the server
/// that gave it up (5904).
const FOUND: [u64; 3] = [103, 28, 5904];

/// The interfaces of the client's process.
#[derive(Default)]
struct Interfaces {
    /// Beside the first.
    others: Vec<LocalInterface>,
    endpoints: Vec<Endpoint>,
}

struct Gathering {
    sites: Vec<Site>,
    interfaces: Arc<Mutex<Interfaces>>,
    content: Vec<u8>,
    tree: Arc<HashTree>,
    disk: Disk,
    telling: Arc<Mutex<Telling>>,
    attempts: u32,
    is_done: bool,
    /// Whether the object was reported as stored, so that it is there for ever.
    is_promised: bool,
    /// Bytes of the partial that were whole when the client's process began.
    intact: u64,
    is_scarce: bool,
    /// Whether anything but the network has troubled the run.
    is_hurt: bool,
    is_smooth: bool,
    /// The time for which the network carried nothing.
    silent: Duration,
    random: Stream,
    _world: world::Running,
}

fn client() -> &'static Identity {
    static CLIENT: OnceLock<Identity> = OnceLock::new();
    CLIENT.get_or_init(|| Identity::of_secret([9; 32].into()))
}

impl Interfaces {
    /// A second interface, by chance, and what happens to both; also whether that hurts.
    fn any(seed: u64) -> (Arc<Mutex<Self>>, bool) {
        let mut random = Stream::new(seed, "interfaces");
        let interfaces = Arc::<Mutex<Self>>::default();
        if random.below(2) == 0 {
            return (interfaces, false);
        }
        let [first, address] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 1, 1])];
        let second =
            LocalInterface { name: "second".to_owned(), address, spare: random.below(4) == 0 };
        note(|| format!("{second:?}"));
        if random.below(2) == 0 {
            lock(&interfaces).others.push(second.clone());
        }
        let mut is_hurt = false;
        for _ in 0..random.below(6) {
            let most = [100_000, 2_000_000][random.below(2) as usize];
            let at = Duration::from_micros(random.below(most));
            let time = Duration::from_millis(random.below(8_000));
            let (kind, interfaces) = (random.below(6), interfaces.clone());
            let others = if kind == 0 { Vec::new() } else { vec![second.clone()] };
            is_hurt |= kind == 5;
            world::after(at, move || {
                note(|| format!("something of kind {kind} happens to an interface"));
                match kind {
                    0..=2 => lock(&interfaces).use_others(others),
                    3 => net::cut(address, time),
                    4 => net::slow(address, time / 20),
                    _ => net::cut(first, time),
                }
            });
        }
        (interfaces, is_hurt)
    }

    fn use_others(&mut self, others: Vec<LocalInterface>) {
        for endpoint in &self.endpoints {
            endpoint.use_interfaces(others.clone());
        }
        self.others = others;
    }
}

impl Gathering {
    fn new(seed: u64) -> Self {
        let mut random = Stream::new(seed, "sources");
        let (content, tree) = object(&mut random);
        let count = 2 + random.below(3) as usize;
        let sites: Vec<_> =
            (0..count).map(|number| Site::new(number, &content, &tree, &mut random)).collect();
        let disk = Disk::new(seed, u64::MAX);
        disk.writeback([0, 5][random.below(2) as usize]);
        let trouble =
            [Trouble::default(), Trouble::any(&mut random)][random.below(4).min(1) as usize];
        net::begin(seed, trouble);
        let kinds: Vec<_> = sites.iter().map(|site| (site.honesty, site.rate)).collect();
        note(|| format!("{} bytes from {kinds:?}, {trouble:?}", content.len()));
        let machines = std::iter::once(Some(disk.clone())).chain(vec![None; count]).collect();
        let world = world::begin(seed, machines);
        world::sort();
        let (interfaces, is_hurt) = Interfaces::any(seed);
        let is_scarce = Stream::new(seed, "memory").below(8) == 0;
        Self {
            sites,
            interfaces,
            content,
            tree,
            disk,
            telling: Arc::default(),
            attempts: 0,
            is_done: false,
            is_promised: false,
            intact: 0,
            is_scarce,
            is_hurt: is_hurt || is_scarce,
            is_smooth: trouble.is_smooth(),
            silent: Duration::ZERO,
            random,
            _world: world,
        }
    }

    /// Begins the process of the client, unless the object is there.
    fn start(&mut self) -> Result<(), String> {
        self.telling = Arc::default();
        lock(&self.interfaces).endpoints.clear();
        if self.is_stored()? {
            // It crashed between the name and the word.
            self.is_done = true;
            return Ok(());
        }
        let servers: Vec<_> = self.sites.iter().map(|site| (site.address, site.url())).collect();
        let (telling, size) = (self.telling.clone(), self.content.len() as u64);
        let begin = world::now() + PATIENCE * self.attempts;
        let interfaces = self.interfaces.clone();
        let is_scarce = self.is_scarce && self.attempts < SCARCE;
        let memory = if is_scarce { LITTLE } else { MEMORY };
        world::on(0, || {
            world::spawn(async move {
                world::until(begin).await;
                let any = SocketAddr::from(([0, 0, 0, 0], 0));
                let of = |(remote, url)| SourceServer {
                    endpoint: endpoint(client(), any, Accept::None, memory),
                    remote,
                    url,
                };
                let servers: Vec<_> = servers.into_iter().map(of).collect();
                let endpoints: Vec<_> =
                    servers.iter().map(|server| server.endpoint.clone()).collect();
                {
                    let mut interfaces = lock(&interfaces);
                    interfaces.endpoints.clone_from(&endpoints);
                    let others = interfaces.others.clone();
                    interfaces.use_others(others);
                }
                let (dest, options) = (Dest::new("/"), SinkOptions::default());
                let see = |progress| {
                    note(|| format!("the client sees {progress:?}"));
                    lock(&telling).see(progress, size);
                };
                let got = transfer::get_from(servers, &dest, options, ANSWER, see).await;
                for endpoint in endpoints {
                    endpoint.farewell().await;
                }
                lock(&telling).result = Some(got);
            });
        });
        self.intact = self.intact_bytes();
        note(|| format!("the client begins, has {}", self.intact));
        self.attempts += 1;
        if self.attempts > ATTEMPTS {
            return Err(format!("{} attempts were not enough", self.attempts));
        }
        Ok(())
    }

    /// Whether an object has the name; nothing but the object of a server may have it.
    fn is_stored(&self) -> Result<bool, String> {
        Ok(self.stored()?.is_some())
    }

    /// The tree of what has the name.
    fn stored(&self) -> Result<Option<&HashTree>, String> {
        let Some(there) = self.disk.read(NAME) else { return Ok(None) };
        if there == self.content {
            return Ok(Some(&self.tree));
        }
        let others = self.sites.iter().filter(|site| site.honesty == Honesty::Other);
        let found = others.into_iter().find(|site| site.bytes == there);
        found.map(|site| Some(&*site.tree)).ok_or_else(|| "wrong bytes have the name".to_owned())
    }

    /// Bytes of the partial that are whole blocks of the object.
    fn intact_bytes(&self) -> u64 {
        whole_bytes(&whole_blocks(&self.disk, &self.content, &self.tree), &self.tree)
    }

    /// Whether the client's process has ended since the last [`collect`](Self::collect).
    fn has_news(&self) -> impl Fn() -> bool + use<> {
        let (telling, disk, is_done) = (self.telling.clone(), self.disk.clone(), self.is_done);
        move || !is_done && lock(&telling).result.is_some() || disk.is_dead()
    }

    /// Takes a result, checks it, and begins a process that is to go on.
    fn collect(&mut self) -> Result<(), String> {
        if self.disk.is_dead() {
            let is_power_loss = self.random.below(2) == 0;
            self.end_client(is_power_loss)?;
        }
        let mut telling = std::mem::take(&mut *lock(&self.telling));
        let Some(result) = telling.result.take() else {
            *lock(&self.telling) = telling;
            return Ok(());
        };
        note(|| format!("the client has {result:?}"));
        world::end(0);
        if let Some(fault) = telling.fault {
            return Err(format!("it tells what cannot be: {fault}"));
        }
        self.check_blame(&telling.dropped, &result)?;
        match result {
            Ok(report) => {
                self.check_report(&report, &telling.dropped)?;
                (self.is_done, self.is_promised) = (true, true);
                Ok(())
            }
            Err(error) => {
                // Nothing authenticates a version negotiation: whoever changes packets can end an
                // attempt.
                let is_version = |error: &str| error.contains("speaks other versions");
                let mut errors = telling.dropped.iter().map(|(_, error)| error.as_str());
                let is_forged = errors.any(is_version) || is_version(&error.to_string());
                if !self.is_hurt && !is_forged {
                    return Err(format!("it failed: {error}; before {:?}", telling.dropped));
                }
                self.start()
            }
        }
    }

    fn check_report(
        &self,
        report: &Report,
        dropped: &[(SocketAddr, String)],
    ) -> Result<(), String> {
        let Some(stored) = self.stored()? else {
            return Err("what was reported as stored is not there".to_owned());
        };
        if report.hash != stored.root().to_hex().to_string() || report.bytes != stored.size() {
            return Err(format!("the report is wrong: {report:?}"));
        }
        let is_other = stored.root() != self.tree.root();
        let has_other = self.sites.iter().any(|site| site.honesty == Honesty::Other);
        if !has_other && !self.disk.has_failed() && report.resumed < self.intact {
            return Err(format!("{} were intact, {} resumed", self.intact, report.resumed));
        }
        if self.is_hurt || !self.is_smooth || is_other {
            return Ok(());
        }
        let liars = self.sites.iter().filter(|site| site.lies_always);
        for site in liars {
            let was_noticed = dropped.iter().any(|(remote, _)| *remote == site.address);
            let is_due = lock(&site.begun).is_some_and(|at| at + NOTICED < world::now());
            if is_due && !was_noticed {
                return Err(format!("{} lies, and was not dropped", site.address));
            }
        }
        Ok(())
    }

    /// Nobody is blamed but those who are to be blamed.
    fn check_blame(
        &self,
        dropped: &[(SocketAddr, String)],
        result: &Result<Report, TransferError>,
    ) -> Result<(), String> {
        let mut blamed: Vec<_> =
            dropped.iter().map(|(remote, error)| (*remote, error.clone())).collect();
        if let Err(
            error @ (TransferError::Poisoned { remote, .. }
            | TransferError::Protocol { remote, .. }
            | TransferError::Refused { remote, .. }
            | TransferError::Abandoned { remote }),
        ) = result
        {
            blamed.push((*remote, error.to_string()));
        }
        let mut roots = BTreeSet::new();
        for (remote, error) in &blamed {
            let Some(site) = self.sites.iter().find(|site| site.address == *remote) else {
                return Err(format!("nobody is at {remote}: {error}"));
            };
            let gives_up = site.honesty == Honesty::Failing;
            let is_just = if error.contains("sends other content than it has promised") {
                site.honesty == Honesty::Liar
            } else if error.contains("another content than the other servers have") {
                roots.insert(*site.tree.root().as_bytes());
                true
            } else if error.contains(" says: ") {
                site.honesty == Honesty::Without
            } else {
                !error.contains("broke the protocol")
                    && !error.contains("offers what")
                    && (gives_up || !error.contains("gave the transfer up"))
            };
            if !is_just {
                return Err(format!("{remote} is {:?}, and blamed: {error}", site.honesty));
            }
        }
        let has_stored = result.as_ref().is_ok_and(|report| {
            roots.iter().any(|root| blake3::Hash::from(*root).to_hex().to_string() == report.hash)
        });
        let contents: BTreeSet<_> =
            self.sites.iter().map(|site| *site.tree.root().as_bytes()).collect();
        if has_stored || !roots.is_empty() && roots.len() == contents.len() {
            return Err(format!("blamed for another content: {blamed:?}"));
        }
        let remotes: BTreeSet<_> = dropped.iter().map(|(remote, _)| *remote).collect();
        if remotes.len() != dropped.len() {
            return Err(format!("a server is dropped twice: {dropped:?}"));
        }
        Ok(())
    }

    /// Ends the process of the client and begins another.
    fn end_client(&mut self, is_power_loss: bool) -> Result<(), String> {
        note(|| format!("the client ends; power is lost: {is_power_loss}"));
        self.disk.crash();
        world::end(0);
        if is_power_loss {
            self.disk.lose_power();
        } else {
            self.disk.restart();
        }
        if self.is_promised && !self.is_stored()? {
            return Err("what was reported as stored is lost".to_owned());
        }
        if self.is_done { Ok(()) } else { self.start() }
    }

    /// Ends the process of a server, and begins another unless it stays away.
    fn end_server(&mut self, number: usize, is_gone: bool) {
        note(|| format!("server {number} ends; it stays away: {is_gone}"));
        let site = &mut self.sites[number];
        *lock(&site.endpoint) = None;
        world::end(number + 1);
        site.is_gone |= is_gone && number > 0;
        if !site.is_gone {
            site.start(number);
        }
    }

    /// Something happens beside what the network always does.
    fn fault(&mut self) -> Result<(), String> {
        let soon = self.disk.calls() + 1 + self.random.below(60);
        let number = self.random.below(self.sites.len() as u64) as usize;
        let time = Duration::from_millis(self.random.below(8_000));
        let kind = self.random.below(10);
        note(|| format!("fault {kind}"));
        match kind {
            0 => {
                let fixed: Vec<_> = self.sites.iter().map(|site| site.address).collect();
                net::rebind(&fixed);
                return Ok(());
            }
            1 => {
                net::silence(time);
                // A server forgets who does not confirm a handshake for five seconds, in which
                // both sides try four times.
                self.silent += time;
                self.is_hurt |= self.silent > Duration::from_secs(3);
                return Ok(());
            }
            2 => self.disk.crash_at(Some(soon)),
            3 => self.disk.fail_at(Some(soon)),
            4 => {
                let disk = self.disk.clone();
                disk.set_room(self.random.below(50_000));
                world::after(time / 4, move || disk.set_room(u64::MAX));
            }
            5 => self.end_client(false)?,
            6 => self.end_client(true)?,
            7 => self.end_server(number, false),
            8 => self.end_server(number, true),
            // Half of the servers that are out of reach remain so.
            _ => {
                let times = [time, if number == 0 { time } else { 2 * LIMIT }];
                let time = times[self.random.below(2) as usize];
                net::cut(self.sites[number].address.ip(), time);
            }
        }
        self.is_hurt = true;
        Ok(())
    }

    fn all(mut self) -> Result<blake3::Hash, String> {
        for (number, site) in self.sites.iter().enumerate() {
            site.start(number);
        }
        self.start()?;
        let faults = [0, 1 + self.random.below(6)][self.random.below(2) as usize];
        for _ in 0..faults {
            let most = [100_000, 1_500_000][self.random.below(2) as usize];
            let time = Duration::from_micros(self.random.below(most));
            world::run(time, self.has_news());
            self.collect()?;
            if self.is_done {
                break;
            }
            self.fault()?;
            self.check_budget()?;
        }
        let end = world::now() + LIMIT;
        while !self.is_done {
            if !world::run(end.saturating_sub(world::now()), self.has_news()) {
                return Err(format!(
                    "the transfer does not end: {:?}",
                    lock(&self.telling).dropped
                ));
            }
            self.collect()?;
        }
        self.check_memory()?;
        self.end_client(true)?;
        Ok(net::digest())
    }

    /// When the client is gone, no server holds anything for it.
    fn check_memory(&self) -> Result<(), String> {
        for _ in 0..10 {
            world::run(Duration::from_secs(300), || false);
            if self.held().iter().all(|held| *held == 0) {
                return Ok(());
            }
        }
        Err(format!("of a client that is gone {:?} bytes are held", self.held()))
    }

    /// The bytes that each server's endpoint holds.
    fn held(&self) -> Vec<u64> {
        let of = |(number, site): (usize, &Site)| held(number + 1, lock(&site.endpoint).clone()?);
        self.sites.iter().enumerate().filter_map(of).collect()
    }

    /// Nobody holds more than it may.
    fn check_budget(&self) -> Result<(), String> {
        let mut all = self.held();
        let endpoints = lock(&self.interfaces).endpoints.clone();
        all.extend(endpoints.into_iter().filter_map(|endpoint| held(0, endpoint)));
        note(|| format!("{all:?} bytes are held"));
        let is_within = all.iter().all(|held| *held <= MEMORY);
        if is_within { Ok(()) } else { Err(format!("endpoints hold {all:?} bytes")) }
    }
}

#[test]
fn whatever_servers_do_the_object_comes_and_is_right() {
    let first = first_seed(1);
    for seed in FOUND.into_iter().chain(first..first + runs(20_000).div_ceil(100)) {
        if let Err(fault) = Gathering::new(seed).all() {
            panic!("FONTIS_SEED={seed}: {fault}");
        }
    }
}

#[test]
fn a_seed_of_several_servers_is_one_run() {
    for seed in first_seed(1)..first_seed(1) + 5 {
        let digests = [(); 2].map(|()| Gathering::new(seed).all().unwrap());
        assert_eq!(digests[0], digests[1], "FONTIS_SEED={seed} is two runs");
    }
}
