//! The paths of flows that have several.

use fontis_base::{Address, Port};

use super::Builder;
use crate::experiment::spec::{Destination, End, FlowSpec, InterfaceIndex};
use crate::host::table::FlowPath;

impl Builder<'_> {
    /// The paths of a flow beside its first: each joins an interface of one end's machine to the
    /// other end.
    pub(super) fn paths(
        &self,
        flow: &FlowSpec,
        sender: Address,
        receiver: Address,
    ) -> Vec<FlowPath> {
        let is_senders = |at: &InterfaceIndex| match flow.from {
            End::Shared(first) => first.machine == at.machine,
            End::Own { .. } => false,
        };
        // A host of the flow's own has one port.
        let port = |end: Option<&End>, number| match end {
            Some(End::Shared(_)) => number,
            _ => 0,
        };
        let to = match &flow.to {
            Destination::One(end) => Some(end),
            Destination::Group(_) => None,
        };
        let path = |(number, at): (u32, &InterfaceIndex)| {
            let ports = [port(Some(&flow.from), number), port(to, number)];
            match is_senders(at) {
                true => FlowPath { sender: self.interface(*at), receiver, ports },
                false => FlowPath { sender, receiver: self.interface(*at), ports },
            }
        };
        (1..).zip(&flow.paths).map(path).collect()
    }

    /// The interfaces by which packets of a flow leave a machine, path by path, the first at `at`.
    /// Of paths that begin at the other machine this one has the end of the first.
    pub(super) fn ports(flow: &FlowSpec, at: InterfaceIndex) -> Vec<Port> {
        let port = |path: &InterfaceIndex| match path.machine == at.machine {
            true => path.interface as Port,
            false => at.interface as Port,
        };
        core::iter::once(&at).chain(&flow.paths).map(port).collect()
    }
}
