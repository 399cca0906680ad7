//! What a receiver believes. All members of a group know its key, so any of them can send what
//! looks like the sender's; the sender signs receipts, which name the digest of each packet that it
//! sent.

use core::net::IpAddr;
use std::collections::BTreeMap;

use fontis_base::Time;

use super::packet::{CastReceipt, CastState, CastSymbol};
use super::receiver::CastReceiver;

/// What stands behind a gate.
pub trait GateKept {
    /// What it decodes from.
    type Symbol;
    /// The block of a symbol.
    fn block_of(symbol: &Self::Symbol) -> u32;
    /// Takes packet `number` of the group, a symbol.
    fn symbol(&mut self, number: u64, symbol: &Self::Symbol, at: Time);
    /// Takes packet `number` of the group, a state.
    fn state(&mut self, number: u64, state: CastState, at: Time);
    /// Takes packet `number` of the group, which says nothing about the object.
    fn arrived(&mut self, number: u64, at: Time);
    /// Whether a block is there and right.
    fn has(&self, block: u32) -> bool;
    /// A decoded block is wrong.
    fn reject(&mut self, block: u32);
    /// Forgets all that packets said but for what the sender has signed.
    fn distrust(&mut self);
    /// Takes a symbol again that the sender has sent, after it was forgotten.
    fn restore(&mut self, symbol: &Self::Symbol);
}

impl GateKept for CastReceiver {
    type Symbol = CastSymbol;
    fn block_of(symbol: &CastSymbol) -> u32 {
        symbol.block
    }
    fn symbol(&mut self, number: u64, symbol: &CastSymbol, at: Time) {
        Self::symbol(self, number, symbol, at);
    }
    fn state(&mut self, number: u64, state: CastState, at: Time) {
        Self::state(self, number, state, at);
    }
    fn arrived(&mut self, number: u64, at: Time) {
        Self::arrived(self, number, at);
    }
    fn has(&self, block: u32) -> bool {
        Self::has(self, block)
    }
    fn reject(&mut self, block: u32) {
        Self::reject(self, block);
    }
    fn distrust(&mut self) {
        Self::distrust(self);
    }
    fn restore(&mut self, CastSymbol { visit, block, esi, data, .. }: &CastSymbol) {
        self.add(*visit, *block, *esi, data);
    }
}

/// Packets that wait for a receipt at most, and digests that are remembered.
const MOST_WAITING: usize = 8192;
const MOST_KNOWN: usize = 8192;
/// A packet is not so many numbers ahead of a later one.
const AHEAD: u64 = 4096;
/// Addresses that forgeries are counted for one by one.
const MOST_SOURCES: usize = 16;

/// A packet of a group: its number, its digest, and where it came from and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastOrigin {
    /// The number.
    pub number: u64,
    /// The digest of all that it says.
    pub digest: u64,
    /// The address that it came from, as it says.
    pub source: IpAddr,
    /// When it came.
    pub at: Time,
}

/// What a packet says.
enum Body<S> {
    Symbol(S),
    State(CastState),
    Receipt,
}

/// A packet that no receipt has named yet.
struct Waiting<S> {
    digest: u64,
    source: IpAddr,
    at: Time,
    body: Body<S>,
}

/// A digest that the sender has signed.
struct Known {
    digest: u64,
    /// Whether its packet has come.
    is_taken: bool,
}

/// Stands before a receiver. Until something forged comes, it hands over all at once; from
/// then on only what a receipt has named, in the order of numbers.
pub struct CastGate<R: GateKept = CastReceiver> {
    receiver: R,
    known: BTreeMap<u64, Known>,
    /// Numbers below it are too old to be judged.
    floor: u64,
    waiting: BTreeMap<u64, Vec<Waiting<R::Symbol>>>,
    waits: usize,
    /// Symbols of unfinished blocks that receipts have named, while it trusts.
    proven: BTreeMap<u32, Vec<R::Symbol>>,
    is_wary: bool,
    forged: u64,
    replayed: u64,
    sources: BTreeMap<IpAddr, u64>,
}

impl<R: GateKept> CastGate<R> {
    /// One that stands before `receiver`.
    pub const fn new(receiver: R) -> Self {
        Self {
            receiver,
            known: BTreeMap::new(),
            floor: 0,
            waiting: BTreeMap::new(),
            waits: 0,
            proven: BTreeMap::new(),
            is_wary: false,
            forged: 0,
            replayed: 0,
            sources: BTreeMap::new(),
        }
    }

    /// One that hands over from the beginning only what receipts name: what stands behind it cannot
    /// check what it decodes.
    pub const fn wary(receiver: R) -> Self {
        let mut gate = Self::new(receiver);
        gate.is_wary = true;
        gate
    }

    /// The receiver.
    pub const fn receiver(&self) -> &R {
        &self.receiver
    }

    /// The receiver, for what comes from elsewhere than the group.
    pub const fn receiver_mut(&mut self) -> &mut R {
        &mut self.receiver
    }

    /// Whether it hands over only what receipts name.
    pub const fn is_wary(&self) -> bool {
        self.is_wary
    }

    /// Packets that were not the sender's.
    pub const fn forged(&self) -> u64 {
        self.forged
    }

    /// Packets that came twice.
    pub const fn replayed(&self) -> u64 {
        self.replayed
    }

    /// The addresses that forged packets came from, as far as they are counted, and how many did.
    pub const fn sources(&self) -> &BTreeMap<IpAddr, u64> {
        &self.sources
    }

    /// Counts a packet that is not the sender's.
    pub fn accuse(&mut self, source: IpAddr) {
        self.forged += 1;
        if self.sources.len() < MOST_SOURCES || self.sources.contains_key(&source) {
            *self.sources.entry(source).or_default() += 1;
        }
    }

