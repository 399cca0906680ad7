use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fontis_base::Time;
use fontis_proto::data_channel::{
    ChannelContent, DataChannelError, DataChannelEvent, DataChannelOptions, DataChannels,
};
use fontis_proto::sctp::{
    SctpAssociation, SctpChunk, SctpConfig, SctpEvent, SctpPacket, SctpSendError,
};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::RtcError;
use crate::config::RtcConfig;
use crate::description::{Description, SCTP_PORT};
use crate::link::{Datagram, LONGEST, Link, LinkEvent};

/// Inside DTLS there is one path, and its ends have no addresses.
const ENDS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::UNSPECIFIED); 2];
/// Bytes of a packet, and of what stands below SCTP in it: IPv6, UDP, and a record of DTLS.
const PACKET: u32 = 1280;
const BELOW: u32 = 40 + 8 + 37;
/// Bytes that wait for the application.
const MOST_WAITING: usize = 1 << 20;
/// Datagrams that a reader takes at a time.
const BATCH: usize = 64;
/// How long an end that nobody needs any more waits for the peer's agreement.
const FAREWELL: Duration = Duration::from_secs(5);

/// What the application, the readers and the driver of a peer share.
pub(crate) struct Core {
    inner: Mutex<Inner>,
    /// The driver has something to do.
    work: Notify,
    /// The application may have something to do.
    changed: Notify,
    sockets: Vec<(SocketAddr, UdpSocket)>,
    begin: Instant,
    config: RtcConfig,
}

/// Ends the connection when the peer and all of its channels are dropped.
pub(crate) struct Handle(pub(crate) Arc<Core>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

pub(crate) struct Inner {
    pub(crate) link: Link,
    own: SctpConfig,
    association: Option<(SctpAssociation, DataChannels)>,
    pub(crate) phase: Phase,
    /// The reason why it failed, until somebody asks; then [`RtcError::Closed`].
    failure: Option<RtcError>,
    /// Channels that the peer has opened and nobody has taken.
    incoming: VecDeque<(u64, u16, DataChannelOptions)>,
    boxes: BTreeMap<u64, Inbox>,
    /// The box of each channel that is open.
    open: BTreeMap<u16, u64>,
    next_box: u64,
    waiting: usize,
    /// When nobody needed it any more.
    abandoned_at: Option<Instant>,
}

/// Messages of a channel for the application.
#[derive(Default)]
struct Inbox {
    contents: VecDeque<ChannelContent>,
    is_closed: bool,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing was said.
    New,
    /// An offer was made.
    Offered,
    /// Both have said what they are.
    Connecting,
    Connected,
    Closed,
    Failed,
}

impl Core {
    pub(crate) fn new(
        config: RtcConfig,
        begin: Instant,
        link: Link,
        own: SctpConfig,
        sockets: Vec<(SocketAddr, UdpSocket)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                link,
                own,
                association: None,
                phase: Phase::New,
                failure: None,
                incoming: VecDeque::new(),
                boxes: BTreeMap::new(),
                open: BTreeMap::new(),
                next_box: 0,
                waiting: 0,
                abandoned_at: None,
            }),
            work: Notify::new(),
            changed: Notify::new(),
            sockets,
            begin,
            config,
        })
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the driver.
    pub(crate) fn wake(&self) {
        self.work.notify_one();
    }

    /// The time since the beginning; never zero, so that what is due at zero is due.
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64 + 1)
    }

    /// Waits until `ready` gives something.
    pub(crate) async fn until<T>(&self, mut ready: impl FnMut(&mut Inner) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // What changes from here on wakes this task.
            changed.as_mut().enable();
            if let Some(done) = ready(&mut self.inner()) {
                return done;
            }
            changed.await;
        }
    }

    /// Nobody needs the connection any more.
    fn abandon(&self) {
        self.inner().abandoned_at.get_or_insert_with(Instant::now);
        self.wake();
    }

    /// Runs the connection until it is over.
    pub(crate) async fn drive(self: Arc<Self>) {
        let mut readers = JoinSet::new();
        for at in 0..self.sockets.len() {
            readers.spawn(self.clone().read(at));
        }
        loop {
            let (datagrams, due, is_over) = self.turn();
            self.changed.notify_waiters();
            for Datagram { local, peer, bytes } in datagrams {
                let socket = self.sockets.iter().find(|(address, _)| *address == local);
                if let Some((_, socket)) = socket {
                    // What the system refuses is lost, as anywhere on the way.
                    let _ = socket.send_to(&bytes, peer).await;
                }
            }
            if is_over {
                return;
            }
            tokio::select! {
                () = self.work.notified() => {}
                () = tokio::time::sleep_until(due.into()) => {}
            }
        }
    }

    /// Reads a socket for ever.
    async fn read(self: Arc<Self>, at: usize) {
        let (local, socket) = &self.sockets[at];
        let mut buffer = vec![0; 1 << 16];
        loop {
            // Errors of a UDP socket are answers to packets that it sent.
            let Ok((len, from)) = socket.recv_from(&mut buffer).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let mut inner = self.inner();
            inner.take(*local, from, &buffer[..len]);
            for _ in 1..BATCH {
                let Ok((len, from)) = socket.try_recv_from(&mut buffer) else { break };
                inner.take(*local, from, &buffer[..len]);
            }
            drop(inner);
            self.wake();
        }
    }

    /// Does what is due; returns what is to be sent, when the next turn is due, and whether all is
    /// over.
    fn turn(&self) -> (Vec<Datagram>, Instant, bool) {
        let (now, instant) = (self.now(), Instant::now());
        let mut inner = self.inner();
        if let Err(error) = inner.advance(now, instant, self.config.patience) {
            inner.fail(error);
        }
        let datagrams = core::mem::take(&mut inner.link.datagrams);
        let is_over = matches!(inner.phase, Phase::Closed | Phase::Failed);
        let due = inner.due(now, instant).unwrap_or(instant + LONGEST);
        (datagrams, due, is_over)
    }
}

