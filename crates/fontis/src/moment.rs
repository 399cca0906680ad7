//! The time: the edge between the library and the machine's clock.

use std::time::{Duration, Instant};

/// The present time. Tests of the whole library simulate it.
#[cfg(not(test))]
#[inline]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
pub(crate) fn now() -> Instant {
    crate::whole::world::instant().unwrap_or_else(Instant::now)
}

/// Waits, on a thread for work that blocks.
pub(crate) fn pause(time: Duration) {
    #[cfg(test)]
    if crate::whole::world::pause(time) {
        return;
    }
    std::thread::sleep(time);
}
