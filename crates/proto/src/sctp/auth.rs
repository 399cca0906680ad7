//! Authentication of chunks (RFC 4895): what the ends agreed on, their keys, and the codes.

use core::fmt;

use bytes::Bytes;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;
use smallvec::SmallVec;

use super::chunk::AuthChunk;
use super::offer::{AuthHash, AuthParameters, SctpAuth, SharedKey, may_be_listed};
use super::wire::kind;

/// A set of types of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KindSet([u128; 2]);

impl KindSet {
    fn of(kinds: impl Iterator<Item = u8>) -> Self {
        let mut set = Self::default();
        for kind in kinds.filter(|kind| may_be_listed(*kind)) {
            set.0[usize::from(kind >> 7)] |= 1 << (kind & 127);
        }
        set
    }

    const fn has(self, kind: u8) -> bool {
        self.0[(kind >> 7) as usize] >> (kind & 127) & 1 != 0
    }
}

/// Chunks that change addresses: they are authenticated whatever the lists say (RFC 5061).
pub(super) const ADDRESS_KINDS: [u8; 2] = [kind::ASCONF, kind::ASCONF_ACK];

/// What the ends of an association have agreed on, with its keys.
#[derive(Clone)]
pub(super) struct Authentication {
    /// The keys of the association by their numbers; the first is the one that this end sends with.
    keys: Vec<SharedKey>,
    /// The hash of codes that leave, and those of codes that are taken.
    sends: AuthHash,
    takes: SmallVec<[u16; 4]>,
    /// What the peer wants authenticated, and what this end does.
    must_send: KindSet,
    must_come: KindSet,
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication").field("sends", &self.sends).finish_non_exhaustive()
    }
}

/// Why a code is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadCode {
    /// This end has not named its hash.
    Unsupported,
    /// It is not that of the chunks, or its key is not known.
    Wrong,
}

impl Authentication {
    /// What follows from the parameters of both ends; `is_dynamic` says whether addresses change.
    pub(super) fn new(
        auth: &SctpAuth,
        own: &AuthParameters,
        peer: &AuthParameters,
        is_dynamic: bool,
    ) -> Option<Self> {
        let vectors = [own.vector(), peer.vector()];
        let empty = [SharedKey { id: 0, bytes: Vec::new() }];
        let shared = if auth.keys.is_empty() { &empty } else { &auth.keys[..] };
        let mut keys: Vec<SharedKey> = shared
            .iter()
            .map(|key| SharedKey { id: key.id, bytes: association_key(&key.bytes, &vectors) })
            .collect();
        let active = keys.iter().position(|key| key.id == auth.active).unwrap_or(0);
        keys.swap(0, active);
        let more = ADDRESS_KINDS.into_iter().filter(|_| is_dynamic);
        let set = |of: &AuthParameters| {
            KindSet::of(of.kinds.iter().flatten().copied().chain(more.clone()))
        };
        Some(Self {
            keys,
            sends: peer.best_hash()?,
            takes: own.hashes.clone(),
            must_send: set(peer),
            must_come: set(own),
        })
    }

    /// Whether the peer takes chunks of a type only if they are authenticated.
    pub(super) const fn must_send(&self, kind: u8) -> bool {
        self.must_send.has(kind)
    }

    /// Whether this end takes chunks of a type only if they are authenticated.
    pub(super) const fn must_come(&self, kind: u8) -> bool {
        self.must_come.has(kind)
    }

    /// Bytes of an AUTH chunk beside chunks of data and what goes with them; none if the peer wants
    /// only changes of addresses authenticated.
    pub(super) fn room(&self) -> usize {
        match self.must_send == KindSet::of(ADDRESS_KINDS.into_iter()) {
            true => 0,
            false => self.size(),
        }
    }

    /// Bytes of an AUTH chunk that leaves.
    pub(super) const fn size(&self) -> usize {
        AuthChunk::HEADER + self.sends.len()
    }

