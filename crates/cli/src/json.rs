//! The output for programs: one event a line.

use std::fmt::Display;
use std::io::{Write, stdout};

use fontis::LeftOut;
use fontis::transfer::{Report, ServerEvent};
use fontis_proto::dfcp::DfcpStats;
use fontis_proto::sctp::SctpStats;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::text::{mbps, round, safe};

/// Prints a line at once. A closed output is no error.
pub(crate) fn say(line: &dyn Display) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The failure of a command.
pub(crate) fn error(failure: &Failure) -> Value {
    json!({ "event": "error", "message": failure.to_string() })
}

/// The progress of a transfer.
pub(crate) fn progress(bytes: u64, total: u64, rate_mbps: f64, stats: &DfcpStats) -> Value {
    json!({
        "event": "progress",
        "bytes": bytes,
        "total": total,
        "rate_mbps": round(rate_mbps),
        "paths": stats.paths,
        "loss": round(stats.data_loss()),
        "rtt_ms": rtt_ms(stats),
    })
}

/// A fetched object.
pub(crate) fn done(report: &Report) -> Value {
    let Report { path, bytes, resumed, hash, duration, stats, sctp, .. } = report;
    json!({
        "event": "done",
        "name": safe(&report.name),
        "left_out": left_out(&report.left_out),
        "path": path.as_ref().map(|path| path.to_string_lossy()),
        "bytes": bytes,
        "resumed": resumed,
        "seconds": duration.as_secs_f64(),
        "goodput_mbps": mbps(bytes - resumed, *duration),
        "hash": hash,
        "packets_received": stats.packets_received,
        "data_packets_received": stats.data_packets_received,
        "symbols_received": stats.symbols_received,
        "symbols_needed": stats.symbols_needed,
        "symbols_wasted": stats.symbols_wasted,
        "rtt_ms": rtt_ms(stats),
        "sctp": sctp.as_ref().map(of_sctp),
    })
}

/// A sent object.
pub(crate) fn sent(report: &Report) -> Value {
    let Report { bytes, resumed, hash, duration, stats, sctp, .. } = report;
    json!({
        "event": "sent",
        "name": safe(&report.name),
        "left_out": left_out(&report.left_out),
        "bytes": bytes,
        "resumed": resumed,
        "seconds": duration.as_secs_f64(),
        "data_packets": stats.data_packets_sent,
        "symbols": stats.symbols_sent,
        "symbols_needed": stats.symbols_needed,
        "goodput_mbps": mbps(bytes - resumed, *duration),
        "loss": round(stats.data_loss()),
        "rtt_ms": rtt_ms(stats),
        "hash": hash,
        "sctp": sctp.as_ref().map(of_sctp),
    })
}

/// The counters of an end of SCTP.
fn of_sctp(stats: &SctpStats) -> Value {
    json!({
        "packets_sent": stats.sent,
        "packets_received": stats.received,
        "chunks_sent": stats.chunks_sent,
        "chunks_sent_again": stats.repeated,
        "timeouts": stats.timeouts,
        "chunks_received": stats.chunks_received,
        "chunks_received_twice": stats.duplicates,
        "chunks_restored": stats.restored,
        "repairs_sent": stats.repairs_sent,
        "repairs_received": stats.repairs_received,
    })
}

/// An event of a server; `finished` is the name of the event of a finished transfer.
pub(crate) fn server_event(event: &ServerEvent, finished: fn(&Report) -> Value) -> Value {
    match event {
        ServerEvent::Connected { remote, key } => {
            json!({ "event": "connected", "remote": remote.to_string(), "key": key })
        }
        ServerEvent::Started { remote, name, bytes } => {
            json!({ "event": "started", "remote": remote.to_string(), "name": safe(name), "bytes": bytes })
        }
        ServerEvent::Finished { remote, report } => {
            let mut value = finished(report);
            value["remote"] = remote.to_string().into();
            value
        }
        ServerEvent::Failed { remote, error } => {
            json!({ "event": "failed", "remote": remote.to_string(), "message": error })
        }
    }
}

/// A received object.
pub(crate) fn received(report: &Report) -> Value {
    let mut value = done(report);
    value["event"] = "received".into();
    value
}

fn left_out(left_out: &LeftOut) -> Value {
    let LeftOut { special, unreadable, links, names, attributes, excluded, first } = left_out;
    json!({
        "special": special,
        "unreadable": unreadable,
        "links": links,
        "names": names,
        "attributes": attributes,
        "excluded": excluded,
        "paths": first,
    })
}

fn rtt_ms(stats: &DfcpStats) -> f64 {
    round(stats.srtt.as_secs_f64() * 1e3)
}
