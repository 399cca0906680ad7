use std::sync::LazyLock;

use bytes::{Buf, BufMut};
use fontis_proto::cast::CastAnnouncement;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use super::content::Content;
use super::seal::{CastId, Signer};
use crate::identity::{Identity, PublicKey};

/// What is signed begins with this, so that no other signature passes for one of these.
const CONTEXT: &[u8] = b"fontis cast 1 announcement";
/// Bytes of an announcement, and of its signature.
const BODY: usize = 32 + 8 + 8 + 4 + 2 + 4 + 1 + 8 + 4;
const SIGNATURE: usize = 64;

/// What a sender that takes no answers says: what is cast, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) content: Content,
    pub(super) head_size: u64,
    pub(super) state: CastAnnouncement,
}

/// The key with which such a sender signs, derived from its identity.
pub(super) fn signing_key(identity: &Identity) -> Ed25519KeyPair {
    let context = "fontis cast 1 signing key";
    let seed = Zeroizing::new(blake3::derive_key(context, identity.secret()));
    Ed25519KeyPair::from_seed_unchecked(&*seed).expect("a seed of 32 bytes")
}

/// The public part of that key, as URLs have it.
pub(super) fn signing_public(key: &Ed25519KeyPair) -> Option<PublicKey> {
    PublicKey::new(key.public_key().as_ref().try_into().ok()?).ok()
}

impl Announcement {
    /// The signed bytes, for a cast of this name.
    pub(super) fn sign(&self, id: CastId, key: &Ed25519KeyPair) -> Vec<u8> {
        let mut out = Vec::new();
        let Content { shape, head, body_size, block_size } = self.content;
        out.put_slice(&head);
        out.put_u64(self.head_size);
        out.put_u64(body_size);
        out.put_u32(block_size);
        out.put_u16(shape.symbol_size());
        out.put_u32(self.state.round);
        out.put_u8(u8::from(self.state.is_end));
        out.put_u64(self.state.rate);
        out.put_u32(self.state.next);
        let signature = key.sign(&signed(id, &out));
        out.put_slice(signature.as_ref());
        out
    }

    /// Reads an announcement of a cast; none if this signer did not make it, or it cannot be.
    pub(super) fn read(bytes: &[u8], id: CastId, signer: &Signer) -> Option<Self> {
        let (mut body, signature) = bytes.split_at_checked(BODY)?;
        if signature.len() != SIGNATURE {
            return None;
        }
        let key = UnparsedPublicKey::new(&ED25519, &signer.0);
        key.verify(&signed(id, body), signature).ok()?;
        let mut head = [0; 32];
        body.copy_to_slice(&mut head);
        let (head_size, body_size) = (body.get_u64(), body.get_u64());
        let (block_size, symbol_size) = (body.get_u32(), body.get_u16());
        let (round, end, rate, next) =
            (body.get_u32(), body.get_u8(), body.get_u64(), body.get_u32());
        let content = Content::new(head, head_size, body_size, block_size, symbol_size)?;
        let state = CastAnnouncement { round, is_end: end != 0, rate, next };
        Some(Self { content, head_size, state })
    }
}

fn signed(id: CastId, body: &[u8]) -> Vec<u8> {
    [CONTEXT, &id, body].concat()
}

/// Takes bytes for an announcement, and for what one says that the sender has signed. Whatever is
/// read is written so that it reads the same.
pub(crate) fn announces(bytes: &[u8]) {
    static KEY: LazyLock<Ed25519KeyPair> =
        LazyLock::new(|| signing_key(&Identity::of_secret(Zeroizing::new([7; 32]))));
    let Some(public) = signing_public(&KEY) else { return };
    let (id, signer) = ([1; 8], Signer(*public.as_bytes()));
    assert_eq!(Announcement::read(bytes, id, &signer), None, "nobody signed it");
    // Signing is what costs: what has another length is refused before a signature is looked at.
    let Some((body, _)) = bytes.split_at_checked(BODY) else { return };
    let signature = KEY.sign(&signed(id, body));
    let read = Announcement::read(&[body, signature.as_ref()].concat(), id, &signer);
    if let Some(read) = read {
        assert_eq!(Announcement::read(&read.sign(id, &KEY), id, &signer), Some(read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_sender_signed_is_believed() {
        let key = signing_key(&Identity::generate());
        let signer = Signer(key.public_key().as_ref().try_into().unwrap());
        let content = Content::new([7; 32], 2000, 5 << 20, 1 << 20, 1192).unwrap();
        let state = CastAnnouncement { round: 3, is_end: false, rate: 1_000_000, next: 17 };
        let announcement = Announcement { content, head_size: 2000, state };
        let bytes = announcement.sign([1; 8], &key);
        assert_eq!(Announcement::read(&bytes, [1; 8], &signer), Some(announcement));
        assert_eq!(Announcement::read(&bytes, [2; 8], &signer), None, "it is of one cast");
        for i in 0..bytes.len() {
            let mut touched = bytes.clone();
            touched[i] ^= 1;
            assert_eq!(Announcement::read(&touched, [1; 8], &signer), None, "byte {i}");
            assert_eq!(Announcement::read(&bytes[..i], [1; 8], &signer), None);
        }
        let other = signing_key(&Identity::generate());
        let forged = announcement.sign([1; 8], &other);
        assert_eq!(Announcement::read(&forged, [1; 8], &signer), None);
    }
}
