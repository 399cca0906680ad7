//! Chunks that are authenticated (RFC 4895 section 6).

use core::net::IpAddr;
use std::borrow::Cow;

use bytes::Bytes;

use super::SctpAssociation;
use crate::sctp::auth::{ADDRESS_KINDS, Authentication, BadCode};
use crate::sctp::chunk::{DataChunk, InitChunk, SctpCause, SctpChunk};
use crate::sctp::config::{DynamicAddresses, SctpConfig};
use crate::sctp::offer::{AuthOffer, AuthParameters};
use crate::sctp::packet::SctpPacket;
use crate::sctp::wire::{encode_chunks, kind};

/// What an end says of authentication that has chosen this tag and this first TSN.
pub(super) fn own_offer(config: &SctpConfig, tag: u32, tsn: u32) -> AuthOffer {
    let Some(auth) = config.authentication() else { return AuthOffer::None };
    let more = if config.dynamic == DynamicAddresses::No { &[][..] } else { &ADDRESS_KINDS };
    let random = config.secret.random(tag, tsn);
    AuthOffer::Given(Box::new(AuthParameters::of_config(&auth, random, more)))
}

/// Why an end makes no association with the sender of an INIT or INIT ACK, if it makes none.
pub(super) fn refusal(config: &SctpConfig, init: &InitChunk) -> Option<&'static str> {
    match init.auth {
        _ if config.authentication().is_none() => None,
        AuthOffer::Broken => Some("parameters of authentication that contradict RFC 4895"),
        AuthOffer::None if config.insists_on_auth() => Some("nothing is authenticated"),
        _ => None,
    }
}

/// The same as a cause.
pub(super) fn refusal_cause(config: &SctpConfig, init: &InitChunk) -> Option<SctpCause> {
    let details = Bytes::from_static(refusal(config, init)?.as_bytes());
    Some(SctpCause { code: SctpCause::VIOLATION, details })
}

impl SctpAssociation {
    /// Computes the keys of the association, if both ends authenticate.
    pub(super) fn agree_on_auth(&mut self, peer: Option<&AuthParameters>) {
        // A second INIT ACK changes the keys and not the room.
        let had_room = self.auth.as_ref().map_or(0, Authentication::room);
        let own = own_offer(&self.config, self.tags[0], self.first_tsn);
        let auth = self.config.authentication().filter(|_| self.features.auth);
        self.auth = match (&auth, &own, peer) {
            (Some(auth), AuthOffer::Given(own), Some(peer)) => {
                Authentication::new(auth, own, peer, self.features.dynamic)
            }
            _ => None,
        };
        let room = self.auth_room().saturating_sub(had_room);
        if room > 0 {
            self.outbox.leave_room(DataChunk::header(self.features.interleaving) + room);
        }
    }

    /// Bytes of an AUTH chunk in packets with data.
    pub(super) fn auth_room(&self) -> usize {
        self.auth.as_ref().map_or(0, Authentication::room)
    }

    /// Bytes of an AUTH chunk in a packet with heartbeats alone.
    pub(super) fn auth_room_of_heartbeats(&self) -> usize {
        let auth = self.auth.as_ref().filter(|auth| auth.must_send(kind::HEARTBEAT));
        auth.map_or(0, Authentication::size)
    }

    /// Puts an AUTH chunk before the first chunk that the peer wants authenticated (section 6.2).
    pub(super) fn seal(&self, chunks: &mut Vec<SctpChunk>) {
        let Some(auth) = &self.auth else { return };
        let must = |chunk: &SctpChunk| auth.must_send(chunk.kind());
        let Some(at) = chunks.iter().position(must) else { return };
        let covered = Bytes::from(encode_chunks(&chunks[at..]));
        chunks.insert(at, SctpChunk::Auth(auth.seal(covered)));
    }

    /// A packet without its AUTH chunk, and without the chunks that had to be authenticated and are
    /// not (section 6.3).
    pub(super) fn admit<'a>(
        &mut self,
        ends: [IpAddr; 2],
        packet: &'a SctpPacket,
    ) -> Cow<'a, SctpPacket> {
        let chunks = &packet.chunks;
        let place = chunks.iter().position(|chunk| matches!(chunk, SctpChunk::Auth(_)));
        let before = place.unwrap_or(chunks.len());
        if self.auth.is_none() && place.is_none() {
            return Cow::Borrowed(packet);
        }
        let mut admitted = Vec::with_capacity(chunks.len());
        for chunk in &chunks[..before] {
            if !self.auth.as_ref().is_some_and(|auth| auth.must_come(chunk.kind())) {
                admitted.push(chunk.clone());
            } else if ADDRESS_KINDS.contains(&chunk.kind()) {
                // Nor is what follows such a chunk (RFC 5061 rule D5).
                return Cow::Owned(SctpPacket { chunks: admitted, ..*packet });
            }
        }
        let is_own = packet.tag == self.tags[0];
        let begins = |chunk: &SctpChunk| matches!(chunk, SctpChunk::CookieEcho(_));
        if let Some(place) = place
            && (is_own || chunks.get(place + 1).is_some_and(begins))
            && self.is_authentic(ends, &chunks[place])
        {
            admitted.extend(chunks[place + 1..].iter().cloned());
        }
        Cow::Owned(SctpPacket { chunks: admitted, ..*packet })
    }

    /// Whether an AUTH chunk has the code of what follows it. A hash that this end has not named is
    /// reported.
    fn is_authentic(&mut self, ends: [IpAddr; 2], chunk: &SctpChunk) -> bool {
        let (Some(auth), SctpChunk::Auth(chunk)) = (&self.auth, chunk) else { return false };
        let verdict = auth.verify(chunk);
        if verdict == Err(BadCode::Unsupported) {
            let details = Bytes::copy_from_slice(&chunk.hash.to_be_bytes());
            let cause = SctpCause { code: SctpCause::UNKNOWN_HASH, details };
            self.reply(self.path_of(ends), vec![SctpChunk::Error(vec![cause])]);
        }
        verdict.is_ok()
    }

    /// Whether the packet that would begin this association is good enough: a COOKIE ECHO behind an
    /// AUTH chunk, or one that needs none.
    pub(super) fn admits_cookie(&self, packet: &SctpPacket) -> bool {
        match &packet.chunks[..] {
            [SctpChunk::Auth(code), SctpChunk::CookieEcho(_), ..] => {
                self.auth.as_ref().is_some_and(|auth| auth.verify(code).is_ok())
            }
            [SctpChunk::CookieEcho(_), ..] => {
                !self.auth.as_ref().is_some_and(|auth| auth.must_come(kind::COOKIE_ECHO))
            }
            _ => false,
        }
    }
}