    /// The AUTH chunk before these bytes.
    pub(super) fn seal(&self, covered: Bytes) -> AuthChunk {
        let (key, hash) = (&self.keys[0], self.sends);
        let head = blank(key.id, hash.id(), hash.len());
        let code = match hash {
            AuthHash::Sha1 => finish::<Hmac<Sha1>>(&key.bytes, &head, &covered),
            AuthHash::Sha256 => finish::<Hmac<Sha256>>(&key.bytes, &head, &covered),
        };
        AuthChunk { key: key.id, hash: hash.id(), code, covered }
    }

    /// Whether the code of an AUTH chunk is that of what follows it.
    pub(super) fn verify(&self, chunk: &AuthChunk) -> Result<(), BadCode> {
        let hash = AuthHash::of_id(chunk.hash).filter(|hash| self.takes.contains(&hash.id()));
        let hash = hash.ok_or(BadCode::Unsupported)?;
        let key = self.keys.iter().find(|key| key.id == chunk.key).ok_or(BadCode::Wrong)?;
        let head = blank(chunk.key, chunk.hash, hash.len());
        let is_good = match hash {
            AuthHash::Sha1 => is_code::<Hmac<Sha1>>(&key.bytes, &head, chunk),
            AuthHash::Sha256 => is_code::<Hmac<Sha256>>(&key.bytes, &head, chunk),
        };
        if is_good { Ok(()) } else { Err(BadCode::Wrong) }
    }
}

/// The head of an AUTH chunk with a code of so many zeros (Figure 6).
fn blank(key: u16, hash: u16, len: usize) -> SmallVec<[u8; 40]> {
    let mut head: SmallVec<[u8; 40]> = SmallVec::from_slice(&[kind::AUTH, 0]);
    let size = (AuthChunk::HEADER + len) as u16;
    [size, key, hash].iter().for_each(|field| head.extend_from_slice(&field.to_be_bytes()));
    head.resize(AuthChunk::HEADER + len, 0);
    head
}

fn begin<M: Mac + hmac::digest::KeyInit>(key: &[u8], head: &[u8], covered: &[u8]) -> Option<M> {
    // A key of HMAC may have any length.
    let mut mac = <M as Mac>::new_from_slice(key).ok()?;
    mac.update(head);
    mac.update(covered);
    Some(mac)
}

fn finish<M: Mac + hmac::digest::KeyInit>(key: &[u8], head: &[u8], covered: &[u8]) -> Bytes {
    let mac = begin::<M>(key, head, covered);
    mac.map_or_else(Bytes::new, |mac| Bytes::copy_from_slice(&mac.finalize().into_bytes()))
}

/// The comparison takes the same time for every wrong code.
fn is_code<M: Mac + hmac::digest::KeyInit>(key: &[u8], head: &[u8], chunk: &AuthChunk) -> bool {
    let mac = begin::<M>(key, head, &chunk.covered);
    mac.is_some_and(|mac| mac.verify_slice(&chunk.code).is_ok())
}

