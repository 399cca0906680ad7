//! The interface between applications and transports.

use fontis_base::{Rate, Time};

/// A message on its way to a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppMessage {
    /// Its number in its flow, from zero.
    pub number: Option<u64>,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it loses its use.
    pub deadline: Option<Time>,
}

impl AppMessage {
    /// A message that nobody asks after.
    pub const fn of_size(bytes: u64) -> Self {
        Self { number: None, bytes, deadline: None }
    }
}

/// A transport as an application sees it. A host implements what its transport can; the scenario
/// refuses applications that need more.
pub trait AppSocket {
    /// Appends bytes to the stream towards the peer.
    fn write(&mut self, now: Time, bytes: u64);
    /// Ends the stream towards the peer.
    fn finish(&mut self, now: Time);
    /// Bytes of the peer's stream that were delivered in order.
    fn delivered(&self) -> u64;
    /// Sends a message. A transport of bytes appends it to the stream.
    fn send(&mut self, now: Time, message: AppMessage);
    /// The rate that the path carries, as the transport believes.
    fn rate(&self) -> Option<Rate>;
    /// Whether messages keep their boundaries on the way.
    fn keeps_messages(&self) -> bool;
}
