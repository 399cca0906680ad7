//! The display of a transfer: a bar on a terminal, events for programs, nothing otherwise.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fontis::transfer::Progress;
use fontis_proto::dfcp::DfcpStats;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::listen::status;
use crate::{json, text};

/// The shortest interval of events for programs.
const EVENTS_EVERY: Duration = Duration::from_millis(200);
/// The interval of the protocol's statistics.
const VIEW_EVERY: Duration = Duration::from_secs(1);
/// The time over which the rate is smoothed.
const RATE_OVER: f64 = 1.0;

const BAR: &str = "{prefix} {wide_bar} {percent:>3}%  {decimal_bytes}/{decimal_total_bytes}  {msg}";

/// The side of a transfer; its counters differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The sender of the content.
    Sending,
    /// The receiver of the content.
    Receiving,
}

/// The audience of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Programs: JSON on standard output.
    Events,
    /// People at a terminal.
    Bar,
    /// Nobody.
    Nothing,
}

impl Show {
    /// The choice for standard error, unless JSON is requested.
    pub(crate) fn new(json: bool) -> Self {
        match json {
            true => Self::Events,
            false if stderr().is_terminal() => Self::Bar,
            false => Self::Nothing,
        }
    }
}

/// Displays a transfer.
#[derive(Debug)]
pub(crate) struct Tracker {
    show: Show,
    verbose: bool,
    side: Side,
    bar: ProgressBar,
    state: Mutex<State>,
}

/// The progress of the present object.
#[derive(Debug)]
struct State {
    total: u64,
    rate: Gauge,
    event_at: Option<Instant>,
    view_at: Option<Instant>,
    /// Forged packets of a cast, by address.
    forged: BTreeMap<IpAddr, u64>,
}

impl Tracker {
    /// Displays a transfer to `show`; `verbose` adds the protocol's statistics.
    pub(crate) fn new(show: Show, verbose: bool, side: Side) -> Self {
        let bar = match show {
            Show::Bar => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
            Show::Events | Show::Nothing => ProgressBar::hidden(),
        };
        // The template is a constant; were it wrong, a plain bar would do.
        if let Ok(style) = ProgressStyle::with_template(BAR) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let state = State {
            total: 0,
            rate: Gauge::new(Instant::now(), 0),
            event_at: None,
            view_at: None,
            forged: BTreeMap::new(),
        };
        Self { show, verbose, side, bar, state: Mutex::new(state) }
    }

