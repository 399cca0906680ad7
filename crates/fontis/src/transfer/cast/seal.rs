//! The protection of a cast's datagrams: AES-128-GCM under a key of the group, and for reports
//! under a key of each receiver. `docs/multicast.md` specifies them.

use fontis_proto::cast::{
    CastReceipt, CastReport, CastState, CastSymbol, LiveSymbol, decode_live_symbol, decode_receipt,
    decode_report, decode_state, decode_symbol, encode_live_symbol, encode_receipt, encode_report,
    encode_state, encode_symbol,
};

use bytes::{Bytes, BytesMut};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};

/// The first byte of a datagram to a group, and of a report.
const GROUP: u8 = 0x08;
const REPORT: u8 = 0x09;
/// The kinds of what a group gets.
const SYMBOL: u8 = 0;
const STATE: u8 = 1;
const ANNOUNCEMENT: u8 = 2;
const RECEIPT: u8 = 3;
const LIVE_SYMBOL: u8 = 4;
/// What the sender signs of a packet begins with this.
const SIGNED: &[u8] = b"fontis cast 1 packet";
/// Bytes before the ciphertext: the type, the session, and the number.
const GROUP_HEADER: usize = 1 + 8 + 8;
const REPORT_HEADER: usize = 1 + 8 + 4 + 8;
const TAG: usize = 16;
const SIGNATURE: usize = 64;

/// The name of one cast.
pub(super) type CastId = [u8; 8];
/// A secret that a key is derived from.
pub(super) type CastSecret = [u8; 32];

/// A signature of the sender, as it stands in a packet.
pub(super) type Signature = [u8; SIGNATURE];

/// What a group gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GroupPacket {
    Symbol(CastSymbol),
    /// A symbol of a stream.
    Live(LiveSymbol),
    /// With the sender's signature, which is to be checked.
    State(CastState, Signature),
    Receipt(CastReceipt, Signature),
    /// A signed announcement of a sender that takes no answers.
    Announcement(Bytes),
}

/// The public key of the sender of a cast.
#[derive(Clone, Copy)]
pub(super) struct Signer(pub(super) [u8; 32]);

/// A datagram of a group, opened: its number, its digest, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) number: u64,
    pub(super) digest: u64,
    pub(super) packet: GroupPacket,
}

/// Seals and opens what a group gets.
pub(super) struct GroupSeal {
    id: CastId,
    key: LessSafeKey,
}

/// Seals and opens the reports of a receiver.
pub(super) struct ReportSeal {
    id: CastId,
    member: u32,
    key: LessSafeKey,
}

fn key(context: &str, id: CastId, secret: &CastSecret) -> LessSafeKey {
    let material: Vec<u8> = [&id[..], &secret[..]].concat();
    let derived = zeroize::Zeroizing::new(blake3::derive_key(context, &material));
    let key = UnboundKey::new(&AES_128_GCM, &derived[..16]).expect("a key of sixteen bytes");
    LessSafeKey::new(key)
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The cast that a datagram to a group claims to be of.
pub(super) fn group_id(datagram: &[u8]) -> Option<CastId> {
    (*datagram.first()? == GROUP).then(|| datagram.get(1..9)?.try_into().ok()).flatten()
}

/// The digest of a packet: 64 bits of BLAKE3 of the header and all that is encrypted.
fn digest(header: &[u8], body: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header).update(body);
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

impl GroupPacket {
    /// A state of packet `number`, signed.
    pub(super) fn state(id: CastId, number: u64, state: CastState, key: &Ed25519KeyPair) -> Self {
        let mut packet = Self::State(state, [0; SIGNATURE]);
        packet.sign(id, number, key);
        packet
    }

    /// A receipt of packet `number`, signed.
    pub(super) fn receipt(
        id: CastId,
        number: u64,
        receipt: CastReceipt,
        key: &Ed25519KeyPair,
    ) -> Self {
        let mut packet = Self::Receipt(receipt, [0; SIGNATURE]);
        packet.sign(id, number, key);
        packet
    }

    fn sign(&mut self, id: CastId, number: u64, key: &Ed25519KeyPair) {
        let signed = self.signed(id, number);
        let (Self::State(_, signature) | Self::Receipt(_, signature)) = self else { return };
        signature.copy_from_slice(key.sign(&signed).as_ref());
    }

    /// The bytes that the sender signs.
    fn signed(&self, id: CastId, number: u64) -> Vec<u8> {
        let mut out = [SIGNED, &id, &number.to_be_bytes()].concat();
        match self {
            Self::State(state, _) => {
                out.push(STATE);
                encode_state(state, &mut out);
            }
            Self::Receipt(receipt, _) => {
                out.push(RECEIPT);
                encode_receipt(receipt, &mut out);
            }
            Self::Symbol(_) | Self::Live(_) | Self::Announcement(_) => {}
        }
        out
    }

    /// Whether the sender of the cast has signed it, as packet `number`.
    pub(super) fn is_of(&self, id: CastId, number: u64, signer: &Signer) -> bool {
        let (Self::State(_, signature) | Self::Receipt(_, signature)) = self else { return false };
        let key = UnparsedPublicKey::new(&ED25519, &signer.0);
        key.verify(&self.signed(id, number), signature).is_ok()
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Symbol(symbol) => {
                out.push(SYMBOL);
                encode_symbol(symbol, out);
            }
            Self::Live(symbol) => {
                out.push(LIVE_SYMBOL);
                encode_live_symbol(symbol, out);
            }
            Self::State(state, signature) => {
                out.push(STATE);
                encode_state(state, out);
                out.extend_from_slice(signature);
            }
            Self::Receipt(receipt, signature) => {
                out.push(RECEIPT);
                encode_receipt(receipt, out);
                out.extend_from_slice(signature);
            }
            Self::Announcement(bytes) => {
                out.push(ANNOUNCEMENT);
                out.extend_from_slice(bytes);
            }
        }
    }

    fn read(mut body: Bytes) -> Option<Self> {
        let kind = body.split_to(1)[0];
        Some(match kind {
            SYMBOL => Self::Symbol(decode_symbol(body).ok()?),
            LIVE_SYMBOL => Self::Live(decode_live_symbol(body).ok()?),
            ANNOUNCEMENT => Self::Announcement(body),
            STATE | RECEIPT => {
                let length = body.len().checked_sub(SIGNATURE)?;
                let signature = Signature::try_from(&body.split_off(length)[..]).ok()?;
                match kind {
                    STATE => Self::State(decode_state(body).ok()?, signature),
                    _ => Self::Receipt(decode_receipt(body).ok()?, signature),
                }
            }
            _ => return None,
        })
    }
}

