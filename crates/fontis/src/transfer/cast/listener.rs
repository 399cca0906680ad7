use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fontis_base::{Duration, Ecn, Time};
use fontis_proto::cast::{CastGate, CastReport, GateKept};
use mio::{Events, Interest, Poll, Token, Waker};
use tokio::sync::mpsc;

use super::announcement::Announcement;
use super::assembler::{Assembler, Destination, Heard, Received};
use super::content::Content;
use super::invitation::{Invitation, Promise};
use super::reader::{GroupReader, GroupSymbol};
use super::seal::{CastSecret, GroupPacket, ReportSeal, Signer, group_id};
use super::shelf::{Shelf, Shelving};
use super::streamed::Streamed;
use crate::transfer::TransferError;
use crate::udp::{Alarm, Batch, Clock, GroupInterface, Socket, group_receiver};

const SOCKET: Token = Token(0);
const WAKE: Token = Token(1);
const ALARM: Token = Token(2);
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// The longest silence of a sender that gets no answers.
const SILENCE: Duration = Duration::from_secs(10);

/// Ends a listener.
pub(super) struct Stopper {
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.waker.wake();
    }
}

/// Receives one cast, on the thread that calls [`run`](Self::run).
pub(super) struct Listener {
    group: SocketAddr,
    socket: Socket,
    sender: Sender,
    told: mpsc::UnboundedSender<Heard>,
    stop: Arc<AtomicBool>,
    poll: Poll,
    /// Were it closed before the poll has seen it, nothing would wake the listener.
    _waker: Arc<Waker>,
}

/// The sender of a cast.
enum Sender {
    /// It takes reports.
    Answered(Box<Answered>),
    /// It takes reports, and is not the only one to have the object.
    Shelved(Box<Shelved>),
    /// It takes reports, and sends a stream.
    Live(Box<Live>),
    /// It takes no answers.
    OneWay(Box<OneWay>),
}

struct Answered {
    link: Link,
    assembler: Assembler,
}

struct Shelved {
    link: Link,
    shelving: Shelving,
}

struct Live {
    link: Link,
    streamed: Streamed,
}

/// What is read from a sender, and said to it.
struct Link {
    reader: GroupReader,
    reports: ReportSeal,
    reporter: Socket,
    to: SocketAddr,
}

/// What is known of a sender that takes no answers.
struct OneWay {
    group: SocketAddr,
    secret: CastSecret,
    signer: Signer,
    destination: Destination,
    /// The run of the sender that was heard last.
    reader: Option<GroupReader>,
    assembler: Option<(Content, Assembler)>,
    heard_at: Time,
    has_ended: bool,
}

impl Listener {
    /// Joins the group that `remote` invites to.
    pub(super) fn invited(
        invitation: &Invitation,
        remote: SocketAddr,
        interface: GroupInterface,
        destination: Destination,
        told: mpsc::UnboundedSender<Heard>,
    ) -> Result<(Self, Stopper), TransferError> {
        let promise = invitation.promise().ok_or_else(|| impossible(remote))?;
        let (group, member) = (invitation.group, invitation.member);
        let link = Link::new(invitation, remote)?;
        let sender = match promise {
            Promise::Object(content) => {
                let assembler = Assembler::new(content, remote, member, destination, told.clone());
                Sender::Answered(Box::new(Answered { link, assembler }))
            }
            Promise::Stream(latency) => {
                let streamed = Streamed::new(latency, member, &destination, told.clone())?;
                Sender::Live(Box::new(Live { link, streamed }))
            }
        };
        Self::new(group, remote.ip().to_canonical(), interface, sender, told)
    }

