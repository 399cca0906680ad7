//! An origin, and peers that fetch its object and send it on to each other, in one world.
//!
//! Some peers leave when they have everything, some send nothing on, and one node may lie. Peers
//! and the origin crash, come back or stay away, on disks and a network with every trouble. Nobody
//! may get a wrong byte under a final name, lose what was reported as stored, fetch what is intact,
//! or wait for ever; who stays completes while the honest nodes that stay have every block
//! together; who lies is named and parted from, and nobody else is; in the end nothing is held.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fontis_base::{Rate, Stream};

use super::disk::Disk;
use super::net::{self, Trouble};
use super::node::{MEMORY, Node, address, identity};
use super::site::{NAME, endpoint, object, whole_blocks, whole_bytes};
use super::transfers::{held, lock};
use super::{first_seed, note, runs, world};
use crate::endpoint::{Accept, Endpoint};
use crate::hash_tree::HashTree;
use crate::source::Source;
use crate::transfer::FileServer;
use crate::transfer::swarm::{Liar, Treatment};

/// The time in which a run is over: much longer than all timeouts of the library.
const LIMIT: Duration = Duration::from_secs(4000);
/// Attempts after which a peer is taken for one that never succeeds.
const ATTEMPTS: u32 = 16;
/// The time that a liar waits before it comes again.
const BACK: Duration = Duration::from_secs(1);

/// Seeds that have found something: a peer that had lost an origin which began anew was not let in
/// again, and one that took an upload too late was offered nothing any more (52); one whose own way
/// was slow refused all neighbours for ever (63); one waited for ever for a node that says to have
/// everything and sends nothing (82).
const FOUND: [u64; 3] = [52, 63, 82];

/// What a liar has met with, and in which process of which peer.
type Treatments = Arc<Mutex<Vec<(usize, u32, Treatment)>>>;

struct Gossip {
    content: Vec<u8>,
    tree: Arc<HashTree>,
    peers: Vec<Node>,
    origin: Arc<Mutex<Option<Endpoint>>>,
    origin_rate: Option<Rate>,
    /// Whether the origin stays away.
    is_alone: bool,
    /// Whether the origin leaves when somebody has everything.
    origin_leaves: bool,
    treatments: Treatments,
    /// Whether anything but the network has troubled the run.
    is_hurt: bool,
    /// The time for which the network carried nothing.
    silent: Duration,
    random: Stream,
    _world: world::Running,
}

impl Gossip {
    fn new(seed: u64) -> Self {
        let mut random = Stream::new(seed, "swarms");
        let (content, tree) = object(&mut random);
        let count = 2 + random.below(4) as usize;
        let peers: Vec<_> = (1..=count).map(|number| Node::new(number, seed)).collect();
        let trouble =
            [Trouble::default(), Trouble::any(&mut random)][random.below(4).min(1) as usize];
        net::begin(seed, trouble);
        let disks = peers.iter().map(|peer| Some(peer.disk.clone()));
        let machines = std::iter::once(None).chain(disks).chain([None]).collect();
        let world = world::begin(seed, machines);
        world::sort();
        let rate = Rate::from_bps(400_000 << random.below(8));
        let origin_rate = [None, Some(rate)][random.below(2) as usize];
        note(|| {
            let peers: Vec<_> = peers.iter().map(|peer| (peer.stay, peer.rate)).collect();
            format!("{} bytes to {peers:?} at {origin_rate:?}, {trouble:?}", content.len())
        });
        let swarm = Self {
            content,
            tree,
            peers,
            origin: Arc::default(),
            origin_rate,
            is_alone: false,
            origin_leaves: random.below(4) == 0,
            treatments: Arc::default(),
            is_hurt: false,
            silent: Duration::ZERO,
            random: Stream::new(seed, "faults"),
            _world: world,
        };
        if random.below(3) == 0 {
            swarm.start_liar(&mut random);
        }
        swarm
    }

    /// Begins the process of machine 0.
    fn start_origin(&self) {
        world::on(0, || {
            let endpoint = endpoint(&identity(0), address(0), Accept::Anyone, MEMORY);
            endpoint.limit(self.origin_rate);
            *lock(&self.origin) = Some(endpoint.clone());
            let then = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            let source = Source::memory_of(NAME, self.content.clone(), then).unwrap();
            let server = FileServer::of_parts(endpoint, source, self.tree.clone());
            world::spawn(server.run(|event| note(|| format!("the origin: {event:?}"))));
        });
    }

