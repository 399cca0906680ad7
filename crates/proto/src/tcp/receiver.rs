use fontis_base::{Duration, Time};

use super::config::Config;
use super::congestion::Kind;
use super::ranges::Ranges;
use super::stats::ReceiverStats;

/// The half of an endpoint that receives: what has arrived, what is acknowledged when, and the window it offers.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// The next position that is expected.
    next: u64,
    /// What came out of order, if anything did lately.
    disorder: Option<Box<Disorder>>,
    /// The stream ends here; [`u64::MAX`] while that is not known.
    fin: u64,
    /// Bytes that the application has not taken.
    unread: u64,
    auto_read: bool,
    buffer: u64,
    segment_len: u32,
    /// The highest position that was ever offered, exclusive: an offer is never taken back.
    offered: u64,
    /// How long an acknowledgement may wait; [`Duration::MAX`] if none may.
    delay: Duration,
    /// Bytes that arrived since the last acknowledgement.
    unacknowledged: u64,
    ack_now: bool,
    ack_at: Time,
    /// Congestion was experienced, and the sender has not said that it knows (RFC 3168 section 6.1.3).
    echo: bool,
    /// Every segment is acknowledged by itself, and its own mark echoed (RFC 8257 section 3.2).
    exact_echo: bool,
    stats: ReceiverStats,
}

/// What came out of order, and what is to be said of it. A host that only sends never has it, others seldom.
#[derive(Clone, Debug, Default)]
struct Disorder {
    /// What arrived above the next position.
    above: Ranges,
    /// Positions in the ranges that grew last, and those ranges, latest first: they are reported first (RFC 2018 section 4).
    recent: [(u64, (u64, u64)); 4],
    /// A copy that came again, reported before all else (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

/// A segment of the peer's stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The position of its first byte.
    pub(super) start: u64,
    /// Bytes of payload.
    pub(super) len: u64,
    /// The stream ends with it.
    pub(super) fin: bool,
    /// The packet was marked.
    pub(super) marked: bool,
    /// The sender has heeded the echo.
    pub(super) cwr: bool,
}

impl Receiver {
    pub(super) fn new(config: &Config, segment_len: u32) -> Self {
        Self {
            next: 0,
            disorder: None,
            fin: u64::MAX,
            unread: 0,
            auto_read: config.auto_read,
            buffer: config.receive_buffer,
            segment_len,
            offered: 0,
            delay: config.delayed_ack.unwrap_or(Duration::MAX),
            unacknowledged: 0,
            ack_now: false,
            ack_at: Time::MAX,
            echo: false,
            exact_echo: config.ecn && config.congestion == Kind::Dctcp,
            stats: ReceiverStats::default(),
        }
    }

