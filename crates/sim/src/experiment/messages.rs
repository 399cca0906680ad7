//! The measurement of messages: their delays, and those that came too late or never.

use fontis_base::{Duration, Time};

use crate::app::message::{MessageLog, Sent};
use crate::recording::metrics::quantile;
use crate::recording::table::{Cell, Table};

/// The messages of a receiver in the measurement window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MessageMetrics {
    /// Messages made.
    pub(crate) made: usize,
    /// The share that arrived before its deadline.
    pub(crate) in_time: f64,
    /// The share that never arrived.
    pub(crate) lost: f64,
    /// The delays of those that arrived, in milliseconds, sorted.
    delays: Vec<f64>,
}

impl MessageMetrics {
    /// The messages of a receiver that were made since `begin`. Messages whose deadline had not
    /// passed at `end` do not count.
    pub(crate) fn read(
        log: &MessageLog,
        receiver: usize,
        [begin, end]: [Time; 2],
        deadline: Duration,
    ) -> Self {
        let entries = log.entries();
        let arrivals = entries.arrivals.get(receiver).map_or(&[][..], Vec::as_slice);
        let (mut made, mut in_time, mut lost, mut delays) = (0, 0, 0, Vec::new());
        for (number, sent) in entries.sent.iter().enumerate() {
            if sent.at < begin || sent.at + deadline > end {
                continue;
            }
            made += 1;
            match arrivals.get(number).copied().unwrap_or(Time::MAX) {
                Time::MAX => lost += 1,
                at => {
                    let delay = at.since(sent.at);
                    in_time += usize::from(delay <= deadline);
                    delays.push(delay.as_secs_f64() * 1e3);
                }
            }
        }
        delays.sort_by(f64::total_cmp);
        let share = |part: usize| if made > 0 { part as f64 / made as f64 } else { 0.0 };
        Self { made, in_time: share(in_time), lost: share(lost), delays }
    }

    /// A quantile of the delays in milliseconds; `None` if nothing arrived.
    pub(crate) fn delay(&self, share: f64) -> Option<f64> {
        (!self.delays.is_empty()).then(|| quantile(&self.delays, share))
    }
}

/// Adds the messages of a receiver to the table of messages.
pub(crate) fn record(
    table: &mut Table,
    log: &MessageLog,
    (flow, receiver, name): (usize, usize, &str),
) {
    let entries = log.entries();
    let arrivals = entries.arrivals.get(receiver).map_or(&[][..], Vec::as_slice);
    for (number, sent) in entries.sent.iter().enumerate() {
        let Sent { at, bytes, kind, .. } = *sent;
        let arrived = arrivals.get(number).copied().filter(|at| *at < Time::MAX);
        let delay = arrived.map_or(f64::NAN, |arrived| arrived.since(at).as_secs_f64());
        let cells: [Cell<'_>; 7] = [
            at.as_secs_f64().into(),
            (flow as u64).into(),
            name.into(),
            (number as u64).into(),
            kind.map_or("", |kind| kind.name()).into(),
            bytes.into(),
            delay.into(),
        ];
        table.push(cells);
    }
}
