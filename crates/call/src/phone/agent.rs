//! One end of SIP: a state machine that calls one telephone or is called by one. Datagrams and
//! times come in, datagrams and the next deadline come out.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use ezk_sip_types::{Method, Name};
use fontis_base::{Duration, Time};

use super::description::{VoiceDescription, VoiceFormat, format_of, offer};
use super::dialog::{ALLOW, Dialog, TokenSource, branch, contact};
use super::message::{SipIds, SipMessage, SipStart, SipText};
use crate::codec::VoiceCodec;
use crate::rtp::SideFormats;

/// T1 and T2 of RFC 3261: until a message is sent again, doubled up to the second.
const FIRST_REPEAT: Duration = Duration::from_millis(500);
const LONGEST_REPEAT: Duration = Duration::from_secs(4);
/// How long a message is repeated (64 T1).
const PATIENCE: Duration = Duration::from_secs(32);
/// How long it may ring.
const LONGEST_RINGING: Duration = Duration::from_secs(180);
/// Datagrams that may wait to be sent.
const MOST_WAITING: usize = 64;

/// One end of SIP.
pub(crate) struct SipAgent {
    /// The sockets of SIP and of voice.
    at: SocketAddr,
    media: SocketAddr,
    /// The form of Opus that is spoken.
    opus: VoiceCodec,
    tokens: TokenSource,
    waiting: VecDeque<(SocketAddr, Bytes)>,
    phase: Phase,
    repeat: Option<Repeat>,
    /// Descriptions that were written.
    version: u64,
    /// Whether calls are taken.
    takes_calls: bool,
}

/// A message that is sent until it is answered.
struct Repeat {
    to: SocketAddr,
    message: Bytes,
    at: Time,
    after: Duration,
    until: Time,
}

/// How far a call has come.
enum Phase {
    Idle,
    /// The telephone calls, and waits.
    Called {
        invite: Box<SipMessage>,
        ids: SipIds,
        dialog: Dialog,
        voice: VoiceDescription,
        /// The last response.
        response: Bytes,
    },
    /// The telephone is called.
    Calling {
        dialog: Dialog,
        branch: String,
        codec: VoiceCodec,
        /// When it has rung for too long.
        until: Time,
        rings: bool,
        is_given_up: bool,
    },
    Talking {
        dialog: Dialog,
        codec: VoiceCodec,
        voice: VoiceDescription,
        /// The last answer to a call, or the last acknowledgement of one.
        last: Bytes,
    },
    /// A BYE was sent.
    Leaving {
        dialog: Dialog,
    },
    Over {
        dialog: Option<Dialog>,
        reason: String,
    },
}

/// A telephone that can be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VoiceEnd {
    /// Where it hears.
    pub(crate) at: SocketAddr,
    /// Where it takes reports.
    pub(crate) control: SocketAddr,
    pub(crate) format: VoiceFormat,
    pub(crate) side: SideFormats,
}

impl SipAgent {
    pub(crate) fn new(
        at: SocketAddr,
        media: SocketAddr,
        opus: VoiceCodec,
        key: [u8; 32],
        takes_calls: bool,
    ) -> Self {
        Self {
            at,
            media,
            opus,
            tokens: TokenSource::new(key),
            waiting: VecDeque::new(),
            phase: Phase::Idle,
            repeat: None,
            version: 0,
            takes_calls,
        }
    }

    /// Calls the telephone `uri` at `remote`.
    pub(crate) fn ring(&mut self, now: Time, uri: &str, remote: SocketAddr, codec: VoiceCodec) {
        let dialog = Dialog::calling(self.at, uri, remote, &mut self.tokens);
        let branch = branch(&mut self.tokens);
        self.version += 1;
        let invite = dialog.invite(&branch, &offer(self.media, codec, self.version));
        self.insist(now, remote, invite);
        let until = now + LONGEST_RINGING;
        let (rings, is_given_up) = (false, false);
        self.phase = Phase::Calling { dialog, branch, codec, until, rings, is_given_up };
    }

    /// The codecs of a telephone that calls, its favourite first.
    pub(crate) fn caller(&self) -> Option<&VoiceDescription> {
        match &self.phase {
            Phase::Called { voice, .. } => Some(voice),
            _ => None,
        }
    }