    /// Joins the group that `remote` invites to, for one who has blocks from elsewhere, too.
    pub(super) fn shelving(
        invitation: &Invitation,
        remote: SocketAddr,
        interface: GroupInterface,
        shelf: Arc<dyn Shelf>,
        told: mpsc::UnboundedSender<Heard>,
    ) -> Result<(Self, Stopper), TransferError> {
        let Some(Promise::Object(content)) = invitation.promise() else {
            return Err(impossible(remote));
        };
        let shelving = Shelving::new(content, invitation.member, shelf);
        let link = Link::new(invitation, remote)?;
        let sender = Sender::Shelved(Box::new(Shelved { link, shelving }));
        Self::new(invitation.group, remote.ip().to_canonical(), interface, sender, told)
    }

    /// Joins a group whose sender takes no answers.
    pub(super) fn one_way(
        group: SocketAddr,
        interface: GroupInterface,
        (secret, signer): (CastSecret, Signer),
        destination: Destination,
        told: mpsc::UnboundedSender<Heard>,
    ) -> Result<(Self, Stopper), TransferError> {
        let one_way = OneWay {
            group,
            secret,
            signer,
            destination,
            reader: None,
            assembler: None,
            heard_at: Time::ZERO,
            has_ended: false,
        };
        Self::new(group, group.ip(), interface, Sender::OneWay(Box::new(one_way)), told)
    }

    fn new(
        group: SocketAddr,
        source: IpAddr,
        interface: GroupInterface,
        sender: Sender,
        told: mpsc::UnboundedSender<Heard>,
    ) -> Result<(Self, Stopper), TransferError> {
        let failed = |source| TransferError::Group { group, source };
        let socket = group_receiver(group, source, interface).map_err(failed)?;
        let poll = Poll::new().map_err(failed)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE).map_err(failed)?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopper = Stopper { stop: stop.clone(), waker: waker.clone() };
        let listener = Self { group, socket, sender, told, stop, poll, _waker: waker };
        Ok((listener, stopper))
    }

    /// Receives everything, or until it is stopped (`None`, as with a shelf).
    pub(super) fn run(mut self) -> Result<Option<Received>, TransferError> {
        let group = self.group;
        let failed = |source: io::Error| TransferError::Group { group, source };
        let registry = self.poll.registry();
        registry.register(self.socket.source(), SOCKET, Interest::READABLE).map_err(failed)?;
        let mut alarm = Alarm::new(registry, ALARM).map_err(failed)?;
        let (clock, mut batch, mut events) =
            (Clock::start(), Batch::new(), Events::with_capacity(8));
        let (mut told, mut has_heard) = (None, false);
        loop {
            let timeout = alarm.set(clock.now(), self.sender.timeout()).map_err(failed)?;
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(failed(error));
                }
                _ => {}
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            loop {
                let is_more = self.socket.receive(&mut batch);
                let now = clock.now();
                for (meta, datagram) in batch.datagrams() {
                    let source = meta.addr.ip().to_canonical();
                    has_heard |= self.sender.take(datagram, source, now, &self.told);
                }
                self.sender.work(now)?;
                if !is_more {
                    break;
                }
            }
            let now = clock.now();
            self.sender.report(now);
            if self.sender.is_complete() {
                return self.sender.finish();
            }
            if self.sender.is_over(now) {
                return Err(self.sender.unfinished(group));
            }
            if has_heard && told.is_none_or(|at| now >= at + PROGRESS_EVERY) {
                (told, has_heard) = (Some(now), false);
                let _ = self.told.send(Heard::Alive);
                self.sender.tell();
            }
        }
    }
}

impl Sender {
    const fn assembler(&mut self) -> Option<&mut Assembler> {
        match self {
            Self::Answered(answered) => Some(&mut answered.assembler),
            Self::Live(_) | Self::Shelved(_) => None,
            Self::OneWay(one_way) => match &mut one_way.assembler {
                Some((_, assembler)) => Some(assembler),
                None => None,
            },
        }
    }

    /// Stores what is complete.
    fn work(&mut self, now: Time) -> Result<(), TransferError> {
        match self {
            Self::Live(live) => live.streamed.work(now),
            Self::Shelved(shelved) => shelved.shelving.work(),
            _ => self.assembler().map_or(Ok(()), Assembler::work),
        }
    }

