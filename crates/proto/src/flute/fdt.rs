use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::str::FromStr;

use data_encoding::BASE64;
use quick_xml::XmlVersion;
use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::error::{FdtError, FecOtiError};
use super::oti::{FecOti, FecScheme};

/// An instance of the file delivery table (RFC 6726, section 3.4.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdtInstance {
    /// When it expires, in seconds since 1900, as NTP counts them.
    pub expires: u32,
    /// Whether no further files come in this session.
    pub is_complete: bool,
    /// The files.
    pub files: Vec<FdtFile>,
    /// The files that cannot be received.
    pub refused: Vec<FdtRefusal>,
}

/// A file of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdtFile {
    /// Its transport object identifier, which is not 0.
    pub toi: u128,
    /// Its URI, as it was written: a name of somebody else's choice.
    pub location: String,
    /// Its length in bytes; unknown until a packet of it comes if the sender does not say.
    pub length: Option<u64>,
    /// The MD5 hash of its bytes.
    pub md5: Option<[u8; 16]>,
    /// How it is cut, if its packets do not say so.
    pub oti: Option<FecOti>,
}

/// A file that cannot be received, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FdtRefusal {
    /// Its transport object identifier; 0 if it has none.
    pub toi: u128,
    /// Its URI.
    pub location: String,
    /// The reason, for people.
    pub reason: String,
}

/// Files that one instance lists at most.
const MAX_FILES: usize = 65_536;
/// The namespace of RFC 6726, section 3.4.2.
const NAMESPACE: &str = "urn:ietf:params:xml:ns:fdt";

const SCHEME: &str = "FEC-OTI-FEC-Encoding-ID";
const MAX_SOURCE: &str = "FEC-OTI-Maximum-Source-Block-Length";
const SYMBOL_SIZE: &str = "FEC-OTI-Encoding-Symbol-Length";
const MAX_SYMBOLS: &str = "FEC-OTI-Max-Number-of-Encoding-Symbols";
const SPECIFIC: &str = "FEC-OTI-Scheme-Specific-Info";

impl FdtInstance {
    /// Reads an instance. Elements and attributes that are not understood are skipped, whatever
    /// their namespace; those of the instance hold for files that lack them.
    ///
    /// # Errors
    /// [`FdtError`], if it is none. A file that is wrong makes nothing of the others.
    pub fn parse(xml: &[u8]) -> Result<Self, FdtError> {
        let wrong = |error: &dyn Display| FdtError::Xml(error.to_string());
        let text = std::str::from_utf8(xml).map_err(|error| wrong(&error))?;
        let mut reader = Reader::from_str(text);
        let mut shared = None;
        let mut instance = Self::default();
        loop {
            let element = match reader.read_event().map_err(|error| wrong(&error))? {
                Event::Start(element) | Event::Empty(element) => element,
                Event::Eof => break,
                _ => continue,
            };
            let name = element.local_name();
            let name: &str = name.as_ref();
            match (name, &shared) {
                ("FDT-Instance", None) => {
                    let own = Attributes::read(&element)?;
                    instance.expires = own.number("Expires").ok().flatten().unwrap_or(0);
                    let complete = own.get("Complete").map(str::trim);
                    instance.is_complete = matches!(complete, Some("true" | "1"));
                    shared = Some(own);
                }
                ("File", Some(shared)) => {
                    if instance.files.len() + instance.refused.len() >= MAX_FILES {
                        return Err(FdtError::TooMany(MAX_FILES));
                    }
                    let own = Attributes::read(&element)?;
                    let location = own.get("Content-Location").unwrap_or_default().to_owned();
                    let toi = own.number("TOI").ok().flatten().unwrap_or(0);
                    match file(toi, location.clone(), &own, shared) {
                        Ok(file) => instance.files.push(file),
                        Err(reason) => {
                            instance.refused.push(FdtRefusal { toi, location, reason });
                        }
                    }
                }
                _ => {}
            }
        }
        if shared.is_none() { Err(FdtError::Root) } else { Ok(instance) }
    }