impl Inner {
    /// The reason why nothing can be sent or received any more, if that is so.
    pub(crate) fn check(&mut self) -> Result<(), RtcError> {
        match self.phase {
            Phase::Closed => Err(RtcError::Closed),
            Phase::Failed => Err(self.failure.take().unwrap_or(RtcError::Closed)),
            _ => Ok(()),
        }
    }

    /// Begins to connect.
    pub(crate) fn begin(&mut self, peer: Description, offers: bool) {
        self.link.begin(peer, offers);
        self.phase = Phase::Connecting;
    }

    fn take(&mut self, local: SocketAddr, from: SocketAddr, bytes: &[u8]) {
        if let Err(error) = self.link.take(Instant::now(), local, from, bytes) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: RtcError) {
        if !matches!(self.phase, Phase::Closed | Phase::Failed) {
            self.phase = match error {
                RtcError::Closed => Phase::Closed,
                _ => Phase::Failed,
            };
            self.failure = Some(error);
            let _ = self.link.close();
        }
        self.boxes.values_mut().for_each(|inbox| inbox.is_closed = true);
    }

    fn advance(&mut self, now: Time, instant: Instant, patience: Duration) -> Result<(), RtcError> {
        self.link.turn(instant)?;
        if self.link.lost_at().is_some_and(|at| at + patience <= instant) {
            return Err(RtcError::Silence);
        }
        while let Some(event) = self.link.events.pop_front() {
            match event {
                LinkEvent::Ready => self.associate(now),
                LinkEvent::Data(bytes) => self.on_data(now, &bytes),
                LinkEvent::Closed => return Err(RtcError::Closed),
            }
        }
        self.turn_channels(now)?;
        if let Some(since) = self.abandoned_at {
            self.say_farewell(now, instant, since)?;
        }
        if let Some((association, _)) = &mut self.association {
            let mut bytes = Vec::new();
            while let Some(transmit) = association.poll(now) {
                bytes.clear();
                transmit.packet.encode(&mut bytes);
                self.link.send(&bytes)?;
            }
            // A timer of an association may end it.
            self.turn_channels(now)?;
        }
        Ok(())
    }

