use bytes::{Bytes, BytesMut};
use fontis_proto::dfcp::{
    ConnectionId, DfcpPacket, Hello, OpenError, SYN_SIZE, SealError, Session, wire,
};
use snow::HandshakeState;
use thiserror::Error;
use zeroize::Zeroizing;

use super::cookie::Cookie;
use super::keys::{Opened, TrafficKeys};
use super::packets::{SYN, SYNACK, proved_syn};
use super::{PresharedKey, handshake};
use crate::key_log::KeyLog;

/// The initiator's side of packet protection.
pub struct Initiator {
    noise: Option<Box<HandshakeState>>,
    /// The SYN; every copy is the same to the byte, but for a cookie.
    syn: Option<Vec<u8>>,
    cookie: Option<(Cookie, Vec<u8>)>,
    /// Cookies taken so far.
    proofs: u32,
    secret: Zeroizing<[u8; 32]>,
    peer: [u8; 32],
    psk: Option<Zeroizing<PresharedKey>>,
    keys: Option<TrafficKeys>,
    key_log: Option<KeyLog>,
}

/// The responder's side of packet protection, after its SYN has been opened.
pub struct Responder {
    noise: Option<Box<HandshakeState>>,
    synack: Option<Vec<u8>>,
    keys: Option<TrafficKeys>,
    key_log: Option<KeyLog>,
}

/// A SYN that was meant for this key.
pub struct OpenedSyn {
    /// The version asked for.
    pub version: u32,
    /// The initiator's identifier.
    pub source: ConnectionId,
    /// The plaintext.
    pub hello: Hello,
    /// The initiator's public key: proved when it confirms, not before.
    pub client: [u8; 32],
    /// Protection for the connection.
    pub responder: Responder,
}

/// The reason why a SYN was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SynError {
    /// It is too short, or a field is invalid.
    #[error("malformed SYN")]
    Malformed,
    /// It was made for another key or pre-shared key, or was changed on the way.
    #[error("SYN for another key")]
    UnknownKey,
}

/// The prologue, on which both sides must agree before encryption: the version and all cleartext
/// fields.
fn prologue(version: u32, source: ConnectionId) -> Vec<u8> {
    [&b"fontis"[..], &version.to_be_bytes(), &source.0].concat()
}

/// Cookies taken by a handshake. More than one comes when one expires; many, when somebody wants to
/// cause SYNs.
const MAX_PROOFS: u32 = 4;
const SYN_HEADER: usize = 1 + 4 + 8 + 2;
const SYNACK_HEADER: usize = 1 + 8 + 2;

impl Initiator {
    /// Protection towards the peer with this public key; `secret` is this side's private key.
    pub fn new(secret: [u8; 32], peer: [u8; 32], psk: Option<PresharedKey>) -> Self {
        Self {
            noise: None,
            syn: None,
            cookie: None,
            proofs: 0,
            secret: secret.into(),
            peer,
            psk: psk.map(Zeroizing::new),
            keys: None,
            key_log: None,
        }
    }

    /// The same, leaving its keys in `log`.
    pub fn with_key_log(self, log: Option<KeyLog>) -> Self {
        Self { key_log: log, ..self }
    }

    /// Shows the cookie with all further copies of the SYN; gives one to send at once, unless it
    /// was given before.
    pub fn prove(&mut self, cookie: &Cookie) -> Option<&[u8]> {
        let shown = self.cookie.as_ref().is_some_and(|(shown, _)| shown == cookie);
        if shown || self.proofs >= MAX_PROOFS {
            return None;
        }
        self.proofs += 1;
        let datagram = proved_syn(cookie, self.syn.as_ref()?);
        Some(&self.cookie.insert((*cookie, datagram)).1)
    }

