//! Real endpoints, servers and clients in one world.
//!
//! In a run some clients fetch from a server, or some senders send to a receiver, over a network
//! with every trouble, while processes crash and machines lose power. Nobody may get a wrong byte
//! under a final name, lose what was reported as stored, fetch what is intact, or wait for ever; a
//! transfer that nothing but the network troubles does not fail; in the end nothing is held in
//! memory for anybody.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use fontis_base::Stream;
use tempfile::TempDir;

use super::disk::Disk;
use super::net::{self, Trouble};
use super::{first_seed, note, runs, world};
use crate::dest::Dest;
use crate::endpoint::{Accept, Endpoint, EndpointConfig, EndpointStatus};
use crate::hash_tree::{HashTree, block_size_for};
use crate::identity::Identity;
use crate::sink::SinkOptions;
use crate::source::SourceOptions;
use crate::transfer::{self, FileServer, InboxOptions, Receiver};
use crate::url::{Secret, Url};

/// The sizes of the files that travel.
const SIZES: [usize; 6] = [0, 1, 1193, 20_000, 90_000, 300_000];
/// The port of the server or receiver.
const PORT: u16 = 4433;
/// The time in which a run is over: much longer than all timeouts of the library.
const LIMIT: Duration = Duration::from_secs(900);
/// The time that a network without trouble needs, beside some ways: 610 kB at the first rate.
const SMOOTH: Duration = Duration::from_millis(700);
/// Attempts after which a transfer is taken for one that never succeeds.
const ATTEMPTS: u32 = 12;
/// The time that somebody waits before trying again, times the attempts so far.
const PATIENCE: Duration = Duration::from_millis(500);

/// Seeds that have found something: a receiver whose disk was full at a checkpoint let its sender
/// wait for ever (31); a sender, or a client, that waited for an answer while its address changed
/// said nothing, so that the answer went to the old one (1036, 2315).
const FOUND: [u64; 3] = [31, 1036, 2315];

/// What all runs share: the files on the system's disk, and keys.
struct Fixture {
    folder: TempDir,
    contents: Vec<Vec<u8>>,
    trees: Vec<HashTree>,
    server: Identity,
    client: Identity,
    secret: Secret,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Stream::new(0, "contents");
        let mut contents = Vec::new();
        for size in SIZES {
            let mut bytes = vec![0; size];
            random.fill(&mut bytes);
            let path = folder.path().join(format!("{size}"));
            std::fs::write(&path, &bytes).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            file.set_times(std::fs::FileTimes::new().set_modified(then)).unwrap();
            contents.push(bytes);
        }
        let of = |bytes: &Vec<u8>| {
            HashTree::of_reader(&bytes[..], block_size_for(bytes.len() as u64), |_| ()).unwrap()
        };
        let trees = contents.iter().map(of).collect();
        let [server, client] = [1, 2].map(|key| Identity::of_secret([key; 32].into()));
        let secret = Secret::new(&[3; 32]).unwrap();
        Fixture { folder, contents, trees, server, client, secret }
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Get,
    Send,
}

type Outcome = Arc<Mutex<Option<Result<u64, String>>>>;

/// A client or a sender, and its object.
struct Peer {
    machine: usize,
    file: usize,
    /// The result of its process.
    outcome: Outcome,
    attempts: u32,
    is_done: bool,
    /// Whether its object was reported as stored, so that it is there for ever.
    is_promised: bool,
    /// Bytes of the partial that were whole when its process began.
    intact: u64,
}

