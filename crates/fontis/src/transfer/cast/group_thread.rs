use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use fontis_base::{Duration, Rate, Time};
use fontis_proto::cast::CastReport;
use mio::{Events, Interest, Poll, Token, Waker};
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::group::{CastGroup, CastStatus};
use super::invitation::{Invitation, Invited};
use super::seal::{CastId, CastSecret, GroupPacket, ReportSeal};
use super::writer::GroupWriter;
use crate::random::random;
use crate::transfer::TransferError;
use crate::udp::{Alarm, Batch, Clock, Socket, group_sender};

/// What a cast sends, and the order of it.
pub(super) trait Feed: Send + 'static {
    /// A receiver is there.
    fn join(&mut self, member: u32, now: Time);
    /// As many receivers are there as are waited for.
    fn start(&mut self, now: Time);
    /// A receiver is gone.
    fn leave(&mut self, member: u32);
    /// A receiver has said this.
    fn report(&mut self, member: u32, report: &CastReport, now: Time);
    /// When [`poll`](Self::poll) has something; `Time::MAX` if never.
    fn timeout(&self) -> Time;
    /// The number of the next packet, and the packet, if one is due. None is due, too, where the
    /// code can make no further symbol.
    fn poll(
        &mut self,
        now: Time,
        signing: (CastId, &Ed25519KeyPair),
    ) -> Result<Option<(u64, Option<GroupPacket>)>, String>;
    /// The number of a packet that is added.
    fn number(&mut self, now: Time) -> u64;
    /// Whether no symbol is to leave.
    fn is_idle(&self) -> bool;
    /// The rate at which symbols leave.
    fn rate(&self) -> Rate;
    /// How it goes.
    fn status(&self, now: Time) -> CastStatus;
}

/// A thread that sends to a group and reads the reports of receivers, until it is dropped.
pub(super) struct GroupThread {
    invitation: Invitation,
    joined: AtomicU32,
    orders: mpsc::Sender<Order>,
    waker: Arc<Waker>,
    status: Arc<Mutex<CastStatus>>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    Join(u32, Box<ReportSeal>),
    Leave(u32),
    Stop,
}

const SOCKET: Token = Token(0);
const WAKE: Token = Token(1);
const ALARM: Token = Token(2);
/// The interval at which the status is renewed.
const STATUS_EVERY: Duration = Duration::from_millis(200);

impl GroupThread {
    /// Starts one that sends what `feed` has as soon as `wait_for` receivers are there; the waker
    /// wakes it when there is more.
    pub(super) fn start<F: Feed>(
        group: CastGroup,
        cast: Invited,
        wait_for: u32,
        feed: impl FnOnce(Arc<Waker>) -> Result<F, TransferError>,
    ) -> Result<Self, TransferError> {
        let CastGroup { address, interface, hops } = group;
        let group_error = |source: io::Error| TransferError::Group { group: address, source };
        let socket = group_sender(address, interface, hops).map_err(group_error)?;
        let key = Ed25519KeyPair::from_seed_unchecked(&random::<32>());
        let key = key.map_err(|_| TransferError::Worker)?;
        let signer = key.public_key().as_ref().try_into().map_err(|_| TransferError::Worker)?;
        let invitation = Invitation {
            signer,
            member: 0,
            group: address,
            id: random(),
            group_secret: random(),
            report_secret: [0; 32],
            report_port: socket.local_addr().map_err(group_error)?.port(),
            cast,
        };
        let poll = Poll::new().map_err(group_error)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE).map_err(group_error)?);
        let (orders, taken) = mpsc::channel();
        let status = Arc::new(Mutex::new(CastStatus::default()));
        let run = Run {
            group: address,
            wait_for,
            id: invitation.id,
            members: BTreeMap::new(),
            writer: GroupWriter::new(invitation.id, &invitation.group_secret, key, &socket),
            feed: feed(waker.clone())?,
            socket,
            status: status.clone(),
            status_at: Time::ZERO,
            is_idle: false,
        };
        let builder = std::thread::Builder::new().name("fontis-cast".to_owned());
        let thread = builder.spawn(move || run.run(poll, &taken));
        let thread = Some(thread.map_err(|_| TransferError::Worker)?);
        Ok(Self { invitation, joined: AtomicU32::new(0), orders, waker, status, thread })
    }

    /// How it goes.
    pub(super) fn status(&self) -> CastStatus {
        lock(&self.status).clone()
    }

    /// Takes a receiver in.
    pub(super) fn join(&self) -> Invitation {
        let member = self.joined.fetch_add(1, Ordering::Relaxed);
        let report_secret: CastSecret = random();
        let seal = Box::new(ReportSeal::new(self.invitation.id, member, &report_secret));
        self.order(Order::Join(member, seal));
        Invitation { member, report_secret, ..self.invitation.clone() }
    }

    /// A receiver is gone, done or not.
    pub(super) fn leave(&self, member: u32) {
        self.order(Order::Leave(member));
    }

    fn order(&self, order: Order) {
        // A thread that has ended takes no orders; its status says why.
        let _ = self.orders.send(order);
        let _ = self.waker.wake();
    }
}

