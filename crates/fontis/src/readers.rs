//! The readers of others' bytes that have no public function, for the fuzz targets. No part of the
//! library's interface.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use fontis_base::{Duration, Time};
use fontis_proto::dfcp::KnownPath;

use crate::identity::AllowList;
use crate::journal;
use crate::name;
use crate::protection::Tokens;
use crate::transfer::{cast, message, over_sctp};

/// Reads a message of a transfer, and checks that it is written as it was read.
pub fn message(bytes: &[u8]) {
    assert!(message::reads(bytes), "a message that is written reads differently");
}

/// Takes bytes for datagrams of a cast, and for what is in one that somebody sealed or signed.
pub fn cast(bytes: &[u8]) {
    cast::opens(bytes);
    // A signature costs much.
    if let Some((0, body)) = bytes.split_first() {
        cast::announces(body);
    }
}

/// Takes records of files that come over SCTP.
pub fn records(bytes: &[u8]) {
    over_sctp::gathers(bytes);
}

/// Takes bytes for a name, and for the text of one: both ways lead back.
pub fn name(bytes: &[u8]) {
    let text = name::from_bytes(bytes);
    assert_eq!(*name::to_bytes(&text), *bytes, "a name has one text");
    assert!(name::is_canonical(&text));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let is_canonical = name::from_bytes(&name::to_bytes(text)) == text;
    assert_eq!(name::is_canonical(text), is_canonical, "a text has one name");
    // No escape hides what a check of the text looks for.
    if is_canonical {
        let count =
            |bytes: &[u8]| bytes.iter().filter(|byte| matches!(byte, b'/' | b'.' | 0)).count();
        assert_eq!(count(text.as_bytes()), count(&name::to_bytes(text)));
    }
}

/// Reads a journal; gives how many records it has. Then reads one of records that the bytes tell.
pub fn journal(bytes: &[u8]) -> Option<usize> {
    assert!(journal::reads_again(bytes), "a journal reads differently");
    journal::parse(bytes).map(|(_, records)| records.len())
}

/// Reads a list of clients.
pub fn allow_list(text: &str) -> Option<AllowList> {
    AllowList::parse(text, Path::new("list")).ok()
}

/// Shows bytes as a token, and a token changed by them: neither is good, unless nothing is changed.
pub fn token(bytes: &[u8]) {
    let mut tokens = Tokens::new();
    let (now, ip, client) = (Time::ZERO + Duration::from_secs(1), LOCAL, [7; 32]);
    assert!(tokens.redeem(now, ip, &client, bytes).is_none(), "nobody made it");
    let made = tokens.make(now, ip, &client, KnownPath::default());
    let mask = bytes.iter().copied().chain(std::iter::repeat(0));
    let changed: Vec<u8> = made.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    let is_good = tokens.redeem(now, ip, &client, &changed).is_some();
    assert_eq!(is_good, changed[..] == made[..], "a token is good as it was made");
}

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
