use crate::packet::Packet;
use crate::time::Time;

/// One of a node's interfaces, counted from zero.
pub type Port = u32;

/// Something that packets go into and come out of: a link, a router, an endpoint.
///
/// A node owns no clock. After each call of [`handle`](Node::handle), and when the time that
/// [`timeout`](Node::timeout) names has come, the driver calls [`poll`](Node::poll) until it gives
/// nothing more, then reads `timeout` again. `now` never goes backwards.
pub trait Node<P> {
    /// Takes a packet that arrives on `port`.
    fn handle(&mut self, now: Time, port: Port, packet: Packet<P>);

    /// Gives the next packet that leaves, and by which port.
    fn poll(&mut self, now: Time) -> Option<(Port, Packet<P>)>;

    /// When the node next has something to do if nothing arrives, and why.
    fn timeout(&self) -> Option<(Time, &'static str)>;
}

/// Is told of what happens to packets inside the network. Every method has an empty default.
pub trait Observer<P> {
    /// `packet` was dropped at `element`, for the stated reason.
    fn dropped(&mut self, _now: Time, _element: &str, _packet: &Packet<P>, _why: &'static str) {}
    /// `packet` was marked with congestion experienced at `element`.
    fn marked(&mut self, _now: Time, _element: &str, _packet: &Packet<P>) {}
    /// `packet` will leave a queue soon: what it points to has not been touched for as long as it
    /// waited, and may be brought near.
    fn nears(&mut self, _packet: &Packet<P>) {}
}

impl<P> Observer<P> for () {}
