use fixedbitset::FixedBitSet;

/// What a node knows of another.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    /// Blocks that it has.
    pub(super) has: FixedBitSet,
    /// Blocks that come to it.
    pub(super) coming: FixedBitSet,
    /// Whether it takes more at present.
    pub(super) has_room: bool,
    /// Blocks that it lacks.
    pub(super) lacking: usize,
    /// Blocks that it has from here, and that it has sent to no other neighbour yet.
    pub(super) unspread: usize,
}

impl Neighbour {
    /// One that has nothing.
    pub(super) fn new(blocks: usize) -> Self {
        Self {
            has: FixedBitSet::with_capacity(blocks),
            coming: FixedBitSet::with_capacity(blocks),
            has_room: true,
            lacking: blocks,
            unspread: 0,
        }
    }

    /// Blocks of `own` that it neither has nor gets, in their order.
    pub(super) fn wanted<'a>(&'a self, own: &'a FixedBitSet) -> impl Iterator<Item = usize> + 'a {
        own.ones().filter(|block| !self.has.contains(*block) && !self.coming.contains(*block))
    }
}