    /// When [`Inner::advance`] is due.
    fn due(&mut self, now: Time, instant: Instant) -> Option<Instant> {
        let of_sctp = self.association.as_ref().and_then(|(end, _)| end.timeout());
        let of_sctp = of_sctp.map(|(at, _)| instant + Duration::from(at.since(now)));
        let farewell = self.abandoned_at.map(|at| at + FAREWELL);
        [of_sctp, self.link.timeout(), farewell].into_iter().flatten().min()
    }

    fn associate(&mut self, now: Time) {
        let Some(peer) = self.link.peer() else { return };
        let ports = [SCTP_PORT, peer.sctp_port];
        let longest = usize::try_from(peer.longest).unwrap_or(usize::MAX);
        let config = SctpConfig { ports, ..self.own.clone() };
        let association = SctpAssociation::connect(now, config, ENDS);
        let channels = DataChannels::new(self.link.is_client(), longest);
        self.association = Some((association, channels));
    }

    fn on_data(&mut self, now: Time, bytes: &Bytes) {
        let Some((association, _)) = &mut self.association else { return };
        let Ok(mut packet) = SctpPacket::decode(bytes) else { return };
        for chunk in &mut packet.chunks {
            // Addresses mean nothing inside DTLS (RFC 8261 section 6.1).
            if let SctpChunk::Init(init) | SctpChunk::InitAck(init) = chunk {
                init.addresses.clear();
            }
        }
        association.handle(now, ENDS, &packet, false);
    }

    fn turn_channels(&mut self, now: Time) -> Result<(), RtcError> {
        let Some((association, channels)) = &mut self.association else { return Ok(()) };
        let (mut is_connected, mut end) = (false, None);
        channels.turn(now, association, |event| match event {
            SctpEvent::Connected => is_connected = true,
            SctpEvent::Closed | SctpEvent::PeerFinished | SctpEvent::Restarted => {
                end = Some(RtcError::Closed);
            }
            SctpEvent::Aborted(reason) => end = Some(RtcError::Aborted(reason)),
            _ => {}
        });
        if is_connected {
            self.phase = Phase::Connected;
        }
        if end.is_some() {
            channels.end();
        }
        self.hand_out(end.is_some());
        end.map_or(Ok(()), Err)
    }

    /// Gives what has come to the channels' boxes, as far as there is room.
    fn hand_out(&mut self, all: bool) {
        while all || self.waiting < MOST_WAITING {
            let Some((_, channels)) = &mut self.association else { return };
            let Some(event) = channels.event() else { return };
            match event {
                DataChannelEvent::Incoming(id, options) => {
                    self.waiting += options.label.len() + options.protocol.len();
                    let number = self.new_box(id);
                    self.incoming.push_back((number, id, options));
                }
                DataChannelEvent::Message(id, content) => {
                    let number = self.open.get(&id);
                    if let Some(inbox) = number.and_then(|number| self.boxes.get_mut(number)) {
                        self.waiting += content.len();
                        inbox.contents.push_back(content);
                    }
                }
                DataChannelEvent::Closed(id) => {
                    let number = self.open.remove(&id);
                    if let Some(inbox) = number.and_then(|number| self.boxes.get_mut(&number)) {
                        inbox.is_closed = true;
                    }
                }
                DataChannelEvent::Opened(_) => {}
            }
        }
    }

    fn new_box(&mut self, id: u16) -> u64 {
        let number = self.next_box;
        self.next_box += 1;
        self.boxes.insert(number, Inbox::default());
        self.open.insert(id, number);
        number
    }

