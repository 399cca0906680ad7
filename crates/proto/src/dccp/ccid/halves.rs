use fontis_base::{Duration, Rate, Time};

use super::path::{DccpPath, Incoming};
use super::rate::{RateReceiver, RateSender};
use super::window::{WindowReceiver, WindowSender};
use crate::dccp::config::{Ccid, DccpConfig};
use crate::dccp::number::DccpSeq;
use crate::dccp::option::DccpOption;

/// The sender's half.
#[derive(Clone, Debug)]
pub(crate) enum CcidSender {
    Window(Box<WindowSender>),
    Rate(Box<RateSender>),
}

/// The receiver's half.
#[derive(Clone, Debug)]
pub(crate) enum CcidReceiver {
    Window(Box<WindowReceiver>),
    Rate(Box<RateReceiver>),
}

impl CcidSender {
    /// The sender's half of `ccid`.
    pub(crate) fn new(ccid: Ccid, config: &DccpConfig, now: Time) -> Self {
        match ccid {
            Ccid::Two => Self::Window(Box::new(WindowSender::new(config))),
            Ccid::Three | Ccid::Four => {
                Self::Rate(Box::new(RateSender::new(config, ccid == Ccid::Four, now)))
            }
        }
    }

    /// When a data packet may leave; [`Time::MAX`] if not before an acknowledgement.
    pub(crate) fn ready_at(&self) -> Time {
        match self {
            Self::Window(sender) => sender.ready_at(),
            Self::Rate(sender) => sender.ready_at(),
        }
    }

    /// Notes the packets that may be in flight before the peer takes new ones for forged. A rate
    /// grows so slowly that its Sequence Window can follow.
    pub(crate) const fn bound(&mut self, packets: u64) {
        if let Self::Window(sender) = self {
            sender.bound(packets);
        }
    }

    /// Notes that a data packet waits.
    pub(crate) fn on_limited(&mut self, now: Time) {
        match self {
            Self::Window(sender) => sender.on_limited(),
            Self::Rate(sender) => sender.on_limited(now),
        }
    }

    /// Notes that a packet leaves, with `data` bytes if it carries data. Returns its CCVal, and
    /// appends its options.
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        seq: DccpSeq,
        data: Option<u32>,
        options: &mut Vec<DccpOption>,
    ) -> u8 {
        match self {
            Self::Window(sender) => {
                sender.on_sent(now, seq, data);
                0
            }
            Self::Rate(sender) => sender.on_sent(now, seq, data, options),
        }
    }

    /// Takes an acknowledgement with its options.
    pub(crate) fn on_ack(&mut self, now: Time, ack: DccpSeq, options: &[DccpOption]) {
        match self {
            Self::Window(sender) => sender.on_ack(now, ack, options),
            Self::Rate(sender) => sender.on_ack(now, ack, options),
        }
    }

    /// When its timer expires.
    pub(crate) fn timeout(&self) -> Time {
        match self {
            Self::Window(sender) => sender.timeout(),
            Self::Rate(sender) => sender.timeout(),
        }
    }

    /// Handles the expiry of its timer, if it has expired.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        match self {
            Self::Window(sender) => sender.on_timeout(now),
            Self::Rate(sender) => sender.on_timeout(now),
        }
    }

    /// Whether the next packet should acknowledge, so that the receiver can forget.
    pub(crate) fn wants_ack(&self) -> bool {
        match self {
            Self::Window(sender) => sender.wants_ack(),
            Self::Rate(_) => false,
        }
    }

    /// Notes that the packet that leaves acknowledges.
    pub(crate) fn on_acknowledging(&mut self) {
        if let Self::Window(sender) = self {
            sender.on_acknowledging();
        }
    }

    /// The mean round-trip time.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        match self {
            Self::Window(sender) => sender.rtt(),
            Self::Rate(sender) => sender.rtt(),
        }
    }

    /// Its state.
    pub(crate) fn path(&self) -> DccpPath {
        match self {
            Self::Window(sender) => sender.path(),
            Self::Rate(sender) => sender.path(),
        }
    }
}

impl CcidReceiver {
    /// The receiver's half of `ccid`. Packets are counted from `first`.
    pub(crate) fn new(ccid: Ccid, config: &DccpConfig, first: DccpSeq) -> Self {
        match ccid {
            Ccid::Two => Self::Window(Box::new(WindowReceiver::new(config.ack_ratio))),
            Ccid::Three | Ccid::Four => {
                Self::Rate(Box::new(RateReceiver::new(config, ccid == Ccid::Four, first)))
            }
        }
    }

    /// Notes the arrival of a packet that [`CcidReceiver::handle`] takes now or later.
    pub(crate) fn on_arrival(&mut self, now: Time, seq: DccpSeq) {
        if let Self::Rate(receiver) = self {
            receiver.on_arrival(now, seq);
        }
    }

    /// Whether it acknowledges every few packets, and is itself acknowledged.
    pub(crate) const fn is_window(&self) -> bool {
        matches!(self, Self::Window(_))
    }

    /// The receive rate, of a control that measures it.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match self {
            Self::Window(_) => None,
            Self::Rate(receiver) => Some(receiver.rate()),
        }
    }

    /// Takes a packet.
    pub(crate) fn handle(&mut self, now: Time, packet: &Incoming<'_>) {
        match self {
            Self::Window(receiver) => receiver.handle(now, packet),
            Self::Rate(receiver) => receiver.handle(now, packet),
        }
    }

    /// When an acknowledgement is due; [`Time::MAX`] if none is.
    pub(crate) fn due(&self) -> Time {
        match self {
            Self::Window(receiver) => receiver.due(),
            Self::Rate(receiver) => receiver.due(),
        }
    }

    /// The options of an acknowledgement that leaves as `own`, and the number that it acknowledges.
    pub(crate) fn acknowledge(&mut self, now: Time, own: DccpSeq, options: &mut Vec<DccpOption>) {
        match self {
            Self::Window(receiver) => receiver.acknowledge(now, own, options),
            Self::Rate(receiver) => receiver.acknowledge(now, options),
        }
    }

    /// Notes that the peer has got this end's packet `own`.
    pub(crate) fn on_known(&mut self, own: DccpSeq) {
        if let Self::Window(receiver) = self {
            receiver.on_known(own);
        }
    }

    /// Notes a new Ack Ratio.
    pub(crate) fn set_ack_ratio(&mut self, ratio: u64) {
        if let Self::Window(receiver) = self {
            receiver.set_ratio(ratio);
        }
    }
}