    /// The instance as XML. Refusals are not written.
    pub fn to_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let complete = if self.is_complete { " Complete=\"true\"" } else { "" };
        let expires = self.expires;
        let _ =
            writeln!(out, "<FDT-Instance xmlns=\"{NAMESPACE}\" Expires=\"{expires}\"{complete}>");
        for FdtFile { toi, location, length, md5, oti } in &self.files {
            let _ = write!(out, "<File TOI=\"{toi}\" Content-Location=\"{}\"", escape(&**location));
            if let Some(length) = length {
                let _ = write!(out, " Content-Length=\"{length}\" Transfer-Length=\"{length}\"");
            }
            if let Some(md5) = md5 {
                let _ = write!(out, " Content-MD5=\"{}\"", BASE64.encode(md5));
            }
            if let Some(oti) = oti {
                write_oti(oti, &mut out);
            }
            out.push_str("/>\n");
        }
        out.push_str("</FDT-Instance>\n");
        out
    }
}

fn write_oti(oti: &FecOti, out: &mut String) {
    let (id, size) = (oti.scheme().id(), oti.symbol_size());
    let _ = write!(out, " {SCHEME}=\"{id}\" {SYMBOL_SIZE}=\"{size}\"");
    let _ = match oti.scheme() {
        FecScheme::NoCode => write!(out, " {MAX_SOURCE}=\"{}\"", oti.max_source),
        FecScheme::ReedSolomon => {
            let (k, n) = (oti.max_source, oti.max_symbols);
            write!(out, " {MAX_SOURCE}=\"{k}\" {MAX_SYMBOLS}=\"{n}\"")
        }
        FecScheme::Raptor | FecScheme::RaptorQ => {
            write!(out, " {SPECIFIC}=\"{}\"", BASE64.encode(&oti.to_specific()))
        }
    };
}

/// The attributes of an element, by their names without a namespace.
struct Attributes(BTreeMap<String, String>);

impl Attributes {
    fn read(element: &BytesStart<'_>) -> Result<Self, FdtError> {
        let wrong = |error: &dyn Display| FdtError::Xml(error.to_string());
        let mut all = BTreeMap::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| wrong(&error))?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| wrong(&error))?;
            let name = attribute.key.local_name();
            let name: &str = name.as_ref();
            all.insert(name.to_owned(), value.into_owned());
        }
        Ok(Self(all))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn number<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, FecOtiError> {
        let read = |text: &str| {
            let wrong = || FecOtiError::Attribute(name, text.chars().take(40).collect());
            text.trim().parse().map_err(|_| wrong())
        };
        self.get(name).map(read).transpose()
    }
}

/// A file from its attributes and those of the instance, or the reason why not.
fn file(
    toi: u128,
    location: String,
    own: &Attributes,
    shared: &Attributes,
) -> Result<FdtFile, String> {
    if toi == 0 || toi >> 112 != 0 {
        return Err("its TOI is no number from 1 to 2^112 - 1".to_owned());
    }
    if location.is_empty() {
        return Err("it has no Content-Location".to_owned());
    }
    let encoding = own.get("Content-Encoding").or(shared.get("Content-Encoding"));
    if let Some(encoding) = encoding.filter(|encoding| !matches!(*encoding, "" | "null")) {
        let encoding: String = encoding.chars().take(40).collect();
        return Err(format!("its content encoding {encoding:?} is not implemented"));
    }
    let text = |error: FecOtiError| error.to_string();
    let transfer = match own.number("Transfer-Length").map_err(text)? {
        None => own.number("FEC-OTI-Transfer-Length").map_err(text)?,
        length => length,
    };
    let content: Option<u64> = own.number("Content-Length").map_err(text)?;
    let length = transfer.or(content);
    if content.is_some() && content != length {
        return Err("its content and its transfer have different lengths".to_owned());
    }
    let md5 = match own.get("Content-MD5") {
        None => None,
        Some(hash) => {
            let bytes = BASE64.decode(hash.trim().as_bytes()).unwrap_or_default();
            Some(bytes.try_into().map_err(|_| "its Content-MD5 is no hash".to_owned())?)
        }
    };
    let oti = match length {
        // Of nothing there is nothing to be cut.
        Some(0) => Some(FecOti::no_code(0, 1, 1).map_err(text)?),
        Some(length) => oti(length, own, shared).map_err(text)?,
        None => None,
    };
    Ok(FdtFile { toi, location, length, md5, oti })
}

