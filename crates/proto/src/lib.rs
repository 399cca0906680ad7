//! Transports as state machines that own no socket, no clock, no thread and no randomness.
//!
//! Start here: [`dfcp`] is the digital-fountain transport; its [`Connection`](dfcp::DfcpConnection)
//! takes typed packets and the time, and gives typed packets, events and the time of its next
//! deadline. [`rate`] holds the rate controllers, one of which drives each path. [`tcp`] is what it
//! is compared with, [`published`] the protocol of 2015 from which it comes, [`dccp`] carries
//! datagrams under congestion control, [`sctp`] messages over several paths, which a [`scheduler`]
//! chooses; [`data_channel`] is what browsers speak over it. [`cast`] sends one object to many
//! receivers, and in a [`swarm`] each of them is a source; [`flute`] is the standard for sending to
//! many, without encryption. [`qlog`] tells what happened in a connection.

pub mod cast;
pub mod congestion;
pub mod data_channel;
pub mod dccp;
pub mod dfcp;
pub mod flute;
mod path_mtu;
pub mod published;
pub mod qlog;
pub mod rate;
pub mod scheduler;
pub mod sctp;
pub mod sources;
pub mod swarm;
pub mod tcp;
mod wire;