    fn make_syn(
        &mut self,
        version: u32,
        source: ConnectionId,
        hello: &Hello,
    ) -> Result<Vec<u8>, SealError> {
        let prologue = prologue(version, source);
        let psk = self.psk.as_deref();
        let mut builder = handshake(psk)
            .local_private_key(&*self.secret)
            .and_then(|builder| builder.remote_public_key(&self.peer))
            .and_then(|builder| builder.prologue(&prologue))
            .map_err(|_| SealError)?;
        if let Some(psk) = psk {
            builder = builder.psk(1, psk).map_err(|_| SealError)?;
        }
        let mut noise = builder.build_initiator().map_err(|_| SealError)?;
        let mut payload = Vec::new();
        wire::encode_hello(hello, &mut payload);
        let mut message = vec![0; payload.len() + 96];
        let length = noise.write_message(&payload, &mut message).map_err(|_| SealError)?;
        let mut syn = vec![SYN];
        syn.extend_from_slice(&version.to_be_bytes());
        syn.extend_from_slice(&source.0);
        syn.extend_from_slice(&u16::try_from(length).map_err(|_| SealError)?.to_be_bytes());
        syn.extend_from_slice(&message[..length]);
        if syn.len() > SYN_SIZE as usize {
            return Err(SealError);
        }
        syn.resize(SYN_SIZE as usize, 0);
        self.noise = Some(Box::new(noise));
        Ok(syn)
    }

    /// Opens a datagram that follows the handshake where it is. One that cannot be opened may be
    /// overwritten, but not for want of keys.
    pub fn open_in_place(&mut self, datagram: &mut [u8]) -> Result<Opened, OpenError> {
        self.keys.as_mut().ok_or(OpenError::NoKeys)?.open_in_place(datagram)
    }

    fn open_synack(&mut self, datagram: &[u8]) -> Result<DfcpPacket, OpenError> {
        let (destination, message) = synack_fields(datagram).ok_or(OpenError::Malformed)?;
        // Failing to read leaves Noise's state as it was: a forged SYNACK does not spoil the true
        // one.
        let noise = self.noise.as_mut().ok_or(OpenError::NoKeys)?;
        let mut payload = vec![0; message.len()];
        let length = noise.read_message(message, &mut payload).map_err(|_| OpenError::Forged)?;
        payload.truncate(length);
        let mut payload = Bytes::from(payload);
        if payload.len() < 8 {
            return Err(OpenError::Malformed);
        }
        let mut source = [0; 8];
        source.copy_from_slice(&payload.split_to(8));
        let source = ConnectionId(source);
        let hello = wire::decode_hello(payload).map_err(|_| OpenError::Malformed)?;
        let (split, ids) = (split(noise), [destination, source]);
        self.keys = Some(TrafficKeys::new(split, ids, true, self.key_log.clone()));
        self.noise = None;
        Ok(DfcpPacket::SynAck { destination, source, hello })
    }
}

/// The two halves of Noise's split.
fn split(noise: &mut HandshakeState) -> (Zeroizing<[u8; 32]>, Zeroizing<[u8; 32]>) {
    let (first, second) = noise.dangerously_get_raw_split();
    (first.into(), second.into())
}

fn synack_fields(datagram: &[u8]) -> Option<(ConnectionId, &[u8])> {
    let destination = ConnectionId(datagram.get(1..9)?.try_into().ok()?);
    let length = usize::from(u16::from_be_bytes(datagram.get(9..11)?.try_into().ok()?));
    Some((destination, datagram.get(SYNACK_HEADER..SYNACK_HEADER + length)?))
}

impl Session for Initiator {
    fn seal(&mut self, packet: &DfcpPacket, out: &mut Vec<u8>) -> Result<(), SealError> {
        match packet {
            DfcpPacket::Syn { version, source, hello } => {
                if self.syn.is_none() {
                    self.syn = Some(self.make_syn(*version, *source, hello)?);
                }
                let proved = self.cookie.as_ref().map(|(_, datagram)| datagram);
                out.extend_from_slice(proved.or(self.syn.as_ref()).map_or(&[], Vec::as_slice));
                Ok(())
            }
            _ => self.keys.as_mut().ok_or(SealError)?.seal(packet, out),
        }
    }