    /// Closes the association, and the link when that is done or takes too long.
    fn say_farewell(
        &mut self,
        now: Time,
        instant: Instant,
        since: Instant,
    ) -> Result<(), RtcError> {
        let is_late = since + FAREWELL <= instant;
        match &mut self.association {
            Some((association, _)) if !is_late => {
                association.close(now);
                Ok(())
            }
            _ => Err(RtcError::Closed),
        }
    }

    /// Opens a channel: its box and its number; nothing if that must wait.
    pub(crate) fn open(
        &mut self,
        now: Time,
        options: &DataChannelOptions,
    ) -> Option<Result<(u64, u16), RtcError>> {
        if let Err(error) = self.check() {
            return Some(Err(error));
        }
        let (association, channels) = self.association.as_mut()?;
        if self.phase != Phase::Connected {
            return None;
        }
        match channels.open(now, association, options.clone()) {
            Ok(id) => Some(Ok((self.new_box(id), id))),
            Err(error) if must_wait(error) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    /// A channel that the peer has opened.
    pub(crate) fn take_incoming(&mut self) -> Option<(u64, u16, DataChannelOptions)> {
        let (number, id, options) = self.incoming.pop_front()?;
        self.waiting -= options.label.len() + options.protocol.len();
        Some((number, id, options))
    }

    /// Sends a message on a channel; nothing if that must wait.
    pub(crate) fn send(
        &mut self,
        now: Time,
        number: u64,
        id: u16,
        content: &ChannelContent,
    ) -> Option<Result<(), RtcError>> {
        if let Err(error) = self.check() {
            return Some(Err(error));
        }
        let is_open = self.open.get(&id) == Some(&number);
        let Some((association, channels)) = self.association.as_mut().filter(|_| is_open) else {
            return Some(Err(DataChannelError::Closed(id).into()));
        };
        match channels.send(now, association, id, content) {
            Ok(()) => Some(Ok(())),
            Err(error) if must_wait(error) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    /// The next message of a channel; nothing if none has come yet.
    pub(crate) fn receive(
        &mut self,
        number: u64,
    ) -> Option<Result<Option<ChannelContent>, RtcError>> {
        if let Some(inbox) = self.boxes.get_mut(&number)
            && let Some(content) = inbox.contents.pop_front()
        {
            self.waiting -= content.len();
            return Some(Ok(Some(content)));
        }
        let is_closed = self.boxes.get(&number).is_none_or(|inbox| inbox.is_closed);
        match self.check() {
            Err(RtcError::Closed) => Some(Ok(None)),
            Err(error) => Some(Err(error)),
            Ok(()) => is_closed.then_some(Ok(None)),
        }
    }

    /// The application needs a channel no more.
    pub(crate) fn close_channel(&mut self, number: u64, id: u16) {
        if let Some(inbox) = self.boxes.remove(&number) {
            self.waiting -= inbox.contents.iter().map(ChannelContent::len).sum::<usize>();
        }
        if self.open.get(&id) == Some(&number) {
            self.open.remove(&id);
            if let Some((association, channels)) = &mut self.association {
                channels.close(association, id);
            }
        }
    }

    /// Bytes that the peer has not acknowledged.
    pub(crate) fn buffered(&self) -> u64 {
        self.association.as_ref().map_or(0, |(association, _)| association.buffered())
    }
}

/// Whether what was refused is possible later.
const fn must_wait(error: DataChannelError) -> bool {
    matches!(
        error,
        DataChannelError::Send(SctpSendError::NoRoom { .. } | SctpSendError::Resetting { .. })
    )
}

/// The configuration of SCTP inside DTLS.
pub(crate) fn sctp(config: &RtcConfig) -> std::io::Result<SctpConfig> {
    Ok(SctpConfig {
        mtu: PACKET,
        overhead: BELOW,
        streams: u16::MAX,
        max_message: config.longest_message,
        congestion: config.congestion,
        batches: true,
        ..SctpConfig::new(fontis::sctp::random_secret()?)
    })
}
