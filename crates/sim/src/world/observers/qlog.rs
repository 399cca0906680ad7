//! The qlog of a simulation.

use fontis_base::{FlowId, Packet, Time};
use fontis_proto::qlog::{
    QlogEvent, Records, metrics_updated, millis, packet_lost, packet_received, packet_sent,
};
use serde_json::{Map, Value, json};

use crate::host::PathMetrics;
use crate::host::payload::Payload;
use crate::host::table::{QlogFlow, TransportRow};

/// The packets, the events and the beliefs of flows' senders, as one qlog: each flow is a group of
/// events. The end that sends a flow's data is called the server.
///
/// A transport whose hosts give events of their own is told in their words, as its real transfers
/// are; of the others the transport's row translates the packets.
#[derive(Debug)]
pub struct Qlog {
    records: Records,
    flows: Vec<LoggedFlow>,
}

/// A flow to be logged.
#[derive(Clone, Copy, Debug)]
pub struct QlogSubject<'a> {
    /// The node that sends its data.
    pub node: usize,
    /// Its name.
    pub name: &'a str,
    /// Its transport.
    pub transport: &'static TransportRow,
}

#[derive(Debug)]
struct LoggedFlow {
    node: u32,
    /// The fields that its events have and others have not.
    own: Map<String, Value>,
    sent: u64,
    received: u64,
    translator: Option<Box<dyn QlogFlow>>,
    /// The metrics that were logged last.
    metrics: Map<String, Value>,
}

impl Qlog {
    /// A qlog of these flows, in the order of their numbers.
    pub fn new<'a>(flows: impl IntoIterator<Item = QlogSubject<'a>>) -> Self {
        let flows: Vec<_> = flows.into_iter().collect();
        let mut protocols: Vec<&str> = flows.iter().map(|flow| flow.transport.name).collect();
        protocols.sort_unstable();
        protocols.dedup();
        let differ = protocols.len() > 1;
        let mut records = Records::default();
        let mut common = Map::new();
        common.insert("protocol_type".to_owned(), json!(protocols));
        records.head("Fontis simulation", "server", 0.0, common);
        let logged = flows.into_iter().map(|QlogSubject { node, name, transport }| {
            let mut own = Map::new();
            own.insert("group_id".to_owned(), name.into());
            if differ {
                own.insert("protocol_type".to_owned(), json!([transport.name]));
            }
            let translator = transport.qlog.map(|make| make());
            let (node, metrics) = (node as u32, Map::new());
            LoggedFlow { node, own, sent: 0, received: 0, translator, metrics }
        });
        Self { records, flows: logged.collect() }
    }

    /// The nodes whose hosts are to give events of their own.
    pub(crate) fn nodes_with_events(&self) -> impl Iterator<Item = u32> {
        self.flows.iter().filter(|flow| flow.translator.is_none()).map(|flow| flow.node)
    }

    /// The flow of a packet at its sender's node.
    fn flow(&mut self, node: u32, flow: FlowId) -> Option<(&mut Records, &mut LoggedFlow)> {
        let logged = self.flows.get_mut(flow.0 as usize).filter(|flow| flow.node == node)?;
        Some((&mut self.records, logged))
    }

    /// A packet leaves a node.
    pub(crate) fn leaves(&mut self, now: Time, node: u32, packet: &Packet<Payload>) {
        let Some((records, flow)) = self.flow(node, packet.flow) else { return };
        let Some(translator) = flow.translator.as_mut().filter(|_| is_on_wire(packet)) else {
            return;
        };
        let told = translator.sent(packet, flow.sent, flow.received);
        for lost in told.lost {
            records.event(now, &flow.own, packet_lost(lost));
        }
        let number = (!told.is_handshake).then_some(flow.sent);
        flow.sent += u64::from(number.is_some());
        records.event(now, &flow.own, packet_sent(number, packet.size, told.frames));
    }

    /// A packet comes to a node.
    pub(crate) fn comes(&mut self, now: Time, node: u32, packet: &Packet<Payload>) {
        if packet.corrupt {
            return;
        }
        let Some((records, flow)) = self.flow(node, packet.flow) else { return };
        let Some(translator) = flow.translator.as_mut().filter(|_| is_on_wire(packet)) else {
            return;
        };
        let told = translator.received(packet, flow.received);
        let number = (!told.is_handshake).then_some(flow.received);
        flow.received += u64::from(number.is_some());
        records.event(now, &flow.own, packet_received(number, packet.size, told.frames));
    }

    /// The path's state as the host of a flow at a node believes it: what has changed is logged.
    pub(crate) fn path(&mut self, now: Time, node: u32, flow: FlowId, metrics: PathMetrics) {
        let Some((records, flow)) = self.flow(node, flow) else { return };
        let all = [
            ("smoothed_rtt", metrics.srtt.map(millis).map(Value::from)),
            ("min_rtt", metrics.min_rtt.map(millis).map(Value::from)),
            ("congestion_window", Some(metrics.window.into())),
            ("bytes_in_flight", Some(metrics.in_flight.into())),
            ("ssthresh", metrics.threshold.map(Value::from)),
        ];
        let mut changed = Map::new();
        for (name, value) in all {
            let Some(value) = value.filter(|value| flow.metrics.get(name) != Some(value)) else {
                continue;
            };
            flow.metrics.insert(name.to_owned(), value.clone());
            changed.insert(name.to_owned(), value);
        }
        if !changed.is_empty() {
            records.event(now, &flow.own, metrics_updated(changed.into()));
        }
    }

    /// An event of the host of a flow at a node.
    pub(crate) fn event(&mut self, at: Time, node: u32, flow: FlowId, event: QlogEvent) {
        if let Some((records, flow)) = self.flow(node, flow) {
            records.event(at, &flow.own, event);
        }
    }

    /// The flow whose sender is alone at a node.
    pub(crate) fn flow_of(&self, node: u32) -> Option<FlowId> {
        let flow = self.flows.iter().position(|flow| flow.node == node)?;
        Some(FlowId(flow as u32))
    }

    /// Takes the records made since the last call: whole ones.
    pub fn take(&mut self) -> Records {
        core::mem::take(&mut self.records)
    }
}

/// Whether a packet takes part in the network. The messages of a controller do not.
const fn is_on_wire(packet: &Packet<Payload>) -> bool {
    !matches!(packet.payload, Payload::Rate(_) | Payload::Active(_))
}
