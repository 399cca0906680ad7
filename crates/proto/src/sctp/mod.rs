//! SCTP, the Stream Control Transmission Protocol (RFC 9260), over one path or several at a time.
//!
//! Start here: an [`SctpAssociation`] is one end: messages go in and come out, packets come in and
//! go out, at times that a driver passes in. A server keeps no state before a client has echoed a
//! cookie ([`respond_without_state`], [`SctpAssociation::accept`]). An [`SctpPacket`] is a typed
//! packet; [`SctpPacket::encode`] and [`SctpPacket::decode`] are its wire format.
//!
//! [`SctpConfig`] says how data use several paths: one at a time with the others in reserve, or all
//! at once (concurrent multipath transfer) by a [`scheduler`](crate::scheduler).

mod addresses;
mod arrivals;
mod association;
mod auth;
mod chunk;
mod coding;
mod config;
mod cookie;
mod data;
mod features;
mod flight;
mod held;
mod inbound;
mod message;
mod number;
mod offer;
mod outbox;
mod packet;
mod path;
mod rack;
mod reassembly;
mod redundancy;
mod reordering;
mod repairs;
mod resets;
mod restorer;
mod summand;
mod waits;
mod wire;

pub use association::{MOST_PATHS, SctpAssociation, refuse_without_state, respond_without_state};
pub use chunk::{
    AddressAnswer, AddressChange, AddressParameter, AsconfAckChunk, AsconfChunk, AuthChunk,
    DataChunk, ForwardChunk, InitChunk, Reconfig, RepairChunk, RepairFactors, SackChunk, SctpCause,
    SctpChunk, Skipped, Stamp, StampEcho,
};
pub use coding::{
    CodeRate, CodeReach, CodingConfig, RepairWait, RepairedLoss, SctpCode, UnknownSctpCode,
};
pub use config::{
    AckPolicy, BufferSplit, CmtConfig, DynamicAddresses, LossRecovery, Multipath, RetransmitPolicy,
    SECRET_CODE, SctpConfig, SctpSecret, SctpTimers, StreamTurns,
};
pub use data::SctpData;
pub use message::{
    AbortReason, Reliability, SctpAddressError, SctpEvent, SctpMessage, SctpPath, SctpPathState,
    SctpSend, SctpSendError, SctpStats, SctpTransmit,
};
pub use offer::{AuthHash, AuthOffer, AuthParameters, SctpAuth, SharedKey};
pub use packet::SctpPacket;
pub use wire::{PROTOCOL, SctpWireError, UDP_PORT};
