use std::collections::HashMap;
use std::net::IpAddr;

use bytes::Bytes;
use fontis_base::{Duration, Rate, Time};
use fontis_proto::dfcp::KnownPath;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::octets;
use crate::random::random;

/// The lifetime of a token.
pub(crate) const LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Tokens remembered as used. When there are more, all that were given lose their worth.
const MAX_USED: usize = 1 << 16;

const NONCE: usize = 12;
/// Time, address, rate, round-trip time.
const CONTENT: usize = 8 + 16 + 8 + 4;
const TAG: usize = 16;

type Id = [u8; NONCE];

/// Makes the tokens of one endpoint, and redeems them: each once, for the client and the address
/// that it was made for.
///
/// The key is never stored: with the process that made them all tokens lose their worth, so that
/// none can be used again after a restart that has forgotten which were.
pub(crate) struct Tokens {
    key: LessSafeKey,
    used: HashMap<Id, Time>,
}

impl Tokens {
    pub(crate) fn new() -> Self {
        let unbound =
            UnboundKey::new(&AES_128_GCM, &random::<16>()).expect("sixteen bytes are a key");
        Self { key: LessSafeKey::new(unbound), used: HashMap::new() }
    }

    /// A token for the client with this key at this address, with the estimates of the path.
    pub(crate) fn make(&self, now: Time, ip: IpAddr, client: &[u8; 32], known: KnownPath) -> Bytes {
        let id: Id = random();
        let rate = known.rate.map_or(0, Rate::as_bps);
        let rtt = known.rtt.map_or(0, |rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX));
        let mut content = [
            &(now.since(Time::ZERO).as_micros()).to_be_bytes()[..],
            &octets(ip),
            &rate.to_be_bytes(),
            &rtt.to_be_bytes(),
        ]
        .concat();
        let nonce = Nonce::assume_unique_for_key(id);
        // Sealing this little does not fail.
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(client), &mut content)
            .expect("a short plaintext");
        [&id[..], &content, tag.as_ref()].concat().into()
    }

    /// The estimates in a token, if it is valid: it is valid once.
    pub(crate) fn redeem(
        &mut self,
        now: Time,
        ip: IpAddr,
        client: &[u8; 32],
        token: &[u8],
    ) -> Option<KnownPath> {
        if token.len() != NONCE + CONTENT + TAG {
            return None;
        }
        let (id, sealed) = token.split_first_chunk::<NONCE>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*id);
        let content = self.key.open_in_place(nonce, Aad::from(client), &mut sealed).ok()?;
        let (made, content) = content.split_first_chunk::<8>()?;
        let (owner, content) = content.split_first_chunk::<16>()?;
        let (rate, content) = content.split_first_chunk::<8>()?;
        let rtt = u32::from_be_bytes(*content.first_chunk()?);
        let made = Time::ZERO + Duration::from_micros(u64::from_be_bytes(*made));
        if now.since(made) > LIFE || octets(ip) != *owner || self.used.contains_key(id) {
            return None;
        }
        self.spend(now, *id);
        let rate = Some(u64::from_be_bytes(*rate)).filter(|rate| *rate > 0).map(Rate::from_bps);
        let rtt = (rtt > 0).then(|| Duration::from_micros(u64::from(rtt)));
        Some(KnownPath { rate, rtt })
    }

    fn spend(&mut self, now: Time, id: Id) {
        if self.used.len() >= MAX_USED {
            self.used.retain(|_, used| now.since(*used) <= LIFE);
        }
        if self.used.len() >= MAX_USED {
            *self = Self::new();
            return;
        }
        self.used.insert(id, now);
    }
}

#[cfg(test)]
mod tests {
    use fontis_proto::dfcp::wire::MAX_TOKEN;

    use super::*;

    const KNOWN: KnownPath =
        KnownPath { rate: Some(Rate::from_mbps(73)), rtt: Some(Duration::from_micros(98_765)) };

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_is_good_once_for_its_client_at_its_address_in_its_time() {
        let mut tokens = Tokens::new();
        let (ip, client) = ("192.0.2.1".parse().unwrap(), [7; 32]);
        let made = |tokens: &Tokens| tokens.make(at(100), ip, &client, KNOWN);
        let token = made(&tokens);
        assert!(token.len() <= MAX_TOKEN);
        assert_eq!(tokens.redeem(at(200), "192.0.2.2".parse().unwrap(), &client, &token), None);
        assert_eq!(tokens.redeem(at(200), ip, &[8; 32], &token), None);
        assert_eq!(tokens.redeem(at(100 + 86_401), ip, &client, &token), None);
        let mapped = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(tokens.redeem(at(200), mapped, &client, &token), Some(KNOWN));
        assert_eq!(tokens.redeem(at(200), ip, &client, &token), None, "the second time");
        assert_eq!(Tokens::new().redeem(at(200), ip, &client, &made(&tokens)), None);
        let nothing = KnownPath::default();
        let token = tokens.make(at(100), ip, &client, nothing);
        assert_eq!(tokens.redeem(at(100), ip, &client, &token), Some(nothing));
    }

    #[test]
    fn a_token_that_was_changed_or_cut_is_none() {
        let mut tokens = Tokens::new();
        let (ip, client) = ("2001:db8::1".parse().unwrap(), [7; 32]);
        let token = tokens.make(at(1), ip, &client, KNOWN);
        for position in 0..token.len() {
            let mut changed = token.to_vec();
            changed[position] ^= 4;
            assert_eq!(tokens.redeem(at(2), ip, &client, &changed), None, "byte {position}");
            assert_eq!(tokens.redeem(at(2), ip, &client, &token[..position]), None);
        }
        assert_eq!(tokens.redeem(at(2), ip, &client, &token), Some(KNOWN));
    }

    #[test]
    fn no_more_is_remembered_than_has_room_and_nothing_is_good_twice() {
        let mut tokens = Tokens::new();
        let (ip, client) = ("192.0.2.1".parse().unwrap(), [7; 32]);
        let first = tokens.make(at(1), ip, &client, KNOWN);
        assert!(tokens.redeem(at(1), ip, &client, &first).is_some());
        for _ in 0..MAX_USED {
            let token = tokens.make(at(1), ip, &client, KNOWN);
            tokens.redeem(at(1), ip, &client, &token);
            assert!(tokens.used.len() <= MAX_USED);
        }
        assert_eq!(tokens.redeem(at(1), ip, &client, &first), None);
    }
}
