use std::collections::HashMap;

use bytes::Bytes;
use fontis_proto::dfcp::{ChannelId, Checkpoint, CloseReason, DfcpEvent, ObjectShape};
use tokio::sync::{mpsc, watch};

/// Something that happened on one channel.
#[derive(Debug)]
pub(crate) enum ChannelEvent {
    /// A block has come.
    Block { block: u32, data: Bytes },
    /// Part of a block has come.
    Checkpoint(Checkpoint),
    /// A block is to be supplied.
    Wanted { block: u32 },
    /// A stream can be read from.
    Readable,
    /// The peer has all of it.
    Delivered,
    /// It was abandoned.
    Abandoned { code: u32 },
}

/// Objects, and streams, that wait until the application accepts them.
const UNACCEPTED: usize = 1024;

/// A message by the peer.
#[derive(Debug)]
pub struct Message {
    /// Its bytes.
    pub data: Bytes,
    /// It came with the first packet: it may be a replay, and must change nothing.
    pub early: bool,
}

/// An object that the peer offers.
pub(crate) struct Offered {
    pub(crate) channel: ChannelId,
    pub(crate) shape: ObjectShape,
    pub(crate) label: Bytes,
    pub(crate) events: mpsc::UnboundedReceiver<ChannelEvent>,
}

/// A stream that the peer has opened.
pub(crate) struct Opened {
    pub(crate) channel: ChannelId,
    pub(crate) events: mpsc::UnboundedReceiver<ChannelEvent>,
}

/// Routes the events of a connection to their receivers.
pub(crate) struct Router {
    channels: HashMap<ChannelId, mpsc::UnboundedSender<ChannelEvent>>,
    messages: mpsc::UnboundedSender<Message>,
    objects: mpsc::Sender<Offered>,
    streams: mpsc::Sender<Opened>,
    closed: watch::Sender<Option<CloseReason>>,
    confirmed: watch::Sender<bool>,
}

/// The receiving ends of a router.
pub(crate) struct Inboxes {
    pub(crate) messages: mpsc::UnboundedReceiver<Message>,
    pub(crate) objects: mpsc::Receiver<Offered>,
    pub(crate) streams: mpsc::Receiver<Opened>,
    pub(crate) closed: watch::Receiver<Option<CloseReason>>,
    pub(crate) confirmed: watch::Receiver<bool>,
}

impl Router {
    pub(crate) fn new() -> (Self, Inboxes) {
        let (messages, messages_rx) = mpsc::unbounded_channel();
        let (objects, objects_rx) = mpsc::channel(UNACCEPTED);
        let (streams, streams_rx) = mpsc::channel(UNACCEPTED);
        let (closed, closed_rx) = watch::channel(None);
        let (confirmed, confirmed_rx) = watch::channel(false);
        let router =
            Self { channels: HashMap::new(), messages, objects, streams, closed, confirmed };
        let inboxes = Inboxes {
            messages: messages_rx,
            objects: objects_rx,
            streams: streams_rx,
            closed: closed_rx,
            confirmed: confirmed_rx,
        };
        (router, inboxes)
    }

    /// Opens the route for the events of `channel`.
    pub(crate) fn subscribe(
        &mut self,
        channel: ChannelId,
    ) -> mpsc::UnboundedReceiver<ChannelEvent> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.channels.insert(channel, sender);
        receiver
    }

    /// Whether somebody waits for the events of `channel`.
    pub(super) fn is_subscribed(&self, channel: ChannelId) -> bool {
        self.channels.contains_key(&channel)
    }

    /// Passes an event on. Nobody waiting is no error: the application has lost interest. Returns a
    /// channel of the peer that is to be refused, because the application accepts none.
    pub(crate) fn route(&mut self, event: DfcpEvent) -> Option<ChannelId> {
        let (channel, event, last) = match event {
            // Tokens and paths are the endpoint's.
            DfcpEvent::Token { .. }
            | DfcpEvent::PathOpened { .. }
            | DfcpEvent::PathClosed { .. } => return None,
            DfcpEvent::Connected => {
                self.confirmed.send_replace(true);
                return None;
            }
            DfcpEvent::Message { data, early, .. } => {
                let _ = self.messages.send(Message { data, early });
                return None;
            }
            DfcpEvent::ObjectOpened { channel, shape, label } => {
                let events = self.subscribe(channel);
                let offered = Offered { channel, shape, label, events };
                return self.objects.try_send(offered).is_err().then(|| self.refuse(channel));
            }
            DfcpEvent::Closed(reason) => {
                // The reason first: who sees a channel end asks for it.
                self.closed.send_replace(Some(reason));
                self.channels.clear();
                return None;
            }
            DfcpEvent::Readable { channel } => {
                if !self.channels.contains_key(&channel) {
                    let events = self.subscribe(channel);
                    if self.streams.try_send(Opened { channel, events }).is_err() {
                        return Some(self.refuse(channel));
                    }
                }
                (channel, ChannelEvent::Readable, false)
            }
            DfcpEvent::Block { channel, block, data } => {
                (channel, ChannelEvent::Block { block, data }, false)
            }
            DfcpEvent::Checkpoint { channel, checkpoint } => {
                (channel, ChannelEvent::Checkpoint(checkpoint), false)
            }
            DfcpEvent::BlockWanted { channel, block } => {
                (channel, ChannelEvent::Wanted { block }, false)
            }
            DfcpEvent::Delivered { channel } => (channel, ChannelEvent::Delivered, true),
            DfcpEvent::Abandoned { channel, code } => {
                (channel, ChannelEvent::Abandoned { code }, true)
            }
        };
        if let Some(sender) = self.channels.get(&channel) {
            let _ = sender.send(event);
        }
        if last {
            self.channels.remove(&channel);
        }
        None
    }

    fn refuse(&mut self, channel: ChannelId) -> ChannelId {
        self.channels.remove(&channel);
        channel
    }
}
