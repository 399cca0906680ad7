//! The address of an object, and the key of its server:
//! `fontis://HOST:PORT/PATH?key=KEY[&secret=SECRET]`.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::Path;
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use zeroize::Zeroizing;

use crate::identity::{Identity, IdentityError, PublicKey};
use crate::name;
use crate::printable::Printable;

const SCHEME: &str = "fontis://";
const EXAMPLE: &str = "expected something like fontis://192.0.2.1:4433/file?key=KEY";
/// RFC 3986, section 3.3: the characters of a path; all others are percent-encoded.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The reason why a text is no Fontis URL.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("'{}' does not begin with fontis://; {EXAMPLE}", Printable(.0))]
    Scheme(String),
    /// There is nothing before the port.
    #[error("the URL has no host; {EXAMPLE}")]
    NoHost,
    /// The host is neither a name nor an address.
    #[error("'{}' is no host name or address; IPv6 goes in brackets; {EXAMPLE}", Printable(.0))]
    Host(String),
    /// No port after the host.
    #[error("the URL has no port; {EXAMPLE}")]
    NoPort,
    /// The port is not between 1 and 65535.
    #[error("'{}' is no port from 1 to 65535; {EXAMPLE}", Printable(.0))]
    Port(String),
    /// The path has a zero byte.
    #[error("'{}' is no path: it has a zero byte; {EXAMPLE}", Printable(.0))]
    Path(String),
    /// No `key` parameter, without which the server could be anyone.
    #[error("the URL has no key; copy all of it, with ?key=…; {EXAMPLE}")]
    NoKey,
    /// The `key` parameter is no public key.
    #[error("the URL's key is wrong: {0}")]
    Key(#[source] IdentityError),
    /// The `secret` parameter is wrong. It is not repeated here, since messages end up in logs.
    #[error(
        "the URL's secret is not {MIN_SECRET} to {MAX_SECRET} bytes of base64url: copy all of it"
    )]
    Secret,
    /// An unknown parameter, which could change the meaning.
    #[error("the URL has the unknown parameter '{}': remove it, or update Fontis", Printable(.0))]
    Unknown(String),
    /// A parameter is there twice.
    #[error("the URL has the parameter '{}' twice: remove one", Printable(.0))]
    Twice(String),
    /// A `#` that is not encoded.
    #[error("the URL has a '#', which must be written as %23 in a path; {EXAMPLE}")]
    Fragment,
}

/// Bytes of a [`Secret`] at least.
pub const MIN_SECRET: usize = 16;
/// Bytes of a [`Secret`] at most.
pub const MAX_SECRET: usize = 32;

/// The purpose of the secret of a folder's URLs (BLAKE3, derive_key mode).
const FOLDER_CONTEXT: &str = "fontis 2026-11-25 secret of the URLs of a folder";

/// A secret that permits fetching an object or storing one: 16 to 32 bytes, wiped from memory when
/// dropped, and never in debug output.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A secret of these bytes; none if there are too few or too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let fits = (MIN_SECRET..=MAX_SECRET).contains(&bytes.len());
        fits.then(|| Self(Zeroizing::new(bytes.to_vec())))
    }

    /// A new one of 16 bytes from the system's randomness.
    ///
    /// # Panics
    /// If the system has no randomness.
    pub fn generate() -> Self {
        let mut bytes = Zeroizing::new(vec![0; MIN_SECRET]);
        getrandom::fill(&mut bytes).expect("the system yields randomness");
        Self(bytes)
    }

    /// The secret of the URLs under which the holder of `identity` serves `folder`. It is the same
    /// in each run, so that a client can continue after the server was restarted, and tells nothing
    /// about the secrets of other folders.
    pub fn of_folder(identity: &Identity, folder: &Path) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(FOLDER_CONTEXT);
        hasher.update(identity.secret()).update(folder.as_os_str().as_encoded_bytes());
        let mut bytes = Zeroizing::new(vec![0; MIN_SECRET]);
        hasher.finalize_xof().fill(&mut bytes);
        Self(bytes)
    }

    /// Returns true if these are its bytes. It takes the same time wherever they differ, so that a
    /// secret cannot be found byte by byte.
    pub fn is(&self, bytes: &[u8]) -> bool {
        // blake3 compares hashes in constant time.
        blake3::hash(&self.0) == blake3::hash(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| UrlError::Secret)?;
        Self::new(&Zeroizing::new(bytes)).ok_or(UrlError::Secret)
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A Fontis URL. [`Display`](fmt::Display) writes all of it, the secret included; debug output
/// leaves that out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// A name or an address; IPv6 without brackets, perhaps with a zone (`fe80::1%eth0`).
    pub host: String,
    /// UDP port, not 0.
    pub port: u16,
    /// Path at the server without the slash before it, decoded, with bytes that are no UTF-8
    /// escaped as in manifests; none means all that is served.
    pub path: Option<String>,
    /// Public key of the server.
    pub key: PublicKey,
    /// The secret that the server requires, if any.
    pub secret: Option<Secret>,
}

