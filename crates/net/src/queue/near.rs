/// The packet this many places behind the front is prefetched: it leaves soon, and nothing has
/// touched what it points to while it waited.
pub(crate) const NEAR: usize = 3;
