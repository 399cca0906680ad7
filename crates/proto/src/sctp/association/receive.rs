//! Data that arrive, and the SACKs for them.

use fontis_base::Time;
use smallvec::SmallVec;

use super::{AckState, PIECE, SctpAssociation, State};
use crate::sctp::chunk::{DataChunk, ForwardChunk, SackChunk, SctpCause, SctpChunk, StampEcho};
use crate::sctp::message::AbortReason;

/// Gap blocks in a SACK at most.
pub(super) const MOST_GAPS: usize = 256;

impl SctpAssociation {
    /// Takes a DATA chunk. Whether it deserves an acknowledgement.
    pub(super) fn on_data(&mut self, now: Time, chunk: &DataChunk) -> bool {
        if !self.takes_data() {
            return false;
        }
        let tsn = self.arrivals.expand(chunk.tsn);
        if self.arrivals.has(tsn) {
            self.arrivals.note_duplicate(tsn);
            self.stats.duplicates += 1;
            self.acks.at = now;
            return true;
        }
        let is_next = tsn == self.arrivals.cumulative() + 1;
        let len = chunk.data.len() as u64;
        let is_full = self.window() < len && tsn > self.arrivals.highest();
        let is_over = self.held() + len > self.budget() || self.memory_left() < len + PIECE;
        let is_beyond = self.arrivals.is_too_far(tsn) || self.arrivals.is_one_gap_too_many(tsn);
        if is_beyond || ((is_full || is_over) && !is_next) {
            // It was not told that there is room.
            self.stats.dropped += 1;
            self.acks.at = now;
            return true;
        }
        if (is_full || is_over) && self.inbound.has_ready() {
            // The application has not taken what is there; the peer tries again (section 6.1 A).
            self.stats.dropped += 1;
            self.acks.at = now;
            return true;
        }
        if is_over {
            let cause = SctpCause::of(SctpCause::OUT_OF_RESOURCE);
            self.break_off(AbortReason::Violation("a message longer than may be"), cause);
            return false;
        }
        if chunk.is_interleaved != self.features.interleaving {
            self.violate("DATA where I-DATA was agreed on, or the other way");
            return false;
        }
        if chunk.stream >= self.config.streams.max(1) {
            // Acknowledged and dropped (section 6.5).
            let stream = [(chunk.stream >> 8) as u8, chunk.stream as u8, 0, 0];
            let details = bytes::Bytes::copy_from_slice(&stream);
            let cause = SctpCause { code: SctpCause::INVALID_STREAM, details };
            self.reply(None, vec![SctpChunk::Error(vec![cause])]);
            self.arrivals.insert(tsn);
            return true;
        }
        let had_gaps = self.arrivals.has_gaps();
        self.waits.read(now, self.held());
        self.arrivals.insert(tsn);
        self.note_wait(now, tsn);
        self.stats.chunks_received += 1;
        if self.features.repairs {
            self.restorer.keep(tsn, chunk);
        }
        match self.reassembly.insert(tsn, chunk.clone()) {
            Ok(Some(whole)) => {
                self.inbound.arrive(whole.number, !chunk.is_interleaved, whole.message);
            }
            Ok(None) => {}
            Err(_) => {
                self.violate("fragments that contradict each other");
                return false;
            }
        }
        if self.features.repairs {
            self.shrink_restorer();
        }
        let waits = self.config.acks.waits_at_gaps;
        if ((had_gaps || self.arrivals.has_gaps()) && !waits) || chunk.is_immediate {
            self.acks.at = now;
        }
        true
    }

    /// A chunk has come: it waits for others, or others had waited for it.
    fn note_wait(&mut self, now: Time, tsn: u64) {
        let cumulative = self.arrivals.cumulative();
        if tsn > cumulative {
            self.waits.add(now, tsn);
        }
        self.waits.release(now, cumulative);
    }

