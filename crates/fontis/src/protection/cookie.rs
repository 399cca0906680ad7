use std::net::SocketAddr;

use fontis_base::{Duration, Time};
use fontis_proto::dfcp::ConnectionId;
use subtle::ConstantTimeEq;

use super::octets;
use crate::random::random;

/// The proof of an initiator that it receives at its address.
pub type Cookie = [u8; 16];

/// The least lifetime of a cookie; the longest is twice as long.
const SPAN: Duration = Duration::from_secs(30);

/// Makes cookies and verifies them, without keeping any state.
pub struct Cookies {
    key: [u8; 32],
}

impl Default for Cookies {
    fn default() -> Self {
        Self::new()
    }
}

impl Cookies {
    /// Makes a random key.
    pub fn new() -> Self {
        Self { key: random() }
    }

    /// The cookie for a SYN with this source identifier from this address.
    pub fn make(&self, now: Time, from: SocketAddr, source: ConnectionId) -> Cookie {
        self.of(now.since(Time::ZERO).as_micros() / SPAN.as_micros(), from, source)
    }

    /// Returns true if it is a cookie, not too old, for this address and identifier.
    pub fn is_valid(
        &self,
        now: Time,
        from: SocketAddr,
        source: ConnectionId,
        cookie: &Cookie,
    ) -> bool {
        let span = now.since(Time::ZERO).as_micros() / SPAN.as_micros();
        // In constant time, or a cookie could be found byte by byte. The one of before the first
        // half minute is nobody's.
        let is = |span| self.of(span, from, source).ct_eq(cookie);
        bool::from(is(span) | is(span.wrapping_sub(1)))
    }

    fn of(&self, span: u64, from: SocketAddr, source: ConnectionId) -> Cookie {
        let mut input = [0; 34];
        input[..8].copy_from_slice(&span.to_be_bytes());
        input[8..24].copy_from_slice(&octets(from.ip()));
        input[24..26].copy_from_slice(&from.port().to_be_bytes());
        input[26..].copy_from_slice(&source.0);
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&blake3::keyed_hash(&self.key, &input).as_bytes()[..16]);
        cookie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_its_identifier_and_its_time() {
        let cookies = Cookies::new();
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let from: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let id = ConnectionId([3; 8]);
        let cookie = cookies.make(at(100), from, id);
        for seconds in [100, 110, 130] {
            assert!(cookies.is_valid(at(seconds), from, id, &cookie), "{seconds}");
        }
        for seconds in [0, 60, 160, 100_000] {
            assert!(!cookies.is_valid(at(seconds), from, id, &cookie), "{seconds}");
        }
        let others = ["192.0.2.2:5000", "192.0.2.1:5001", "[::1]:5000"];
        for other in others.map(|address| address.parse().unwrap()) {
            assert!(!cookies.is_valid(at(100), other, id, &cookie), "{other}");
        }
        assert!(!cookies.is_valid(at(100), from, ConnectionId([4; 8]), &cookie));
        assert!(!Cookies::new().is_valid(at(100), from, id, &cookie));
        let mapped = "[::ffff:192.0.2.1]:5000".parse().unwrap();
        assert!(cookies.is_valid(at(100), mapped, id, &cookie), "the same address");
    }
}
