use fontis_base::Time;

use super::Sender;
use crate::tcp::config::TcpConfig;
use crate::tcp::scoreboard::Piece;

/// Segments that leave again although nothing says that they are lost, because the algorithm asks
/// for them. They are beside the window, so that only an algorithm that acknowledgements clock may
/// ask.
impl Sender {
    pub(super) fn take_copies(&mut self) {
        if self.paces {
            let copies = self.congestion.take_copies();
            if copies > 0 {
                let rare = self.rare();
                rare.copies = rare.copies.saturating_add(copies);
            }
        }
    }

    /// The next of them, unless something lost may leave.
    pub(super) fn next_copy(&mut self, now: Time, room: u64, config: &TcpConfig) -> Option<Piece> {
        let repairs = self.board.has_pending() && (room >= u64::from(self.mss) || self.forced);
        let rare = self.rare.as_mut().filter(|rare| rare.copies > 0 && !repairs)?;
        let below = rare.copied_to.unwrap_or(u64::MAX);
        let Some(piece) = self.board.resend_below(now, below) else {
            rare.copies = 0;
            return None;
        };
        rare.copies -= 1;
        rare.copied_to = Some(piece.start);
        rare.counters.retransmitted += 1;
        self.sent(now, piece, config);
        Some(piece)
    }
}