    fn open(&mut self, datagram: BytesMut) -> Result<DfcpPacket, OpenError> {
        match datagram.first() {
            Some(&SYNACK) => self.open_synack(&datagram),
            _ => self.keys.as_mut().ok_or(OpenError::NoKeys)?.open(datagram),
        }
    }
}

/// Bytes of a SYN that tell it from every other: those of its ephemeral key, which the handshake
/// authenticates.
pub(crate) type SynMark = [u8; 16];

/// The mark of a SYN; `None` if it is too short to be one.
pub(crate) fn syn_mark(datagram: &[u8]) -> Option<SynMark> {
    datagram.get(SYN_HEADER..)?.first_chunk().copied()
}

/// Opens a SYN with the private key `secret`.
pub fn open_syn(
    datagram: &[u8],
    secret: &[u8; 32],
    psk: Option<&PresharedKey>,
) -> Result<OpenedSyn, SynError> {
    if datagram.len() < SYN_SIZE as usize || datagram[0] != SYN {
        return Err(SynError::Malformed);
    }
    let version = u32::from_be_bytes([datagram[1], datagram[2], datagram[3], datagram[4]]);
    let mut source = [0; 8];
    source.copy_from_slice(&datagram[5..13]);
    let source = ConnectionId(source);
    let length = usize::from(u16::from_be_bytes([datagram[13], datagram[14]]));
    let message = datagram.get(SYN_HEADER..SYN_HEADER + length).ok_or(SynError::Malformed)?;
    let prologue = prologue(version, source);
    let build = || {
        let mut builder = handshake(psk).local_private_key(secret)?.prologue(&prologue)?;
        if let Some(psk) = psk {
            builder = builder.psk(1, psk)?;
        }
        builder.build_responder()
    };
    let mut noise = build().map_err(|_| SynError::UnknownKey)?;
    let mut payload = vec![0; message.len()];
    let length = noise.read_message(message, &mut payload).map_err(|_| SynError::UnknownKey)?;
    payload.truncate(length);
    let hello = wire::decode_hello(payload.into()).map_err(|_| SynError::Malformed)?;
    let client =
        noise.get_remote_static().and_then(|key| key.try_into().ok()).ok_or(SynError::Malformed)?;
    let responder =
        Responder { noise: Some(Box::new(noise)), synack: None, keys: None, key_log: None };
    Ok(OpenedSyn { version, source, hello, client, responder })
}

impl Responder {
    /// Opens a datagram that follows the handshake where it is. One that cannot be opened may be
    /// overwritten, but not for want of keys.
    pub fn open_in_place(&mut self, datagram: &mut [u8]) -> Result<Opened, OpenError> {
        self.keys.as_mut().ok_or(OpenError::NoKeys)?.open_in_place(datagram)
    }

    /// The same, leaving its keys in `log`.
    pub fn with_key_log(self, log: Option<KeyLog>) -> Self {
        Self { key_log: log, ..self }
    }

    fn make_synack(
        &mut self,
        destination: ConnectionId,
        source: ConnectionId,
        hello: &Hello,
    ) -> Result<Vec<u8>, SealError> {
        let mut noise = self.noise.take().ok_or(SealError)?;
        // The responder's identifier stands inside, where nobody can change it.
        let mut payload = source.0.to_vec();
        wire::encode_hello(hello, &mut payload);
        let mut message = vec![0; payload.len() + 64];
        let length = noise.write_message(&payload, &mut message).map_err(|_| SealError)?;
        let mut synack = vec![SYNACK];
        synack.extend_from_slice(&destination.0);
        synack.extend_from_slice(&u16::try_from(length).map_err(|_| SealError)?.to_be_bytes());
        synack.extend_from_slice(&message[..length]);
        let (split, ids) = (split(&mut noise), [destination, source]);
        self.keys = Some(TrafficKeys::new(split, ids, false, self.key_log.clone()));
        Ok(synack)
    }
}