    /// The next position that is expected; past the end of the stream once the FIN has arrived.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn stats(&self) -> ReceiverStats {
        self.stats
    }

    /// Whether all of the peer's stream has arrived.
    pub(super) fn is_done(&self) -> bool {
        self.next > self.fin
    }

    pub(super) const fn echo(&self) -> bool {
        self.echo
    }

    /// When an acknowledgement is due; at once if one is wanted now.
    pub(super) const fn ack_at(&self) -> Time {
        if self.ack_now { Time::ZERO } else { self.ack_at }
    }

    /// Whether an acknowledgement is due.
    pub(super) fn wants_ack(&self, now: Time) -> bool {
        now >= self.ack_at()
    }

    /// Asks for an acknowledgement at once.
    pub(super) fn acknowledge_now(&mut self) {
        self.ack_now = true;
    }

    /// Takes a segment with data or a FIN.
    pub(super) fn on_segment(&mut self, now: Time, arrival: Arrival) {
        self.stats.segments += 1;
        if arrival.cwr {
            self.echo = false;
        }
        if arrival.marked {
            self.echo = true;
            self.stats.marked += 1;
        }
        if self.exact_echo {
            self.echo = arrival.marked;
            self.ack_now = true;
        }
        let end = arrival.start + arrival.len;
        if arrival.fin && self.fin == u64::MAX {
            self.fin = end;
        }
        // The FIN takes the position after the last byte.
        let end = end + u64::from(arrival.fin);
        if end <= self.next {
            self.stats.duplicates += 1;
            if arrival.start < end {
                self.disorder().duplicate = Some((arrival.start, end));
            } else if let Some(disorder) = &mut self.disorder {
                disorder.duplicate = None;
            }
            self.ack_now = true;
            return;
        }
        if end - u64::from(arrival.fin) > self.offered {
            self.ack_now = true;
            return;
        }
        if arrival.start > self.next {
            self.stats.out_of_order += 1;
            let mut new = false;
            let disorder = self.disorder();
            disorder.above.insert(arrival.start, end, |_, _| new = true);
            if !new {
                disorder.duplicate = Some((arrival.start, end));
            }
            disorder.remember(arrival.start);
            self.stats.duplicates += u64::from(!new);
            self.ack_now = true;
            return;
        }
        let filled = self.disorder.as_ref().is_some_and(|disorder| !disorder.above.is_empty());
        self.advance(end);
        self.unacknowledged += arrival.len;
        // Two full segments, a filled hole and the end are acknowledged at once (RFC 5681 section 4.2).
        let two = self.unacknowledged >= 2 * u64::from(self.segment_len);
        if two || filled || arrival.fin || self.delay == Duration::MAX {
            self.ack_now = true;
        } else {
            self.ack_at = self.ack_at.min(now + self.delay);
        }
    }

    fn advance(&mut self, end: u64) {
        let mut next = end;
        if let Some(disorder) = &mut self.disorder {
            next = disorder.close(next);
            if !disorder.says_anything() {
                // What it remembers lies below all that can come.
                self.disorder = None;
            }
        }
        let bytes_until = |position: u64| position.min(self.fin);
        let bytes = bytes_until(next) - bytes_until(self.next);
        self.next = next;
        self.stats.received += bytes;
        if !self.auto_read {
            self.unread += bytes;
        }
    }

    fn disorder(&mut self) -> &mut Disorder {
        self.disorder.get_or_insert_default()
    }

    /// The blocks to report, at most `most`: a copy first, then the ranges that grew last.
    pub(super) fn blocks(&mut self, most: usize, report: impl FnMut(u64, u64)) {
        if let Some(disorder) = &mut self.disorder {
            disorder.blocks(most, report);
        }
    }

    /// Whether anything waits to be selectively acknowledged.
    pub(super) fn has_blocks(&self) -> bool {
        self.disorder.as_ref().is_some_and(|disorder| disorder.says_anything())
    }

    /// Takes bytes that have arrived; how many, at most `most`.
    pub(super) fn read(&mut self, most: u64) -> u64 {
        let bytes = self.unread.min(most);
        let before = self.window();
        self.unread -= bytes;
        // A window that opens by less is not worth telling (RFC 9293 section 3.8.6.2.2).
        let segment = u64::from(self.segment_len);
        let worth = (self.buffer / 2).min(segment);
        let closed = before < segment;
        if closed && self.window() >= before + worth {
            self.ack_now = true;
        }
        bytes
    }

    pub(super) const fn unread(&self) -> u64 {
        self.unread
    }

    fn window(&self) -> u64 {
        let free = self.buffer.saturating_sub(self.unread);
        free.max(self.offered.saturating_sub(self.next))
    }

    /// The window field of a header, and notes what it offers.
    pub(super) fn offer(&mut self, scale: u8) -> u16 {
        let window = (self.window() >> scale).min(0xffff);
        self.offered = self.offered.max(self.next + (window << scale));
        window as u16
    }

    /// An acknowledgement has left, with data or without.
    pub(super) fn acknowledged(&mut self, pure: bool) {
        self.ack_now = false;
        self.ack_at = Time::MAX;
        self.unacknowledged = 0;
        self.stats.acks += u64::from(pure);
    }
}

impl Disorder {
    /// All below `next` is there: where what follows it without a hole ends.
    fn close(&mut self, mut next: u64) -> u64 {
        while let Some((_, above)) = self.above.first().filter(|(start, _)| *start <= next) {
            next = next.max(above);
            self.above.remove_below(next);
        }
        for (_, range) in &mut self.recent {
            if range.0 < next {
                *range = (0, 0);
            }
        }
        next
    }

    fn remember(&mut self, position: u64) {
        // A position of the same range counts as the same.
        let range = self.above.find(position).unwrap_or((position, position + 1));
        let holds = |(position, _): &(u64, _)| (range.0..range.1).contains(position);
        let known = self.recent.iter().position(holds);
        let last = known.unwrap_or(self.recent.len() - 1);
        self.recent.copy_within(0..last, 1);
        self.recent[0] = (position, range);
        // Ranges may have grown together.
        self.recent.iter_mut().filter(|recent| holds(recent)).for_each(|recent| recent.1 = range);
    }

    fn blocks(&mut self, most: usize, mut report: impl FnMut(u64, u64)) {
        let mut left = most;
        if let Some((start, end)) = self.duplicate.take().filter(|_| left > 0) {
            report(start, end);
            left -= 1;
        }
        if self.above.is_empty() {
            return;
        }
        for (index, (_, (start, end))) in self.recent.into_iter().enumerate() {
            if left == 0 {
                break;
            }
            let told = self.recent[..index].iter().any(|(p, _)| (start..end).contains(p));
            if start < end && !told {
                report(start, end);
                left -= 1;
            }
        }
    }

    fn says_anything(&self) -> bool {
        self.duplicate.is_some() || !self.above.is_empty()
    }
}
