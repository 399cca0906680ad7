use std::sync::Arc;

use fontis_proto::data_channel::{ChannelContent, DataChannelOptions};

use crate::RtcError;
use crate::core::Handle;

/// A channel. It is closed when it is dropped, after what was sent on it.
pub struct RtcChannel {
    peer: Arc<Handle>,
    number: u64,
    id: u16,
    options: DataChannelOptions,
}

impl RtcChannel {
    pub(crate) const fn new(
        peer: Arc<Handle>,
        (number, id): (u64, u16),
        options: DataChannelOptions,
    ) -> Self {
        Self { peer, number, id, options }
    }

    /// Its number.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// How it carries messages, and what the end that opened it says of it.
    pub const fn options(&self) -> &DataChannelOptions {
        &self.options
    }

    /// Sends a message. Waits until there is room for it.
    ///
    /// # Errors
    /// If the channel or the connection is closed, or the peer does not take so long a message.
    pub async fn send(&self, content: ChannelContent) -> Result<(), RtcError> {
        let core = &self.peer.0;
        core.until(|inner| inner.send(core.now(), self.number, self.id, &content)).await?;
        core.wake();
        Ok(())
    }

    /// The next message; `None` when the channel or the connection was closed. Messages of all
    /// channels share a buffer: those of one that nobody reads keep the others waiting.
    ///
    /// # Errors
    /// If the connection has failed. What came before that is given first.
    pub async fn recv(&self) -> Result<Option<ChannelContent>, RtcError> {
        let core = &self.peer.0;
        let content = core.until(|inner| inner.receive(self.number)).await?;
        // There is room for others.
        core.wake();
        Ok(content)
    }

    /// Bytes of all channels that the peer has not acknowledged.
    pub fn buffered(&self) -> u64 {
        self.peer.0.inner().buffered()
    }

    /// Waits until the peer has acknowledged what was sent on all channels.
    ///
    /// # Errors
    /// If the connection is over before.
    pub async fn flushed(&self) -> Result<(), RtcError> {
        let flushed = self.peer.0.until(|inner| match inner.buffered() {
            0 => Some(Ok(())),
            _ => inner.check().err().map(Err),
        });
        flushed.await
    }
}

impl Drop for RtcChannel {
    fn drop(&mut self) {
        self.peer.0.inner().close_channel(self.number, self.id);
        self.peer.0.wake();
    }
}
