//! The identity of one end of a flow, and when it is there.

use fontis_base::{Address, FlowId, Time};

/// One end of a flow: its addresses, and the number that its packets' identifiers begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointIdentity {
    /// No other end in the world has it.
    pub number: u32,
    /// The address of its interface.
    pub local: Address,
    /// The address of its peer, or of the group that it sends to.
    pub peer: Address,
    /// The flow.
    pub flow: FlowId,
    /// The traffic class of its packets.
    pub class: u8,
}

/// When a receiver is a member of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// It comes then.
    pub from: Time,
    /// It leaves for good then, if it does.
    pub to: Option<Time>,
}
