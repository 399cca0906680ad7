mod copies;
mod pacing;
mod timeouts;

use fontis_base::{Duration, Prefetch, Rate, Time, prefetch};

use super::config::{Recovery, TcpConfig};
use super::pacer::Pacer;
use super::rtt::RttEstimator;
use super::scoreboard::{Blocks, Losses, Piece, Progress, Scoreboard};
use super::stats::{Counters, SenderStats};
use super::timers::Timers;
use crate::congestion::control::CongestionControl;
use crate::congestion::sample::{Acknowledgement, DeliverySample, Phase};
use crate::congestion::table::Setup;

/// The half of an endpoint that sends: what is outstanding, how much may be, and what is sent again
/// when.
///
/// How it does so stands in the configuration, which is passed in: thousands of senders share one.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    board: Scoreboard,
    congestion: Box<dyn CongestionControl>,
    /// Its window, which is asked for much more often than it changes.
    cwnd: u64,
    rtt: RttEstimator,
    timers: Timers,
    pacer: Pacer,
    /// The end of what the application has written.
    written: u64,
    /// The phase ends when this position is acknowledged.
    recover: u64,
    /// The window was reduced on account of what was sent below this position.
    reduced_until: u64,
    /// The end of the last segment that was not full.
    short_until: u64,
    last_sent: Time,
    /// Segments sent with data or a FIN, copies included.
    segments: u64,
    rare: Option<Box<ColdState>>,
    mss: u32,
    /// Timeouts since the last new acknowledgement.
    timeouts: u32,
    sack: bool,
    /// Nothing will be written any more, so a FIN follows.
    finished: bool,
    phase: Phase,
    /// One segment may be sent whatever the window: the first of a recovery, a probe.
    forced: bool,
    /// The last segment is sent again as a probe.
    probe_last: bool,
    /// The peer is asked whether its window is still closed.
    window_probe: bool,
    /// Whether the window kept the sender from sending more when it last could.
    cwnd_limited: bool,
    /// Whether the host's own line did.
    line_limited: bool,
    /// Behind a line: the window kept the sender from sending more on the way to this byte.
    limited_to: u64,
    /// Whether the next new segment tells the peer that its congestion echo was heeded.
    cwr: bool,
    /// Whether the algorithm may have a pacing rate of its own.
    paces: bool,
}

/// State of a sender that is unused before a segment is lost or marked.
#[derive(Clone, Copy, Debug, Default)]
struct ColdState {
    counters: Counters,
    /// Segments that leave again without being lost, and the lowest that has.
    copies: u64,
    copied_to: Option<u64>,
    /// Without SACK: duplicate acknowledgements in a row, and the bytes that they stand for.
    duplicates: u32,
    left_the_network: u64,
}

/// What the peer said.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAck {
    /// All below is acknowledged.
    pub(super) ack: u64,
    /// Its window reaches further than before.
    pub(super) window_moved: bool,
    /// Congestion was experienced.
    pub(super) ece: bool,
    /// Whether the segment was nothing but an acknowledgement.
    pub(super) pure: bool,
    /// The round-trip time by timestamps, for when no segment's own time can be trusted.
    pub(super) timestamp_rtt: Option<Duration>,
}

/// The least interval between zero-window probes and the least timeout of a tail probe.
const LEAST_PROBE: Duration = Duration::from_millis(10);
/// "DupThresh" (RFC 6675 section 2).
const DUP_THRESH: u32 = 3;
/// The initial window in bytes (RFC 6928).
fn initial_window(config: &TcpConfig, mss: u32) -> u64 {
    u64::from(config.initial_window) * u64::from(mss)
}

impl Prefetch for Sender {
    type Part = ();

    /// Prefetches what the sender points to and an acknowledgement touches.
    fn prefetch(&self, (): ()) {
        self.board.prefetch(());
        prefetch(&*self.congestion);
    }
}

