use std::time::{Duration, Instant};

use fontis_base::Rate;

use crate::connection::Connection;
use crate::{moment, task};

/// How long an answer about the limit is good for. While a limit pauses, it is asked again so
/// often.
const FRESH: Duration = Duration::from_millis(50);
/// Timers are late: by so much that is made up for.
const CATCH_UP: Duration = Duration::from_millis(20);
/// What packets of 1280 bytes take more than the records in them: headers of IP, UDP, SCTP and a
/// chunk are a twentieth.
const HEADERS: (u64, u64) = (21, 20);

/// The pace that a limit of either side asks of what leaves over SCTP. Repairs and what is sent
/// again are not counted.
pub(super) struct Throttle<'a> {
    connection: &'a Connection,
    limit: Option<Rate>,
    asked: Option<Instant>,
    /// When all that has been taken has left at the limit.
    due: Instant,
}

impl<'a> Throttle<'a> {
    /// A throttle by the limits of a connection.
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self { connection, limit: None, asked: None, due: moment::now() }
    }

    /// Waits until so many bytes may leave.
    pub(super) async fn take(&mut self, bytes: usize) {
        loop {
            let now = moment::now();
            if self.asked.is_none_or(|asked| now.duration_since(asked) >= FRESH) {
                self.limit = self.connection.sending_limit().await;
                self.asked = Some(now);
            }
            match self.limit {
                None => return,
                Some(Rate::ZERO) => task::sleep(FRESH).await,
                Some(_) if self.due > now => {
                    // A limit may be lifted meanwhile.
                    task::sleep(self.due.duration_since(now).min(FRESH)).await;
                }
                Some(rate) => {
                    let (share, of) = HEADERS;
                    let time = rate.time_for(bytes as u64 * share / of);
                    let from = now.checked_sub(CATCH_UP).map_or(now, |least| self.due.max(least));
                    self.due = from + Duration::from_nanos(time.as_nanos());
                    return;
                }
            }
        }
    }
}
