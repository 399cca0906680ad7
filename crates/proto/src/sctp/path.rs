//! A path: a pair of addresses with a window, timers and a record of answers.

use core::net::IpAddr;
use std::collections::VecDeque;

use fontis_base::{Duration, Time};

use super::config::{LossRecovery, SctpConfig, SctpTimers};
use super::flight::Departure;
use super::held::LossProof;
use super::message::{SctpPath, SctpPathState};
use super::rack::{PathRack, TailProbe};
use crate::congestion::control::CongestionControl;
use crate::congestion::coupling::{CoupledPath, LossGap};
use crate::congestion::table::Setup;
use crate::path_mtu::Mtu;

#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) local: IpAddr,
    pub(super) peer: IpAddr,
    pub(super) state: SctpPathState,
    pub(super) congestion: Box<dyn CongestionControl>,
    /// What it carries between losses.
    pub(super) gap: LossGap,
    /// Bytes of content in flight.
    pub(super) in_flight: u64,
    /// Copies that are on their way no more, and that nothing has told of: the timer tells.
    pub(super) untold: u64,
    /// Repairs that count as in flight: the order of the next departure when they left, and bytes.
    repairs: VecDeque<(u64, u64)>,
    repair_bytes: u64,
    /// What its repaired losses tell.
    pub(super) proof: LossProof,
    /// The newest round-trip time.
    pub(super) newest_rtt: Option<Duration>,
    /// The last departure that has been acknowledged.
    pub(super) acknowledged: u64,
    /// Departures in order: TSNs with their order; those that are not in flight any more are
    /// skipped.
    pub(super) departures: VecDeque<(u64, u64)>,
    /// What tells its losses by time, if that does.
    pub(super) rack: Option<Box<PathRack>>,
    /// The order of the next departure when the window was last reduced: losses before it belong to
    /// that reduction.
    pub(super) reduced_at: u64,
    /// Whether losses are being repaired.
    pub(super) is_recovering: bool,
    /// Whether the timer expired and what left since has not arrived.
    pub(super) after_timeout: bool,
    /// A packet may leave although the window is full: the first that is sent again by reports.
    pub(super) has_fast_packet: bool,
    /// Whether the window was full when a driver last asked for packets.
    pub(super) is_limited: bool,
    /// Packets that may still leave before the next acknowledgement.
    pub(super) burst: u32,
    /// When the timer of its data expires (T3-rtx).
    pub(super) expires: Option<Time>,
    /// Failures in a row.
    pub(super) failures: u32,
    pub(super) estimator: Estimator,
    /// When a heartbeat is due.
    pub(super) heartbeat_at: Time,
    /// The heartbeat that has no answer: its nonce, and when it left.
    pub(super) heartbeat: Option<(u64, Time)>,
    /// The packets that it carries, and the nonce and size of the probe that may be answered.
    pub(super) mtu: Mtu,
    pub(super) mtu_probe: Option<(u64, u32)>,
    /// Delay to the peer by the two clocks in nanoseconds, smoothed.
    pub(super) forward: Option<i64>,
    /// Bytes sent, and chunks sent and lost.
    pub(super) sent: u64,
    pub(super) chunks: u64,
    pub(super) lost: u64,
    /// When data last left.
    pub(super) used_at: Time,
}

impl Path {
    pub(super) fn new(now: Time, local: IpAddr, peer: IpAddr, config: &SctpConfig) -> Self {
        let mtu = u64::from(config.mtu);
        // RFC 9260 section 7.2.1.
        let usual = (4 * mtu).min((2 * mtu).max(4404));
        let initial_window = config.first_window.map_or(usual, |packets| mtu * u64::from(packets));
        let congestion = match &config.foreign {
            Some(foreign) => foreign.make(mtu, initial_window),
            None => config.congestion.start(Setup { mss: mtu, initial_window, salt: 0 }),
        };
        Self {
            local,
            peer,
            state: SctpPathState::Unconfirmed,
            congestion,
            gap: LossGap::default(),
            in_flight: 0,
            untold: 0,
            repairs: VecDeque::new(),
            repair_bytes: 0,
            proof: LossProof::default(),
            newest_rtt: None,
            acknowledged: 0,
            departures: VecDeque::new(),
            rack: (config.recovery == LossRecovery::RackTlp).then(Box::default),
            reduced_at: 0,
            is_recovering: false,
            after_timeout: false,
            has_fast_packet: false,
            is_limited: false,
            burst: u32::MAX,
            expires: None,
            failures: 0,
            estimator: Estimator::new(&config.timers),
            heartbeat_at: now,
            heartbeat: None,
            mtu: Mtu::new(config.mtu, config.most_mtu),
            mtu_probe: None,
            forward: None,
            sent: 0,
            chunks: 0,
            lost: 0,
            used_at: now,
        }
    }

    /// What its coupling with others sees.
    pub(super) fn coupled(&self) -> CoupledPath {
        let rtt = self.estimator.srtt.unwrap_or(self.estimator.rto);
        CoupledPath { window: self.congestion.cwnd() as f64, rtt, carried: self.gap.bytes() }
    }

    /// Whether a packet with data may leave.
    pub(super) fn has_room(&self) -> bool {
        let has_window = self.burst > 0 && self.occupied() < self.congestion.cwnd();
        self.is_confirmed() && (has_window || self.is_probe_due())
    }

