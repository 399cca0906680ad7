use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::moment;
use crate::task;

/// Messages of a client that are taken in a second. A fetch takes one or two.
const RATE: u32 = 2000;
/// Messages that are taken at once after a pause.
const BURST: u32 = 128;

/// After so many messages a client's answers are counted.
const COUNTED_AFTER: u32 = 32;
/// Answers that a client may not have taken when more of its messages are.
const MOST_UNTAKEN: usize = 128;
/// How long one waits for a client to take answers, at a time.
const WAIT: Duration = Duration::from_millis(20);

/// The pace at which the messages of a client are taken: each costs the server some work, whatever
/// it says, and most are answered. Those that come faster wait, and fill the room that the
/// connection has for them.
pub(super) struct Pace {
    /// When the next message would be due if all had come evenly.
    due: Instant,
    /// Messages since the answers were counted.
    taken: u32,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { due: moment::now(), taken: 0 }
    }

    /// Waits until the next message of a client may be taken: not before it has taken what it asked
    /// for. False if the connection is over, and nobody would take an answer to what is left.
    pub(super) async fn turn(&mut self, connection: &Connection) -> bool {
        self.wait().await;
        self.taken += 1;
        if self.taken >= COUNTED_AFTER {
            self.taken = 0;
            while connection.untaken_answers().await.is_some_and(|count| count > MOST_UNTAKEN) {
                task::sleep(WAIT).await;
            }
        }
        connection.close_reason().is_none()
    }

    async fn wait(&mut self) {
        let now = moment::now();
        let ahead = self.due.saturating_duration_since(now);
        self.due = self.due.max(now) + Duration::from_secs(1) / RATE;
        let too_far = ahead.saturating_sub(Duration::from_secs(1) / RATE * BURST);
        if !too_far.is_zero() {
            task::sleep(too_far).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_few_messages_are_taken_at_once_and_many_at_the_pace() {
        let (mut pace, begin) = (Pace::new(), Instant::now());
        for _ in 0..BURST {
            pace.wait().await;
        }
        assert!(begin.elapsed() < Duration::from_millis(50), "{:?}", begin.elapsed());
        let begin = Instant::now();
        for _ in 0..RATE / 4 {
            pace.wait().await;
        }
        assert!(begin.elapsed() >= Duration::from_millis(150), "{:?}", begin.elapsed());
    }
}
