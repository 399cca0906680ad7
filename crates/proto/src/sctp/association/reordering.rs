//! Data on their way through the reorder buffer, if this end has one.

use fontis_base::Time;

use super::{PIECE, SctpAssociation};
use crate::sctp::chunk::{DataChunk, Stamp};
use crate::sctp::reordering::Waiting;

impl SctpAssociation {
    /// Puts a DATA chunk into the reorder buffer, unless the buffer has gone on without it or has
    /// no room. Whether the chunk is taken now and deserves an acknowledgement.
    pub(super) fn put_in_order(
        &mut self,
        now: Time,
        chunk: &DataChunk,
        path: Option<u8>,
        stamp: Option<Stamp>,
        is_last: bool,
    ) -> bool {
        if self.reordering.is_none() {
            return self.on_data(now, chunk);
        }
        let tsn = self.arrivals.expand(chunk.tsn);
        let (held, takes) = (self.held(), self.takes_data() && !self.arrivals.has(tsn));
        let most = u64::from(self.config.receive_buffer);
        let Some(reordering) = self.reordering.as_mut().filter(|_| takes) else {
            return self.on_data(now, chunk);
        };
        let len = chunk.data.len() as u64;
        reordering.measure(now, len);
        let memory = reordering.bytes() + len + PIECE * (reordering.packets() as u64 + 1);
        if reordering.has_passed(tsn) || held + memory > most {
            return self.on_data(now, chunk);
        }
        let stamp = stamp.map(|stamp| (stamp, now));
        let waiting = Waiting { chunk: chunk.clone(), path, stamp, is_last };
        reordering.push(now, tsn, u32::try_from(len).unwrap_or(u32::MAX), waiting);
        false
    }

    /// Takes what the reorder buffer gives.
    pub(super) fn release_in_order(&mut self, now: Time) {
        // The path of data that deserve an acknowledgement, and whose packet was not counted yet.
        let mut owed = None;
        loop {
            let next = self.arrivals.cumulative() + 1;
            let Some(reordering) = &mut self.reordering else { break };
            reordering.skip_to(next);
            let Some((_, waiting)) = reordering.pop(now) else { break };
            if self.on_data(now, &waiting.chunk) {
                self.acks.stamp = waiting.stamp.or(self.acks.stamp);
                owed = Some(waiting.path);
            }
            if waiting.is_last
                && let Some(path) = owed.take()
            {
                self.after_data(now, path);
            }
        }
        // The last chunk of its packet may have been taken before, or waits still.
        if let Some(path) = owed {
            self.after_data(now, path);
        }
    }

    /// When the reorder buffer gives something, whatever comes.
    pub(super) fn reordering_due(&self) -> Time {
        self.reordering.as_ref().map_or(Time::MAX, |reordering| reordering.due())
    }
}
