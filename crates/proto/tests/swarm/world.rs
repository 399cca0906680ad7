use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use fontis_base::{Duration, Stream, Time};
use fontis_proto::swarm::{SwarmConfig, SwarmMessage, SwarmNode, SwarmUpload};

/// One node's share in a simulated swarm. Rates are blocks a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) up: f64,
    pub(super) down: f64,
    /// The share of packets that are lost on the way to it.
    pub(super) loss: f64,
    pub(super) leaves: Option<Time>,
    /// What it sends is wrong.
    pub(super) lies: bool,
}

impl Kind {
    pub(super) const fn of(rate: f64) -> Self {
        Self { up: rate, down: rate, loss: 0.0, leaves: None, lies: false }
    }
}

/// What the swarm is.
#[derive(Clone, Debug)]
pub(super) struct Swarm {
    pub(super) blocks: u32,
    pub(super) origin: Kind,
    /// The origin leaves when it has sent so many blocks.
    pub(super) origin_sends: Option<u32>,
    pub(super) peers: Vec<Kind>,
    /// Neighbours of a peer, and of the origin, about.
    pub(super) degree: usize,
    /// One way between any two.
    pub(super) delay: Duration,
    pub(super) uploads: usize,
}

/// The outcome.
#[derive(Debug)]
pub(super) struct Outcome {
    /// When each peer had everything.
    pub(super) done: Vec<Option<Time>>,
    /// Blocks that the origin sent.
    pub(super) origin_sent: u32,
    /// Blocks that all sent.
    pub(super) sent: u32,
    /// Offers that were refused.
    pub(super) refused: u32,
    /// Messages to neighbours.
    pub(super) messages: u64,
    /// Peers that were found to send what is wrong.
    pub(super) named: BTreeSet<u32>,
}

impl Outcome {
    /// The time of the part `share` of those who have everything.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut times: Vec<f64> = self.done.iter().flatten().map(|one| one.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        let last = times.len().saturating_sub(1);
        times.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::INFINITY)
    }

    pub(super) fn last(&self) -> f64 {
        self.quantile(1.0)
    }
}

impl Swarm {
    /// The least time in which everybody can have everything: max(F/U_s, F/D_min, nF/(U_s + ΣU)).
    pub(super) fn bound(&self) -> f64 {
        let file = f64::from(self.blocks);
        let down = |one: &Kind| one.down * (1.0 - one.loss);
        let slowest = self.peers.iter().map(down).fold(f64::INFINITY, f64::min);
        let all: f64 = self.origin.up + self.peers.iter().map(|one| one.up).sum::<f64>();
        let n = self.peers.len() as f64;
        (file / self.origin.up).max(file / slowest).max(n * file / all)
    }
}

enum Event {
    Hear {
        at: u32,
        from: u32,
        message: SwarmMessage,
    },
    Offer {
        upload: u32,
    },
    /// A refusal has come back.
    Refused {
        upload: u32,
    },
    /// The sender may offer the next block.
    Ending {
        upload: u32,
    },
    /// The receiver may take the next one.
    Filled {
        upload: u32,
    },
    Arrived {
        upload: u32,
    },
    Leave {
        node: u32,
    },
    Parted {
        at: u32,
        from: u32,
    },
}

struct Upload {
    from: u32,
    to: u32,
    block: u32,
    lasts: Duration,
    /// When it can begin, as far as the sender knows, and later when it ends there.
    at: Time,
    accepted: bool,
    /// What it still occupies at the sender and at the receiver.
    holds_up: bool,
    holds_down: bool,
}

struct Member {
    kind: Kind,
    node: SwarmNode,
    neighbours: BTreeSet<u32>,
    /// When each free upload, and each free download, is or will be free.
    up: Vec<Time>,
    down: Vec<Time>,
    /// Of each upload.
    rate: f64,
    has_room: bool,
    is_gone: bool,
}

struct World {
    members: Vec<Member>,
    delay: Duration,
    /// The time before its end at which a transfer makes way for the next offer.
    lead: Duration,
    order: u64,
    times: BinaryHeap<Reverse<(Time, u64)>>,
    events: BTreeMap<u64, Event>,
    uploads: BTreeMap<u32, Upload>,
    next: u32,
    origin_sends: Option<u32>,
    outcome: Outcome,
}

