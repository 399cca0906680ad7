//! File names as text.
//!
//! A name is any bytes on many systems, and text on others and in manifests and URLs. A byte that
//! belongs to no UTF-8 becomes one of 128 characters at the end of the last private plane,
//! `U+10FF00` plus the byte. A name that holds such a character as text has its bytes escaped in
//! the same way, so that each name is one text and each text one name.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The character of byte zero. Only bytes from 0x80 on are escaped.
const BASE: u32 = 0x0010_FF00;
/// The first byte of every escape in UTF-8.
const MARK: u8 = 0xF4;

/// The text of a name in bytes.
pub(crate) fn from_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match escaped(character) {
                None => text.push(character),
                Some(_) => text.extend(character.encode_utf8(&mut [0; 4]).bytes().map(escape)),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(escape));
    }
    text
}

/// The bytes of a name in text.
pub(crate) fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.as_bytes().contains(&MARK) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match escaped(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Returns true if the text is what [`from_bytes`] makes of a name. Any other text could hide a
/// name that is there, or a slash.
pub(crate) fn is_canonical(text: &str) -> bool {
    !text.as_bytes().contains(&MARK) || from_bytes(&to_bytes(text)) == text
}

/// The text of a name of this system; `None` if it has none.
pub(crate) fn from_os(name: &OsStr) -> Option<String> {
    #[cfg(unix)]
    {
        Some(from_bytes(std::os::unix::ffi::OsStrExt::as_bytes(name)))
    }
    #[cfg(not(unix))]
    {
        name.to_str().map(|text| from_bytes(text.as_bytes()))
    }
}

/// The name of this system that the text stands for. A system whose names are text keeps escapes as
/// they are.
pub(crate) fn to_os(text: &str) -> Cow<'_, OsStr> {
    match to_bytes(text) {
        Cow::Borrowed(_) => Cow::Borrowed(OsStr::new(text)),
        #[cfg(unix)]
        Cow::Owned(bytes) => Cow::Owned(std::os::unix::ffi::OsStringExt::from_vec(bytes)),
        #[cfg(not(unix))]
        Cow::Owned(bytes) => {
            Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned()).into())
        }
    }
}

/// The path of this system that the text stands for.
pub(crate) fn to_path(text: &str) -> Cow<'_, Path> {
    match to_os(text) {
        Cow::Borrowed(path) => Cow::Borrowed(Path::new(path)),
        Cow::Owned(path) => Cow::Owned(OsString::into(path)),
    }
}

/// The byte that a character of a text stands for, if it is an escape.
pub(crate) fn escaped(character: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(character).checked_sub(BASE)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

fn escape(byte: u8) -> char {
    char::from_u32(BASE + u32::from(byte)).expect("the last plane ends at U+10FFFF")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_stays_and_other_bytes_are_escaped() {
        for text in ["", "plain", "größe 大きさ", "a\nb", "\u{10FF7F}"] {
            assert_eq!(from_bytes(text.as_bytes()), text);
        }
        assert_eq!(from_bytes(b"a\xffb"), "a\u{10FFFF}b");
        assert_eq!(to_bytes("a\u{10FFFF}b"), &b"a\xffb"[..]);
        let literal = "\u{10FFFF}";
        assert_eq!(&to_bytes(&from_bytes(literal.as_bytes()))[..], literal.as_bytes());
    }

    #[test]
    fn a_text_with_escapes_that_nobody_needs_is_no_name() {
        // The bytes of "ä", and those of "€" with its end in text.
        for text in ["\u{10FFC3}\u{10FFA4}", "x\u{10FFE2}\u{10FF82}\u{10FFAC}"] {
            assert!(!is_canonical(text), "{text:?}");
        }
        assert!(is_canonical("\u{10FFFF}") && is_canonical("x"));
        assert_eq!(escaped('\u{10FF2F}'), None, "a slash cannot be hidden");
    }

    proptest! {
        #[test]
        fn each_name_is_one_text(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = from_bytes(&bytes);
            prop_assert_eq!(&to_bytes(&text)[..], &bytes[..]);
            prop_assert!(is_canonical(&text));
        }

        #[test]
        fn each_canonical_text_is_one_name(text in "[a\\x{10FF00}-\\x{10FFFF}]{0,12}") {
            let name = to_bytes(&text).into_owned();
            prop_assert_eq!(is_canonical(&text), from_bytes(&name) == text);
        }
    }
}
