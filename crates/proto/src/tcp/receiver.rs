use fontis_base::{IntervalSet, Time};

use super::config::TcpConfig;
use super::stats::ReceiverStats;

/// The half of an endpoint that receives: what has arrived, what is acknowledged when, and the
/// window it offers.
///
/// How it does so stands in the configuration, which is passed in: thousands of endpoints share
/// one.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// The next position that is expected.
    next: u64,
    /// The position that was last acknowledged.
    acknowledged: u64,
    /// The highest position that was ever offered, exclusive: an offer is never taken back.
    offered: u64,
    /// The stream ends here; [`u64::MAX`] while that is not known.
    fin: u64,
    /// When an acknowledgement is due that may wait.
    ack_at: Time,
    /// What came out of order, if anything did lately.
    disorder: Option<Box<Disorder>>,
    /// Segments that arrived, and acknowledgements that left without data.
    segments: u64,
    acks: u64,
    rare: Option<Box<ColdState>>,
    segment_len: u32,
    ack_now: bool,
    /// Congestion was experienced, and the sender has not said that it knows (RFC 3168 section
    /// 6.1.3).
    echo: bool,
}

/// Counts that stay zero in most receivers.
#[derive(Clone, Copy, Debug, Default)]
struct ColdState {
    /// Bytes that the application has not taken.
    unread: u64,
    duplicates: u64,
    out_of_order: u64,
    marked: u64,
}

/// What came out of order, and what is to be said of it. A host that only sends never has it,
/// others seldom.
#[derive(Clone, Debug, Default)]
struct Disorder {
    /// What arrived above the next position.
    above: IntervalSet,
    /// Positions in the ranges that grew last, and those ranges, latest first: they are reported
    /// first (RFC 2018 section 4). An empty range stands for none.
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
    pub(super) fn new(segment_len: u32) -> Self {
        Self {
            next: 0,
            acknowledged: 0,
            offered: 0,
            fin: u64::MAX,
            ack_at: Time::MAX,
            disorder: None,
            segments: 0,
            acks: 0,
            rare: None,
            segment_len,
            ack_now: false,
            echo: false,
        }
    }

    /// The next position that is expected; past the end of the stream once the FIN has arrived.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The position that was last acknowledged.
    pub(super) const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(super) fn stats(&self) -> ReceiverStats {
        let ColdState { duplicates, out_of_order, marked, .. } =
            self.rare.as_deref().copied().unwrap_or_default();
        ReceiverStats {
            received: self.received(),
            segments: self.segments,
            duplicates,
            out_of_order,
            acks: self.acks,
            marked,
        }
    }

    /// Bytes of the stream that arrived in order; the FIN is none.
    fn received(&self) -> u64 {
        self.next.min(self.fin)
    }

    fn rare(&mut self) -> &mut ColdState {
        self.rare.get_or_insert_default()
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
    pub(super) fn on_segment(&mut self, now: Time, arrival: Arrival, config: &TcpConfig) {
        self.segments += 1;
        if arrival.cwr {
            self.echo = false;
        }
        if arrival.marked {
            self.echo = true;
            self.rare().marked += 1;
        }
        if config.ecn && config.congestion.wants_every_mark() {
            // Every segment is acknowledged by itself, and its own mark echoed (RFC 8257 section
            // 3.2).
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
            self.rare().duplicates += 1;
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
            let new = self.disorder().take(arrival.start, end);
            let rare = self.rare();
            rare.out_of_order += 1;
            rare.duplicates += u64::from(!new);
            self.ack_now = true;
            return;
        }
        let filled = self.disorder.as_ref().is_some_and(|disorder| !disorder.above.is_empty());
        let before = self.received();
        self.advance(end);
        if !config.auto_read {
            let bytes = self.received() - before;
            self.rare().unread += bytes;
        }
        // Two full segments, a filled hole and the end are acknowledged at once (RFC 5681 section
        // 4.2).
        let two = self.next - self.acknowledged >= 2 * u64::from(self.segment_len);
        let quick = self.segments <= u64::from(config.quick_acks);
        match config.delayed_ack {
            Some(delay) if !(two || filled || arrival.fin || quick) => {
                self.ack_at = self.ack_at.min(now + delay);
            }
            _ => self.ack_now = true,
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
        self.next = next;
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
    pub(super) fn read(&mut self, most: u64, config: &TcpConfig) -> u64 {
        let bytes = self.unread().min(most);
        let before = self.window(config);
        if let Some(rare) = &mut self.rare {
            rare.unread -= bytes;
        }
        // A window that opens by less is not worth telling (RFC 9293 section 3.8.6.2.2).
        let segment = u64::from(self.segment_len);
        let worth = (config.receive_buffer / 2).min(segment);
        let closed = before < segment;
        if closed && self.window(config) >= before + worth {
            self.ack_now = true;
        }
        bytes
    }

    pub(super) fn unread(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.unread)
    }

    fn window(&self, config: &TcpConfig) -> u64 {
        let unread = if config.auto_read { 0 } else { self.unread() };
        let free = config.receive_buffer.saturating_sub(unread);
        free.max(self.offered.saturating_sub(self.next))
    }

    /// The window field of a header, and notes what it offers.
    pub(super) fn offer(&mut self, scale: u8, config: &TcpConfig) -> u16 {
        let window = (self.window(config) >> scale).min(0xffff);
        self.offered = self.offered.max(self.next + (window << scale));
        window as u16
    }

    /// An acknowledgement leaves, with data or without.
    pub(super) fn acknowledge(&mut self, pure: bool) {
        self.acknowledged = self.next;
        self.ack_now = false;
        self.ack_at = Time::MAX;
        self.acks += u64::from(pure);
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

    /// Takes what came from `start` to `end`; whether any of it is new.
    fn take(&mut self, start: u64, end: u64) -> bool {
        if let Some(from) = self.above.extend_last(start, end) {
            // Most goes on where the last one ended, and then no other range has changed.
            match &mut self.recent[0] {
                (position, range) if range.1 == from => (*position, range.1) = (start, end),
                _ => self.remember(start),
            }
            return true;
        }
        let mut new = false;
        self.above.insert_with(start, end, |_, _| new = true);
        if !new {
            self.duplicate = Some((start, end));
        }
        self.remember(start);
        new
    }

    fn remember(&mut self, position: u64) {
        // A position of the same range counts as the same.
        let range = self.above.find(position).unwrap_or((position, position + 1));
        let holds = |(position, _): &(u64, _)| (range.0..range.1).contains(position);
        let known = self.recent.iter().position(holds);
        let last = known.unwrap_or(self.recent.len() - 1);
        self.recent.copy_within(0..last, 1);
        self.recent[0] = (position, range);
        // Ranges may have grown together: one stands for all.
        for recent in self.recent[1..].iter_mut().filter(|recent| holds(recent)) {
            *recent = (0, (0, 0));
        }
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
        let ranges = self.recent.iter().map(|(_, range)| *range).filter(|(start, end)| start < end);
        ranges.take(left).for_each(|(start, end)| report(start, end));
    }

    fn says_anything(&self) -> bool {
        self.duplicate.is_some() || !self.above.is_empty()
    }
}
