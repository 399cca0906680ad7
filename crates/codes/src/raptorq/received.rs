use super::parameters::Family;

/// What arrived of a block of `k` symbols.
pub(crate) struct Received<'a> {
    pub(crate) family: Family,
    pub(crate) k: u32,
    pub(crate) symbol_size: usize,
    /// The K source symbols; those that are missing are zero.
    pub(crate) data: &'a mut [u8],
    /// Which source symbols are missing.
    pub(crate) missing: &'a [u32],
    /// The repair symbols' identifiers.
    pub(crate) esis: &'a [u32],
    /// The repair symbols.
    pub(crate) repairs: &'a [u8],
}
