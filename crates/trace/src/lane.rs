/// A vertical line of the exchange view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub kind: LaneKind,
}

/// What a lane stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// Where packets begin and end.
    Host,
    /// A queue and the line behind it.
    Queue,
    /// A node of a swarm, to which blocks come from others.
    Node,
}
