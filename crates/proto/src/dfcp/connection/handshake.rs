use fontis_base::{Duration, Time};

use super::super::config::Timers;

/// Copies of the SYN before the first timeout.
const FAST_COPIES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(30),
    Duration::from_millis(90),
    Duration::from_millis(270),
];
/// Retries after the first timeout of a second, as published.
const RETRIES: u32 = 5;

/// The retransmission schedule of a handshake message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    timers: Timers,
    began: Time,
    sent: u32,
    due: Time,
    /// The peer has asked again: the answer does not count as a retry.
    asked: bool,
}

impl Handshake {
    pub(super) fn new(timers: Timers) -> Self {
        Self { timers, began: Time::ZERO, sent: 0, due: Time::MAX, asked: false }
    }

    pub(super) fn begin(&mut self, now: Time) {
        self.began = now;
        self.due = now;
    }

    pub(super) const fn began(&self) -> Time {
        self.began
    }

    /// When the next copy is due.
    pub(super) const fn due(&self) -> Time {
        if self.asked { Time::ZERO } else { self.due }
    }

    /// The peer asks again: answer at once.
    pub(super) const fn again(&mut self) {
        self.asked = true;
    }

    /// A copy leaves now; the next is due later.
    pub(super) fn sent(&mut self, now: Time) {
        if core::mem::take(&mut self.asked) {
            return;
        }
        self.sent += 1;
        let copies = match self.timers {
            Timers::Fast => &FAST_COPIES[..],
            Timers::Published => &FAST_COPIES[..1],
        };
        self.due = match copies.get(self.sent as usize) {
            Some(offset) => (self.began + *offset).max(now),
            None => now + Duration::from_secs(1 << (self.sent as usize - copies.len()).min(16)),
        };
    }

    /// Whether all copies have been sent, and nobody asks for more.
    pub(super) const fn is_exhausted(&self) -> bool {
        if self.asked {
            return false;
        }
        let copies = match self.timers {
            Timers::Fast => FAST_COPIES.len() as u32,
            Timers::Published => 1,
        };
        self.sent >= copies + RETRIES
    }
}
