//! Requests to a running command's socket, a line of JSON each.

use request::{Change, parse, rate};

#[path = "../../crates/cli/src/request.rs"]
#[allow(dead_code, reason = "the command uses all of it")]
mod request;

/// A request is a change that can be written again, a question, or refused in words.
pub(crate) fn run(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let again = match parse(line) {
        Ok(Some(Change::Limit(None))) => r#"{"limit": null}"#.to_owned(),
        Ok(Some(Change::Limit(Some(limit)))) => {
            assert!(rate(&limit.to_string()).is_ok(), "{limit} is a limit");
            format!(r#"{{"limit": "{}bit"}}"#, limit.as_bps())
        }
        Ok(Some(Change::Pause(pause))) => format!(r#"{{"pause": {pause}}}"#),
        Ok(Some(other)) => panic!("no request is {other:?}"),
        Ok(None) => "{}".to_owned(),
        Err(text) => return assert!(!text.is_empty()),
    };
    assert_eq!(parse(&again), parse(line), "{again}");
}
