mod blocks;

use std::collections::VecDeque;

use fontis_base::{Duration, IntervalSet, Prefetch, Time, append, prefetch, relax};

use super::record::{APP_LIMITED, FIN, Knowledge, LOST, RESENT, Record, SACKED, TWICE};
use super::segment::SackBlocks;

/// What was sent and is not acknowledged cumulatively, segment by segment, with what is known of
/// each.
///
/// Whether a segment is lost is decided by what was delivered above it (RFC 6675) or after it
/// (RACK, RFC 8985). Both walk through the segments with a mark that only moves forwards, so that a
/// segment costs the same however many are outstanding.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    records: VecDeque<Record>,
    /// The number of the first record: segments are numbered as they are first sent.
    first: u64,
    una: u64,
    nxt: u64,
    /// Bytes believed to be in the network ("pipe", RFC 6675 section 2).
    pipe: u64,
    /// Bytes delivered in the connection.
    delivered: u64,
    /// What there is only while something was lost or came out of order.
    repair: Option<Box<Repair>>,
    /// What RACK needs, if losses are recognised by it.
    rack: Option<Box<Rack>>,
    /// What samples of the rate of delivery need, if somebody wants them.
    samples: Option<Box<Samples>>,
    /// The usual length of a segment, to find records by arithmetic.
    mss: u32,
}

/// The blocks of an acknowledgement as they stand in it, and the sequence number of the stream's
/// first byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks<'a> {
    pub(super) wire: &'a [(u32, u32)],
    pub(super) base: u32,
}

/// Segments newly believed lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub(super) bytes: u64,
    pub(super) segments: u64,
}

impl Losses {
    fn add(&mut self, record: &Record) {
        self.bytes += record.sequence_len();
        self.segments += 1;
    }
}

/// What is known of holes and of what was sent to fill them.
#[derive(Clone, Debug)]
struct Repair {
    /// What the peer holds above `una`.
    sacked: IntervalSet,
    /// The last blocks in which the peer said so; most it says again.
    told: SackBlocks,
    /// The number of the record after the last that was marked: most are marked one after another.
    marked: u64,
    /// Bytes that are lost and have not been sent again since.
    pending: u64,
    /// Bytes that are lost and have not been delivered since.
    lost: u64,
    /// Every record below this number was judged by the present rule.
    judged: u64,
    /// No record below this number is pending.
    resend_from: u64,
    /// Retransmissions in the order in which they were sent.
    resent: VecDeque<(u64, Time)>,
}

impl Default for Repair {
    fn default() -> Self {
        Self {
            sacked: IntervalSet::default(),
            told: SackBlocks::default(),
            marked: 0,
            pending: 0,
            lost: 0,
            judged: 0,
            resend_from: u64::MAX,
            resent: VecDeque::new(),
        }
    }
}

/// What RACK knows of the order in which segments are delivered (RFC 8985 section 5.2).
#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    /// Send time and end of the delivered segment that was sent last.
    newest: (Time, u64),
    /// The highest position that was delivered ("RACK.fack").
    highest: u64,
    /// Whether a segment was delivered after one that was sent later, without having been sent
    /// twice.
    reordering_seen: bool,
}

/// What samples of the rate of delivery are made of (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Debug, Default)]
struct Samples {
    /// What each segment knew when it was last sent.
    known: VecDeque<Knowledge>,
    delivered_at: Time,
    first_sent_at: Time,
    /// Samples are limited by the application until this much is delivered.
    app_limited_until: u64,
}

impl Samples {
    /// What a segment that is sent now knows, when so much has been delivered.
    fn present(&self, delivered: u64) -> Knowledge {
        let Self { delivered_at, first_sent_at, .. } = *self;
        Knowledge { delivered, delivered_at, first_sent_at }
    }
}

/// A segment to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) len: u32,
    pub(super) fin: bool,
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Bytes cumulatively acknowledged anew.
    pub(super) acked: u64,
    /// Bytes newly known to be delivered.
    pub(super) delivered: u64,
    /// When the first of the delivered segments that were sent once only was sent.
    pub(super) first_sent: Option<Time>,
    /// And the last.
    pub(super) last_sent: Option<Time>,
    /// Copies sent after this cannot have been acknowledged yet.
    trusted: Time,
    /// What the last of the delivered segments to be sent, copies included, knew when it left, if
    /// samples are wanted.
    pub(super) newest: Option<SentState>,
}

/// What a segment knew when it was sent, for a sample of the rate of delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentState {
    pub(super) sent_at: Time,
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    pub(super) first_sent_at: Time,
    pub(super) app_limited: bool,
}