impl Url {
    /// The last component of the path, under which a receiver keeps the object.
    pub fn name(&self) -> Option<&str> {
        let path = self.path.as_deref()?.trim_end_matches('/');
        path.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            // RFC 6874: the % before a zone is percent-encoded.
            true => write!(f, "{SCHEME}[{}]:{}/", self.host.replace('%', "%25"), self.port)?,
            false => write!(f, "{SCHEME}{}:{}/", self.host, self.port)?,
        }
        let path = self.path.as_deref().unwrap_or_default();
        write!(f, "{}?key={}", percent_encode(&name::to_bytes(path), PATH), self.key)?;
        match &self.secret {
            Some(secret) => write!(f, "&secret={}", BASE64URL_NOPAD.encode(secret.as_bytes())),
            None => Ok(()),
        }
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let scheme = text.get(..SCHEME.len()).filter(|start| start.eq_ignore_ascii_case(SCHEME));
        let Some(scheme) = scheme else {
            // A cut-off start is enough to recognise, and shows no secret.
            let start = text.split(['?', '/']).next().unwrap_or_default();
            return Err(UrlError::Scheme(start.chars().take(80).collect()));
        };
        let rest = &text[scheme.len()..];
        if rest.contains('#') {
            return Err(UrlError::Fragment);
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let (host, port) = parse_authority(authority)?;
        let path = parse_path(path)?;
        let (key, secret) = parse_query(query)?;
        Ok(Self { host, port, path, key, secret })
    }
}

fn parse_authority(authority: &str) -> Result<(String, u16), UrlError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let wrong = || UrlError::Host(authority.to_owned());
            let (inside, after) = rest.split_once(']').ok_or_else(wrong)?;
            let (address, zone) = match inside.split_once('%') {
                Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
                None => (inside, None),
            };
            let address: Ipv6Addr = address.parse().map_err(|_| wrong())?;
            let host = match zone {
                None => address.to_string(),
                Some(zone) if is_name(zone) => format!("{address}%{zone}"),
                Some(_) => return Err(wrong()),
            };
            (
                host,
                if after.is_empty() {
                    None
                } else {
                    Some(after.strip_prefix(':').ok_or_else(wrong)?)
                },
            )
        }
        None => {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            if host.is_empty() {
                return Err(UrlError::NoHost);
            }
            // Two colons: an IPv6 address without its brackets.
            if !is_name(host) || port.is_some_and(|port| port.contains(':')) {
                return Err(UrlError::Host(authority.to_owned()));
            }
            (host.to_owned(), port)
        }
    };
    let port = port.filter(|port| !port.is_empty()).ok_or(UrlError::NoPort)?;
    // `parse` alone would also take a sign.
    match port.parse() {
        Ok(number @ 1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok((host, number)),
        _ => Err(UrlError::Port(port.to_owned())),
    }
}

/// Returns true if this may be the name of a host or a zone; the resolver checks the rest.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

fn parse_path(path: &str) -> Result<Option<String>, UrlError> {
    let wrong = || UrlError::Path(path.to_owned());
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    if decoded.contains(&0) {
        return Err(wrong());
    }
    Ok((!decoded.is_empty()).then(|| name::from_bytes(&decoded)))
}

