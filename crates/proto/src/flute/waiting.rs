use std::collections::BTreeMap;

use bytes::Bytes;

/// Packets of objects that no file delivery table has announced yet.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    packets: BTreeMap<u128, Vec<Bytes>>,
    held: usize,
}

/// What a packet that is kept takes beside its bytes, roughly: its object may have no other.
const COST: usize = 256;

impl Waiting {
    /// Keeps a packet, if that takes no more than `most` bytes of all.
    pub(super) fn keep(&mut self, toi: u128, datagram: &[u8], most: usize) {
        let cost = datagram.len() + COST;
        if self.held + cost <= most {
            self.held += cost;
            self.packets.entry(toi).or_default().push(Bytes::copy_from_slice(datagram));
        }
    }

    /// The packets of an object, which are not kept any longer.
    pub(super) fn take(&mut self, toi: u128) -> Vec<Bytes> {
        let packets = self.packets.remove(&toi).unwrap_or_default();
        self.held -= packets.iter().map(|packet| packet.len() + COST).sum::<usize>();
        packets
    }
}
