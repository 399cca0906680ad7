//! What ends say of authentication (RFC 4895): their parameters, and what they are configured with.

use core::fmt;

use smallvec::{SmallVec, smallvec};

use super::wire::{kind, parameter};

/// What an end wants authenticated, and the keys for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SctpAuth {
    /// Types of chunks that it takes only if they are authenticated. INIT, INIT ACK, SHUTDOWN
    /// COMPLETE and AUTH never are (RFC 4895 section 3.2).
    pub kinds: SmallVec<[u8; 8]>,
    /// The hashes that the peer may use, the best first. SHA-1 is added if it is not there: it must
    /// be among them (section 6.1).
    pub hashes: SmallVec<[AuthHash; 2]>,
    /// Keys that both ends have beforehand; without one an empty key of number 0 is used.
    pub keys: Vec<SharedKey>,
    /// The number of the key that it sends with.
    pub active: u16,
}

impl Default for SctpAuth {
    fn default() -> Self {
        Self {
            kinds: SmallVec::new(),
            hashes: smallvec![AuthHash::Sha256, AuthHash::Sha1],
            keys: Vec::new(),
            active: 0,
        }
    }
}

/// A key that both ends have beforehand (an endpoint pair shared key, RFC 4895 section 6.1).
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey {
    /// Its number.
    pub id: u16,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A hash under the code of a chunk (RFC 4895 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthHash {
    /// SHA-1, which all ends know.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl AuthHash {
    /// Its number on the wire.
    pub const fn id(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    pub(super) const fn of_id(id: u16) -> Option<Self> {
        match id {
            1 => Some(Self::Sha1),
            3 => Some(Self::Sha256),
            _ => None,
        }
    }

    /// Bytes of its codes.
    pub(super) const fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// What an INIT or INIT ACK says of authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthOffer {
    /// Nothing, or not enough.
    #[default]
    None,
    /// Its sender authenticates chunks.
    Given(Box<AuthParameters>),
    /// It contradicts RFC 4895: an association with its sender must be broken off (section 6.1).
    Broken,
}

/// The parameters RANDOM, CHUNKS and HMAC-ALGO (RFC 4895 section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthParameters {
    /// A random number.
    pub random: [u8; Self::RANDOM],
    /// Types of chunks that the peer must authenticate, if there is such a list.
    pub kinds: Option<SmallVec<[u8; 8]>>,
    /// The numbers of the hashes that the peer may use, the best first.
    pub hashes: SmallVec<[u16; 4]>,
}

impl AuthParameters {
    /// Bytes of the random number.
    pub const RANDOM: usize = 32;
    /// Types of chunks in a list at most.
    pub(super) const MOST_KINDS: usize = 255;
    /// Hashes in a list at most.
    pub(super) const MOST_HASHES: usize = 16;

    /// What an end says that is configured so; `more` are types of chunks that an extension adds.
    pub(super) fn of_config(auth: &SctpAuth, random: [u8; Self::RANDOM], more: &[u8]) -> Self {
        let mut kinds: SmallVec<[u8; 8]> = SmallVec::new();
        for kind in auth.kinds.iter().chain(more) {
            if may_be_listed(*kind) && !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        let mut hashes: SmallVec<[u16; 4]> = SmallVec::new();
        for hash in auth.hashes.iter().chain(&[AuthHash::Sha1]) {
            if !hashes.contains(&hash.id()) {
                hashes.push(hash.id());
            }
        }
        let kinds = (!kinds.is_empty()).then_some(kinds);
        Self { random, kinds, hashes }
    }

    /// The hash that its sender likes best of those that are known here.
    pub(super) fn best_hash(&self) -> Option<AuthHash> {
        self.hashes.iter().find_map(|id| AuthHash::of_id(*id))
    }

    /// Whether a code can be made that its sender takes.
    pub(super) fn is_usable(&self) -> bool {
        self.best_hash().is_some()
    }

    /// Its parameters as they are on the wire, without padding: a key vector (section 6.1).
    pub(super) fn vector(&self) -> Vec<u8> {
        let mut vector = Vec::new();
        self.each(|kind, value| {
            vector.extend_from_slice(&kind.to_be_bytes());
            vector.extend_from_slice(&((4 + value.len()) as u16).to_be_bytes());
            vector.extend_from_slice(value);
        });
        vector
    }

    /// Its parameters in their order: types and values.
    pub(super) fn each(&self, mut take: impl FnMut(u16, &[u8])) {
        take(parameter::RANDOM, &self.random);
        if let Some(kinds) = &self.kinds {
            take(parameter::CHUNKS, kinds);
        }
        let hashes: SmallVec<[u8; 8]> =
            self.hashes.iter().flat_map(|id| id.to_be_bytes()).collect();
        take(parameter::HASHES, &hashes);
    }
}

/// Whether chunks of a type may have to be authenticated (section 3.2).
pub(super) const fn may_be_listed(kind: u8) -> bool {
    !matches!(kind, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH)
}
