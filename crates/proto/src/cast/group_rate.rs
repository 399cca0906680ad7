//! The rate of a cast that adapts: that of the receiver whose path allows the least. By TFMCC (RFC
//! 4654) the TCP equation says what a path allows, by `auto` the receiver finds it out.

use std::collections::BTreeSet;

use fontis_base::{Duration, Rate, Time};

use super::config::{CastLaw, CastRate};
use super::packet::CastReport;
use crate::rate::{PathDeparture, tfrc};

/// Bytes of a packet's headers: IP, UDP, and those of the datagram.
pub(super) const HEADERS: u32 = 28 + 45;
/// The time after which a receiver that says nothing no longer bounds the rate: ten times the
/// longest round trip, and this at least (RFC 4654, section 2.6.4).
const PATIENCE: Duration = Duration::from_secs(1);
/// A rate without any report for so long is halved.
const BLIND: Duration = Duration::from_secs(2);
/// Packets of the first round trip by `auto`, and the most of them in a second, as a unicast flow
/// has them.
const FIRST_FLIGHT: f64 = 64.0;
const FIRST_RATE: f64 = 9e6 / 8.0;
/// Packets that leave back to back then, whose dispersion tells receivers the rate of their paths.
pub(super) const TRAIN: u32 = 16;
/// After so long without any report while nothing was sent, the rate begins anew.
const OUTDATED: Duration = Duration::from_secs(10);

/// What the receiver allows that bounds the rate: the current limiting receiver of RFC 4654.
#[derive(Clone, Copy, Debug)]
struct Limiting {
    member: u32,
    /// Bytes a second.
    rate: f64,
    round_trip: Duration,
    /// It keeps up with flows that fill its queue.
    friendly: bool,
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
    /// When a receiver last raised it, by `auto`.
    raised_at: Time,
    heard: Time,
}

impl GroupRate {
    /// One of symbols of so many bytes, where a round trip is taken to last so long at first.
    pub(super) fn new(choice: CastRate, symbol: u16, round_trip: Duration) -> Self {
        let (symbol, packet) = (f64::from(symbol), f64::from(u32::from(symbol) + HEADERS));
        let scale = packet / symbol / 8.0;
        let first = match choice {
            CastRate::Fixed(rate) => rate.as_bps() as f64 * scale,
            // Four packets in an assumed round trip of half a second (RFC 4654, section 2.6.1).
            CastRate::Adaptive { law: CastLaw::Tfmcc, least, .. } => {
                (packet * 8.0).max(least.as_bps() as f64 * scale)
            }
            CastRate::Adaptive { law: CastLaw::Auto, least, .. } => {
                let first = FIRST_FLIGHT * packet / round_trip.as_secs_f64().max(1e-3);
                first.min(FIRST_RATE).max(least.as_bps() as f64 * scale)
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
            raised_at: Time::ZERO,
            heard: Time::ZERO,
        }
    }

    /// The rate of symbols.
    pub(super) fn rate(&self) -> Rate {
        match self.choice {
            CastRate::Fixed(rate) => rate,
            CastRate::Adaptive { .. } => {
                Rate::from_bps((self.rate * 8.0 * self.symbol / self.packet) as u64)
            }
        }
    }

    /// The law by which it follows what receivers say, if it does.
    pub(super) const fn law(&self) -> Option<CastLaw> {
        self.choice.law()
    }

    /// What a symbol that leaves now says of itself.
    pub(super) fn timing(&self, now: Time) -> Option<PathDeparture> {
        let is_wanted = self.law() == Some(CastLaw::Auto);
        is_wanted
            .then(|| PathDeparture { sent: (now.as_nanos() / 1000) as u32, pace: self.rate as u32 })
    }

    /// The receiver that bounds the rate.
    pub(super) fn limiting(&self) -> Option<u32> {
        self.limiting.map(|one| one.member)
    }

    /// Whether that one keeps up with flows that fill its queue.
    pub(super) fn is_friendly(&self) -> bool {
        self.limiting.is_some_and(|one| one.friendly)
    }

    fn bounds(&self) -> (f64, f64) {
        let scale = self.packet / self.symbol / 8.0;
        match self.choice {
            CastRate::Fixed(rate) => (rate.as_bps() as f64 * scale, rate.as_bps() as f64 * scale),
            CastRate::Adaptive { least, most, .. } => {
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
        let Some(law) = self.law() else { return };
        self.heard = now;
        let arriving = report.received as f64;
        self.arriving = Some(self.arriving.map_or(arriving, |least| least.min(arriving)));
        let losses = f64::from(report.loss_events) / 1e6;
        if losses > 0.0 && !self.has_lost {
            self.has_lost = true;
            self.rise_at = now + round_trip;
        }
        let rtt = round_trip.as_secs_f64().max(1e-3);
        let rate = match (law, report.allowed) {
            (CastLaw::Tfmcc, _) if losses > 0.0 => {
                tfrc::throughput(self.packet, rtt, 4.0 * rtt, losses)
            }
            (CastLaw::Auto, 1..) => report.allowed as f64,
            _ => f64::INFINITY,
        };
        let is_slow = rate < self.bounds().0;
        // A receiver that allows less than the least rate does not bound the others.
        if rate == f64::INFINITY || is_slow {
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
        self.limiting =
            Some(Limiting { member, rate, round_trip, friendly: report.friendly, heard: now });
        if rate < self.rate {
            self.set(rate);
        } else if law == CastLaw::Auto {
            // One that bounded nothing knows its path from long ago.
            let passed = now.since(core::mem::replace(&mut self.raised_at, now)).as_secs_f64();
            self.set(rate.min(self.rate * libm::exp2((passed / rtt).min(1.0))));
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
        let Some(law) = self.law() else { return };
        if now < self.rise_at {
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
        if law == CastLaw::Auto {
            // Receivers raise it.
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