    /// The bar, for others that print lines.
    pub(crate) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Takes an event of progress.
    pub(crate) fn see(&self, progress: Progress) {
        let now = Instant::now();
        match progress {
            Progress::Connected { remote } => {
                if self.verbose {
                    self.line(&format!("connected to {remote}"));
                }
            }
            Progress::Started { name, bytes, entries, resumed } => {
                let mut state = self.state();
                state.total = bytes;
                state.rate = Gauge::new(now, resumed);
                self.bar.reset();
                self.bar.set_length(bytes);
                self.bar.set_prefix(text::safe(&name));
                self.bar.set_message("");
                self.bar.set_position(resumed);
                if resumed > 0 {
                    self.line(&format!("going on: {} are here", text::size(resumed)));
                }
                if self.verbose {
                    let (name, size) = (text::safe(&name), text::size(bytes));
                    self.line(&format!("{name}: {size}, {entries} entries"));
                }
            }
            Progress::Moved { done, stats } => self.moved(now, done, &stats),
            Progress::Doubted { remote } => {
                // Programs and logs have the error in the end; people should not wait for it.
                let what = "seems to hold another key than the one given";
                self.note(&format!("{remote} {what}: trying on, in case that is a lie"));
            }
            Progress::Fed { remote, keys, block, bytes, took }
                if matches!(self.show, Show::Events) =>
            {
                let [from, to] = *keys;
                let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                json::say(&serde_json::json!({
                    "event": "block", "block": block, "bytes": bytes, "from": from, "to": to,
                    "remote": remote.to_string(), "seconds": took.as_secs_f64(),
                    "time": time.as_secs_f64(),
                }));
            }
            Progress::Fed { .. } => {}
            Progress::Met { remote } if matches!(self.show, Show::Events) => {
                json::say(&serde_json::json!({ "event": "met", "remote": remote.to_string() }));
            }
            Progress::Met { remote } => {
                if self.verbose {
                    self.line(&format!("shares with {remote}"));
                }
            }
            Progress::Dropped { remote, error } if matches!(self.show, Show::Events) => {
                json::say(
                    &serde_json::json!({ "event": "dropped", "remote": remote.to_string(), "message": error }),
                );
            }
            Progress::Dropped { remote, error } => {
                self.line(&format!("{remote} sends no more, the others go on: {error}"));
            }
            Progress::Gaps { blocks } => {
                if matches!(self.show, Show::Events) {
                    json::say(&serde_json::json!({ "event": "gaps", "blocks": blocks }));
                } else {
                    self.line(&format!("{blocks} blocks of the stream did not come in time"));
                }
            }
            Progress::Forged { from, packets } => {
                let is_first = self.state().forged.insert(from, packets).is_none();
                if matches!(self.show, Show::Events) {
                    let from = from.to_string();
                    let event = "forged";
                    json::say(&serde_json::json!({
                        "event": event, "from": from, "packets": packets,
                    }));
                } else if is_first && self.verbose {
                    self.line(&format!("{from} forges packets of the sender: they are ignored"));
                }
            }
            Progress::Stored(_) => {}
        }
    }

    /// Packets of a cast that were forged.
    pub(crate) fn forged(&self) -> u64 {
        self.state().forged.values().sum()
    }

    /// Says who has forged packets of a cast, and how many.
    pub(crate) fn say_forged(&self) {
        if self.verbose && !matches!(self.show, Show::Events) {
            for (from, packets) in &self.state().forged {
                status(&format_args!("{packets} forged packets from {from}"));
            }
        }
    }

