//! Commands, which run on the testbed only.

use core::any::Any;
use std::sync::Arc;

use crate::app::Application;
use crate::host::datagram::DatagramHost;
use crate::host::table::{
    AnyHost, FlowContext, Hosts, PathFacts, SharedConfigs, Transport, TransportRow,
};
use crate::settings::error::{ScenarioError, invalid};
use crate::settings::reader::Reader;

/// Two command lines in place of a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command line for `sh` at the sender, from the flow's start on.
    pub sender: String,
    /// The same at the receiver, from the beginning; empty for none.
    pub receiver: String,
}

/// The row of commands.
pub static ROW: TransportRow = TransportRow {
    name: "command",
    unit: "datagrams",
    protocols: || vec!["command"],
    tables: &[],
    read,
    header: |_| None,
    encode: |_, _, _| {},
    qlog: None,
};

fn read(read: &Reader<'_>, _path: &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError> {
    let (sender, receiver) = (read.text("flow.command"), read.text("flow.peer_command"));
    if sender.trim().is_empty() {
        return invalid("protocol command needs flow.command".to_owned());
    }
    Ok(Arc::new(Command { sender, receiver }))
}

impl Transport for Command {
    fn row(&self) -> &'static TransportRow {
        &ROW
    }

    fn hosts(&self, flow: &FlowContext<'_>, _shared: &mut SharedConfigs) -> Hosts {
        // The simulator refuses commands before it makes hosts: these never send.
        let host = |identity| AnyHost::boxed(DatagramHost::new(identity, None));
        Hosts {
            sender: host(flow.sender),
            receivers: flow.receivers.iter().copied().map(host).collect(),
            log: None,
        }
    }

    fn is_simulated(&self) -> bool {
        false
    }

    fn has_end(&self, _application: &Application) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
