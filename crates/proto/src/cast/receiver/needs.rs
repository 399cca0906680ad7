use std::collections::BTreeMap;

use fontis_base::{Duration, Rate};
use fontis_codes::BlockDecoder;

use super::super::loss::symbols_to_send;
use super::super::packet::CastNeed;
use super::{CastReceiver, FEW};

/// Runs of blocks that a report has room for.
const MOST_NEEDS: usize = 96;
/// The share of what it lacks that a receiver is content to see planned. Of many receivers some
/// lack a little more than whoever spoke first: they wait for what is planned.
const COVERED: f64 = 0.95;
const COVERED_OF_MANY: f64 = 0.6;

/// What a receiver lacks, and what of it the sender has not planned.
impl CastReceiver {
    /// Symbols that a block lacks.
    fn lacks(&self, block: u32) -> u32 {
        match self.open.get(&block) {
            Some(open) => open.decoder.as_ref().map_or(0, BlockDecoder::needed),
            None => self.shape.source_symbols(block),
        }
    }

    /// Runs of visited blocks that are lacking as much, but for the one that is being visited.
    pub(super) fn lacking_runs(&self) -> impl Iterator<Item = CastNeed> {
        let pass = self.state.pass.min(self.shape.blocks());
        let mut next = 0;
        std::iter::from_fn(move || {
            while next < pass {
                let first = self.done.first_missing(u64::from(next)) as u32;
                if first >= pass {
                    break;
                }
                next = first + 1;
                let lacks = self.lacks(first);
                if lacks == 0 || self.visiting == Some(first) {
                    continue;
                }
                if !self.open.contains_key(&first) {
                    // Nothing came of these: they are as long, but for the last.
                    let end = self.untouched_end(first, pass);
                    next = end;
                    return Some(CastNeed { first, blocks: end - first, symbols: lacks });
                }
                return Some(CastNeed { first, blocks: 1, symbols: lacks });
            }
            None
        })
    }

    fn untouched_end(&self, first: u32, pass: u32) -> u32 {
        let next_open = self.open.range(first..).next().map_or(pass, |(block, _)| *block);
        let next_done = match self.done.find(u64::from(first)) {
            Some(_) => first,
            None => self.next_done(first).unwrap_or(pass),
        };
        let visiting = self.visiting.filter(|block| *block > first).unwrap_or(pass);
        let mut end = next_open.min(next_done).min(visiting).min(pass);
        let own = self.shape.len(first);
        while end > first + 1 && self.shape.len(end - 1) != own {
            end -= 1;
        }
        end.max(first + 1)
    }

    /// The first block from `block` on that is there.
    fn next_done(&self, block: u32) -> Option<u32> {
        let after = self.done.descending().take_while(|(start, _)| *start > u64::from(block));
        after.last().map(|(start, _)| start as u32)
    }

    /// How long the sender is busy with the repairs that its state lists.
    pub(super) fn planned_time(&self) -> Duration {
        let symbols: u64 = self.state.planned.iter().map(|one| u64::from(one.count)).sum();
        let bytes = symbols * u64::from(self.shape.symbol_size());
        Rate::from_bps(self.state.rate.saturating_mul(8).max(8)).time_for(bytes)
    }

    /// What is lacking and not planned, and was so when the wait began. Of many receivers most
    /// waits end together: what came up just before is no reason for all of them to speak.
    pub(super) fn due_needs(&self) -> Vec<CastNeed> {
        let mut needs = self.uncovered();
        if self.state.members > FEW {
            let is_old = |need: &CastNeed| {
                self.open.get(&need.first).is_none_or(|open| open.visit <= self.report_visit)
            };
            needs.retain(is_old);
        }
        needs
    }

    /// What is lacking and not planned, as far as the sender has told its plan.
    pub(super) fn uncovered(&self) -> Vec<CastNeed> {
        let loss = self.loss.share();
        let share = if self.state.members <= FEW { COVERED } else { COVERED_OF_MANY };
        let soon = self.state.soon as usize;
        let planned: BTreeMap<u32, (u32, bool)> = self
            .state
            .planned
            .iter()
            .enumerate()
            .map(|(i, one)| (one.block, (one.count, i < soon)))
            .collect();
        let is_covered = |need: &CastNeed| {
            let wanted = f64::from(symbols_to_send(need.symbols, loss, 0.0));
            let last = need.first.saturating_add(need.blocks);
            // What is planned for stragglers comes after all others: who needs far less is none.
            let enough = planned.range(need.first..last).filter(|(_, (count, is_soon))| {
                let count = f64::from(*count);
                count >= (wanted * share).floor() && (*is_soon || count <= 2.0 * wanted + 4.0)
            });
            enough.count() as u32 == need.blocks
        };
        let mut needs: Vec<CastNeed> =
            self.lacking_runs().filter(|need| !is_covered(need)).collect();
        if needs.len() > MOST_NEEDS {
            // Who lacks little is done soonest.
            needs.sort_by_key(|need| (need.symbols, need.first));
            needs.truncate(MOST_NEEDS);
            needs.sort_by_key(|need| need.first);
        }
        needs
    }
}
