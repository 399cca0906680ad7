use fontis_base::{Packet, Time};

/// A packet that has crossed a link.
///
/// The packet comes first, so that it is moved out with the same words with which it is moved on: a
/// processor waits for what it has just written if it reads it otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Delivery<P> {
    /// The packet.
    pub packet: Packet<P>,
    /// When it was due: what a next element must compute with, and what a driver's lateness is
    /// measured from.
    pub at: Time,
}