    /// Whether the next packet is a probe of the tail.
    pub(super) fn is_probe_due(&self) -> bool {
        self.rack.as_ref().is_some_and(|rack| rack.is_probe_due)
    }

    /// A copy leaves that is the probe of the tail, if one is due. Whether it is.
    pub(super) fn take_probe(&mut self, order: u64, now: Time) -> bool {
        let Some(rack) = self.rack.as_mut().filter(|rack| rack.is_probe_due) else { return false };
        (rack.is_probe_due, rack.has_sample) = (false, false);
        rack.probe = Some(TailProbe { order, left: now, repeats: None });
        true
    }

    /// Nothing is in flight any more, or what is counts as lost.
    pub(super) fn stop_rack(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.stop();
        }
    }

    /// Whether both of its addresses are there.
    pub(super) fn is_there(&self) -> bool {
        self.state != SctpPathState::Removed
    }

    /// Whether its queue is short: the newest packets took hardly longer than the fastest.
    pub(super) fn is_calm(&self, mtu: u32) -> bool {
        let (Some(rtt), Some(srtt)) = (self.newest_rtt, self.estimator.srtt) else { return false };
        let packets = (self.congestion.cwnd() / u64::from(mtu)).max(1);
        let least = self.estimator.least;
        rtt <= least + least / 8 + srtt * 2 / packets
    }

    /// Bytes that take room in its window.
    pub(super) const fn occupied(&self) -> u64 {
        // Without data in flight nothing would tell that repairs are there no more.
        if self.in_flight == 0 { 0 } else { self.in_flight + self.repair_bytes }
    }

    /// A repair leaves before the departure `order`.
    pub(super) fn charge_repair(&mut self, order: u64, bytes: u64) {
        self.repairs.push_back((order, bytes));
        self.repair_bytes += bytes;
    }

    /// A copy of so many bytes has come, is lost or is given up.
    pub(super) const fn settle(&mut self, departure: Departure, bytes: u64) {
        if departure.is_out {
            self.untold = self.untold.saturating_sub(1);
        } else {
            self.in_flight = self.in_flight.saturating_sub(bytes);
        }
    }

    /// A copy is on its way no more.
    pub(super) const fn note_out(&mut self, departure: &mut Departure, bytes: u64) {
        if !departure.is_out {
            departure.is_out = true;
            self.in_flight = self.in_flight.saturating_sub(bytes);
            self.untold += 1;
        }
    }

    /// Whether its timer must run.
    pub(super) const fn has_open(&self) -> bool {
        self.in_flight > 0 || self.untold > 0
    }

    /// Data leave.
    pub(super) fn charge(&mut self, bytes: u64) {
        self.settle_repairs(0);
        self.in_flight += bytes;
    }

    /// Repairs that left before the departure `order` are in flight no more: nobody acknowledges
    /// them, but what left after them has come.
    pub(super) fn settle_repairs(&mut self, order: u64) {
        while let Some((left, bytes)) = self.repairs.front().copied()
            && (left <= order || self.in_flight == 0)
        {
            self.repairs.pop_front();
            self.repair_bytes -= bytes;
        }
    }

    /// Whether it carries data while others are there.
    pub(super) fn is_active(&self) -> bool {
        self.state == SctpPathState::Active
    }

    /// Whether a peer is known to be at its end.
    pub(super) fn is_confirmed(&self) -> bool {
        !matches!(self.state, SctpPathState::Unconfirmed | SctpPathState::Removed)
    }

    /// The share of its chunks that were lost.
    pub(super) fn loss(&self) -> f64 {
        self.lost as f64 / self.chunks.max(1) as f64
    }

    /// Its state for the application.
    pub(super) fn view(&self) -> SctpPath {
        SctpPath {
            ends: [self.local, self.peer],
            state: self.state,
            srtt: self.estimator.srtt,
            min_rtt: self.estimator.srtt.map(|_| self.estimator.least),
            rto: self.estimator.rto,
            forward_delay: self.forward,
            window: self.congestion.cwnd(),
            threshold: self.congestion.ssthresh(),
            in_flight: self.in_flight,
            sent: self.sent,
            expires: self.expires,
            mtu: self.mtu.size(),
        }
    }
}

/// The estimate of the round-trip time and the timeout (RFC 9260 section 6.3.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimator {
    pub(super) srtt: Option<Duration>,
    pub(super) deviation: Duration,
    pub(super) least: Duration,
    pub(super) rto: Duration,
    floor: Duration,
    ceiling: Duration,
}

impl Estimator {
    const fn new(timers: &SctpTimers) -> Self {
        Self {
            srtt: None,
            deviation: Duration::ZERO,
            least: Duration::MAX,
            rto: timers.initial,
            floor: timers.least,
            ceiling: timers.most,
        }
    }

    pub(super) fn sample(&mut self, rtt: Duration) {
        self.least = self.least.min(rtt);
        let srtt = match self.srtt {
            None => {
                self.deviation = rtt / 2;
                rtt
            }
            Some(srtt) => {
                let error = Duration::from_nanos(srtt.as_nanos().abs_diff(rtt.as_nanos()));
                // Beta is 1/4 and alpha 1/8 (rule C3).
                self.deviation = (self.deviation * 3 + error) / 4;
                (srtt * 7 + rtt) / 8
            }
        };
        self.srtt = Some(srtt);
        self.rto = (srtt + self.deviation * 4).max(self.floor).min(self.ceiling);
    }

    /// The timer has expired (rule E2).
    pub(super) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.ceiling);
    }
}
