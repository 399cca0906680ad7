//! Paths that come and go with addresses (RFC 5061).

use core::net::IpAddr;

use fontis_base::Time;

use super::{MOST_PATHS, SctpAssociation};
use crate::sctp::message::SctpPathState;
use crate::sctp::path::Path;

impl SctpAssociation {
    /// The numbers of the paths that are there.
    fn live(&self) -> impl Iterator<Item = usize> {
        let paths = self.paths.iter().enumerate();
        paths.filter(|(_, path)| path.is_there()).map(|(at, _)| at)
    }

    /// Whether there is room for another path.
    pub(super) fn has_room_for_path(&self) -> bool {
        self.live().count() < MOST_PATHS
    }

    /// Whether no address of the peer has answered yet: nothing leaves but what asks for an answer.
    pub(super) fn is_mute(&self) -> bool {
        self.has_heartbeats() && !self.paths.iter().any(Path::is_confirmed)
    }

    /// Gives each address a path that has none: to the address of the other end that has the
    /// fewest, the last of these.
    pub(super) fn pair_addresses(&mut self, now: Time) {
        for side in 0..2 {
            let all = [&self.addresses.own, &self.addresses.peers];
            let (new, others) = (all[side].clone(), all[1 - side].clone());
            for address in new {
                if side == 0 && self.addresses.is_leaving(address) {
                    continue;
                }
                let of = |path: &Path, side: usize| [path.local, path.peer][side];
                if self.live().any(|at| of(&self.paths[at], side) == address) {
                    continue;
                }
                let is_fit = |other: &&IpAddr| {
                    other.is_ipv4() == address.is_ipv4()
                        && !(side == 1 && self.addresses.is_leaving(**other))
                };
                let count = |other: &&IpAddr| {
                    self.live().filter(|at| of(&self.paths[*at], 1 - side) == **other).count()
                };
                let Some(other) = others.iter().rev().filter(is_fit).min_by_key(count) else {
                    continue;
                };
                let pair = if side == 0 { [address, *other] } else { [*other, address] };
                self.open_path(now, pair);
            }
        }
    }

    /// Opens a path that nothing is known of: a heartbeat asks at once (rule F14).
    fn open_path(&mut self, now: Time, [local, peer]: [IpAddr; 2]) {
        if !self.has_room_for_path() {
            return;
        }
        let path = Path::new(now, local, peer, &self.config);
        if self.paths.len() < MOST_PATHS {
            return self.paths.push(path);
        }
        if let Some(free) = self.paths.iter_mut().find(|path| !path.is_there()) {
            *free = path;
        }
    }

    /// Closes the paths that such a pair of addresses has.
    pub(super) fn close_paths(&mut self, has: impl Fn([IpAddr; 2]) -> bool) {
        for at in 0..self.paths.len() {
            let path = &self.paths[at];
            if path.is_there() && has([path.local, path.peer]) {
                self.close_path(at);
            }
        }
    }

    /// Closes a path: what was in flight there is sent again on others.
    fn close_path(&mut self, at: usize) {
        for (tsn, order) in core::mem::take(&mut self.paths[at].departures) {
            self.lose(tsn, order);
        }
        let path = &mut self.paths[at];
        path.state = SctpPathState::Removed;
        (path.expires, path.in_flight, path.untold) = (None, 0, 0);
        path.settle_repairs(u64::MAX);
        path.stop_rack();
        (path.heartbeat, path.mtu_probe, path.heartbeat_at) = (None, None, Time::MAX);
        let [local, peer] = [path.local, path.peer];
        self.restored.retain(|restored| restored.path != at);
        self.replies.retain(|reply| reply.ends != [local, peer]);
        self.choose_primary();
    }

    /// Sees to it that the primary path is one that answers, if there is any.
    pub(super) fn choose_primary(&mut self) {
        if !self.paths[self.primary].is_confirmed() {
            let confirmed = self.live().find(|at| self.paths[*at].is_confirmed());
            self.primary = confirmed.or_else(|| self.live().next()).unwrap_or(self.primary);
        }
        if let Some(wanted) = self.addresses.wanted_primary {
            let leads = |at: &usize| self.paths[*at].peer == wanted;
            let at = self.live().filter(leads).find(|at| self.paths[*at].is_confirmed());
            if let Some(at) = at {
                self.primary = at;
                self.addresses.wanted_primary = None;
            }
        }
    }

    /// A path has answered for the first time. Another one whose two addresses have other paths
    /// serves nothing any more: both would share what lies before an address.
    pub(super) fn after_confirmation(&mut self) {
        self.choose_primary();
        if !self.features.dynamic {
            return;
        }
        for at in 0..self.paths.len() {
            let Path { local, peer, .. } = self.paths[at];
            let serves = |other: &Path| other.is_active() && (other.local == local);
            let reaches = |other: &Path| other.is_active() && (other.peer == peer);
            let others = || self.paths.iter().enumerate().filter(|(other, _)| *other != at);
            let is_spare = others().any(|(_, other)| serves(other))
                && others().any(|(_, other)| reaches(other));
            if self.paths[at].is_there() && at != self.primary && is_spare {
                self.close_path(at);
            }
        }
    }
}