struct Run {
    direction: Direction,
    address: SocketAddr,
    /// The disk of the receiver, or those of the clients.
    disks: Vec<Disk>,
    peers: Vec<Peer>,
    server: Arc<Mutex<Option<Endpoint>>>,
    /// Whether anything but the network has troubled the run.
    is_hurt: bool,
    /// Whether the network takes and changes nothing, and the time that is enough then.
    is_smooth: bool,
    smooth_time: Duration,
    /// The time for which the network carried nothing.
    silent: Duration,
    random: Stream,
    _world: world::Running,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn endpoint(identity: &Identity, address: SocketAddr, accept: Accept) -> Endpoint {
    let config = EndpointConfig { accept, ..EndpointConfig::new(*identity.secret()) };
    Endpoint::bind(address, config).unwrap()
}

/// The bytes that an endpoint of a machine holds for its peers; time goes on meanwhile.
pub(super) fn held(machine: usize, endpoint: Endpoint) -> Option<u64> {
    let held = Arc::new(Mutex::new(None));
    let told = held.clone();
    world::on(machine, || world::spawn(async move { *lock(&told) = endpoint.held().await }));
    world::run(Duration::from_secs(1), || lock(&held).is_some());
    *lock(&held)
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Stream::new(seed, "transfers");
        let direction = [Direction::Get, Direction::Send][random.below(2) as usize];
        let count = 1 + random.below(3) as usize;
        let disk = |number: usize| Disk::new(seed ^ ((number as u64) << 40), u64::MAX);
        let (disks, of_machines) = match direction {
            Direction::Send => {
                let disk = disk(0);
                let others = vec![None; count];
                (vec![disk.clone()], std::iter::once(Some(disk)).chain(others).collect())
            }
            Direction::Get => {
                let disks: Vec<_> = (1..=count).map(disk).collect();
                let own = disks.iter().cloned().map(Some);
                (disks.clone(), std::iter::once(None).chain(own).collect::<Vec<_>>())
            }
        };
        for disk in &disks {
            disk.writeback([0, 5][random.below(2) as usize]);
        }
        let mut files: Vec<usize> = (0..SIZES.len()).collect();
        let peers = (1..=count).map(|machine| {
            let file = files.swap_remove(random.below(files.len() as u64) as usize);
            let outcome = Outcome::default();
            Peer {
                machine,
                file,
                outcome,
                attempts: 0,
                is_done: false,
                is_promised: false,
                intact: 0,
            }
        });
        let peers = peers.collect();
        let trouble = Trouble::any(&mut random);
        let is_smooth = trouble.is_smooth();
        let smooth_time = SMOOTH + 40 * (trouble.delay + trouble.jitter);
        net::begin(seed, trouble);
        note(|| format!("{direction:?}, {count} peers, {trouble:?}"));
        let address = SocketAddr::from(([10, 0, 0, 1], PORT));
        let server = Arc::default();
        let world = world::begin(seed, of_machines);
        let (is_hurt, silent) = (false, Duration::ZERO);
        Self {
            direction,
            address,
            disks,
            peers,
            server,
            is_hurt,
            is_smooth,
            smooth_time,
            silent,
            random,
            _world: world,
        }
    }

    /// Begins the process of machine 0.
    fn start_server(&self) {
        let fixture = fixture();
        world::on(0, || {
            let endpoint = endpoint(&fixture.server, self.address, Accept::Anyone);
            *lock(&self.server) = Some(endpoint.clone());
            let secret = fixture.secret.clone();
            match self.direction {
                Direction::Get => {
                    let folder = fixture.folder.path();
                    let server = FileServer::new(endpoint, folder, Some(secret)).unwrap();
                    world::spawn(server.run(|event| note(|| format!("{event:?}"))));
                }
                Direction::Send => {
                    let options = InboxOptions { overwrite: true, ..InboxOptions::default() };
                    let receiver = Receiver::new(endpoint, Path::new("/"), secret, options);
                    world::spawn(receiver.unwrap().run(|event| note(|| format!("{event:?}"))));
                }
            }
        });
    }

    /// The disk that a peer's object is stored on.
    fn disk(&self, peer: usize) -> &Disk {
        match self.direction {
            Direction::Get => &self.disks[peer],
            Direction::Send => &self.disks[0],
        }
    }

    /// Begins the process of a peer, unless its object is there.
    fn start(&mut self, number: usize) -> Result<(), String> {
        let fixture = fixture();
        let is_there = self.is_stored(number)?;
        let (peer, disk) = (&self.peers[number], self.disk(number));
        let name = SIZES[peer.file].to_string();
        let intact = intact(disk, peer.file);
        if is_there && self.direction == Direction::Get {
            // It crashed between the name and the word.
            self.peers[number].is_done = true;
            return Ok(());
        }
        let (server, address, direction) = (fixture.server.public(), self.address, self.direction);
        let (secret, outcome) = (Some(fixture.secret.clone()), peer.outcome.clone());
        let path = (direction == Direction::Get).then(|| name.clone());
        let url = Url { host: address.ip().to_string(), port: PORT, path, key: server, secret };
        let begin = world::now() + PATIENCE * peer.attempts;
        world::on(peer.machine, || {
            world::spawn(async move {
                world::until(begin).await;
                let any = SocketAddr::from(([0, 0, 0, 0], 0));
                let endpoint = endpoint(&fixture.client, any, Accept::None);
                let result = match direction {
                    Direction::Get => get(&endpoint, address, &url).await,
                    Direction::Send => {
                        send(&endpoint, address, &url, fixture.folder.path().join(name)).await
                    }
                };
                note(|| format!("a peer has {result:?}"));
                endpoint.farewell().await;
                *lock(&outcome) = Some(result);
            });
        });
        note(|| format!("peer {number} begins, has {intact}"));
        let peer = &mut self.peers[number];
        peer.attempts += 1;
        peer.intact = intact;
        if peer.attempts > ATTEMPTS {
            return Err(format!("{} attempts were not enough", peer.attempts));
        }
        Ok(())
    }

