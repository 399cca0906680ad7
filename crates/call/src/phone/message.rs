//! Messages of SIP (RFC 3261) as far as a call needs them.

use std::fmt::Write;
use std::net::SocketAddr;

use bytes::Bytes;
use ezk_sip_types::header::typed::{CSeq, FromTo};
use ezk_sip_types::msg::{Line, MessageLine, PullParser};
use ezk_sip_types::parse::Parse;
use ezk_sip_types::{Headers, Method, Name};

/// The longest message that is read.
pub(crate) const LONGEST: usize = 8192;
/// The most lines of a header.
const MOST_LINES: usize = 128;
/// The version, which ends a request's first line.
const VERSION: &str = "SIP/2.0";

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct SipMessage {
    pub(crate) start: SipStart,
    pub(crate) headers: Headers,
    pub(crate) body: Bytes,
}

/// The first line of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SipStart {
    Request {
        method: Method,
        /// Its address, as it stands there.
        uri: String,
    },
    Response {
        code: u16,
    },
}

/// What tells the transactions and dialogs of a message apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SipIds {
    pub(crate) call_id: String,
    pub(crate) from_tag: String,
    pub(crate) to_tag: Option<String>,
    pub(crate) cseq: u32,
    /// The method in CSeq.
    pub(crate) method: Method,
}

impl SipMessage {
    /// Reads a datagram; `None` if it is no message.
    pub(crate) fn parse(datagram: &Bytes) -> Option<Self> {
        if datagram.len() > LONGEST {
            return None;
        }
        let mut lines = PullParser::new(datagram, 0);
        let first = std::str::from_utf8(lines.next()?.ok()?).ok()?;
        let (_, line) = MessageLine::parse(datagram)(first).ok()?;
        let start = match line {
            MessageLine::Request(line) => {
                let (_, rest) = first.split_once(' ')?;
                let uri = rest.strip_suffix(VERSION)?.trim();
                let is_one = !uri.is_empty() && !uri.contains(char::is_whitespace);
                let uri = is_one.then(|| uri.to_owned())?;
                SipStart::Request { method: line.method, uri }
            }
            MessageLine::Response(line) => SipStart::Response { code: line.code.into_u16() },
        };
        let mut headers = Headers::new();
        for (number, line) in lines.by_ref().enumerate() {
            let line = std::str::from_utf8(line.ok()?).ok()?;
            if number == MOST_LINES {
                return None;
            }
            let (_, line) = Line::parse(datagram, line).ok()?;
            // A line may go on in the next one, which means a space.
            let value: Vec<&str> = line.value.lines().map(str::trim).collect();
            headers.insert(line.name, value.join(" "));
        }
        let body = datagram.slice(lines.head_end().min(datagram.len())..);
        let told = headers.get_raw(&Name::CONTENT_LENGTH).next();
        let body = match told {
            None => body,
            Some(told) => {
                let len: usize = told.trim().parse().ok()?;
                (len <= body.len()).then(|| body.slice(..len))?
            }
        };
        Some(Self { start, headers, body })
    }

    /// The text of the first header of this name.
    pub(crate) fn header(&self, name: &Name) -> Option<&str> {
        self.headers.get_raw(name).next().map(|value| value.as_str())
    }

    /// What it belongs to, if it says so.
    pub(crate) fn ids(&self) -> Option<SipIds> {
        let from: FromTo = self.headers.get(Name::FROM).ok()?;
        let to: FromTo = self.headers.get(Name::TO).ok()?;
        let cseq: CSeq = self.headers.get_named().ok()?;
        let call_id = self.header(&Name::CALL_ID)?.trim();
        if call_id.is_empty() || self.header(&Name::VIA).is_none() {
            return None;
        }
        Some(SipIds {
            call_id: call_id.to_owned(),
            from_tag: from.tag.map(|tag| tag.to_string()).unwrap_or_default(),
            to_tag: to.tag.map(|tag| tag.to_string()),
            cseq: cseq.cseq,
            method: cseq.method,
        })
    }

