//! The packets that paths carry: their search (RFC 8899), and chunks that fit.

use bytes::Bytes;
use fontis_base::Time;

use super::{HEADER, SctpAssociation};
use crate::sctp::chunk::SctpChunk;
use crate::sctp::message::{SctpPathState, SctpTransmit};
use crate::sctp::path::Path;
use crate::sctp::wire::kind;

impl SctpAssociation {
    /// The probe that is due, if one is: a padded heartbeat (RFC 4820). It takes no room in a
    /// window, and its loss says nothing of the path but its size.
    pub(super) fn next_mtu_probe(&mut self, now: Time) -> Option<SctpTransmit> {
        if !self.sends_data() || self.outbox.bytes() == 0 {
            return None;
        }
        let chunks = self.stats.chunks_sent;
        for at in 0..self.paths.len() {
            let path = &mut self.paths[at];
            if !path.is_active() {
                continue;
            }
            let Some(size) = path.mtu.probe(now, chunks) else { continue };
            // The same each time, so that an answer that takes long counts, too.
            let nonce = self.config.secret.number(&[at as u64, size.into(), self.tags[1].into()]);
            path.mtu_probe = Some((nonce, size));
            let heartbeat = SctpChunk::Heartbeat(Self::heartbeat_info(at as u8, now, nonce));
            let sealed = self.auth_room_of_heartbeats();
            let taken = self.config.overhead as usize + HEADER + sealed + heartbeat.size() + 4;
            let value = Bytes::from(vec![0; (size as usize).saturating_sub(taken) / 4 * 4]);
            let padding = SctpChunk::Unknown { kind: kind::PADDING, flags: 0, value };
            let transmit = self.on_path(at, vec![heartbeat, padding]);
            return Some(SctpTransmit { is_probe: true, may_fragment: false, ..transmit });
        }
        None
    }

    /// A heartbeat of a path was answered. Whether it was a probe.
    pub(super) fn is_mtu_answer(&mut self, at: usize, nonce: u64) -> bool {
        let Some(path) = self.paths.get_mut(at) else { return false };
        let Some((_, size)) = path.mtu_probe.filter(|(expected, _)| *expected == nonce) else {
            return false;
        };
        path.mtu_probe = None;
        path.mtu.arrived(size);
        true
    }

    /// Makes chunks for what all paths carry that may carry data.
    pub(super) fn fit_chunks(&mut self) {
        if self.config.most_mtu <= self.config.mtu || !self.sends_data() {
            return;
        }
        let carries = |path: &&Path| path.is_confirmed() && path.state != SctpPathState::Inactive;
        let sizes = self.paths.iter().filter(carries).map(|path| path.mtu.size());
        let fitted = sizes.min().unwrap_or(self.config.mtu);
        let more = |size: u32| i64::from(size.saturating_sub(self.config.mtu)) / 4 * 4;
        let by = more(fitted) - more(self.fitted);
        self.fitted = fitted;
        if by != 0 {
            self.outbox.resize(by);
        }
    }

    /// A chunk of so many bytes has come over a path, or was lost.
    pub(super) fn note_size(&mut self, at: usize, bytes: u64, has_come: bool) {
        let more = self.fitted.saturating_sub(self.config.mtu) / 4 * 4;
        let small = (self.outbox.piece() as u64).saturating_sub(more.into());
        let Some(path) = self.paths.get_mut(at) else { return };
        let size = if bytes > small { path.mtu.size() } else { 0 };
        path.mtu.decided(size, has_come);
    }
}