    /// Begins the process of a node of another make, on the last machine.
    fn start_liar(&self, random: &mut Stream) {
        let machine = self.peers.len() + 1;
        // It lies always, or one time in some; or it has nothing, and offers nothing.
        let (one_in, offers) = (1 + random.below(3), random.below(4) > 0);
        note(|| format!("machine {machine} lies one time in {one_in}, and offers: {offers}"));
        let processes: Vec<_> = self.peers.iter().map(|peer| peer.process.clone()).collect();
        let (tree, content) = (self.tree.clone(), Arc::new(self.content.clone()));
        let treatments = self.treatments.clone();
        world::on(machine, || {
            let own = endpoint(&identity(machine), address(machine), Accept::None, MEMORY);
            for (number, process) in (1..).zip(processes) {
                let liar = Liar {
                    endpoint: own.clone(),
                    tree: tree.clone(),
                    content: content.clone(),
                    offers,
                };
                let treatments = treatments.clone();
                world::spawn(async move {
                    loop {
                        let key = *identity(number).public().as_bytes();
                        let in_process = *lock(&process);
                        let lies = move || world::below(one_in) == 0;
                        let treated = liar.lie_to((address(number), key), lies).await;
                        if let Some(treatment) = treated
                            && *lock(&process) == in_process
                        {
                            note(|| format!("the liar met with {treatment:?} at {number}"));
                            lock(&treatments).push((number, in_process, treatment));
                        }
                        world::until(world::now() + BACK).await;
                    }
                });
            }
        });
    }

    /// The blocks that a peer has.
    fn blocks_of(&self, peer: &Node) -> Vec<bool> {
        let count = self.tree.block_count() as usize;
        if peer.disk.read(NAME).is_some() {
            return vec![true; count];
        }
        let mut blocks = whole_blocks(&peer.disk, &self.content, &self.tree);
        blocks.resize(count, false);
        blocks
    }

    /// A node to begin at: the origin, or a peer that runs, if the origin is gone.
    fn first_of(&self, number: usize) -> Option<usize> {
        if !self.is_alone {
            return Some(0);
        }
        let all = self.peers.iter().filter(|peer| peer.number != number && peer.serves());
        all.map(|peer| peer.number).next()
    }

    /// Whether those who stay have every block, together with this one.
    fn is_all_there(&self, number: usize) -> bool {
        let mut there = vec![!self.is_alone; self.tree.block_count() as usize];
        for peer in self.peers.iter().filter(|peer| peer.number == number || peer.serves()) {
            there.iter_mut().zip(self.blocks_of(peer)).for_each(|(all, one)| *all |= one);
        }
        there.iter().all(|one| *one)
    }

    /// Begins the process of a peer, unless the object is there or nobody has it any more.
    fn start(&mut self, at: usize) -> Result<(), String> {
        let number = self.peers[at].number;
        let is_stored = self.is_stored(at)?;
        let first = self.first_of(number);
        let is_all_there = first.is_some() && self.is_all_there(number);
        let intact = whole_blocks(&self.peers[at].disk, &self.content, &self.tree);
        let intact = whole_bytes(&intact, &self.tree);
        let size = self.content.len() as u64;
        let peer = &mut self.peers[at];
        peer.attempts += 1;
        match first {
            // It crashed between the name and the word, or comes too late.
            _ if is_stored => peer.is_over = true,
            Some(first) if is_all_there => peer.start(first, size, intact),
            _ => peer.is_over = true,
        }
        note(|| format!("peer {number} begins at {first:?}, has {intact}: {}", !peer.is_over));
        if peer.attempts > ATTEMPTS {
            return Err(format!("{ATTEMPTS} attempts of {number} were not enough"));
        }
        Ok(())
    }

    /// Whether the object has its name at a peer; nothing else may have it.
    fn is_stored(&self, at: usize) -> Result<bool, String> {
        match self.peers[at].disk.read(NAME) {
            None => Ok(false),
            Some(there) if there == self.content => Ok(true),
            Some(_) => Err("wrong bytes have the name".to_owned()),
        }
    }

