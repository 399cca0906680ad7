//! qlog files (draft-ietf-quic-qlog-main-schema): of QUIC implementations, and what `--qlog` writes
//! of DFCP.
//!
//! One JSON text, or a sequence of them (RFC 7464, or one a line); events as objects, or as arrays
//! as in the first drafts. A file of any size is read event by event. A qlog is written at one end:
//! what became of a packet follows from acknowledgements and losses that it reports.

mod dfcp;
mod frames;
mod gaps;
mod reading;

use std::io::{BufRead, Read};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use thiserror::Error;

use self::reading::Reading;
use crate::kept::Detail;
use crate::trace::Trace;

/// What is wrong with a qlog.
#[derive(Debug, Error)]
pub enum QlogError {
    /// It is no JSON from some place on.
    #[error("event {event}: {error}")]
    Json {
        /// The event, from 1.
        event: u64,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// There is no event in it.
    #[error("there is no event in it that a qlog would have")]
    Empty,
}

/// Reads a qlog.
pub fn read(mut input: impl BufRead, title: &str, detail: Detail) -> Result<Trace, QlogError> {
    let mut reading = Reading::new(title, detail);
    let is_sequence = input.fill_buf().is_ok_and(|bytes| bytes.first() == Some(&RECORD));
    let result =
        if is_sequence { sequence(input, &mut reading) } else { texts(input, &mut reading) };
    if let Err(error) = result {
        // What can be read is shown.
        if reading.events == 0 {
            return Err(QlogError::Json { event: 1, error });
        }
        reading.builder.note(if error.is_eof() {
            "The file is cut off; it was read up to there.".to_owned()
        } else {
            format!("It was read up to event {}: {error}.", reading.events)
        });
    }
    if reading.events == 0 {
        return Err(QlogError::Empty);
    }
    Ok(reading.finish())
}

const RECORD: u8 = 0x1e;
/// No event is longer.
const MOST_IN_A_RECORD: u64 = 16 << 20;

fn sequence(mut input: impl BufRead, reading: &mut Reading) -> Result<(), serde_json::Error> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = Read::take(&mut input, MOST_IN_A_RECORD).read_until(RECORD, &mut bytes);
        if read.map_err(serde::de::Error::custom)? == 0 {
            return Ok(());
        }
        let text = bytes.strip_suffix(&[RECORD]).unwrap_or(&bytes).trim_ascii();
        if !text.is_empty() {
            let mut deserializer = serde_json::Deserializer::from_slice(text);
            Top(reading).deserialize(&mut deserializer)?;
        }
    }
}

fn texts(input: impl BufRead, reading: &mut Reading) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_reader(input);
    loop {
        // At the end of all texts.
        match deserializer.end() {
            Ok(()) => return Ok(()),
            Err(error) if error.is_eof() => return Ok(()),
            Err(_) => {}
        }
        Top(reading).deserialize(&mut deserializer)?;
    }
}

/// A JSON text of a qlog: a file, its head, or an event.
struct Top<'a>(&'a mut Reading);
/// Its traces.
struct Traces<'a>(&'a mut Reading);
/// Their events.
struct Events<'a>(&'a mut Reading);

macro_rules! seeds {
    ($($seed:ident $method:ident),*) => {$(
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$method(self)
            }
        }
    )*};
}
seeds!(Top deserialize_map, Traces deserialize_seq, Events deserialize_seq);

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut rest = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "traces" => map.next_value_seed(Traces(self.0))?,
                "events" => {
                    self.0.head(&rest);
                    map.next_value_seed(Events(self.0))?;
                }
                _ => {
                    rest.insert(key, map.next_value()?);
                }
            }
        }
        if let Some(Value::Object(head)) = rest.get("trace") {
            self.0.head(head);
        } else if rest.contains_key("time") || rest.contains_key("name") {
            self.0.event(&Value::Object(rest));
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Traces<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a list of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Top(self.0))?.is_some() {
            self.0.next_trace();
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<Value>()? {
            self.0.event(&event);
        }
        Ok(())
    }
}
