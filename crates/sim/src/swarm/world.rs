use std::collections::{BTreeMap, BTreeSet};

use fontis_base::{Duration, Stream, Time};
use fontis_proto::swarm::{SwarmConfig, SwarmMessage, SwarmNode, SwarmUpload};

use super::agenda::{SwarmAgenda, SwarmEvent};
use super::graph::edges;
use super::outcome::{SwarmCost, SwarmFate, SwarmOutcome, SwarmTransfer};
use super::spec::{SwarmConduct, SwarmPeer, SwarmSpec};

/// A node offers the next block, and says that it has room for one, so many delays before a
/// transfer ends: an answer and the news that follow from it take about as long.
const LEAD: u64 = 4;

/// Rates follow each other in so many rounds, and changes below this part are let be.
const SWEEPS: usize = 2;
const LITTLE: f64 = 0.001;

/// A block that is offered, or on its way.
#[derive(Clone, Copy, Debug)]
struct Upload {
    from: u32,
    to: u32,
    block: u32,
    accepted: bool,
    /// What it still occupies at the sender and at the receiver.
    holds_up: bool,
    holds_down: bool,
    /// When it began to leave, if it has.
    begun: Option<Time>,
    /// The part of it that had not left at a time, and blocks a second since then.
    left: f64,
    at: Time,
    rate: f64,
    /// Blocks a second that it takes of both links.
    share: f64,
    /// Which of its planned steps counts: the last one.
    plan: u32,
}

impl Upload {
    /// Brings what is left up to date.
    fn settle(&mut self, now: Time) {
        self.left = (self.left - self.rate * now.since(self.at).as_secs_f64()).max(0.0);
        self.at = now;
    }
}

#[derive(Debug)]
struct Member {
    peer: SwarmPeer,
    node: SwarmNode,
    /// Those that it has a connection to.
    neighbours: BTreeSet<u32>,
    /// Blocks a second that it can send and take.
    up: f64,
    down: f64,
    /// Blocks that it can take at once, and those that come, but for those that have nearly come.
    downloads: usize,
    coming: usize,
    /// What leaves it, and what comes to it, at present; and their shares together.
    sending: Vec<u32>,
    taking: Vec<u32>,
    sent: f64,
    taken: f64,
    has_room: bool,
    is_here: bool,
}

/// A running swarm, whose node 0 has the object.
#[derive(Debug)]
pub struct SwarmWorld {
    members: Vec<Member>,
    /// Those that each node knows, whether they are there or not.
    known: Vec<BTreeSet<u32>>,
    delay: Duration,
    agenda: SwarmAgenda,
    uploads: BTreeMap<u32, Upload>,
    next: u32,
    origin_sends: Option<u32>,
    origin_sent: u32,
    /// Peers that are there or will come, and lack something.
    lacking: usize,
    is_divided: bool,
    events: u64,
    outcome: SwarmOutcome,
    cost: SwarmCost,
}

