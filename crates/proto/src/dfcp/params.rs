use super::packet::ResetToken;

/// The version of the protocol that this implementation speaks. One that is built to be measured
/// without encryption has one of its own, so that it talks to nobody else.
pub const VERSION: u32 = if cfg!(fontis_plaintext) { 0x464e_ff01 } else { 0x464e_0001 };

/// A SYN is padded so that its packet has this many bytes of UDP payload.
pub const SYN_SIZE: u32 = 1200;

/// What the two sides tell each other in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Identifiers of the erasure codes that this side can decode, best first.
    pub codes: Vec<u8>,
    /// Bytes of blocks that this side is ready to hold for each channel.
    pub window: u32,
    /// The largest block that this side accepts, in bytes.
    pub max_block: u32,
    /// Bytes in a symbol of this side's messages and streams.
    pub symbol_size: u16,
    /// How long this side keeps a silent connection, in milliseconds.
    pub idle_timeout_ms: u32,
    /// What a reset by this side will carry.
    pub reset_token: ResetToken,
}