    /// Whether a peer's object has its final name; nothing else may have it.
    fn is_stored(&self, number: usize) -> Result<bool, String> {
        let peer = &self.peers[number];
        match self.disk(number).read(&SIZES[peer.file].to_string()) {
            None => Ok(false),
            Some(there) if there == fixture().contents[peer.file] => Ok(true),
            Some(_) => Err(format!("file {} has wrong bytes", SIZES[peer.file])),
        }
    }

    /// Whether a process has ended since the last [`collect`](Self::collect).
    fn has_news(&self) -> impl Fn() -> bool + use<> {
        let outcomes: Vec<_> = self
            .peers
            .iter()
            .filter(|peer| !peer.is_done)
            .map(|peer| peer.outcome.clone())
            .collect();
        let disks = self.disks.clone();
        move || {
            outcomes.iter().any(|outcome| lock(outcome).is_some())
                || disks.iter().any(Disk::is_dead)
        }
    }

    /// Takes results, checks them, and begins processes that are to go on.
    fn collect(&mut self) -> Result<(), String> {
        for number in 0..self.disks.len() {
            if self.disks[number].is_dead() {
                let is_power_loss = self.random.below(2) == 0;
                let machine = self.machine_of(number);
                self.end(machine, is_power_loss)?;
            }
        }
        for number in 0..self.peers.len() {
            let Some(result) = lock(&self.peers[number].outcome).take() else { continue };

            note(|| format!("peer {number}: {result:?}"));
            world::end(self.peers[number].machine);
            match result {
                Ok(resumed) => {
                    if !self.is_stored(number)? {
                        return Err("what was reported as stored is not there".to_owned());
                    }
                    let has_failed = self.disk(number).has_failed();
                    let is_get = self.direction == Direction::Get;
                    let peer = &mut self.peers[number];
                    if is_get && resumed < peer.intact && !has_failed {
                        return Err(format!("{} were intact, {resumed} resumed", peer.intact));
                    }
                    (peer.is_done, peer.is_promised) = (true, true);
                }
                // Nothing authenticates a version negotiation (docs/protocol.md, section 9):
                // whoever changes packets can end an attempt.
                Err(error) if error.contains("speaks other versions") => self.start(number)?,
                Err(error) if !self.is_hurt => return Err(format!("it failed: {error}")),
                Err(_) => self.start(number)?,
            }
        }
        Ok(())
    }

    fn machine_of(&self, disk: usize) -> usize {
        match self.direction {
            Direction::Get => disk + 1,
            Direction::Send => 0,
        }
    }

    fn disk_of(&self, machine: usize) -> Option<&Disk> {
        match (self.direction, machine) {
            (Direction::Get, 0) => None,
            (Direction::Get, _) => self.disks.get(machine - 1),
            (Direction::Send, 0) => self.disks.first(),
            (Direction::Send, _) => None,
        }
    }

    /// Ends the process of a machine and begins another.
    fn end(&mut self, machine: usize, is_power_loss: bool) -> Result<(), String> {
        note(|| format!("machine {machine} ends; power is lost: {is_power_loss}"));
        if let Some(disk) = self.disk_of(machine) {
            disk.crash();
        }
        if machine == 0 {
            *lock(&self.server) = None;
        }
        world::end(machine);
        if let Some(disk) = self.disk_of(machine) {
            if is_power_loss {
                disk.lose_power();
            } else {
                disk.restart();
            }
        }
        for number in 0..self.peers.len() {
            // What was stored stays.
            if self.peers[number].is_promised && !self.is_stored(number)? {
                return Err("what was reported as stored is lost".to_owned());
            }
            if self.peers[number].machine == machine && !self.peers[number].is_done {
                lock(&self.peers[number].outcome).take();
                self.start(number)?;
            }
        }
        if machine == 0 {
            self.start_server();
        }
        Ok(())
    }

    /// Something happens beside what the network always does.
    fn fault(&mut self) -> Result<(), String> {
        let machine = self.random.below(self.peers.len() as u64 + 1) as usize;
        note(|| format!("a fault of machine {machine}, perhaps"));
        let disk = self.random.below(self.disks.len() as u64) as usize;
        let soon = self.disks[disk].calls() + 1 + self.random.below(60);
        let kind = self.random.below(7);
        note(|| format!("kind {kind}"));
        match kind {
            0 => {
                net::rebind(&[self.address]);
                return Ok(());
            }
            1 => {
                let time = Duration::from_millis(self.random.below(8_000));
                net::silence(time);
                // A server forgets who does not confirm a handshake for five seconds, in which
                // both sides try four times.
                self.silent += time;
                self.is_hurt |= self.silent > Duration::from_secs(3);
                return Ok(());
            }
            2 => self.disks[disk].crash_at(Some(soon)),
            3 => self.disks[disk].fail_at(Some(soon)),
            4 => {
                let disk = self.disks[disk].clone();
                disk.set_room(self.random.below(50_000));
                let time = Duration::from_millis(self.random.below(2_000));
                world::after(time, move || disk.set_room(u64::MAX));
            }
            5 => {
                self.is_hurt = true;
                self.end(machine, false)?;
            }
            _ => {
                self.is_hurt = true;
                self.end(machine, true)?;
            }
        }
        self.is_hurt = true;
        Ok(())
    }

