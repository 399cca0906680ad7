use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use fontis_base::Time;

use super::message::ChannelMessage;
use super::options::{ChannelContent, DataChannelError, DataChannelOptions};
use crate::sctp::{Reliability, SctpAssociation, SctpData, SctpEvent, SctpMessage, SctpSend};

/// What the upper layer says of messages of a channel (RFC 8831 section 8).
mod protocol {
    pub(super) const CONTROL: u32 = 50;
    pub(super) const TEXT: u32 = 51;
    pub(super) const BINARY: u32 = 53;
    pub(super) const EMPTY_TEXT: u32 = 56;
    pub(super) const EMPTY_BINARY: u32 = 57;
}

/// The most channels at a time.
const MOST: usize = 1024;
/// Bytes of messages that wait for the application: what comes beyond waits in the association,
/// whose window tells the peer.
const MOST_BYTES: usize = 1 << 20;
/// Bytes that a message takes beside its content, about.
const PIECE: usize = 64;

/// What happens to channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataChannelEvent {
    /// The peer has opened a channel.
    Incoming(u16, DataChannelOptions),
    /// The peer has a channel that this end has opened.
    Opened(u16),
    /// A message.
    Message(u16, ChannelContent),
    /// A channel is closed: nothing comes from it any more.
    Closed(u16),
}

/// A channel.
#[derive(Clone, Debug)]
struct Channel {
    is_ordered: bool,
    reliability: Reliability,
    /// Whether the peer is known to have it. Until then nothing may overtake its opening.
    is_known: bool,
    /// Whether its streams end: that of this end, and the peer's.
    ends: [bool; 2],
    /// Whether the application was told that it is closed, or has closed it.
    is_closed: bool,
}

impl Channel {
    const fn of(options: &DataChannelOptions, is_known: bool) -> Self {
        let DataChannelOptions { is_ordered, reliability, .. } = *options;
        Self { is_ordered, reliability, is_known, ends: [false; 2], is_closed: false }
    }
}

/// The channels of an association.
#[derive(Clone, Debug)]
pub struct DataChannels {
    channels: BTreeMap<u16, Channel>,
    /// Whether this end opens the channels with even numbers.
    is_even: bool,
    events: VecDeque<DataChannelEvent>,
    bytes: usize,
    /// The longest message that the peer takes.
    longest: usize,
    /// Channels of the peer whose opening is not answered: there is no room, or the stream's last
    /// reset is not done.
    owed: BTreeSet<u16>,
}

impl DataChannels {
    /// No channels yet, at the end that is the client or the server of DTLS, with a peer that takes
    /// messages of so many bytes.
    pub const fn new(is_client: bool, longest: usize) -> Self {
        Self {
            channels: BTreeMap::new(),
            is_even: is_client,
            events: VecDeque::new(),
            bytes: 0,
            longest,
            owed: BTreeSet::new(),
        }
    }

