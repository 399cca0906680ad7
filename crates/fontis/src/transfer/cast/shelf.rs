use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fontis_proto::cast::{CastGate, CastReceiver, CastReceiverConfig};

use super::assembler::MEMORY;
use super::content::Content;
use crate::moment;
use crate::random::random;
use crate::sink::SinkError;
use crate::transfer::TransferError;

/// The time of which it is asked what the group brought, and the share of what the sender sent in
/// it that has to have been of use. With less the rest comes sooner from elsewhere.
const LOOK_BACK: Duration = Duration::from_millis(500);
const FRUITFUL: f64 = 0.25;

/// Where the blocks of an object go that come from a group, and from elsewhere too.
pub(in crate::transfer) trait Shelf: Send + Sync + 'static {
    /// The blocks that are there.
    fn blocks(&self) -> Vec<u32>;
    /// Stores a block if it is right; else false.
    fn put(&self, block: u32, bytes: &[u8]) -> Result<bool, SinkError>;
    /// The group brings much that is lacking, or has not begun yet.
    fn filling(&self);
    /// An address has sent so many packets that are not the sender's.
    fn forged(&self, from: IpAddr, packets: u64);
    /// Whether nothing more is wanted from the group.
    fn is_closed(&self) -> bool;
}

/// Makes blocks for a shelf of the symbols of a cast.
pub(super) struct Shelving {
    content: Content,
    pub(super) gate: CastGate,
    shelf: Arc<dyn Shelf>,
    /// When it was looked last, and the symbols that were lacking then.
    looked: (Instant, u64),
    told_forged: BTreeMap<IpAddr, u64>,
}

impl Shelving {
    /// One for receiver `member`, who knows the manifest and the hash tree already.
    pub(super) fn new(content: Content, member: u32, shelf: Arc<dyn Shelf>) -> Self {
        let config = CastReceiverConfig { memory: MEMORY };
        let seed = u64::from_be_bytes(random());
        let mut receiver = CastReceiver::new(config, content.shape, member, seed);
        (0..content.shape.head_blocks()).for_each(|block| receiver.hold(block));
        let gate = CastGate::new(receiver);
        let looked = (moment::now(), gate.receiver().lacking());
        Self { content, gate, shelf, looked, told_forged: BTreeMap::new() }
    }

    /// Decodes and stores what is complete.
    pub(super) fn work(&mut self) -> Result<(), TransferError> {
        loop {
            let receiver = self.gate.receiver_mut();
            let Some((block, job)) = receiver.take_job() else { return Ok(()) };
            let Some(decoded) = receiver.decoded(block, job.run()) else { continue };
            let Some(index) = block.checked_sub(self.content.shape.head_blocks()) else { continue };
            match self.shelf.put(index, &decoded.data)? {
                true => self.gate.receiver_mut().accept(block),
                false => self.gate.reject(block),
            }
        }
    }

    /// Tells how it goes, and learns what has come from elsewhere.
    pub(super) fn tell(&mut self) {
        for (from, packets) in self.gate.sources() {
            if self.told_forged.insert(*from, *packets) != Some(*packets) {
                self.shelf.forged(*from, *packets);
            }
        }
        let shape = self.content.shape;
        let receiver = self.gate.receiver_mut();
        for block in self.shelf.blocks() {
            let block = block + shape.head_blocks();
            if !receiver.has(block) {
                receiver.hold(block);
            }
        }
        receiver.pass_over();
        let Some(pace) = receiver.pace() else { return self.shelf.filling() };
        let (now, (since, before)) = (moment::now(), self.looked);
        if now - since < LOOK_BACK {
            return;
        }
        let lacking = receiver.lacking();
        self.looked = (now, lacking);
        let came = before.saturating_sub(lacking) * u64::from(shape.symbol_size());
        if came as f64 >= FRUITFUL * pace as f64 * (now - since).as_secs_f64() {
            self.shelf.filling();
        }
    }

    /// Whether nothing more is to come.
    pub(super) fn is_complete(&self) -> bool {
        self.gate.receiver().is_complete()
    }
}
