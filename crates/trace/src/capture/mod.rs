//! Captures: pcap and pcapng, of one place or of both ends.
//!
//! At one place only one of a packet's two times is seen. Which end it is follows from who is
//! answered faster; the other time is computed with half of the shortest round trip and marked so,
//! and losses are concluded from acknowledgements. With captures of both ends every packet has both
//! times: `clocks.rs` finds out by how much and how fast the two clocks differ.

mod arrivals;
mod both;
mod clocks;
mod comparison;
mod flow_key;
mod frames;
mod lowest;
mod mptcp;
mod reading;
mod views;
mod wire;

use std::io::{Read, Seek};

use fontis_base::Duration;

pub use self::arrivals::{Arrival, arrivals};
use self::both::Both;
use self::clocks::Clocks;
pub use self::frames::CaptureError;
use self::frames::{Frames, prelude};
use self::reading::Reading;
use self::views::Views;
use crate::kept::Detail;
use crate::trace::Trace;

/// Reads a capture of one place.
pub fn read(input: impl Read + Send, title: &str, detail: Detail) -> Result<Trace, CaptureError> {
    let mut frames = Frames::new(input)?;
    let prelude = prelude(&mut frames)?;
    let origin = prelude.iter().map(|(_, at, _)| *at).find(|at| *at > 0).unwrap_or(0);
    let views = Views::of(&prelude);
    let mut reading = Reading::new(title, origin, detail);
    for (number, at, seen) in prelude {
        reading.one_place(number, at, seen, &views);
    }
    while let Some((number, at, seen)) = frames.next()? {
        reading.one_place(number, at, seen, &views);
    }
    reading.note(
        "Captured at one place: times at the other end are computed from the round-trip time, and losses from acknowledgements.",
    );
    Ok(reading.finish(&[frames]))
}

/// Whether two captures are of the same packets.
pub fn are_of_the_same(first: impl Read + Send, second: impl Read + Send) -> bool {
    let of = |mut frames: Frames<'_>| prelude(&mut frames).ok();
    let Some(first) = Frames::new(first).ok().and_then(of) else { return false };
    let Some(second) = Frames::new(second).ok().and_then(of) else { return false };
    Clocks::between(&first, &second).is_some()
}

/// Reads captures of both ends, each twice; they must be of the same packets.
pub fn read_both(
    mut first: impl Read + Seek + Send,
    mut second: impl Read + Seek + Send,
    title: &str,
    detail: Detail,
) -> Result<Trace, CaptureError> {
    let clocks = Clocks::of(&mut first, &mut second)?;
    let mut reading = Reading::new(title, clocks.origin, detail);
    let mut both = Both::new(first, second)?;
    while let Some((side, (number, at, seen))) = both.next(&clocks)? {
        reading.both_places(side, number, clocks.on(side, at), seen);
    }
    reading.give_up(u64::MAX);
    let by = Duration::from_nanos(clocks.ahead.unsigned_abs()).as_secs_f64();
    let how = if clocks.is_two_way {
        "the fastest packets of both directions take equally long"
    } else {
        "the fastest packet takes no time"
    };
    let drift = match clocks.drift * 1e6 {
        0.0 => String::new(),
        drift if drift > 0.0 => format!(" It runs fast by {drift:.2} ppm, which is taken off."),
        drift => format!(" It runs slow by {:.2} ppm, which is taken off.", -drift),
    };
    reading.note(format!(
        "Captured at both ends: the second clock is put {} by {by:.6} s, so that {how}.{drift}",
        if clocks.ahead > 0 { "back" } else { "forward" }
    ));
    reading.note_unmatched();
    Ok(reading.finish(&both.sides))
}