    /// The branch of its first Via, which names its transaction.
    pub(crate) fn branch(&self) -> Option<String> {
        let via = self.header(&Name::VIA)?;
        let via = via.split(',').next()?;
        let branch = via.split(';').filter_map(|one| one.trim().strip_prefix("branch="));
        branch.map(str::to_owned).next()
    }

    /// The address in its first Contact.
    pub(crate) fn contact(&self) -> Option<String> {
        let text = self.header(&Name::CONTACT)?;
        let uri = match text.split_once('<') {
            Some((_, rest)) => rest.split_once('>')?.0,
            None => text.split(';').next()?,
        };
        let uri = uri.trim();
        let is_uri = uri.starts_with("sip:") && !uri.contains(char::is_whitespace);
        is_uri.then(|| uri.to_owned())
    }

    /// What can be read of a request that is none, so that it can be refused; `None` if it looks
    /// like none, or if nobody expects an answer.
    pub(crate) fn salvage(datagram: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(&datagram[..datagram.len().min(LONGEST)]);
        let mut lines = text.lines();
        let first = lines.next()?;
        if !first.ends_with(VERSION) || first.starts_with("ACK") {
            return None;
        }
        let mut headers = Headers::new();
        for line in lines.take(MOST_LINES).take_while(|line| !line.is_empty()) {
            if let Some((name, value)) = line.split_once(':') {
                headers.insert(Name::from(name.trim().to_owned()), value.trim().to_owned());
            }
        }
        let start = SipStart::Request { method: Method::OPTIONS, uri: String::new() };
        let request = Self { start, headers, body: Bytes::new() };
        request.header(&Name::VIA).is_some().then_some(request)
    }

    /// The response to this request, which came from `from`; it has no body yet. `tag` names this
    /// end.
    pub(crate) fn respond(&self, code: u16, reason: &str, tag: &str, from: SocketAddr) -> SipText {
        let mut text = SipText(format!("{VERSION} {code} {reason}\r\n"));
        for (number, value) in self.headers.get_raw(&Name::VIA).enumerate() {
            let value = if number == 0 { seen_from(value, from) } else { value.to_string() };
            text.line("Via", &value);
        }
        for name in [Name::RECORD_ROUTE, Name::FROM] {
            for value in self.headers.get_raw(&name) {
                text.line(name.as_print_str(), value.as_str());
            }
        }
        let has_tag = self.ids().is_some_and(|ids| ids.to_tag.is_some());
        let to = self.header(&Name::TO).unwrap_or("<sip:unknown>");
        match has_tag || code == 100 {
            true => text.line("To", to),
            false => text.line("To", &format!("{to};tag={tag}")),
        }
        for name in [Name::CALL_ID, Name::CSEQ] {
            text.line(name.as_print_str(), self.header(&name).unwrap_or_default());
        }
        text
    }
}

/// A Via with the port that a request came from, if its sender asks for it (RFC 3581).
fn seen_from(via: &str, from: SocketAddr) -> String {
    let (first, others) = via.split_once(',').map_or((via, None), |(one, all)| (one, Some(all)));
    let parameters = first.split(';').map(|one| match one.trim() {
        "rport" => format!("rport={};received={}", from.port(), from.ip()),
        other => other.to_owned(),
    });
    let first = parameters.collect::<Vec<_>>().join(";");
    others.map_or_else(|| first.clone(), |others| format!("{first},{others}"))
}

/// A message that is written line by line.
#[derive(Clone, Debug)]
pub(crate) struct SipText(String);

impl SipText {
    pub(crate) fn request(method: &Method, uri: &str) -> Self {
        Self(format!("{method} {uri} {VERSION}\r\n"))
    }

    pub(crate) fn line(&mut self, name: &str, value: &str) {
        // Nothing that others wrote ends a line.
        let value = value.replace(['\r', '\n'], " ");
        let _ = write!(self.0, "{name}: {value}\r\n");
    }

