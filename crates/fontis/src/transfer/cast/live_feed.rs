use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use bytes::{Bytes, BytesMut};
use fontis_base::{Duration, Rate, Time};
use fontis_codes::BlockEncoder;
use fontis_proto::cast::{
    CastReport, LiveConfig, LiveSender, LiveSymbol, LiveTransmit, live_block_time, live_shape,
};
use mio::Waker;
use ring::signature::Ed25519KeyPair;

use super::group::CastStatus;
use super::group_thread::Feed;
use super::seal::{CastId, GroupPacket};
use crate::transfer::TransferError;

/// Bytes that are read at once, and pieces that wait.
const PIECE: usize = 16 << 10;
const PIECES: usize = 4;

/// The symbols of a stream.
pub(super) struct LiveFeed {
    input: Receiver<io::Result<Bytes>>,
    sender: LiveSender,
    latency: Duration,
    has_started: bool,
    has_ended: bool,
    /// The block that is gathered, and when its first byte was read.
    open: BytesMut,
    opened: Option<Time>,
    blocks: BTreeMap<u32, BlockEncoder>,
}

impl LiveFeed {
    /// What `input` has, at this rate at most; `waker` is woken when there is more.
    pub(super) fn new(
        input: impl Read + Send + 'static,
        rate: Rate,
        latency: Duration,
        waker: Arc<Waker>,
    ) -> Result<Self, TransferError> {
        Ok(Self {
            input: pieces(input, waker)?,
            sender: LiveSender::new(LiveConfig::new(rate, latency)),
            latency,
            has_started: false,
            has_ended: false,
            open: BytesMut::new(),
            opened: None,
            blocks: BTreeMap::new(),
        })
    }

    /// Takes what was read, as far as there is room, and closes blocks.
    fn gather(&mut self, now: Time) -> Result<(), String> {
        if !self.has_started || self.has_ended {
            return Ok(());
        }
        let most = self.sender.block_bytes() as usize;
        while self.sender.has_room() {
            match self.input.try_recv() {
                Ok(Ok(piece)) => {
                    let mut rest = &piece[..];
                    while !rest.is_empty() {
                        let (now_in, later) = rest.split_at(rest.len().min(most - self.open.len()));
                        self.opened.get_or_insert(now);
                        self.open.extend_from_slice(now_in);
                        rest = later;
                        if self.open.len() >= most {
                            self.close()?;
                        }
                    }
                }
                Ok(Err(error)) => return Err(format!("the stream cannot be read: {error}")),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.close()?;
                    self.has_ended = true;
                    self.sender.end(now);
                    return Ok(());
                }
            }
        }
        if self.closes_at() <= now {
            self.close()?;
        }
        Ok(())
    }

    /// When the block that is gathered is closed.
    fn closes_at(&self) -> Time {
        self.opened.map_or(Time::MAX, |at| at + live_block_time(self.latency))
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(at) = self.opened.take() else { return Ok(()) };
        let data = self.open.split().freeze();
        let shape = live_shape(data.len() as u32);
        let block = self.sender.push(data.len() as u32, at);
        let (Some(shape), Some(block)) = (shape, block) else {
            return Err("the stream has more blocks than can be numbered".to_owned());
        };
        self.blocks.insert(block, BlockEncoder::new(shape, data));
        let first = self.sender.first_kept();
        self.blocks.retain(|block, _| *block >= first);
        Ok(())
    }
}

impl Feed for LiveFeed {
    fn join(&mut self, member: u32, now: Time) {
        self.sender.join(member, now);
    }

    fn start(&mut self, _now: Time) {
        self.has_started = true;
    }

    fn leave(&mut self, member: u32) {
        self.sender.leave(member);
    }

    fn report(&mut self, member: u32, report: &CastReport, now: Time) {
        self.sender.report(member, report, now);
    }

    fn timeout(&self) -> Time {
        self.sender.timeout().min(self.closes_at())
    }

    fn poll(
        &mut self,
        now: Time,
        (id, key): (CastId, &Ed25519KeyPair),
    ) -> Result<Option<(u64, Option<GroupPacket>)>, String> {
        self.gather(now)?;
        let Some((number, transmit)) = self.sender.poll(now) else { return Ok(None) };
        let packet = match transmit {
            LiveTransmit::State(state) => Some(GroupPacket::state(id, number, state, key)),
            LiveTransmit::Symbol { block, esi, len, at, age } => {
                self.blocks.get_mut(&block).and_then(|encoder| {
                    if esi >= encoder.shape().source_symbols() && !encoder.has_repair() {
                        let repair = encoder.repair_job().run();
                        encoder.set_repair(repair);
                    }
                    let data = encoder.symbol(esi)?;
                    Some(GroupPacket::Live(LiveSymbol { block, esi, len, at, age, data }))
                })
            }
        };
        Ok(Some((number, packet)))
    }

    fn number(&mut self, now: Time) -> u64 {
        self.sender.number(now)
    }

    fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }

    fn rate(&self) -> Rate {
        self.sender.rate()
    }

    fn status(&self, now: Time) -> CastStatus {
        CastStatus {
            symbols: self.sender.symbols_sent(),
            needed: self.sender.needed(),
            rate: self.sender.rate(),
            limiting: None,
            is_idle: self.sender.is_idle(),
            is_over: self.sender.is_over(now),
            members: self.sender.members().map(|(id, member)| (id, *member)).collect(),
            failure: None,
        }
    }
}

/// Reads on a thread of its own: a read may take as long as it likes.
fn pieces(
    mut input: impl Read + Send + 'static,
    waker: Arc<Waker>,
) -> Result<Receiver<io::Result<Bytes>>, TransferError> {
    let (sender, receiver) = mpsc::sync_channel(PIECES);
    let read = move || {
        let mut piece = vec![0; PIECE];
        loop {
            let read = match input.read(&mut piece) {
                Ok(0) => break,
                Ok(bytes) => Ok(Bytes::copy_from_slice(&piece[..bytes])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            if sender.send(read).is_err() || is_last {
                break;
            }
            let _ = waker.wake();
        }
        drop(sender);
        let _ = waker.wake();
    };
    let builder = std::thread::Builder::new().name("fontis-input".to_owned());
    builder.spawn(read).map_err(|_| TransferError::Worker)?;
    Ok(receiver)
}
