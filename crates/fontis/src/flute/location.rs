//! The names of files as URIs, in both directions.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::dest;
use crate::manifest::check::check_component;
use crate::name;
use crate::partial;

/// What stands for itself (RFC 3986, section 2.3), and the slash between names.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
/// The longest location, and the deepest.
const MAX_LENGTH: usize = 4096;
const MAX_DEPTH: usize = 32;

/// The URI of a file with this path of our own form: names joined by slashes.
pub(super) fn of_path(path: &str) -> String {
    let bytes = name::to_bytes(path);
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => utf8_percent_encode(text, PLAIN).to_string(),
        Err(_) => percent_encoding::percent_encode(&bytes, PLAIN).to_string(),
    };
    format!("file:///{text}")
}

/// The names of folders, and of the file at last, that a URI of somebody else's choice means below
/// a folder of ours; or the reason why it means none. Scheme, host, query and fragment mean
/// nothing.
pub(super) fn to_names(location: &str) -> Result<Vec<String>, String> {
    if location.len() > MAX_LENGTH {
        return Err("its location is too long".to_owned());
    }
    let end = location.find(['?', '#']).unwrap_or(location.len());
    let mut path = &location[..end];
    if let Some((scheme, rest)) = path.split_once(':')
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one))
    {
        path = rest;
    }
    if let Some(rest) = path.strip_prefix("//") {
        path = rest.split_once('/').map_or("", |(_, path)| path);
    }
    let path = path.trim_start_matches('/');
    let names: Vec<_> = path.split('/').map(to_name).collect::<Result<_, _>>()?;
    if names.len() > MAX_DEPTH { Err("its location is too deep".to_owned()) } else { Ok(names) }
}

fn to_name(part: &str) -> Result<String, String> {
    let bytes: Vec<u8> = percent_decode_str(part).collect();
    let text = name::from_bytes(&bytes);
    check_component(&text).map_err(|error| error(text.clone()).to_string())?;
    if partial::is_partial(&text) {
        return Err("its name is one of unfinished transfers".to_owned());
    }
    if cfg!(windows) && dest::is_odd_on_windows(&text) {
        return Err("its name is no file name here".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn locations_of_all_kinds_are_names_below_a_folder() {
        for (location, names) in [
            ("file:///hello", &["hello"][..]),
            ("file://host/a/b", &["a", "b"]),
            ("http://example.org/a%20b/c.txt?q=1#f", &["a b", "c.txt"]),
            ("a/b", &["a", "b"]),
            ("/etc/passwd", &["etc", "passwd"]),
            ("urn:x", &["x"]),
            ("%C3%A4", &["ä"]),
            (".hidden", &[".hidden"]),
        ] {
            assert_eq!(to_names(location).unwrap(), names, "{location}");
        }
    }

    #[test]
    fn locations_that_lead_elsewhere_are_refused() {
        let long = "a".repeat(256);
        let deep = "a/".repeat(40) + "b";
        for location in [
            "",
            "/",
            "file://host",
            "..",
            "a/../b",
            "a/%2e%2e/b",
            "%2e%2E",
            "a//b",
            "a/",
            "a%2Fb",
            "./a",
            "a%00b",
            ".x.fontis-partial",
            &long,
            &deep,
        ] {
            assert!(to_names(location).is_err(), "{location}");
        }
    }

    proptest! {
        #[test]
        fn a_path_is_the_names_of_its_location(
            names in prop::collection::vec("\\PC{1,12}", 1..5)
        ) {
            let names: Vec<String> =
                names.iter().map(|name| name.replace(['/', '\0'], "x") + "_").collect();
            let path = names.join("/");
            prop_assume!(name::is_canonical(&path));
            let location = of_path(&path);
            prop_assert!(location.is_ascii());
            prop_assert_eq!(to_names(&location), Ok(names));
        }

        #[test]
        fn any_location_is_plain_names_or_refused(location in "[a%2eE/.:?#\\PC]{0,40}") {
            for name in to_names(&location).unwrap_or_default() {
                prop_assert!(!name.contains(['/', '\0']) && name != ".." && name != ".");
            }
        }
    }
}