impl Session for Responder {
    fn seal(&mut self, packet: &DfcpPacket, out: &mut Vec<u8>) -> Result<(), SealError> {
        match packet {
            DfcpPacket::SynAck { destination, source, hello } => {
                if self.synack.is_none() {
                    self.synack = Some(self.make_synack(*destination, *source, hello)?);
                }
                out.extend_from_slice(self.synack.as_deref().unwrap_or_default());
                Ok(())
            }
            _ => self.keys.as_mut().ok_or(SealError)?.seal(packet, out),
        }
    }

    fn open(&mut self, datagram: BytesMut) -> Result<DfcpPacket, OpenError> {
        self.keys.as_mut().ok_or(OpenError::NoKeys)?.open(datagram)
    }
}

#[cfg(test)]
mod tests {
    use fontis_proto::dfcp::{Frame, Frames, Params, VERSION};

    use super::super::packets::PROVED_SYN_HEADER;
    use super::*;

    fn keypair() -> ([u8; 32], [u8; 32]) {
        let pair = handshake(None).generate_keypair().unwrap();
        (pair.private.try_into().unwrap(), pair.public.try_into().unwrap())
    }

    fn hello() -> Hello {
        Hello { params: Params::default(), frames: vec![Frame::Ping] }
    }

    fn syn() -> DfcpPacket {
        DfcpPacket::Syn { version: VERSION, source: ConnectionId([1; 8]), hello: hello() }
    }

    fn connect(psk: Option<PresharedKey>) -> (Initiator, Responder) {
        let (server_secret, server_public) = keypair();
        let (client_secret, client_public) = keypair();
        let mut initiator = Initiator::new(client_secret, server_public, psk);
        let mut datagram = Vec::new();
        initiator.seal(&syn(), &mut datagram).unwrap();
        assert_eq!(datagram.len(), SYN_SIZE as usize);
        let opened = open_syn(&datagram, &server_secret, psk.as_ref()).unwrap();
        assert_eq!(opened.client, client_public);
        assert_eq!(opened.hello, hello());
        let mut responder = opened.responder;
        let synack = DfcpPacket::SynAck {
            destination: ConnectionId([1; 8]),
            source: ConnectionId([2; 8]),
            hello: hello(),
        };
        let mut answer = Vec::new();
        responder.seal(&synack, &mut answer).unwrap();
        let mut forged = answer.clone();
        forged[20] ^= 1;
        assert_eq!(initiator.open(BytesMut::from(&forged[..])).unwrap_err(), OpenError::Forged);
        assert_eq!(initiator.open(BytesMut::from(&answer[..])).unwrap(), synack);
        (initiator, responder)
    }

    fn sealed(number: u64) -> DfcpPacket {
        let frames = Frames::from_iter([Frame::Close { code: 1, reason: "x".into() }]);
        DfcpPacket::Sealed { destination: ConnectionId([2; 8]), path: 0, number, frames }
    }

    #[test]
    fn sealed_packets_open_at_the_other_side_and_nowhere_else() {
        let (mut initiator, mut responder) = connect(None);
        let mut datagram = Vec::new();
        initiator.seal(&sealed(3), &mut datagram).unwrap();
        assert_eq!(responder.open(BytesMut::from(&datagram[..])).unwrap(), sealed(3));
        assert_eq!(initiator.open(BytesMut::from(&datagram[..])).unwrap_err(), OpenError::Forged);
        for position in 0..datagram.len() {
            let mut changed = datagram.clone();
            changed[position] ^= 0x20;
            assert!(responder.open(BytesMut::from(&changed[..])).is_err(), "byte {position}");
        }
        for length in 0..datagram.len() {
            assert!(responder.open(BytesMut::from(&datagram[..length])).is_err());
        }
    }

    fn carries(from: &mut dyn Session, to: &mut dyn Session, number: u64) -> bool {
        let mut datagram = Vec::new();
        from.seal(&sealed(number), &mut datagram).unwrap();
        to.open(BytesMut::from(&datagram[..])).is_ok_and(|packet| packet == sealed(number))
    }

