//! Offers and answers: what WebRTC says of a data channel's connection in SDP (RFC 8841).

use std::net::Ipv4Addr;

use is::{Candidate, IceCreds};
use sdp_types::{Attribute, Connection, Media, MediaType, Origin, Session, Time, TransportProto};

use crate::RtcError;

/// The port of SCTP inside DTLS, where it tells nobody apart.
pub(crate) const SCTP_PORT: u16 = 5000;
/// The longest message that a peer takes who does not say (RFC 8841 section 6.1).
const DEFAULT_LONGEST: u64 = 65_536;
/// The most candidates of a peer that are read.
const MOST_CANDIDATES: usize = 64;
/// The protocols of a data channel's line.
const PROTOCOLS: [&str; 2] = ["UDP/DTLS/SCTP", "TCP/DTLS/SCTP"];

/// Who begins with DTLS (RFC 4145 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// The describing end does.
    Active,
    /// The other does.
    Passive,
    /// The other chooses.
    Either,
}

/// What an end says of itself.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) credentials: IceCreds,
    /// Candidates without `a=`.
    pub(crate) candidates: Vec<String>,
    pub(crate) fingerprint: String,
    pub(crate) setup: Setup,
    pub(crate) sctp_port: u16,
    /// The longest message that it takes.
    pub(crate) longest: u64,
    /// The name of the line; an answer repeats the offer's.
    pub(crate) mid: String,
    /// Lines that the offer has and that an answer refuses, and the place of the channel's line
    /// among them.
    others: Vec<Media>,
    place: usize,
}

fn wrong(what: impl Into<String>) -> RtcError {
    RtcError::Description(what.into())
}

/// The value of an attribute of a line, or of the whole session.
fn value<'a>(session: &'a Session, media: &'a Media, name: &str) -> Option<&'a str> {
    let all = media.attributes.iter().chain(&session.attributes);
    let mut values = all.filter(|attribute| attribute.attribute == name);
    values.next().and_then(|attribute| attribute.value.as_deref())
}

impl Description {
    pub(crate) fn new(
        credentials: IceCreds,
        candidates: Vec<String>,
        fingerprint: String,
        longest: u64,
    ) -> Self {
        Self {
            credentials,
            candidates,
            fingerprint,
            setup: Setup::Either,
            sctp_port: SCTP_PORT,
            longest,
            mid: "0".into(),
            others: Vec::new(),
            place: 0,
        }
    }

