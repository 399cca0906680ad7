//! A dialog of SIP: who speaks with whom, and the requests within it.

use std::net::SocketAddr;

use bytes::Bytes;
use ezk_sip_types::{Method, Name};

use super::message::{SipIds, SipMessage, SipText};

/// The methods that are understood.
pub(crate) const ALLOW: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS";

/// Names that nobody can guess.
pub(crate) struct TokenSource {
    key: [u8; 32],
    count: u64,
}

impl TokenSource {
    pub(crate) const fn new(key: [u8; 32]) -> Self {
        Self { key, count: 0 }
    }

    pub(crate) fn next(&mut self) -> String {
        self.count += 1;
        let hash = blake3::keyed_hash(&self.key, &self.count.to_be_bytes());
        hash.to_hex().as_str()[..20].to_owned()
    }
}

/// One end's view of a dialog (RFC 3261 section 12).
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    pub(crate) call_id: String,
    pub(crate) tag: String,
    /// The tag of the other end; a caller learns it from the answer.
    pub(crate) peer_tag: String,
    /// From and To of this end's requests, with their tags.
    own: String,
    peer: String,
    /// The address in requests, and the socket that they go to.
    target: String,
    pub(crate) remote: SocketAddr,
    /// This end's SIP socket.
    at: SocketAddr,
    /// The number of this end's last request.
    cseq: u32,
}

impl Dialog {
    /// The dialog of a call to `uri` at `remote`.
    pub(crate) fn calling(
        at: SocketAddr,
        uri: &str,
        remote: SocketAddr,
        tokens: &mut TokenSource,
    ) -> Self {
        let (tag, call_id) = (tokens.next(), tokens.next());
        Self {
            call_id,
            own: format!("<sip:fontis@{at}>;tag={tag}"),
            tag,
            peer_tag: String::new(),
            peer: format!("<{uri}>"),
            target: uri.to_owned(),
            remote,
            at,
            cseq: 1,
        }
    }

    /// The dialog of a call that came from `remote`.
    pub(crate) fn called(
        at: SocketAddr,
        remote: SocketAddr,
        invite: &SipMessage,
        ids: &SipIds,
        tag: String,
    ) -> Self {
        let to = invite.header(&Name::TO).unwrap_or_default();
        let peer = invite.header(&Name::FROM).unwrap_or_default().to_owned();
        Self {
            call_id: ids.call_id.clone(),
            own: format!("{to};tag={tag}"),
            tag,
            peer_tag: ids.from_tag.clone(),
            peer,
            target: invite.contact().unwrap_or_else(|| format!("sip:{remote}")),
            remote,
            at,
            cseq: 0,
        }
    }

    /// Whether a request of the other end is within it.
    pub(crate) fn has_request(&self, ids: &SipIds) -> bool {
        ids.call_id == self.call_id
            && ids.from_tag == self.peer_tag
            && ids.to_tag.as_ref() == Some(&self.tag)
    }

    /// Whether a response answers this end's last request of this method.
    pub(crate) fn has_response(&self, ids: &SipIds, method: &Method) -> bool {
        ids.call_id == self.call_id
            && ids.from_tag == self.tag
            && ids.cseq == self.cseq
            && ids.method == *method
    }

    /// Takes what the answer to the call says of the other end.
    pub(crate) fn answered(&mut self, response: &SipMessage, ids: &SipIds) {
        self.peer_tag = ids.to_tag.clone().unwrap_or_default();
        if let Some(to) = response.header(&Name::TO) {
            self.peer = to.to_owned();
        }
        if let Some(contact) = response.contact() {
            self.target = contact;
        }
    }

    /// The next request within it, with the branch of a new transaction.
    pub(crate) fn request(&mut self, method: &Method, tokens: &mut TokenSource) -> Bytes {
        if *method != Method::ACK {
            self.cseq += 1;
        }
        self.text(method, &branch(tokens), None).end(None)
    }

    /// The call itself, with its offer.
    pub(crate) fn invite(&self, branch: &str, offer: &str) -> Bytes {
        let mut text = self.text(&Method::INVITE, branch, None);
        text.line("Contact", &contact(self.at));
        text.line("Allow", ALLOW);
        text.end(Some(offer))
    }

    /// A CANCEL of the call, or the ACK of its refusal: they belong to its transaction.
    pub(crate) fn of_invite(&self, method: &Method, branch: &str, to: Option<&str>) -> Bytes {
        self.text(method, branch, to).end(None)
    }

    fn text(&self, method: &Method, branch: &str, to: Option<&str>) -> SipText {
        let mut text = SipText::request(method, &self.target);
        text.line("Via", &format!("SIP/2.0/UDP {};branch={branch};rport", self.at));
        text.line("Max-Forwards", "70");
        text.line("From", &self.own);
        text.line("To", to.unwrap_or(&self.peer));
        text.line("Call-ID", &self.call_id);
        text.line("CSeq", &format!("{} {method}", self.cseq));
        text.line("User-Agent", "fontis");
        text
    }
}

/// The branch of a new transaction (RFC 3261 section 8.1.1.7).
pub(crate) fn branch(tokens: &mut TokenSource) -> String {
    format!("z9hG4bK{}", tokens.next())
}

pub(crate) fn contact(at: SocketAddr) -> String {
    format!("<sip:fontis@{at}>")
}
