//! The cipher of sealed packets. Built with `--cfg fontis_plaintext`, there is none: for measuring what encryption costs,
//! between namespaces alone. It is no feature, because a feature that one package asks for is there for all.

#[cfg(not(fontis_plaintext))]
pub(super) use aes::Cipher;
#[cfg(fontis_plaintext)]
pub(super) use plaintext::Cipher;

/// Bytes of the tag behind each ciphertext.
pub(super) const TAG: usize = 16;

#[cfg(not(fontis_plaintext))]
mod aes {
    use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
    use ring::error::Unspecified;

    /// AES-128-GCM under one key.
    pub(in super::super) struct Cipher(LessSafeKey);

    impl Cipher {
        pub(in super::super) fn new(key: &[u8; 16]) -> Self {
            let key = UnboundKey::new(&AES_128_GCM, key).expect("sixteen bytes are a key");
            Self(LessSafeKey::new(key))
        }

        /// Encrypts `body` where it is; the tag. A nonce must not be used again.
        pub(in super::super) fn seal(
            &self,
            nonce: [u8; 12],
            header: &[u8],
            body: &mut [u8],
        ) -> Result<Tag, Unspecified> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            self.0.seal_in_place_separate_tag(nonce, Aad::from(header), body)
        }

        /// Decrypts `body`, behind which is its tag, where it is; the bytes of the plaintext.
        pub(in super::super) fn open(
            &self,
            nonce: [u8; 12],
            header: &[u8],
            body: &mut [u8],
        ) -> Result<usize, Unspecified> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            Ok(self.0.open_in_place(nonce, Aad::from(header), body)?.len())
        }
    }
}

#[cfg(fontis_plaintext)]
mod plaintext {
    use std::convert::Infallible;

    use super::TAG;

    /// Leaves everything as it is, and the place of the tag empty: datagrams are as long as encrypted ones.
    pub(in super::super) struct Cipher;

    impl Cipher {
        pub(in super::super) fn new(_: &[u8; 16]) -> Self {
            Self
        }

        pub(in super::super) fn seal(
            &self,
            _: [u8; 12],
            _: &[u8],
            _: &mut [u8],
        ) -> Result<[u8; TAG], Infallible> {
            Ok([0; TAG])
        }

        pub(in super::super) fn open(
            &self,
            _: [u8; 12],
            _: &[u8],
            body: &mut [u8],
        ) -> Result<usize, Infallible> {
            Ok(body.len() - TAG)
        }
    }
}
