use std::time::Duration;

use crate::connection::Connection;
use crate::task;

/// What is said of a client that does not know the secret.
pub(super) const GUESSED: &str = "a wrong secret was given";

/// Wrong secrets after which a client is parted from.
const MOST: u32 = 3;
/// How long nothing is heard of it before that: it would come again at once.
const PARTING: Duration = Duration::from_secs(5);

/// The wrong secrets that a connection's client has given.
#[derive(Default)]
pub(super) struct Guesses(u32);

impl Guesses {
    /// Counts one, and parts from a client that gives many: it has no URL that was copied badly.
    /// Who calls this reads nothing of the client meanwhile.
    pub(super) async fn count(&mut self, connection: &Connection) {
        self.0 += 1;
        if self.0 >= MOST {
            task::sleep(PARTING).await;
            connection.close(0, "too many wrong secrets");
        }
    }
}