/// How a file is cut; none if that is not said here.
fn oti(length: u64, own: &Attributes, shared: &Attributes) -> Result<Option<FecOti>, FecOtiError> {
    fn number<T: FromStr>(
        name: &'static str,
        own: &Attributes,
        shared: &Attributes,
    ) -> Result<Option<T>, FecOtiError> {
        Ok(own.number(name)?.or(shared.number(name)?))
    }
    let needed =
        |name: &'static str| number::<u32>(name, own, shared)?.ok_or(FecOtiError::Missing(name));
    let Some(id) = number::<u64>(SCHEME, own, shared)? else { return Ok(None) };
    let scheme = u8::try_from(id).ok().and_then(FecScheme::from_id);
    let scheme = scheme.ok_or(FecOtiError::Scheme(id))?;
    let size = number(SYMBOL_SIZE, own, shared)?.ok_or(FecOtiError::Missing(SYMBOL_SIZE))?;
    let oti = match scheme {
        FecScheme::NoCode => FecOti::no_code(length, size, needed(MAX_SOURCE)?),
        FecScheme::ReedSolomon => {
            FecOti::reed_solomon(length, size, needed(MAX_SOURCE)?, needed(MAX_SYMBOLS)?)
        }
        FecScheme::Raptor | FecScheme::RaptorQ => {
            let text = own.get(SPECIFIC).or(shared.get(SPECIFIC));
            let text = text.ok_or(FecOtiError::Missing(SPECIFIC))?;
            let wrong = || FecOtiError::Attribute(SPECIFIC, text.chars().take(40).collect());
            let bytes = BASE64.decode(text.trim().as_bytes()).map_err(|_| wrong())?;
            FecOti::of_specific(scheme, length, size, &bytes)
        }
    };
    oti.map(Some)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_instance_of_another_sender_is_read() {
        let xml = r#"<?xml version="1.0"?>
            <!-- with a namespace, shared attributes, and elements that are not understood -->
            <f:FDT-Instance xmlns:f="urn:ietf:params:xml:ns:fdt" Expires="4000000000"
                Complete="true" FEC-OTI-FEC-Encoding-ID="5" FEC-OTI-Encoding-Symbol-Length="1400"
                FEC-OTI-Maximum-Source-Block-Length="200"
                FEC-OTI-Max-Number-of-Encoding-Symbols="250" Content-Encoding="null">
              <f:File TOI="1" Content-Location="file:///a%20b/&quot;c&quot;.txt"
                  Content-Length="100" Content-MD5="1B2M2Y8AsgTpgAmY7PhCfg=="><m:x>text</m:x>
              </f:File>
              <File TOI="2" Content-Location="b" Transfer-Length="7" FEC-OTI-FEC-Encoding-ID="6"
                  FEC-OTI-Scheme-Specific-Info="AQABBA=="/>
              <File TOI="3" Content-Location="c"/>
              <File TOI="4" Content-Location="d" Content-Length="0" FEC-OTI-FEC-Encoding-ID="6"/>
              <m:y/>
            </f:FDT-Instance>"#;
        let read = FdtInstance::parse(xml.as_bytes()).unwrap();
        assert_eq!((read.expires, read.is_complete), (4_000_000_000, true));
        assert_eq!(read.refused, []);
        let [a, b, c, d] = &read.files[..] else { panic!("{read:?}") };
        assert_eq!(a.location, "file:///a%20b/\"c\".txt");
        assert_eq!(a.oti, FecOti::reed_solomon(100, 1400, 200, 250).ok());
        assert_eq!(a.md5.map(|md5| md5[..2].to_vec()), Some(vec![0xd4, 0x1d]));
        assert_eq!(b.oti, FecOti::raptorq(7, 1400, 1, 4).ok());
        assert_eq!((c.length, c.oti), (None, None));
        assert_eq!(d.oti.map(|oti| oti.blocks()), Some(0));
    }

    #[test]
    fn a_file_that_is_wrong_says_why_and_leaves_the_others() {
        for (attributes, reason) in [
            (r#"Content-Location="a""#, "TOI"),
            (r#"TOI="0" Content-Location="a""#, "TOI"),
            (r#"TOI="1""#, "Content-Location"),
            (r#"TOI="1" Content-Location="a" Content-Encoding="gzip""#, "gzip"),
            (r#"TOI="1" Content-Location="a" Content-Length="ten""#, "ten"),
            (r#"TOI="1" Content-Location="a" Content-Length="1" Transfer-Length="2""#, "different"),
            (r#"TOI="1" Content-Location="a" Content-MD5="AAAA""#, "MD5"),
            (
                r#"TOI="1" Content-Location="a" Content-Length="9" FEC-OTI-FEC-Encoding-ID="6""#,
                "FEC-OTI-Encoding-Symbol-Length",
            ),
            (
                r#"TOI="1" Content-Location="a" Content-Length="9" FEC-OTI-FEC-Encoding-ID="130""#,
                "130",
            ),
            (
                r#"TOI="1" Content-Location="a" Content-Length="9" FEC-OTI-FEC-Encoding-ID="6"
                FEC-OTI-Encoding-Symbol-Length="8" FEC-OTI-Scheme-Specific-Info="AQACBA==""#,
                "2 sub-blocks",
            ),
        ] {
            let xml = format!(
                "<FDT-Instance Expires=\"1\"><File {attributes}/>\
                 <File TOI=\"9\" Content-Location=\"z\"/></FDT-Instance>"
            );
            let read = FdtInstance::parse(xml.as_bytes()).unwrap();
            assert!(read.refused[0].reason.contains(reason), "{attributes}: {:?}", read.refused);
            assert_eq!(read.files[0].toi, 9);
        }
    }

    #[test]
    fn what_is_no_instance_is_an_error() {
        for xml in ["", "<a/>", "<File TOI=\"1\"/>", "<FDT-Instance", "<FDT-Instance><File></a>"] {
            assert!(FdtInstance::parse(xml.as_bytes()).is_err(), "{xml}");
        }
        assert!(matches!(FdtInstance::parse(b"\xff"), Err(FdtError::Xml(_))));
        // Nothing that a document defines is put in.
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaa">]><FDT-Instance Expires="&a;"/>"#;
        assert!(matches!(FdtInstance::parse(bomb.as_bytes()), Err(FdtError::Xml(_))));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            expires: u32,
            is_complete: bool,
            files in prop::collection::vec(
                (1u128..1 << 112, "\\PC{1,30}", 0u64..1 << 20, any::<Option<[u8; 16]>>(), 0..4usize),
                0..5,
            ),
        ) {
            let files = files.into_iter().map(|(toi, location, length, md5, scheme)| {
                let oti = match FecScheme::ALL[scheme] {
                    _ if length == 0 => FecOti::no_code(0, 1, 1),
                    FecScheme::NoCode => FecOti::no_code(length, 100, 1000),
                    FecScheme::Raptor => FecOti::raptor(length, 1024, 1, 4),
                    FecScheme::ReedSolomon => FecOti::reed_solomon(length, 1000, 100, 120),
                    FecScheme::RaptorQ => FecOti::raptorq(length, 1000, 1, 4),
                };
                FdtFile { toi, location, length: Some(length), md5, oti: oti.ok() }
            });
            let refused = Vec::new();
            let instance = FdtInstance { expires, is_complete, files: files.collect(), refused };
            let xml = instance.to_xml();
            prop_assert_eq!(FdtInstance::parse(xml.as_bytes()), Ok(instance), "{}", xml);
        }

        #[test]
        fn any_bytes_are_an_instance_or_an_error(text in "[<>/\"=&;!A-Z a-z0-9-]{0,200}") {
            let _ = FdtInstance::parse(text.as_bytes());
            let _ = FdtInstance::parse(format!("<FDT-Instance><File {text}").as_bytes());
        }
    }
}
