use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use fontis_base::{Duration, Ecn, Time};
use fontis_proto::cast::{CastBlock, CastReceiver, CastReceiverConfig, CastShape};
use mio::{Events, Interest, Poll, Token, Waker};
use tokio::sync::mpsc;

use super::invitation::Invitation;
use super::seal::{GroupPacket, GroupSeal, ReportSeal};
use crate::dest::Dest;
use crate::hash_tree::HashTree;
use crate::left_out::LeftOut;
use crate::random::random;
use crate::sink::{Sink, SinkOptions};
use crate::transfer::TransferError;
use crate::transfer::get::has_hidden_name;
use crate::transfer::incoming::Incoming;
use crate::transfer::message::{Announced, Offer, decode};
use crate::udp::{Alarm, Batch, Clock, GroupInterface, Socket, group_receiver};

/// What a listener tells.
pub(super) enum Heard {
    /// Something came from the sender.
    Sender,
    /// The object is known.
    Started { name: String, bytes: u64, entries: usize, resumed: u64 },
    /// Some time has passed: bytes that are stored.
    Moved { done: u64 },
}

/// A complete object.
pub(super) struct Received {
    pub(super) name: String,
    pub(super) path: Option<PathBuf>,
    pub(super) bytes: u64,
    pub(super) resumed: u64,
    pub(super) hash: String,
    pub(super) left_out: LeftOut,
}

const SOCKET: Token = Token(0);
const WAKE: Token = Token(1);
const ALARM: Token = Token(2);
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Bytes of symbols that are held in memory.
const MEMORY: u64 = 512 << 20;

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
    invitation: Invitation,
    shape: CastShape,
    remote: SocketAddr,
    dest: Dest,
    name: Option<String>,
    options: SinkOptions,
    seal: GroupSeal,
    reports: ReportSeal,
    socket: Socket,
    receiver: CastReceiver,
    head: Vec<Option<Bytes>>,
    /// Blocks of the body that came before the head.
    early: Vec<CastBlock>,
    store: Option<Store>,
    told: mpsc::UnboundedSender<Heard>,
    stop: Arc<AtomicBool>,
    poll: Poll,
    /// Were it closed before the poll has seen it, nothing would wake the listener.
    _waker: Arc<Waker>,
    has_heard: bool,
    rejected: BTreeSet<u32>,
}

struct Store {
    sink: Sink,
    tree: HashTree,
    name: String,
    resumed: u64,
}

