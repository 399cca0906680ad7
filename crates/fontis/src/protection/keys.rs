use bytes::{Buf, BytesMut};
use fontis_proto::dfcp::{ConnectionId, OpenError, Packet, SealError, wire};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::packets::SEALED;

/// Bytes before a sealed packet's ciphertext: type and path, connection identifier, packet number.
const HEADER: usize = 1 + 8 + 4;
const TAG: usize = 16;

/// The keys of an established connection, one for each direction.
pub struct TrafficKeys {
    seal: LessSafeKey,
    open: LessSafeKey,
    /// The highest packet number opened on each path, to expand truncated numbers by.
    largest: Vec<(u8, u64)>,
}

impl TrafficKeys {
    /// The initiator sends with the first key, the responder with the second.
    pub(super) fn new(keys: &[[u8; 16]; 2], initiator: bool) -> Self {
        let [first, second] = keys.each_ref().map(|key| {
            let unbound = UnboundKey::new(&AES_128_GCM, key).expect("sixteen bytes are a key");
            LessSafeKey::new(unbound)
        });
        let (seal, open) = if initiator { (first, second) } else { (second, first) };
        Self { seal, open, largest: Vec::new() }
    }

    pub(super) fn seal(&self, packet: &Packet, out: &mut Vec<u8>) -> Result<(), SealError> {
        let Packet::Sealed { destination, path, number, frames } = packet else {
            return Err(SealError);
        };
        let start = out.len();
        out.push(SEALED | path);
        out.extend_from_slice(&destination.0);
        out.extend_from_slice(&(*number as u32).to_be_bytes());
        wire::encode_frames(frames, out);
        let (header, body) = out[start..].split_at_mut(HEADER);
        let tag = self
            .seal
            .seal_in_place_separate_tag(nonce(*path, *number), Aad::from(&*header), body)
            .map_err(|_| SealError)?;
        out.extend_from_slice(tag.as_ref());
        Ok(())
    }

    pub(super) fn open(&mut self, mut datagram: BytesMut) -> Result<Packet, OpenError> {
        if datagram.len() < HEADER + TAG {
            return Err(OpenError::Malformed);
        }
        let mut header = [0; HEADER];
        datagram.copy_to_slice(&mut header);
        let path = header[0] & 0x3f;
        let mut id = [0; 8];
        id.copy_from_slice(&header[1..9]);
        let truncated = u32::from_be_bytes([header[9], header[10], header[11], header[12]]);
        let known = self.largest.iter().position(|(other, _)| *other == path);
        let expected = known.map_or(0, |index| self.largest[index].1 + 1);
        let number = expand(truncated, expected);
        let length = self
            .open
            .open_in_place(nonce(path, number), Aad::from(&header), &mut datagram)
            .map_err(|_| OpenError::Forged)?
            .len();
        match known {
            Some(index) => self.largest[index].1 = self.largest[index].1.max(number),
            None => self.largest.push((path, number)),
        }
        datagram.truncate(length);
        let frames = wire::decode_frames(datagram.freeze()).map_err(|_| OpenError::Malformed)?;
        Ok(Packet::Sealed { destination: ConnectionId(id), path, number, frames })
    }
}

/// The keys of both directions, the initiator's first, from the two halves of Noise's split.
pub(super) fn derive(split: &([u8; 32], [u8; 32])) -> [[u8; 16]; 2] {
    let key = |context: &str, secret: &[u8; 32]| {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::derive_key(context, secret)[..16]);
        key
    };
    [
        key("fontis 1 initiator to responder aes-128-gcm", &split.0),
        key("fontis 1 responder to initiator aes-128-gcm", &split.1),
    ]
}

/// Every packet has its own nonce: path and packet number never repeat under a key.
fn nonce(path: u8, number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[3] = path;
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// The packet number nearest to `expected` whose low 32 bits are `truncated`.
fn expand(truncated: u32, expected: u64) -> u64 {
    let candidate = expected & !0xffff_ffff | u64::from(truncated);
    let half = 1 << 31;
    if candidate + half < expected {
        candidate + (1 << 32)
    } else if candidate > expected + half && candidate >= 1 << 32 {
        candidate - (1 << 32)
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_numbers_expand_to_the_nearest() {
        for (number, expected) in [
            (0, 0),
            (5, 3),
            ((1 << 32) - 1, 1 << 32),
            (1 << 32, (1 << 32) - 1),
            ((1 << 32) + 7, (1 << 32) - 100),
            ((5 << 32) + 1, (5 << 32) - 1),
            ((5 << 32) - 9, (5 << 32) + 1),
        ] {
            assert_eq!(expand(number as u32, expected), number, "{number} near {expected}");
        }
    }
}