    #[test]
    fn keys_change_every_four_million_packets_in_either_direction() {
        const LENGTH: u64 = 1 << 22;
        let (mut initiator, mut responder) = connect(None);
        let mut late = Vec::new();
        initiator.seal(&sealed(LENGTH - 2), &mut late).unwrap();
        let numbers = [0, LENGTH - 1, LENGTH, LENGTH + 1, 2 * LENGTH - 1];
        for number in numbers {
            assert!(carries(&mut initiator, &mut responder, number), "{number}");
        }
        // A packet of the generation before may still come, but not one of that before it.
        assert!(responder.open(BytesMut::from(&late[..])).is_ok());
        assert!(carries(&mut initiator, &mut responder, 2 * LENGTH));
        assert_eq!(responder.open(BytesMut::from(&late[..])).unwrap_err(), OpenError::Forged);
        // An earlier number would need a key that is gone.
        assert!(initiator.seal(&sealed(5), &mut Vec::new()).is_err());
        // The other direction has keys of its own; a generation that was skipped is beyond what is
        // derived.
        assert!(carries(&mut responder, &mut initiator, 7));
        assert!(!carries(&mut responder, &mut initiator, 2 * LENGTH));
    }

    #[test]
    fn a_syn_shows_the_cookie_that_was_asked_for() {
        let (server_secret, server_public) = keypair();
        let mut initiator = Initiator::new(keypair().0, server_public, None);
        assert_eq!(initiator.prove(&[1; 16]), None, "nothing was sent yet");
        let mut plain = Vec::new();
        initiator.seal(&syn(), &mut plain).unwrap();
        let proved = initiator.prove(&[1; 16]).unwrap().to_vec();
        assert!(open_syn(&proved[PROVED_SYN_HEADER..], &server_secret, None).is_ok());
        assert_eq!(proved[PROVED_SYN_HEADER..], plain);
        assert_eq!(initiator.prove(&[1; 16]), None, "it is shown already");
        let mut copy = Vec::new();
        initiator.seal(&syn(), &mut copy).unwrap();
        assert_eq!(copy, proved);
        let renewed = (2..100).filter(|byte| initiator.prove(&[*byte; 16]).is_some()).count();
        assert!(renewed < 4, "whoever sends cookies does not cause SYNs without end");
    }

    #[test]
    fn a_preshared_key_must_agree() {
        connect(Some([5; 32]));
        let (server_secret, server_public) = keypair();
        let mut initiator = Initiator::new(keypair().0, server_public, None);
        let mut datagram = Vec::new();
        initiator.seal(&syn(), &mut datagram).unwrap();
        let error = open_syn(&datagram, &server_secret, Some(&[5; 32])).err();
        assert_eq!(error, Some(SynError::UnknownKey));
    }

    #[test]
    fn nothing_of_a_syn_opens_without_the_preshared_key() {
        let (server_secret, server_public) = keypair();
        let mut initiator = Initiator::new(keypair().0, server_public, Some([5; 32]));
        let mut datagram = Vec::new();
        initiator.seal(&syn(), &mut datagram).unwrap();
        assert!(open_syn(&datagram, &server_secret, Some(&[5; 32])).is_ok());
        for other in [Some(&[6; 32]), None] {
            let error = open_syn(&datagram, &server_secret, other).err();
            assert_eq!(error, Some(SynError::UnknownKey), "{other:?}");
        }
    }

    #[test]
    fn a_syn_for_another_key_or_with_changed_clear_fields_is_refused() {
        let (server_secret, server_public) = keypair();
        let mut initiator = Initiator::new(keypair().0, server_public, None);
        let mut datagram = Vec::new();
        initiator.seal(&syn(), &mut datagram).unwrap();
        assert_eq!(open_syn(&datagram, &keypair().0, None).err(), Some(SynError::UnknownKey));
        for position in 1..SYN_HEADER + 40 {
            let mut changed = datagram.clone();
            changed[position] ^= 1;
            assert!(open_syn(&changed, &server_secret, None).is_err(), "byte {position}");
        }
        assert_eq!(
            open_syn(&datagram[..1199], &server_secret, None).err(),
            Some(SynError::Malformed)
        );
    }
}