    /// Takes a symbol that a member of the group has sent.
    pub fn symbol(&mut self, origin: CastOrigin, symbol: R::Symbol) {
        if !self.admit(origin) {
            return;
        }
        let CastOrigin { number, at, .. } = origin;
        if let Some(known) = self.known.get_mut(&number) {
            // The receipt was here before it.
            known.is_taken = true;
            self.receiver.symbol(number, &symbol, at);
            self.keep(symbol);
            return;
        }
        if !self.is_wary {
            self.receiver.symbol(number, &symbol, at);
        }
        self.wait(origin, Body::Symbol(symbol));
    }

    /// Takes a state that the sender has signed.
    pub fn state(&mut self, origin: CastOrigin, state: CastState) {
        if self.admit(origin) {
            if self.is_wary {
                self.wait(origin, Body::State(state));
            } else {
                self.receiver.state(origin.number, state, origin.at);
                self.wait(origin, Body::Receipt);
            }
        }
    }

    /// Takes a receipt that the sender has signed.
    pub fn receipt(&mut self, origin: CastOrigin, receipt: &CastReceipt) {
        let end = receipt.first.saturating_add(receipt.digests.len() as u64);
        if end <= self.floor || !self.admit(origin) {
            return;
        }
        if !self.is_wary {
            self.receiver.arrived(origin.number, origin.at);
        }
        self.wait(origin, Body::Receipt);
        if self.known.is_empty() {
            self.floor = receipt.first;
        }
        for (number, digest) in (receipt.first..end).zip(&receipt.digests) {
            if number >= self.floor {
                let new = Known { digest: *digest, is_taken: false };
                self.known.entry(number).or_insert(new);
            }
        }
        while self.known.len() > MOST_KNOWN
            && let Some((oldest, _)) = self.known.pop_first()
        {
            self.floor = oldest + 1;
        }
        // The sender has not yet come so far.
        let far = self.waiting.split_off(&origin.number.saturating_add(AHEAD));
        for one in far.into_values().flatten() {
            self.waits -= 1;
            self.accuse(one.source);
            self.grow_wary();
        }
        let later = self.waiting.split_off(&end);
        let settled = std::mem::replace(&mut self.waiting, later);
        for (number, all) in settled {
            self.waits -= all.len();
            self.settle(number, all);
        }
        let receiver = &self.receiver;
        self.proven.retain(|block, _| !receiver.has(*block));
    }

    /// A decoded block is wrong: somebody forged a part of it. It begins anew.
    pub fn reject(&mut self, block: u32) {
        self.receiver.reject(block);
        if self.is_wary {
            self.proven.remove(&block);
        } else {
            self.grow_wary();
        }
    }

    /// The sender has begun anew, and with it its numbers.
    pub fn renew(&mut self) {
        self.known.clear();
        self.waiting.clear();
        (self.floor, self.waits) = (0, 0);
    }

    /// Judges the packets that came with a number which the receipts have passed.
    fn settle(&mut self, number: u64, all: Vec<Waiting<R::Symbol>>) {
        for one in all {
            let is_signed = !matches!(one.body, Body::Symbol(_));
            match self.known.get_mut(&number) {
                Some(known) if known.digest == one.digest => known.is_taken = true,
                _ if is_signed => {}
                // The receipts that name it were lost.
                None => continue,
                Some(_) => {
                    self.accuse(one.source);
                    self.grow_wary();
                    continue;
                }
            }
            if !self.is_wary {
                if let Body::Symbol(symbol) = one.body {
                    self.keep(symbol);
                }
                continue;
            }
            match one.body {
                Body::Symbol(symbol) => self.receiver.symbol(number, &symbol, one.at),
                Body::State(state) => self.receiver.state(number, state, one.at),
                Body::Receipt => self.receiver.arrived(number, one.at),
            }
        }
    }

    /// Keeps a symbol that a receipt has named, while others of its block may be forged.
    fn keep(&mut self, symbol: R::Symbol) {
        let block = R::block_of(&symbol);
        if !self.is_wary && !self.receiver.has(block) {
            self.proven.entry(block).or_default().push(symbol);
        }
    }

    /// Whether a packet may be the sender's, and has not come yet.
    fn admit(&mut self, origin: CastOrigin) -> bool {
        let CastOrigin { number, digest, source, .. } = origin;
        if let Some(known) = self.known.get(&number) {
            if known.digest != digest {
                self.accuse(source);
                self.grow_wary();
                return false;
            }
            if known.is_taken {
                self.replayed += 1;
            }
            return !known.is_taken;
        }
        if number < self.floor {
            self.replayed += 1;
            return false;
        }
        let Some(same) = self.waiting.get(&number) else { return true };
        if same.iter().any(|one| one.digest == digest) {
            self.replayed += 1;
            return false;
        }
        self.grow_wary();
        true
    }

    fn wait(&mut self, origin: CastOrigin, body: Body<R::Symbol>) {
        let CastOrigin { number, digest, source, at } = origin;
        let waiting = Waiting { digest, source, at, body };
        self.waiting.entry(number).or_default().push(waiting);
        self.waits += 1;
        // Those of the highest numbers are the first that may be forged.
        while self.waits > MOST_WAITING
            && let Some((_, all)) = self.waiting.pop_last()
        {
            self.waits -= all.len();
        }
    }

    /// From here on only what receipts name is handed over; of what was handed over before, only
    /// what they have named is used again.
    fn grow_wary(&mut self) {
        if self.is_wary {
            return;
        }
        self.is_wary = true;
        self.receiver.distrust();
        for symbol in std::mem::take(&mut self.proven).into_values().flatten() {
            self.receiver.restore(&symbol);
        }
    }
}