    /// Removes the bar before other output.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn moved(&self, now: Instant, done: u64, stats: &DfcpStats) {
        let mut state = self.state();
        let rate = state.rate.add(now, done);
        match self.show {
            Show::Events if due(&mut state.event_at, now, EVENTS_EVERY) => {
                json::say(&json::progress(done, state.total, rate, stats));
            }
            Show::Bar => {
                self.bar.set_position(done.min(state.total));
                self.bar.set_message(message(state.total.saturating_sub(done), rate, stats));
            }
            _ => {}
        }
        if self.verbose && due(&mut state.view_at, now, VIEW_EVERY) {
            self.line(&view(stats, self.side));
        }
    }

    /// Prints a line for people.
    fn note(&self, text: &str) {
        if self.verbose || matches!(self.show, Show::Bar) {
            self.line(text);
        }
    }

    /// Prints a line above the bar.
    fn line(&self, text: &str) {
        match self.show {
            Show::Bar => self.bar.suspend(|| status(&text)),
            _ => status(&text),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if an interval is over; then begins the next one.
fn due(last: &mut Option<Instant>, now: Instant, every: Duration) -> bool {
    let due = last.is_none_or(|last| now.duration_since(last) >= every);
    if due {
        *last = Some(now);
    }
    due
}

/// Rate, paths if there are several, loss and time left.
fn message(left: u64, rate: f64, stats: &DfcpStats) -> String {
    let paths = if stats.paths > 1 { format!("{} paths  ", stats.paths) } else { String::new() };
    let loss = format!("{paths}loss {:.1} %", stats.data_loss() * 100.0);
    let seconds = left as f64 * 8.0 / 1e6 / rate;
    match seconds.is_finite() {
        true => format!("{}  {loss}  {} left", text::rate(rate), clock(seconds)),
        false => format!("{}  {loss}", text::rate(rate)),
    }
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match hours {
        0 => format!("{minutes}:{:02}", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
    }
}

/// The counters of the protocol, in a line.
pub(crate) fn view(stats: &DfcpStats, side: Side) -> String {
    let ms = |time: fontis_base::Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    let paths = if stats.paths > 1 { format!("{} paths, ", stats.paths) } else { String::new() };
    let rtt = format!("{paths}rtt {} ms (least {})", ms(stats.srtt), ms(stats.min_rtt));
    match side {
        Side::Sending => format!(
            "{rtt}, rate {} ({}), loss {:.2} %, in flight {}, packets of {} B, sent {} packets with {} symbols, \
             {} of them repair ({:.1} %)",
            text::pacing(stats.rate),
            stats.state,
            stats.data_loss() * 100.0,
            text::size(stats.in_flight),
            stats.packet_size,
            stats.data_packets_sent,
            stats.symbols_sent,
            stats.repair_symbols_sent,
            share(stats.repair_symbols_sent, stats.symbols_sent),
        ),
        Side::Receiving => format!(
            "{rtt}, received {} packets with {} symbols, {} of them wasted ({:.1} %), {} blocks decoded, \
             {} duplicates",
            stats.data_packets_received,
            stats.symbols_received,
            stats.symbols_wasted,
            share(stats.symbols_wasted, stats.symbols_received),
            stats.blocks_decoded,
            stats.duplicates,
        ),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// The recent rate, in Mbit/s: an average whose weights fade over [`RATE_OVER`] seconds.
#[derive(Debug)]
struct Gauge {
    begin: Instant,
    last: Instant,
    done: u64,
    rate: f64,
}

impl Gauge {
    fn new(now: Instant, done: u64) -> Self {
        Self { begin: now, last: now, done, rate: 0.0 }
    }

    fn add(&mut self, now: Instant, done: u64) -> f64 {
        let span = now.duration_since(self.last).as_secs_f64();
        if span < 0.05 {
            return self.rate;
        }
        let rate = done.saturating_sub(self.done) as f64 * 8.0 / 1e6 / span;
        // At the beginning there is no past to average with.
        let age = now.duration_since(self.begin).as_secs_f64();
        let weight = (span / age.min(RATE_OVER)).min(1.0);
        self.rate += weight * (rate - self.rate);
        (self.last, self.done) = (now, done);
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_shown_as_it_is_and_a_new_one_soon() {
        let begin = Instant::now();
        let mut gauge = Gauge::new(begin, 0);
        let mut done = 0;
        let mut run = |from: u64, to: u64, step: u64| {
            let mut rate = 0.0;
            for tick in from..to {
                done += step;
                rate = gauge.add(begin + Duration::from_millis(100 * (tick + 1)), done);
            }
            rate
        };
        assert!((run(0, 20, 125_000) - 10.0).abs() < 1e-9);
        assert!((run(20, 70, 250_000) - 20.0).abs() < 0.1);
    }

    #[test]
    fn the_message_tells_rate_loss_and_time_left() {
        let stats = DfcpStats { loss: 0.021, ..DfcpStats::default() };
        assert_eq!(message(125_000_000, 100.0, &stats), "100.0 Mbit/s  loss 2.1 %  0:10 left");
        assert_eq!(message(1, 0.0, &stats), "0.0 kbit/s  loss 2.1 %");
        assert_eq!([clock(59.2), clock(3_725.0)], ["1:00", "1:02:05"]);
    }

    #[test]
    fn events_come_at_most_so_often() {
        let (begin, mut last) = (Instant::now(), None);
        let at = |ms| begin + Duration::from_millis(ms);
        let seen: Vec<bool> =
            [0, 100, 199, 200, 390].map(|ms| due(&mut last, at(ms), EVENTS_EVERY)).into();
        assert_eq!(seen, [true, false, false, true, false]);
    }
}