/// Runs a swarm, whose node 0 has the object, until everybody has it or nothing happens.
pub(super) fn run(swarm: &Swarm, seed: u64) -> Outcome {
    let count = swarm.peers.len() + 1;
    let mut stream = Stream::new(seed, "swarm world");
    let edges = edges(count, swarm.degree, &mut stream);
    let kinds = std::iter::once(swarm.origin).chain(swarm.peers.iter().copied());
    let usual = swarm.peers[0].down / swarm.uploads as f64;
    let members = kinds.zip(&edges).enumerate().map(|(id, (kind, neighbours))| {
        // Uploads are about as fast everywhere; a slow node has fewer.
        let uploads = ((kind.up / usual).round() as usize).max(1);
        let config = SwarmConfig { blocks: swarm.blocks, uploads, is_origin: id == 0 };
        let mut node = SwarmNode::new(config, seed ^ (id as u64) << 32);
        neighbours.iter().for_each(|one| node.meet(*one));
        if neighbours.contains(&0) {
            (0..swarm.blocks).for_each(|block| node.hear(0, SwarmMessage::Has(block)));
        }
        let (neighbours, rate) = (neighbours.clone(), kind.up / uploads as f64);
        let downloads = ((kind.down / usual) as usize).max(1);
        let (up, down) = (vec![Time::ZERO; uploads], vec![Time::ZERO; downloads]);
        Member { kind, node, neighbours, up, down, rate, has_room: true, is_gone: false }
    });
    let mut world = World {
        members: members.collect(),
        delay: swarm.delay,
        lead: swarm.delay * 4,
        order: 0,
        times: BinaryHeap::new(),
        events: BTreeMap::new(),
        uploads: BTreeMap::new(),
        next: 0,
        origin_sends: swarm.origin_sends,
        outcome: Outcome {
            done: vec![None; swarm.peers.len()],
            origin_sent: 0,
            sent: 0,
            refused: 0,
            messages: 0,
            named: BTreeSet::new(),
        },
    };
    for (id, kind) in swarm.peers.iter().enumerate() {
        if let Some(at) = kind.leaves {
            world.push(at, Event::Leave { node: id as u32 + 1 });
        }
    }
    world.send(0, Time::ZERO);
    while let Some(Reverse((now, order))) = world.times.pop() {
        let Some(event) = world.events.remove(&order) else { continue };
        world.handle(event, now);
    }
    world.outcome
}

/// Random neighbours, on both sides.
fn edges(count: usize, degree: usize, stream: &mut Stream) -> Vec<BTreeSet<u32>> {
    let mut edges = vec![BTreeSet::new(); count];
    let least = if degree >= count - 1 { count - 1 } else { degree.div_ceil(2) };
    for one in 0..count {
        let wanted = if one == 0 { degree.min(count - 1) } else { least };
        while edges[one].len() < wanted {
            let other = stream.below(count as u64) as usize;
            if other != one && (one == 0 || other != 0 || degree >= count - 1) {
                edges[one].insert(other as u32);
                edges[other].insert(one as u32);
            }
        }
    }
    edges
}

impl World {
    fn push(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert(self.order, event);
        self.times.push(Reverse((at, self.order)));
    }

    fn member(&mut self, id: u32) -> &mut Member {
        &mut self.members[id as usize]
    }

    /// Tells all neighbours.
    fn tell(&mut self, from: u32, message: SwarmMessage, now: Time) {
        let neighbours = self.member(from).neighbours.clone();
        self.outcome.messages += neighbours.len() as u64;
        for at in neighbours {
            self.push(now + self.delay, Event::Hear { at, from, message });
        }
    }

    fn tell_room(&mut self, id: u32, now: Time) {
        let member = self.member(id);
        let has_room = !member.down.is_empty();
        if has_room != member.has_room {
            member.has_room = has_room;
            self.tell(id, SwarmMessage::Room(has_room), now);
        }
    }

    /// Offers what a node is to send.
    fn send(&mut self, from: u32, now: Time) {
        while !self.member(from).is_gone
            && let Some(SwarmUpload { to, block }) = self.member(from).node.next_upload()
        {
            let lasts = 1.0 / self.member(from).rate / (1.0 - self.member(to).kind.loss);
            let lasts = Duration::from_secs_f64(lasts);
            let at = self.member(from).up.pop().unwrap().max(now);
            let (upload, delay) = (self.next, self.delay);
            self.next += 1;
            let (accepted, holds_up, holds_down) = (false, true, false);
            let one = Upload { from, to, block, lasts, at, accepted, holds_up, holds_down };
            self.uploads.insert(upload, one);
            self.push(now + delay, Event::Offer { upload });
        }
    }

    /// The sender has room for the next block from then on.
    fn free_up(&mut self, from: u32, at: Time, now: Time) {
        self.member(from).up.push(at);
        self.member(from).node.sent();
        self.send(from, now);
    }

