//! The ephemeral keys of simulated machines.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{BoxedCryptoResolver, CryptoResolver, DefaultResolver, FallbackResolver};
use snow::types::{Cipher, Dh, Hash, Random};

use crate::random::random;

struct Keys;

impl Random for Keys {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        for chunk in bytes.chunks_mut(32) {
            chunk.copy_from_slice(&random::<32>()[..chunk.len()]);
        }
        Ok(())
    }
}

impl CryptoResolver for Keys {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Self))
    }

    fn resolve_dh(&self, _choice: &DHChoice) -> Option<Box<dyn Dh>> {
        None
    }

    fn resolve_hash(&self, _choice: &HashChoice) -> Option<Box<dyn Hash>> {
        None
    }

    fn resolve_cipher(&self, _choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        None
    }
}

/// What the library uses otherwise, but with a world's random numbers.
pub(crate) fn resolver() -> BoxedCryptoResolver {
    Box::new(FallbackResolver::new(Box::new(Keys), Box::new(DefaultResolver)))
}
