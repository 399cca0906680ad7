//! What keeps a sender from sending all that its window permits: a rate of its algorithm, or its
//! host's own line.

use fontis_base::{Duration, Rate, Time};

use super::Sender;
use crate::tcp::config::TcpConfig;
use crate::tcp::scoreboard::Piece;
use crate::tcp::segment::{IP_HEADER, TCP_HEADER};

/// How much of its host's line a sender fills ahead ("sk_pacing_shift" of Linux).
const SMALL_QUEUE: Duration = Duration::from_millis(1);

impl Sender {
    /// Notes that a segment leaves, for what may leave behind it.
    #[inline]
    pub(super) fn pace(&mut self, now: Time, piece: Piece, config: &TcpConfig) {
        if let Some(rate) = self.pacing_rate(config) {
            let overhead = u64::from(IP_HEADER + TCP_HEADER);
            let sizes = (piece.len, u64::from(piece.len) + overhead);
            self.pacer.sent(now, sizes, rate, || self.congestion.send_quantum());
        } else if let Some(line) = config.line {
            // Headers count with their options: a line that is counted too fast fills.
            let overhead = u64::from(config.mtu.saturating_sub(self.mss));
            let sizes = (piece.len, u64::from(piece.len) + overhead);
            let two = 2 * u64::from(self.mss);
            self.pacer.sent(now, sizes, line, || line.bytes_in(SMALL_QUEUE).max(two));
        }
    }

    /// Notes what keeps the sender from sending more while the pacer does.
    pub(super) fn held_back(&mut self, config: &TcpConfig) {
        let more = self.has_more();
        let is_line = config.line.is_some() && self.pacing_rate(config).is_none();
        if more && is_line && self.may_send() {
            self.line_limited = true;
            // For a round trip it stays true that the window was too small.
            self.cwnd_limited = self.board.una() < self.limited_to;
        } else if more {
            self.limited_by_window();
        } else {
            self.cwnd_limited = false;
        }
    }

    #[inline(always)]
    pub(super) fn limited_by_window(&mut self) {
        self.cwnd_limited = true;
        self.limited_to = self.board.nxt();
    }

    fn pacing_rate(&self, config: &TcpConfig) -> Option<Rate> {
        if self.paces
            && let Some(rate) = self.congestion.pacing_rate()
        {
            return Some(rate);
        }
        if !config.pacing {
            return None;
        }
        let srtt = self.rtt.srtt()?;
        let cwnd = self.cwnd;
        // "tcp_pacing_ss_ratio" and "tcp_pacing_ca_ratio" of Linux, in percent.
        let ratio = if cwnd < self.congestion.ssthresh() / 2 { 200 } else { 120 };
        Some(Rate::from_bytes_over(cwnd, srtt).mul_ratio(ratio, 100))
    }
}
