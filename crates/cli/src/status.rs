//! `fontis status` and `fontis limit`: queries and changes of running commands.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::say;
use crate::request::rate;
use crate::socket::{ask, processes};
use crate::text;

/// Show the running Fontis commands of this user
///
/// Shows, of each serve, receive, get and send, its task, its limit, and each connection's rate,
/// round-trip time and loss.
#[derive(Debug, clap::Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(crate) struct StatusArgs {
    /// Only this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Print JSON, one process a line
    #[arg(long, conflicts_with = "prometheus")]
    pub(crate) json: bool,
    /// Print metrics in Prometheus' text format, for its node exporter's textfile collector
    #[arg(long)]
    prometheus: bool,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  What is running, and how fast:
    fontis status
  Metrics for the node exporter's textfile collector, from a timer:
    fontis status --prometheus > /var/lib/node_exporter/fontis.prom";

/// Limit the rate of running Fontis commands
///
/// Transfers continue at the new rate. By time of day, from crontab: 0 8 * * * fontis limit 20mbit
/// and 0 20 * * * fontis limit none.
#[derive(Debug, clap::Args)]
pub(crate) struct LimitArgs {
    /// A rate as in 20mbit, none, pause, or continue
    #[arg(value_name = "RATE|none|pause|continue", value_parser = request)]
    change: Value,
    /// Only this process [default: all of this user]
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

fn request(text: &str) -> Result<Value, String> {
    match text {
        "none" => Ok(json!({ "limit": null })),
        "pause" => Ok(json!({ "pause": true })),
        "continue" => Ok(json!({ "pause": false })),
        _ => match rate(text) {
            Ok(_) => Ok(json!({ "limit": text })),
            Err(error) => Err(format!("{error}; none, pause and continue are the other choices")),
        },
    }
}

/// Runs `fontis status`.
pub(crate) fn status(args: &StatusArgs) -> Result<(), Failure> {
    let found = asked(args.pid, &json!({}))?;
    if args.prometheus {
        say(&metrics(&found).trim_end());
        return Ok(());
    }
    for one in &found {
        if args.json { say(one) } else { say(&describe(one)) }
    }
    Ok(())
}

/// Runs `fontis limit`.
pub(crate) fn limit(args: &LimitArgs) -> Result<(), Failure> {
    for one in asked(args.pid, &args.change)? {
        say(&headline(&one));
    }
    Ok(())
}

/// The answers of the chosen processes.
fn asked(pid: Option<u32>, request: &Value) -> Result<Vec<Value>, Failure> {
    let failed = |error| Failure::Failed(format!("cannot ask running commands: {error}"));
    let (mut answers, mut silent) = (Vec::new(), Vec::new());
    for (pid, path) in processes(pid).map_err(failed)? {
        match ask(&path, request) {
            Ok(Some(answer)) if answer["event"] == "error" => {
                silent.push(format!("process {pid} refuses: {}", answer["message"]));
            }
            Ok(answer) => answers.extend(answer),
            Err(error) => silent.push(format!("process {pid} does not answer: {error}")),
        }
    }
    // All have been asked before it is said that one of them does not answer.
    if !silent.is_empty() {
        return Err(Failure::Failed(silent.join("; ")));
    }
    match pid {
        Some(pid) if answers.is_empty() => {
            Err(Failure::Failed(format!("process {pid} is no running Fontis of this user")))
        }
        None if answers.is_empty() => {
            Err(Failure::Failed("no Fontis of this user is running".to_owned()))
        }
        _ => Ok(answers),
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

fn headline(one: &Value) -> String {
    let limit = match (one["paused"].as_bool(), one["limit_bps"].as_f64()) {
        (Some(true), _) => "paused".to_owned(),
        (_, Some(limit)) => format!("limit {}", text::rate(limit / 1e6)),
        _ => "no limit".to_owned(),
    };
    let text = |key: &str| text::safe(one[key].as_str().unwrap_or("?")).to_string();
    format!("{}: {} {}, {limit}", one["pid"], text("command"), text("subject"))
}

fn describe(one: &Value) -> String {
    let mut lines = vec![headline(one)];
    let connections = one["connections"].as_array().map_or(&[][..], Vec::as_slice);
    lines.push(format!(
        "  {} connections now, {} accepted, {} transfers complete ({}), {} failed",
        connections.len(),
        one["accepted"],
        one["finished"],
        text::size(one["bytes"].as_u64().unwrap_or(0)),
        one["failed"],
    ));
    for connection in connections {
        let is = |key: &str| connection[key].as_bool() == Some(true);
        let what = match (is("sending"), is("receiving")) {
            (true, true) => "sending and receiving",
            (true, false) => "sending",
            (false, true) => "receiving",
            (false, false) => "idle",
        };
        lines.push(format!(
            "  {}: {what}, rate {}{}, rtt {} ms, loss {:.2} %, {} sent, {} received",
            text::safe(connection["remote"].as_str().unwrap_or("?")),
            text::rate(number(connection, "rate_bps") / 1e6),
            state(connection),
            number(connection, "rtt_ms"),
            number(connection, "loss") * 100.0,
            text::size(connection["bytes_sent"].as_u64().unwrap_or(0)),
            text::size(connection["bytes_received"].as_u64().unwrap_or(0)),
        ));
        let paths = connection["paths"].as_array().map_or(&[][..], Vec::as_slice);
        if paths.len() > 1 {
            lines.extend(paths.iter().map(describe_path));
        }
    }
    lines.join("\n")
}

/// What the rate controller of a connection or a path does.
fn state(of: &Value) -> String {
    of["rate_state"].as_str().map_or_else(String::new, |state| format!(" ({})", text::safe(state)))
}

fn describe_path(path: &Value) -> String {
    let text = |key: &str| path[key].as_str().map(|text| text::safe(text).to_string());
    let silent = if path["answers"].as_bool() == Some(false) { ", silent" } else { "" };
    let spare = if path["spare"].as_bool() == Some(true) { " (spare)" } else { "" };
    let shared = if path["shares_with"] == path["path"] {
        String::new()
    } else {
        format!(", in one queue with path {}", path["shares_with"])
    };
    format!(
        "    path {} over {}{spare}: rate {}{}, rtt {} ms, loss {:.2} %, {} sent, {} received{silent}{shared}",
        path["path"],
        text("interface").or_else(|| text("remote")).unwrap_or_else(|| "?".to_owned()),
        text::rate(number(path, "rate_bps") / 1e6),
        state(path),
        number(path, "rtt_ms"),
        number(path, "loss") * 100.0,
        text::size(path["bytes_sent"].as_u64().unwrap_or(0)),
        text::size(path["bytes_received"].as_u64().unwrap_or(0)),
    )
}

/// The metrics of all processes, in Prometheus' text format.
fn metrics(found: &[Value]) -> String {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::registry::Registry;

    type Labels = Vec<(String, String)>;
    type Gauges = Family<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>;
    let mut registry = Registry::with_prefix("fontis");
    let labels = |one: &Value| -> Labels {
        let text = |key: &str| one[key].as_str().unwrap_or("").to_owned();
        vec![("pid".to_owned(), one["pid"].to_string()), ("command".to_owned(), text("command"))]
    };
    for (key, help) in [
        ("finished", "Transfers complete"),
        ("failed", "Transfers failed"),
        ("bytes", "Content bytes of complete transfers"),
        ("accepted", "Connections made by clients"),
        ("turned_away", "Connection requests not answered at once, because there were too many"),
    ] {
        let family = Family::<Labels, Counter>::default();
        for one in found {
            family.get_or_create(&labels(one)).inc_by(one[key].as_u64().unwrap_or(0));
        }
        registry.register(key, help, family);
    }
    let own = |registry: &mut Registry, key: &str, help: &str, value: fn(&Value) -> f64| {
        let family = Gauges::default();
        for one in found {
            family.get_or_create(&labels(one)).set(value(one));
        }
        registry.register(key, help, family);
    };
    let count = |one: &Value| one["connections"].as_array().map_or(0.0, |all| all.len() as f64);
    own(&mut registry, "connections", "Connections now", count);
    own(&mut registry, "limit_bps", "Limit in bit/s; infinite without one", |one| {
        let paused = one["paused"].as_bool() == Some(true);
        if paused { 0.0 } else { one["limit_bps"].as_f64().unwrap_or(f64::INFINITY) }
    });
    for (key, help) in [
        ("rate_bps", "Pacing rate in bit/s at the IP layer"),
        ("rtt_ms", "Smoothed round-trip time in milliseconds"),
        ("loss", "Share of packets lost"),
        ("bytes_sent", "Bytes sent at the IP layer"),
        ("bytes_received", "Bytes received at the IP layer"),
    ] {
        let family = Gauges::default();
        for one in found {
            for connection in one["connections"].as_array().map_or(&[][..], Vec::as_slice) {
                let mut labels = labels(one);
                let remote = connection["remote"].as_str().unwrap_or("");
                labels.push(("remote".to_owned(), remote.to_owned()));
                family.get_or_create(&labels).set(number(connection, key));
            }
        }
        registry.register(format!("connection_{key}"), help, family);
    }
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut out, &registry);
    out
}
