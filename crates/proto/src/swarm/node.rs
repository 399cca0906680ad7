use std::cmp::Reverse;
use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use fontis_base::Stream;

use super::neighbour::Neighbour;

/// Neighbours that are looked at for one choice.
const TRIED: usize = 8;

/// The choices of a node.
#[derive(Clone, Copy, Debug)]
pub struct SwarmConfig {
    /// Blocks of the object.
    pub blocks: u32,
    /// Blocks that it sends at once.
    pub uploads: usize,
    /// Whether it had the object from the beginning. Such a node sends each block once before any a
    /// second time: what it has sent, others can pass on.
    pub is_origin: bool,
}

/// What a node tells its neighbours about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwarmMessage {
    /// It has a block.
    Has(u32),
    /// A block comes to it.
    Coming(u32),
    /// A block comes no more, and is lacking.
    Lost(u32),
    /// It has a block no more.
    Gone(u32),
    /// Whether it takes more at present.
    Room(bool),
}

/// A block to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwarmUpload {
    /// The neighbour.
    pub to: u32,
    /// The block.
    pub block: u32,
}

/// One node of a swarm.
#[derive(Debug)]
pub struct SwarmNode {
    config: SwarmConfig,
    stream: Stream,
    own: FixedBitSet,
    coming: FixedBitSet,
    neighbours: BTreeMap<u32, Neighbour>,
    /// For each block, the neighbours that have it or get it.
    holders: Vec<u32>,
    /// For each block, how often this node has begun to send it.
    sent: Vec<u32>,
    /// For each block that one neighbour alone has or gets, and from here: that neighbour.
    given: Vec<Option<u32>>,
    /// Uploads that go on.
    uploads: usize,
}

impl SwarmNode {
    /// A node without neighbours.
    pub fn new(config: SwarmConfig, seed: u64) -> Self {
        let blocks = config.blocks as usize;
        let mut own = FixedBitSet::with_capacity(blocks);
        own.set_range(.., config.is_origin);
        Self {
            config,
            stream: Stream::new(seed, "swarm"),
            own,
            coming: FixedBitSet::with_capacity(blocks),
            neighbours: BTreeMap::new(),
            holders: vec![0; blocks],
            sent: vec![0; blocks],
            given: vec![None; blocks],
            uploads: 0,
        }
    }

    /// Whether it has everything.
    pub fn is_complete(&self) -> bool {
        self.own.is_full()
    }

    /// The blocks that it has.
    pub fn blocks(&self) -> impl Iterator<Item = u32> {
        self.own.ones().map(|block| block as u32)
    }

    /// Whether it has a block.
    pub fn has(&self, block: u32) -> bool {
        self.own.contains(block as usize)
    }

    /// The blocks that come to it.
    pub fn coming(&self) -> impl Iterator<Item = u32> {
        self.coming.ones().map(|block| block as u32)
    }

    /// Whether a neighbour has everything, as far as is known.
    pub fn is_served(&self, neighbour: u32) -> bool {
        self.neighbours.get(&neighbour).is_some_and(|one| one.lacking == 0)
    }

    /// Whether the swarm needs this node: its neighbours that lack something, and so stay, do not
    /// have together all that it has.
    pub fn is_needed(&self) -> bool {
        let mut theirs = FixedBitSet::with_capacity(self.own.len());
        let mut lack = false;
        for one in self.neighbours.values().filter(|one| one.lacking > 0) {
            lack = true;
            theirs.union_with(&one.has);
        }
        lack && !self.own.is_subset(&theirs)
    }

    /// Whether a neighbour has a block that this node lacks.
    pub fn can_go_on(&self) -> bool {
        self.neighbours.values().any(|one| !one.has.is_subset(&self.own))
    }

    /// Another node, which has nothing as far as is known.
    pub fn meet(&mut self, neighbour: u32) {
        let blocks = self.config.blocks as usize;
        self.neighbours.entry(neighbour).or_insert_with(|| Neighbour::new(blocks));
    }

    /// A neighbour is gone.
    pub fn part(&mut self, neighbour: u32) {
        let Some(gone) = self.neighbours.remove(&neighbour) else { return };
        for block in gone.has.union(&gone.coming) {
            self.holders[block] -= 1;
            if self.given[block] == Some(neighbour) {
                self.given[block] = None;
            }
        }
    }

    /// Takes what a neighbour tells; what no neighbour tells, or of no block, is ignored.
    pub fn hear(&mut self, from: u32, message: SwarmMessage) {
        let Some(neighbour) = self.neighbours.get_mut(&from) else { return };
        let block = match message {
            SwarmMessage::Room(has_room) => {
                neighbour.has_room = has_room;
                return;
            }
            SwarmMessage::Has(block)
            | SwarmMessage::Coming(block)
            | SwarmMessage::Lost(block)
            | SwarmMessage::Gone(block) => block as usize,
        };
        if block >= self.holders.len() {
            return;
        }
        let had = neighbour.has.contains(block);
        let held = had || neighbour.coming.contains(block);
        match message {
            SwarmMessage::Has(_) => {
                neighbour.coming.remove(block);
                neighbour.has.insert(block);
                neighbour.lacking -= usize::from(!had);
            }
            SwarmMessage::Coming(_) if !had => neighbour.coming.insert(block),
            SwarmMessage::Lost(_) => neighbour.coming.remove(block),
            SwarmMessage::Gone(_) => {
                neighbour.has.remove(block);
                neighbour.lacking += usize::from(had);
            }
            SwarmMessage::Coming(_) | SwarmMessage::Room(_) => {}
        }
        let holds = neighbour.has.contains(block) || neighbour.coming.contains(block);
        match (held, holds) {
            (false, true) => {
                self.holders[block] += 1;
                self.is_spread(block);
            }
            (true, false) => {
                self.holders[block] -= 1;
                if self.given[block] == Some(from) {
                    self.is_spread(block);
                }
            }
            _ => {}
        }
    }

