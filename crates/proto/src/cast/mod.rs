//! One fountain for many receivers: a sender paces symbols to a group, receivers report what they
//! lack, and every repair is a fresh symbol that serves all of them.
//!
//! Start here: a [`CastSender`] decides which symbol leaves next and when, and reads
//! [`CastReport`]s; a [`CastReceiver`] takes [`CastSymbol`]s and [`CastState`]s, decodes blocks and
//! says when a report is due. A [`CastGate`] before it keeps out what members of the group forge,
//! by the receipts of a [`ReceiptBook`]. A [`Carousel`] sends to receivers that cannot answer. None
//! owns a socket, a clock or the object's bytes.
//! `docs/multicast.md` specifies the packets and argues for the order of repairs.

mod agenda;
mod backoff;
mod carousel;
mod config;
mod departures;
mod gate;
mod group;
mod group_rate;
mod live;
mod loss;
mod member;
mod overhead;
mod packet;
mod receipt;
mod receiver;
mod sender;
mod shape;
mod visits;
mod wire;

pub use carousel::{Carousel, CarouselConfig, CarouselTransmit};
pub use config::{CastConfig, CastLaw, CastRate, CastReceiverConfig};
pub use gate::{CastGate, CastOrigin, GateKept};
pub use live::{
    LIVE_BLOCK, LIVE_SYMBOL, LiveConfig, LiveEvent, LiveReceiver, LiveSender, LiveSymbol,
    LiveTransmit, live_block_time, live_shape,
};
pub use member::CastMember;
pub use packet::{
    CastAnnouncement, CastNeed, CastReceipt, CastReport, CastState, CastSymbol, MemberRoundTrip,
    Planned,
};
pub use receipt::ReceiptBook;
pub use receiver::{CastBlock, CastReceiver};
pub use sender::{CastSender, CastTransmit};
pub use shape::{CastShape, CastShapeError};
pub use wire::{CastWireError, SYMBOL_HEADER, SYMBOL_TIMING};
pub use wire::{decode_live_symbol, encode_live_symbol};
pub use wire::{decode_receipt, decode_report, decode_state};
pub use wire::{decode_symbol, encode_receipt, encode_report, encode_state, encode_symbol};