    /// Whether something has ended since the last [`collect`](Self::collect).
    fn has_news(&self) -> impl Fn() -> bool + use<> {
        let tellings: Vec<_> = self.peers.iter().map(|peer| peer.telling.clone()).collect();
        let disks: Vec<_> = self.peers.iter().map(|peer| peer.disk.clone()).collect();
        move || {
            tellings.iter().any(|telling| lock(telling).result.is_some())
                || disks.iter().any(Disk::is_dead)
        }
    }

    /// Takes results, checks them, and begins processes that are to go on.
    fn collect(&mut self) -> Result<(), String> {
        for at in 0..self.peers.len() {
            if self.peers[at].disk.is_dead() {
                let is_power_loss = self.random.below(2) == 0;
                self.end_peer(at, is_power_loss, false)?;
            }
            let result = lock(&self.peers[at].telling).result.take();
            let Some(result) = result else { continue };
            let number = self.peers[at].number;
            note(|| format!("peer {number} has {result:?}"));
            match result {
                Ok(report) => {
                    if !self.is_stored(at)? {
                        return Err("what was reported as stored is not there".to_owned());
                    }
                    let peer = &mut self.peers[at];
                    (peer.is_over, peer.is_promised) = (true, true);
                    peer.check(&report)?;
                    if self.origin_leaves && !self.is_alone {
                        note(|| "the origin leaves".to_owned());
                        self.end_origin(true);
                    }
                }
                Err(error) => {
                    let is_version = error.to_string().contains("speaks other versions");
                    if !self.is_hurt && !is_version && !self.is_alone {
                        return Err(format!("peer {number} failed: {error}"));
                    }
                    self.peers[at].check_blame(self.peers.len() + 1)?;
                    world::end(number);
                    *lock(&self.peers[at].endpoint) = None;
                    self.start(at)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the process of a peer, and begins another unless it stays away.
    fn end_peer(&mut self, at: usize, is_power_loss: bool, is_gone: bool) -> Result<(), String> {
        let number = self.peers[at].number;
        note(|| format!("peer {number} ends; power is lost: {is_power_loss}, gone: {is_gone}"));
        self.peers[at].check_blame(self.peers.len() + 1)?;
        self.peers[at].end(is_power_loss);
        if self.peers[at].is_promised && !self.is_stored(at)? {
            return Err("what was reported as stored is lost".to_owned());
        }
        self.peers[at].is_over |= is_gone;
        if self.peers[at].is_over { Ok(()) } else { self.start(at) }
    }

    /// Ends the process of the origin, and begins another unless it stays away.
    fn end_origin(&mut self, is_gone: bool) {
        note(|| format!("the origin ends; it stays away: {is_gone}"));
        *lock(&self.origin) = None;
        world::end(0);
        self.is_alone |= is_gone;
        if !self.is_alone {
            self.start_origin();
        }
    }

    /// Something happens beside what the network always does.
    fn fault(&mut self) -> Result<(), String> {
        let at = self.random.below(self.peers.len() as u64) as usize;
        let disk = self.peers[at].disk.clone();
        let soon = disk.calls() + 1 + self.random.below(60);
        let time = Duration::from_millis(self.random.below(12_000));
        let kind = self.random.below(11);
        note(|| format!("fault {kind} of {}", at + 1));
        match kind {
            0 => net::rebind(&[address(0)]),
            1 => {
                net::silence(time);
                // A server forgets who does not confirm a handshake for five seconds, in which
                // both sides try four times.
                self.silent += time;
                self.is_hurt |= self.silent > Duration::from_secs(3);
                return Ok(());
            }
            2 => disk.crash_at(Some(soon)),
            3 => disk.fail_at(Some(soon)),
            4 => {
                disk.set_room(self.random.below(50_000));
                world::after(time / 4, move || disk.set_room(u64::MAX));
            }
            5 => self.end_peer(at, false, false)?,
            6 => self.end_peer(at, true, false)?,
            7 => self.end_peer(at, true, true)?,
            8 => self.end_origin(false),
            9 => self.end_origin(true),
            _ => net::cut(self.peers[at].address().ip(), time),
        }
        self.is_hurt = true;
        Ok(())
    }

    fn all(mut self) -> Result<blake3::Hash, String> {
        self.start_origin();
        for at in 0..self.peers.len() {
            self.start(at)?;
        }
        let faults = [0, 1 + self.random.below(6)][self.random.below(2) as usize];
        for _ in 0..faults {
            let most = [100_000, 1_500_000, 15_000_000][self.random.below(3) as usize];
            let end = world::now() + Duration::from_micros(self.random.below(most));
            while world::run(end.saturating_sub(world::now()), self.has_news()) {
                self.collect()?;
            }
            if self.peers.iter().all(|peer| peer.is_over) {
                break;
            }
            self.fault()?;
            self.check_budget()?;
        }
        let end = world::now() + LIMIT;
        while self.peers.iter().any(|peer| !peer.is_over) {
            if !world::run(end.saturating_sub(world::now()), self.has_news()) {
                let open = self.peers.iter().filter(|peer| !peer.is_over);
                let numbers: Vec<_> = open.map(|peer| peer.number).collect();
                return Err(format!("{numbers:?} do not end"));
            }
            self.collect()?;
        }
        self.check_end()?;
        Ok(net::digest())
    }

    /// Nobody holds more than it may.
    fn check_budget(&self) -> Result<(), String> {
        let peers = self.peers.iter().map(|peer| (peer.number, &peer.endpoint));
        for (number, endpoint) in std::iter::once((0, &self.origin)).chain(peers) {
            let endpoint = lock(endpoint).clone();
            let held = endpoint.and_then(|endpoint| held(number, endpoint)).unwrap_or(0);
            if held > MEMORY {
                return Err(format!("{number} holds {held} bytes"));
            }
        }
        Ok(())
    }

    /// When all leave, nothing is left of what they did.
    fn check_end(&mut self) -> Result<(), String> {
        world::end(self.peers.len() + 1);
        for peer in &self.peers {
            peer.check_blame(self.peers.len() + 1)?;
            *lock(&peer.may_leave) = true;
        }
        self.check_liar()?;
        let has_left = |peer: &Node| !peer.runs() || lock(&peer.telling).has_left;
        for _ in 0..10 {
            world::run(Duration::from_secs(300), || false);
            let held = lock(&self.origin).clone().and_then(|endpoint| held(0, endpoint));
            // The endpoint's driver and the server.
            let is_idle = self.is_alone || held == Some(0) && world::tasks(0) == 2;
            let tasks: usize = (1..=self.peers.len()).map(world::tasks).sum();
            if is_idle && tasks == 0 && self.peers.iter().all(has_left) {
                for at in 0..self.peers.len() {
                    self.end_peer(at, true, true)?;
                }
                return Ok(());
            }
        }
        let tasks: Vec<_> = (0..=self.peers.len()).map(world::tasks).collect();
        let held = lock(&self.origin).clone().and_then(|endpoint| held(0, endpoint));
        Err(format!("after the end there are {tasks:?} tasks, and {held:?} bytes are held"))
    }

    /// Nobody believes a liar, or lets one in again that it has parted from.
    fn check_liar(&self) -> Result<(), String> {
        let treatments = lock(&self.treatments);
        let mut parted = std::collections::BTreeSet::new();
        for (number, process, treatment) in treatments.iter() {
            let is_new = !parted.contains(&(*number, *process));
            if treatment.believed > 0 || treatment.copies > 2 || !is_new {
                return Err(format!("peer {number} believes a liar: {treatment:?}"));
            }
            let end = format!("{:?}", treatment.end);
            if end.contains("what it sent is wrong") {
                parted.insert((*number, *process));
                let peer = &self.peers[number - 1];
                let is_same = *lock(&peer.process) == *process;
                if is_same && peer.runs() && lock(&peer.telling).dropped.is_empty() {
                    return Err(format!("peer {number} parts from a liar in silence"));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn whatever_peers_do_those_who_stay_get_what_is_there() {
    let first = first_seed(1);
    for seed in FOUND.into_iter().chain(first..first + runs(20_000).div_ceil(1000)) {
        if let Err(fault) = Gossip::new(seed).all() {
            panic!("FONTIS_SEED={seed}: {fault}");
        }
    }
}

#[test]
fn a_seed_of_a_swarm_is_one_run() {
    for seed in first_seed(1)..first_seed(1) + 5 {
        let digests = [(); 2].map(|()| Gossip::new(seed).all().unwrap());
        assert_eq!(digests[0], digests[1], "FONTIS_SEED={seed} is two runs");
    }
}
