//! The table of transports.
//!
//! A transport is one [`TransportRow`]. Scenarios, their reference and schema, recordings,
//! captures, qlogs and traces read the table and nothing else.

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use fontis_base::{Address, Duration, Packet, Port, Rate, Time};
use fontis_proto::tcp::TcpConfig;
use fontis_proto::tcp::wire::Addresses;
use fontis_trace::PacketHeader;
use serde_json::Value;

use crate::app::Application;
use crate::app::message::MessageLog;
use crate::host::Host;
use crate::host::common::CommonObjects;
use crate::host::identity::{EndpointIdentity, Stay};
use crate::host::payload::Payload;
use crate::host::tcp::TcpHost;
use crate::settings::catalogue::TableRow;
use crate::settings::error::ScenarioError;
use crate::settings::reader::Reader;

/// Reads the configuration of a transport for a flow.
pub type ReadTransport =
    fn(&Reader<'_>, &PathFacts<'_>) -> Result<Arc<dyn Transport>, ScenarioError>;

/// A transport: all that the laboratory needs to know of it.
#[derive(Clone, Copy)]
pub struct TransportRow {
    /// Its name in traces and qlogs.
    pub name: &'static str,
    /// The unit of its sequence numbers.
    pub unit: &'static str,
    /// The names of its protocols in scenarios: `flow.protocol`.
    pub protocols: fn() -> Vec<&'static str>,
    /// Its tables in scenarios.
    pub tables: &'static [TableRow],
    /// Reads its configuration for a flow.
    pub read: ReadTransport,
    /// Reads the header of one of its packets for a trace; `None` for packets that no trace shows.
    pub header: fn(&Payload) -> Option<PacketHeader>,
    /// Writes one of its packets with its IP header, as captures keep it.
    pub encode: fn(&Packet<Payload>, Addresses, &mut Vec<u8>),
    /// Makes the translator of a flow's packets to qlog; `None` if its hosts give events of their
    /// own.
    pub qlog: Option<fn() -> Box<dyn QlogFlow>>,
}

/// The path of a flow whose transport is being configured.
#[derive(Clone, Copy, Debug)]
pub struct PathFacts<'a> {
    /// The protocol that the scenario names.
    pub protocol: &'a str,
    /// The traffic of the flow.
    pub application: &'a Application,
    /// The rate of the sender's link.
    pub access: Rate,
    /// Whether that link is the flow's own, and no other link of the path is slower from the
    /// beginning, so that what waits waits at the sender.
    pub is_access_narrow: bool,
    /// The round-trip time without queues.
    pub rtt: Duration,
}

/// The configured transport of a flow.
pub trait Transport: Any + fmt::Debug + Send + Sync {
    /// Its row in the table.
    fn row(&self) -> &'static TransportRow;

    /// The hosts of a flow.
    fn hosts(&self, flow: &FlowContext<'_>, shared: &mut SharedConfigs) -> Hosts;

    /// The reason why it cannot carry an application, if it cannot.
    fn refuses(&self, _application: &Application) -> Option<&'static str> {
        None
    }

    /// Whether it can carry a flow to a group.
    fn reaches_groups(&self) -> bool {
        false
    }

    /// Whether a flow may have several paths.
    fn has_paths(&self) -> bool {
        false
    }

    /// Whether the simulator can run it.
    fn is_simulated(&self) -> bool {
        true
    }

    /// Whether a flow of this application ends by itself.
    fn has_end(&self, application: &Application) -> bool {
        application.has_end()
    }

    /// Whether the network's controller sets its rate.
    fn is_controlled(&self) -> bool {
        false
    }

    /// The useful share of the bytes that it sends without loss.
    fn efficiency(&self) -> f64 {
        1.0
    }

    /// Itself, for callers that look for a certain type.
    fn as_any(&self) -> &dyn Any;
}

/// A flow whose hosts are being made.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// Its name.
    pub name: &'a str,
    /// Its number.
    pub number: u32,
    /// When it begins.
    pub start: Time,
    /// Its traffic.
    pub application: &'a Application,
    /// Its sender.
    pub sender: EndpointIdentity,
    /// Its receivers: one, or the members of a group.
    pub receivers: &'a [EndpointIdentity],
    /// When each of them is a member of the group; none if the flow has no group.
    pub stays: &'a [Stay],
    /// Its paths beside the first, which leads from the sender to the first receiver.
    pub paths: &'a [FlowPath],
    /// More bytes than it can send while the run lasts.
    pub more_than_fits: u64,
    /// Whether every packet passes through the wire format and back.
    pub wire: bool,
    /// The address of the network's controller.
    pub controller: Address,
}

/// The ends of a path of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowPath {
    /// The sender's address.
    pub sender: Address,
    /// The receiver's address.
    pub receiver: Address,
    /// The ports by which packets of the sender and of the receiver leave.
    pub ports: [Port; 2],
}

/// The hosts of a flow.
pub struct Hosts {
    /// The sender.
    pub sender: AnyHost,
    /// The receivers, in the order of the flow's.
    pub receivers: Vec<AnyHost>,
    /// The flow's messages, if its application sends messages.
    pub log: Option<MessageLog>,
}

/// A host. The world's loop handles TCP without a virtual call.
pub enum AnyHost {
    /// A host of TCP.
    Tcp(Box<TcpHost>),
    /// Any other.
    Boxed(Box<dyn Host>),
}

impl AnyHost {
    /// A host of any transport.
    pub fn boxed(host: impl Host) -> Self {
        Self::Boxed(Box::new(host))
    }

    /// The host behind a virtual call, as hosts with several flows hold it.
    pub fn into_boxed(self) -> Box<dyn Host> {
        match self {
            Self::Tcp(host) => host,
            Self::Boxed(host) => host,
        }
    }
}

/// What the hosts of many flows share.
#[derive(Default)]
pub struct SharedConfigs {
    last: Vec<Arc<TcpConfig>>,
    /// Objects that several flows send together.
    pub(crate) objects: CommonObjects,
}

impl SharedConfigs {
    /// The shared copy of a configuration.
    pub(crate) fn of(&mut self, config: &TcpConfig) -> Arc<TcpConfig> {
        if let Some(same) = self.last.iter().find(|last| ***last == *config) {
            return Arc::clone(same);
        }
        let config = Arc::new(config.clone());
        self.last.insert(0, Arc::clone(&config));
        self.last.truncate(8);
        config
    }
}

/// Translates the packets of a flow's sender to qlog.
pub trait QlogFlow: fmt::Debug + Send {
    /// The packet leaves as number `number`; `received` packets have come.
    fn sent(&mut self, packet: &Packet<Payload>, number: u64, received: u64) -> QlogPacket;

    /// The packet comes as number `number`.
    fn received(&mut self, packet: &Packet<Payload>, number: u64) -> QlogPacket;
}

/// A packet in qlog.
#[derive(Clone, Debug, Default)]
pub struct QlogPacket {
    /// Whether it belongs to the handshake, whose packets have no number.
    pub is_handshake: bool,
    /// Packets that count as lost from now on.
    pub lost: Vec<u64>,
    /// Its frames.
    pub frames: Vec<Value>,
}

impl fmt::Debug for TransportRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportRow").field("name", &self.name).finish_non_exhaustive()
    }
}