    /// A block is no longer one that a neighbour alone has from here.
    fn is_spread(&mut self, block: usize) {
        if let Some(neighbour) =
            self.given[block].take().and_then(|id| self.neighbours.get_mut(&id))
        {
            neighbour.unspread -= 1;
        }
    }

    /// The next block to send, and to whom, if there is anything to send and an upload is free. It
    /// goes on until [`sent`](Self::sent).
    pub fn next_upload(&mut self) -> Option<SwarmUpload> {
        if self.uploads >= self.config.uploads {
            return None;
        }
        let takers = self.neighbours.iter();
        let takers = takers.filter(|(_, one)| one.has_room && one.lacking > 0);
        let mut takers: Vec<u32> = takers.map(|(id, _)| *id).collect();
        for _ in 0..TRIED.min(takers.len()) {
            let to = self.pick(&mut takers)?;
            let Some(block) = self.rarest_for(to) else { continue };
            self.is_spread(block);
            let neighbour = self.neighbours.get_mut(&to)?;
            neighbour.coming.insert(block);
            if self.holders[block] == 0 {
                neighbour.unspread += 1;
                self.given[block] = Some(to);
            }
            self.holders[block] += 1;
            self.sent[block] += 1;
            self.uploads += 1;
            return Some(SwarmUpload { to, block: block as u32 });
        }
        None
    }

    /// Takes one of `takers` out: of two at random, the one that keeps fewer blocks to itself, or
    /// lacks more. If all chose the one that lacks most, most of them would be refused.
    fn pick(&mut self, takers: &mut Vec<u32>) -> Option<u32> {
        let count = takers.len() as u64;
        let [one, other] = [(); 2].map(|()| self.stream.below(count.max(1)) as usize);
        let key = |at: usize| {
            let neighbour = self.neighbours.get(takers.get(at)?)?;
            Some((neighbour.unspread, Reverse(neighbour.lacking)))
        };
        let at = if key(one) <= key(other) { one } else { other };
        (count > 0).then(|| takers.swap_remove(at))
    }

    /// The block that serves a neighbour and the swarm most.
    fn rarest_for(&mut self, to: u32) -> Option<usize> {
        let neighbour = self.neighbours.get(&to)?;
        let (mut best, mut ties) = (None, 0);
        for block in neighbour.wanted(&self.own) {
            let (holders, sent) = (self.holders[block], self.sent[block]);
            let key = if self.config.is_origin { (sent, holders) } else { (holders, sent) };
            match best {
                Some((least, _)) if key > least => {}
                Some((least, _)) if key == least => {
                    // Each of those that are as rare has the same chance.
                    ties += 1;
                    if self.stream.below(ties) == 0 {
                        best = Some((key, block));
                    }
                }
                _ => (best, ties) = (Some((key, block)), 1),
            }
        }
        best.map(|(_, block)| block)
    }

    /// An upload has ended: all symbols have left, or the neighbour wants none.
    pub fn sent(&mut self) {
        self.uploads = self.uploads.saturating_sub(1);
    }

    /// Whether this node wants a block that another begins to send; if so, the neighbours are to be
    /// told that it comes.
    pub fn accept(&mut self, block: u32) -> bool {
        let wants = self.wants(block);
        if wants {
            self.coming.insert(block as usize);
        }
        wants
    }

    /// Whether it lacks a block that does not come to it.
    pub fn wants(&self, block: u32) -> bool {
        let index = block as usize;
        block < self.config.blocks && !self.own.contains(index) && !self.coming.contains(index)
    }

    /// A block that it had can be read no more; the neighbours are to be told.
    pub fn forget(&mut self, block: u32) {
        if block < self.config.blocks {
            self.own.remove(block as usize);
        }
    }

    /// A block has come, and is right; the neighbours are to be told.
    pub fn came(&mut self, block: u32) {
        if block < self.config.blocks {
            self.coming.remove(block as usize);
            self.own.insert(block as usize);
        }
    }

    /// A block comes no more, or was wrong; the neighbours are to be told.
    pub fn lost(&mut self, block: u32) {
        if block < self.config.blocks {
            self.coming.remove(block as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node of four blocks that has some, and neighbours that have others.
    fn node(own: &[u32], neighbours: &[&[u32]]) -> SwarmNode {
        let mut node = SwarmNode::new(SwarmConfig { blocks: 4, uploads: 1, is_origin: false }, 1);
        own.iter().for_each(|block| node.came(*block));
        for (id, has) in (0..).zip(neighbours) {
            node.meet(id);
            has.iter().for_each(|block| node.hear(id, SwarmMessage::Has(*block)));
        }
        node
    }

    #[test]
    fn a_node_is_needed_while_those_who_stay_lack_what_it_has() {
        let all: &[u32] = &[0, 1, 2, 3];
        assert!(!node(all, &[]).is_needed() && !node(all, &[all, all]).is_needed());
        assert!(node(all, &[&[0, 1], &[1, 2]]).is_needed(), "nobody else has the last block");
        assert!(node(all, &[all, &[0, 1, 2]]).is_needed(), "who has everything may leave too");
        assert!(!node(all, &[&[0, 1, 2], &[1, 2, 3]]).is_needed());
    }

    #[test]
    fn what_nobody_has_does_not_come() {
        assert!(node(&[0], &[&[0, 1]]).can_go_on());
        assert!(!node(&[0, 1, 2], &[&[0, 1], &[2]]).can_go_on());
        let mut node = node(&[], &[&[3]]);
        node.hear(0, SwarmMessage::Gone(3));
        assert!(!node.can_go_on() && !node.is_served(0));
    }
}