    /// Opens a channel, which takes messages at once; its number.
    ///
    /// # Errors
    /// If there cannot be another.
    pub fn open(
        &mut self,
        now: Time,
        association: &mut SctpAssociation,
        options: DataChannelOptions,
    ) -> Result<u16, DataChannelError> {
        let most = usize::from(u16::MAX);
        if options.label.len() > most || options.protocol.len() > most {
            return Err(DataChannelError::LongName);
        }
        let first = u16::from(!self.is_even);
        // A number is not used again before the application has learnt that it is free.
        let untold: BTreeSet<u16> = self.events.iter().filter_map(closed).collect();
        let is_free = |id: &u16| !self.channels.contains_key(id) && !untold.contains(id);
        let id = (first..u16::MAX).step_by(2).find(is_free);
        let id = id.filter(|_| self.channels.len() < MOST);
        let id = id.ok_or(DataChannelError::NoneLeft(MOST))?;
        let channel = Channel::of(&options, false);
        control(now, association, id, &ChannelMessage::Open(options))?;
        self.channels.insert(id, channel);
        Ok(id)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If the channel is closed, the peer does not take so long a message, or the association has
    /// no room.
    pub fn send(
        &self,
        now: Time,
        association: &mut SctpAssociation,
        id: u16,
        content: &ChannelContent,
    ) -> Result<(), DataChannelError> {
        let channel = self.channels.get(&id).filter(|channel| !channel.is_closed);
        let channel = channel.ok_or(DataChannelError::Closed(id))?;
        let (len, most) = (content.len(), self.longest);
        if len > most {
            return Err(DataChannelError::LongMessage { len, most });
        }
        let (kind, data) = match content {
            // A message of SCTP has at least one byte.
            ChannelContent::Text(text) if text.is_empty() => {
                (protocol::EMPTY_TEXT, Bytes::from_static(&[0]))
            }
            ChannelContent::Binary(bytes) if bytes.is_empty() => {
                (protocol::EMPTY_BINARY, Bytes::from_static(&[0]))
            }
            ChannelContent::Text(text) => (protocol::TEXT, Bytes::copy_from_slice(text.as_bytes())),
            ChannelContent::Binary(bytes) => (protocol::BINARY, bytes.clone()),
        };
        let send = SctpSend {
            stream: id,
            protocol: kind,
            is_unordered: !channel.is_ordered && channel.is_known,
            reliability: channel.reliability,
        };
        association.send(now, send, SctpData::Bytes(data))?;
        Ok(())
    }

    /// Closes a channel, after what was sent on it. Closing one that is closed does nothing.
    pub fn close(&mut self, association: &mut SctpAssociation, id: u16) {
        if let Some(channel) = self.channels.get_mut(&id)
            && !channel.is_closed
        {
            channel.is_closed = true;
            self.end_own(association, id);
        }
    }

    /// Whether a channel takes messages.
    pub fn is_open(&self, id: u16) -> bool {
        self.channels.get(&id).is_some_and(|channel| !channel.is_closed)
    }

    /// The next event.
    pub fn event(&mut self) -> Option<DataChannelEvent> {
        let event = self.events.pop_front()?;
        self.bytes -= cost(&event);
        Some(event)
    }

    /// Takes what has come, as far as there is room for it. The events of the association that
    /// concern no channel are given to `other`.
    pub fn turn(
        &mut self,
        now: Time,
        association: &mut SctpAssociation,
        mut other: impl FnMut(SctpEvent),
    ) {
        while self.bytes < MOST_BYTES
            && let Some(message) = association.receive(now)
        {
            self.take(association, message);
        }
        // A stream ends after its messages, so events wait with them.
        while self.bytes < MOST_BYTES
            && let Some(event) = association.event()
        {
            match event {
                SctpEvent::PeerReset(id) => self.on_end(association, id),
                SctpEvent::Reset(id) | SctpEvent::ResetRefused(id) => self.on_own_end(id),
                event => {
                    if event == SctpEvent::Connected {
                        self.end_early(association);
                    }
                    other(event);
                }
            }
        }
        self.answer(now, association);
    }

    /// All channels are closed: there is no association any more.
    pub fn end(&mut self) {
        self.owed.clear();
        for (id, channel) in core::mem::take(&mut self.channels) {
            if !channel.is_closed {
                self.tell(DataChannelEvent::Closed(id));
            }
        }
    }

    fn tell(&mut self, event: DataChannelEvent) {
        self.bytes += cost(&event);
        self.events.push_back(event);
    }

    /// Ends the streams of channels that were closed before there was an association.
    fn end_early(&self, association: &mut SctpAssociation) {
        let closed = self.channels.iter().filter(|(_, channel)| channel.is_closed);
        closed.for_each(|(id, _)| self.end_own(association, *id));
    }

    fn take(&mut self, association: &mut SctpAssociation, message: SctpMessage) {
        let SctpMessage { stream: id, protocol, data: SctpData::Bytes(bytes), .. } = message else {
            return;
        };
        if protocol == protocol::CONTROL {
            return self.on_control(association, id, &bytes);
        }
        // Messages of a channel that was closed may still come.
        let Some(channel) = self.channels.get_mut(&id).filter(|channel| !channel.is_closed) else {
            return;
        };
        // Whoever sends on a channel knows it.
        if !core::mem::replace(&mut channel.is_known, true) {
            self.tell(DataChannelEvent::Opened(id));
        }
        let content = match protocol {
            protocol::TEXT => String::from_utf8(bytes.into()).map(ChannelContent::Text).ok(),
            protocol::EMPTY_TEXT => Some(ChannelContent::Text(String::new())),
            protocol::EMPTY_BINARY => Some(ChannelContent::Binary(Bytes::new())),
            _ => Some(ChannelContent::Binary(bytes)),
        };
        if let Some(content) = content {
            self.tell(DataChannelEvent::Message(id, content));
        } else {
            // Text that is none ends the channel (RFC 8831 section 6.6).
            self.fail(association, id);
        }
    }

    fn on_control(&mut self, association: &mut SctpAssociation, id: u16, bytes: &[u8]) {
        match ChannelMessage::decode(bytes) {
            Ok(ChannelMessage::Ack) => {
                if let Some(channel) = self.channels.get_mut(&id)
                    && !core::mem::replace(&mut channel.is_known, true)
                    && !channel.is_closed
                {
                    self.tell(DataChannelEvent::Opened(id));
                }
            }
            Ok(ChannelMessage::Open(options)) => {
                let is_own = id.is_multiple_of(2) == self.is_even;
                let before = self.channels.get(&id).map(|channel| channel.ends);
                // A peer that opens it again has seen both streams of the last one end, though the
                // answer to this end's reset may be on its way.
                let is_late = before == Some([false, true]);
                if is_own || (before.is_some() && !is_late) || self.channels.len() > MOST {
                    return self.fail(association, id);
                }
                self.channels.insert(id, Channel::of(&options, true));
                self.owed.insert(id);
                self.tell(DataChannelEvent::Incoming(id, options));
            }
            Err(_) => self.fail(association, id),
        }
    }

    /// Closes a channel whose peer breaks the protocol.
    fn fail(&mut self, association: &mut SctpAssociation, id: u16) {
        if self.is_open(id) {
            self.tell(DataChannelEvent::Closed(id));
            self.close(association, id);
        } else if !self.channels.contains_key(&id) {
            // There is no channel: the peer learns it as its stream ends.
            let _ = association.reset(id);
        }
    }

    /// Answers the peer's openings as far as that is possible. A channel that was closed meanwhile
    /// ends behind its answer.
    fn answer(&mut self, now: Time, association: &mut SctpAssociation) {
        for id in core::mem::take(&mut self.owed) {
            if control(now, association, id, &ChannelMessage::Ack).is_err() {
                self.owed.insert(id);
            } else if !self.is_open(id) {
                self.end_own(association, id);
            }
        }
    }

    /// The stream of this end has ended.
    fn on_own_end(&mut self, id: u16) {
        // It was the stream of a channel before this one that the peer has opened.
        if self.owed.contains(&id) {
            return;
        }
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.ends[0] = true;
            self.forget(id);
        }
    }

