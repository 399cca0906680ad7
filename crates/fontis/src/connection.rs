use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use fontis_base::Rate;
use fontis_proto::dfcp::{
    ChannelId, Checkpoint, CloseReason, DfcpStats, Held, Kept, ObjectShape, SendOptions,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Mutex, OwnedSemaphorePermit, mpsc, oneshot, watch};

use crate::endpoint::{ChannelEvent, Handle, Inboxes, Left, Message, Offered, Opened};

/// Bytes that a stream holds before writing to it waits.
const STREAM_BUFFER: u64 = 4 << 20;

/// A connection to a peer. Clones share it; it stays open until one of them closes it, the peer
/// does, or all are gone.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use fontis::{Accept, Endpoint, EndpointConfig, Identity, PublicKey};
/// use fontis_proto::dfcp::SendOptions;
/// use tokio::io::AsyncWriteExt;
///
/// let config = EndpointConfig::new(*Identity::generate().secret());
/// let endpoint = Endpoint::bind("0.0.0.0:0".parse()?, config)?;
/// let key: PublicKey = "…".parse()?;
/// let connection = endpoint.connect("192.0.2.1:4433".parse()?, *key.as_bytes(), None).await?;
///
/// // A message arrives whole; ordered ones wait for each other.
/// connection.send_message("hello", SendOptions { ordered: true, ..SendOptions::default() });
///
/// // A stream is an AsyncWrite here and an AsyncRead there.
/// let mut stream = connection.open_stream(SendOptions::default()).await.ok_or("closed")?;
/// stream.write_all(b"as much as there is").await?;
/// stream.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    handle: Handle,
    id: u64,
    remote: SocketAddr,
    peer: [u8; 32],
    messages: Mutex<mpsc::UnboundedReceiver<Message>>,
    objects: Mutex<mpsc::Receiver<Offered>>,
    streams: Mutex<mpsc::Receiver<Opened>>,
    closed: watch::Receiver<Option<CloseReason>>,
    confirmed: watch::Receiver<bool>,
    is_fresh: bool,
    /// Messages that the application took and the driver does not know of, and their bytes.
    taken: StdMutex<(u32, usize)>,
}

/// Messages, and bytes of messages, after which the driver is told that they were taken.
const TOLD_AFTER: (u32, usize) = (64, 1 << 20);

impl Drop for Shared {
    fn drop(&mut self) {
        self.handle.call(self.id, |slot, now| slot.machine.close(now, 0, ""));
    }
}

