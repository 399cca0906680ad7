//! RaptorQ, RFC 6330.
//!
//! Start here: a block's K source symbols are extended to K' (`parameters`). An encoding symbol is
//! the sum of a few of L *intermediate symbols* (`tuple`); these follow from the source symbols by
//! sparse equations (`rows`) and H dense ones (`hdpc`). A `solver` finds out how, without touching
//! a byte: `peeling` gives most of them one after another in terms of a few inactive ones,
//! `elimination` gives those. What it found is a `plan`, which `replay` carries out on bytes, strip
//! after strip (`strips`), as far as what is wanted needs it (`shortcut`).
//!
//! The plan of an encoder depends on K' alone and is kept (`cache`). A decoder (`decoding`) either
//! makes a plan of its own, or, when little was lost, uses the encoder's and solves for the
//! difference.

pub(crate) mod cache;
mod correction;
mod cost;
pub(crate) mod decoding;
mod direct;
mod echoes;
mod elimination;
pub(crate) mod encoding_plan;
mod factors;
mod family;
mod hdpc;
pub(crate) mod intermediate;
mod object;
#[cfg(test)]
mod oracle;
mod oti;
pub(crate) mod parameters;
mod peeling;
mod plan;
mod plan_bytes;
mod product;
mod random_tables;
mod raptor10;
mod raptor10_table;
pub(crate) mod received;
mod repairs;
mod replay;
mod rows;
mod shortcut;
mod solution;
mod solver;
pub(crate) mod strips;
mod systematic_table;
mod template;
mod transposed;
mod tuple;
mod work_area;

pub use cache::PlanCache;
pub use encoding_plan::EncodingPlan;
pub use factors::repair_factors;
pub use object::{ObjectDecoder, ObjectError, SourceBlockEncoder};
pub use oti::{MAX_TRANSFER_LENGTH, Oti, OtiError, PayloadId, SourceBlock};
pub use parameters::MAX_SOURCE_SYMBOLS;
pub use plan_bytes::PlanError;
pub use raptor10::RAPTOR10_SOURCE_SYMBOLS;