/// A key of the association: a shared key, the vector that is less as a number, and the other
/// (section 6.1).
fn association_key(shared: &[u8], [a, b]: &[Vec<u8>; 2]) -> Vec<u8> {
    let number = |vector: &Vec<u8>| {
        let zeros = vector.iter().take_while(|byte| **byte == 0).count();
        (vector.len() - zeros, vector[zeros..].to_vec(), vector.len())
    };
    let [less, more] = if number(a) <= number(b) { [a, b] } else { [b, a] };
    [shared, less, more].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(random: u8, kinds: Option<&[u8]>, hashes: &[u16]) -> AuthParameters {
        AuthParameters {
            random: core::array::from_fn(|at| random.wrapping_add(at as u8)),
            kinds: kinds.map(SmallVec::from_slice),
            hashes: SmallVec::from_slice(hashes),
        }
    }

    fn ends() -> [AuthParameters; 2] {
        [parameters(0, Some(&[0, 0xc1, 0x80]), &[3, 1]), parameters(100, None, &[1, 3])]
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The vector was computed with Python's `hmac` and `struct`, from the text of the RFC:
    /// `hmac.new(key + b2 + b1, struct.pack(">BBHHH", 15, 0, 40, 7, 3) + bytes(32) + data,
    /// "sha256")`, where b1 and b2 are the parameters of the ends as bytes, `key` is `b"secret"`
    /// and `data` a COOKIE ACK. The second end has the shorter vector, which is the lesser number.
    #[test]
    fn codes_are_those_of_an_independent_computation() {
        let auth = SctpAuth {
            keys: vec![SharedKey { id: 7, bytes: b"secret".to_vec() }],
            active: 7,
            ..SctpAuth::default()
        };
        let [a, b] = ends();
        let covered = Bytes::from_static(&[11, 0, 0, 4]);
        let first = Authentication::new(&auth, &a, &b, false).unwrap();
        let second = Authentication::new(&auth, &b, &a, false).unwrap();
        // Each uses the hash that the other likes best.
        let code = second.seal(covered.clone());
        assert_eq!((code.key, code.hash), (7, 3));
        assert_eq!(
            hex(&code.code),
            "e3d7fc3fb8058cd173894700d24679cebe7852e5a5abd3414836640992fcd345"
        );
        let other = first.seal(covered);
        assert_eq!(other.hash, 1);
        assert_eq!(hex(&other.code), "00761cb599a6a0e9e5fe458cb143ca95f9d45603");
        assert_eq!(first.verify(&code), Ok(()));
        assert_eq!(second.verify(&other), Ok(()));
    }

    #[test]
    fn what_is_changed_is_not_believed() {
        let [a, b] = ends();
        let auth = SctpAuth::default();
        let [first, second] = [(&a, &b), (&b, &a)]
            .map(|(own, peer)| Authentication::new(&auth, own, peer, false).unwrap());
        let good = second.seal(Bytes::from_static(&[11, 0, 0, 4]));
        assert_eq!(first.verify(&good), Ok(()));
        for bit in 0..good.code.len() * 8 {
            let mut code = good.code.to_vec();
            code[bit / 8] ^= 1 << (bit % 8);
            let forged = AuthChunk { code: code.into(), ..good.clone() };
            assert_eq!(first.verify(&forged), Err(BadCode::Wrong));
        }
        let forged = [
            AuthChunk { code: good.code.slice(..31), ..good.clone() },
            AuthChunk { code: Bytes::new(), ..good.clone() },
            AuthChunk { key: 1, ..good.clone() },
            AuthChunk { hash: 1, ..good.clone() },
            AuthChunk { covered: Bytes::from_static(&[11, 1, 0, 4]), ..good.clone() },
        ];
        for forged in forged {
            assert_eq!(first.verify(&forged), Err(BadCode::Wrong), "{forged:?}");
        }
        let unknown = AuthChunk { hash: 2, ..good };
        assert_eq!(first.verify(&unknown), Err(BadCode::Unsupported));
    }

    #[test]
    fn vectors_are_compared_as_numbers() {
        let key = |a: &[u8], b: &[u8]| association_key(&[9], &[a.to_vec(), b.to_vec()]);
        // Another length, another byte, and the same number with zeros before it.
        for (less, more) in [(&[7, 7][..], &[1, 0, 0][..]), (&[1, 2], &[1, 3]), (&[5], &[0, 5])] {
            let wanted = [&[9], less, more].concat();
            assert_eq!(key(less, more), wanted);
            assert_eq!(key(more, less), wanted);
        }
    }

    #[test]
    fn some_chunks_are_never_authenticated_alone() {
        let auth =
            SctpAuth { kinds: SmallVec::from_slice(&[1, 2, 14, 15, 0, 0]), ..SctpAuth::default() };
        let own = AuthParameters::of_config(&auth, [0; 32], &[]);
        assert_eq!(own.kinds.as_deref(), Some(&[0][..]));
        let peer = parameters(3, Some(&[1, 2, 14, 15, 3]), &[1]);
        let agreed = Authentication::new(&auth, &own, &peer, false).unwrap();
        let all =
            |has: &dyn Fn(u8) -> bool| (0..=255).filter(|kind| has(*kind)).collect::<Vec<u8>>();
        assert_eq!(all(&|kind| agreed.must_send(kind)), [3]);
        assert_eq!(all(&|kind| agreed.must_come(kind)), [0]);
        let dynamic = Authentication::new(&auth, &own, &peer, true).unwrap();
        assert_eq!(all(&|kind| dynamic.must_send(kind)), [3, 0x80, 0xc1]);
    }
}