    /// Ends it, with a session description if there is one.
    pub(crate) fn end(mut self, description: Option<&str>) -> Bytes {
        if description.is_some() {
            self.line("Content-Type", "application/sdp");
        }
        let body = description.unwrap_or_default();
        self.line("Content-Length", &body.len().to_string());
        self.0.push_str("\r\n");
        self.0.push_str(body);
        self.0.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INVITE: &str = "INVITE sip:fontis@127.0.0.1:5080 SIP/2.0\r\n\
        Via: SIP/2.0/UDP 127.0.0.1:5062;branch=z9hG4bK776asdhds;rport\r\n\
        Max-Forwards: 70\r\nt: <sip:fontis@127.0.0.1:5080>\r\n\
        From: \"A, B\" <sip:a@127.0.0.1>;tag=1928301774\r\nCall-ID: a84b4c76e66710\r\n\
        CSeq: 314159 INVITE\r\nContact: <sip:a-0x1@127.0.0.1:5062>;expires=60\r\n\
        Subject: one\r\n two\r\nl: 4\r\n\r\nv=0\r\n";

    fn at() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 5062))
    }

    #[test]
    fn a_request_is_read_and_answered() {
        let message = SipMessage::parse(&Bytes::from_static(INVITE.as_bytes())).expect("a message");
        let uri = "sip:fontis@127.0.0.1:5080".to_owned();
        assert_eq!(message.start, SipStart::Request { method: Method::INVITE, uri });
        let ids = message.ids().expect("ids");
        assert_eq!((ids.cseq, ids.from_tag.as_str(), ids.to_tag), (314_159, "1928301774", None));
        assert_eq!(message.branch().as_deref(), Some("z9hG4bK776asdhds"));
        assert_eq!(message.contact().as_deref(), Some("sip:a-0x1@127.0.0.1:5062"));
        assert_eq!(message.header(&Name::SUBJECT), Some("one two"));
        assert_eq!(&message.body[..], b"v=0\r");
        let response = message.respond(180, "Ringing", "xyz", at()).end(None);
        let response = SipMessage::parse(&response).expect("a message");
        assert_eq!(response.start, SipStart::Response { code: 180 });
        assert_eq!(response.ids().expect("ids").to_tag.as_deref(), Some("xyz"));
        assert_eq!(response.branch(), message.branch());
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_no_message() {
        let wrong = [
            "",
            "INVITE",
            "INVITE sip:a SIP/2.0\r\n",
            "INVITE sip:a@b c SIP/2.0\r\nl: 0\r\n\r\n",
            "\r\n\r\n",
            "INVITE sip:a@127.0.0.1 SIP/2.0\r\nContent-Length: 9\r\n\r\n",
        ];
        for text in wrong {
            assert!(SipMessage::parse(&Bytes::from(text)).is_none(), "{text:?}");
        }
        let long = format!("{}{}", INVITE, "a".repeat(LONGEST));
        assert!(SipMessage::parse(&Bytes::from(long)).is_none());
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_read_without_harm(
            cut in 0..INVITE.len(),
            changes: Vec<(usize, u8)>,
            tail: Vec<u8>,
        ) {
            let mut bytes = INVITE.as_bytes()[..cut].to_vec();
            for (at, byte) in changes {
                let len = bytes.len().max(1);
                if let Some(place) = bytes.get_mut(at % len) {
                    *place = byte;
                }
            }
            bytes.extend(tail);
            let bytes = Bytes::from(bytes);
            if let Some(message) = SipMessage::parse(&bytes) {
                let _ = (message.ids(), message.branch(), message.contact());
                let _ = message.respond(400, "Bad Request", "tag", at()).end(None);
            } else if let Some(request) = SipMessage::salvage(&bytes) {
                let _ = request.respond(400, "Bad Request", "tag", at()).end(None);
            }
        }
    }
}