impl Drop for GroupThread {
    fn drop(&mut self) {
        self.order(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(status: &Mutex<CastStatus>) -> MutexGuard<'_, CastStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What runs on the thread.
struct Run<F> {
    group: SocketAddr,
    wait_for: u32,
    id: CastId,
    members: BTreeMap<u32, ReportSeal>,
    feed: F,
    socket: Socket,
    writer: GroupWriter,
    status: Arc<Mutex<CastStatus>>,
    status_at: Time,
    is_idle: bool,
}

impl<F: Feed> Run<F> {
    fn run(mut self, mut poll: Poll, orders: &mpsc::Receiver<Order>) {
        if let Err(error) = self.run_until_stopped(&mut poll, orders) {
            lock(&self.status).failure = Some(error);
        }
    }

    fn run_until_stopped(
        &mut self,
        poll: &mut Poll,
        orders: &mpsc::Receiver<Order>,
    ) -> Result<(), String> {
        let failed = |error: io::Error| format!("the socket of the group failed: {error}");
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(self.socket.source(), SOCKET, interest).map_err(failed)?;
        let mut alarm = Alarm::new(poll.registry(), ALARM).map_err(failed)?;
        let (clock, mut batch, mut events) =
            (Clock::start(), Batch::new(), Events::with_capacity(8));
        loop {
            let now = clock.now();
            // While the system takes nothing, it says when it does again.
            let at = Some(self.feed.timeout().min(self.writer.timeout()));
            let at = at.filter(|at| *at < Time::MAX && self.writer.is_empty());
            let timeout = alarm.set(now, at).map_err(failed)?;
            match poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(failed(error));
                }
                _ => {}
            }
            let now = clock.now();
            while let Ok(order) = orders.try_recv() {
                self.status_at = now;
                match order {
                    Order::Join(member, seal) => {
                        self.members.insert(member, *seal);
                        self.feed.join(member, now);
                        if self.members.len() as u32 >= self.wait_for {
                            self.feed.start(now);
                        }
                    }
                    Order::Leave(member) => {
                        self.members.remove(&member);
                        self.feed.leave(member);
                    }
                    Order::Stop => return Ok(()),
                }
            }
            loop {
                let is_more = self.socket.receive(&mut batch);
                for (_, datagram) in batch.datagrams() {
                    self.report(datagram, now);
                }
                if !is_more {
                    break;
                }
            }
            self.send(clock.now())?;
            self.tell(clock.now());
        }
    }

    fn report(&mut self, datagram: &[u8], now: Time) {
        let Some(member) = ReportSeal::member_of(self.id, datagram) else { return };
        if let Some(report) = self.members.get(&member).and_then(|seal| seal.open(datagram)) {
            self.feed.report(member, &report, now);
        }
    }

    /// Sends what is due.
    fn send(&mut self, now: Time) -> Result<(), String> {
        while self.writer.flush(&self.socket, self.group) {
            let mut is_more = false;
            while !self.writer.is_full()
                && let Some((number, packet)) = self.feed.poll(now, self.writer.signing())?
            {
                is_more = true;
                if let Some(packet) = packet {
                    self.writer.add(number, &packet, self.feed.rate(), now);
                }
                self.vouch(now);
            }
            self.vouch(now);
            if !is_more && self.writer.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn vouch(&mut self, now: Time) {
        let is_idle = self.feed.is_idle();
        self.writer.vouch(now, is_idle, || self.feed.number(now));
    }

    fn tell(&mut self, now: Time) {
        // Whoever sees that nothing is sent sees all that was sent.
        if now < self.status_at && self.feed.is_idle() == self.is_idle {
            return;
        }
        self.is_idle = self.feed.is_idle();
        self.status_at = now + STATUS_EVERY;
        *lock(&self.status) = self.feed.status(now);
    }
}
