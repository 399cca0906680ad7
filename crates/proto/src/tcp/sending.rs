use fontis_base::{Duration, Prefetch, Time, prefetch};

use super::config::TcpConfig;
use super::rtt::RttEstimator;
use super::scoreboard::{Blocks, Piece};
use super::sender::{PeerAck, Sender};
use super::stats::SenderStats;
use crate::congestion::sample::Phase;

/// The sending half of an endpoint as the endpoint sees it. A [`Sender`] is made when there is
/// something to send: of thousands of receivers none needs one before the end.
#[derive(Clone, Debug)]
pub(super) enum Sending {
    /// There was nothing to send so far.
    Nothing(Box<Terms>),
    /// There was something.
    Something(Box<Sender>),
}

/// What a sender begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    segment_len: u32,
    sack: bool,
    salt: u32,
    /// The handshake was lost once.
    lossy: bool,
    /// The round-trip time that the handshake has measured.
    rtt: Option<Duration>,
    /// It was asked for a segment when it had none.
    asked: bool,
}

impl Prefetch for Sending {
    /// How many pointers are followed: one leads to the sender, another to what it points to.
    type Part = u8;

    fn prefetch(&self, part: u8) {
        match (part, self.sender()) {
            (1, Some(sender)) => prefetch(sender),
            (2, Some(sender)) => sender.prefetch(()),
            _ => {}
        }
    }
}

impl Sending {
    pub(super) fn new(segment_len: u32, sack: bool, salt: u32) -> Self {
        let terms = Terms { segment_len, sack, salt, lossy: false, rtt: None, asked: false };
        Self::Nothing(Box::new(terms))
    }

    fn sender(&self) -> Option<&Sender> {
        match self {
            Self::Nothing(_) => None,
            Self::Something(sender) => Some(sender),
        }
    }

    fn sender_mut(&mut self) -> Option<&mut Sender> {
        match self {
            Self::Nothing(_) => None,
            Self::Something(sender) => Some(sender),
        }
    }

    /// The sender, which is made if there is none.
    fn begin(&mut self, config: &TcpConfig) -> &mut Sender {
        if let Self::Nothing(terms) = self {
            let Terms { segment_len, sack, salt, lossy, rtt, asked } = **terms;
            let mut sender = Sender::new(config, segment_len, sack, u64::from(salt));
            sender.on_handshake(lossy, rtt);
            if asked {
                sender.set_app_limited();
            }
            *self = Self::Something(Box::new(sender));
        }
        match self {
            Self::Something(sender) => sender,
            Self::Nothing(_) => unreachable!("one was made"),
        }
    }

    pub(super) fn write(&mut self, config: &TcpConfig, bytes: u64) {
        self.begin(config).write(bytes);
    }

    pub(super) fn finish(&mut self, config: &TcpConfig) {
        self.begin(config).finish();
    }

    /// Begins anew with what both sides have agreed on; what was written stays.
    pub(super) fn agree(&mut self, config: &TcpConfig, segment_len: u32, sack: bool, salt: u32) {
        let old = core::mem::replace(self, Self::new(segment_len, sack, salt));
        if let Self::Something(old) = old {
            self.write(config, old.written());
            if old.is_finished() {
                self.finish(config);
            }
        }
    }

    /// The handshake is over: whether parts of it were lost, and what it has measured.
    pub(super) fn on_handshake(&mut self, lossy: bool, rtt: Option<Duration>) {
        match self {
            Self::Nothing(terms) => **terms = Terms { lossy, rtt, ..**terms },
            Self::Something(sender) => sender.on_handshake(lossy, rtt),
        }
    }

    /// See [`Sender::on_ack`].
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        peer: PeerAck,
        blocks: Blocks<'_>,
        config: &TcpConfig,
    ) {
        if let Self::Something(sender) = self {
            sender.on_ack(now, peer, blocks, config);
        }
    }

    /// See [`Sender::next`].
    pub(super) fn next(&mut self, now: Time, window_end: u64, config: &TcpConfig) -> Option<Piece> {
        match self {
            Self::Something(sender) => sender.next(now, window_end, config),
            Self::Nothing(terms) => {
                terms.asked = true;
                None
            }
        }
    }

    /// Acts on the timers that are due; false if the connection is to be given up.
    pub(super) fn on_time(&mut self, now: Time, window_end: u64, config: &TcpConfig) -> bool {
        match self {
            Self::Something(sender) if sender.has_expired(now) => {
                sender.on_time(now, window_end, config)
            }
            _ => true,
        }
    }

    /// See [`Sender::timeout`].
    #[inline(always)]
    pub(super) fn timeout(&self) -> (Time, &'static str) {
        self.sender().map_or((Time::MAX, ""), Sender::timeout)
    }

    pub(super) fn take_cwr(&mut self) -> bool {
        self.sender_mut().is_some_and(Sender::take_cwr)
    }

    pub(super) fn take_window_probe(&mut self) -> bool {
        self.sender_mut().is_some_and(Sender::take_window_probe)
    }

    pub(super) fn una(&self) -> u64 {
        self.sender().map_or(0, Sender::una)
    }

    pub(super) fn nxt(&self) -> u64 {
        self.sender().map_or(0, Sender::nxt)
    }

    pub(super) fn written(&self) -> u64 {
        self.sender().map_or(0, Sender::written)
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.sender().map_or(0, Sender::acknowledged)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.sender().is_some_and(Sender::is_finished)
    }

    pub(super) fn is_done(&self) -> bool {
        self.sender().is_some_and(Sender::is_done)
    }

    pub(super) fn fin_sent(&self) -> bool {
        self.sender().is_some_and(Sender::fin_sent)
    }

    pub(super) fn phase(&self) -> Phase {
        self.sender().map_or(Phase::Open, Sender::phase)
    }

    pub(super) fn stats(&self, config: &TcpConfig) -> SenderStats {
        let Terms { segment_len, lossy, rtt, .. } = match self {
            Self::Nothing(terms) => **terms,
            Self::Something(sender) => return sender.stats(config),
        };
        let mut estimator = RttEstimator::new();
        if let Some(rtt) = rtt {
            estimator.sample(rtt, rtt);
        }
        let segments = if lossy { 1 } else { config.initial_window };
        SenderStats {
            cwnd: u64::from(segments) * u64::from(segment_len),
            ssthresh: u64::MAX,
            srtt: estimator.srtt(),
            min_rtt: rtt,
            rto: estimator.rto(config),
            ..SenderStats::default()
        }
    }
}
