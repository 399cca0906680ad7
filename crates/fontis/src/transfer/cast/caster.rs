use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use fontis_base::{Duration, Rate, Time};
use fontis_proto::cast::{CastConfig, CastMember, CastRate, CastSender, CastSymbol, CastTransmit};
use mio::{Events, Interest, Poll, Token, Waker};
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::blocks::Blocks;
use super::invitation::Invitation;
use super::object::CastObject;
use super::seal::{CastId, CastSecret, GroupPacket, ReportSeal};
use super::writer::GroupWriter;
use crate::hash_tree::HashTree;
use crate::random::random;
use crate::source::{Source, SourceOptions};
use crate::transfer::TransferError;
use crate::udp::{Alarm, Batch, Clock, GroupInterface, Socket, group_sender};

/// The way to a group.
#[derive(Clone, Copy, Debug)]
pub struct CastGroup {
    /// The group, and the port.
    pub address: SocketAddr,
    /// The interface towards it.
    pub interface: GroupInterface,
    /// Routers that packets may pass.
    pub hops: u32,
}

/// How an object is cast.
#[derive(Clone, Copy, Debug)]
pub struct CastOptions {
    /// The group.
    pub group: CastGroup,
    /// How fast content leaves.
    pub rate: CastRate,
    /// Receivers to wait for before the first symbol leaves.
    pub wait_for: u32,
}

/// The state of a cast.
#[derive(Clone, Debug, Default)]
pub struct CastStatus {
    /// Symbols that have left.
    pub symbols: u64,
    /// Source symbols of head and body.
    pub needed: u64,
    /// Bytes of content that leave in a second at present, as a rate.
    pub rate: Rate,
    /// The receiver that bounds the rate, if one does.
    pub limiting: Option<u32>,
    /// Whether nothing is to be sent at present.
    pub is_idle: bool,
    /// The receivers, by their numbers.
    pub members: BTreeMap<u32, CastMember>,
    /// Why it has ended, if it has.
    pub failure: Option<String>,
}

/// Sends one object to a group, on a thread of its own, until it is dropped.
pub struct Caster {
    source: Arc<Source>,
    tree: Arc<HashTree>,
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

impl Caster {
    /// Opens the file or folder at `path`, hashes it, and is ready to send it.
    ///
    /// # Errors
    /// If it cannot be read, or the group cannot be sent to.
    pub fn new(
        path: &Path,
        source_options: &SourceOptions,
        options: CastOptions,
    ) -> Result<Self, TransferError> {
        let object = CastObject::open(path, source_options)?;
        let shape = object.content.shape;
        let CastGroup { address: group, interface, hops } = options.group;
        let group_error = |source: io::Error| TransferError::Group { group, source };
        let socket = group_sender(group, interface, hops);
        let socket = socket.map_err(group_error)?;
        let key = Ed25519KeyPair::from_seed_unchecked(&random::<32>());
        let key = key.map_err(|_| TransferError::Worker)?;
        let signer = key.public_key().as_ref().try_into().map_err(|_| TransferError::Worker)?;
        let invitation = Invitation {
            signer,
            member: 0,
            group,
            id: random(),
            group_secret: random(),
            report_secret: [0; 32],
            report_port: socket.local_addr().map_err(group_error)?.port(),
            head: object.content.head,
            head_size: object.head.len() as u64,
            body_size: object.content.body_size,
            block_size: object.content.block_size,
            symbol_size: shape.symbol_size(),
        };
        let poll = Poll::new().map_err(group_error)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE).map_err(group_error)?);
        let (orders, taken) = mpsc::channel();
        let status = Arc::new(Mutex::new(CastStatus::default()));
        let blocks = object.blocks();
        let writer = GroupWriter::new(invitation.id, &invitation.group_secret, key, &socket);
        let run = Run {
            options,
            id: invitation.id,
            members: BTreeMap::new(),
            sender: CastSender::new(CastConfig::new(options.rate), shape),
            blocks,
            socket,
            writer,
            status: status.clone(),
            status_at: Time::ZERO,
            is_idle: false,
            needed: shape.all_symbols(),
        };
        let builder = std::thread::Builder::new().name("fontis-cast".to_owned());
        let thread = builder.spawn(move || run.run(poll, &taken));
        let thread = Some(thread.map_err(|_| TransferError::Worker)?);
        let joined = AtomicU32::new(0);
        let CastObject { source, tree, .. } = object;
        Ok(Self { source, tree, invitation, joined, orders, waker, status, thread })
    }

    /// The object.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Its hash tree.
    pub(in crate::transfer) const fn tree(&self) -> &Arc<HashTree> {
        &self.tree
    }

    /// How it goes.
    pub fn status(&self) -> CastStatus {
        lock(&self.status).clone()
    }

    /// Takes a receiver in.
    pub(in crate::transfer) fn join(&self) -> Invitation {
        let member = self.joined.fetch_add(1, Ordering::Relaxed);
        let report_secret: CastSecret = random();
        let seal = Box::new(ReportSeal::new(self.invitation.id, member, &report_secret));
        self.order(Order::Join(member, seal));
        Invitation { member, report_secret, ..self.invitation.clone() }
    }

    /// A receiver is gone, done or not.
    pub(in crate::transfer) fn leave(&self, member: u32) {
        self.order(Order::Leave(member));
    }

    fn order(&self, order: Order) {
        // A thread that has ended takes no orders; its status says why.
        let _ = self.orders.send(order);
        let _ = self.waker.wake();
    }
}

