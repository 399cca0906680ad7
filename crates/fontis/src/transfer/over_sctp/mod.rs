//! The content of objects over SCTP, beside the connection that has agreed on it.
//!
//! The client chooses a key and tells it over the connection. Its association begins with a token
//! made from the key, by which the server knows whom it belongs to. The server then sends records
//! in any order: each is a part of a block, encrypted with the server's own key from the client's.

mod blocks;
mod carrier;
mod gathering;
mod record;
mod throttle;

use fontis_base::Duration;
use fontis_proto::congestion::CongestionKind;
use fontis_proto::scheduler::SchedulerKind;
use fontis_proto::sctp::{CmtConfig, Multipath, SctpConfig, SctpTimers};

use super::TransferError;
use crate::sctp::random_secret;

pub(super) use blocks::CarriedBlocks;
pub(super) use carrier::SctpCarrier;
pub(crate) use gathering::gathers;

/// The answer of a server that has no sockets for SCTP.
pub(super) const NOT_OVER_SCTP: &str =
    "this server does not send over SCTP: it was started without --transport sctp";
/// The port of SCTP at the server.
const PORT: u16 = 4433;
/// Bytes of data that a sender keeps until they are acknowledged.
const SEND_BUFFER: u32 = 8 << 20;
/// Bytes that a client holds for data that come in any order.
const RECEIVE_BUFFER: u32 = 8 << 20;
/// Bytes that a server holds of what a client says, which is a token.
const TOKEN_BUFFER: u32 = 16 << 10;
/// What every path of the Internet carries, IPv6 in tunnels included (RFC 8200 section 5).
const MTU: u32 = 1280;
/// What Ethernet carries where its frames are jumbo: no path is tried for more.
const MOST_MTU: u32 = 9000;

/// The configuration of an end; both use all paths at once, and take repairs.
fn config(ports: [u16; 2], receive_buffer: u32) -> std::io::Result<SctpConfig> {
    let scheduler = SchedulerKind::Daps;
    Ok(SctpConfig {
        ports,
        receive_buffer,
        send_buffer: SEND_BUFFER,
        max_message: receive_buffer.min(1 << 20),
        mtu: MTU,
        most_mtu: MOST_MTU,
        congestion: CongestionKind::Cubic,
        multipath: Multipath::Concurrent(CmtConfig { scheduler, ..CmtConfig::default() }),
        stamps: true,
        decodes: true,
        // As many as TCP has (RFC 6928).
        first_window: Some(10),
        timers: SctpTimers { heartbeat: Duration::from_secs(5), ..SctpTimers::default() },
        ..SctpConfig::new(random_secret()?)
    })
}

/// The error of a machine without randomness.
fn no_randomness(_: std::io::Error) -> TransferError {
    TransferError::Worker
}