impl GroupSeal {
    pub(super) fn new(id: CastId, secret: &CastSecret) -> Self {
        Self { id, key: key("fontis cast 1 group", id, secret) }
    }

    /// Appends the datagram of packet `number`, whose numbers never repeat. Returns its digest.
    pub(super) fn seal(&self, number: u64, packet: &GroupPacket, out: &mut Vec<u8>) -> u64 {
        let start = out.len();
        out.push(GROUP);
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&number.to_be_bytes());
        let body = out.len();
        packet.write(out);
        let digest = digest(&out[start..body], &out[body..]);
        seal_tail(&self.key, number, start, body, out);
        digest
    }

    /// Opens a datagram; `None` if it is none of this group's.
    pub(super) fn open(&self, mut datagram: BytesMut) -> Option<Opened> {
        if datagram.len() < GROUP_HEADER + TAG + 1 || datagram[0] != GROUP {
            return None;
        }
        let header = datagram.split_to(GROUP_HEADER);
        if header[1..9] != self.id {
            return None;
        }
        let number = u64::from_be_bytes(header[9..].try_into().ok()?);
        let opened = self.key.open_in_place(nonce(number), Aad::from(&header[..]), &mut datagram);
        let length = opened.ok()?.len();
        datagram.truncate(length);
        let digest = digest(&header, &datagram);
        let packet = GroupPacket::read(datagram.freeze())?;
        Some(Opened { number, digest, packet })
    }
}

impl ReportSeal {
    pub(super) fn new(id: CastId, member: u32, secret: &CastSecret) -> Self {
        Self { id, member, key: key("fontis cast 1 report", id, secret) }
    }

    /// The datagram of a report; the reports' sequence numbers never repeat.
    pub(super) fn seal(&self, report: &CastReport) -> Vec<u8> {
        let number = u64::from(report.sequence);
        let mut out = vec![REPORT];
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.member.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        encode_report(report, &mut out);
        seal_tail(&self.key, number, 0, REPORT_HEADER, &mut out);
        out
    }

    /// The receiver that a datagram claims to be a report of, to this cast.
    pub(super) fn member_of(id: CastId, datagram: &[u8]) -> Option<u32> {
        let is_report = datagram.len() > REPORT_HEADER + TAG && datagram[0] == REPORT;
        let is_own = is_report && datagram[1..9] == id;
        is_own.then(|| u32::from_be_bytes([9, 10, 11, 12].map(|i| datagram[i])))
    }

    /// Opens a report that claims to be of this receiver.
    pub(super) fn open(&self, datagram: &[u8]) -> Option<CastReport> {
        let (header, body) = datagram.split_at_checked(REPORT_HEADER)?;
        let number = u64::from_be_bytes(header[13..].try_into().ok()?);
        let mut body = body.to_vec();
        let opened = self.key.open_in_place(nonce(number), Aad::from(header), &mut body).ok()?;
        let report = decode_report(Bytes::copy_from_slice(opened)).ok()?;
        (u64::from(report.sequence) == number).then_some(report)
    }
}