    fn all(mut self) -> Result<blake3::Hash, String> {
        self.start_server();
        for number in 0..self.peers.len() {
            self.start(number)?;
        }
        let faults = [0, 1 + self.random.below(6)][self.random.below(2) as usize];
        for _ in 0..faults {
            let time = Duration::from_micros(self.random.below(1_500_000));
            world::run(time, self.has_news());
            self.collect()?;
            self.fault()?;
        }
        let end = world::now() + LIMIT;
        let is_smooth = faults == 0 && self.is_smooth;
        while self.peers.iter().any(|peer| !peer.is_done) {
            if !world::run(end.saturating_sub(world::now()), self.has_news()) {
                let status = self.status();
                return Err(format!("a transfer does not end: {status:?}"));
            }
            self.collect()?;
        }
        if is_smooth && world::now() > self.smooth_time {
            return Err(format!("without trouble it took {:?}", world::now()));
        }
        self.check_memory()?;
        for number in 0..self.disks.len() {
            let machine = self.machine_of(number);
            self.end(machine, true)?;
        }
        Ok(net::digest())
    }

    /// The state of the server's endpoint.
    fn status(&self) -> Option<EndpointStatus> {
        let (server, status) = (lock(&self.server).clone()?, Arc::new(Mutex::new(None)));
        let told = status.clone();
        world::on(0, || world::spawn(async move { *lock(&told) = server.status().await }));
        world::run(Duration::from_secs(1), || lock(&status).is_some());
        lock(&status).take()
    }

    /// When all are gone, nothing is held for them.
    fn check_memory(&self) -> Result<(), String> {
        // Packets that somebody held back keep a connection alive, until the server's patience
        // ends.
        for _ in 0..10 {
            world::run(Duration::from_secs(300), || false);
            if self.held().unwrap_or(0) == 0 {
                return Ok(());
            }
        }
        Err(format!("of those who are gone {:?} is held: {:?}", self.held(), self.status()))
    }

    /// The bytes that the server's endpoint holds for its peers.
    fn held(&self) -> Option<u64> {
        held(0, lock(&self.server).clone()?)
    }
}

/// Bytes of a file's partial that are whole blocks of it.
fn intact(disk: &Disk, file: usize) -> u64 {
    let (content, tree) = (&fixture().contents[file], &fixture().trees[file]);
    let Some(there) = disk.read(&format!(".{}.fontis-partial", SIZES[file])) else { return 0 };
    let blocks =
        content.chunks(tree.block_size() as usize).zip(there.chunks(tree.block_size() as usize));
    blocks.filter(|(one, other)| one == other).map(|(one, _)| one.len() as u64).sum()
}

async fn get(endpoint: &Endpoint, address: SocketAddr, url: &Url) -> Result<u64, String> {
    let options = SinkOptions::default();
    let got = transfer::get(endpoint, address, url, &Dest::new("/"), options, |_| ()).await;
    got.map(|report| report.resumed).map_err(|error| error.to_string())
}

async fn send(
    endpoint: &Endpoint,
    address: SocketAddr,
    url: &Url,
    path: PathBuf,
) -> Result<u64, String> {
    let (paths, options) = ([path], SourceOptions::default());
    let sent = transfer::send(endpoint, address, url, &paths, &options, |_| ());
    sent.await.map(|()| 0).map_err(|error| error.to_string())
}

#[test]
fn whatever_happens_transfers_end_and_are_right() {
    let first = first_seed(1);
    for seed in FOUND.into_iter().chain(first..first + runs(20_000).div_ceil(40)) {
        if let Err(fault) = Run::new(seed).all() {
            panic!("FONTIS_SEED={seed}: {fault}");
        }
    }
}

#[test]
fn a_seed_is_one_run() {
    for seed in first_seed(1)..first_seed(1) + 10 {
        let digests = [(); 2].map(|()| Run::new(seed).all().unwrap());
        assert_eq!(digests[0], digests[1], "FONTIS_SEED={seed} is two runs");
    }
}