impl SwarmWorld {
    /// A swarm at its beginning.
    pub fn new(spec: &SwarmSpec, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "swarm world");
        let known = edges(spec, &mut stream);
        let peers = std::iter::once(spec.origin).chain(spec.peers.iter().copied());
        let downs: f64 = spec.peers.iter().map(|one| spec.blocks_per_second(one.down)).sum();
        let usual = downs / spec.peers.len().max(1) as f64;
        let members = peers.enumerate().map(|(id, peer)| {
            let (up, down) = (spec.blocks_per_second(peer.up), spec.blocks_per_second(peer.down));
            // Uploads are about as fast everywhere; a slow node has fewer.
            let uploads = times(up / usual, spec.uploads);
            let config = SwarmConfig { blocks: spec.blocks, uploads, is_origin: id == 0 };
            let downloads = times(down / usual, spec.downloads);
            Member {
                peer,
                node: SwarmNode::new(config, seed ^ (id as u64) << 32),
                neighbours: BTreeSet::new(),
                up,
                down,
                downloads,
                coming: 0,
                sending: Vec::new(),
                taking: Vec::new(),
                sent: 0.0,
                taken: 0.0,
                has_room: true,
                is_here: false,
            }
        });
        let mut world = Self {
            members: members.collect(),
            known,
            delay: spec.delay,
            agenda: SwarmAgenda::default(),
            uploads: BTreeMap::new(),
            next: 0,
            origin_sends: spec.origin_sends,
            origin_sent: 0,
            lacking: spec.peers.len(),
            is_divided: false,
            events: 0,
            outcome: SwarmOutcome { done: vec![None; spec.peers.len()], ..SwarmOutcome::default() },
            cost: SwarmCost::default(),
        };
        world.begin(spec);
        world
    }

    /// Lets those in that are there from the beginning, who know each other already, and plans what
    /// else happens.
    fn begin(&mut self, spec: &SwarmSpec) {
        for id in 0..self.members.len() as u32 {
            let SwarmPeer { joins, leaves, .. } = self.members[id as usize].peer;
            if let Some(at) = leaves {
                self.agenda.push(at, SwarmEvent::Leave { node: id });
            }
            if joins > Time::ZERO {
                self.agenda.push(joins, SwarmEvent::Join { node: id });
                continue;
            }
            self.member(id).is_here = true;
            for other in self.known[id as usize].clone() {
                if self.member(other).is_here {
                    self.connect(id, other);
                    self.meet(id, other);
                    self.meet(other, id);
                }
            }
        }
        if let Some((from, until)) = spec.partition {
            self.agenda.push(from, SwarmEvent::Divide);
            self.agenda.push(until, SwarmEvent::Unite);
        }
        self.send(0, Time::ZERO);
    }

    /// Runs until a time, or until it is over.
    pub fn run_to(&mut self, until: Time) {
        while !self.is_over()
            && let Some((now, event)) = self.agenda.pop_until(until)
        {
            self.events += 1;
            self.handle(event, now);
        }
    }

    /// Runs until everybody who stays has everything, or nothing happens any more; gives what came
    /// of it.
    pub fn finish(mut self) -> SwarmOutcome {
        self.run_to(Time::MAX);
        self.into_outcome()
    }

    /// What came of it so far.
    pub fn into_outcome(self) -> SwarmOutcome {
        SwarmOutcome { cost: Some(self.cost), ..self.outcome }
    }

    /// Whether everybody who stays has everything, or nothing happens any more.
    pub fn is_over(&self) -> bool {
        self.lacking == 0 || self.agenda.is_empty()
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    fn member(&mut self, id: u32) -> &mut Member {
        &mut self.members[id as usize]
    }

    /// Tells all neighbours.
    fn tell(&mut self, from: u32, message: SwarmMessage, now: Time) {
        self.cost.messages += self.member(from).neighbours.len() as u64;
        self.agenda.push(now + self.delay, SwarmEvent::Told { from, message });
    }

    fn tell_room(&mut self, id: u32, now: Time) {
        let member = self.member(id);
        let has_room = member.coming < member.downloads;
        if has_room != member.has_room {
            member.has_room = has_room;
            self.tell(id, SwarmMessage::Room(has_room), now);
        }
    }

    /// Offers what a node is to send.
    fn send(&mut self, from: u32, now: Time) {
        if self.member(from).peer.conduct == SwarmConduct::Silent {
            return;
        }
        while self.member(from).is_here
            && let Some(SwarmUpload { to, block }) = self.member(from).node.next_upload()
        {
            let upload = self.next;
            self.next = self.next.wrapping_add(1);
            let one = Upload {
                from,
                to,
                block,
                accepted: false,
                holds_up: true,
                holds_down: false,
                begun: None,
                left: 1.0,
                at: now,
                rate: 0.0,
                share: 0.0,
                plan: 0,
            };
            self.uploads.insert(upload, one);
            self.agenda.push(now + self.delay, SwarmEvent::Offer { upload });
        }
    }

    /// The sender has room for the next block.
    fn free_up(&mut self, from: u32, now: Time) {
        self.member(from).node.sent();
        self.send(from, now);
    }

    fn handle(&mut self, event: SwarmEvent, now: Time) {
        match event {
            SwarmEvent::Told { from, message } => {
                let all: Vec<u32> = self.member(from).neighbours.iter().copied().collect();
                all.into_iter().for_each(|at| self.hear(at, from, message, now));
            }
            SwarmEvent::Hear { at, from, message } => self.hear(at, from, message, now),
            SwarmEvent::Offer { upload } => self.offer(upload, now),
            SwarmEvent::Refused { upload } => {
                let Some(one) = self.uploads.remove(&upload) else { return };
                self.free_up(one.from, now);
            }
            SwarmEvent::Begin { upload } => self.begin_upload(upload, now),
            SwarmEvent::Step { upload, plan } => self.step(upload, plan, now),
            SwarmEvent::Filled { upload } => self.filled(upload, now),
            SwarmEvent::Arrived { upload } => self.arrived(upload, now),
            SwarmEvent::Join { node } => {
                self.member(node).is_here = true;
                self.reach_all(node, now);
            }
            SwarmEvent::Leave { node } => self.leave(node, now),
            SwarmEvent::Met { at, from } => {
                if self.member(at).neighbours.contains(&from) {
                    self.meet(at, from);
                    self.send(at, now);
                }
            }
            SwarmEvent::Parted { at, from } => {
                // They may have met again.
                if !self.member(at).neighbours.contains(&from) {
                    self.member(at).node.part(from);
                    self.send(at, now);
                }
            }
            SwarmEvent::Divide => {
                self.is_divided = true;
                for id in 0..self.members.len() as u32 / 2 {
                    for other in self.member(id).neighbours.clone() {
                        if !self.is_reachable(id, other) {
                            self.disconnect(id, other, now);
                        }
                    }
                }
            }
            SwarmEvent::Unite => {
                self.is_divided = false;
                (0..self.members.len() as u32 / 2).for_each(|id| self.reach_all(id, now));
            }
        }
    }

    fn hear(&mut self, at: u32, from: u32, message: SwarmMessage, now: Time) {
        if self.member(at).is_here {
            self.member(at).node.hear(from, message);
            self.send(at, now);
        }
    }

    /// Whether the network carries packets between two nodes.
    fn is_reachable(&self, one: u32, other: u32) -> bool {
        let half = self.members.len() as u32 / 2;
        !self.is_divided || (one < half) == (other < half)
    }

    /// Connects a node to those that it knows, and has no connection to, and that it can reach.
    fn reach_all(&mut self, node: u32, now: Time) {
        if !self.member(node).is_here {
            return;
        }
        for other in self.known[node as usize].clone() {
            let is_new = !self.member(node).neighbours.contains(&other);
            if is_new && self.member(other).is_here && self.is_reachable(node, other) {
                self.connect(node, other);
                for (at, from) in [(node, other), (other, node)] {
                    self.agenda.push(now + self.delay, SwarmEvent::Met { at, from });
                }
            }
        }
    }

    fn connect(&mut self, one: u32, other: u32) {
        self.member(one).neighbours.insert(other);
        self.member(other).neighbours.insert(one);
    }

    /// A node learns what another has that it has a connection to.
    fn meet(&mut self, at: u32, from: u32) {
        let Member { node, has_room, .. } = &self.members[from as usize];
        let has = node.blocks().map(SwarmMessage::Has);
        let coming = node.coming().map(SwarmMessage::Coming);
        let news: Vec<_> = has.chain(coming).chain([SwarmMessage::Room(*has_room)]).collect();
        let node = &mut self.member(at).node;
        node.part(from);
        node.meet(from);
        news.into_iter().for_each(|message| node.hear(from, message));
    }

    /// Two nodes have no connection any more, of which both hear later; what is on its way between
    /// them does not come.
    fn disconnect(&mut self, one: u32, other: u32, now: Time) {
        for (at, from) in [(one, other), (other, one)] {
            self.member(at).neighbours.remove(&from);
            self.agenda.push(now + self.delay, SwarmEvent::Parted { at, from });
        }
        self.cut(|from, to| (from, to) == (one, other) || (from, to) == (other, one), now);
    }

    /// What is on its way between two nodes for which `is_cut` does not come.
    fn cut(&mut self, is_cut: impl Fn(u32, u32) -> bool, now: Time) {
        let of = |(id, one): (&u32, &Upload)| is_cut(one.from, one.to).then_some(*id);
        let cut: Vec<u32> = self.uploads.iter().filter_map(of).collect();
        for id in cut {
            let Some(one) = self.uploads.remove(&id) else { continue };
            self.stop(id, one, now);
            if one.accepted {
                let member = self.member(one.to);
                member.node.lost(one.block);
                member.coming -= usize::from(one.holds_down);
                self.tell(one.to, SwarmMessage::Lost(one.block), now);
                self.tell_room(one.to, now);
            }
            if one.holds_up {
                self.free_up(one.from, now);
            }
        }
    }

    /// Ends what was on its way when it was cut off.
    fn stop(&mut self, id: u32, mut one: Upload, now: Time) {
        let Some(begun) = one.begun else { return };
        one.settle(now);
        self.note(&one, begun, now, SwarmFate::Cut);
        self.cost.vain += 1.0 - one.left;
        if one.left > 0.0 {
            self.forget(id, &one, now);
        }
    }

    /// A block is on its way no more, and leaves its rate to others.
    fn forget(&mut self, id: u32, one: &Upload, now: Time) {
        let from = self.member(one.from);
        from.sending.retain(|other| *other != id);
        from.sent = if from.sending.is_empty() { 0.0 } else { from.sent - one.share };
        let to = self.member(one.to);
        to.taking.retain(|other| *other != id);
        to.taken = if to.taking.is_empty() { 0.0 } else { to.taken - one.share };
        self.share(one.from, one.to, now);
    }

    fn note(&mut self, one: &Upload, begun: Time, ended: Time, fate: SwarmFate) {
        let Upload { from, to, block, .. } = *one;
        self.outcome.transfers.push(SwarmTransfer { from, to, block, begun, ended, fate });
    }

    fn offer(&mut self, id: u32, now: Time) {
        let Some(&Upload { from, to, block, .. }) = self.uploads.get(&id) else {
            return;
        };
        let delay = self.delay;
        let member = &mut self.members[to as usize];
        let is_here = member.is_here && member.neighbours.contains(&from);
        let has_room = is_here && member.coming < member.downloads;
        if !has_room || !member.node.accept(block) {
            self.cost.refused += 1;
            if !has_room {
                let message = SwarmMessage::Lost(block);
                self.agenda.push(now + delay, SwarmEvent::Hear { at: from, from: to, message });
            }
            self.agenda.push(now + delay, SwarmEvent::Refused { upload: id });
            return;
        }
        member.coming += 1;
        if let Some(one) = self.uploads.get_mut(&id) {
            (one.accepted, one.holds_down) = (true, true);
        }
        self.tell(to, SwarmMessage::Coming(block), now);
        self.tell_room(to, now);
        self.agenda.push(now + delay, SwarmEvent::Begin { upload: id });
    }

    /// A block begins to leave.
    fn begin_upload(&mut self, id: u32, now: Time) {
        let Some(one) = self.uploads.get_mut(&id) else { return };
        (one.begun, one.at) = (Some(now), now);
        let (from, to) = (one.from, one.to);
        self.member(from).sending.push(id);
        self.member(to).taking.push(id);
        self.share(from, to, now);
    }

    /// Shares two nodes' links anew: what leaves a node shares its uplink, and what comes to a node
    /// its downlink, in equal parts; what one of them cannot use because of its other end, others
    /// take.
    fn share(&mut self, from: u32, to: u32, now: Time) {
        let [sending, taking] =
            [&self.members[from as usize].sending, &self.members[to as usize].taking];
        let near: Vec<u32> = sending.iter().chain(taking).copied().collect();
        let mut all = Vec::with_capacity(near.len() * 4);
        for one in near.iter().filter_map(|id| self.uploads.get(id)) {
            all.extend(&self.members[one.from as usize].sending);
            all.extend(&self.members[one.to as usize].taking);
        }
        all.sort_unstable();
        all.dedup();
        for id in std::iter::repeat_n(&all, SWEEPS).flatten() {
            let Some(one) = self.uploads.get_mut(id) else { continue };
            let from = &self.members[one.from as usize];
            let up = from.up - (from.sent - one.share);
            let up = up.max(from.up / from.sending.len() as f64);
            let to = &self.members[one.to as usize];
            let down = to.down - (to.taken - one.share);
            let down = down.max(to.down / to.taking.len() as f64);
            let more = up.min(down) - one.share;
            one.share += more;
            self.members[one.from as usize].sent += more;
            self.members[one.to as usize].taken += more;
        }
        for id in all {
            let Some(one) = self.uploads.get_mut(&id) else { continue };
            let rate = one.share * (1.0 - self.members[one.to as usize].peer.loss);
            if (rate - one.rate).abs() > LITTLE * rate {
                one.settle(now);
                one.rate = rate;
                self.plan(id, now);
            }
        }
    }

    /// Plans a block's next step: that it has nearly left, or has.
    fn plan(&mut self, id: u32, now: Time) {
        let Some(one) = self.uploads.get_mut(&id) else { return };
        one.plan += 1;
        let plan = one.plan;
        let whole = Duration::from_secs_f64(one.left / one.rate);
        let lead = if one.holds_up { self.delay * LEAD } else { Duration::ZERO };
        let at = now + Duration::from_nanos(whole.as_nanos().saturating_sub(lead.as_nanos()));
        self.agenda.push(at, SwarmEvent::Step { upload: id, plan });
    }

    fn step(&mut self, id: u32, plan: u32, now: Time) {
        let Some(one) = self.uploads.get_mut(&id).filter(|one| one.plan == plan) else { return };
        one.settle(now);
        if one.holds_up {
            // The sender may offer the next block, and the receiver hears that it may take one.
            one.holds_up = false;
            let from = one.from;
            self.agenda.push(now + self.delay, SwarmEvent::Filled { upload: id });
            self.plan(id, now);
            self.free_up(from, now);
            return;
        }
        one.left = 0.0;
        let gone = *one;
        one.share = 0.0;
        self.forget(id, &gone, now);
        self.agenda.push(now + self.delay, SwarmEvent::Arrived { upload: id });
    }

    fn filled(&mut self, id: u32, now: Time) {
        let Some(one) = self.uploads.get_mut(&id) else { return };
        one.holds_down = false;
        let to = one.to;
        self.member(to).coming -= 1;
        self.tell_room(to, now);
    }

    fn arrived(&mut self, id: u32, now: Time) {
        let Some(one) = self.uploads.remove(&id) else { return };
        let Upload { from, to, block, begun, .. } = one;
        let lies = self.member(from).peer.conduct == SwarmConduct::Lies;
        let fate = if lies { SwarmFate::Wrong } else { SwarmFate::Came };
        self.note(&one, begun.unwrap_or(now), now, fate);
        self.origin_sent += u32::from(from == 0);
        if lies {
            self.member(to).node.lost(block);
            self.outcome.named.entry(from).or_insert(now);
            self.cost.vain += 1.0;
            self.tell(to, SwarmMessage::Lost(block), now);
            // They do not meet again.
            self.known[to as usize].remove(&from);
            self.known[from as usize].remove(&to);
            self.member(to).node.part(from);
            self.disconnect(to, from, now);
        } else {
            let member = self.member(to);
            member.node.came(block);
            if member.node.is_complete() {
                self.outcome.done[to as usize - 1] = Some(now);
                self.lacking -= 1;
            }
            self.tell(to, SwarmMessage::Has(block), now);
        }
        self.tell_room(to, now);
        self.send(to, now);
        if from == 0 && self.origin_sends == Some(self.origin_sent) {
            self.leave(0, now);
        }
    }

    fn leave(&mut self, node: u32, now: Time) {
        if !std::mem::replace(&mut self.member(node).is_here, false) {
            return;
        }
        self.outcome.left.insert(node, now);
        self.lacking -= usize::from(node > 0 && !self.member(node).node.is_complete());
        let neighbours = std::mem::take(&mut self.member(node).neighbours);
        for at in neighbours {
            self.member(at).neighbours.remove(&node);
            self.agenda.push(now + self.delay, SwarmEvent::Parted { at, from: node });
        }
        self.cut(|from, to| from == node || to == node, now);
    }
}

/// A count for a rate that is so many times the usual one; one at least.
fn times(rate: f64, count: usize) -> usize {
    ((rate * count as f64 + 0.5) as usize).max(1)
}
