use fontis_base::{Duration, Rate, Size, Time};

/// A swarm: an origin that has an object, and peers that want it.
#[derive(Clone, Debug, PartialEq)]
pub struct SwarmSpec {
    /// Blocks of the object.
    pub blocks: u32,
    /// Bytes of a block.
    pub block: Size,
    /// The origin.
    pub origin: SwarmPeer,
    /// The origin leaves when it has sent so many blocks.
    pub origin_sends: Option<u32>,
    /// The others, from node 1 on.
    pub peers: Vec<SwarmPeer>,
    /// Neighbours of a node, about.
    pub neighbours: usize,
    /// So many of the peers, the first ones, know the origin; the others know only them. Zero: any
    /// node may know any other.
    pub relays: usize,
    /// One way between any two nodes.
    pub delay: Duration,
    /// Blocks that a node sends at once whose uplink is the peers' mean downlink; a node with a
    /// faster one sends more.
    pub uploads: usize,
    /// Blocks that a node of the mean downlink takes at once, those left out that have nearly come.
    pub downloads: usize,
    /// From and until when the nodes of the first half and the others do not reach each other.
    pub partition: Option<(Time, Time)>,
}

/// A node of a swarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwarmPeer {
    /// Its uplink.
    pub up: Rate,
    /// Its downlink.
    pub down: Rate,
    /// The share of packets that are lost on the way to it.
    pub loss: f64,
    /// When it comes.
    pub joins: Time,
    /// When it leaves, if it does.
    pub leaves: Option<Time>,
    /// What it does with blocks that it has.
    pub conduct: SwarmConduct,
}

/// What a node does with blocks that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwarmConduct {
    /// It sends them on.
    #[default]
    Honest,
    /// What it sends is wrong.
    Lies,
    /// It sends nothing.
    Silent,
}

impl SwarmPeer {
    /// One of this rate in both directions, which sends on what it has.
    pub const fn of(rate: Rate) -> Self {
        Self {
            up: rate,
            down: rate,
            loss: 0.0,
            joins: Time::ZERO,
            leaves: None,
            conduct: SwarmConduct::Honest,
        }
    }
}

impl SwarmSpec {
    /// Bytes of the object.
    pub fn bytes(&self) -> f64 {
        f64::from(self.blocks) * self.block.as_bytes() as f64
    }

    /// The least time in which everybody can have everything, in seconds: max(F/U_s, F/D_min,
    /// nF/(U_s + ΣU)). Uploads of those who send nothing, or what is wrong, do not count; those of
    /// peers that come late or leave do. With relays also (n − relays)·F/ΣU of the relays: nobody
    /// else feeds the others.
    pub fn bound(&self) -> f64 {
        let file = self.bytes() * 8.0;
        let down = |one: &SwarmPeer| bps(one.down) * (1.0 - one.loss);
        let slowest = self.peers.iter().map(down).fold(f64::INFINITY, f64::min);
        let useful = self.peers.iter().filter(|one| one.conduct == SwarmConduct::Honest);
        let own = bps(self.origin.up);
        let all = own + useful.map(|one| bps(one.up)).sum::<f64>();
        let n = self.peers.len() as f64;
        let least = (file / own).max(file / slowest).max(n * file / all);
        // What the others have, the relays have sent.
        let others = self.peers.len().saturating_sub(self.relays) as f64;
        let relays = self.peers.iter().take(self.relays);
        let relays = relays.filter(|one| one.conduct == SwarmConduct::Honest);
        match self.relays {
            0 => least,
            _ => least.max(others * file / relays.map(|one| bps(one.up)).sum::<f64>()),
        }
    }

    /// Blocks a second of a rate.
    pub(super) fn blocks_per_second(&self, rate: Rate) -> f64 {
        bps(rate) / 8.0 / self.block.as_bytes() as f64
    }
}

fn bps(rate: Rate) -> f64 {
    rate.as_bps() as f64
}