    /// Tells how it goes.
    fn tell(&mut self) {
        match self {
            Self::Live(live) => live.streamed.tell(),
            Self::Shelved(shelved) => shelved.shelving.tell(),
            _ => {
                if let Some(assembler) = self.assembler() {
                    assembler.tell();
                }
            }
        }
    }

    fn is_complete(&mut self) -> bool {
        match self {
            Self::Live(live) => live.streamed.is_over(),
            Self::Shelved(shelved) => shelved.shelving.is_complete(),
            _ => self.assembler().is_some_and(|one| one.gate.receiver().is_complete()),
        }
    }

    /// What is complete.
    fn finish(self) -> Result<Option<Received>, TransferError> {
        let assembler = match self {
            Self::Live(live) => return live.streamed.finish().map(Some),
            Self::Shelved(_) => return Ok(None),
            Self::Answered(answered) => Some(answered.assembler),
            Self::OneWay(one_way) => one_way.assembler.map(|(_, assembler)| assembler),
        };
        let mut assembler = assembler.ok_or(TransferError::Worker)?;
        assembler.tell();
        assembler.finish().map(Some)
    }

    /// Takes a datagram; returns true if it is surely the sender's.
    fn take(
        &mut self,
        datagram: &[u8],
        source: IpAddr,
        now: Time,
        told: &mpsc::UnboundedSender<Heard>,
    ) -> bool {
        match self {
            Self::Answered(answered) => {
                answered.link.take(datagram, source, now, &mut answered.assembler.gate)
            }
            Self::Shelved(shelved) => {
                shelved.link.take(datagram, source, now, &mut shelved.shelving.gate)
            }
            Self::Live(live) => live.link.take(datagram, source, now, &mut live.streamed.gate),
            Self::OneWay(one_way) => one_way.take(datagram, source, now, told),
        }
    }

    /// Sends the reports that are due.
    fn report(&mut self, now: Time) {
        match self {
            Self::Answered(answered) => {
                while let Some(report) = answered.assembler.gate.receiver_mut().poll(now) {
                    answered.link.say(&report);
                }
            }
            Self::Shelved(shelved) => {
                while let Some(report) = shelved.shelving.gate.receiver_mut().poll(now) {
                    shelved.link.say(&report);
                }
            }
            Self::Live(live) => {
                while let Some(report) = live.streamed.gate.receiver_mut().poll(now) {
                    live.link.say(&report);
                }
            }
            Self::OneWay(_) => {}
        }
    }

    fn timeout(&self) -> Option<Time> {
        let at = match self {
            Self::Answered(answered) => answered.assembler.gate.receiver().timeout(),
            Self::Shelved(shelved) => shelved.shelving.gate.receiver().timeout(),
            Self::Live(live) => live.streamed.gate.receiver().timeout(),
            Self::OneWay(one_way) if one_way.reader.is_some() => one_way.heard_at + SILENCE,
            Self::OneWay(_) => Time::MAX,
        };
        Some(at).filter(|at| *at < Time::MAX)
    }

    /// Whether nothing more will come of a sender that takes no answers.
    fn is_over(&self, now: Time) -> bool {
        match self {
            Self::Answered(_) | Self::Shelved(_) | Self::Live(_) => false,
            Self::OneWay(one_way) => {
                let is_silent = one_way.reader.is_some() && now >= one_way.heard_at + SILENCE;
                one_way.has_ended || is_silent
            }
        }
    }

    /// The error of a cast that ended too early for this receiver.
    fn unfinished(&self, group: SocketAddr) -> TransferError {
        match self {
            Self::OneWay(one_way) => match &one_way.assembler {
                Some((content, assembler)) => TransferError::Unfinished {
                    group,
                    lacking: assembler.gate.receiver().lacking(),
                    symbols: content.shape.all_symbols(),
                },
                None => TransferError::Silent { group },
            },
            Self::Answered(_) | Self::Shelved(_) | Self::Live(_) => TransferError::Silent { group },
        }
    }
}

