use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fontis_proto::dfcp::DfcpStats;
use fontis_proto::swarm::{SwarmConfig, SwarmNode};
use tokio::sync::watch;

use super::content::Content;
use super::state::{Letters, State};
use super::wire::SwarmWire;
use crate::hash_tree::HashTree;
use crate::moment;
use crate::random::random;
use crate::task;
use crate::transfer::TransferError;
use crate::transfer::cast::Caster;
use crate::transfer::message::{Offer, encode};
use crate::transfer::outgoing::{CODE_COMPLETE, IN_TURN};

/// Blocks that a node sends at once: more slow the beginning, fewer leave a part of the uplink
/// unused while rates are found and offers refused (`docs/swarm.md`).
const UPLOADS: usize = 3;
/// News wait so long for others, which then need no packet of their own.
const NEWS_EVERY: Duration = Duration::from_millis(10);
/// The interval of upkeep.
const UPKEEP_EVERY: Duration = Duration::from_secs(1);

/// The silence after which a neighbour is asked whether it is there, after which nobody waits for
/// it, and after which it is parted from.
const QUIET: Duration = Duration::from_secs(1);
const SILENT: Duration = Duration::from_secs(3);
const GONE: Duration = Duration::from_secs(6);

/// What happens in a swarm, for the user of this side.
#[derive(Debug)]
pub(super) enum SwarmEvent {
    /// A neighbour is there.
    Met(SocketAddr),
    /// A neighbour is gone because of an error.
    Parted(SocketAddr, TransferError),
    /// An address has sent packets to the group that are not the sender's: so many so far.
    Forged { from: IpAddr, packets: u64 },
    /// A block is stored that a neighbour, or the sender of a group, has sent.
    Fed {
        remote: SocketAddr,
        /// Its key.
        key: String,
        block: u32,
        bytes: u64,
        took: Duration,
    },
}

/// What a node is.
pub(super) enum Role {
    /// The first, which may cast the object to a group as well.
    Origin(Option<Arc<Caster>>),
    /// One that asked the server with this key first.
    Node([u8; 32]),
}

/// One node of a swarm around an object: what it has, and whom it knows.
pub(crate) struct Swarm {
    pub(super) tree: Arc<HashTree>,
    pub(super) content: Content,
    /// What newcomers get.
    pub(super) offer: Offer,
    /// What casts it to a group, if this is the origin and it does.
    pub(super) caster: Option<Arc<Caster>>,
    /// The key of the server that this node asked first.
    pub(super) home: Option<[u8; 32]>,
    state: Mutex<State>,
    /// Something has changed that others wait for.
    changed: watch::Sender<()>,
    events: Box<dyn Fn(SwarmEvent) + Send + Sync>,
}

impl Swarm {
    /// A node that has the blocks of `there`, and runs until it is dropped.
    pub(super) fn new(
        (tree, content, offer): (Arc<HashTree>, Content, Offer),
        role: Role,
        there: impl Iterator<Item = u32>,
        own_key: [u8; 32],
        events: impl Fn(SwarmEvent) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let count = u32::try_from(tree.block_count()).unwrap_or(u32::MAX);
        let (is_origin, caster, home) = match role {
            Role::Origin(caster) => (true, caster, None),
            Role::Node(home) => (false, None, Some(home)),
        };
        let config = SwarmConfig { blocks: count, uploads: UPLOADS, is_origin };
        let seed = u64::from_le_bytes(random());
        let mut policy = SwarmNode::new(config, seed);
        there.for_each(|block| policy.came(block));
        let swarm = Arc::new(Self {
            tree,
            content,
            offer,
            caster,
            home,
            state: Mutex::new(State::new(policy, count, own_key, seed)),
            changed: watch::Sender::new(()),
            events: Box::new(events),
        });
        task::spawn(Self::keep_up(Arc::downgrade(&swarm)));
        swarm
    }

    /// Whether an offer is of this swarm's object, in the same blocks.
    pub(super) fn is_of(&self, offer: &Offer) -> bool {
        let Offer { root, size, block_size, .. } = &self.offer;
        (root, size, block_size) == (&offer.root, &offer.size, &offer.block_size)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, event: SwarmEvent) {
        (self.events)(event);
    }

    /// A receiver that is told of changes.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    async fn keep_up(swarm: Weak<Self>) {
        let mut changes = match swarm.upgrade() {
            Some(swarm) => swarm.changes(),
            None => return,
        };
        let mut looked = moment::now();
        loop {
            // Nobody changes what is dropped.
            if let Ok(Err(_)) = task::timeout(UPKEEP_EVERY, changes.changed()).await {
                return;
            }
            task::sleep(NEWS_EVERY).await;
            changes.borrow_and_update();
            let Some(swarm) = swarm.upgrade() else { return };
            if moment::now() - looked >= UPKEEP_EVERY {
                looked = moment::now();
                swarm.look_for_silence().await;
                swarm.state().make_way();
                swarm.offer_more();
            }
            swarm.send_news();
        }
    }

    /// What the dead hold up is others'. Who is quiet is asked, by news of nothing, whether it is
    /// there.
    async fn look_for_silence(&self) {
        let edges = self.state().connections();
        for (id, connection) in edges {
            let silence = connection.silence().await.unwrap_or_default();
            if silence > GONE {
                connection.close(0, "nothing was heard for too long");
            } else if silence > SILENT {
                self.state().silent(id);
            } else if silence > QUIET {
                send(vec![(connection, SwarmWire::News(Vec::new()))]);
            }
        }
    }

    fn send_news(&self) {
        let news = self.state().take_news();
        if let Some((neighbours, news)) = news {
            neighbours.iter().for_each(|one| one.send_message(news.clone(), IN_TURN));
        }
    }

    /// The counters of all connections so far.
    pub(super) async fn stats(&self) -> DfcpStats {
        let edges = self.state().connections();
        let mut sum = DfcpStats::default();
        for (id, connection) in edges {
            let stats = connection.stats().await;
            sum = sum.with(&self.state().counted(id, stats));
        }
        sum.with(&self.state().gone)
    }

    /// Makes what offers there are to be made, and lets waiting tasks look.
    pub(super) fn offer_more(&self) {
        let offers = self.state().offers();
        send(offers);
    }

    /// Something has changed.
    pub(super) fn wake(&self) {
        self.offer_more();
        self.changed.send_replace(());
    }

    /// Ends everything: the neighbours are told.
    pub(super) fn leave(&self) {
        let (edges, is_complete) = {
            let mut state = self.state();
            state.is_over = true;
            (state.connections(), state.policy.is_complete())
        };
        let code = if is_complete { CODE_COMPLETE } else { 0 };
        edges.iter().for_each(|(_, one)| one.close(code, ""));
        self.changed.send_replace(());
    }
}

/// Sends messages, in their order.
pub(super) fn send(letters: Letters) {
    for (connection, letter) in letters {
        connection.send_message(encode(&letter), IN_TURN);
    }
}
