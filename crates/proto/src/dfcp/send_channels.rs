use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Values, ValuesMut};

use fontis_base::{Duration, Time};

use super::packet::{ChannelId, LiveKind};
use super::sending::SendChannel;

/// Messages that have not begun and are looked at for each packet. The others wait behind them.
const AT_HAND: usize = 64;

/// The channels of this side that are not over.
#[derive(Default)]
pub(super) struct SendChannels {
    open: BTreeMap<ChannelId, SendChannel>,
    /// Messages that wait until others have begun: however many an application gives, a packet
    /// costs the same.
    waiting: BTreeMap<ChannelId, SendChannel>,
    by_priority: BTreeSet<(u8, ChannelId)>,
    by_deadline: BTreeSet<(Time, ChannelId)>,
}

impl SendChannels {
    pub(super) fn insert(&mut self, channel: SendChannel) {
        let waits = channel.is_message()
            && (!self.waiting.is_empty() || (self.open.len() >= AT_HAND && self.room() == 0));
        if !waits {
            self.open.insert(channel.id, channel);
            return;
        }
        self.by_priority.insert((channel.priority, channel.id));
        self.by_deadline.extend(channel.deadline.map(|deadline| (deadline, channel.id)));
        self.waiting.insert(channel.id, channel);
    }

    pub(super) fn remove(&mut self, id: ChannelId) -> Option<SendChannel> {
        self.open.remove(&id).or_else(|| self.take_waiting(id))
    }

    fn take_waiting(&mut self, id: ChannelId) -> Option<SendChannel> {
        let channel = self.waiting.remove(&id)?;
        self.by_priority.remove(&(channel.priority, id));
        if let Some(deadline) = channel.deadline {
            self.by_deadline.remove(&(deadline, id));
        }
        Some(channel)
    }

    /// How many more messages may be at hand.
    fn room(&self) -> usize {
        let fresh = |channel: &&SendChannel| channel.is_message() && !channel.has_begun();
        AT_HAND.saturating_sub(self.open.values().filter(fresh).count())
    }

    /// Messages take the places of those that have begun, the most urgent first.
    pub(super) fn admit(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        for _ in 0..self.room() {
            let Some((_, id)) = self.by_priority.first().copied() else { return };
            let admitted = self.take_waiting(id);
            self.open.extend(admitted.map(|channel| (id, channel)));
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }

    /// Whether messages wait until others have begun.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The number of messages before which nothing else goes, and which wait for nothing.
    pub(super) fn urgent_messages(&self) -> usize {
        let channels = self.open.values().chain(self.waiting.values());
        channels.filter(|one| one.priority == 0 && one.is_unordered_message()).count()
    }

    pub(super) fn get(&self, id: ChannelId) -> Option<&SendChannel> {
        self.open.get(&id).or_else(|| self.waiting.get(&id))
    }

    pub(super) fn get_mut(&mut self, id: ChannelId) -> Option<&mut SendChannel> {
        self.open.get_mut(&id).or_else(|| self.waiting.get_mut(&id))
    }

    /// Those of which something may leave.
    pub(super) fn values(&self) -> Values<'_, ChannelId, SendChannel> {
        self.open.values()
    }

    pub(super) fn values_mut(&mut self) -> ValuesMut<'_, ChannelId, SendChannel> {
        self.open.values_mut()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let open = self.open.values().filter_map(|channel| channel.deadline);
        open.chain(self.by_deadline.first().map(|(at, _)| *at)).min()
    }

    /// Those whose deadlines have passed, or will have before they arrive, `way` after they leave.
    pub(super) fn late(&self, now: Time, way: Duration) -> Vec<ChannelId> {
        let soon = self.by_deadline.iter().take_while(|(at, _)| *at <= now + way);
        let waiting = soon.filter_map(|(_, id)| self.waiting.get(id));
        let late = self.open.values().chain(waiting).filter(|channel| channel.is_late(now, way));
        let mut late: Vec<_> = late.map(|channel| channel.id).collect();
        late.sort_unstable();
        late
    }

    /// The number behind the last channel before `id`.
    pub(super) fn before(&self, id: ChannelId) -> ChannelId {
        let last = |channels: &BTreeMap<ChannelId, SendChannel>| {
            channels.range(..id).next_back().map_or(0, |(id, _)| id + 2)
        };
        last(&self.open).max(last(&self.waiting))
    }

    /// The place behind the last ordered message before channel `id`.
    pub(super) fn place_before(&self, id: ChannelId) -> u32 {
        let last = |channels: &BTreeMap<ChannelId, SendChannel>| {
            let mut before = channels.range(..id).rev();
            let place = before.find_map(|(_, channel)| match channel.kind() {
                Some(LiveKind::Ordered { sequence }) => Some(sequence + 1),
                _ => None,
            });
            place.unwrap_or(0)
        };
        last(&self.open).max(last(&self.waiting))
    }
}