impl Listener {
    /// Joins the group that `remote` invites to.
    pub(super) fn new(
        invitation: Invitation,
        remote: SocketAddr,
        interface: GroupInterface,
        (name, dest, options): (Option<String>, Dest, SinkOptions),
        told: mpsc::UnboundedSender<Heard>,
    ) -> Result<(Self, Stopper), TransferError> {
        let what = "an invitation to a cast that cannot be";
        let shape = invitation.shape().ok_or(TransferError::Protocol { remote, what })?;
        let group = invitation.group;
        let failed = |source| TransferError::Group { group, source };
        let source: IpAddr = remote.ip().to_canonical();
        let socket = group_receiver(group, source, interface).map_err(failed)?;
        let poll = Poll::new().map_err(failed)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE).map_err(failed)?);
        let stop = Arc::new(AtomicBool::new(false));
        let config = CastReceiverConfig { memory: MEMORY };
        let seed = u64::from_be_bytes(random());
        let listener = Self {
            seal: GroupSeal::new(invitation.id, &invitation.group_secret),
            reports: ReportSeal::new(invitation.id, invitation.member, &invitation.report_secret),
            receiver: CastReceiver::new(config, shape, invitation.member, seed),
            head: vec![None; shape.head_blocks() as usize],
            early: Vec::new(),
            store: None,
            invitation,
            shape,
            remote,
            dest,
            name,
            options,
            socket,
            told,
            stop: stop.clone(),
            poll,
            _waker: waker.clone(),
            has_heard: false,
            rejected: BTreeSet::new(),
        };
        Ok((listener, Stopper { stop, waker }))
    }

    /// Receives everything, or until it is stopped (`None`).
    pub(super) fn run(mut self) -> Result<Option<Received>, TransferError> {
        let group = self.invitation.group;
        let failed = |source: io::Error| TransferError::Group { group, source };
        self.poll
            .registry()
            .register(self.socket.source(), SOCKET, Interest::READABLE)
            .map_err(failed)?;
        let mut alarm = Alarm::new(self.poll.registry(), ALARM).map_err(failed)?;
        // Reports leave from a socket of their own: this one is bound to the group.
        let reporter = report_socket(self.remote).map_err(failed)?;
        let to = SocketAddr::new(self.remote.ip().to_canonical(), self.invitation.report_port);
        let (clock, mut batch, mut events) =
            (Clock::start(), Batch::new(), Events::with_capacity(8));
        let mut told = Instant::now();
        loop {
            let now = clock.now();
            let at = Some(self.receiver.timeout()).filter(|at| *at < Time::MAX);
            let timeout = alarm.set(now, at).map_err(failed)?;
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
                let mut datagrams = Vec::new();
                datagrams
                    .extend(batch.datagrams().filter_map(|(_, one)| self.seal.open(one.into())));
                for (number, packet) in datagrams {
                    self.take(number, packet, now);
                }
                self.work()?;
                if !is_more {
                    break;
                }
            }
            if self.receiver.is_complete() {
                // The sender need not wait for the end of the connection.
                self.report(&reporter, to, clock.now());
                return self.finish().map(Some);
            }
            self.report(&reporter, to, clock.now());
            if told.elapsed() >= PROGRESS_EVERY.into()
                && let Some(store) = &self.store
            {
                told = Instant::now();
                let _ = self.told.send(Heard::Moved { done: store.sink.written() });
            }
        }
    }

    fn report(&mut self, reporter: &Socket, to: SocketAddr, now: Time) {
        while let Some(report) = self.receiver.poll(now) {
            // One that is lost is followed by another.
            let _ = reporter.send(to, None, Ecn::NotEct, &self.reports.seal(&report), None);
        }
    }

    fn take(&mut self, number: u64, packet: GroupPacket, now: Time) {
        if !self.has_heard {
            self.has_heard = true;
            let _ = self.told.send(Heard::Sender);
        }
        match packet {
            GroupPacket::Symbol(symbol) => self.receiver.symbol(number, &symbol, now),
            GroupPacket::State(state) => self.receiver.state(number, state, now),
        }
    }

    /// Decodes, checks and stores what is complete.
    fn work(&mut self) -> Result<(), TransferError> {
        while let Some((block, job)) = self.receiver.take_job() {
            let Some(decoded) = self.receiver.decoded(block, job.run()) else { continue };
            if decoded.block < self.shape.head_blocks() {
                self.head[decoded.block as usize] = Some(decoded.data);
                if self.head.iter().all(Option::is_some) {
                    self.open()?;
                }
            } else if self.store.is_some() {
                self.keep(&decoded)?;
            } else {
                self.early.push(decoded);
            }
        }
        Ok(())
    }

    /// The head is here: makes the destination ready, and stores what came before.
    fn open(&mut self) -> Result<(), TransferError> {
        let remote = self.remote;
        let head: Vec<u8> = self.head.iter().flatten().flat_map(|part| part.to_vec()).collect();
        if blake3::hash(&head) != self.invitation.head {
            // Somebody in the group sent symbols that are not the sender's: it begins anew.
            for block in 0..self.shape.head_blocks() {
                self.head[block as usize] = None;
                self.receiver.reject(block);
            }
            return Ok(());
        }
        (0..self.shape.head_blocks()).for_each(|block| self.receiver.accept(block));
        let wrong = |what| TransferError::Protocol { remote, what };
        let offer: Offer = decode(&head).ok_or(wrong("an unreadable head of a cast"))?;
        let Invitation { body_size, block_size, .. } = self.invitation;
        if offer.size != body_size || offer.block_size != block_size {
            return Err(wrong("a head of another object"));
        }
        let announced = Announced::Offer(offer);
        if self.name.is_none() && has_hidden_name(&announced) {
            return Err(wrong("a hidden name that nobody asked for"));
        }
        let name = self.name.as_deref();
        let prepared = Incoming::prepare(remote, &announced, name, &self.dest, self.options)?;
        let parts = prepared.into_parts()?;
        let (sink, tree, manifest, kept) =
            parts.ok_or(wrong("standard output takes blocks in order, a cast has none"))?;
        let head_blocks = self.shape.head_blocks();
        for run in &kept.done {
            (run.start..run.end).for_each(|block| self.receiver.hold(block + head_blocks));
        }
        for begun in &kept.begun {
            if begun.symbol_size != self.shape.symbol_size() {
                continue;
            }
            for (first, bytes) in &begun.runs {
                let symbols = bytes.chunks(usize::from(begun.symbol_size));
                for (esi, symbol) in (*first..).zip(symbols) {
                    let symbol = bytes.slice_ref(symbol);
                    self.receiver.keep(begun.block + head_blocks, esi, &symbol);
                }
            }
        }
        let resumed = sink.written();
        let name = manifest.name().to_owned();
        let started = Heard::Started {
            name: name.clone(),
            bytes: manifest.size(),
            entries: manifest.entries().len(),
            resumed,
        };
        let _ = self.told.send(started);
        self.store = Some(Store { sink, tree, name, resumed });
        for block in std::mem::take(&mut self.early) {
            self.keep(&block)?;
        }
        Ok(())
    }

    /// Checks and stores a block of the body.
    fn keep(&mut self, decoded: &CastBlock) -> Result<(), TransferError> {
        let Some(store) = &self.store else { return Ok(()) };
        let index = u64::from(decoded.block - self.shape.head_blocks());
        if self.receiver.has(decoded.block) {
            return Ok(());
        }
        if !store.tree.verify_block(index, &decoded.data) {
            self.rejected.insert(decoded.block);
            self.receiver.reject(decoded.block);
            return Ok(());
        }
        let (_, offset) = self.shape.place(decoded.block);
        store.sink.write_block(offset, &decoded.data)?;
        self.receiver.accept(decoded.block);
        Ok(())
    }

    fn finish(self) -> Result<Received, TransferError> {
        let Some(Store { sink, tree, name, resumed }) = self.store else {
            return Err(TransferError::Worker);
        };
        let (path, left_out) = sink.finish()?;
        Ok(Received {
            name,
            path: Some(path),
            bytes: tree.size(),
            resumed,
            hash: tree.root().to_hex().to_string(),
            left_out,
        })
    }
}

fn report_socket(remote: SocketAddr) -> io::Result<Socket> {
    let any: SocketAddr = match remote.ip().to_canonical() {
        IpAddr::V4(_) => ([0; 4], 0).into(),
        IpAddr::V6(_) => ([0; 16], 0).into(),
    };
    Socket::bind(any)
}
