use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use fontis_proto::dfcp::DfcpStats;
use tokio::time::{Instant as Alarm, interval, sleep_until};

use super::get::{ID, answered, request};
use super::outgoing::{CODE_UNWANTED, close, lost};
use super::{Progress, TransferError};
use crate::connection::{Connection, Received};
use crate::endpoint::Endpoint;
use crate::url::Url;

/// How often the counters are read.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The share of the time that a start may take: what came meanwhile does not count.
const START: f64 = 0.5;

/// What a server's content came with while it was fetched for some time.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Bytes at the IP layer in a second, over the second half of the time.
    pub bytes_per_second: f64,
    /// Whether the content came to its end before the time was over: the path may carry more.
    pub ended: bool,
    /// The counters of the connection.
    pub stats: DfcpStats,
}

/// Fetches what `url` names from the server at `remote` for as long as `span`, counts what comes,
/// and keeps nothing of it: it measures the path. The content is not verified.
pub async fn measure(
    endpoint: &Endpoint,
    remote: SocketAddr,
    url: &Url,
    span: Duration,
    progress: impl Fn(Progress) + Send + Sync,
) -> Result<Trial, TransferError> {
    let connection = request(endpoint, remote, url, false, &progress).await?;
    let measured = trial(&connection, span).await;
    close(&connection, 0).await;
    measured
}

async fn trial(connection: &Connection, span: Duration) -> Result<Trial, TransferError> {
    answered(connection, ID).await?;
    let mut object = connection.recv_object().await.ok_or_else(|| lost(connection))?;
    let begin = Instant::now();
    let mut left = object.shape().blocks().unwrap_or(0);
    let mut end = pin!(sleep_until(Alarm::from_std(begin + span)));
    let mut look = interval(LOOK_EVERY);
    let mut seen = Vec::new();
    while left > 0 {
        tokio::select! {
            () = &mut end => break,
            _ = look.tick() => {
                let Some(stats) = connection.stats().await else { return Err(lost(connection)) };
                seen.push((begin.elapsed(), stats.bytes_received));
            }
            received = object.next() => match received {
                Some(Received::Block(block, _)) => {
                    object.release(block);
                    left -= 1;
                }
                Some(Received::Checkpoint(_)) => {}
                Some(Received::Abandoned(_)) | None => return Err(lost(connection)),
            },
        }
    }
    let stats = connection.stats().await.ok_or_else(|| lost(connection))?;
    seen.push((begin.elapsed(), stats.bytes_received));
    if left > 0 {
        object.abandon(CODE_UNWANTED);
    }
    Ok(Trial { bytes_per_second: rate(&seen), ended: left == 0, stats })
}

/// The rate, in bytes a second, after the start, from how many bytes had come at which times.
fn rate(seen: &[(Duration, u64)]) -> f64 {
    let Some((end, bytes)) = seen.last() else { return 0.0 };
    let start = end.mul_f64(START);
    let first = seen.iter().rev().find(|(at, _)| *at <= start).or(seen.first());
    let (from, before) = first.copied().unwrap_or_default();
    let span = end.saturating_sub(from).as_secs_f64();
    if span > 0.0 { bytes.saturating_sub(before) as f64 / span } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_during_the_start_does_not_count() {
        let at = |ms, bytes| (Duration::from_millis(ms), bytes);
        assert_eq!(rate(&[at(0, 0), at(500, 1_000), at(1000, 501_000)]), 1_000_000.0);
        assert_eq!(rate(&[at(0, 0), at(100, 50_000)]), 500_000.0);
        assert_eq!(rate(&[at(0, 7)]), 0.0);
        assert_eq!(rate(&[]), 0.0);
    }
}
