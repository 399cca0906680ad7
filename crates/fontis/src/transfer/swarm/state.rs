mod contacts;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis_base::Stream;
use fontis_proto::dfcp::DfcpStats;
use fontis_proto::swarm::{SwarmMessage, SwarmNode, SwarmUpload};
use tokio::sync::oneshot;

use super::times::Times;
use super::wire::{News, Reason, SwarmWire, bits};
use crate::connection::{Connection, RecvObject};
use crate::moment;
use crate::sink::SinkError;
use crate::transfer::message::encode;

/// A block that takes so many times as long as others is late.
const HURRY: u32 = 2;
/// Blocks that come at once, but for those that have nearly come or take long, and those too; and
/// the same of one neighbour.
const DOWNLOADS: (usize, usize) = (4, 32);
const DOWNLOADS_OF_ONE: (usize, usize) = (3, 8);
/// Blocks that a neighbour may leave unsent before no more are taken from it, until some time has
/// passed: it may have been this side's way to it that was slow.
const STALLS: u32 = 2;
const STALLED: Duration = Duration::from_secs(60);
/// The time for an offer's answer, until the upload makes way for another.
const ANSWER: Duration = Duration::from_secs(5);
/// A neighbour.
pub(super) struct Edge {
    pub(super) connection: Connection,
    address: SocketAddr,
    pub(super) key: [u8; 32],
    /// Whether this side has connected.
    is_ours: bool,
    /// Told when the neighbour has everything.
    complete: Option<oneshot::Sender<()>>,
    /// Whether it has said what it has.
    is_known: bool,
    uploads: BTreeMap<u32, Upload>,
    downloads: BTreeMap<u32, Download>,
    next_upload: u32,
    /// It leaves an offer or an upload waiting, and gets no more until it moves on.
    is_late: bool,
    /// Blocks that it did not send in time since one came, and when it last did not.
    stalls: (u32, Option<Instant>),
    introduced: Option<Instant>,
    /// Nothing came from it for long.
    is_silent: bool,
    /// Its counters when they were last looked at.
    stats: DfcpStats,
}

struct Upload {
    block: u32,
    /// When it was offered, or taken.
    since: Instant,
    taken: bool,
    /// Whether it keeps the policy from the next.
    occupies: bool,
}

struct Download {
    block: u32,
    begun: Instant,
    ending: bool,
    opened: Option<oneshot::Sender<RecvObject>>,
}

/// A download to wait for.
pub(super) struct Expected {
    pub(super) edge: u32,
    pub(super) upload: u32,
    pub(super) block: u32,
    pub(super) opened: oneshot::Receiver<RecvObject>,
    pub(super) patience: Duration,
}

/// Another node that this one may connect to.
struct Known {
    address: SocketAddr,
    tried: Option<Instant>,
}

/// Messages to leave.
pub(super) type Letters = Vec<(Connection, SwarmWire)>;

/// What a node knows, and what goes on.
pub(super) struct State {
    pub(super) policy: SwarmNode,
    blocks: u32,
    pub(super) own_key: [u8; 32],
    pub(super) edges: BTreeMap<u32, Edge>,
    next_edge: u32,
    known: BTreeMap<[u8; 32], Known>,
    /// Keys of those that sent what is wrong.
    banned: BTreeSet<[u8; 32]>,
    news: Vec<News>,
    has_room: bool,
    /// Until then a group is listened to, and nothing taken from neighbours.
    listens_until: Option<Instant>,
    /// Somebody was refused for want of room, and waits to hear of some.
    owes_room: bool,
    random: Stream,
    pub(super) downloads_took: Times,
    pub(super) uploads_took: Times,
    /// Bytes of blocks that have been sent, as far as their receivers say.
    pub(super) delivered: u64,
    /// The disk's words.
    pub(super) failure: Option<SinkError>,
    /// The counters of connections that are over.
    pub(super) gone: DfcpStats,
    /// Whether nothing is begun any more.
    pub(super) closes: bool,
    /// Whether this side has left.
    pub(super) is_over: bool,
}

