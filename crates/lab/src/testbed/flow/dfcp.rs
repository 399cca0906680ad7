use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Span;

use bytes::Bytes;
use fontis::{
    Accept, Connection, Endpoint, EndpointConfig, Identity, LocalInterface, Received, SendProgress,
};
use fontis_base::{Rate, Time};
use fontis_codes::Code;
use fontis_proto::dfcp::{DfcpConfig, DfcpStats, Held, ObjectShape, SYMBOL_SIZE, SendOptions};
use fontis_sim::app::Application;
use fontis_sim::app::message::{MessageLog, MessageSource};
use fontis_sim::app::source::Pattern;
use fontis_sim::host::common::CommonObject;
use fontis_sim::host::object::PatternObject;
use fontis_sim::host::rows;
use fontis_sim::host::{Counters, Milestones};
use tokio::runtime::Runtime;

use super::messages::in_stream;
use crate::testbed::error::TestbedError;
use crate::testbed::flow::stage::{Flow, Meter, PORT, Place, Stage};
use crate::testbed::plan::{interface_name, path_side};

/// A connection of Fontis's own transport. An object is encoded, encrypted, decoded and compared.
struct Dfcp {
    meter: Arc<Meter>,
    ends: Arc<Mutex<Connections>>,
}

/// Both connections, if they exist, and their last counters.
#[derive(Default)]
struct Connections {
    sender: Option<Connection>,
    receiver: Option<Connection>,
    sent: DfcpStats,
    got: DfcpStats,
}

/// Starts both ends. One waits for the other, which connects when it is time: the receiver, or the
/// sender if the flow has paths over its interfaces. Then the receiver is sent the object or the
/// messages.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let spec = place.spec;
    let dfcp = spec.transport.as_any().downcast_ref::<rows::dfcp::Dfcp>();
    let rows::dfcp::Dfcp { config, block, common, ordered } = dfcp.expect("the table says DFCP");
    let size = match spec.application {
        Application::Source(Pattern::Object { size }) => size,
        Application::Source(Pattern::Bulk) => place.experiment.more_than_fits(spec),
        Application::Messages(_) => 0,
        Application::Source(_) | Application::Requests(_) => {
            return Err(TestbedError::Unsupported(format!(
                "{}: on the testbed DFCP carries bulk, objects, voice and video",
                spec.name
            )));
        }
    };
    // What the simulator only counts is really encoded here.
    let params = config.params.clone().with_code(Code::RaptorQ);
    let [sends, receives] = ends(place, &DfcpConfig { params, ..config.clone() })?;
    let flow = Dfcp { meter: Arc::default(), ends: Arc::default() };
    let end = End {
        stage: stage.clone(),
        meter: flow.meter.clone(),
        ends: flow.ends.clone(),
        name: place.spec.name.clone(),
        content: PatternObject { seed: place.experiment.seed ^ place.number as u64 },
    };
    let number = place.number as u32;
    let mut shape = ObjectShape::partition(size, SYMBOL_SIZE, Code::RaptorQ);
    shape.block_size = *block;
    let (sending, receiving) = (end.clone(), end);
    match (&place.spec.application, &place.log) {
        (Application::Messages(messages), Some(log)) => {
            let source = MessageSource::new(*messages, spec.start, place.stream(), log.clone());
            let log = log.clone();
            let options = SendOptions { ordered: *ordered, ..SendOptions::default() };
            place
                .runtime
                .spawn(async move { sending.send_messages(&sends, source, options).await });
            place.runtime.spawn(async move { receiving.take_messages(&receives, &log).await });
        }
        (Application::Source(Pattern::Object { .. }), _) if common.is_some() => {
            let name = common.clone().unwrap_or_default();
            let object = place.commons.borrow_mut().of(&name, shape);
            object.join(number);
            // The same bytes, whoever sends them.
            let content = PatternObject { seed: place.experiment.seed };
            let part = Part { object, source: number, content };
            let (sent, got) = (part.clone(), part);
            place.runtime.spawn(async move { sending.serve_part(&sends, sent).await });
            place.runtime.spawn(async move { receiving.fetch_part(&receives, got).await });
        }
        _ => {
            place.runtime.spawn(async move { sending.serve(&sends, shape).await });
            place.runtime.spawn(async move { receiving.fetch(&receives).await });
        }
    }
    Ok(Box::new(flow))
}

/// How an end comes to its connection.
enum Call {
    Waits(Endpoint),
    Makes { endpoint: Endpoint, to: SocketAddr, key: [u8; 32], at: Time },
}

