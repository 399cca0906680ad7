/// Names a packet while a trace is being built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub(crate) u64);
