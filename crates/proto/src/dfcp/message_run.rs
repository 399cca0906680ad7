/// Messages of one sender, each the next of the one before; there is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRun {
    ordered: bool,
    first: u32,
    count: u32,
}

impl MessageRun {
    /// From `first` on: places among the sender's ordered messages, or its channels, which are two
    /// apart. None if there is none, or the numbers end before.
    pub fn new(ordered: bool, first: u32, count: u32) -> Option<Self> {
        let run = Self { ordered, first, count };
        let end = u64::from(first) + u64::from(run.step()) * u64::from(count);
        (count > 0 && end <= u64::from(u32::MAX)).then_some(run)
    }

    const fn step(self) -> u32 {
        if self.ordered { 1 } else { 2 }
    }

    /// Whether its numbers are places among ordered messages.
    pub const fn is_ordered(self) -> bool {
        self.ordered
    }

    /// The first of its numbers.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The number behind its last.
    pub const fn end(self) -> u32 {
        self.first + self.step() * self.count
    }

    /// This run up to the end of one of the same kind that begins behind it, with all between.
    pub(super) const fn through(self, later: Self) -> Self {
        let count = (later.end() - self.first) / self.step();
        Self { count, ..self }
    }
}