impl Connection {
    pub(crate) fn new(
        handle: Handle,
        id: u64,
        remote: SocketAddr,
        peer: [u8; 32],
        is_fresh: bool,
        inboxes: Inboxes,
    ) -> Self {
        let shared = Shared {
            handle,
            id,
            remote,
            peer,
            messages: Mutex::new(inboxes.messages),
            objects: Mutex::new(inboxes.objects),
            streams: Mutex::new(inboxes.streams),
            closed: inboxes.closed,
            confirmed: inboxes.confirmed,
            is_fresh,
            taken: StdMutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The peer's address.
    pub fn remote_addr(&self) -> SocketAddr {
        self.shared.remote
    }

    /// The peer's public key.
    pub fn peer_key(&self) -> [u8; 32] {
        self.shared.peer
    }

    /// Sends a message, delivered whole or not at all; `options` say when and whether in order.
    pub fn send_message(&self, data: impl Into<Bytes>, options: SendOptions) {
        let data = data.into();
        self.shared.handle.call(self.shared.id, move |slot, _| {
            slot.machine.send_message(data, options);
        });
    }

    /// Sends an urgent message that answers one of the peer's.
    pub(crate) fn answer(&self, data: Bytes) {
        self.send_message(data, SendOptions { priority: 0, ..SendOptions::default() });
    }

    /// The answers that the peer has not taken yet; `None` if the connection is over.
    pub(crate) async fn untaken_answers(&self) -> Option<usize> {
        self.ask(|slot| slot.machine.untaken_messages()).await
    }

    /// Sends a message that is of use for so long only: what has not been delivered by then is
    /// given up.
    pub fn send_message_within(
        &self,
        data: impl Into<Bytes>,
        within: std::time::Duration,
        options: SendOptions,
    ) {
        let data = data.into();
        self.shared.handle.call(self.shared.id, move |slot, now| {
            let options = SendOptions { deadline: Some(now + within.into()), ..options };
            slot.machine.send_message(data, options);
        });
    }

    /// Sends a message that is in pieces, which are not joined.
    pub(crate) fn send_pieces(&self, pieces: Vec<Bytes>, options: SendOptions) {
        self.shared.handle.call(self.shared.id, move |slot, _| {
            slot.machine.send_pieces(pieces, options);
        });
    }

    /// The peer's next message; `None` when the connection is over.
    pub async fn recv_message(&self) -> Option<Message> {
        let message = self.shared.messages.lock().await.recv().await?;
        let count = {
            let mut taken = self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
            *taken = (taken.0 + 1, taken.1 + message.data.len());
            let (count, bytes) = *taken;
            if count < TOLD_AFTER.0 && bytes < TOLD_AFTER.1 {
                return Some(message);
            }
            *taken = (0, 0);
            count
        };
        self.shared.handle.call(self.shared.id, move |slot, _| {
            for _ in 0..count {
                slot.machine.message_taken();
            }
        });
        Some(message)
    }

    /// Opens a stream of bytes to the peer; `None` when the connection is over.
    pub async fn open_stream(&self, options: SendOptions) -> Option<SendStream> {
        let channel = self.ask(move |slot| slot.machine.open_stream(options)).await?;
        Some(SendStream { connection: self.clone(), channel, waiting: None, finished: false })
    }

    /// The next stream that the peer opens; `None` when the connection is over.
    pub async fn accept_stream(&self) -> Option<RecvStream> {
        let opened = self.shared.streams.lock().await.recv().await?;
        Some(RecvStream {
            connection: self.clone(),
            channel: opened.channel,
            events: opened.events,
            waiting: None,
            ready: Bytes::new(),
            ended: false,
        })
    }

    /// Sends an object in blocks, without those that the peer says it holds; `label` is for the
    /// peer's application, at most 1024 bytes. `None` when the connection is over or the peer does
    /// not accept such a shape.
    pub async fn send_object(
        &self,
        shape: ObjectShape,
        label: Bytes,
        options: SendOptions,
        held: Held,
    ) -> Option<SendObject> {
        let (channel, events) = self
            .shared
            .handle
            .ask(self.shared.id, move |slot, now| {
                let channel = slot.machine.resume_object(now, shape, label, options, held)?;
                Some((channel, slot.router.subscribe(channel)))
            })
            .await??;
        Some(SendObject { connection: self.clone(), channel, events })
    }

    /// Reports the held part of an object that the peer will send under `label`.
    pub fn expect_object(&self, label: Bytes, kept: Kept) {
        self.shared.handle.call(self.shared.id, move |slot, _| {
            slot.machine.expect_object(label, kept);
        });
    }

    /// Refuses the objects that were not [expected](Self::expect_object): further ones, and those
    /// that have begun. Without it every object is taken.
    pub fn refuse_unexpected(&self) {
        self.shared.handle.call(self.shared.id, |slot, now| slot.machine.refuse_unasked(now));
    }

    /// The same, with `expected` as what is expected so far. The connection ends when the peer
    /// refuses a message, or an initiator has no memory for what it expects: somebody waits. An
    /// initiator asks in silence whether the peer is there.
    pub(crate) fn transfers_only(&self, expected: Option<Bytes>) {
        self.shared.handle.call(self.shared.id, move |slot, now| {
            if let Some(label) = expected {
                slot.machine.expect_object(label, Kept::default());
            }
            slot.machine.refuse_unasked(now);
            slot.ends_on_refusal = true;
            if slot.is_initiator() {
                slot.machine.await_peer();
            }
        });
    }

    /// Hands out whole blocks alone: no task wakes for a part of one.
    pub(crate) fn skip_checkpoints(&self) {
        self.shared.handle.call(self.shared.id, |slot, _| slot.machine.skip_checkpoints());
    }

    /// Leave to have a thread that reads the blocks of one transfer, as long as the permit lives;
    /// `None` if as many transfers of the endpoint as may have one.
    pub(crate) fn reader(&self) -> Option<OwnedSemaphorePermit> {
        self.shared.handle.reader()
    }

    /// Keeps the connection while nothing is sent over it, as long as the peer is there.
    pub(crate) fn stay(&self) {
        self.shared.handle.call(self.shared.id, |slot, _| slot.machine.stay());
    }

    /// The next object that the peer sends; `None` when the connection is over.
    pub async fn recv_object(&self) -> Option<RecvObject> {
        let offered = self.shared.objects.lock().await.recv().await?;
        Some(RecvObject {
            connection: self.clone(),
            channel: offered.channel,
            shape: offered.shape,
            label: offered.label,
            events: offered.events,
        })
    }

    /// The counters; `None` when the connection is over.
    pub async fn stats(&self) -> Option<DfcpStats> {
        self.ask(|slot| slot.machine.stats()).await
    }

    /// How long nothing has come from the peer; `None` when the connection is over.
    pub(crate) async fn silence(&self) -> Option<std::time::Duration> {
        let ask = |slot: &mut crate::endpoint::Slot, now| slot.machine.silence(now);
        self.shared.handle.ask(self.shared.id, ask).await.map(Into::into)
    }

    /// Closes the connection; undelivered data is dropped. The peer gets `code` and `reason`.
    pub fn close(&self, code: u32, reason: &str) {
        let reason = reason.to_owned();
        self.shared
            .handle
            .call(self.shared.id, move |slot, now| slot.machine.close(now, code, &reason));
    }

    /// Waits until the peer has proved that it is there now; false if the connection is over
    /// sooner. What an early message asks for may be a replay until then.
    pub async fn confirmed(&self) -> bool {
        let mut confirmed = self.shared.confirmed.clone();
        confirmed.wait_for(|confirmed| *confirmed).await.is_ok()
    }

    /// Whether the peer's first packet is no replay: it showed a token, which is good once.
    pub fn is_fresh(&self) -> bool {
        self.shared.is_fresh
    }

    /// An object leaves beside the connection: it counts as sending from now on.
    pub(crate) fn carries(&self) {
        self.shared.handle.call(self.shared.id, |slot, _| slot.carries = true);
    }

    /// The rate that the limits of both sides leave for what is sent.
    pub(crate) async fn sending_limit(&self) -> Option<Rate> {
        self.ask(|slot| slot.machine.sending_limit()).await.flatten()
    }

    /// Waits until the connection is over, and says why.
    pub async fn closed(&self) -> CloseReason {
        let mut closed = self.shared.closed.clone();
        let reason = closed.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or(CloseReason::Local)
    }

    /// The reason why the connection is over, if it is.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.shared.closed.borrow().clone()
    }

    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut crate::endpoint::Slot) -> T + Send + 'static,
    ) -> Option<T> {
        self.shared.handle.ask(self.shared.id, move |slot, _| ask(slot)).await
    }
}