impl Drop for Caster {
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

/// The thread of a cast.
struct Run {
    options: CastOptions,
    id: CastId,
    members: BTreeMap<u32, ReportSeal>,
    sender: CastSender,
    blocks: Blocks,
    socket: Socket,
    writer: GroupWriter,
    status: Arc<Mutex<CastStatus>>,
    status_at: Time,
    is_idle: bool,
    needed: u64,
}

impl Run {
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
            let at = Some(self.sender.timeout().min(self.writer.timeout()));
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
                        self.sender.join(member, now);
                        if self.members.len() as u32 >= self.options.wait_for {
                            self.sender.start(now);
                        }
                    }
                    Order::Leave(member) => {
                        self.members.remove(&member);
                        self.sender.leave(member);
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
            self.sender.report(member, &report, now);
        }
    }

    /// Sends what is due.
    fn send(&mut self, now: Time) -> Result<(), String> {
        while self.writer.flush(&self.socket, self.options.group.address) {
            let mut is_more = false;
            while !self.writer.is_full()
                && let Some((number, transmit)) = self.sender.poll(now)
            {
                is_more = true;
                self.prepare(number, transmit, now)?;
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
        let is_idle = self.sender.is_idle();
        self.writer.vouch(now, is_idle, || self.sender.number(now));
    }

    fn prepare(&mut self, number: u64, transmit: CastTransmit, now: Time) -> Result<(), String> {
        let packet = match transmit {
            CastTransmit::State(state) => {
                let (id, key) = self.writer.signing();
                GroupPacket::state(id, number, state, key)
            }
            CastTransmit::Symbol { visit, block, esi } => {
                let symbol = self.blocks.symbol(block, esi).map_err(|error| error.to_string())?;
                let Some(data) = symbol else { return Ok(()) };
                GroupPacket::Symbol(CastSymbol { visit, block, esi, data })
            }
        };
        self.writer.add(number, &packet, self.sender.rate(), now);
        Ok(())
    }

    fn tell(&mut self, now: Time) {
        // Whoever sees that nothing is sent sees all that was sent.
        if now < self.status_at && self.sender.is_idle() == self.is_idle {
            return;
        }
        self.is_idle = self.sender.is_idle();
        self.status_at = now + STATUS_EVERY;
        let mut status = lock(&self.status);
        status.symbols = self.sender.symbols_sent();
        status.needed = self.needed;
        status.is_idle = self.sender.is_idle();
        status.rate = self.sender.rate();
        status.limiting = self.sender.limiting();
        status.members = self.sender.members().map(|(id, member)| (id, *member)).collect();
    }
}