fn parse_query(query: &str) -> Result<(PublicKey, Option<Secret>), UrlError> {
    let (mut key, mut secret) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let twice = match name {
            "key" => key.replace(value.parse().map_err(UrlError::Key)?).is_some(),
            "secret" => secret.replace(value.parse()?).is_some(),
            _ => return Err(UrlError::Unknown(name.to_owned())),
        };
        if twice {
            return Err(UrlError::Twice(name.to_owned()));
        }
    }
    Ok((key.ok_or(UrlError::NoKey)?, secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The public key of RFC 7748, section 6.1 (Alice), as base64url.
    const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo";

    fn parse(place: &str) -> Result<Url, UrlError> {
        format!("fontis://{place}?key={KEY}").parse()
    }

    #[test]
    fn a_url_tells_host_port_path_and_key() {
        let url = parse("example.org:4433/a%20folder/gr%C3%BC%C3%9Fe.txt").unwrap();
        assert_eq!((&*url.host, url.port), ("example.org", 4433));
        assert_eq!(url.path.as_deref(), Some("a folder/grüße.txt"));
        assert_eq!(url.name(), Some("grüße.txt"));
        assert_eq!(url.key.to_string(), KEY);
        assert_eq!(url.secret, None);
        for whole in ["example.org:4433", "example.org:4433/"] {
            assert_eq!((parse(whole).unwrap().path, parse(whole).unwrap().name()), (None, None));
        }
        assert_eq!(parse("h:1/folder/").unwrap().name(), Some("folder"));
    }

    #[test]
    fn ipv6_goes_in_brackets() {
        for (text, host) in
            [("[2001:DB8::1]:9", "2001:db8::1"), ("[fe80::1%25eth0]:9", "fe80::1%eth0")]
        {
            let url = parse(text).unwrap();
            assert_eq!(url.host, host);
            assert_eq!(url.to_string().parse::<Url>().unwrap(), url);
        }
        for text in ["2001:db8::1:9", "[2001:db8::1", "[nonsense]:9", "[::1]9", "[::1%25a b]:9"] {
            assert!(matches!(parse(text), Err(UrlError::Host(_))), "{text}");
        }
    }

    #[test]
    fn each_missing_part_is_named_with_an_example() {
        type Is = fn(&UrlError) -> bool;
        let cases: [(&str, Is); 11] = [
            ("http://h:1/", |e| matches!(e, UrlError::Scheme(_))),
            ("h:1/x", |e| matches!(e, UrlError::Scheme(_))),
            ("", |e| matches!(e, UrlError::Scheme(_))),
            ("fontis://", |e| matches!(e, UrlError::NoHost)),
            ("fontis://:1/", |e| matches!(e, UrlError::NoHost)),
            ("fontis://user@h:1/", |e| matches!(e, UrlError::Host(_))),
            ("fontis://h/x", |e| matches!(e, UrlError::NoPort)),
            ("fontis://h:/x", |e| matches!(e, UrlError::NoPort)),
            ("fontis://h:1/x", |e| matches!(e, UrlError::NoKey)),
            ("fontis://h:1/%00", |e| matches!(e, UrlError::Path(_))),
            ("fontis://h:1/a#b", |e| matches!(e, UrlError::Fragment)),
        ];
        for (text, is) in cases {
            let error = text.parse::<Url>().unwrap_err();
            assert!(is(&error), "{text}: {error:?}");
            assert!(error.to_string().contains("fontis://192.0.2.1:4433"), "{error}");
        }
        for port in ["0", "65536", "+1", "x"] {
            assert!(matches!(parse(&format!("h:{port}")), Err(UrlError::Port(_))), "{port}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        let with = |query: &str| format!("fontis://h:1/?{query}").parse::<Url>();
        assert!(matches!(with("key=short"), Err(UrlError::Key(_))));
        assert!(matches!(with(&format!("key={KEY}&x=1")), Err(UrlError::Unknown(_))));
        assert!(matches!(with(&format!("key={KEY}&key={KEY}")), Err(UrlError::Twice(_))));
        for (len, fits) in [(0, false), (15, false), (16, true), (32, true), (33, false)] {
            let secret = BASE64URL_NOPAD.encode(&vec![7; len]);
            let parsed = with(&format!("key={KEY}&secret={secret}"));
            assert_eq!(parsed.is_ok(), fits, "{len}");
        }
    }

    #[test]
    fn a_secret_is_shown_in_the_url_only() {
        let url = Url {
            host: "h".to_owned(),
            port: 1,
            path: None,
            key: Identity::generate().public(),
            secret: Some(Secret::generate()),
        };
        let secret = BASE64URL_NOPAD.encode(url.secret.as_ref().unwrap().as_bytes());
        assert!(url.to_string().ends_with(&secret));
        assert!(!format!("{url:?}").contains(&secret));
        let cut = format!("fontis://h:1/?key={KEY}&secret={}", &secret[1..]);
        assert!(!cut.parse::<Url>().unwrap_err().to_string().contains(&secret[1..]));
    }

    #[test]
    fn a_folders_secret_stays_and_belongs_to_the_folder_and_the_identity() {
        let (one, other) = (Identity::generate(), Identity::generate());
        let secret = Secret::of_folder(&one, Path::new("/maps"));
        assert_eq!(Secret::of_folder(&one, Path::new("/maps")), secret);
        assert_ne!(Secret::of_folder(&one, Path::new("/map")), secret);
        assert_ne!(Secret::of_folder(&other, Path::new("/maps")), secret);
    }

    proptest! {
        #[test]
        fn what_is_displayed_is_parsed_back(
            host in "[a-z][a-z0-9.-]{0,20}",
            port in 1u16..,
            path in prop::option::of("[^\\p{Cc}]{1,30}"),
            secret in prop::option::of(prop::collection::vec(any::<u8>(), 16..=32)),
        ) {
            let secret = secret.and_then(|bytes| Secret::new(&bytes));
            let url = Url { host, port, path, key: KEY.parse().unwrap(), secret };
            prop_assert_eq!(url.to_string().parse::<Url>().unwrap(), url);
        }

        #[test]
        fn any_text_parses_or_fails(text in "\\PC{0,60}") {
            let _ = text.parse::<Url>();
            let _ = format!("fontis://{text}").parse::<Url>();
            let _ = parse(&text);
        }
    }
}
