use fontis_base::{Address, Ecn, FlowId, Packet, PacketId, Stream, Time};
use fontis_net::{Delivery, Link};

use super::{OVERHEAD, RelayConfig};

const CLIENT: Address = Address(0);
const SERVER: Address = Address(1);

/// The two links between the clients and the server.
#[derive(Debug)]
pub(super) struct Path {
    up: Link<Vec<u8>>,
    down: Link<Vec<u8>>,
    mtu: u32,
    next_packet: u64,
    flipped_bits: Stream,
    pub(super) oversize: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    /// To the server.
    Up,
    /// To the clients.
    Down,
}

impl Path {
    pub(super) fn new(config: &RelayConfig) -> Self {
        Self {
            up: Link::new("up", config.seed, config.up.clone()),
            down: Link::new("down", config.seed, config.down.clone()),
            mtu: config.mtu,
            next_packet: 0,
            flipped_bits: Stream::new(config.seed, "relay/flipped bits"),
            oversize: 0,
        }
    }

    pub(super) fn link(&mut self, direction: Direction) -> &mut Link<Vec<u8>> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Takes a datagram that arrived at `at`.
    pub(super) fn enter(
        &mut self,
        direction: Direction,
        at: Time,
        flow: FlowId,
        ecn: Ecn,
        bytes: &[u8],
    ) {
        // A read is at most 64 KiB long.
        let size = bytes.len() as u32 + OVERHEAD;
        if size > self.mtu {
            self.oversize += 1;
            return;
        }
        let (src, dst) = match direction {
            Direction::Up => (CLIENT, SERVER),
            Direction::Down => (SERVER, CLIENT),
        };
        let id = PacketId(self.next_packet);
        self.next_packet += 1;
        let payload = bytes.to_vec();
        let packet = Packet {
            id,
            src,
            dst,
            flow,
            size,
            segments: 1,
            ecn,
            corrupt: false,
            class: 0,
            payload,
        };
        self.link(direction).enter(at, packet);
    }

    /// The next datagram that is due, with a bit flipped if it was corrupted on the way.
    pub(super) fn deliver(&mut self, direction: Direction, now: Time) -> Option<Delivery<Vec<u8>>> {
        let mut delivery = self.link(direction).deliver(now)?;
        if delivery.packet.corrupt {
            let payload = &mut delivery.packet.payload;
            let bit = self.flipped_bits.below(payload.len() as u64 * 8);
            if let Some(byte) = payload.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
        Some(delivery)
    }

    /// A time before which nothing is due, if nothing enters.
    pub(super) fn next_delivery(&self) -> Option<Time> {
        [self.up.next_delivery(), self.down.next_delivery()].into_iter().flatten().min()
    }
}
