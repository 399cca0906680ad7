use bytes::{Bytes, BytesMut};
use fontis_proto::dfcp::{ConnectionId, DfcpPacket, Frames, MAX_PATHS, OpenError, SealError, wire};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use zeroize::Zeroizing;

use super::packets::SEALED;
use crate::key_log::KeyLog;

/// Bytes before a sealed packet's ciphertext: type and path, connection identifier, packet number.
const HEADER: usize = 1 + 8 + 4;
const TAG: usize = 16;
/// Built so, packets are neither sealed nor opened, and the place of the tag stays empty: for
/// measuring what encryption costs. It is no feature of the crate, because a feature that one
/// package asks for is there for all.
const PLAINTEXT: bool = cfg!(fontis_plaintext);
/// Packets of a generation of keys, as a power of two: half of what RFC 9001, appendix B.1, allows
/// AES-GCM.
const GENERATION_BITS: u32 = 22;
/// The low bits of a sealed packet's type: its path.
const PATH_BITS: u8 = 0x3f;

/// The contexts of BLAKE3's key derivation, the initiator's first.
const CONTEXTS: [&str; 2] =
    ["fontis 1 initiator to responder aes-128-gcm", "fontis 1 responder to initiator aes-128-gcm"];
const NEXT: &str = "fontis 1 next generation";
/// The same for the secrets of paths after the first: of a path, and of all that come later.
const PATH_SECRET: &str = "fontis 1 path";
const LATER_PATHS: &str = "fontis 1 later paths";

/// The key of one direction, for one generation of packets.
struct Generation {
    number: u64,
    context: &'static str,
    /// The secret from which this generation's key and the next generation's secret are derived.
    secret: Zeroizing<[u8; 32]>,
    key: LessSafeKey,
}

impl Generation {
    fn new(number: u64, context: &'static str, secret: Zeroizing<[u8; 32]>) -> Self {
        let unbound = UnboundKey::new(&AES_128_GCM, &*derive(context, &secret));
        let key = LessSafeKey::new(unbound.expect("sixteen bytes are a key"));
        Self { number, context, secret, key }
    }

    fn next(&self) -> Self {
        let secret = blake3::derive_key(NEXT, &*self.secret);
        Self::new(self.number + 1, self.context, secret.into())
    }
}

fn derive(context: &str, secret: &[u8; 32]) -> Zeroizing<[u8; 16]> {
    let mut key = Zeroizing::new([0; 16]);
    key.copy_from_slice(&Zeroizing::new(blake3::derive_key(context, secret))[..16]);
    key
}

/// The keys of one path, one for each direction. They are replaced every 2²² packets; the packet
/// number determines the generation. The present keys do not reveal earlier ones.
struct PathKeys {
    seal: Generation,
    open: Generation,
    /// Late packets of the generation before.
    before: Option<Generation>,
    /// The first packet that opens with it makes it the present one.
    after: Generation,
    /// The number after the highest that was opened: truncated numbers expand to the nearest one.
    expected: u64,
}

/// The secrets of one direction, for the initiator's packets and for the responder's.
type Secrets = [Zeroizing<[u8; 32]>; 2];

impl PathKeys {
    fn new([first, second]: Secrets, initiator: bool) -> Self {
        let first = Generation::new(0, CONTEXTS[0], first);
        let second = Generation::new(0, CONTEXTS[1], second);
        let (seal, open) = if initiator { (first, second) } else { (second, first) };
        Self { seal, after: open.next(), open, before: None, expected: 0 }
    }

    /// Opens the body of a packet where it is: its number, its length, and whether it is the first
    /// of a generation.
    fn open_in_place(
        &mut self,
        path: u8,
        header: &[u8],
        body: &mut [u8],
    ) -> Result<(u64, usize, bool), OpenError> {
        let number = expand(low_bits(header), self.expected);
        // At most one generation is derived ahead: a forged number costs nothing.
        let is_next = number >> GENERATION_BITS == self.after.number;
        let key = &[Some(&self.open), Some(&self.after), self.before.as_ref()]
            .into_iter()
            .flatten()
            .find(|generation| generation.number == number >> GENERATION_BITS)
            .ok_or(OpenError::Forged)?
            .key;
        let length = open_body(key, (path, number), header, body)?;
        if is_next {
            let next = self.after.next();
            let present = std::mem::replace(&mut self.after, next);
            self.before = Some(std::mem::replace(&mut self.open, present));
        }
        self.expected = self.expected.max(number + 1);
        Ok((number, length, is_next))
    }
}

/// Opens the body of a packet where it is, and returns the length of its frames.
fn open_body(
    key: &LessSafeKey,
    (path, number): (u8, u64),
    header: &[u8],
    body: &mut [u8],
) -> Result<usize, OpenError> {
    if PLAINTEXT {
        return Ok(body.len() - TAG);
    }
    let opened = key.open_in_place(nonce(path, number), Aad::from(header), body);
    Ok(opened.map_err(|_| OpenError::Forged)?.len())
}

