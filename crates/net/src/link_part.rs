/// A part of a link that can be prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPart {
    /// The link itself.
    Whole,
    /// The part that the next delivery reads.
    Front,
    /// The part that the next packet changes as it enters.
    Back,
}