impl State {
    pub(super) fn new(policy: SwarmNode, blocks: u32, own_key: [u8; 32], seed: u64) -> Self {
        Self {
            policy,
            blocks,
            own_key,
            edges: BTreeMap::new(),
            next_edge: 0,
            known: BTreeMap::new(),
            banned: BTreeSet::new(),
            news: Vec::new(),
            has_room: true,
            listens_until: None,
            owes_room: false,
            random: Stream::new(seed, "swarm contacts"),
            downloads_took: Times::default(),
            uploads_took: Times::default(),
            delivered: 0,
            failure: None,
            gone: DfcpStats::default(),
            closes: false,
            is_over: false,
        }
    }

    /// Takes a connection in, unless there is one to the same node already: of two that two nodes
    /// made to each other at once, both keep that of the lower key. Also the one that makes way.
    pub(super) fn join(
        &mut self,
        connection: &Connection,
        is_ours: bool,
        complete: Option<oneshot::Sender<()>>,
    ) -> Result<(u32, Option<Connection>), &'static str> {
        let key = connection.peer_key();
        if self.is_over {
            return Err("this node leaves");
        }
        if self.banned.contains(&key) || key == self.own_key {
            return Err("a node that is not wanted");
        }
        let mut replaced = None;
        if let Some((id, old)) = self.edges.iter().find(|(_, edge)| edge.key == key) {
            let prefers_ours = self.own_key < key;
            let is_twin = old.is_ours != is_ours && is_ours == prefers_ours;
            if !is_twin && !old.is_silent {
                return Err("there is a connection already");
            }
            replaced = Some((*id, old.connection.clone()));
        }
        if let Some((id, _)) = &replaced {
            self.part(*id);
        }
        let remote = connection.remote_addr();
        let address = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let id = self.next_edge;
        self.next_edge += 1;
        let edge = Edge {
            connection: connection.clone(),
            address,
            key,
            is_ours,
            complete,
            is_known: false,
            uploads: BTreeMap::new(),
            downloads: BTreeMap::new(),
            next_upload: 0,
            is_late: false,
            stalls: (0, None),
            introduced: None,
            is_silent: false,
            stats: DfcpStats::default(),
        };
        self.edges.insert(id, edge);
        Ok((id, replaced.map(|(_, connection)| connection)))
    }

    /// What a node says first.
    pub(super) fn hello(&self) -> [SwarmWire; 2] {
        let has = SwarmWire::Has(bits(self.policy.blocks(), self.blocks));
        let coming = self.policy.coming().map(News::Coming);
        [has, SwarmWire::News(coming.chain([News::Room(self.has_room)]).collect())]
    }

    /// Forgets a neighbour, and what went on with it; whether it had everything.
    pub(super) fn part(&mut self, id: u32) -> bool {
        let is_served = self.policy.is_served(id);
        let Some(edge) = self.edges.remove(&id) else { return is_served };
        edge.uploads.values().filter(|one| one.occupies).for_each(|_| self.policy.sent());
        self.policy.part(id);
        self.gone = self.gone.with(&edge.stats);
        for download in edge.downloads.values() {
            self.lose(download.block);
        }
        self.tell_room();
        is_served
    }

    /// Forgets a neighbour that lies, for good.
    pub(super) fn ban(&mut self, id: u32) {
        if let Some(edge) = self.edges.get(&id) {
            self.banned.insert(edge.key);
        }
        self.part(id);
    }

    /// Takes what a neighbour says first.
    pub(super) fn learn(&mut self, id: u32, has: impl Iterator<Item = u32>) {
        let Some(edge) = self.edges.get_mut(&id).filter(|edge| !edge.is_known) else { return };
        edge.is_known = true;
        self.policy.meet(id);
        has.for_each(|block| self.policy.hear(id, SwarmMessage::Has(block)));
        self.look_at(id);
    }

    /// Takes a neighbour's news.
    pub(super) fn hear(&mut self, id: u32, news: Vec<News>) {
        news.into_iter().for_each(|one| self.policy.hear(id, one.into()));
        self.look_at(id);
    }

    fn look_at(&mut self, id: u32) {
        if self.policy.is_served(id)
            && let Some(complete) = self.edges.get_mut(&id).and_then(|edge| edge.complete.take())
        {
            let _ = complete.send(());
        }
    }

    /// The offers that are to be made now.
    pub(super) fn offers(&mut self) -> Letters {
        let mut letters = Letters::new();
        while !self.is_over
            && !self.closes
            && let Some(SwarmUpload { to, block }) = self.policy.next_upload()
        {
            let Some(edge) = self.edges.get_mut(&to) else {
                self.policy.sent();
                continue;
            };
            let upload = edge.next_upload;
            edge.next_upload = edge.next_upload.wrapping_add(1);
            let one = Upload { block, since: moment::now(), taken: false, occupies: true };
            edge.uploads.insert(upload, one);
            letters.push((edge.connection.clone(), SwarmWire::Offer { upload, block }));
        }
        letters
    }

    /// A neighbour takes an offer; the block, if it was offered.
    pub(super) fn taken(&mut self, id: u32, upload: u32) -> Option<u32> {
        let one = self.edges.get_mut(&id)?.uploads.get_mut(&upload).filter(|one| !one.taken)?;
        (one.taken, one.since) = (true, moment::now());
        let block = one.block;
        self.moves_on(id);
        Some(block)
    }

    /// A neighbour has answered, or has taken what was sent.
    fn moves_on(&mut self, id: u32) {
        let edge = self.edges.get_mut(&id);
        if edge.is_some_and(|edge| std::mem::replace(&mut edge.is_late, false)) {
            self.policy.hear(id, SwarmMessage::Room(true));
        }
    }

    /// A neighbour refuses an offer.
    pub(super) fn refused(&mut self, id: u32, upload: u32, reason: Reason) {
        let Some(edge) = self.edges.get_mut(&id) else { return };
        let is_offered = edge.uploads.get(&upload).is_some_and(|one| !one.taken);
        let Some(one) = edge.uploads.remove(&upload).filter(|_| is_offered) else { return };
        if one.occupies {
            self.policy.sent();
        }
        self.moves_on(id);
        if reason == Reason::Full {
            self.policy.hear(id, SwarmMessage::Lost(one.block));
            self.policy.hear(id, SwarmMessage::Room(false));
        }
    }

    /// Most of an upload has left: the next may be offered.
    pub(super) fn ending(&mut self, id: u32, upload: u32) {
        let one = self.edges.get_mut(&id).and_then(|edge| edge.uploads.get_mut(&upload));
        if one.is_some_and(|one| std::mem::replace(&mut one.occupies, false)) {
            self.policy.sent();
        }
    }

    /// An upload is over.
    pub(super) fn uploaded(&mut self, id: u32, upload: u32, delivered: Option<u64>) {
        self.ending(id, upload);
        self.delivered += delivered.unwrap_or(0);
        let edge = self.edges.get_mut(&id);
        let Some(one) = edge.and_then(|edge| edge.uploads.remove(&upload)) else { return };
        if delivered.is_some() {
            self.uploads_took.add(moment::now() - one.since);
            self.moves_on(id);
            return;
        }
        self.policy.hear(id, SwarmMessage::Lost(one.block));
        // With nothing left to move on with, it would get nothing for ever.
        if self.edges.get(&id).is_some_and(|edge| edge.uploads.is_empty()) {
            self.moves_on(id);
        }
    }

    /// A block that was here can be read no more.
    pub(super) fn forget(&mut self, block: u32) {
        self.policy.forget(block);
        self.news.push(News::Gone(block));
    }

    /// Looks at what has waited for long: offers that nobody answers, and uploads that take much
    /// longer than others, make way for others; they may end in their own time.
    pub(super) fn make_way(&mut self) {
        let now = moment::now();
        let mut late = Vec::new();
        for (id, edge) in &self.edges {
            let uploads = edge.uploads.iter().filter(|(_, one)| one.occupies);
            late.extend(uploads.filter_map(|(upload, one)| {
                let waits = now - one.since;
                let is_late = match one.taken {
                    true => self.uploads_took.is_late(waits),
                    false => waits >= ANSWER,
                };
                is_late.then_some((*id, *upload))
            }));
        }
        for (id, upload) in late {
            self.ending(id, upload);
            self.policy.hear(id, SwarmMessage::Room(false));
            if let Some(edge) = self.edges.get_mut(&id) {
                edge.is_late = true;
            }
        }
        self.hurry();
        self.tell_room();
    }

    /// Whether an offered block is wanted: what to wait for, or why not.
    pub(super) fn consider(
        &mut self,
        id: u32,
        upload: u32,
        block: u32,
    ) -> Option<Result<Expected, Reason>> {
        let has_room = self.has_room() && !self.is_over;
        let edge = self.edges.get_mut(&id)?;
        if edge.downloads.contains_key(&upload) || block >= self.blocks {
            return None;
        }
        if !self.policy.wants(block) {
            return Some(Err(Reason::Held));
        }
        let (stalls, stalled) = edge.stalls;
        let is_stalled = stalled.is_some_and(|at| moment::now() - at < STALLED);
        if !has_room
            || stalls >= STALLS && is_stalled
            || !is_below(count(edge.downloads.values(), &self.downloads_took), DOWNLOADS_OF_ONE)
        {
            self.owes_room = true;
            return Some(Err(Reason::Full));
        }
        self.policy.accept(block);
        let (opens, opened) = oneshot::channel();
        edge.downloads.insert(
            upload,
            Download { block, begun: moment::now(), ending: false, opened: Some(opens) },
        );
        self.news.push(News::Coming(block));
        self.tell_room();
        let patience = self.downloads_took.patience();
        Some(Ok(Expected { edge: id, upload, block, opened, patience }))
    }

    fn has_room(&self) -> bool {
        if self.listens() {
            return false;
        }
        let all = self.edges.values().flat_map(|edge| edge.downloads.values());
        is_below(count(all, &self.downloads_took), DOWNLOADS)
    }

    /// A group is listened to for so long.
    pub(super) fn listen(&mut self, time: Duration) {
        self.listens_until = Some(moment::now() + time);
        self.tell_room();
    }

    /// Whether a group is listened to.
    pub(super) fn listens(&self) -> bool {
        self.listens_until.is_some_and(|until| moment::now() < until)
    }

    /// A block has come from a group, and is stored; false if it has come twice.
    pub(super) fn came_from_group(&mut self, block: u32) -> bool {
        let is_new = !self.policy.has(block);
        self.policy.came(block);
        self.news.push(News::Has(block));
        is_new
    }

    /// A neighbour opens an object; returned if nobody waits for it.
    pub(super) fn opened(
        &mut self,
        id: u32,
        upload: u32,
        object: RecvObject,
    ) -> Option<RecvObject> {
        let edge = self.edges.get_mut(&id);
        match edge.and_then(|edge| edge.downloads.get_mut(&upload)?.opened.take()) {
            Some(opened) => opened.send(object).err(),
            None => Some(object),
        }
    }

    /// Most of a download has left its sender.
    pub(super) fn is_ending(&mut self, id: u32, upload: u32) {
        let edge = self.edges.get_mut(&id);
        if let Some(one) = edge.and_then(|edge| edge.downloads.get_mut(&upload)) {
            one.ending = true;
        }
        self.tell_room();
    }

    /// A block has come, in this time, and is stored; false if it has come twice.
    pub(super) fn came(&mut self, id: u32, upload: u32, block: u32, took: Duration) -> bool {
        let is_new = !self.policy.has(block);
        if let Some(edge) = self.edges.get_mut(&id) {
            edge.downloads.remove(&upload);
            edge.stalls = (0, None);
        }
        self.downloads_took.add(took);
        self.policy.came(block);
        self.news.push(News::Has(block));
        self.tell_room();
        is_new
    }

    /// A block does not come; `stalled` if it should have by now.
    pub(super) fn missed(&mut self, id: u32, upload: u32, stalled: bool) {
        let edge = self.edges.get_mut(&id);
        let missed = edge.and_then(|edge| {
            if stalled {
                edge.stalls = (edge.stalls.0 + 1, Some(moment::now()));
            }
            edge.downloads.remove(&upload)
        });
        if let Some(one) = missed {
            self.lose(one.block);
        }
        self.tell_room();
    }

    fn lose(&mut self, block: u32) {
        if !self.policy.has(block) {
            self.policy.lost(block);
            self.news.push(News::Lost(block));
        }
    }

    /// At the end, when everything that is lacking comes, others may send what takes long, too: who
    /// is slow is not waited for.
    fn hurry(&mut self) {
        let Some(usual) = self.downloads_took.usual() else { return };
        let there = self.policy.blocks().count() + self.policy.coming().count();
        if there < self.blocks as usize {
            return;
        }
        let now = moment::now();
        let mut late = Vec::new();
        for edge in self.edges.values_mut() {
            let slow = edge.downloads.extract_if(.., |_, one| now - one.begun > usual * HURRY);
            late.extend(slow.map(|(_, one)| one.block));
        }
        late.into_iter().for_each(|block| self.lose(block));
    }

    /// Nothing comes from a neighbour any more: what comes from it or goes to it makes way for
    /// others, until it is heard again.
    pub(super) fn silent(&mut self, id: u32) {
        let Some(edge) = self.edges.get_mut(&id) else { return };
        edge.is_silent = true;
        let (uploads, downloads): (Vec<u32>, _) =
            (edge.uploads.keys().copied().collect(), std::mem::take(&mut edge.downloads));
        uploads.into_iter().for_each(|upload| self.ending(id, upload));
        downloads.values().for_each(|download| self.lose(download.block));
        self.policy.hear(id, SwarmMessage::Room(false));
        self.tell_room();
    }

    /// Something comes from a neighbour.
    pub(super) fn heard(&mut self, id: u32) {
        let edge = self.edges.get_mut(&id);
        if edge.is_some_and(|edge| std::mem::replace(&mut edge.is_silent, false)) {
            self.policy.hear(id, SwarmMessage::Room(true));
        }
    }

    fn tell_room(&mut self) {
        let has_room = self.has_room();
        if has_room != self.has_room || (has_room && self.owes_room) {
            (self.has_room, self.owes_room) = (has_room, false);
            self.news.push(News::Room(has_room));
        }
    }

    /// The connections of all neighbours.
    pub(super) fn connections(&self) -> Vec<(u32, Connection)> {
        self.edges.iter().map(|(id, edge)| (*id, edge.connection.clone())).collect()
    }

    /// Keeps the counters of a neighbour's connection; the latest that there are.
    pub(super) fn counted(&mut self, id: u32, stats: Option<DfcpStats>) -> DfcpStats {
        let Some(edge) = self.edges.get_mut(&id) else { return DfcpStats::default() };
        edge.stats = stats.unwrap_or(edge.stats);
        edge.stats
    }

    /// Whether blocks are being sent.
    pub(super) fn is_sending(&self) -> bool {
        let takers = self.edges.values().filter(|edge| !edge.is_silent);
        takers.flat_map(|edge| edge.uploads.values()).any(|one| one.taken)
    }

    /// The news for all neighbours.
    pub(super) fn take_news(&mut self) -> Option<(Vec<Connection>, Bytes)> {
        let news = std::mem::take(&mut self.news);
        let all = self.edges.values().map(|edge| edge.connection.clone());
        (!news.is_empty()).then(|| (all.collect(), encode(&SwarmWire::News(news))))
    }
}

/// Downloads that count as under way, and all of them. What takes much longer than others counts
/// for little: who sends nothing keeps nobody else out.
fn count<'a>(downloads: impl Iterator<Item = &'a Download>, took: &Times) -> (usize, usize) {
    let now = moment::now();
    downloads.fold((0, 0), |(active, all), one| {
        let is_active = !one.ending && !took.is_late(now - one.begun);
        (active + usize::from(is_active), all + 1)
    })
}

const fn is_below(count: (usize, usize), most: (usize, usize)) -> bool {
    count.0 < most.0 && count.1 < most.1
}
