//! Messages with a manifest, of which no copy is made: it may have many megabytes.

use std::cell::RefCell;
use std::fmt;

use bytes::Bytes;
use postcard::ser_flavors::Flavor;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

/// Bytes that are worth a piece of their own.
const LONG: usize = 4096;

/// The encoding of a message that holds `shared`, in pieces: `shared` is one of them.
pub(super) fn encode_around(message: &impl Serialize, shared: &Bytes) -> Vec<Bytes> {
    let pieces = Pieces { shared, done: Vec::new(), last: Vec::new() };
    postcard::serialize_with_flavor(message, pieces).expect("plain data")
}

struct Pieces<'a> {
    shared: &'a Bytes,
    done: Vec<Bytes>,
    last: Vec<u8>,
}

impl Flavor for Pieces<'_> {
    type Output = Vec<Bytes>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.last.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        match part_of(self.shared, bytes) {
            Some(part) => {
                self.done.push(std::mem::take(&mut self.last).into());
                self.done.push(part);
            }
            None => self.last.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn finalize(mut self) -> postcard::Result<Self::Output> {
        self.done.push(self.last.into());
        Ok(self.done)
    }
}

/// These bytes as a part of `whole`, if they are one and long.
fn part_of(whole: &Bytes, bytes: &[u8]) -> Option<Bytes> {
    let (outer, inner) = (whole.as_ptr_range(), bytes.as_ptr_range());
    let is_part = outer.start <= inner.start && inner.end <= outer.end;
    (bytes.len() >= LONG && is_part).then(|| whole.slice_ref(bytes))
}

thread_local! {
    /// The message that this thread reads.
    static MESSAGE: RefCell<Option<Bytes>> = const { RefCell::new(None) };
}

/// Reads a message; what is marked with [`part`] in it shares its memory.
pub(super) fn decode_sharing<T: for<'a> Deserialize<'a>>(message: &Bytes) -> Option<T> {
    MESSAGE.set(Some(message.clone()));
    let decoded = postcard::from_bytes(message).ok();
    MESSAGE.set(None);
    decoded
}

/// Reads bytes as a part of the message that [`decode_sharing`] reads; otherwise copies them.
pub(super) fn part<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Bytes, D::Error> {
    struct Part;
    impl Visitor<'_> for Part {
        type Value = Bytes;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
            let shared = MESSAGE.with_borrow(|whole| part_of(whole.as_ref()?, bytes));
            Ok(shared.unwrap_or_else(|| Bytes::copy_from_slice(bytes)))
        }
    }
    deserializer.deserialize_bytes(Part)
}

#[cfg(test)]
mod tests {
    use super::super::message::{Announced, Offer, Response, decode, encode};
    use super::*;

    #[test]
    fn a_long_manifest_is_neither_copied_into_a_message_nor_out_of_it() {
        for length in [0, 10, LONG - 1, LONG, 100_000] {
            let manifest = Bytes::from(vec![7; length]);
            let offer = Offer {
                root: [1; 32],
                size: 5,
                block_size: 1024,
                manifest: manifest.clone(),
                tree: vec![3; 64],
                state: Some([2; 32]),
            };
            let response = Response::Offer { id: 9, offer };
            let pieces = encode_around(&response, &manifest);
            let is_shared = pieces.iter().any(|one| one.as_ptr() == manifest.as_ptr());
            assert_eq!(is_shared, length >= LONG);
            let message = Bytes::from(pieces.concat());
            assert_eq!(message, encode(&response));
            let Some(Response::Offer { offer, .. }) = decode_sharing(&message) else {
                panic!("an offer")
            };
            let within = message.as_ptr_range().contains(&offer.manifest.as_ptr());
            assert_eq!(within, length >= LONG);
            assert_eq!(Announced::Offer(offer).manifest(), &manifest);
            assert_eq!(decode::<Response>(&message), Some(response));
        }
    }
}