/// Encrypts `out[body..]` with `out[start..body]` as associated data, and appends the tag.
fn seal_tail(key: &LessSafeKey, number: u64, start: usize, body: usize, out: &mut Vec<u8>) {
    let (header, text) = out.split_at_mut(body);
    let aad = Aad::from(&header[start..]);
    let tag = key.seal_in_place_separate_tag(nonce(number), aad, text);
    out.extend_from_slice(tag.expect("a datagram is short enough").as_ref());
}

/// Takes bytes for a datagram to a group or of a report, and for what one holds, by whoever knows
/// the secret. Whatever is read is written so that it reads the same.
pub(crate) fn opens(bytes: &[u8]) {
    let (id, member, secret) = ([1; 8], 5, [2; 32]);
    let (group, report) = (GroupSeal::new(id, &secret), ReportSeal::new(id, member, &secret));
    let _ = group_id(bytes);
    assert_eq!(group.open(bytes.into()), None, "nobody sealed it");
    if ReportSeal::member_of(id, bytes).is_some() {
        assert_eq!(report.open(bytes), None, "nobody sealed it");
    }
    let number = 7;
    let mut inner = [&[GROUP][..], &id, &u64::to_be_bytes(number), bytes].concat();
    seal_tail(&group.key, number, 0, GROUP_HEADER, &mut inner);
    if let Some(opened) = group.open(inner[..].into()) {
        assert!(!opened.packet.is_of(id, number, &Signer([3; 32])), "nobody signed it");
        let mut again = Vec::new();
        let digest = group.seal(number, &opened.packet, &mut again);
        assert_eq!(group.open(again[..].into()), Some(Opened { digest, ..opened }));
    }
    // A report's own number is that of its datagram.
    let sequence = u64::from(bytes.first().copied().unwrap_or_default());
    let header = [&[REPORT][..], &id, &member.to_be_bytes(), &sequence.to_be_bytes()].concat();
    let mut inner = [&header, bytes].concat();
    seal_tail(&report.key, sequence, 0, REPORT_HEADER, &mut inner);
    if let Some(read) = report.open(&inner) {
        assert_eq!(ReportSeal::member_of(id, &inner), Some(member));
        assert_eq!(report.open(&report.seal(&read)), Some(read));
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::KeyPair;

    use super::*;

    #[test]
    fn what_is_sealed_opens_and_what_was_touched_does_not() {
        let seal = GroupSeal::new([1; 8], &[2; 32]);
        let data = Bytes::from_static(b"symbol");
        let packet =
            GroupPacket::Symbol(CastSymbol { visit: 1, block: 2, esi: 3, timing: None, data });
        let mut out = Vec::new();
        let digest = seal.seal(77, &packet, &mut out);
        let opened = Opened { number: 77, digest, packet };
        assert_eq!(seal.open(BytesMut::from(&out[..])), Some(opened));
        for i in 0..out.len() {
            let mut touched = BytesMut::from(&out[..]);
            touched[i] ^= 1;
            assert_eq!(seal.open(touched), None, "byte {i}");
        }
        let other = GroupSeal::new([1; 8], &[3; 32]);
        assert_eq!(other.open(BytesMut::from(&out[..])), None);
    }

    #[test]
    fn what_the_sender_signed_is_its_own_under_its_number_alone() {
        let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let signer = Signer(key.public_key().as_ref().try_into().unwrap());
        let state = CastState { visit: 3, ..CastState::default() };
        let receipt = CastReceipt { first: 9, digests: vec![1, 2, 3] };
        let state = GroupPacket::state([1; 8], 7, state, &key);
        let receipt = GroupPacket::receipt([1; 8], 7, receipt, &key);
        for packet in [&state, &receipt] {
            assert!(packet.is_of([1; 8], 7, &signer));
            assert!(!packet.is_of([2; 8], 7, &signer));
            assert!(!packet.is_of([1; 8], 8, &signer));
            assert!(!packet.is_of([1; 8], 7, &Signer([5; 32])));
        }
        let GroupPacket::State(state, signature) = state else { panic!() };
        let touched = GroupPacket::State(CastState { visit: 4, ..state }, signature);
        assert!(!touched.is_of([1; 8], 7, &signer));
    }

    #[test]
    fn a_report_is_its_receivers() {
        let seal = ReportSeal::new([1; 8], 5, &[2; 32]);
        let report = CastReport { sequence: 9, visit: 8, lacking: 7, ..CastReport::default() };
        let datagram = seal.seal(&report);
        assert_eq!(ReportSeal::member_of([1; 8], &datagram), Some(5));
        assert_eq!(ReportSeal::member_of([2; 8], &datagram), None);
        assert_eq!(seal.open(&datagram), Some(report));
        for i in 0..datagram.len() {
            let mut touched = datagram.clone();
            touched[i] ^= 1;
            assert_eq!(seal.open(&touched), None, "byte {i}");
        }
        (0..datagram.len()).for_each(|end| assert_eq!(seal.open(&datagram[..end]), None));
    }
}