/// The endpoints of the sender and of the receiver.
fn ends(place: &Place<'_>, transport: &DfcpConfig) -> Result<[Call; 2], TestbedError> {
    let spec = place.spec;
    let mut sides = spec.paths.iter().map(|at| path_side(spec, *at));
    let caller = sides.next().unwrap_or(RECEIVER);
    if sides.any(|side| side != caller) {
        return Err(TestbedError::Unsupported(format!(
            "{}: on the testbed all of flow.paths are interfaces of one host, which connects",
            spec.name
        )));
    }
    let sites = [place.sender, place.receiver()];
    let bind = |side: usize, port, secret: &Identity, accept| {
        let (transport, site) = (transport.clone(), sites[side]);
        let config = EndpointConfig { transport, accept, ..EndpointConfig::new(*secret.secret()) };
        site.namespace.run(|| {
            Endpoint::bind(SocketAddr::new(site.address, port), config).map_err(|error| {
                TestbedError::Flow { flow: spec.name.clone(), problem: error.to_string() }
            })
        })
    };
    let called = 1 - caller;
    let identity = Identity::generate();
    let waits = Call::Waits(bind(called, PORT, &identity, Accept::Anyone)?);
    let endpoint = bind(caller, 0, &Identity::generate(), Accept::None)?;
    let interfaces = spec.paths.iter().zip(&place.beside).map(|(at, addresses)| LocalInterface {
        name: interface_name(at.interface),
        address: addresses[caller],
        spare: false,
    });
    endpoint.use_interfaces(interfaces.collect());
    let to = SocketAddr::new(sites[called].address, PORT);
    let makes = Call::Makes { endpoint, to, key: *identity.public().as_bytes(), at: spec.start };
    Ok(if caller == RECEIVER { [waits, makes] } else { [makes, waits] })
}

/// The sides of a flow.
const SENDER: usize = 0;
const RECEIVER: usize = 1;

impl Dfcp {
    /// Asks both connections what they have counted.
    async fn ask(&self) {
        let (sender, receiver) = {
            let ends = self.ends();
            (ends.sender.clone(), ends.receiver.clone())
        };
        if let Some(stats) = ask(sender).await {
            self.ends().sent = stats;
        }
        if let Some(stats) = ask(receiver).await {
            self.ends().got = stats;
        }
    }

