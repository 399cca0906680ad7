//! URLs, public keys and lists of them, as people paste them.

use fontis::{PublicKey, Url};

/// What is read is written so that it reads the same.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Url>() {
        Ok(url) => {
            let again: Url = url.to_string().parse().expect("what we write reads");
            assert_eq!(again, url);
            url.name();
        }
        Err(error) => drop(error.to_string()),
    }
    match text.parse::<PublicKey>() {
        Ok(key) => assert_eq!(key.to_string().parse::<PublicKey>().ok(), Some(key)),
        Err(error) => drop(error.to_string()),
    }
    if let Some(list) = fontis::readers::allow_list(text) {
        let lines: Vec<_> = list.keys().map(ToString::to_string).collect();
        assert_eq!(fontis::readers::allow_list(&lines.join("\n")), Some(list));
    }
}