/// The low 32 bits of the packet number in a header.
fn low_bits(header: &[u8]) -> u32 {
    u32::from_be_bytes([header[9], header[10], header[11], header[12]])
}

/// The keys of an established connection. Each path has its own, because each counts its packets
/// from zero.
pub(super) struct TrafficKeys {
    /// By the paths' numbers.
    paths: Vec<PathKeys>,
    /// From which the keys of later paths are derived. Those of earlier ones cannot be.
    later: Secrets,
    initiator: bool,
    key_log: Option<KeyLog>,
    /// This side's identifier, and the peer's.
    ids: [ConnectionId; 2],
}

impl TrafficKeys {
    /// Makes the keys from the two halves of Noise's split, for packets of the initiator and of the
    /// responder.
    pub(super) fn new(
        split: (Zeroizing<[u8; 32]>, Zeroizing<[u8; 32]>),
        ids: [ConnectionId; 2],
        initiator: bool,
        key_log: Option<KeyLog>,
    ) -> Self {
        if let Some(log) = &key_log {
            log.record(ids, [*derive(CONTEXTS[0], &split.0), *derive(CONTEXTS[1], &split.1)]);
        }
        let split = [split.0, split.1];
        let later =
            split.each_ref().map(|secret| blake3::derive_key(LATER_PATHS, &**secret).into());
        let ids = if initiator { ids } else { [ids[1], ids[0]] };
        let paths = vec![PathKeys::new(split, initiator)];
        Self { paths, later, initiator, key_log, ids }
    }

    /// The keys of the paths that are not there yet, up to number `path`, and the secrets of those
    /// after them.
    fn later_paths(&self, path: u8) -> (Vec<PathKeys>, Secrets) {
        let mut later = self.later.clone();
        let count = (usize::from(path) + 1).saturating_sub(self.paths.len());
        let paths = (0..count).map(|_| {
            let derived =
                |context| later.each_ref().map(|s| blake3::derive_key(context, &**s).into());
            let (secrets, after) = (derived(PATH_SECRET), derived(LATER_PATHS));
            later = after;
            PathKeys::new(secrets, self.initiator)
        });
        (paths.collect(), later)
    }

    /// The first key that opens packets of a path that is not there yet.
    fn first_key(&self, path: u8) -> Generation {
        let direction = usize::from(self.initiator);
        let mut later = self.later[direction].clone();
        for _ in self.paths.len()..usize::from(path) {
            later = blake3::derive_key(LATER_PATHS, &*later).into();
        }
        let secret = blake3::derive_key(PATH_SECRET, &*later).into();
        Generation::new(0, CONTEXTS[direction], secret)
    }

    fn add_paths(&mut self, (paths, later): (Vec<PathKeys>, Secrets)) {
        for keys in paths {
            if let Some(log) = &self.key_log {
                let path = self.paths.len() as u8;
                record(log, self.ids[0], path, &keys.open);
                record(log, self.ids[1], path, &keys.seal);
            }
            self.paths.push(keys);
        }
        self.later = later;
    }

    pub(super) fn seal(&mut self, packet: &DfcpPacket, out: &mut Vec<u8>) -> Result<(), SealError> {
        let DfcpPacket::Sealed { destination, path, number, frames } = packet else {
            return Err(SealError);
        };
        if usize::from(*path) >= self.paths.len() {
            if usize::from(*path) >= MAX_PATHS {
                return Err(SealError);
            }
            self.add_paths(self.later_paths(*path));
        }
        let seal = &mut self.paths[usize::from(*path)].seal;
        while seal.number < number >> GENERATION_BITS {
            *seal = seal.next();
            if let Some(log) = &self.key_log {
                record(log, *destination, *path, seal);
            }
        }
        if seal.number > number >> GENERATION_BITS {
            return Err(SealError);
        }
        let start = out.len();
        out.push(SEALED | path);
        out.extend_from_slice(&destination.0);
        out.extend_from_slice(&(*number as u32).to_be_bytes());
        wire::encode_frames(frames, out);
        let (header, body) = out[start..].split_at_mut(HEADER);
        let tag = if PLAINTEXT {
            Tag::from([0; TAG])
        } else {
            seal.key
                .seal_in_place_separate_tag(nonce(*path, *number), Aad::from(&*header), body)
                .map_err(|_| SealError)?
        };
        out.extend_from_slice(tag.as_ref());
        Ok(())
    }

    pub(super) fn open(&mut self, mut datagram: BytesMut) -> Result<DfcpPacket, OpenError> {
        let opened = self.open_in_place(&mut datagram)?;
        let Opened { destination, path, number, .. } = opened;
        let mut frames = Frames::new();
        opened.decode(&datagram.freeze(), 0, &mut frames)?;
        Ok(DfcpPacket::Sealed { destination, path, number, frames })
    }

