//! The admission of connections: packets of strangers cost the endpoint work and memory before they
//! are authenticated.

use std::net::{IpAddr, SocketAddr};

use fontis_base::{Ecn, Time};
use fontis_proto::dccp::{Carrier, DccpBody, DccpPacket, ResetCode, no_connection};
use fontis_proto::dfcp::{
    ConnectionId, DfcpConfig, DfcpConnection as Machine, Frame, SYN_SIZE, VERSION,
};

use super::config::Accept;
use super::driver::Driver;
use super::error::CODE_REFUSED_KEY;
use super::outbox::Target;
use super::router::Router;
use super::shares::Shares;
use super::slot::{Protection, Slot, Waiting};
use super::sockets::MAIN;
use super::syn::Syn;
use super::unconfirmed::{LIFE, Network};
use super::way::Way;
use crate::connection::Connection;
use crate::protection::{
    Cookie, OpenedSyn, SynError, cookie, open_syn, reset, reset_token, syn_mark, unknown_key,
    version_negotiation,
};

/// The decision whether a SYN is opened.
enum Verdict {
    /// It is opened; true if a cookie proves its sender's address.
    Open {
        proved: bool,
    },
    /// The sender's address is to be proved first.
    Ask,
    Drop,
}

impl Driver {
    /// A packet for a connection that is not here: perhaps its peer missed a restart.
    pub(super) fn stranger(
        &mut self,
        at: Time,
        to: SocketAddr,
        from: Option<IpAddr>,
        id: ConnectionId,
        length: usize,
    ) {
        let token = reset_token(&self.reset_secret, id);
        let answer = reset(id, &token);
        if answer.len() < length && self.admission.answers.allows(at) {
            self.answer(to, from, &answer);
        }
    }

