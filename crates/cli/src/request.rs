//! Requests to a running command: a change of its limit or of pausing, or none for its status.

use fontis_base::Rate;
use serde_json::Value;

/// The least limit, in bit/s: a packet of 1280 bytes each 1.3 s.
pub(crate) const LEAST: u64 = 8_000;

/// A change of the limit or of pausing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// Sets the limit, or removes it; ends a pause.
    Limit(Option<Rate>),
    /// Multiplies the present rate by this factor.
    Scale(f64),
    /// Pauses, or continues.
    Pause(bool),
    /// Pauses if running, continues if paused.
    TogglePause,
}

/// Reads a limit.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(rate) if rate.as_bps() < LEAST => {
            Err(format!("{rate} is too slow to say anything: write at least 8kbit"))
        }
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// The change in a request, which is an object of JSON; none if it only asks for the status.
pub(crate) fn parse(line: &str) -> Result<Option<Change>, String> {
    let request: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match (request.get("limit"), request.get("pause")) {
        (None, None) => Ok(None),
        (Some(Value::Null), None) => Ok(Some(Change::Limit(None))),
        (Some(Value::String(text)), None) => Ok(Some(Change::Limit(Some(rate(text)?)))),
        (None, Some(Value::Bool(pause))) => Ok(Some(Change::Pause(*pause))),
        _ => Err("a request has limit (a rate, or null), or pause (true or false)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_to_let_something_through() {
        assert!(rate("1bit").is_err());
        assert!(rate("fast").is_err());
        assert_eq!(rate("20mbit"), Ok(Rate::from_mbps(20)));
    }
}