    /// Opens a datagram where it is. One that cannot be opened may be overwritten.
    pub(super) fn open_in_place(&mut self, datagram: &mut [u8]) -> Result<Opened, OpenError> {
        if datagram.len() < HEADER + TAG || datagram[0] & !PATH_BITS != SEALED {
            return Err(OpenError::Malformed);
        }
        let path = datagram[0] & PATH_BITS;
        let (header, body) = datagram.split_at_mut(HEADER);
        let mut id = [0; 8];
        id.copy_from_slice(&header[1..9]);
        let (number, length) = match self.paths.get_mut(usize::from(path)) {
            Some(keys) => {
                let (number, length, is_next) = keys.open_in_place(path, header, body)?;
                if let Some(log) = self.key_log.as_ref().filter(|_| is_next) {
                    record(log, self.ids[0], path, &keys.open);
                }
                (number, length)
            }
            None if usize::from(path) < MAX_PATHS => {
                // The first packet of a path. Keys are made and kept once it has opened: a forged
                // one costs little and leaves nothing behind.
                let number = expand(low_bits(header), 0);
                if number >> GENERATION_BITS != 0 {
                    return Err(OpenError::Forged);
                }
                let key = self.first_key(path).key;
                let length = open_body(&key, (path, number), header, body)?;
                self.add_paths(self.later_paths(path));
                self.paths[usize::from(path)].expected = number + 1;
                (number, length)
            }
            None => return Err(OpenError::Forged),
        };
        Ok(Opened { destination: ConnectionId(id), path, number, length })
    }
}

/// Tells the key log the key of a later generation, or path.
fn record(log: &KeyLog, destination: ConnectionId, path: u8, generation: &Generation) {
    let key = derive(generation.context, &generation.secret);
    match path {
        0 => log.record_next(destination, generation.number, *key),
        _ => log.record_path(destination, path, generation.number, *key),
    }
}

/// A datagram that has been opened where it is.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    destination: ConnectionId,
    path: u8,
    number: u64,
    /// Bytes of its frames.
    length: usize,
}

impl Opened {
    /// The path that it came on.
    pub const fn path(self) -> u8 {
        self.path
    }

    /// Its number on the path.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// Adds its frames to `frames`, if the datagram begins at `offset` of `bytes`.
    pub fn decode(
        self,
        bytes: &Bytes,
        offset: usize,
        frames: &mut Frames,
    ) -> Result<(), OpenError> {
        let begin = offset + HEADER;
        let bytes = bytes.slice(begin..begin + self.length);
        wire::decode_frames_into(bytes, frames).map_err(|_| OpenError::Malformed)
    }
}

/// Every packet has its own nonce: path and packet number never repeat under a key.
fn nonce(path: u8, number: u64) -> Nonce {
    let mut bytes = [0; 12];
    // Written in the pieces in which it is read: other ones cost a wait for both.
    let (head, tail) = bytes.split_at_mut(8);
    head.copy_from_slice(&(u64::from(path) << 32 | number >> 32).to_be_bytes());
    tail.copy_from_slice(&(number as u32).to_be_bytes());
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
    use fontis_proto::dfcp::Frame;

    use super::*;

    #[test]
    fn paths_have_keys_of_their_own_and_forged_packets_make_none() {
        let ids = [ConnectionId([1; 8]), ConnectionId([2; 8])];
        let keys =
            |initiator| TrafficKeys::new(([3; 32].into(), [4; 32].into()), ids, initiator, None);
        let (mut client, mut server) = (keys(true), keys(false));
        let packet = |path, number| DfcpPacket::Sealed {
            destination: ids[1],
            path,
            number,
            frames: [Frame::Ping].into_iter().collect(),
        };
        let mut sealed = |path, number| {
            let mut out = Vec::new();
            client.seal(&packet(path, number), &mut out).map(|()| out)
        };
        let mut forged = sealed(3, 0).unwrap();
        forged[20] ^= 1;
        assert_eq!(server.open(forged[..].into()), Err(OpenError::Forged));
        assert_eq!(server.paths.len(), 1);
        // The third before the second, and the same number on each.
        for path in [0, 3, 2, 1] {
            let datagram = sealed(path, 7).unwrap();
            assert_eq!(server.open(datagram[..].into()), Ok(packet(path, 7)));
            let mut other = datagram.clone();
            other[0] = SEALED | (path ^ 1);
            assert_eq!(server.open(other[..].into()), Err(OpenError::Forged));
        }
        assert_eq!(server.paths.len(), 4);
        assert_eq!(sealed(MAX_PATHS as u8, 0), Err(SealError));
    }

    #[test]
    fn secrets_are_wiped_with_their_generation() {
        fn is_wiped(_: &impl zeroize::ZeroizeOnDrop) {}
        let generation = Generation::new(0, CONTEXTS[0], [7; 32].into());
        is_wiped(&generation.secret);
        is_wiped(&generation.next().secret);
        is_wiped(&derive(CONTEXTS[0], &generation.secret));
    }

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
