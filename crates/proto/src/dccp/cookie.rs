//! Servers that keep no state before a client has answered (RFC 4340 section 8.1.4).

use fontis_base::{Duration, Time};

use super::config::DccpConfig;
use super::connection::DccpConnection;
use super::number::DccpSeq;
use super::option::{self, DccpOption};
use super::packet::{DccpBody, DccpData, DccpPacket};

/// Bytes of the code that proves a cookie.
pub const COOKIE_CODE: usize = 16;
/// Bytes of a cookie before the options of the Request: time, two numbers, port, service.
const FIXED: usize = 8 + 6 + 6 + 2 + 4;
/// How long a cookie is good: as long as a client that is partly open may try.
const LIFETIME: Duration = Duration::from_secs(120);
/// The longest content of an option.
const LONGEST: usize = 253;

/// A message authentication code under a secret of the server. It must cover the client's address,
/// which only the caller has.
pub type CookieCode<'a> = &'a dyn Fn(&[u8]) -> [u8; COOKIE_CODE];

/// The Response to a Request, which holds all that the server would have to remember. Nothing is
/// kept. `None` for another packet, and for a Request whose options no cookie holds.
pub fn respond_without_state(
    now: Time,
    config: &DccpConfig,
    first: u64,
    request: &DccpPacket,
    code: CookieCode<'_>,
) -> Option<DccpPacket> {
    let DccpBody::Request { service } = request.body else { return None };
    let mut server = DccpConnection::accept(now, config.clone(), first, request)?;
    let mut response = server.poll(now)?;
    if !matches!(response.body, DccpBody::Response { .. }) {
        // The Request is refused: that needs no cookie.
        return Some(response);
    }
    let mut cookie = Vec::with_capacity(FIXED);
    cookie.extend_from_slice(&now.as_nanos().to_be_bytes());
    cookie.extend_from_slice(&request.seq.get().to_be_bytes()[2..]);
    cookie.extend_from_slice(&DccpSeq::new(first).get().to_be_bytes()[2..]);
    cookie.extend_from_slice(&request.source.to_be_bytes());
    cookie.extend_from_slice(&service.to_be_bytes());
    option::encode(&request.options, &mut cookie);
    let proof = code(&cookie);
    cookie.extend_from_slice(&proof);
    if cookie.len() > LONGEST {
        return None;
    }
    response.options.push(DccpOption::InitCookie(cookie));
    Some(response)
}

/// The server's end of a connection, from the first packet of a client that has a cookie of
/// [`respond_without_state`]. `None` if the packet has no cookie, an old one or a forged one.
pub fn accept_with_cookie(
    now: Time,
    config: &DccpConfig,
    packet: &DccpPacket,
    code: CookieCode<'_>,
) -> Option<DccpConnection> {
    if !matches!(packet.body, DccpBody::Ack { .. } | DccpBody::DataAck { .. }) {
        return None;
    }
    let cookie = packet.options.iter().find_map(|option| match option {
        DccpOption::InitCookie(cookie) => Some(cookie),
        _ => None,
    })?;
    let (content, proof) = cookie.split_at_checked(cookie.len().checked_sub(COOKIE_CODE)?)?;
    // Every byte is compared, so that the time tells nothing of the right code.
    let difference = code(content).iter().zip(proof).fold(0, |sum, (a, b)| sum | (a ^ b));
    let (fixed, options) = content.split_at_checked(FIXED)?;
    if difference != 0 {
        return None;
    }
    let field = |from: usize, to: usize| option::number(&fixed[from..to]);
    let made = Time::from_nanos(field(0, 8));
    let (seq, first) = (DccpSeq::new(field(8, 14)), field(14, 20));
    let source = field(20, 22) as u16;
    if made > now || now.since(made) > LIFETIME || source != packet.source {
        return None;
    }
    let request = DccpPacket {
        source,
        destination: packet.destination,
        ccval: 0,
        coverage: 0,
        is_short: false,
        seq,
        body: DccpBody::Request { service: field(22, 26) as u32 },
        options: option::decode(options),
        data: DccpData::NONE,
    };
    let mut server = DccpConnection::accept(now, config.clone(), first, &request)?;
    let response = server.poll(now)?;
    if packet.ack() != Some(response.seq) {
        return None;
    }
    server.handle(now, packet, false);
    server.is_connected().then_some(server)
}
