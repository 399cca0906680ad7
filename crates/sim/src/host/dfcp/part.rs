use bytes::Bytes;
use fontis_base::{Duration, Time};
use fontis_proto::dfcp::{ChannelId, DfcpConnection, DfcpEvent, SendOptions};

use crate::host::common::CommonObject;

/// The interval at which it is looked what others have brought.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The code with which a part is refused that others have brought.
const UNWANTED: u32 = 2;

/// The part of a connection in an object that comes over others, too.
#[derive(Clone, Debug)]
pub struct FetchedPart {
    object: CommonObject,
    source: u32,
    /// What comes, and the blocks of it that have not.
    coming: Option<(ChannelId, Vec<u32>)>,
    left: usize,
    look_at: Option<Time>,
}

impl FetchedPart {
    /// That of the connection to a source.
    pub const fn new(object: CommonObject, source: u32) -> Self {
        Self { object, source, coming: None, left: 0, look_at: None }
    }

    /// Takes an event, and what has come: the bytes of a block that was not there. Refuses what
    /// others have brought. When everything was there, if it is.
    pub(super) fn on_event(
        &mut self,
        now: Time,
        connection: &mut DfcpConnection,
        event: Option<&DfcpEvent>,
    ) -> (Option<u32>, Option<Time>) {
        let mut bytes = None;
        match event {
            Some(DfcpEvent::ObjectOpened { channel, .. }) => {
                let part = self.object.part(self.source);
                self.left = part.len();
                self.coming = Some((*channel, part));
            }
            Some(DfcpEvent::Block { channel, block, .. }) => {
                connection.release_block(now, *channel, *block);
                let coming = self.coming.as_ref().filter(|(open, _)| open == channel);
                if let Some(block) = coming.and_then(|(_, part)| part.get(*block as usize)) {
                    bytes = self.object.came(*block, now);
                    self.left = self.left.saturating_sub(1);
                }
            }
            _ => {}
        }
        if let Some((channel, _)) = self.coming
            && !self.object.is_asked(self.source)
        {
            if self.left > 0 {
                connection.abandon(now, channel, UNWANTED);
            }
            self.coming = None;
        }
        let completed = self.object.completed_at();
        self.look_at = completed.is_none().then_some(now + LOOK_EVERY);
        (bytes, completed)
    }

    pub(super) const fn look_at(&self) -> Option<Time> {
        self.look_at
    }
}

/// The part of a source in an object that others send, too.
#[derive(Clone, Debug)]
pub struct ServedPart {
    object: CommonObject,
    source: u32,
    sending: Option<ChannelId>,
    look_at: Option<Time>,
}

impl ServedPart {
    /// That of a source with this number, which counts as one from now on.
    pub fn new(object: CommonObject, source: u32) -> Self {
        object.join(source);
        Self { object, source, sending: None, look_at: None }
    }

    pub(super) fn on_event(
        &mut self,
        now: Time,
        connection: &mut DfcpConnection,
        event: Option<&DfcpEvent>,
    ) {
        match event {
            Some(DfcpEvent::BlockWanted { channel, block }) => {
                connection.supply_block(*channel, *block, Bytes::new());
            }
            Some(DfcpEvent::Delivered { channel } | DfcpEvent::Abandoned { channel, .. })
                if self.sending == Some(*channel) =>
            {
                self.sending = None;
            }
            Some(DfcpEvent::Closed(_)) => {
                self.look_at = None;
                return self.object.leave(self.source);
            }
            _ => {}
        }
        if self.sending.is_none()
            && let Some((_, shape)) = self.object.take(self.source)
        {
            let options = SendOptions::default();
            self.sending = connection.send_object(now, shape, Bytes::new(), options);
        }
        // Others may stop yet.
        let is_idle = self.sending.is_none() && self.object.completed_at().is_none();
        self.look_at = is_idle.then_some(now + LOOK_EVERY);
    }

    pub(super) const fn look_at(&self) -> Option<Time> {
        self.look_at
    }
}
