use fontis_codes::Code;
use fontis_proto::cast::CastShape;

/// What is cast, as the sender has authenticated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) shape: CastShape,
    pub(super) head: [u8; 32],
    pub(super) body_size: u64,
    pub(super) block_size: u32,
}

/// Bytes of a head that a receiver takes: as much as a manifest and the hashes of 2 TB need.
const MOST_HEAD: u64 = 64 << 20;
/// Bytes in a block, and in a symbol.
const MOST_BLOCK: u32 = 1 << 20;
const LEAST_SYMBOL: u16 = 64;

impl Content {
    /// What these numbers describe; none if it cannot be, or would cost a receiver too much.
    pub(super) fn new(
        head: [u8; 32],
        head_size: u64,
        body_size: u64,
        block_size: u32,
        symbol_size: u16,
    ) -> Option<Self> {
        let is_sound = (1..=MOST_HEAD).contains(&head_size)
            && block_size <= MOST_BLOCK
            && symbol_size >= LEAST_SYMBOL;
        let shape = CastShape::new(head_size, body_size, block_size, symbol_size, Code::RaptorQ);
        let shape = shape.ok().filter(|_| is_sound)?;
        Some(Self { shape, head, body_size, block_size })
    }
}
