use core::ops::RangeInclusive;

use fontis_base::Duration;
use fontis_codes::Code;
use thiserror::Error;

/// The version of the protocol that this implementation speaks. A build without encryption, made
/// for measurements, has a version of its own, so that it talks to no other build.
pub const VERSION: u32 = if cfg!(fontis_plaintext) { 0x464e_ff02 } else { 0x464e_0002 };

/// A SYN is padded so that its packet has this many bytes of UDP payload.
pub const SYN_SIZE: u32 = 1200;

/// Bytes in a symbol: with its frame and packet headers it fills a packet of 1280 bytes over IPv6.
pub const SYMBOL_SIZE: u16 = 1192;

/// Proof that a reset comes from whoever chose the connection identifier.
pub type ResetToken = [u8; 16];

/// The parameters that one side announces in the handshake. Every value lies within its limits:
/// a `Params` cannot be built otherwise, whether it comes from the wire or from a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(ParamFields);

/// The values of a [`Params`], before they are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamFields {
    /// Identifiers of the erasure codes that this side decodes, best first.
    pub codes: Vec<u8>,
    /// Bytes of blocks that this side holds for each channel.
    pub window: u32,
    /// The largest block that this side accepts, in bytes.
    pub max_block: u32,
    /// Bytes in a symbol of this side's messages and streams.
    pub symbol_size: u16,
    /// How long this side keeps a silent connection, in milliseconds.
    pub idle_timeout_ms: u32,
    /// The token of a reset by this side.
    pub reset_token: ResetToken,
}

/// A parameter outside its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the parameter {field} is {value}: it must lie between {least} and {most}")]
pub struct ParamsError {
    /// The name of the parameter.
    pub field: &'static str,
    /// Its value; for the codes, their number.
    pub value: u32,
    /// The least value allowed.
    pub least: u32,
    /// The largest value allowed.
    pub most: u32,
}

impl Default for ParamFields {
    fn default() -> Self {
        Self {
            codes: vec![Code::RaptorQ.id()],
            window: 64 << 20,
            max_block: 4 << 20,
            symbol_size: SYMBOL_SIZE,
            idle_timeout_ms: 60_000,
            reset_token: [0; 16],
        }
    }
}

impl Params {
    /// How many codes a side may list. A longer list would leave an early message no room in its
    /// SYN.
    pub const CODES: RangeInclusive<u32> = 1..=16;
    /// Limits of the window, in bytes. The least holds one symbol.
    pub const WINDOW: RangeInclusive<u32> = 64..=u32::MAX;
    /// Limits of the largest block, in bytes. Smaller blocks would cost more in bookkeeping than
    /// they carry.
    pub const MAX_BLOCK: RangeInclusive<u32> = 1 << 10..=1 << 30;
    /// Limits of a symbol, in bytes. Smaller symbols would cost more in headers than they carry; a
    /// larger one does not fit into a UDP datagram over IPv4 with the headers of its packet and
    /// frame.
    pub const SYMBOL_SIZE: RangeInclusive<u32> = 64..=65_535 - 28 - 29 - 11;
    /// Limits of the idle timeout, in milliseconds: a second to a day.
    pub const IDLE_TIMEOUT_MS: RangeInclusive<u32> = 1_000..=86_400_000;

    /// Checks every value.
    pub fn new(fields: ParamFields) -> Result<Self, ParamsError> {
        let count = u32::try_from(fields.codes.len()).unwrap_or(u32::MAX);
        check("codes", count, Self::CODES)?;
        check("window", fields.window, Self::WINDOW)?;
        check("max_block", fields.max_block, Self::MAX_BLOCK)?;
        check("symbol_size", u32::from(fields.symbol_size), Self::SYMBOL_SIZE)?;
        check("idle_timeout", fields.idle_timeout_ms, Self::IDLE_TIMEOUT_MS)?;
        Ok(Self(fields))
    }

    /// The same parameters with this code alone.
    pub fn with_code(self, code: Code) -> Self {
        Self(ParamFields { codes: vec![code.id()], ..self.0 })
    }

    /// The same parameters with the longest idle timeout, for connections whose application pauses.
    pub fn with_longest_idle_timeout(self) -> Self {
        Self(ParamFields { idle_timeout_ms: *Self::IDLE_TIMEOUT_MS.end(), ..self.0 })
    }

    /// The same parameters with this reset token.
    pub fn with_reset_token(self, reset_token: ResetToken) -> Self {
        Self(ParamFields { reset_token, ..self.0 })
    }

    /// Identifiers of the codes that this side decodes, best first. A peer may list codes that this
    /// version does not have.
    pub fn code_ids(&self) -> &[u8] {
        &self.0.codes
    }

    /// The codes that this side decodes, best first, without those that this version does not have.
    pub fn codes(&self) -> impl Iterator<Item = Code> {
        self.0.codes.iter().filter_map(|id| Code::from_id(*id))
    }

    /// Whether this side decodes `code`.
    pub fn decodes(&self, code: Code) -> bool {
        self.0.codes.contains(&code.id())
    }

    /// Bytes of blocks that this side holds for each channel.
    pub const fn window(&self) -> u32 {
        self.0.window
    }

    /// The largest block that this side accepts, in bytes.
    pub const fn max_block(&self) -> u32 {
        self.0.max_block
    }

    /// Bytes in a symbol of this side's messages and streams.
    pub const fn symbol_size(&self) -> u16 {
        self.0.symbol_size
    }

    /// How long this side keeps a silent connection.
    pub fn idle_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.0.idle_timeout_ms))
    }

    /// The token of a reset by this side.
    pub const fn reset_token(&self) -> ResetToken {
        self.0.reset_token
    }

    /// The values.
    pub const fn fields(&self) -> &ParamFields {
        &self.0
    }
}

fn check(field: &'static str, value: u32, limits: RangeInclusive<u32>) -> Result<(), ParamsError> {
    if limits.contains(&value) {
        return Ok(());
    }
    let (least, most) = limits.into_inner();
    Err(ParamsError { field, value, least, most })
}