    fn answer(&mut self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8]) {
        let target = Target { socket: MAIN, to, from };
        self.outbox.push(&self.sockets, target, Ecn::NotEct, true, |out| {
            out.extend_from_slice(datagram);
            true
        });
    }

    /// A datagram that is none of Fontis. Who asks for a connection of DCCP, which would not be
    /// encrypted, is refused.
    pub(super) fn foreigner(
        &mut self,
        at: Time,
        from: SocketAddr,
        local: Option<IpAddr>,
        bytes: &[u8],
    ) {
        let Ok(packet) = DccpPacket::decode(Carrier::Udp, bytes) else { return };
        let is_request = matches!(packet.body, DccpBody::Request { .. });
        if matches!(self.config.accept, Accept::None) || !is_request {
            return;
        }
        let Some(mut answer) = no_connection(&packet) else { return };
        if let DccpBody::Reset { code, .. } = &mut answer.body {
            *code = ResetCode::ConnectionRefused;
        }
        if self.admission.answers.allows(at) {
            let mut datagram = Vec::new();
            answer.encode(Carrier::Udp, &mut datagram);
            self.answer(from, local, &datagram);
        }
    }

    /// A connection request; `bytes` begin with the SYN's type.
    pub(super) fn syn(&mut self, at: Time, syn: &Syn, bytes: &[u8]) {
        if matches!(self.config.accept, Accept::None) {
            return;
        }
        if let Some(slot) = self.by_syn.get(&(syn.from, syn.source)).copied() {
            self.copy(at, slot, syn, bytes.len());
            return;
        }
        if bytes.len() < SYN_SIZE as usize {
            return;
        }
        if syn.version != VERSION {
            if self.admission.answers.allows(at) {
                self.answer(syn.from, syn.local, &version_negotiation(syn.source, &[VERSION]));
            }
            return;
        }
        let mark = syn_mark(bytes);
        if mark.is_some_and(|mark| self.admission.replays.has(&mark)) {
            self.admission.turned_away += 1;
            return;
        }
        let proved = match self.judge(at, syn) {
            Verdict::Open { proved } => proved,
            Verdict::Ask => {
                self.admission.turned_away += 1;
                if self.admission.cookies_sent.allows(at) {
                    let proof = self.admission.cookies.make(at, syn.from, syn.source);
                    self.answer(syn.from, syn.local, &cookie(syn.source, &proof));
                }
                return;
            }
            Verdict::Drop => {
                self.admission.turned_away += 1;
                return;
            }
        };
        match open_syn(bytes, &self.config.secret, self.config.psk.as_deref()) {
            Ok(opened) => self.accept(at, syn, proved, opened, bytes),
            Err(SynError::UnknownKey) => {
                if self.admission.answers.allows(at) {
                    self.answer(syn.from, syn.local, &unknown_key(syn.source));
                }
            }
            Err(SynError::Malformed) => {}
        }
    }

    fn judge(&mut self, at: Time, syn: &Syn) -> Verdict {
        let admission = &mut self.admission;
        let network = Network::from(syn.from.ip());
        match syn.cookie {
            Some(proof) if admission.cookies.is_valid(at, syn.from, syn.source, &proof) => {
                if admission.proved.allows(at, network) {
                    Verdict::Open { proved: true }
                } else {
                    Verdict::Drop
                }
            }
            // A cookie that has expired, or that nobody made, is none.
            _ if admission.unproved.has_room(network) && admission.unproved.allows(at, network) => {
                Verdict::Open { proved: false }
            }
            _ => Verdict::Ask,
        }
    }

    /// Another copy of a SYN whose content was read when the first came.
    fn copy(&mut self, at: Time, slot: u64, syn: &Syn, length: usize) {
        let size = length as u32 + 28;
        self.with(slot, at, |slot, now| slot.machine.handle_syn_copy(now, syn.source, size));
    }

    fn accept(&mut self, at: Time, syn: &Syn, proved: bool, mut opened: OpenedSyn, bytes: &[u8]) {
        let Some(handle) = self.handle.clone() else { return };
        let allowed = match &self.config.accept {
            Accept::Keys(keys) => keys.contains(&opened.client),
            Accept::Anyone => true,
            Accept::None => false,
        };
        if !allowed {
            // The connection only carries the refusal: nothing of the message is kept.
            opened.hello.frames.clear();
        }
        let id = self.new_id();
        let ip = syn.from.ip();
        let tokens = &mut self.admission.tokens;
        let mut known = opened.hello.frames.iter().find_map(|frame| match frame {
            Frame::Token(token) => tokens.redeem(at, ip, &opened.client, token),
            _ => None,
        });
        let is_fresh = known.is_some();
        let next = tokens.make(at, ip, &opened.client, known.unwrap_or_default());
        if proved {
            // Where it is, it has proved, even if nothing else is known.
            known.get_or_insert_default();
        }
        let given = known.and_then(|known| known.rate).map(|rate| (at, rate));
        let config = DfcpConfig { token: Some(next), known, ..self.transport(syn.from, id) };
        let size = bytes.len() as u32 + config.overhead;
        let mut machine =
            Machine::accept(at, config, id, opened.source, opened.version, &opened.hello, size);
        let (router, inboxes) = Router::new();
        let (slot, client) = (self.next_slot, opened.client);
        let connection = Connection::new(handle, slot, syn.from, client, is_fresh, inboxes);
        let waiting = if allowed {
            let queue = self.incoming.clone();
            Some(Waiting::Accept(Box::new(move || {
                let _ = queue.send(connection);
            })))
        } else {
            machine.close(at, CODE_REFUSED_KEY, "this key is not allowed here");
            None
        };
        let responder = opened.responder.with_key_log(self.config.key_log.clone());
        let slot = Slot {
            machine,
            router,
            protection: Protection::Responder(Box::new(responder)),
            ways: vec![Some(Way::new(syn.socket, syn.from, syn.local))],
            opens_paths: false,
            waiting,
            latest: at,
            syn: Some((syn.from, opened.source)),
            mark: syn_mark(bytes),
            is_doubted: false,
            doubts: None,
            qlog: self.qlog(id, "server"),
            unconfirmed_until: Some(at + LIFE),
            scheduled: None,
            reset_token: None,
            flows: [false; 2],
            network: None,
            ends_on_refusal: false,
            counted: false,
            forged: 0,
            early: Vec::new(),
            peer: opened.client,
            token: None,
            token_kept: None,
            token_given: given,
            carries: false,
            shares: Shares::default(),
            writers: Vec::new(),
        };
        let room = if proved { &mut self.admission.proved } else { &mut self.admission.unproved };
        if let Some(oldest) = room.enter(self.next_slot, syn.from.ip().into()) {
            self.forget(oldest);
        }
        self.insert(id, slot);
    }

    /// The responder requires a proof that this side has the address that its SYN came from.
    pub(super) fn prove(&mut self, id: u64, cookie: &Cookie) {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.waiting.is_some()) else {
            return;
        };
        let target = Target { socket: MAIN, to: slot.remote(), from: None };
        let Protection::Initiator(session) = &mut slot.protection else { return };
        if let Some(syn) = session.prove(cookie) {
            self.outbox.push(&self.sockets, target, Ecn::NotEct, true, |out| {
                out.extend_from_slice(syn);
                true
            });
        }
    }
}