    /// Answers a telephone that calls. False if it does not call any more, or has no such codec.
    pub(crate) fn accept(&mut self, now: Time, codec: VoiceCodec) -> bool {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Called { invite, dialog, voice, .. } if voice.payload_type(codec).is_some() => {
                let format = VoiceFormat { codec, ..format_for(&voice, codec) };
                let last = self.agree(&invite, &dialog, &voice, format);
                self.insist(now, dialog.remote, last.clone());
                self.phase = Phase::Talking { dialog, codec, voice, last };
                true
            }
            phase => {
                self.phase = phase;
                false
            }
        }
    }

    /// The answer that takes a call.
    fn agree(
        &mut self,
        invite: &SipMessage,
        dialog: &Dialog,
        voice: &VoiceDescription,
        format: VoiceFormat,
    ) -> Bytes {
        self.version += 1;
        let mut text = invite.respond(200, "OK", &dialog.tag, dialog.remote);
        text.line("Contact", &contact(self.at));
        text.line("Allow", ALLOW);
        text.end(Some(&voice.answer(self.media, format, self.version)))
    }

    /// The telephone at the other end of a call.
    pub(crate) fn talking(&self) -> Option<VoiceEnd> {
        let Phase::Talking { dialog, codec, voice, .. } = &self.phase else { return None };
        let payload_type = voice.payload_type(*codec)?;
        // Voice goes where the signals come from, whatever a telephone takes for its address.
        let at = SocketAddr::new(dialog.remote.ip(), voice.port);
        let control = SocketAddr::new(at.ip(), voice.control_port);
        let format = VoiceFormat { codec: *codec, payload_type };
        Some(VoiceEnd { at, control, format, side: voice.side(*codec) })
    }

    /// Why the call is over, if it is.
    pub(crate) fn over(&self) -> Option<&str> {
        match &self.phase {
            Phase::Over { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Ends what there is.
    pub(crate) fn hang_up(&mut self, now: Time) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => self.end(None, "the call was never made"),
            Phase::Called { invite, dialog, .. } => {
                self.respond(dialog.remote, &invite, 480, "Temporarily Unavailable", &dialog.tag);
                self.end(Some(dialog), "the call was not answered");
            }
            Phase::Calling { dialog, branch, codec, until, rings, .. } => {
                if rings {
                    self.cancel(now, &dialog, &branch);
                }
                // A CANCEL may not precede the first response.
                let is_given_up = true;
                self.phase = Phase::Calling { dialog, branch, codec, until, rings, is_given_up };
            }
            Phase::Talking { dialog, .. } => self.leave(now, dialog),
            phase @ (Phase::Leaving { .. } | Phase::Over { .. }) => self.phase = phase,
        }
    }

    fn cancel(&mut self, now: Time, dialog: &Dialog, branch: &str) {
        let cancel = dialog.of_invite(&Method::CANCEL, branch, None);
        self.insist(now, dialog.remote, cancel);
    }

    fn leave(&mut self, now: Time, mut dialog: Dialog) {
        let bye = dialog.request(&Method::BYE, &mut self.tokens);
        self.insist(now, dialog.remote, bye);
        self.phase = Phase::Leaving { dialog };
    }

    fn end(&mut self, dialog: Option<Dialog>, reason: &str) {
        self.repeat = None;
        self.phase = Phase::Over { dialog, reason: reason.to_owned() };
    }

    /// The next datagram to be sent.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(SocketAddr, Bytes)> {
        self.turn(now);
        self.waiting.pop_front()
    }

    /// When something is due.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let ringing = match &self.phase {
            Phase::Calling { until, .. } => Some(*until),
            _ => None,
        };
        self.repeat.as_ref().map(|repeat| repeat.at).into_iter().chain(ringing).min()
    }

    /// Does what is due.
    fn turn(&mut self, now: Time) {
        if let Phase::Calling { until, is_given_up: false, .. } = &self.phase
            && *until <= now
        {
            return self.hang_up(now);
        }
        let Some(repeat) = self.repeat.as_mut().filter(|repeat| repeat.at <= now) else { return };
        if repeat.until > now {
            repeat.after = (repeat.after * 2).min(LONGEST_REPEAT);
            repeat.at = now + repeat.after;
            let (to, message) = (repeat.to, repeat.message.clone());
            return self.send(to, message);
        }
        self.repeat = None;
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            // The answer was never acknowledged.
            Phase::Talking { dialog, .. } => self.leave(now, dialog),
            Phase::Calling { dialog, .. } | Phase::Leaving { dialog } => {
                self.end(Some(dialog), "the telephone does not answer");
            }
            phase => self.phase = phase,
        }
    }

    fn send(&mut self, to: SocketAddr, message: Bytes) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((to, message));
        }
    }

    /// Sends a message until it is answered.
    fn insist(&mut self, now: Time, to: SocketAddr, message: Bytes) {
        self.send(to, message.clone());
        let (at, until) = (now + FIRST_REPEAT, now + PATIENCE);
        self.repeat = Some(Repeat { to, message, at, after: FIRST_REPEAT, until });
    }

    fn respond(&mut self, to: SocketAddr, request: &SipMessage, code: u16, why: &str, tag: &str) {
        let response = request.respond(code, why, tag, to);
        self.send(to, finished(response, code));
    }

    /// Takes a datagram.
    pub(crate) fn handle(&mut self, now: Time, from: SocketAddr, datagram: &Bytes) {
        if !is_near(self.at.ip(), from.ip()) {
            return;
        }
        let Some(message) = SipMessage::parse(datagram) else {
            if let Some(request) = SipMessage::salvage(datagram) {
                let tag = self.tokens.next();
                self.respond(from, &request, 400, "Bad Request", &tag);
            }
            return;
        };
        let (start, ids) = (message.start.clone(), message.ids());
        match (start, ids) {
            (SipStart::Request { method, .. }, Some(ids)) if ids.method == method => {
                self.request(now, from, message, &method, ids);
            }
            (SipStart::Request { method, .. }, _) if method != Method::ACK => {
                let tag = self.tokens.next();
                self.respond(from, &message, 400, "Bad Request", &tag);
            }
            (SipStart::Response { code }, Some(ids)) => self.response(now, &message, &ids, code),
            _ => {}
        }
    }

    fn request(
        &mut self,
        now: Time,
        from: SocketAddr,
        message: SipMessage,
        method: &Method,
        ids: SipIds,
    ) {
        let tag = self.tokens.next();
        let dialog = match &self.phase {
            Phase::Talking { dialog, .. }
            | Phase::Leaving { dialog }
            | Phase::Over { dialog: Some(dialog), .. } => Some(dialog),
            _ => None,
        };
        let is_within = dialog.is_some_and(|dialog| dialog.has_request(&ids));
        if *method == Method::ACK {
            if is_within && matches!(self.phase, Phase::Talking { .. }) {
                self.repeat = None;
            }
        } else if *method == Method::OPTIONS {
            self.respond(from, &message, 200, "OK", &tag);
        } else if *method == Method::CANCEL {
            self.cancelled(from, &message, &ids, &tag);
        } else if *method == Method::INVITE && ids.to_tag.is_none() {
            self.called(from, message, ids, tag);
        } else if *method == Method::INVITE && is_within {
            self.called_again(now, from, &message, &tag);
        } else if *method == Method::BYE && is_within {
            self.respond(from, &message, 200, "OK", &tag);
            if let Phase::Talking { dialog, .. } | Phase::Leaving { dialog } = &self.phase {
                let dialog = dialog.clone();
                self.end(Some(dialog), "the telephone has hung up");
            }
        } else if *method == Method::BYE || *method == Method::INVITE {
            self.respond(from, &message, 481, "Call/Transaction Does Not Exist", &tag);
        } else {
            self.respond(from, &message, 405, "Method Not Allowed", &tag);
        }
    }

    /// A call from outside a dialog.
    fn called(&mut self, from: SocketAddr, invite: SipMessage, ids: SipIds, tag: String) {
        match &self.phase {
            // It came again.
            Phase::Called { ids: known, response, dialog, .. } if *known == ids => {
                let (to, response) = (dialog.remote, response.clone());
                return self.send(to, response);
            }
            Phase::Talking { dialog, last, .. } if dialog.call_id == ids.call_id => {
                let (to, last) = (dialog.remote, last.clone());
                return self.send(to, last);
            }
            Phase::Idle if self.takes_calls => {}
            _ => return self.respond(from, &invite, 486, "Busy Here", &tag),
        }
        if let Some(wanted) = invite.header(&Name::REQUIRE).map(str::to_owned) {
            let mut text = invite.respond(420, "Bad Extension", &tag, from);
            text.line("Unsupported", &wanted);
            return self.send(from, text.end(None));
        }
        let Some(voice) = VoiceDescription::parse(&invite.body, self.opus) else {
            return self.respond(from, &invite, 488, "Not Acceptable Here", &tag);
        };
        self.respond(from, &invite, 100, "Trying", &tag);
        let dialog = Dialog::called(self.at, from, &invite, &ids, tag);
        let mut ringing = invite.respond(180, "Ringing", &dialog.tag, from);
        ringing.line("Contact", &contact(self.at));
        let response = ringing.end(None);
        self.send(from, response.clone());
        let invite = Box::new(invite);
        self.phase = Phase::Called { invite, ids, dialog, voice, response };
    }

    /// A call within a dialog: a telephone that goes on in another way.
    fn called_again(&mut self, now: Time, from: SocketAddr, invite: &SipMessage, tag: &str) {
        let Phase::Talking { dialog, codec, voice, .. } = &self.phase else {
            return self.respond(from, invite, 481, "Call/Transaction Does Not Exist", tag);
        };
        let (dialog, codec) = (dialog.clone(), *codec);
        let told = match invite.body.is_empty() {
            true => Some(voice.clone()),
            false => VoiceDescription::parse(&invite.body, self.opus),
        };
        let told = told.filter(|told| told.payload_type(codec).is_some());
        let Some(voice) = told else {
            return self.respond(from, invite, 488, "Not Acceptable Here", tag);
        };
        let format = VoiceFormat { codec, ..format_for(&voice, codec) };
        let last = self.agree(invite, &dialog, &voice, format);
        self.insist(now, dialog.remote, last.clone());
        self.phase = Phase::Talking { dialog, codec, voice, last };
    }

    fn cancelled(&mut self, from: SocketAddr, cancel: &SipMessage, ids: &SipIds, tag: &str) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Called { invite, ids: known, dialog, .. }
                if known.call_id == ids.call_id
                    && known.cseq == ids.cseq
                    && invite.branch() == cancel.branch() =>
            {
                self.respond(from, cancel, 200, "OK", &dialog.tag);
                let to = dialog.remote;
                self.respond(to, &invite, 487, "Request Terminated", &dialog.tag);
                self.end(Some(dialog), "the telephone has hung up");
            }
            phase => {
                self.phase = phase;
                self.respond(from, cancel, 481, "Call/Transaction Does Not Exist", tag);
            }
        }
    }

    fn response(&mut self, now: Time, message: &SipMessage, ids: &SipIds, code: u16) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Calling { dialog, branch, codec, until, rings, is_given_up }
                if dialog.has_response(ids, &Method::INVITE) =>
            {
                if code >= 200 {
                    return self.answered(now, message, ids, code, dialog, (&branch, codec));
                }
                if !rings {
                    self.repeat = None;
                }
                if is_given_up && !rings {
                    self.cancel(now, &dialog, &branch);
                }
                let rings = true;
                self.phase = Phase::Calling { dialog, branch, codec, until, rings, is_given_up };
            }
            Phase::Calling { dialog, branch, codec, until, rings, is_given_up } => {
                // The answer to a CANCEL: that to the call follows, or never does.
                if dialog.has_response(ids, &Method::CANCEL) {
                    self.repeat = None;
                }
                self.phase = Phase::Calling { dialog, branch, codec, until, rings, is_given_up };
            }
            Phase::Talking { dialog, codec, voice, last } => {
                if dialog.has_response(ids, &Method::INVITE) && (200..300).contains(&code) {
                    // The acknowledgement was lost.
                    self.send(dialog.remote, last.clone());
                }
                self.phase = Phase::Talking { dialog, codec, voice, last };
            }
            Phase::Leaving { dialog } if dialog.has_response(ids, &Method::BYE) && code >= 200 => {
                self.end(Some(dialog), "the call is over");
            }
            phase => self.phase = phase,
        }
    }

    /// The last response to a call.
    fn answered(
        &mut self,
        now: Time,
        message: &SipMessage,
        ids: &SipIds,
        code: u16,
        mut dialog: Dialog,
        (branch, codec): (&str, VoiceCodec),
    ) {
        self.repeat = None;
        if code >= 300 {
            let to = message.header(&Name::TO);
            let ack = dialog.of_invite(&Method::ACK, branch, to);
            self.send(dialog.remote, ack);
            let why = match code {
                486 | 600 => "is busy",
                401 | 407 => "asks for a password, which this end has not",
                404 => "does not know that name",
                487 => "was called no longer",
                488 | 606 => "does not have the codec of this call",
                _ => "refuses the call",
            };
            return self.end(Some(dialog), &format!("the telephone {why} (SIP {code})"));
        }
        dialog.answered(message, ids);
        let last = dialog.request(&Method::ACK, &mut self.tokens);
        self.send(dialog.remote, last.clone());
        let voice = VoiceDescription::parse(&message.body, self.opus);
        match voice.filter(|voice| voice.payload_type(codec).is_some()) {
            Some(voice) => self.phase = Phase::Talking { dialog, codec, voice, last },
            None => self.leave(now, dialog),
        }
    }
}

/// The format of an answer: the other end's number of the codec.
fn format_for(voice: &VoiceDescription, codec: VoiceCodec) -> VoiceFormat {
    let own = format_of(codec);
    let payload_type = voice.payload_type(codec).unwrap_or(own.payload_type);
    VoiceFormat { payload_type, ..own }
}

/// Ends a response, with what responses of this kind must say.
fn finished(mut response: SipText, code: u16) -> Bytes {
    if matches!(code, 200 | 405) {
        response.line("Allow", ALLOW);
    }
    if matches!(code, 200 | 488) {
        response.line("Accept", "application/sdp");
    }
    response.end(None)
}

/// Whether datagrams of `peer` are taken at a socket with the address `own`: one on loopback takes
/// none of other machines.
pub(crate) fn is_near(own: IpAddr, peer: IpAddr) -> bool {
    !own.is_loopback() || peer.is_loopback()
}
