//! How a call goes, for people and for programs.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use fontis_call::{CallEvent, CallReport, Heard};
use serde_json::{Value, json};

use super::args::Args;
use crate::failure::Failure;
use crate::json;
use crate::listen::status;
use crate::text::round;

/// Shows how a call goes.
pub(super) struct Monitor {
    as_json: bool,
    report: Option<(PathBuf, RefCell<File>)>,
}

impl Monitor {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let open = |path: &PathBuf| match File::create(path) {
            Ok(file) => Ok((path.clone(), RefCell::new(file))),
            Err(error) => Err(Failure::Failed(format!("cannot write {}: {error}", path.display()))),
        };
        let report = args.report.as_ref().map(open).transpose()?;
        Ok(Self { as_json: args.json, report })
    }

    pub(super) fn see(&self, event: &CallEvent) {
        match event {
            CallEvent::Begun { codec, carrier, calls } => {
                if self.as_json {
                    let (codec, over) = (codec.to_string(), carrier.to_string());
                    json::say(&json!({
                        "event": "begun", "codec": codec, "over": over, "calls": calls,
                    }));
                }
                let many = if *calls == 1 { String::new() } else { format!(", {calls} calls") };
                status(&format_args!("the call has begun: {codec} over {carrier}{many}"));
            }
            CallEvent::Second(report) => {
                self.write(&line("second", report));
                if self.as_json {
                    json::say(&line("second", report));
                } else if (report.seconds as u64).is_multiple_of(5) {
                    status(&format_args!("{:3.0} s: {}", report.seconds, both(report)));
                }
            }
        }
    }

    pub(super) fn end(&self, report: &CallReport) {
        self.write(&line("done", report));
        if self.as_json {
            json::say(&line("done", report));
        } else {
            let sent = report.sent;
            let share = 100.0 * sent.repair_bytes as f64 / (sent.bytes as f64).max(1.0);
            status(&format_args!(
                "the call is over after {:.1} s: {}",
                report.seconds,
                both(report)
            ));
            status(&format_args!(
                "sent {} packets of voice, and {} repair packets with {share:.0} % of their bytes",
                sent.packets, sent.repair_packets
            ));
        }
    }

    fn write(&self, line: &Value) {
        let Some((path, file)) = &self.report else { return };
        if let Err(error) = writeln!(file.borrow_mut(), "{line}") {
            status(&format_args!("cannot write {}: {error}", Path::new(path).display()));
        }
    }
}

/// Both directions, for people.
fn both(report: &CallReport) -> String {
    let one = |heard: &Heard| {
        format!(
            "MOS {:.2}, R {:.0}, {:.1} % lost, {:.0} ms",
            heard.mos,
            heard.r,
            100.0 * heard.loss,
            heard.delay
        )
    };
    let is_heard = |heard: &&Heard| heard.played + heard.missed > 0;
    let here = Some(&report.here).filter(is_heard).map_or("nothing".to_owned(), one);
    let told = |heard: &Heard| Some(heard).filter(is_heard).map_or("nothing".to_owned(), one);
    let there = report.there.as_ref().map_or("unknown".to_owned(), told);
    format!("heard here {here}; heard there {there}")
}

/// Both directions, for programs.
fn line(event: &str, report: &CallReport) -> Value {
    let one = |heard: &Heard| {
        json!({
            "mos": round(heard.mos),
            "r": round(heard.r),
            "loss": round(heard.loss),
            "network_loss": round(heard.network_loss),
            "delay_ms": round(heard.delay),
            "jitter_ms": round(heard.jitter),
            "received": heard.received,
            "restored": heard.restored,
            "played": heard.played,
            "missed": heard.missed,
            "late": heard.late,
        })
    };
    json!({
        "event": event,
        "seconds": round(report.seconds),
        "codec": report.codec.to_string(),
        "over": report.carrier.to_string(),
        "calls": report.calls,
        "here": one(&report.here),
        "there": report.there.as_ref().map(one),
        "packets_sent": report.sent.packets,
        "bytes_sent": report.sent.bytes,
        "repair_packets_sent": report.sent.repair_packets,
        "repair_bytes_sent": report.sent.repair_bytes,
        "connection_bytes_sent": report.connection_bytes,
    })
}
