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
    /// Differences of successive gaps between arrivals in milliseconds: the mean and the greatest.
    jitter: Option<[f64; 2]>,
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
        let (mut made, mut in_time, mut lost) = (0, 0, 0);
        let (mut delays, mut times) = (Vec::new(), Vec::new());
        for (number, sent) in entries.sent.iter().enumerate() {
            if sent.at < begin || sent.at + deadline > end {
                continue;
            }
            made += 1;
            match arrivals.get(number).copied().unwrap_or(Time::MAX) {
                Time::MAX => lost += 1,
                at => {
                    let delay = at.since(sent.at);
                    times.push(at);
                    in_time += usize::from(delay <= deadline);
                    delays.push(delay.as_secs_f64() * 1e3);
                }
            }
        }
        delays.sort_by(f64::total_cmp);
        let share = |part: usize| if made > 0 { part as f64 / made as f64 } else { 0.0 };
        let jitter = jitter(times);
        Self { made, in_time: share(in_time), lost: share(lost), delays, jitter }
    }

    /// The mean and the greatest difference of two successive gaps between arrivals in
    /// milliseconds; `None` of less than three.
    pub(crate) const fn jitter(&self) -> Option<[f64; 2]> {
        self.jitter
    }

    /// A quantile of the delays in milliseconds; `None` if nothing arrived.
    pub(crate) fn delay(&self, share: f64) -> Option<f64> {
        (!self.delays.is_empty()).then(|| quantile(&self.delays, share))
    }
}

/// The mean and the greatest difference of two successive gaps in milliseconds, if there are two.
fn jitter(mut times: Vec<Time>) -> Option<[f64; 2]> {
    times.sort_unstable();
    let gap = |pair: &[Time]| pair[1].since(pair[0]).as_secs_f64() * 1e3;
    let gaps: Vec<f64> = times.windows(2).map(gap).collect();
    let differences: Vec<f64> = gaps.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let most = differences.iter().copied().max_by(f64::total_cmp)?;
    Some([differences.iter().sum::<f64>() / differences.len() as f64, most])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_difference_of_successive_gaps_in_order_of_arrival() {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        // Gaps of 20, 0 and 40 ms.
        let found = jitter([60, 0, 20, 20].map(at).to_vec()).expect("two differences");
        assert!((found[0] - 30.0).abs() < 1e-9 && (found[1] - 40.0).abs() < 1e-9, "{found:?}");
        assert_eq!(jitter([1, 2].map(at).to_vec()), None);
    }
}
