//! Files of any kind that is known: which it is follows from how it begins.

use std::io::{BufRead, BufReader, Read};

use thiserror::Error;

use super::{capture, events, ns2, qlog, stream};
use crate::kept::Detail;
use crate::trace::Trace;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own.
    Trace,
    /// pcap or pcapng.
    Capture,
    /// qlog.
    Qlog,
    /// A trace of ns-2.
    Ns2,
    /// The events of nodes of a swarm.
    Events,
}

/// Why a file cannot be shown.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is nothing that is known.
    #[error(
        "it is no trace, pcap, pcapng, qlog, trace of ns-2, or output of fontis get --share --json"
    )]
    Format,
    /// A trace of ours is wrong.
    #[error(transparent)]
    Trace(#[from] stream::StreamError),
    /// A capture is wrong.
    #[error(transparent)]
    Capture(#[from] capture::CaptureError),
    /// A qlog is wrong.
    #[error(transparent)]
    Qlog(#[from] qlog::QlogError),
    /// A trace of ns-2 is wrong.
    #[error(transparent)]
    Ns2(#[from] ns2::Ns2Error),
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Format {
    /// What begins like this.
    pub fn of(begin: &[u8]) -> Option<Self> {
        const PCAP: [[u8; 4]; 5] = [
            [0x0a, 0x0d, 0x0d, 0x0a],
            [0xa1, 0xb2, 0xc3, 0xd4],
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0xa1, 0xb2, 0x3c, 0x4d],
            [0x4d, 0x3c, 0xb2, 0xa1],
        ];
        if begin.starts_with(stream::MAGIC) {
            return Some(Self::Trace);
        }
        if PCAP.iter().any(|magic| begin.starts_with(magic)) {
            return Some(Self::Capture);
        }
        let lines = String::from_utf8_lossy(begin);
        if lines.lines().next().is_some_and(events::is_event) {
            return Some(Self::Events);
        }
        if matches!(begin.trim_ascii_start().first(), Some(b'{' | 0x1e)) {
            return Some(Self::Qlog);
        }
        let text = String::from_utf8_lossy(begin);
        let first =
            text.lines().find(|line| !line.trim().is_empty() && !line.starts_with(['V', '#']))?;
        ns2::is_line(first).then_some(Self::Ns2)
    }
}

/// Reads a file of whatever kind.
pub fn read(input: impl Read + Send, title: &str, detail: Detail) -> Result<Trace, ReadError> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let format = Format::of(input.fill_buf()?).ok_or(ReadError::Format)?;
    Ok(match format {
        Format::Trace => {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes)?;
            let mut trace = stream::decode(&bytes)?;
            title.clone_into(&mut trace.title);
            trace
        }
        Format::Capture => capture::read(input, title, detail)?,
        Format::Qlog => qlog::read(input, title, detail)?,
        Format::Ns2 => ns2::read(input, title, detail)?,
        Format::Events => events::read(input, title, detail)?,
    })
}
