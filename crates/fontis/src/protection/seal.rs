use bytes::Bytes;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Bytes of the counter before a sealed datagram, and of the tag behind it.
const COUNTER: usize = 8;
const TAG: usize = 16;

/// Encrypts datagrams or messages of one direction, and reads those of the other
/// (ChaCha20-Poly1305), where another protocol than that of connections carries them. What a
/// stranger sends again is read again: who reads it must know what has come.
pub struct Seal {
    ours: LessSafeKey,
    theirs: LessSafeKey,
    sent: u64,
    /// The greatest counter that was read.
    newest: u64,
}

impl Seal {
    /// The keys of one end, from a key that both ends have for this use alone. The purposes name
    /// the directions: this end's first (BLAKE3, derive_key mode).
    pub fn new(key: &[u8; 32], [ours, theirs]: [&str; 2]) -> Self {
        let derive = |context| {
            let key = blake3::derive_key(context, key);
            let key = UnboundKey::new(&CHACHA20_POLY1305, &key);
            LessSafeKey::new(key.expect("the key has the length of the algorithm"))
        };
        Self { ours: derive(ours), theirs: derive(theirs), sent: 0, newest: 0 }
    }

    fn nonce(counter: [u8; COUNTER]) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - COUNTER..].copy_from_slice(&counter);
        Nonce::assume_unique_for_key(nonce)
    }

    /// Encrypts.
    pub fn seal(&mut self, datagram: &[u8]) -> Bytes {
        self.sent += 1;
        let counter = self.sent.to_be_bytes();
        let mut sealed = Vec::with_capacity(COUNTER + datagram.len() + TAG);
        sealed.extend_from_slice(&counter);
        sealed.extend_from_slice(datagram);
        let content = &mut sealed[COUNTER..];
        let tag = self
            .ours
            .seal_in_place_separate_tag(Self::nonce(counter), Aad::empty(), content)
            .expect("a datagram is shorter than the algorithm's limit");
        sealed.extend_from_slice(tag.as_ref());
        sealed.into()
    }

    /// The content of a datagram, and whether no later one has come: only such a one may say where
    /// the peer is, for a stranger can send an old one from anywhere. `None` if it is not the
    /// peer's.
    pub fn open(&mut self, sealed: &[u8]) -> Option<(Bytes, bool)> {
        let (counter, content) = sealed.split_first_chunk::<COUNTER>()?;
        let mut content = content.to_vec();
        let nonce = Self::nonce(*counter);
        let len = self.theirs.open_in_place(nonce, Aad::empty(), &mut content).ok()?.len();
        content.truncate(len);
        let counter = u64::from_be_bytes(*counter);
        let is_newest = counter > self.newest;
        self.newest = self.newest.max(counter);
        Some((content.into(), is_newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_other_end_reads_what_was_sealed_and_nobody_changes_it() {
        let key = [7; 32];
        let ends = [["a", "b"], ["b", "a"]];
        let [mut caller, mut callee] = ends.map(|purposes| Seal::new(&key, purposes));
        for text in [b"".as_slice(), b"voice"] {
            let sealed = caller.seal(text);
            assert_eq!(sealed.len(), text.len() + COUNTER + TAG);
            let (opened, is_newest) = callee.open(&sealed).expect("it is the caller's");
            assert_eq!((&*opened, is_newest), (text, true));
            let again = callee.open(&sealed).expect("it still is");
            assert!(!again.1, "it came before");
            assert_eq!(caller.open(&sealed), None, "its own direction");
            assert_eq!(Seal::new(&[8; 32], ["b", "a"]).open(&sealed), None);
            for at in 0..sealed.len() {
                let mut changed = sealed.to_vec();
                changed[at] ^= 1;
                assert_eq!(callee.open(&changed), None, "byte {at}");
                assert_eq!(callee.open(&sealed[..at]), None, "cut at {at}");
            }
        }
        assert!(caller.open(&callee.seal(b"back")).is_some());
    }
}
