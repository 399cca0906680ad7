//! Hosts of casts: one sends an object to a group, many receive it.
//!
//! Start here: a [`CastSource`](source::CastSource) drives a sender of `fontis_proto::cast`, a
//! [`CastSink`](sink::CastSink) one receiver of it. [`CastPacket`](packet::CastPacket) is what they
//! say to each other. An object has the blocks and the head that a transfer of one file gives it.

pub mod layout;
pub mod packet;
pub mod sink;
pub mod source;
