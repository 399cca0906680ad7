use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use fontis_base::{Duration, Time};
use fontis_proto::dfcp::qlog_event;
use fontis_proto::dfcp::{ConnectionId, Frame, TraceEvent, Traced};
use fontis_proto::qlog::{Records, millis};
use serde_json::{Map, json};

/// Writes one connection's trace as a qlog.
pub(crate) struct Qlog {
    out: File,
    /// Whole records to be written, so that a concurrent reader never finds a part of one.
    pending: Records,
    written: Time,
}

/// The number of bytes, or the age, at which records are written.
const ENOUGH: usize = 8192;
const OLD: Duration = Duration::from_millis(100);

impl Qlog {
    /// Creates `ID_ROLE.sqlog` in `folder`; event times count from `now`.
    pub(crate) fn create(
        folder: &Path,
        id: ConnectionId,
        role: &str,
        now: Time,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let id = format!("{id:?}");
        let out = File::create(folder.join(format!("{id}_{role}.sqlog")))?;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = Duration::from(wall) - now.since(Time::ZERO);
        let common = [("ODCID", json!(id)), ("protocol_type", json!(["DFCP"]))];
        let common = common.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let mut pending = Records::default();
        pending.head("Fontis DFCP", role, millis(began), common);
        Ok(Self { out, pending, written: now })
    }

    /// Writes one event.
    pub(crate) fn event(&mut self, event: &TraceEvent) -> io::Result<()> {
        self.pending.event(event.time, &Map::new(), qlog_event(event));
        let is_last = match &event.what {
            Traced::Sent { frames, .. } | Traced::Received { frames, .. } => {
                frames.iter().any(|frame| matches!(frame, Frame::Close { .. } | Frame::FinAck))
            }
            _ => false,
        };
        let is_old = event.time.since(self.written) >= OLD;
        if is_last || is_old || self.pending.len() >= ENOUGH {
            self.written = event.time;
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(self.pending.as_bytes())?;
        self.pending.clear();
        Ok(())
    }
}

impl Drop for Qlog {
    fn drop(&mut self) {
        // A disk that fails loses the trace, not the connection.
        let _ = self.write();
    }
}
