//! The rows of the table of transports, each in a file of its own: keys, configuration, hosts, and
//! the reading of packets.

pub mod capture;
pub mod cast;
pub mod command;
pub mod datagrams;
pub mod dccp;
pub mod dfcp;
mod fld;
pub mod published;
mod reorder;
pub mod sctp;
pub mod tcp;
mod tcp_qlog;

use crate::host::table::TransportRow;

/// The transports of the laboratory.
pub const TRANSPORTS: &[&TransportRow] = &[
    &tcp::ROW,
    &dfcp::ROW,
    &published::ROW,
    &dccp::ROW,
    &sctp::ROW,
    &cast::ROW,
    &datagrams::ROW,
    &command::ROW,
];
