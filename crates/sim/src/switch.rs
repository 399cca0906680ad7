use std::collections::{BTreeMap, VecDeque};

use fontis_base::{HostId, Node, Packet, Port, Time};

use crate::Payload;

/// Sends each packet out by the port behind which its destination is, at once and without a queue.
///
/// A packet to a host that no port leads to is dropped and counted.
#[derive(Clone, Debug, Default)]
pub struct Switch {
    ports: BTreeMap<HostId, Port>,
    out: VecDeque<(Port, Packet<Payload>)>,
    unroutable: u64,
}

impl Switch {
    /// A switch that knows no host.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `host` is behind `port`.
    pub fn route(&mut self, host: HostId, port: Port) {
        self.ports.insert(host, port);
    }

    /// Packets dropped because no port leads to where they should go.
    pub const fn unroutable(&self) -> u64 {
        self.unroutable
    }
}

impl Node<Payload> for Switch {
    fn handle(&mut self, _now: Time, _port: Port, packet: Packet<Payload>) {
        match self.ports.get(&packet.dst) {
            Some(port) => self.out.push_back((*port, packet)),
            None => self.unroutable += 1,
        }
    }

    fn poll(&mut self, _now: Time) -> Option<(Port, Packet<Payload>)> {
        self.out.pop_front()
    }

    fn timeout(&self) -> Option<(Time, &'static str)> {
        None
    }
}
