//! The paths of a flow as its ends see them.

use fontis_base::{Address, Port};

use crate::host::table::FlowPath;

/// The ends of a path as one host sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its own address.
    pub local: Address,
    /// The peer's.
    pub peer: Address,
    /// The port that its packets leave by.
    pub port: Port,
}

/// The paths of a flow beside the first as its sender and as its receiver sees them.
pub fn ways(paths: &[FlowPath]) -> [Vec<Way>; 2] {
    let sender = paths.iter().map(|path| {
        let FlowPath { sender: local, receiver: peer, ports: [port, _] } = *path;
        Way { local, peer, port }
    });
    let receiver = paths.iter().map(|path| {
        let FlowPath { sender: peer, receiver: local, ports: [_, port] } = *path;
        Way { local, peer, port }
    });
    [sender.collect(), receiver.collect()]
}