    /// The peer's stream has ended.
    fn on_end(&mut self, association: &mut SctpAssociation, id: u16) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.ends[1] = true;
        if !core::mem::replace(&mut channel.is_closed, true) {
            self.tell(DataChannelEvent::Closed(id));
            self.end_own(association, id);
        }
        self.forget(id);
    }

    /// Ends the stream of this end. A peer that cannot reset streams keeps the number in use.
    fn end_own(&self, association: &mut SctpAssociation, id: u16) {
        if !self.owed.contains(&id) {
            let _ = association.reset(id);
        }
    }

    /// The number is free when both streams have ended.
    fn forget(&mut self, id: u16) {
        if self.channels.get(&id).is_some_and(|channel| channel.ends == [true; 2]) {
            self.channels.remove(&id);
        }
    }
}

/// Bytes that an event takes until the application takes it.
const fn cost(event: &DataChannelEvent) -> usize {
    PIECE
        + match event {
            DataChannelEvent::Message(_, content) => content.len(),
            DataChannelEvent::Incoming(_, options) => options.label.len() + options.protocol.len(),
            DataChannelEvent::Opened(_) | DataChannelEvent::Closed(_) => 0,
        }
}

/// The channel of which an event says that it is closed.
const fn closed(event: &DataChannelEvent) -> Option<u16> {
    match event {
        DataChannelEvent::Closed(id) => Some(*id),
        _ => None,
    }
}

/// Sends a message that opens a channel or answers one.
fn control(
    now: Time,
    association: &mut SctpAssociation,
    stream: u16,
    message: &ChannelMessage,
) -> Result<(), DataChannelError> {
    let send = SctpSend { stream, protocol: protocol::CONTROL, ..SctpSend::default() };
    association.send(now, send, SctpData::Bytes(message.encode()))?;
    Ok(())
}