impl Sender {
    pub(super) fn new(config: &TcpConfig, mss: u32, sack: bool, salt: u64) -> Self {
        let initial = initial_window(config, mss);
        let congestion = match &config.foreign {
            Some(maker) => maker.make(u64::from(mss), initial),
            None => {
                let mss = u64::from(mss);
                config.congestion.start(Setup { mss, initial_window: initial, salt })
            }
        };
        Self {
            board: Scoreboard::new(
                mss,
                sack && config.recovery == Recovery::RackTlp,
                congestion.wants_delivery(),
            ),
            cwnd: congestion.cwnd(),
            paces: congestion.paces(),
            congestion,
            rtt: RttEstimator::new(),
            timers: Timers::NONE,
            pacer: Pacer::new(),
            written: 0,
            recover: 0,
            reduced_until: 0,
            short_until: 0,
            last_sent: Time::ZERO,
            segments: 0,
            rare: None,
            mss,
            timeouts: 0,
            sack,
            finished: false,
            phase: Phase::Open,
            forced: false,
            probe_last: false,
            window_probe: false,
            cwnd_limited: false,
            line_limited: false,
            limited_to: 0,
            cwr: false,
        }
    }

    fn rare(&mut self) -> &mut ColdState {
        self.rare.get_or_insert_default()
    }

    /// How losses are recognised. Without selective acknowledgement nothing is known of what was
    /// delivered when.
    fn recovery(&self, config: &TcpConfig) -> Recovery {
        if self.sack { config.recovery } else { Recovery::Rfc6675 }
    }

