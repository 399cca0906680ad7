//! The control of a running command: its limit, set by flags, by the keyboard, or by another
//! process through a socket, which also reports its status.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fontis::transfer::ServerEvent;
use fontis::{Endpoint, EndpointStatus, PathStatus};
use fontis_base::Rate;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::listen::status;
use crate::request::{Change, LEAST, rate};
use crate::text::round;

/// The limit of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlArgs {
    /// Limit the rate in both directions, all connections together, as in 20mbit; `fontis limit`
    /// and the keys + and - change it during the run, the space bar pauses
    #[arg(long, value_name = "RATE", value_parser = rate)]
    limit: Option<Rate>,
}

/// A running command and its controls. Clones share it.
#[derive(Clone)]
pub(crate) struct Control {
    command: &'static str,
    subject: String,
    began: Instant,
    bar: ProgressBar,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    limit: Option<Rate>,
    paused: bool,
    /// One, or one for each server of several.
    endpoints: Vec<Endpoint>,
    finished: u64,
    failed: u64,
    bytes: u64,
}

impl Control {
    /// Makes the control of `command`, whose task is `subject`.
    pub(crate) fn new(command: &'static str, subject: String, args: &ControlArgs) -> Self {
        let state = State { limit: args.limit, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let bar = ProgressBar::hidden();
        Self { command, subject, began: Instant::now(), bar, state }
    }

    /// Prints messages above this bar.
    pub(crate) fn above(self, bar: ProgressBar) -> Self {
        Self { bar, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this the endpoint of the command.
    pub(crate) fn attach(&self, endpoint: &Endpoint) {
        self.attach_all(vec![endpoint.clone()]);
    }

    /// Makes these the endpoints of the command, which share its limit.
    pub(crate) fn attach_all(&self, endpoints: Vec<Endpoint>) {
        let mut state = self.state();
        state.endpoints = endpoints;
        state.apply();
    }

    /// The state of each endpoint.
    async fn seen(&self) -> Vec<EndpointStatus> {
        let endpoints = self.state().endpoints.clone();
        let mut seen = Vec::new();
        for endpoint in endpoints {
            seen.extend(endpoint.status().await);
        }
        seen
    }

    /// Applies a change.
    pub(crate) async fn change(&self, change: Change) {
        // Where there is no limit, faster and slower are meant of the rate that there is.
        let seen = self.seen().await;
        let now = seen.iter().map(rate_of).reduce(Rate::saturating_add);
        let mut state = self.state();
        match change {
            Change::Limit(limit) => (state.limit, state.paused) = (limit, false),
            Change::Pause(paused) => state.paused = paused,
            Change::TogglePause => state.paused ^= true,
            Change::Scale(factor) => {
                let from = state.limit.or(now).filter(|rate| rate.as_bps() > 0);
                let bits = from.map(|rate| (rate.as_bps() as f64 * factor) as u64);
                state.limit = bits.map(|bits| Rate::from_bps(bits.max(LEAST))).or(state.limit);
                state.paused = false;
            }
        }
        state.apply();
    }

    /// Takes an event of a server.
    pub(crate) fn see(&self, event: &ServerEvent) {
        let mut state = self.state();
        match event {
            ServerEvent::Finished { report, .. } => {
                state.finished += 1;
                state.bytes += report.bytes;
            }
            ServerEvent::Failed { .. } => state.failed += 1,
            ServerEvent::Connected { .. } | ServerEvent::Started { .. } => {}
        }
    }

    /// Prints the present limit on standard error.
    pub(crate) fn tell(&self) {
        let state = self.state();
        let line = match (state.paused, state.limit) {
            (true, _) => "paused; the space bar or `fontis limit continue` goes on".to_owned(),
            (false, Some(limit)) => format!("limit {limit}; u or `fontis limit none` lifts it"),
            (false, None) => "no limit".to_owned(),
        };
        self.bar.suspend(|| status(&line));
    }

    /// The status of the command.
    pub(crate) async fn report(&self) -> Value {
        let seen = self.seen().await;
        let sum = |count: fn(&EndpointStatus) -> u64| seen.iter().map(count).sum::<u64>();
        let state = self.state();
        json!({
            "event": "status",
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "command": self.command,
            "subject": self.subject,
            "address": state.endpoints.first().map(|first| first.local_addr().to_string()),
            "seconds": round(self.began.elapsed().as_secs_f64()),
            "limit_bps": state.limit.map(Rate::as_bps),
            "paused": state.paused,
            "finished": state.finished,
            "failed": state.failed,
            "bytes": state.bytes,
            "accepted": sum(|seen| seen.accepted),
            "turned_away": sum(|seen| seen.turned_away),
            "forged": sum(|seen| seen.forged),
            "connections": seen.iter().flat_map(connections).collect::<Vec<_>>(),
        })
    }
}

impl State {
    fn apply(&self) {
        let limit = if self.paused { Some(Rate::ZERO) } else { self.limit };
        let count = self.endpoints.len().max(1) as u64;
        for endpoint in &self.endpoints {
            endpoint.limit(limit.map(|rate| rate.mul_ratio(1, count)));
        }
    }
}

fn path(path: &PathStatus) -> Value {
    let PathStatus { interface, remote, stats } = path;
    json!({
        "path": stats.path,
        "interface": interface.as_ref().map(|interface| &interface.name),
        "remote": remote.to_string(),
        "answers": stats.answers,
        "spare": stats.spare,
        "rate_state": stats.state.name(),
        "shares_with": stats.shares_with,
        "rate_bps": stats.rate.as_bps(),
        "rtt_ms": round(stats.srtt.as_nanos() as f64 / 1e6),
        "loss": round(stats.loss),
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
    })
}

fn connections(status: &EndpointStatus) -> Vec<Value> {
    let one = |connection: &fontis::ConnectionStatus| {
        let stats = &connection.stats;
        json!({
            "remote": connection.remote.to_string(),
            "sending": connection.sending,
            "receiving": connection.receiving,
            "rate_bps": stats.rate.as_bps(),
            "rate_state": stats.state.name(),
            "rtt_ms": round(stats.srtt.as_nanos() as f64 / 1e6),
            "loss": round(stats.data_loss()),
            "bytes_sent": stats.bytes_sent,
            "bytes_received": stats.bytes_received,
            "packets_sent": stats.packets_sent,
            "packets_received": stats.packets_received,
            "symbols_needed": stats.symbols_needed,
            "symbols_sent": stats.symbols_sent,
            "symbols_received": stats.symbols_received,
            "paths": connection.paths.iter().map(path).collect::<Vec<_>>(),
        })
    };
    status.connections.iter().map(one).collect()
}

/// The sum of the rates of all sending connections.
fn rate_of(status: &EndpointStatus) -> Rate {
    let sending = status.connections.iter().filter(|connection| connection.sending);
    Rate::from_bps(sending.map(|connection| connection.stats.rate.as_bps()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_follow_from_what_was() {
        let args = ControlArgs { limit: Some(Rate::from_mbps(8)) };
        let control = Control::new("get", "x".to_owned(), &args);
        let limit = |control: &Control| {
            let state = control.state();
            (state.limit, state.paused)
        };
        control.change(Change::TogglePause).await;
        assert_eq!(limit(&control), (Some(Rate::from_mbps(8)), true));
        control.change(Change::Scale(1.25)).await;
        assert_eq!(limit(&control), (Some(Rate::from_mbps(10)), false));
        control.change(Change::Pause(true)).await;
        control.change(Change::Limit(None)).await;
        assert_eq!(limit(&control), (None, false));
        // Nothing is sent: nothing to be faster than.
        control.change(Change::Scale(0.8)).await;
        assert_eq!(limit(&control), (None, false));
    }
}