    /// What the peer says of itself.
    pub(crate) fn parse(text: &str) -> Result<Self, RtcError> {
        let session = Session::parse(text.as_bytes())
            .map_err(|error| wrong(format!("is not SDP: {error}")))?;
        let is_channel = |media: &Media| {
            // A line that goes with another one may have port 0 (RFC 9143 section 7.2.2).
            let is_bundled = media.attributes.iter().any(|one| one.attribute == "bundle-only");
            (media.port != 0 || is_bundled) && PROTOCOLS.contains(&media.proto.as_str())
        };
        let place = session.medias.iter().position(is_channel);
        let place = place.ok_or_else(|| {
            wrong("has no line for data channels (m=application … UDP/DTLS/SCTP)")
        })?;
        let media = &session.medias[place];
        let named = |name: &str| {
            let value = value(&session, media, name);
            value.map(str::trim).ok_or_else(|| wrong(format!("has no a={name}")))
        };
        let credentials =
            IceCreds { ufrag: named("ice-ufrag")?.into(), pass: named("ice-pwd")?.into() };
        let setup = match named("setup")? {
            "active" => Setup::Active,
            "passive" => Setup::Passive,
            "actpass" => Setup::Either,
            other => return Err(wrong(format!("has the unknown a=setup:{other}"))),
        };
        let number = |name: &str, default: u64, most: u64| -> Result<u64, RtcError> {
            let Some(text) = value(&session, media, name) else { return Ok(default) };
            let number = text.trim().parse().ok().filter(|number| *number <= most);
            number.ok_or_else(|| wrong(format!("has a={name}:{text}, which is no such number")))
        };
        let sctp_port = number("sctp-port", SCTP_PORT.into(), u16::MAX.into())? as u16;
        if sctp_port == 0 {
            return Err(wrong("closes the association (a=sctp-port:0)"));
        }
        // None means that any length is taken.
        let longest = match number("max-message-size", DEFAULT_LONGEST, u64::MAX)? {
            0 => u64::MAX,
            longest => longest,
        };
        let all = || media.attributes.iter().chain(&session.attributes);
        let of = |name: &'static str| {
            all()
                .filter(move |attribute| attribute.attribute == name)
                .filter_map(|attribute| attribute.value.as_deref())
        };
        let fingerprint = of("fingerprint").find_map(|value| {
            let (hash, fingerprint) = value.split_once(' ')?;
            hash.eq_ignore_ascii_case("sha-256").then(|| fingerprint.trim().to_uppercase())
        });
        let fingerprint = fingerprint.ok_or_else(|| wrong("has no fingerprint by SHA-256"))?;
        let candidates =
            of("candidate").take(MOST_CANDIDATES).map(|value| format!("candidate:{value}"));
        let mut others = session.medias.clone();
        others.remove(place);
        Ok(Self {
            credentials,
            candidates: candidates.collect(),
            fingerprint,
            setup,
            sctp_port,
            longest,
            mid: value(&session, media, "mid").unwrap_or("0").trim().into(),
            others,
            place,
        })
    }

    /// An answer's description, which stands where the offer has its line.
    pub(crate) fn answering(self, offer: &Self, setup: Setup) -> Self {
        let (mid, others) = (offer.mid.clone(), offer.others.clone());
        Self { setup, mid, others, place: offer.place, ..self }
    }

    /// The candidates that can be used: names that only the peer's own network resolves are left
    /// out, and what is not UDP.
    pub(crate) fn usable(&self) -> impl Iterator<Item = Candidate> {
        let parsed =
            self.candidates.iter().filter_map(|text| Candidate::from_sdp_string(text).ok());
        parsed.filter(|candidate| candidate.proto() == is::Protocol::Udp)
    }

    /// Its text, in a session of this number.
    pub(crate) fn write(&self, session: u64) -> String {
        let with = |name: &str, value: &str| Attribute::with_value(name, value);
        let setup = match self.setup {
            Setup::Active => "active",
            Setup::Passive => "passive",
            Setup::Either => "actpass",
        };
        let mut line = Media::new(
            MediaType::Application,
            9,
            TransportProto::UdpDtlsSctp,
            "webrtc-datachannel",
        );
        line.connections.push(Connection::from_ip_addr(Ipv4Addr::UNSPECIFIED));
        line.attributes = vec![
            with("mid", &self.mid),
            with("ice-ufrag", &self.credentials.ufrag),
            with("ice-pwd", &self.credentials.pass),
            with("fingerprint", &format!("sha-256 {}", self.fingerprint)),
            with("setup", setup),
            with("sctp-port", &self.sctp_port.to_string()),
            with("max-message-size", &self.longest.to_string()),
        ];
        let values = self.candidates.iter().map(|one| one.trim_start_matches("candidate:"));
        line.attributes.extend(values.map(|value| with("candidate", value)));
        line.attributes.push(Attribute::new("end-of-candidates"));
        // Lines for what is not spoken here stand in an answer with port 0 (RFC 3264 section 6).
        let refused = |other: &Media| {
            let mid = other.attributes.iter().filter(|attribute| attribute.attribute == "mid");
            let attributes = mid.cloned().collect();
            let connections = vec![Connection::from_ip_addr(Ipv4Addr::UNSPECIFIED)];
            Media { port: 0, attributes, connections, ..bare(other) }
        };
        let mut text = Session::new(Origin::with_ip_addr(session, 2, Ipv4Addr::LOCALHOST), "-");
        text.times.push(Time::new(0, 0));
        text.attributes.push(with("group", &format!("BUNDLE {}", self.mid)));
        text.medias = self.others.iter().map(refused).collect();
        text.medias.insert(self.place.min(text.medias.len()), line);
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = text.write(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A line without what was said of it.
fn bare(line: &Media) -> Media {
    Media {
        media_title: None,
        num_ports: None,
        bandwidths: Vec::new(),
        key: None,
        attributes: Vec::new(),
        ..line.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An offer as Chromium makes it, shortened.
    const OFFER: &str = "v=0\r\no=- 4962303333179871722 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\
        a=group:BUNDLE 0 data\r\na=extmap-allow-mixed\r\na=msid-semantic: WMS\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 111 63\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\n\
        m=application 40712 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n\
        a=candidate:1 1 udp 2113937151 7b1f7b8c-0e54.local 40712 typ host generation 0\r\n\
        a=candidate:2 1 udp 2113937150 192.0.2.7 40713 typ host generation 0\r\n\
        a=candidate:3 1 tcp 1518280447 192.0.2.7 9 typ host tcptype active\r\n\
        a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\na=ice-options:trickle\r\n\
        a=fingerprint:sha-256 0F:74:31:25:CB:A2:13:EC:28:6F:6D:2C:61:FF:5D:C2:BC:B9:DB:3D:98:14:\
        8D:1A:BB:EA:33:0C:A4:60:A8:8E\r\na=setup:actpass\r\na=mid:data\r\na=sctp-port:5000\r\n\
        a=max-message-size:262144\r\n";

    fn own() -> Description {
        let credentials = IceCreds { ufrag: "abcd".into(), pass: "e".repeat(24) };
        let candidate = "candidate:1 1 udp 2113937151 192.0.2.1 7 typ host".to_owned();
        Description::new(credentials, vec![candidate], "AB:CD".into(), 1000)
    }

    #[test]
    fn an_offer_of_a_browser_is_read_and_answered_line_by_line() {
        let offer = Description::parse(OFFER).unwrap();
        assert_eq!(offer.credentials.ufrag, "EsAw");
        assert_eq!((offer.setup, offer.sctp_port, offer.longest), (Setup::Either, 5000, 262_144));
        assert!(offer.fingerprint.starts_with("0F:74") && offer.fingerprint.ends_with(":8E"));
        let usable: Vec<String> = offer.usable().map(|one| one.addr().to_string()).collect();
        assert_eq!(usable, ["192.0.2.7:40713"], "neither a name nor TCP");
        let answer = own().answering(&offer, Setup::Active).write(7);
        assert!(answer.contains("a=group:BUNDLE data\r\n"), "{answer}");
        let lines: Vec<&str> = answer.lines().filter(|line| line.starts_with("m=")).collect();
        assert_eq!(
            lines,
            [
                "m=audio 0 UDP/TLS/RTP/SAVPF 111 63",
                "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
            ]
        );
        let back = Description::parse(&answer).unwrap();
        assert_eq!((back.setup, back.longest, &*back.mid), (Setup::Active, 1000, "data"));
        assert_eq!(back.usable().count(), 1);
    }

    #[test]
    fn a_description_that_lacks_something_is_refused_by_its_name() {
        let without = |name: &str| {
            let kept = OFFER.split_inclusive("\r\n").filter(|line| !line.starts_with(name));
            Description::parse(&kept.collect::<String>()).unwrap_err().to_string()
        };
        for (name, said) in [
            ("a=ice-ufrag", "ice-ufrag"),
            ("a=ice-pwd", "ice-pwd"),
            ("a=setup", "setup"),
            ("a=fingerprint", "fingerprint"),
            ("m=application", "line for data channels"),
        ] {
            let error = without(name);
            assert!(error.contains(said), "{name}: {error}");
        }
        let odd = [("a=sctp-port:5000", "a=sctp-port:0"), ("a=setup:actpass", "a=setup:x")];
        for (from, to) in odd {
            let error = Description::parse(&OFFER.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(to), "{error}");
        }
        assert!(Description::parse("hello").is_err());
    }
}