impl Link {
    /// The link to the sender at `remote`, as it says in an invitation.
    fn new(invitation: &Invitation, remote: SocketAddr) -> Result<Self, TransferError> {
        let Invitation { id, group, member, .. } = *invitation;
        let failed = |source| TransferError::Group { group, source };
        Ok(Self {
            reader: GroupReader::new(id, &invitation.group_secret, Signer(invitation.signer)),
            reports: ReportSeal::new(id, member, &invitation.report_secret),
            reporter: report_socket(remote).map_err(failed)?,
            to: SocketAddr::new(remote.ip().to_canonical(), invitation.report_port),
        })
    }

    /// Hands over a datagram; returns true if it is surely the sender's.
    fn take<R: GateKept<Symbol: GroupSymbol>>(
        &mut self,
        datagram: &[u8],
        source: IpAddr,
        now: Time,
        gate: &mut CastGate<R>,
    ) -> bool {
        let Some(opened) = self.reader.open(datagram) else { return false };
        self.reader.give(opened, source, now, gate)
    }

    /// Sends a report. One that is lost is followed by another.
    fn say(&self, report: &CastReport) {
        let datagram = self.reports.seal(report);
        let _ = self.reporter.send(self.to, None, Ecn::NotEct, &datagram, None);
    }
}

impl OneWay {
    fn take(
        &mut self,
        datagram: &[u8],
        source: IpAddr,
        now: Time,
        told: &mpsc::UnboundedSender<Heard>,
    ) -> bool {
        let Some(id) = group_id(datagram) else { return false };
        let new = match &self.reader {
            Some(reader) if reader.id() == id => None,
            // The sender has begun anew, or this is somebody else's.
            _ => Some(GroupReader::new(id, &self.secret, self.signer)),
        };
        let Some(reader) = new.as_ref().or(self.reader.as_ref()) else { return false };
        let Some(opened) = reader.open(datagram) else { return false };
        let GroupPacket::Announcement(bytes) = &opened.packet else {
            // Before an announcement nobody knows what the symbols are of.
            let (None, Some(reader), Some((_, assembler))) =
                (new, &mut self.reader, &mut self.assembler)
            else {
                return false;
            };
            let is_heard = reader.give(opened, source, now, &mut assembler.gate);
            if is_heard {
                self.heard_at = now;
            }
            return is_heard;
        };
        let Some(announcement) = Announcement::read(bytes, id, &self.signer) else {
            if let Some((_, assembler)) = &mut self.assembler {
                assembler.gate.accuse(source);
            }
            return false;
        };
        let content = announcement.content;
        if self.assembler.as_ref().is_some_and(|(own, _)| *own != content) {
            // The same sender casts something else now.
            return false;
        }
        self.heard_at = now;
        self.has_ended = announcement.state.is_end;
        if let Some(new) = new {
            self.reader = Some(new);
            if let Some((_, assembler)) = &mut self.assembler {
                assembler.gate.renew();
            }
        }
        if self.assembler.is_none() {
            let (destination, told) = (self.destination.clone(), told.clone());
            let assembler = Assembler::new(content, self.group, 0, destination, told);
            self.assembler = Some((content, assembler));
        }
        true
    }
}

/// An invitation that makes no sense.
const fn impossible(remote: SocketAddr) -> TransferError {
    TransferError::Protocol { remote, what: "an invitation to a cast that cannot be" }
}

fn report_socket(remote: SocketAddr) -> io::Result<Socket> {
    let any: SocketAddr = match remote.ip().to_canonical() {
        IpAddr::V4(_) => ([0; 4], 0).into(),
        IpAddr::V6(_) => ([0; 16], 0).into(),
    };
    Socket::bind(any)
}