    fn ends(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flow for Dfcp {
    fn counters(&self, _receiver: usize) -> Counters {
        let ends = self.ends();
        let (sent, got) = (&ends.sent, &ends.got);
        Counters {
            received: self.meter.received.load(std::sync::atomic::Ordering::Relaxed),
            sent: sent.packets_sent,
            retransmitted: sent.repair_symbols_sent,
            lost: sent.packets_lost,
            window: 0,
            in_flight: sent.in_flight,
            srtt: (sent.srtt > fontis_base::Duration::ZERO).then_some(sent.srtt),
            wasted: got.symbols_wasted,
            symbols: got.symbols_received,
        }
    }

    fn milestones(&self, _receiver: usize) -> Milestones {
        self.meter.milestones()
    }

    fn refresh(&self, runtime: &Runtime) {
        runtime.block_on(self.ask());
    }
}

/// The time limit of that query: a connection may be busy.
const PATIENCE: Span = Span::from_millis(50);

async fn ask(connection: Option<Connection>) -> Option<DfcpStats> {
    let stats = async move { connection?.stats().await };
    tokio::time::timeout(PATIENCE, stats).await.ok().flatten()
}

/// An object that several flows send together.
#[derive(Clone)]
struct Part {
    object: CommonObject,
    source: u32,
    content: PatternObject,
}

/// The interval at which it is looked whether others have brought the rest.
const LOOK_EVERY: Span = Span::from_millis(5);
/// The code with which a part is refused that others have brought.
const UNWANTED: u32 = 2;

#[derive(Clone)]
struct End {
    stage: Stage,
    meter: Arc<Meter>,
    ends: Arc<Mutex<Connections>>,
    name: String,
    content: PatternObject,
}

impl End {
    async fn serve(self, call: &Call, shape: ObjectShape) {
        let Some(connection) = self.meet(call, SENDER).await else { return };
        let (options, held) = (SendOptions::default(), Held::default());
        let Some(mut object) = connection.send_object(shape, Bytes::new(), options, held).await
        else {
            return self.stage.fail(&self.name, "the receiver does not take such an object");
        };
        while let Some(progress) = object.next().await {
            match progress {
                SendProgress::Wanted(block) => {
                    object.supply(block, self.content.block(block, shape.block_len(block)));
                }
                SendProgress::Delivered | SendProgress::Abandoned(_) => break,
            }
        }
        connection.closed().await;
    }

    /// Sends parts of an object that others send, too, until the receiver leaves.
    async fn serve_part(self, call: &Call, part: Part) {
        let Some(connection) = self.meet(call, SENDER).await else { return };
        let send = async {
            loop {
                let Some((blocks, shape)) = part.object.take(part.source) else {
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                };
                let (options, held) = (SendOptions::default(), Held::default());
                let sent = connection.send_object(shape, Bytes::new(), options, held).await;
                let Some(mut object) = sent else { return };
                while let Some(SendProgress::Wanted(index)) = object.next().await {
                    let block = blocks.get(index as usize).copied().unwrap_or_default();
                    object.supply(index, part.content.block(block, shape.block_len(index)));
                }
            }
        };
        tokio::select! {
            _ = connection.closed() => {}
            () = send => { connection.closed().await; }
        }
        part.object.leave(part.source);
    }

    /// Takes parts of an object that others bring, too, until everything is here.
    async fn fetch_part(self, call: &Call, part: Part) {
        let Some(connection) = self.meet(call, RECEIVER).await else { return };
        let end = loop {
            if let Some(end) = part.object.completed_at() {
                break end;
            }
            let Ok(coming) = tokio::time::timeout(LOOK_EVERY, connection.recv_object()).await
            else {
                continue;
            };
            let Some(mut coming) = coming else {
                self.meter.note(|milestones| milestones.aborted = true);
                return self.stage.fail(&self.name, "the connection ended before its time");
            };
            let blocks = part.object.part(part.source);
            while part.object.is_asked(part.source) {
                let Ok(received) = tokio::time::timeout(LOOK_EVERY, coming.next()).await else {
                    continue;
                };
                let (index, data) = match received {
                    Some(Received::Block(index, data)) => (index, data),
                    Some(Received::Checkpoint(_)) => continue,
                    Some(Received::Abandoned(_)) | None => {
                        self.meter.note(|milestones| milestones.aborted = true);
                        return self.stage.fail(&self.name, "the connection ended before its time");
                    }
                };
                let block = blocks.get(index as usize).copied().unwrap_or_default();
                if data != part.content.block(block, data.len() as u32) {
                    return self.stage.fail(&self.name, "what arrived is not what was sent");
                }
                coming.release(index);
                let now = self.stage.clock.now();
                if let Some(bytes) = part.object.came(block, now) {
                    self.meter.arrived(now, u64::from(bytes));
                }
            }
            // What others were sooner with is on its way in vain.
            coming.abandon(UNWANTED);
        };
        self.meter.note(|milestones| milestones.completed = Some(end));
        connection.close(0, "");
    }

    /// Sends messages, each when it is made.
    async fn send_messages(self, call: &Call, mut source: MessageSource, options: SendOptions) {
        let Some(connection) = self.meet(call, SENDER).await else { return };
        while let Some(due) = source.due().filter(|_| !self.stage.is_over()) {
            tokio::time::sleep(due.since(self.stage.clock.now()).into()).await;
            let stats = connection.stats().await;
            let rate = stats.map(|stats| stats.rate).filter(|rate| *rate > Rate::ZERO);
            while let Some(message) = source.next(self.stage.clock.now(), rate) {
                connection.send_message(in_stream(&message), options);
            }
        }
        connection.closed().await;
    }

    /// Takes messages, and notes when each has come.
    async fn take_messages(self, call: &Call, log: &MessageLog) {
        let Some(connection) = self.meet(call, RECEIVER).await else { return };
        while let Some(message) = connection.recv_message().await {
            let now = self.stage.clock.now();
            self.meter.arrived(now, message.data.len() as u64);
            if let Some(number) = message.data.first_chunk() {
                log.arrived(0, u64::from_be_bytes(*number), now);
            }
        }
    }

    /// Waits for the connection, or makes it when it is time; notes it for the side's counters.
    async fn meet(&self, call: &Call, side: usize) -> Option<Connection> {
        let connection = match call {
            Call::Waits(endpoint) => endpoint.accept().await?,
            Call::Makes { endpoint, to, key, at } => {
                tokio::time::sleep(at.since(self.stage.clock.now()).into()).await;
                let start = self.stage.clock.now();
                self.meter.note(|milestones| milestones.first_sent = Some(start));
                let connection = match endpoint.connect(*to, *key, None).await {
                    Ok(connection) => connection,
                    Err(error) => {
                        self.stage.fail(&self.name, error);
                        return None;
                    }
                };
                let connected = self.stage.clock.now();
                self.meter.note(|milestones| milestones.connected = Some(connected));
                connection
            }
        };
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let end = if side == SENDER { &mut ends.sender } else { &mut ends.receiver };
        *end = Some(connection.clone());
        Some(connection)
    }

    async fn fetch(self, call: &Call) {
        let now = || self.stage.clock.now();
        let Some(connection) = self.meet(call, RECEIVER).await else { return };
        let Some(mut object) = connection.recv_object().await else {
            return self.stage.fail(&self.name, "the connection ended before the object came");
        };
        let mut missing = object.shape().size;
        while missing > 0 {
            match object.next().await {
                Some(Received::Block(block, data)) => {
                    if data != self.content.block(block, data.len() as u32) {
                        return self.stage.fail(&self.name, "what arrived is not what was sent");
                    }
                    object.release(block);
                    missing -= data.len() as u64;
                    self.meter.arrived(now(), data.len() as u64);
                }
                // What comes is not stored.
                Some(Received::Checkpoint(_)) => {}
                Some(Received::Abandoned(_)) | None => {
                    self.meter.note(|milestones| milestones.aborted = true);
                    return self.stage.fail(&self.name, "the connection ended before its time");
                }
            }
        }
        let end = now();
        self.meter.note(|milestones| milestones.completed = Some(end));
    }
}
