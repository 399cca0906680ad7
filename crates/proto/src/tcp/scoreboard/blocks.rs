use super::super::record::{LOST, RESENT, Record, SACKED};
use super::super::segment::unwrap;
use super::{Blocks, Progress, Scoreboard};

/// What is learned from blocks.
impl Scoreboard {
    /// The peer says what it holds above holes.
    pub(super) fn on_blocks(&mut self, blocks: Blocks<'_>, progress: &mut Progress) {
        let mut all_sent = true;
        for &(left, right) in self.news(blocks.wire) {
            let [left, right] = [left, right].map(|edge| unwrap(self.una, blocks.base, edge));
            if left < 0 || left >= right {
                continue;
            }
            let (start, end) = ((left as u64).max(self.una), right as u64);
            all_sent &= end <= self.nxt;
            if start < end && end <= self.nxt {
                self.select(start, end, progress);
            }
        }
        if let Some(repair) = &mut self.repair {
            // What it cannot have yet, it may have when it says so again.
            let told = if all_sent { blocks.wire } else { &[] };
            repair.told = told.iter().copied().collect();
        }
    }

    /// Of the blocks of an acknowledgement those that may say something new: what comes after the
    /// first nearly always came with the last acknowledgement too, after its first or with it.
    fn news<'a>(&self, blocks: &'a [(u32, u32)]) -> &'a [(u32, u32)] {
        let (Some(repair), [_, others @ ..]) = (&self.repair, blocks) else { return blocks };
        let told = repair.told.as_slice();
        let were_told = told.get(1..).is_some_and(|told| told.starts_with(others));
        if were_told || told.starts_with(others) { &blocks[..1] } else { blocks }
    }

    /// The peer says that it holds what is from `start` to `end`.
    fn select(&mut self, start: u64, end: u64, progress: &mut Progress) {
        let repair = self.repair();
        if let Some(from) = repair.sacked.extend_last(start, end) {
            return self.mark(from, end, progress);
        }
        let mut new = NewRanges::default();
        repair.sacked.insert_with(start, end, |a, b| new.push(a, b));
        for (start, end) in new.iter() {
            self.mark(start, end, progress);
        }
    }

    /// Marks the records that the peer holds with what is new from `start` to `end`.
    fn mark(&mut self, start: u64, end: u64, progress: &mut Progress) {
        let mut index = self.index_at(start);
        while let Some(record) = self.records.get(index).copied().filter(|r| r.start < end) {
            let is_new = record.start >= start && record.end() <= end;
            if !record.is(SACKED) && (is_new || self.is_held(&record)) {
                if record.is(LOST | RESENT) {
                    self.change(index, |record| record.state |= SACKED);
                } else {
                    self.pipe -= record.sequence_len();
                    self.records[index].state |= SACKED;
                }
                self.deliver(index, &record, progress);
            }
            index += 1;
        }
        let marked = self.first + index as u64;
        self.repair().marked = marked;
    }

    /// Whether the peer holds all of a record.
    fn is_held(&self, record: &Record) -> bool {
        let found = self.repair.as_ref().and_then(|repair| repair.sacked.find(record.start));
        found.is_some_and(|(start, end)| start <= record.start && record.end() <= end)
    }

    /// The index of the first record that ends above `position`.
    fn index_at(&self, position: u64) -> usize {
        let after_marked = self.index(self.repair.as_ref().map_or(0, |repair| repair.marked));
        if self.records.get(after_marked).is_some_and(|record| record.start == position) {
            return after_marked;
        }
        let Some(front) = self.records.front() else { return 0 };
        // Most segments are full ones, so arithmetic finds them; a search finds the others.
        let guess = (position.saturating_sub(front.start) / u64::from(self.mss)) as usize;
        match self.records.get(guess) {
            Some(record) if record.start <= position && position < record.end() => guess,
            _ => self.records.partition_point(|record| record.end() <= position),
        }
    }
}

/// The parts of a block that were new: nearly always one.
#[derive(Default)]
struct NewRanges {
    one: Option<(u64, u64)>,
    more: Vec<(u64, u64)>,
}

impl NewRanges {
    fn push(&mut self, start: u64, end: u64) {
        if self.one.is_none() {
            self.one = Some((start, end));
        } else {
            self.more.push((start, end));
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.one.iter().chain(&self.more).copied()
    }
}