/// An object on its way to the peer: its blocks are asked for one after another.
pub struct SendObject {
    connection: Connection,
    channel: ChannelId,
    events: mpsc::UnboundedReceiver<ChannelEvent>,
}

/// A request or a result of a [`SendObject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendProgress {
    /// Supply this block.
    Wanted(u32),
    /// The peer has all of it.
    Delivered,
    /// The peer does not want it (any more), for the reason it numbers so.
    Abandoned(u32),
}

impl SendObject {
    /// The next request; `None` when the connection is over.
    pub async fn next(&mut self) -> Option<SendProgress> {
        loop {
            return Some(match self.events.recv().await? {
                ChannelEvent::Wanted { block } => SendProgress::Wanted(block),
                ChannelEvent::Delivered => SendProgress::Delivered,
                ChannelEvent::Abandoned { code } => SendProgress::Abandoned(code),
                _ => continue,
            });
        }
    }

    /// Supplies a block.
    pub fn supply(&self, block: u32, data: Bytes) {
        let channel = self.channel;
        let shared = &self.connection.shared;
        shared.handle.call(shared.id, move |slot, _| {
            slot.machine.supply_block(channel, block, data);
        });
    }

    /// Waits until at most so many bytes of supplied blocks are still to leave, if no more are lost
    /// than expected; an error when the connection is over.
    pub(crate) fn nearly_sent(&self, most: u64) -> oneshot::Receiver<u64> {
        let (reply, answer) = oneshot::channel();
        let channel = self.channel;
        let shared = &self.connection.shared;
        shared.handle.call(shared.id, move |slot, _| {
            slot.when_below(channel, Left::Unsent, most, reply);
        });
        answer
    }

    /// Gives the object up.
    pub fn abandon(self, code: u32) {
        let channel = self.channel;
        let shared = &self.connection.shared;
        shared.handle.call(shared.id, move |slot, now| slot.machine.abandon(now, channel, code));
    }
}

/// An object on its way from the peer.
pub struct RecvObject {
    connection: Connection,
    channel: ChannelId,
    shape: ObjectShape,
    label: Bytes,
    events: mpsc::UnboundedReceiver<ChannelEvent>,
}

/// A received part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A block: check it, store it, then release or reject it.
    Block(u32, Bytes),
    /// Part of a block that is slow in coming. Who stores it need not fetch it again if the
    /// connection ends.
    Checkpoint(Checkpoint),
    /// The peer has given it up, for the reason it numbers so.
    Abandoned(u32),
}

impl RecvObject {
    /// Its partition.
    pub const fn shape(&self) -> ObjectShape {
        self.shape
    }

    /// The label that the peer's application gave it.
    pub const fn label(&self) -> &Bytes {
        &self.label
    }

