//! The rate of a cast by TCP-friendly multicast congestion control, TFMCC (RFC 4654): that of the
//! receiver for which the TCP equation allows the least.

use std::collections::BTreeSet;

use fontis_base::{Duration, Rate, Time};

use super::config::CastRate;
use super::packet::CastReport;
use crate::rate::tfrc;

/// Bytes of a packet's headers: IP, UDP, and those of the datagram.
pub(super) const HEADERS: u32 = 28 + 45;
/// The time after which a receiver that says nothing no longer bounds the rate: ten times the
/// longest round trip, and this at least (RFC 4654, section 2.6.4).
const PATIENCE: Duration = Duration::from_secs(1);
/// A rate without any report for so long is halved.
const BLIND: Duration = Duration::from_secs(2);
/// After so long without any report while nothing was sent, the rate begins anew.
const OUTDATED: Duration = Duration::from_secs(10);

/// What the receiver allows that bounds the rate: the current limiting receiver of RFC 4654.
#[derive(Clone, Copy, Debug)]
struct Limiting {
    member: u32,
    /// Bytes a second.
    rate: f64,
    round_trip: Duration,
    heard: Time,
}

/// The rate of a cast.
#[derive(Debug)]
pub(super) struct GroupRate {
    choice: CastRate,
    /// Bytes of symbols and headers in a packet, and of symbols only.
    packet: f64,
    symbol: f64,
    /// Packets with headers, in bytes a second: at the beginning, and now.
    first: f64,
    rate: f64,
    limiting: Option<Limiting>,
    /// Receivers that allow less than the least rate.
    slow: BTreeSet<u32>,
    /// Whether any receiver has lost something.
    has_lost: bool,
    /// The least that a receiver has said to arrive since the rate rose, in bytes a second.
    arriving: Option<f64>,
    rise_at: Time,
    heard: Time,
}

impl GroupRate {
    pub(super) fn new(choice: CastRate, symbol: u16) -> Self {
        let (symbol, packet) = (f64::from(symbol), f64::from(u32::from(symbol) + HEADERS));
        let first = match choice {
            CastRate::Fixed(rate) => rate.as_bps() as f64 / 8.0 * packet / symbol,
            // Four packets in an assumed round trip of half a second (RFC 4654, section 2.6.1).
            CastRate::Tfmcc { least, .. } => {
                (packet * 8.0).max(least.as_bps() as f64 / 8.0 * packet / symbol)
            }
        };
        Self {
            choice,
            packet,
            symbol,
            first,
            rate: first,
            limiting: None,
            slow: BTreeSet::new(),
            has_lost: false,
            arriving: None,
            rise_at: Time::ZERO,
            heard: Time::ZERO,
        }
    }

    /// The rate of symbols.
    pub(super) fn rate(&self) -> Rate {
        match self.choice {
            CastRate::Fixed(rate) => rate,
            CastRate::Tfmcc { .. } => {
                Rate::from_bps((self.rate * 8.0 * self.symbol / self.packet) as u64)
            }
        }
    }

    /// Whether it follows what receivers say.
    pub(super) const fn adapts(&self) -> bool {
        matches!(self.choice, CastRate::Tfmcc { .. })
    }

    /// The receiver that bounds the rate.
    pub(super) fn limiting(&self) -> Option<u32> {
        self.limiting.map(|one| one.member)
    }

    fn bounds(&self) -> (f64, f64) {
        let scale = self.packet / self.symbol / 8.0;
        match self.choice {
            CastRate::Fixed(rate) => (rate.as_bps() as f64 * scale, rate.as_bps() as f64 * scale),
            CastRate::Tfmcc { least, most } => {
                (least.as_bps() as f64 * scale, most.as_bps() as f64 * scale)
            }
        }
    }

    fn set(&mut self, rate: f64) {
        let (least, most) = self.bounds();
        // A packet in eight seconds is the least that RFC 5348 knows (section 4.3).
        self.rate = rate.clamp(least.max(self.packet / 8.0), most.max(self.packet / 8.0));
    }