    /// A packet with data has come.
    pub(super) fn after_data(&mut self, now: Time, path: Option<u8>) {
        let policy = self.config.acks;
        self.acks.packets += 1;
        self.acks.path = path.unwrap_or(self.acks.path);
        let is_due = self.acks.packets >= policy.every || self.state == State::ShutdownSent;
        let wait = if is_due { now } else { now + policy.delay };
        self.acks.at = self.acks.at.min(wait);
        if self.state == State::ShutdownSent {
            // A SHUTDOWN goes with the SACK (section 9.2).
            (self.closing.at, self.closing.path) = (now, None);
        }
    }

    /// The application has taken a message: a peer that was told of little room is told of more.
    pub(super) fn reopen_window(&mut self, now: Time) {
        let buffer = u64::from(self.config.receive_buffer);
        let step = (buffer / 4).max(u64::from(self.config.mtu)).min(buffer / 2);
        let is_open = matches!(self.state, State::Established | State::ShutdownPending);
        if is_open && self.acks.told < buffer / 2 && self.window() >= self.acks.told + step {
            self.acks.at = now;
        }
    }

    /// The peer gives up what has not arrived (RFC 3758 section 3.6, RFC 8260 section 2.3.1).
    pub(super) fn on_forward(&mut self, now: Time, forward: &ForwardChunk) {
        if !self.features.partial {
            return;
        }
        let to = self.arrivals.expand(forward.cumulative);
        self.acks.at = now;
        if to <= self.arrivals.cumulative() || self.arrivals.is_too_far(to) {
            return;
        }
        self.waits.read(now, self.held());
        self.arrivals.advance(to);
        self.waits.release(now, self.arrivals.cumulative());
        // A stream is named once, or twice with I-DATA.
        for skipped in forward.skipped.iter().take(2 * usize::from(self.config.streams.max(1))) {
            if skipped.stream >= self.config.streams.max(1) {
                continue;
            }
            if forward.is_interleaved {
                let of = (skipped.stream, skipped.is_unordered, skipped.message);
                self.reassembly.forget_message(of.0, of.1, of.2);
            }
            if !skipped.is_unordered {
                self.inbound.skip(skipped.stream, skipped.message, !forward.is_interleaved);
            }
        }
        if !forward.is_interleaved {
            self.reassembly.forget_to(to);
        }
    }

    /// The SACK that is due, with what goes beside it.
    pub(super) fn take_sack(&mut self, now: Time) -> Option<SmallVec<[SctpChunk; 3]>> {
        if self.acks.at > now {
            return None;
        }
        let window = self.window();
        let gaps = self.arrivals.gaps(MOST_GAPS);
        let has_kept = self.features.nr_sack;
        let packets = match self.config.acks.waits_at_gaps {
            true => self.acks.packets.min(3) as u8,
            false => 0,
        };
        let sack = SackChunk {
            cumulative: self.arrivals.cumulative() as u32,
            window: window.min(u64::from(u32::MAX)) as u32,
            gaps: if has_kept { SmallVec::new() } else { gaps.clone() },
            // Nothing that has come is ever dropped here.
            kept: has_kept.then_some(gaps),
            duplicates: self.arrivals.take_duplicates(),
            packets,
        };
        let mut chunks = SmallVec::from_iter([SctpChunk::Sack(Box::new(sack))]);
        let AckState { stamp, number, .. } = self.acks;
        chunks.extend(self.take_restored());
        if let Some((stamp, at)) = stamp.filter(|_| self.features.stamps) {
            chunks.push(SctpChunk::Echo(StampEcho {
                stamp,
                received: at.as_nanos(),
                held: now.since(at).as_nanos(),
                number,
            }));
        }
        if let Some(tsn) = self.marks.echo {
            chunks.push(SctpChunk::EcnEcho(tsn));
        }
        self.acks.number = number.wrapping_add(1);
        self.acks.packets = 0;
        self.acks.at = Time::MAX;
        self.acks.told = window;
        self.stats.acks_sent += 1;
        Some(chunks)
    }
}
