use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bytes::Bytes;
use fontis_proto::cast::{CastBlock, CastGate, CastReceiver, CastReceiverConfig};
use tokio::sync::mpsc;

use super::content::Content;
use crate::dest::Dest;
use crate::hash_tree::HashTree;
use crate::left_out::LeftOut;
use crate::random::random;
use crate::sink::{Sink, SinkOptions};
use crate::transfer::TransferError;
use crate::transfer::get::has_hidden_name;
use crate::transfer::incoming::Incoming;
use crate::transfer::message::{Announced, Offer, decode};

/// What a listener tells.
pub(super) enum Heard {
    /// Something came from the sender just now.
    Alive,
    /// The object is known.
    Started { name: String, bytes: u64, entries: usize, resumed: u64 },
    /// An address has sent what is not the sender's: so many packets so far.
    Forged { from: IpAddr, packets: u64 },
    /// So many blocks of a stream have not come in time so far.
    Gaps { blocks: u64 },
    /// Bytes that are stored.
    Moved { done: u64 },
}

/// Tells of the addresses that forge, if there is something new.
pub(super) fn tell_forged(
    sources: &BTreeMap<IpAddr, u64>,
    known: &mut BTreeMap<IpAddr, u64>,
    told: &mpsc::UnboundedSender<Heard>,
) {
    for (from, packets) in sources {
        if known.insert(*from, *packets) != Some(*packets) {
            let _ = told.send(Heard::Forged { from: *from, packets: *packets });
        }
    }
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

/// Where an object goes: the name that it gets instead of its own, the place, and how.
#[derive(Clone)]
pub(super) struct Destination {
    pub(super) name: Option<String>,
    pub(super) dest: Dest,
    pub(super) options: SinkOptions,
}

/// Bytes of symbols that are held in memory.
pub(super) const MEMORY: u64 = 512 << 20;

/// Makes an object of the symbols of a cast: decodes, checks and stores.
pub(super) struct Assembler {
    content: Content,
    remote: SocketAddr,
    destination: Destination,
    pub(super) gate: CastGate,
    /// Whether what came before the first forged packet has been dropped.
    is_wary: bool,
    /// The forged packets that were told of.
    told_forged: BTreeMap<IpAddr, u64>,
    head: Vec<Option<Bytes>>,
    /// Blocks of the body that came before the head.
    early: Vec<CastBlock>,
    store: Option<Store>,
    told: mpsc::UnboundedSender<Heard>,
}

struct Store {
    sink: Sink,
    tree: HashTree,
    name: String,
    resumed: u64,
}

impl Assembler {
    /// One for what `remote` casts to receiver `member`.
    pub(super) fn new(
        content: Content,
        remote: SocketAddr,
        member: u32,
        destination: Destination,
        told: mpsc::UnboundedSender<Heard>,
    ) -> Self {
        let shape = content.shape;
        let config = CastReceiverConfig { memory: MEMORY };
        let seed = u64::from_be_bytes(random());
        Self {
            content,
            remote,
            destination,
            gate: CastGate::new(CastReceiver::new(config, shape, member, seed)),
            is_wary: false,
            told_forged: BTreeMap::new(),
            head: vec![None; shape.head_blocks() as usize],
            early: Vec::new(),
            store: None,
            told,
        }
    }

    /// Bytes that are stored, if the object is known.
    pub(super) fn stored(&self) -> Option<u64> {
        self.store.as_ref().map(|store| store.sink.written())
    }

    /// Tells how much is stored, and who forges.
    pub(super) fn tell(&mut self) {
        tell_forged(self.gate.sources(), &mut self.told_forged, &self.told);
        if let Some(done) = self.stored() {
            let _ = self.told.send(Heard::Moved { done });
        }
    }

    /// Decodes, checks and stores what is complete.
    pub(super) fn work(&mut self) -> Result<(), TransferError> {
        loop {
            self.doubt();
            let receiver = self.gate.receiver_mut();
            let Some((block, job)) = receiver.take_job() else { return Ok(()) };
            let Some(decoded) = receiver.decoded(block, job.run()) else { continue };
            if decoded.block < self.content.shape.head_blocks() {
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
    }

    /// What was decoded before the gate grew wary, and could not be checked, comes again.
    fn doubt(&mut self) {
        if self.gate.is_wary() && !self.is_wary {
            self.is_wary = true;
            self.early.clear();
            if self.store.is_none() {
                self.head.fill(None);
            }
        }
    }

    /// The head is here: makes the destination ready, and stores what came before.
    fn open(&mut self) -> Result<(), TransferError> {
        let remote = self.remote;
        let head: Vec<u8> = self.head.iter().flatten().flat_map(|part| part.to_vec()).collect();
        if blake3::hash(&head) != self.content.head {
            // Somebody in the group sent symbols that are not the sender's: it begins anew.
            for block in 0..self.content.shape.head_blocks() {
                self.head[block as usize] = None;
                self.gate.reject(block);
            }
            return Ok(());
        }
        (0..self.content.shape.head_blocks())
            .for_each(|block| self.gate.receiver_mut().accept(block));
        let wrong = |what| TransferError::Protocol { remote, what };
        let offer: Offer = decode(&head).ok_or(wrong("an unreadable head of a cast"))?;
        let Content { body_size, block_size, .. } = self.content;
        if offer.size != body_size || offer.block_size != block_size {
            return Err(wrong("a head of another object"));
        }
        let announced = Announced::Offer(offer);
        if self.destination.name.is_none() && has_hidden_name(&announced) {
            return Err(wrong("a hidden name that nobody asked for"));
        }
        let Destination { name, dest, options } = &self.destination;
        let prepared =
            Incoming::prepare(remote, &announced, name.as_deref(), dest, options.clone())?;
        let parts = prepared.into_parts()?;
        let (sink, tree, manifest, kept) =
            parts.ok_or(wrong("standard output takes blocks in order, a cast has none"))?;
        let head_blocks = self.content.shape.head_blocks();
        for run in &kept.done {
            (run.start..run.end)
                .for_each(|block| self.gate.receiver_mut().hold(block + head_blocks));
        }
        for begun in &kept.begun {
            if begun.symbol_size != self.content.shape.symbol_size() {
                continue;
            }
            for (first, bytes) in &begun.runs {
                let symbols = bytes.chunks(usize::from(begun.symbol_size));
                for (esi, symbol) in (*first..).zip(symbols) {
                    let symbol = bytes.slice_ref(symbol);
                    self.gate.receiver_mut().keep(begun.block + head_blocks, esi, &symbol);
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
        let index = u64::from(decoded.block - self.content.shape.head_blocks());
        if self.gate.receiver().has(decoded.block) {
            return Ok(());
        }
        if !store.tree.verify_block(index, &decoded.data) {
            self.gate.reject(decoded.block);
            return Ok(());
        }
        let (_, offset) = self.content.shape.place(decoded.block);
        store.sink.write_block(offset, &decoded.data)?;
        self.gate.receiver_mut().accept(decoded.block);
        Ok(())
    }

    /// Gives the complete object its name.
    pub(super) fn finish(self) -> Result<Received, TransferError> {
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
