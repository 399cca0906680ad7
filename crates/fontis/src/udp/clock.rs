use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fontis_base::{Duration, Time};

use crate::moment;

/// A driver's time: it begins when the driver does and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

/// A timestamp older than this says more about the system's clock having been set than about the
/// packet.
const OLDEST: Duration = Duration::from_secs(1);

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self(moment::now())
    }

    /// The time since it began.
    pub fn now(&self) -> Time {
        Time::ZERO + moment::now().duration_since(self.0).into()
    }

    /// The instant that a time of this clock stands for.
    #[cfg(test)]
    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.0 + time.since(Time::ZERO).into()
    }

    /// The arrival times of a batch of datagrams, from the kernel's time stamps: by the time a
    /// datagram is read it may have waited for others to be handled, which is no part of the path.
    pub fn arrivals(&self) -> impl Fn(Option<core::time::Duration>) -> Time + use<> {
        // In this order, a pause between the two readings makes arrivals late, never early.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = self.now();
        move |stamp| {
            let age = stamp.and_then(|stamp| wall.checked_sub(stamp)).map(Duration::from);
            age.filter(|age| *age < OLDEST).map_or(now, |age| now - age)
        }
    }
}
