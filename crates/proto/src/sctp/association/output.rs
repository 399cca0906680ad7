//! Packets that leave.

use fontis_base::Time;

use super::{HEADER, Reply, SctpAssociation, State};
use crate::sctp::chunk::{DataChunk, SctpChunk};
use crate::sctp::message::SctpTransmit;

impl SctpAssociation {
    /// The next packet to be sent; `None` if there is none before the next deadline.
    pub fn poll(&mut self, now: Time) -> Option<SctpTransmit> {
        self.has_polled = true;
        self.on_timers(now);
        self.fit_chunks();
        if let Some(Reply { path, ends, tag, chunks }) = self.replies.pop_front() {
            return Some(self.transmit(path.unwrap_or(0), ends, tag, chunks));
        }
        if self.state == State::Closed {
            return None;
        }
        if let Some((tag, chunk)) = self.handshake_chunk(now) {
            let ends = [self.paths[0].local, self.paths[0].peer];
            let mut chunks = vec![chunk];
            self.add_early_data(now, &mut chunks);
            return Some(self.transmit(0, ends, tag, chunks));
        }
        if let Some(request) = self.next_address_request(now) {
            return Some(request);
        }
        if self.is_mute() {
            return None;
        }
        if let Some((at, chunk)) = self.closing_chunk(now) {
            let mut chunks: Vec<SctpChunk> =
                self.take_sack(now).map(|sack| sack.into_vec()).unwrap_or_default();
            chunks.push(chunk);
            return Some(self.on_path(at, chunks));
        }
        if let Some(reset) = self.take_reset(now) {
            return Some(self.on_path(self.data_path(None), vec![reset]));
        }
        if let Some(probe) = self.next_mtu_probe(now) {
            return Some(probe);
        }
        self.poll_data(now)
    }

    /// Adds data to a COOKIE ECHO that leaves for the first time. What is lost with it leaves again
    /// once the association is up: before, only a cookie may go ahead of data.
    fn add_early_data(&mut self, now: Time, chunks: &mut Vec<SctpChunk>) {
        let is_first = self.handshake.repeats == 1 && self.flight.is_empty();
        let [cookie @ SctpChunk::CookieEcho(_)] = &chunks[..] else { return };
        if !is_first || !self.config.early_data {
            return;
        }
        let beside = Some((0, cookie.size()));
        // What a scheduler has chosen must leave.
        let header = DataChunk::header(self.features.interleaving);
        let next = self.outbox.next_len().map(|len| header + len.next_multiple_of(4));
        if next.is_none_or(|next| next > self.space(0, beside)) {
            return;
        }
        if let Some(load) = self.new_data(now, beside) {
            chunks.extend(self.stamp(now, load.path));
            chunks.extend(load.chunks);
        }
    }

    /// A SACK that is due, data, or both.
    fn poll_data(&mut self, now: Time) -> Option<SctpTransmit> {
        let sack = self.take_sack(now);
        let to = self.acks.path.min(self.paths.len().saturating_sub(1) as u8);
        // What has not answered gets nothing but heartbeats.
        let is_ready = self.paths[usize::from(to)].is_confirmed();
        let to = if is_ready { to } else { self.primary as u8 };
        let taken = sack.as_ref().map(|chunks| chunks.iter().map(SctpChunk::size).sum::<usize>());
        if let Some(forward) = self.take_forward(now) {
            let mut chunks = sack.map(|sack| sack.into_vec()).unwrap_or_default();
            chunks.push(SctpChunk::Forward(forward));
            return Some(self.on_path(self.data_path(None), chunks));
        }
        // A repair follows its group at once: it is of use as long as nothing was sent again.
        if sack.is_none()
            && let Some((path, chunk)) = self.next_repair(now)
        {
            return Some(self.on_path(path, vec![chunk]));
        }
        // A SACK goes where the data came from, so data of another path do not go with it; and what
        // a scheduler has chosen must leave, whatever it is.
        let longest = DataChunk::header(self.features.interleaving) + self.outbox.piece();
        let is_open = |taken| self.space(0, Some((0, taken))) >= longest;
        let is_free = |taken| self.scheduler.is_none() || is_open(taken);
        let load = match (&sack, taken) {
            (Some(_), Some(taken)) if self.paths.len() == 1 && is_free(taken) => {
                self.next_load(now, Some((to, taken)))
            }
            (Some(_), _) => None,
            (None, _) => self.next_load(now, None),
        };
        let path = load.as_ref().map_or(usize::from(to), |load| load.path);
        let mut chunks = sack.map(|sack| sack.into_vec()).unwrap_or_default();
        let is_repeat = load.as_ref().is_some_and(|load| load.is_repeat);
        let has_data = load.is_some();
        if let Some(load) = load {
            if let Some(tsn) = self.marks.answer.take() {
                chunks.insert(0, SctpChunk::WindowReduced(tsn));
            }
            chunks.extend(self.stamp(now, path));
            chunks.extend(load.chunks);
        }
        if chunks.is_empty() {
            return None;
        }
        let transmit = self.on_path(path, chunks);
        Some(SctpTransmit { ecn: has_data && self.features.ecn, is_repeat, ..transmit })
    }

    pub(super) fn on_path(&mut self, at: usize, chunks: Vec<SctpChunk>) -> SctpTransmit {
        let ends = [self.paths[at].local, self.paths[at].peer];
        self.transmit(at as u8, ends, self.tags[1], chunks)
    }

    pub(super) fn transmit(
        &mut self,
        path: u8,
        [local, peer]: [core::net::IpAddr; 2],
        tag: u32,
        mut chunks: Vec<SctpChunk>,
    ) -> SctpTransmit {
        self.stats.sent += 1;
        if tag == self.tags[1] {
            self.seal(&mut chunks);
        }
        let size: usize = chunks.iter().map(SctpChunk::size).sum();
        let size = self.config.overhead as usize + HEADER + size;
        let carries = self.paths.get(usize::from(path)).map_or(u32::MAX, |path| path.mtu.size());
        let may_fragment = size > carries as usize;
        let packet = self.packet(tag, chunks);
        SctpTransmit {
            path,
            local,
            peer,
            ecn: false,
            is_repeat: false,
            is_probe: false,
            may_fragment,
            packet,
        }
    }
}
