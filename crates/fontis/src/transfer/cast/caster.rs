use std::path::Path;
use std::sync::Arc;

use fontis_base::{Rate, Time};
use fontis_proto::cast::{CastConfig, CastRate, CastReport, CastSender, CastSymbol, CastTransmit};
use ring::signature::Ed25519KeyPair;

use super::blocks::Blocks;
use super::group::{CastGroup, CastStatus};
use super::group_thread::{Feed, GroupThread};
use super::invitation::{Invitation, Invited};
use super::object::CastObject;
use super::seal::{CastId, GroupPacket};
use crate::hash_tree::HashTree;
use crate::source::{Source, SourceOptions};
use crate::transfer::TransferError;

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

/// Sends one object to a group, on a thread of its own, until it is dropped.
pub struct Caster {
    source: Arc<Source>,
    tree: Arc<HashTree>,
    thread: GroupThread,
}

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
        let content = object.content;
        let cast = Invited::Object {
            head: content.head,
            head_size: object.head.len() as u64,
            body_size: content.body_size,
            block_size: content.block_size,
            symbol_size: content.shape.symbol_size(),
        };
        let feed = ObjectFeed {
            sender: CastSender::new(CastConfig::new(options.rate), content.shape),
            blocks: object.blocks(),
            needed: content.shape.all_symbols(),
            wait_for: options.wait_for,
            here: 0,
        };
        let thread = GroupThread::start(options.group, cast, |_| Ok(feed))?;
        let CastObject { source, tree, .. } = object;
        Ok(Self { source, tree, thread })
    }

    /// The object.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Its hash tree.
    pub(super) const fn tree(&self) -> &Arc<HashTree> {
        &self.tree
    }

    /// How it goes.
    pub fn status(&self) -> CastStatus {
        self.thread.status()
    }

    /// Takes a receiver in.
    pub(super) fn join(&self) -> Invitation {
        self.thread.join()
    }

    /// A receiver is gone, done or not.
    pub(super) fn leave(&self, member: u32) {
        self.thread.leave(member);
    }
}

/// The symbols of an object.
struct ObjectFeed {
    sender: CastSender,
    blocks: Blocks,
    needed: u64,
    wait_for: u32,
    /// Receivers that are there.
    here: u32,
}

impl Feed for ObjectFeed {
    fn join(&mut self, member: u32, now: Time) {
        self.here += 1;
        self.sender.join(member, now);
        if self.here >= self.wait_for {
            self.sender.start(now);
        }
    }

    fn leave(&mut self, member: u32) {
        self.here = self.here.saturating_sub(1);
        self.sender.leave(member);
    }

    fn report(&mut self, member: u32, report: &CastReport, now: Time) {
        self.sender.report(member, report, now);
    }

    fn timeout(&self) -> Time {
        self.sender.timeout()
    }

    fn poll(
        &mut self,
        now: Time,
        (id, key): (CastId, &Ed25519KeyPair),
    ) -> Result<Option<(u64, Option<GroupPacket>)>, String> {
        let Some((number, transmit)) = self.sender.poll(now) else { return Ok(None) };
        let packet = match transmit {
            CastTransmit::State(state) => Some(GroupPacket::state(id, number, state, key)),
            CastTransmit::Symbol { visit, block, esi } => {
                let symbol = self.blocks.symbol(block, esi).map_err(|error| error.to_string())?;
                symbol.map(|data| GroupPacket::Symbol(CastSymbol { visit, block, esi, data }))
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

    fn status(&self, _now: Time) -> CastStatus {
        CastStatus {
            symbols: self.sender.symbols_sent(),
            needed: self.needed,
            rate: self.sender.rate(),
            limiting: self.sender.limiting(),
            is_idle: self.sender.is_idle(),
            is_over: false,
            members: self.sender.members().map(|(id, member)| (id, *member)).collect(),
            failure: None,
        }
    }
}
