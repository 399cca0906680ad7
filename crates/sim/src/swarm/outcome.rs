use std::collections::BTreeMap;

use fontis_base::Time;

/// What came of a swarm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SwarmOutcome {
    /// When each peer had everything; node 1 is the first.
    pub done: Vec<Option<Time>>,
    /// Who left, and when; node 0 is the origin.
    pub left: BTreeMap<u32, Time>,
    /// Peers that were found to send what is wrong, and when first.
    pub named: BTreeMap<u32, Time>,
    /// Blocks on their ways, in the order of their ends.
    pub transfers: Vec<SwarmTransfer>,
    /// What it cost beside that; none where nobody sees it.
    pub cost: Option<SwarmCost>,
}

/// What a swarm costs beside the blocks that are of use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SwarmCost {
    /// Blocks that were of no use: whole ones that were wrong, and the parts of others that had
    /// left when they were cut off.
    pub vain: f64,
    /// Offers that were refused.
    pub refused: u64,
    /// Messages to neighbours.
    pub messages: u64,
}

/// A block's way from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwarmTransfer {
    /// The node that sent it.
    pub from: u32,
    /// The node to which it was sent.
    pub to: u32,
    /// The block.
    pub block: u32,
    /// When it began to leave.
    pub begun: Time,
    /// When it was there whole, or came no more.
    pub ended: Time,
    /// What became of it.
    pub fate: SwarmFate,
}

/// What became of a block on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwarmFate {
    /// It came.
    Came,
    /// It came, and was wrong.
    Wrong,
    /// Its sender or its receiver left, or did not reach the other any more.
    Cut,
}

impl SwarmFate {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Came => "came",
            Self::Wrong => "wrong",
            Self::Cut => "cut",
        }
    }
}

impl SwarmOutcome {
    /// The time in seconds by which this share of those who have everything had it.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut times: Vec<f64> = self.done.iter().flatten().map(|one| one.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        let last = times.len().saturating_sub(1);
        times.get((last as f64 * share + 0.5) as usize).copied().unwrap_or(f64::INFINITY)
    }

    /// The time in seconds by which the last had everything.
    pub fn last(&self) -> f64 {
        self.quantile(1.0)
    }

    /// Whole blocks that a node sent, right or wrong.
    pub fn sent_by(&self, node: u32) -> usize {
        let whole = self.transfers.iter().filter(|one| one.fate != SwarmFate::Cut);
        whole.filter(|one| one.from == node).count()
    }

    /// Whole blocks that all sent, right or wrong.
    pub fn sent(&self) -> usize {
        self.transfers.iter().filter(|one| one.fate != SwarmFate::Cut).count()
    }
}
