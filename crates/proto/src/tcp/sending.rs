use fontis_base::{Duration, Time, prefetch};

use super::config::Config;
use super::congestion::Phase;
use super::rtt::RttEstimator;
use super::scoreboard::Piece;
use super::sender::{PeerAck, Sender};
use super::stats::SenderStats;

/// The sending half of an endpoint as the endpoint sees it. A [`Sender`] is made when there is something to send: of
/// thousands of receivers none needs one before the end.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    sender: Option<Box<Sender>>,
    terms: Terms,
}

/// What a sender begins with.
#[derive(Clone, Copy, Debug)]
struct Terms {
    segment_len: u32,
    sack: bool,
    salt: u32,
    /// The handshake was lost once.
    lossy: bool,
    /// The round-trip time that the handshake has measured; [`Duration::MAX`] if none.
    rtt: Duration,
    window_end: u64,
    /// It was asked for a segment when it had none.
    asked: bool,
}

impl Terms {
    fn measured(&self) -> Option<Duration> {
        (self.rtt < Duration::MAX).then_some(self.rtt)
    }
}

impl Sending {
    pub(super) fn new(segment_len: u32, sack: bool, salt: u32) -> Self {
        let (lossy, rtt, window_end, asked) = (false, Duration::MAX, 0, false);
        let terms = Terms { segment_len, sack, salt, lossy, rtt, window_end, asked };
        Self { sender: None, terms }
    }

    /// The sender, which is made if there is none.
    fn sender(&mut self, config: &Config) -> &mut Sender {
        let terms = self.terms;
        self.sender.get_or_insert_with(|| {
            let mut sender =
                Sender::new(config, terms.segment_len, terms.sack, u64::from(terms.salt));
            if terms.lossy {
                sender.lose_initial_window();
            }
            sender.on_handshake(terms.measured(), terms.window_end);
            if terms.asked {
                sender.set_app_limited();
            }
            Box::new(sender)
        })
    }

    /// Brings the sender into the cache.
    pub(super) fn bring_near(&self) {
        if let Some(sender) = &self.sender {
            prefetch(&**sender);
        }
    }

    /// Brings into the cache what the sender points to.
    pub(super) fn bring_contents_near(&self) {
        if let Some(sender) = &self.sender {
            sender.bring_contents_near();
        }
    }

    pub(super) fn write(&mut self, config: &Config, bytes: u64) {
        self.sender(config).write(bytes);
    }

    pub(super) fn finish(&mut self, config: &Config) {
        self.sender(config).finish();
    }

    /// Begins anew with what both sides have agreed on; what was written stays.
    pub(super) fn agree(&mut self, config: &Config, segment_len: u32, sack: bool) {
        let old = core::mem::replace(self, Self::new(segment_len, sack, self.terms.salt));
        if let Some(old) = old.sender {
            self.write(config, old.written());
            if old.is_finished() {
                self.finish(config);
            }
        }
    }

    /// The handshake is over: whether parts of it were lost, what it has measured, and the peer's window.
    pub(super) fn on_handshake(&mut self, lossy: bool, rtt: Option<Duration>, window: u64) {
        let measured = rtt.unwrap_or(Duration::MAX);
        self.terms = Terms { lossy, rtt: measured, window_end: window, ..self.terms };
        if let Some(sender) = &mut self.sender {
            if lossy {
                sender.lose_initial_window();
            }
            sender.on_handshake(rtt, window);
        }
    }

    /// See [`Sender::on_ack`].
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        peer: PeerAck,
        blocks: impl Iterator<Item = (u64, u64)>,
    ) {
        match &mut self.sender {
            Some(sender) => sender.on_ack(now, peer, blocks),
            None => self.terms.window_end = peer.window_end.unwrap_or(self.terms.window_end),
        }
    }

    /// See [`Sender::next`].
    pub(super) fn next(&mut self, now: Time) -> Option<Piece> {
        match &mut self.sender {
            Some(sender) => sender.next(now),
            None => {
                self.terms.asked = true;
                None
            }
        }
    }

    /// Acts on the timers that are due; false if the connection is to be given up.
    pub(super) fn on_time(&mut self, now: Time) -> bool {
        match &mut self.sender {
            Some(sender) if sender.has_expired(now) => sender.on_time(now),
            _ => true,
        }
    }

    /// See [`Sender::timeout`].
    #[inline(always)]
    pub(super) fn timeout(&self) -> (Time, &'static str) {
        self.sender.as_ref().map_or((Time::MAX, ""), |sender| sender.timeout())
    }

    pub(super) fn take_cwr(&mut self) -> bool {
        self.sender.as_mut().is_some_and(|sender| sender.take_cwr())
    }

    pub(super) fn take_window_probe(&mut self) -> bool {
        self.sender.as_mut().is_some_and(|sender| sender.take_window_probe())
    }

    pub(super) fn una(&self) -> u64 {
        self.sender.as_ref().map_or(0, |sender| sender.una())
    }

    pub(super) fn nxt(&self) -> u64 {
        self.sender.as_ref().map_or(0, |sender| sender.nxt())
    }

    pub(super) fn written(&self) -> u64 {
        self.sender.as_ref().map_or(0, |sender| sender.written())
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.sender.as_ref().map_or(0, |sender| sender.acknowledged())
    }

    pub(super) fn is_finished(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.is_finished())
    }

    pub(super) fn is_done(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.is_done())
    }

    pub(super) fn fin_sent(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.fin_sent())
    }

    pub(super) fn phase(&self) -> Phase {
        self.sender.as_ref().map_or(Phase::Open, |sender| sender.phase())
    }

    pub(super) fn stats(&self, config: &Config) -> SenderStats {
        if let Some(sender) = &self.sender {
            return sender.stats();
        }
        let Terms { segment_len, lossy, .. } = self.terms;
        let measured = self.terms.measured();
        let mut rtt = RttEstimator::new(config.initial_rto, config.min_rto);
        if let Some(measured) = measured {
            rtt.sample(measured, measured);
        }
        let segments = if lossy { 1 } else { config.initial_window };
        SenderStats {
            cwnd: u64::from(segments) * u64::from(segment_len),
            ssthresh: u64::MAX,
            srtt: rtt.srtt(),
            min_rtt: measured,
            rto: rtt.rto(),
            ..SenderStats::default()
        }
    }
}
