/// Identifies a packet through a run; every packet put on a network gets a new one, copies
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

/// The address of an interface of a host, or of a group of interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u32);

impl Address {
    const GROUP: u32 = 1 << 31;

    /// The address of group `number`.
    pub const fn group(number: u32) -> Self {
        Self(Self::GROUP | number)
    }

    /// Whether it is the address of a group.
    pub const fn is_group(self) -> bool {
        self.0 & Self::GROUP != 0
    }
}

/// A flow: what a fair queue serves equally and what a host delivers to one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Explicit congestion notification, the two bits of RFC 3168.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint 0.
    Ect0,
    /// ECN-capable transport, codepoint 1.
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// A packet on its way. The payload is whatever the driver moves: a typed protocol packet or IP
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<P> {
    /// Identity in this run.
    pub id: PacketId,
    /// The interface that sent it.
    pub src: Address,
    /// The interface or the group that it is for.
    pub dst: Address,
    /// The flow that it belongs to.
    pub flow: FlowId,
    /// Bytes at the IP layer, headers included.
    pub size: u32,
    /// How many packets of the network this one stands for: more than one for a super-packet.
    pub segments: u16,
    /// Congestion notification.
    pub ecn: Ecn,
    /// A bit was flipped on the way: whoever checks a checksum must drop it.
    pub corrupt: bool,
    /// Traffic class: what routers may treat differently. Zero is the ordinary one.
    pub class: u8,
    /// What it carries.
    pub payload: P,
}