    /// Takes what a receiver says, to which this is the round trip.
    pub(super) fn heard(
        &mut self,
        member: u32,
        report: &CastReport,
        round_trip: Duration,
        now: Time,
    ) {
        if !self.adapts() {
            return;
        }
        self.heard = now;
        let arriving = report.received as f64;
        self.arriving = Some(self.arriving.map_or(arriving, |least| least.min(arriving)));
        let losses = f64::from(report.loss_events) / 1e6;
        if losses > 0.0 && !self.has_lost {
            self.has_lost = true;
            self.rise_at = now + round_trip;
        }
        let rtt = round_trip.as_secs_f64().max(1e-3);
        let rate = match losses {
            0.0 => f64::INFINITY,
            losses => tfrc::throughput(self.packet, rtt, 4.0 * rtt, losses),
        };
        let is_slow = rate < self.bounds().0;
        // A receiver that allows less than the least rate does not bound the others.
        if losses <= 0.0 || is_slow {
            self.forget(member);
            if is_slow {
                self.slow.insert(member);
            }
            return;
        }
        self.slow.remove(&member);
        let is_limiting = self.limiting() == Some(member);
        if !is_limiting && self.limiting.is_some_and(|one| one.rate <= rate) {
            return;
        }
        self.limiting = Some(Limiting { member, rate, round_trip, heard: now });
        if rate < self.rate {
            self.set(rate);
        }
    }

    /// A receiver bounds the rate no more: it is gone, has everything, or loses nothing. Others who
    /// allow less than the rate say so when it rises.
    pub(super) fn forget(&mut self, member: u32) {
        self.slow.remove(&member);
        if self.limiting() == Some(member) {
            self.limiting = None;
        }
    }

    /// Symbols leave again, after a time in which nobody had a reason to report.
    pub(super) fn resume(&mut self, now: Time) {
        if now.since(self.heard) > OUTDATED {
            // What was known of the paths may be true no more.
            (self.rate, self.limiting, self.has_lost) = (self.first, None, false);
        }
        self.heard = now;
        self.rise_at = self.rise_at.max(now);
    }

    /// Lets time pass while symbols are sent; `round_trip` is the longest, and `receivers` counts
    /// those that lack something.
    pub(super) fn pass(
        &mut self,
        now: Time,
        round_trip: Duration,
        receivers: impl FnOnce() -> usize,
    ) {
        if !self.adapts() || now < self.rise_at {
            return;
        }
        let patience = PATIENCE.max(round_trip * 10);
        if self.limiting.is_some_and(|one| now.since(one.heard) > patience) {
            self.limiting = None;
        }
        if self.limiting.is_none() && !self.slow.is_empty() && self.slow.len() >= receivers() {
            // Nobody is left whom the slow ones would hold up.
            self.rise_at = now + round_trip.max(Duration::from_millis(1));
            self.set(0.0);
            return;
        }
        if now.since(self.heard) > BLIND.max(round_trip * 4) {
            self.set(self.rate / 2.0);
            self.rise_at = now + BLIND;
            return;
        }
        let step = self.limiting.map_or(round_trip, |one| one.round_trip);
        let step = step.max(Duration::from_millis(1));
        self.rise_at = now + step;
        match self.limiting {
            // At most one packet a round trip more in each (RFC 4654, section 2.6.2).
            Some(bound) => {
                let more = self.rate + self.packet / step.as_secs_f64();
                self.set(more.min(bound.rate));
            }
            None if self.has_lost => self.set(self.rate + self.packet / step.as_secs_f64()),
            // Slow start: at most twice what arrives everywhere (RFC 4654, section 2.6.1).
            None => {
                if let Some(arriving) = self.arriving.take() {
                    self.set((arriving * 2.0).clamp(self.rate, self.rate * 2.0));
                }
            }
        }
    }
}