    pub(super) fn write(&mut self, bytes: u64) {
        // A FIN must find a position of its own.
        self.written = self.written.saturating_add(bytes).min(u64::MAX / 2);
    }

    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// There was nothing to send so far.
    pub(super) fn set_app_limited(&mut self) {
        self.board.set_app_limited();
    }

    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// How much of what was written is acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.board.una().min(self.written)
    }

    /// Whether all is acknowledged, the FIN included.
    pub(super) fn is_done(&self) -> bool {
        self.finished && self.board.una() > self.written
    }

    /// Whether the FIN has left.
    pub(super) const fn fin_sent(&self) -> bool {
        self.finished && self.board.nxt() > self.written
    }

    pub(super) const fn una(&self) -> u64 {
        self.board.una()
    }

    pub(super) const fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn stats(&self, config: &TcpConfig) -> SenderStats {
        let rtt = &self.rtt;
        let counters = self.rare.as_ref().map_or(Counters::default(), |rare| rare.counters);
        SenderStats {
            cwnd: self.cwnd,
            ssthresh: self.congestion.ssthresh(),
            in_flight: self.pipe(),
            srtt: rtt.srtt(),
            min_rtt: rtt.srtt().map(|_| rtt.min_rtt()),
            rto: rtt.rto(config),
            delivered: self.board.delivered(),
            segments: self.segments,
            retransmitted: counters.retransmitted,
            lost: counters.lost,
            lost_segments: counters.lost_segments,
            timeouts: counters.timeouts,
            recoveries: counters.recoveries,
            ecn_reductions: counters.ecn_reductions,
            probes: counters.probes,
        }
    }

    /// The handshake is over: it was lost, so the window begins with one segment (RFC 5681 section
    /// 3.1), or it has measured the round-trip time.
    pub(super) fn on_handshake(&mut self, lossy: bool, rtt: Option<Duration>) {
        if lossy {
            self.congestion.on_idle(u64::from(self.mss));
            self.cwnd = self.congestion.cwnd();
        }
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, rtt);
        }
    }

    /// Whether the next new segment tells the peer that its echo was heeded; asked once for each.
    pub(super) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr)
    }

    /// Takes an acknowledgement with its selective blocks.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        peer: PeerAck,
        blocks: Blocks<'_>,
        config: &TcpConfig,
    ) {
        if self.board.is_empty() && self.phase == Phase::Open && !peer.ece {
            // Nothing is outstanding, as nearly always with one who only receives.
            if peer.window_moved {
                self.rtt.reset_backoff();
            }
            self.timeouts = 0;
            return self.restart_timers(now, config);
        }
        let progress = self.board.on_ack(now, peer.ack, blocks, self.rtt.min_rtt());
        if progress.acked > 0 || (self.board.is_empty() && peer.window_moved) {
            self.rtt.reset_backoff();
        }
        if progress.acked > 0 || self.board.is_empty() {
            // A peer that answers is there, even if its window stays closed.
            self.timeouts = 0;
        }
        let rtt = self.sample_rtt(now, &progress, peer.timestamp_rtt);
        if self.phase != Phase::Open && self.board.una() >= self.recover {
            self.phase = Phase::Open;
            self.forget_duplicates();
        }
        let lost = match (self.sack, self.recovery(config)) {
            (false, _) => self.judge_by_duplicates(&progress, peer.pure && !peer.window_moved),
            (true, Recovery::Rfc6675) if self.board.has_sacked() => {
                self.board.judge_by_sacks(DUP_THRESH)
            }
            (true, Recovery::Rfc6675) => Losses::default(),
            (true, Recovery::RackTlp) => self.judge_by_time(now),
        };
        self.note_lost(now, lost);
        if peer.ece && self.phase == Phase::Open && self.board.una() >= self.reduced_until {
            self.reduce(|congestion, window| congestion.on_mark(now, window));
            // The echo goes on until the peer has heard of it, which is above what is outstanding
            // now.
            self.reduced_until += 1;
            self.cwr = true;
            self.rare().counters.ecn_reductions += 1;
        }
        // The window that answers a mark is held for the round trip as after a loss.
        let held = self.phase == Phase::Open && self.board.una() < self.reduced_until;
        let phase = if held { Phase::Recovery } else { self.phase };
        if progress.delivered > 0 {
            self.congestion.on_ack(&Acknowledgement {
                now,
                // What was delivered before counted then, and nothing counts before the hole below
                // it is filled.
                acked: if progress.acked > 0 { progress.delivered } else { 0 },
                delivered: progress.delivered,
                lost: lost.bytes,
                rtt,
                min_rtt: self.rtt.min_rtt(),
                srtt: self.rtt.srtt().unwrap_or(Duration::ZERO),
                marked: peer.ece,
                in_flight: self.pipe(),
                cwnd_limited: self.cwnd_limited,
                acked_to: self.board.una(),
                sent_to: self.board.nxt(),
                phase,
                shortest_stream: None,
                delivery: self.delivery_sample(&progress),
            });
            self.cwnd = self.congestion.cwnd();
            self.take_copies();
        }
        if progress.acked > 0 || self.board.is_empty() {
            self.restart_timers(now, config);
        }
    }

    fn sample_rtt(
        &mut self,
        now: Time,
        progress: &Progress,
        by_timestamp: Option<Duration>,
    ) -> Option<Duration> {
        if progress.delivered == 0 {
            return None;
        }
        let fresh = progress.last_sent.map(|sent| now.since(sent));
        let first = progress.first_sent.map(|sent| now.since(sent)).or(by_timestamp);
        if let Some(first) = first {
            self.rtt.sample(first, fresh.unwrap_or(first));
        }
        fresh
    }

    fn delivery_sample(&self, progress: &Progress) -> Option<DeliverySample> {
        let newest = progress.newest?;
        let send = newest.sent_at.since(newest.first_sent_at);
        let ack = self.board.delivered_at().since(newest.delivered_at);
        let interval = send.max(ack);
        // What is measured over less than a round trip is an artefact of compression (section 3.3).
        let measured = interval >= self.rtt.min_rtt() && interval > Duration::ZERO;
        let bytes = self.board.delivered() - newest.delivered;
        Some(DeliverySample {
            rate: measured.then(|| Rate::from_bytes_over(bytes, interval)),
            prior_delivered: newest.delivered,
            delivered: self.board.delivered(),
            app_limited: newest.app_limited,
        })
    }

    /// Counts what is newly believed lost, and begins to repair it.
    fn note_lost(&mut self, now: Time, lost: Losses) {
        if lost.segments > 0 {
            self.rare().counters.count(lost);
        }
        if self.phase == Phase::Open && self.board.lost() > 0 {
            self.enter_recovery(now);
        }
        if lost.segments > 0 {
            self.congestion.on_lost(now, lost.segments);
        }
    }

    fn forget_duplicates(&mut self) {
        if let Some(rare) = &mut self.rare
            && !self.sack
        {
            rare.duplicates = 0;
            rare.left_the_network = 0;
        }
    }

    /// Fast retransmit and partial acknowledgements without SACK (RFC 6582 section 3.2).
    fn judge_by_duplicates(&mut self, progress: &Progress, pure: bool) -> Losses {
        let mss = u64::from(self.mss);
        if progress.acked > 0 {
            if self.phase == Phase::Recovery {
                let rare = self.rare();
                rare.duplicates = 0;
                // "Deflate by the amount of new data acknowledged, add back one SMSS."
                rare.left_the_network = rare.left_the_network.saturating_sub(progress.acked) + mss;
                return self.board.lose_head();
            }
            self.forget_duplicates();
        } else if pure && !self.board.is_empty() {
            let rare = self.rare();
            rare.duplicates += 1;
            rare.left_the_network += mss;
            if rare.duplicates == DUP_THRESH && self.phase == Phase::Open {
                return self.board.lose_head();
            }
        }
        Losses::default()
    }

    /// RACK (RFC 8985 section 6.2).
    fn judge_by_time(&mut self, now: Time) -> Losses {
        let Some(srtt) = self.rtt.srtt() else { return Losses::default() };
        // "If no reordering has been observed, during recovery or with DupThresh segments sacked:
        // no window."
        let eager = self.phase != Phase::Open || self.board.sacked_segments(DUP_THRESH);
        let window = if !self.board.reordering_seen() && eager {
            Duration::ZERO
        } else {
            (self.rtt.min_rtt() / 4).min(srtt)
        };
        let rtt = self.rtt.latest();
        let (lost, next) = self.board.judge_by_time(now, rtt, window);
        self.timers.reorder = next.unwrap_or(Time::MAX);
        lost
    }

    fn enter_recovery(&mut self, now: Time) {
        self.phase = Phase::Recovery;
        self.recover = self.board.nxt();
        self.forced = true;
        self.timers.probe = Time::MAX;
        self.rare().counters.recoveries += 1;
        if self.board.una() >= self.reduced_until {
            self.reduce(|congestion, window| congestion.on_congestion(now, window));
        }
    }

    fn reduce(&mut self, tell: impl FnOnce(&mut dyn CongestionControl, u64)) {
        let outstanding = self.board.nxt() - self.board.una();
        let window = self.cwnd.min(outstanding);
        tell(&mut *self.congestion, window);
        self.cwnd = self.congestion.cwnd();
        self.reduced_until = self.board.nxt();
    }

    fn pipe(&self) -> u64 {
        match &self.rare {
            Some(rare) if !self.sack => self.board.pipe().saturating_sub(rare.left_the_network),
            _ => self.board.pipe(),
        }
    }

    /// The next segment that may leave at `now`, if any.
    pub(super) fn next(&mut self, now: Time, window_end: u64, config: &TcpConfig) -> Option<Piece> {
        self.line_limited = false;
        if self.segments == 0 && self.written > 0 {
            self.begin(window_end, config);
        }
        if self.pacer.holds_back(now, self.mss) && !self.forced {
            self.held_back(config);
            return None;
        }
        if core::mem::take(&mut self.probe_last)
            && let Some(piece) = self.board.resend_last(now)
        {
            self.rare().counters.retransmitted += 1;
            self.sent(now, piece, config);
            self.timers.probe = Time::MAX;
            return Some(piece);
        }
        let mss = u64::from(self.mss);
        let room = self.cwnd.saturating_sub(self.pipe());
        if let Some(piece) = self.next_copy(now, room, config) {
            return Some(piece);
        }
        if self.board.has_pending() {
            if room < mss && !self.forced {
                self.limited_by_window();
                return None;
            }
            let piece = self.board.resend_pending(now)?;
            self.rare().counters.retransmitted += 1;
            self.sent(now, piece, config);
            return Some(piece);
        }
        let nxt = self.board.nxt();
        let unsent = self.written.saturating_sub(nxt);
        let fin_waits = self.finished && nxt <= self.written;
        if unsent == 0 && !fin_waits {
            self.cwnd_limited = false;
            if self.board.pipe() < self.cwnd {
                self.board.set_app_limited();
            }
            return None;
        }
        let most = config.max_window.unwrap_or(u64::MAX);
        let limit = window_end.min(self.board.una().saturating_add(most));
        let len = unsent.min(mss).min(limit.saturating_sub(nxt));
        let outstanding = nxt > self.board.una();
        let short_of_window = len < unsent.min(mss);
        if short_of_window && (len == 0 || outstanding) {
            self.cwnd_limited = false;
            if !outstanding && self.timers.retransmit == Time::MAX {
                self.timers.retransmit = self.rtt.deadline(now, config).max(now + LEAST_PROBE);
            }
            return None;
        }
        let is_last = len == unsent && self.finished;
        if config.nagle && len < mss && self.board.una() < self.short_until && !is_last {
            self.cwnd_limited = false;
            return None;
        }
        if !outstanding && config.slow_start_after_idle && self.last_sent > Time::ZERO {
            self.restart_after_idle(now, config);
        }
        if room < len && !self.forced {
            self.limited_by_window();
            return None;
        }
        let piece = self.board.send(now, len as u32, is_last);
        if len < mss {
            self.short_until = self.board.nxt();
        }
        self.sent(now, piece, config);
        Some(piece)
    }

    /// The first data are about to leave.
    #[cold]
    fn begin(&mut self, window_end: u64, config: &TcpConfig) {
        if let Some(rtt) = self.rtt.srtt() {
            let most = window_end.min(config.max_window.unwrap_or(u64::MAX));
            self.congestion.on_begin(rtt, self.written.min(most));
            self.cwnd = self.congestion.cwnd();
        }
    }

    fn has_more(&self) -> bool {
        let fin_waits = self.finished && self.board.nxt() <= self.written;
        self.board.has_pending() || self.written > self.board.nxt() || fin_waits
    }

    fn restart_after_idle(&mut self, now: Time, config: &TcpConfig) {
        if now.since(self.last_sent) > self.rtt.rto(config) {
            self.congestion.on_idle(initial_window(config, self.mss));
            self.cwnd = self.congestion.cwnd();
        }
    }

    fn sent(&mut self, now: Time, piece: Piece, config: &TcpConfig) {
        self.forced = false;
        self.last_sent = now;
        self.segments += 1;
        if self.timers.retransmit == Time::MAX || self.board.una() == piece.start {
            self.timers.retransmit = self.rtt.deadline(now, config);
        }
        self.arm_probe(now, config);
        self.pace(now, piece, config);
    }

    /// When something is due if nothing arrives, and what.
    #[inline(always)]
    pub(super) fn timeout(&self) -> (Time, &'static str) {
        let mut next = self.timers.first();
        let at = self.pacer.at();
        let is_held = self.cwnd_limited || self.line_limited;
        let paced = at < next.0 && at > self.last_sent && is_held;
        if paced && self.may_send() {
            next = (at, "pacing");
        }
        next
    }

    fn may_send(&self) -> bool {
        let room = self.cwnd.saturating_sub(self.pipe());
        self.forced || (self.has_more() && room >= u64::from(self.mss))
    }

    /// Whether a timer has expired.
    pub(super) fn has_expired(&self, now: Time) -> bool {
        self.timers.first().0 <= now
    }

    /// Whether the peer is to be asked if its window is still closed; asked once for each probe.
    pub(super) fn take_window_probe(&mut self) -> bool {
        core::mem::take(&mut self.window_probe)
    }
}