impl Prefetch for Scoreboard {
    type Part = ();

    /// Prefetches the ends of the records: what is acknowledged next, and where the next segment's
    /// goes.
    fn prefetch(&self, (): ()) {
        // An acknowledgement covers two segments mostly, and looks at the next.
        let ends = [self.records.front(), self.records.get(2), self.records.back()];
        ends.into_iter().flatten().for_each(prefetch);
        self.repair.as_deref().into_iter().for_each(prefetch);
    }
}

impl Scoreboard {
    /// A scoreboard of nothing; `rack` if losses are recognised by time, `samples` if it is to say
    /// of the rate of delivery what it can.
    pub(super) fn new(mss: u32, rack: bool, samples: bool) -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            una: 0,
            nxt: 0,
            pipe: 0,
            delivered: 0,
            repair: None,
            rack: rack.then(Box::default),
            samples: samples.then(Box::default),
            mss: mss.max(1),
        }
    }

    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    pub(super) const fn nxt(&self) -> u64 {
        self.nxt
    }

    pub(super) const fn pipe(&self) -> u64 {
        self.pipe
    }

    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When the last segment was delivered, if samples are wanted.
    pub(super) fn delivered_at(&self) -> Time {
        self.samples.as_ref().map_or(Time::ZERO, |samples| samples.delivered_at)
    }

    pub(super) fn reordering_seen(&self) -> bool {
        self.rack.as_ref().is_some_and(|rack| rack.reordering_seen)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn has_sacked(&self) -> bool {
        self.repair.as_ref().is_some_and(|repair| !repair.sacked.is_empty())
    }

    /// Bytes that are believed lost, sent again or not, and not delivered since.
    pub(super) fn lost(&self) -> u64 {
        self.repair.as_ref().map_or(0, |repair| repair.lost)
    }

    /// Whether something lost waits to be sent again.
    pub(super) fn has_pending(&self) -> bool {
        self.repair.as_ref().is_some_and(|repair| repair.pending > 0)
    }

    /// Notes that the sender has nothing more to send.
    pub(super) fn set_app_limited(&mut self) {
        if let Some(samples) = &mut self.samples {
            samples.app_limited_until = (self.delivered + self.pipe).max(1);
        }
    }

    /// A new segment leaves.
    pub(super) fn send(&mut self, now: Time, len: u32, fin: bool) -> Piece {
        let mut state = if fin { FIN } else { 0 };
        if let Some(samples) = &mut self.samples {
            if self.pipe == 0 {
                // An idle sender's first segment begins the interval of a sample anew.
                samples.first_sent_at = now;
                samples.delivered_at = now;
            }
            state |= if samples.app_limited_until > 0 { APP_LIMITED } else { 0 };
            let known = samples.present(self.delivered);
            samples.known.push_back(known);
        }
        let record = Record { start: self.nxt, sent_at: now, len, state };
        self.nxt = record.end();
        self.pipe += record.sequence_len();
        append(&mut self.records, record);
        Piece { start: record.start, len, fin }
    }

    /// The lowest lost segment leaves again.
    pub(super) fn resend_pending(&mut self, now: Time) -> Option<Piece> {
        let repair = self.repair.as_ref().filter(|repair| repair.pending > 0)?;
        let from = self.index(repair.resend_from);
        let index = from + self.records.range(from..).position(Record::is_pending)?;
        self.repair().resend_from = self.first + index as u64 + 1;
        Some(self.resend(now, index))
    }

    /// The highest segment leaves again, lost or not: a probe for the loss of the tail.
    pub(super) fn resend_last(&mut self, now: Time) -> Option<Piece> {
        let last = self.records.len().checked_sub(1)?;
        Some(self.resend(now, last))
    }

    /// The highest segment below this position that is not known to be delivered or lost, and has
    /// not been sent again, leaves again.
    pub(super) fn resend_below(&mut self, now: Time, position: u64) -> Option<Piece> {
        let below = self.records.partition_point(|record| record.start < position);
        let idle = |record: &Record| !record.is(SACKED | LOST | RESENT);
        let index = self.records.range(..below).rposition(idle)?;
        Some(self.resend(now, index))
    }

    fn resend(&mut self, now: Time, index: usize) -> Piece {
        let number = self.first + index as u64;
        if let Some(samples) = &mut self.samples {
            let known = samples.present(self.delivered);
            samples.known[index] = known;
        }
        let piece = self.change(index, |record| {
            record.state |= RESENT | TWICE;
            record.sent_at = now;
        });
        append(&mut self.repair().resent, (number, now));
        piece
    }

    fn repair(&mut self) -> &mut Repair {
        self.repair.get_or_insert_default()
    }

    /// Changes a record and keeps the sums that depend on it.
    fn change(&mut self, index: usize, change: impl FnOnce(&mut Record)) -> Piece {
        let repair = self.repair.get_or_insert_default();
        let record = &mut self.records[index];
        let len = record.sequence_len();
        self.pipe -= record.in_pipe();
        repair.pending -= if record.is_pending() { len } else { 0 };
        repair.lost -= if record.is_lost() { len } else { 0 };
        change(record);
        self.pipe += record.in_pipe();
        repair.lost += if record.is_lost() { len } else { 0 };
        if record.is_pending() {
            repair.pending += len;
            repair.resend_from = repair.resend_from.min(self.first + index as u64);
        }
        Piece { start: record.start, len: record.len, fin: record.is(FIN) }
    }

    /// Takes an acknowledgement: all below `ack` is delivered, and the blocks are.
    ///
    /// `ack` must lie within what was sent; blocks that do not are ignored.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: u64,
        blocks: Blocks<'_>,
        min_rtt: Duration,
    ) -> Progress {
        // A copy that seems to have been acknowledged sooner than possible was not what was
        // acknowledged (RFC 8985 section 6.2 step 2).
        let trusted = now - if min_rtt == Duration::MAX { Duration::ZERO } else { min_rtt };
        let mut progress = Progress { trusted, ..Progress::default() };
        if !blocks.wire.is_empty() {
            self.on_blocks(blocks, &mut progress);
        }
        if ack > self.una {
            progress.acked = ack - self.una;
            self.una = ack;
            while let Some(record) = self.records.front().copied() {
                if record.end() > ack {
                    break;
                }
                if !record.is(SACKED) {
                    self.deliver(0, &record, &mut progress);
                }
                self.pipe -= record.in_pipe();
                if record.is(LOST)
                    && let Some(repair) = &mut self.repair
                {
                    let len = record.sequence_len();
                    repair.pending -= if record.is_pending() { len } else { 0 };
                    repair.lost -= if record.is_lost() { len } else { 0 };
                }
                self.records.pop_front();
                if let Some(samples) = &mut self.samples {
                    samples.known.pop_front();
                }
                self.first += 1;
            }
            if let Some(rack) = &mut self.rack {
                rack.highest = rack.highest.max(ack);
            }
            if let Some(repair) = &mut self.repair {
                repair.sacked.remove_below(ack);
                if self.records.is_empty() {
                    repair.resent.clear();
                }
                if repair.sacked.is_empty() && repair.resent.is_empty() && repair.lost == 0 {
                    self.repair = None;
                }
            }
            relax(&mut self.records);
            if let Some(samples) = &mut self.samples {
                relax(&mut samples.known);
            }
        }
        self.delivered += progress.delivered;
        if progress.delivered > 0
            && let Some(samples) = &mut self.samples
        {
            samples.delivered_at = now;
            if let Some(newest) = progress.newest {
                samples.first_sent_at = newest.sent_at;
            }
            if self.delivered > samples.app_limited_until {
                samples.app_limited_until = 0;
            }
        }
        progress
    }

    /// A record is delivered that was not known to be.
    fn deliver(&mut self, index: usize, record: &Record, progress: &mut Progress) {
        progress.delivered += record.sequence_len();
        if !record.is(TWICE) {
            let sent = record.sent_at;
            progress.first_sent = Some(progress.first_sent.map_or(sent, |first| first.min(sent)));
            progress.last_sent = Some(progress.last_sent.map_or(sent, |last| last.max(sent)));
        }
        if let Some(rack) = &mut self.rack {
            rack.reordering_seen |= !record.is(TWICE) && record.end() <= rack.highest;
            rack.highest = rack.highest.max(record.end());
            if !record.is(TWICE) || record.sent_at <= progress.trusted {
                rack.newest = rack.newest.max((record.sent_at, record.end()));
            }
        }
        if let Some(samples) = &self.samples
            && progress.newest.is_none_or(|newest| newest.sent_at <= record.sent_at)
        {
            progress.newest = samples.known.get(index).map(|known| SentState {
                sent_at: record.sent_at,
                delivered: known.delivered,
                delivered_at: known.delivered_at,
                first_sent_at: known.first_sent_at,
                app_limited: record.is(APP_LIMITED),
            });
        }
    }

    /// Whether at least so many segments, or as many bytes, are delivered above a hole.
    pub(super) fn sacked_segments(&self, least: u32) -> bool {
        let Some(repair) = &self.repair else { return false };
        let mut bytes = 0;
        (1..).zip(repair.sacked.descending()).any(|(ranges, (start, end))| {
            bytes += end - start;
            ranges >= least || bytes >= u64::from(least) * u64::from(self.mss)
        })
    }

    /// Marks as lost what RFC 6675's IsLost says of the present blocks.
    pub(super) fn judge_by_sacks(&mut self, duplicates: u32) -> Losses {
        let (mut bytes, mut edge) = (0, 0);
        let sacked = self.repair.iter().flat_map(|repair| repair.sacked.descending());
        for (ranges, (start, end)) in (1..).zip(sacked) {
            bytes += end - start;
            if ranges >= duplicates || bytes > u64::from(duplicates - 1) * u64::from(self.mss) {
                edge = start;
                break;
            }
        }
        let mut lost = Losses::default();
        let mut index = self.judged();
        while let Some(record) = self.records.get(index).filter(|record| record.start < edge) {
            if !record.is(SACKED | LOST) {
                lost.add(record);
                self.change(index, |record| record.state |= LOST);
            }
            index += 1;
        }
        self.set_judged(index);
        lost
    }

    /// Marks as lost what was sent more than `window` before a segment that was delivered (RFC 8985
    /// section 6.2 step 5); also when the next segment will be if nothing more is delivered.
    ///
    /// A segment also counts as sent before the delivered one if both were sent at the same time
    /// and it is the lower.
    pub(super) fn judge_by_time(
        &mut self,
        now: Time,
        rtt: Duration,
        window: Duration,
    ) -> (Losses, Option<Time>) {
        let (newest_at, newest_end) =
            self.rack.as_ref().map_or((Time::ZERO, 0), |rack| rack.newest);
        let mut lost = Losses::default();
        let mut next: Option<Time> = None;
        let sent_before =
            |at: Time, end: u64| at < newest_at || (at == newest_at && end < newest_end);
        let mut index = self.judged();
        while let Some(record) = self.records.get(index).copied() {
            if !record.is(SACKED | LOST | RESENT) {
                if !sent_before(record.sent_at, record.end()) {
                    break;
                }
                let deadline = record.sent_at + rtt + window;
                if deadline > now {
                    next = Some(deadline);
                    break;
                }
                lost.add(&record);
                self.change(index, |record| record.state |= LOST);
            }
            index += 1;
        }
        self.set_judged(index);
        while let Some(&(number, at)) =
            self.repair.as_ref().and_then(|repair| repair.resent.front())
        {
            let index = number.checked_sub(self.first).map(|index| index as usize);
            let record = index.and_then(|index| self.records.get(index).copied());
            // Delivered, or sent again since: another entry stands for it.
            let live = record.filter(|r| r.is(RESENT) && !r.is(SACKED) && r.sent_at == at);
            if let (Some(record), Some(index)) = (live, index) {
                if !sent_before(at, record.end()) {
                    break;
                }
                let deadline = at + rtt + window;
                if deadline > now {
                    next = Some(next.map_or(deadline, |next| next.min(deadline)));
                    break;
                }
                lost.add(&record);
                self.change(index, Record::lose);
            }
            self.repair().resent.pop_front();
        }
        (lost, next)
    }

    /// Marks the lowest segment as lost unless it is already or was sent again (RFC 6582).
    pub(super) fn lose_head(&mut self) -> Losses {
        let mut lost = Losses::default();
        if let Some(record) = self.records.front().filter(|r| !r.is(SACKED | LOST | RESENT)) {
            lost.add(record);
            self.change(0, |record| record.state |= LOST);
        }
        lost
    }

    /// Marks everything outstanding as lost, retransmissions too. What the peer said to hold it is
    /// believed to hold.
    pub(super) fn lose_all(&mut self) -> Losses {
        let mut lost = Losses::default();
        for index in 0..self.records.len() {
            let record = self.records[index];
            if !record.is(SACKED) {
                if !record.is_pending() {
                    lost.add(&record);
                }
                self.change(index, Record::lose);
            }
        }
        self.set_judged(self.records.len());
        self.repair().resent.clear();
        lost
    }

    /// The index of the first record that was not judged by the present rule.
    fn judged(&self) -> usize {
        self.repair.as_ref().map_or(0, |repair| self.index(repair.judged))
    }

    /// All records before this one are judged. As long as nothing is to be repaired it is not kept:
    /// none is lost then.
    fn set_judged(&mut self, index: usize) {
        if let Some(repair) = &mut self.repair {
            repair.judged = repair.judged.max(self.first + index as u64);
        }
    }

    /// The index of the record with this number.
    fn index(&self, number: u64) -> usize {
        (number.saturating_sub(self.first) as usize).min(self.records.len())
    }
}
