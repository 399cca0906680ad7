//! Calls over bad networks.
//!
//! Start here: [`call()`] makes a call over a connection of Fontis, and [`ring()`] and
//! [`Ringing::answer`] take one, from [`Audio`] to [`Speaker`]. The parts can be used alone: a
//! [`Talker`] makes RTP packets (RFC 3550) of samples, and packets of a window code that restore
//! lost ones; a [`Hearer`] puts them back into order at the times when they are to be played,
//! conceals what is missing, and rates what is heard with the E-model ([`quality`]).

mod agreement;
mod audio;
mod bursts;
mod carrier;
mod codec;
mod conceal;
mod copies;
mod error;
mod foreign;
mod heard;
mod hearer;
mod keys;
mod line;
mod noise;
mod pauses;
mod phone;
mod plain;
mod playout;
pub mod quality;
pub mod readers;
mod refusal;
mod repair;
mod rtcp;
mod rtp;
mod session;
mod signal;
mod talker;
mod voice;

pub use agreement::{Ringing, call, ring};
pub use audio::{Audio, AudioError, Speaker};
pub use carrier::VoiceCarrier;
pub use codec::{FRAME, UnknownCodec, VoiceCodec};
pub use copies::FrameCopies;
pub use error::CallError;
pub use heard::Heard;
pub use hearer::Hearer;
pub use phone::{Phone, PhoneBridge, PhoneError};
pub use plain::{answer_plain, call_plain};
pub use refusal::Refusal;
pub use session::{CallEvent, CallOptions, CallReport};
pub use talker::{Talker, TalkerStats};
pub use voice::Voice;
