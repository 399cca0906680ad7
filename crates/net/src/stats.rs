use core::ops::{Add, AddAssign};

use fontis_base::{Packet, Time};

/// A number of packets and of the bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets; a super-packet counts once.
    pub packets: u64,
    /// Bytes at the IP layer.
    pub bytes: u64,
}

impl Count {
    pub(crate) fn add<P>(&mut self, packet: &Packet<P>) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }

    /// What is left when `other` is gone.
    pub(crate) fn less(self, other: Self) -> Self {
        Self { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

impl Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What a link dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounts {
    /// By the queue: no room, or the decision of its active queue management.
    pub queue: Count,
    /// By the loss model, before or after the queue.
    pub loss: Count,
    /// During an outage.
    pub outage: Count,
    /// By the policer.
    pub policer: Count,
}

impl DropCounts {
    /// All drops together.
    pub fn total(&self) -> Count {
        self.queue + self.loss + self.outage + self.policer
    }
}

/// What a link has done so far.
///
/// Nothing vanishes: `entered + duplicated = delivered + dropped.total() + held`, in packets and in
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// What was given to the link.
    pub entered: Count,
    /// The copies that it made.
    pub duplicated: Count,
    /// What came out of it.
    pub delivered: Count,
    /// What it dropped.
    pub dropped: DropCounts,
    /// What is still in it: queued, on the line, or in flight.
    pub held: Count,
    /// Packets that it marked with congestion experienced.
    pub marked: u64,
    /// Packets that it corrupted.
    pub corrupted: u64,
    /// Packets that it held back so that others could overtake them.
    pub reordered: u64,
    /// Bytes that wait in the queue now; what is on the line no longer counts.
    pub queue_bytes: u64,
    /// The most bytes that ever waited in the queue.
    pub max_queue_bytes: u64,
    /// When the queue first dropped a packet.
    pub first_queue_drop: Option<Time>,
    /// The integral over time of the packets that waited, in packet-nanoseconds, up to the queue's
    /// last change.
    pub queue_packet_nanos: u128,
    /// The integral over time of the bytes that waited, in byte-nanoseconds, up to the queue's last
    /// change.
    pub queue_byte_nanos: u128,
}