    fn handle(&mut self, event: Event, now: Time) {
        match event {
            Event::Hear { at, from, message } => {
                if !self.member(at).is_gone {
                    self.member(at).node.hear(from, message);
                    self.send(at, now);
                }
            }
            Event::Offer { upload } => self.offer(upload, now),
            Event::Refused { upload } => {
                let Some(one) = self.uploads.remove(&upload) else { return };
                self.free_up(one.from, one.at, now);
            }
            Event::Ending { upload } => {
                let Some(one) = self.uploads.get_mut(&upload) else { return };
                one.holds_up = false;
                let (from, at) = (one.from, one.at);
                self.free_up(from, at, now);
            }
            Event::Filled { upload } => {
                let Some(one) = self.uploads.get_mut(&upload) else { return };
                one.holds_down = false;
                let (to, at) = (one.to, one.at + self.delay);
                self.member(to).down.push(at);
                self.tell_room(to, now);
            }
            Event::Arrived { upload } => self.arrived(upload, now),
            Event::Leave { node } => self.leave(node, now),
            Event::Parted { at, from } => {
                self.member(at).node.part(from);
                self.member(at).neighbours.remove(&from);
                self.send(at, now);
            }
        }
    }

    fn offer(&mut self, id: u32, now: Time) {
        let Some(&Upload { from, to, block, lasts, at, .. }) = self.uploads.get(&id) else {
            return;
        };
        let delay = self.delay;
        let member = &mut self.members[to as usize];
        let is_here = !member.is_gone && member.neighbours.contains(&from);
        let has_room = is_here && !member.down.is_empty();
        if !has_room || !member.node.accept(block) {
            self.outcome.refused += 1;
            if !has_room {
                let message = SwarmMessage::Lost(block);
                self.push(now + delay, Event::Hear { at: from, from: to, message });
            }
            self.push(now + delay, Event::Refused { upload: id });
            return;
        }
        let free_at = member.down.pop().unwrap();
        let begins = at.max(Time::ZERO + free_at.since(Time::ZERO + delay));
        let ends = begins + lasts;
        if let Some(one) = self.uploads.get_mut(&id) {
            (one.at, one.accepted, one.holds_down) = (ends, true, true);
        }
        self.tell(to, SwarmMessage::Coming(block), now);
        self.tell_room(to, now);
        let early = |at: Time| Time::ZERO + at.since(Time::ZERO + self.lead);
        let (ending, filled) = (early(ends).max(now + delay), early(ends + delay).max(now));
        self.push(ending, Event::Ending { upload: id });
        self.push(filled, Event::Filled { upload: id });
        self.push(ends + delay, Event::Arrived { upload: id });
    }

    fn arrived(&mut self, id: u32, now: Time) {
        let Some(Upload { from, to, block, .. }) = self.uploads.remove(&id) else { return };
        self.outcome.sent += 1;
        if from == 0 {
            self.outcome.origin_sent += 1;
        }
        let lies = self.member(from).kind.lies;
        let member = self.member(to);
        if lies {
            member.node.lost(block);
            member.node.part(from);
            member.neighbours.remove(&from);
            self.outcome.named.insert(from);
            self.tell(to, SwarmMessage::Lost(block), now);
            self.push(now + self.delay, Event::Parted { at: from, from: to });
        } else {
            member.node.came(block);
            if member.node.is_complete() {
                self.outcome.done[to as usize - 1] = Some(now);
            }
            self.tell(to, SwarmMessage::Has(block), now);
        }
        self.tell_room(to, now);
        self.send(to, now);
        if from == 0 && self.origin_sends == Some(self.outcome.origin_sent) {
            self.leave(0, now);
        }
    }

    fn leave(&mut self, node: u32, now: Time) {
        self.member(node).is_gone = true;
        let neighbours = self.member(node).neighbours.clone();
        for at in neighbours {
            self.push(now + self.delay, Event::Parted { at, from: node });
        }
        let cut: Vec<u32> = self
            .uploads
            .iter()
            .filter(|(_, one)| one.from == node || one.to == node)
            .map(|(id, _)| *id)
            .collect();
        for id in cut {
            let Some(one) = self.uploads.remove(&id) else { continue };
            if one.to == node {
                if one.holds_up {
                    self.free_up(one.from, now, now);
                }
            } else if one.accepted {
                let member = self.member(one.to);
                member.node.lost(one.block);
                if one.holds_down {
                    member.down.push(now);
                }
                self.tell(one.to, SwarmMessage::Lost(one.block), now);
                self.tell_room(one.to, now);
            }
        }
    }
}