    /// The next block, in the order of their coming; `None` when the connection is over.
    pub async fn next(&mut self) -> Option<Received> {
        loop {
            match self.events.recv().await? {
                ChannelEvent::Block { block, data } => return Some(Received::Block(block, data)),
                ChannelEvent::Checkpoint(part) => return Some(Received::Checkpoint(part)),
                ChannelEvent::Abandoned { code } => return Some(Received::Abandoned(code)),
                _ => {}
            }
        }
    }

    /// The block has been checked and stored: the sender may forget it.
    pub fn release(&self, block: u32) {
        self.with(move |slot, now, channel| slot.machine.release_block(now, channel, block));
    }

    /// Rejects the block: it is collected anew.
    pub fn reject(&self, block: u32) {
        self.with(move |slot, now, channel| slot.machine.reject_block(now, channel, block));
    }

    /// Gives the object up.
    pub fn abandon(self, code: u32) {
        self.with(move |slot, now, channel| slot.machine.abandon(now, channel, code));
    }

    fn with(
        &self,
        act: impl FnOnce(&mut crate::endpoint::Slot, fontis_base::Time, ChannelId) + Send + 'static,
    ) {
        let channel = self.channel;
        let shared = &self.connection.shared;
        shared.handle.call(shared.id, move |slot, now| act(slot, now, channel));
    }
}

/// The sending half of a stream.
pub struct SendStream {
    connection: Connection,
    channel: ChannelId,
    /// The buffered bytes, queried after a write that may have filled the buffer.
    waiting: Option<oneshot::Receiver<u64>>,
    finished: bool,
}

impl SendStream {
    /// Ends the stream: the peer reads to here and no further. Dropping the stream does the same.
    pub fn finish(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            let channel = self.channel;
            let shared = &self.connection.shared;
            shared.handle.call(shared.id, move |slot, _| slot.machine.finish_stream(channel));
        }
    }

    /// The buffered bytes.
    fn ask_buffered(&self) -> oneshot::Receiver<u64> {
        let (reply, answer) = oneshot::channel();
        let channel = self.channel;
        let shared = &self.connection.shared;
        shared.handle.call(shared.id, move |slot, _| {
            slot.when_below(channel, Left::Undelivered, STREAM_BUFFER, reply);
        });
        answer
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        self.finish();
    }
}

fn broken() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the connection is over")
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if let Some(waiting) = &mut self.waiting {
            let answer = ready!(Pin::new(waiting).poll(cx));
            self.waiting = None;
            if answer.is_err() {
                return Poll::Ready(Err(broken()));
            }
        }
        if self.finished {
            return Poll::Ready(Err(broken()));
        }
        let piece = Bytes::copy_from_slice(&data[..data.len().min(256 << 10)]);
        let length = piece.len();
        let channel = self.channel;
        let shared = &self.connection.shared;
        shared.handle.call(shared.id, move |slot, _| {
            slot.machine.write(channel, piece);
        });
        self.waiting = Some(self.ask_buffered());
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        // What is written leaves as fast as the path carries it.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

/// The receiving half of a stream.
pub struct RecvStream {
    connection: Connection,
    channel: ChannelId,
    events: mpsc::UnboundedReceiver<ChannelEvent>,
    waiting: Option<oneshot::Receiver<(Option<Bytes>, bool)>>,
    ready: Bytes,
    ended: bool,
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        loop {
            if !self.ready.is_empty() {
                let length = self.ready.len().min(buf.remaining());
                buf.put_slice(&self.ready[..length]);
                self.ready.advance(length);
                return Poll::Ready(Ok(()));
            }
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            if let Some(waiting) = &mut self.waiting {
                let answer = ready!(Pin::new(waiting).poll(cx));
                self.waiting = None;
                match answer {
                    Ok((Some(data), ended)) => {
                        self.ready = data;
                        self.ended = ended;
                        continue;
                    }
                    Ok((None, true)) => {
                        self.ended = true;
                        continue;
                    }
                    // Nothing there yet: wait for the next event below.
                    Ok((None, false)) => {}
                    Err(_) => return Poll::Ready(Err(broken())),
                }
                match ready!(self.events.poll_recv(cx)) {
                    Some(ChannelEvent::Abandoned { .. }) => {
                        let error = std::io::Error::new(
                            std::io::ErrorKind::ConnectionReset,
                            "the peer has given the stream up",
                        );
                        return Poll::Ready(Err(error));
                    }
                    Some(_) => {}
                    None => return Poll::Ready(Err(broken())),
                }
            }
            let (reply, answer) = oneshot::channel();
            let channel = self.channel;
            let shared = &self.connection.shared;
            shared.handle.call(shared.id, move |slot, now| {
                let data = slot.machine.read(now, channel);
                let ended = slot.machine.is_read(channel);
                let _ = reply.send((data, ended));
            });
            self.waiting = Some(answer);
        }
    }
}
