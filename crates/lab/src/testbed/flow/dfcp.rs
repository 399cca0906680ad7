use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Span;

use bytes::Bytes;
use fontis::{Accept, Connection, Endpoint, EndpointConfig, Identity, Received, SendProgress};
use fontis_base::Rate;
use fontis_codes::Code;
use fontis_proto::dfcp::{DfcpConfig, DfcpStats, Held, ObjectShape, SYMBOL_SIZE, SendOptions};
use fontis_sim::app::Application;
use fontis_sim::app::message::{MessageLog, MessageSource};
use fontis_sim::app::source::Pattern;
use fontis_sim::host::object::PatternObject;
use fontis_sim::host::rows;
use fontis_sim::host::{Counters, Milestones};
use tokio::runtime::Runtime;

use super::messages::in_stream;
use crate::testbed::error::TestbedError;
use crate::testbed::flow::stage::{Flow, Meter, PORT, Place, Stage};
use crate::testbed::namespace::Namespace;

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

/// Lets the sender wait for the receiver, which connects when it is time, and is then sent the
/// object, the messages or the answers that it asks for.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let spec = place.spec;
    let dfcp = spec.transport.as_any().downcast_ref::<rows::dfcp::Dfcp>();
    let rows::dfcp::Dfcp { config, block } = dfcp.expect("the table says DFCP");
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
    let seed = place.experiment.seed ^ place.number as u64;
    let identity = Identity::generate();
    // What the simulator only counts is really encoded here.
    let params = config.params.clone().with_code(Code::RaptorQ);
    let transport = DfcpConfig { params, ..config.clone() };
    let bind = |namespace: &Namespace, address, secret: &Identity, accept| {
        let config = EndpointConfig {
            transport: transport.clone(),
            accept,
            ..EndpointConfig::new(*secret.secret())
        };
        namespace.run(|| {
            Endpoint::bind(address, config).map_err(|error| TestbedError::Flow {
                flow: place.spec.name.clone(),
                problem: error.to_string(),
            })
        })
    };
    let to = SocketAddr::new(place.sender.address, PORT);
    let server = bind(place.sender.namespace, to, &identity, Accept::Anyone)?;
    let from = SocketAddr::new(place.receivers[0].address, 0);
    let client = bind(place.receivers[0].namespace, from, &Identity::generate(), Accept::None)?;
    let flow = Dfcp { meter: Arc::default(), ends: Arc::default() };
    let end = End {
        stage: stage.clone(),
        meter: flow.meter.clone(),
        ends: flow.ends.clone(),
        name: place.spec.name.clone(),
        content: PatternObject { seed },
    };
    let mut shape = ObjectShape::partition(size, SYMBOL_SIZE, Code::RaptorQ);
    shape.block_size = *block;
    let (sending, receiving) = (end.clone(), end);
    let (start, key) = (place.spec.start, *identity.public().as_bytes());
    match (&place.spec.application, &place.log) {
        (Application::Messages(messages), Some(log)) => {
            let source = MessageSource::new(*messages, start, place.stream(), log.clone());
            let log = log.clone();
            place.runtime.spawn(async move { sending.send_messages(server, source).await });
            place.runtime.spawn(async move {
                tokio::time::sleep(start.since(receiving.stage.clock.now()).into()).await;
                receiving.take_messages(client, to, key, &log).await;
            });
        }
        _ => {
            place.runtime.spawn(async move { sending.serve(server, shape).await });
            place.runtime.spawn(async move {
                tokio::time::sleep(start.since(receiving.stage.clock.now()).into()).await;
                receiving.fetch(client, to, key).await;
            });
        }
    }
    Ok(Box::new(flow))
}

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

#[derive(Clone)]
struct End {
    stage: Stage,
    meter: Arc<Meter>,
    ends: Arc<Mutex<Connections>>,
    name: String,
    content: PatternObject,
}

impl End {
    async fn serve(self, endpoint: Endpoint, shape: ObjectShape) {
        let Some(connection) = endpoint.accept().await else { return };
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).sender = Some(connection.clone());
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

    /// Sends messages, each when it is made.
    async fn send_messages(self, endpoint: Endpoint, mut source: MessageSource) {
        let Some(connection) = endpoint.accept().await else { return };
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).sender = Some(connection.clone());
        while let Some(due) = source.due().filter(|_| !self.stage.is_over()) {
            tokio::time::sleep(due.since(self.stage.clock.now()).into()).await;
            let stats = connection.stats().await;
            let rate = stats.map(|stats| stats.rate).filter(|rate| *rate > Rate::ZERO);
            while let Some(message) = source.next(self.stage.clock.now(), rate) {
                connection.send_message(in_stream(&message), SendOptions::default());
            }
        }
        connection.closed().await;
    }

    /// Takes messages, and notes when each has come.
    async fn take_messages(
        self,
        endpoint: Endpoint,
        to: SocketAddr,
        key: [u8; 32],
        log: &MessageLog,
    ) {
        let Some(connection) = self.connect(&endpoint, to, key).await else { return };
        while let Some(message) = connection.recv_message().await {
            let now = self.stage.clock.now();
            self.meter.arrived(now, message.data.len() as u64);
            if let Some(number) = message.data.first_chunk() {
                log.arrived(0, u64::from_be_bytes(*number), now);
            }
        }
    }

    async fn connect(
        &self,
        endpoint: &Endpoint,
        to: SocketAddr,
        key: [u8; 32],
    ) -> Option<Connection> {
        let start = self.stage.clock.now();
        self.meter.note(|milestones| milestones.first_sent = Some(start));
        let connection = match endpoint.connect(to, key, None).await {
            Ok(connection) => connection,
            Err(error) => {
                self.stage.fail(&self.name, error);
                return None;
            }
        };
        let connected = self.stage.clock.now();
        self.meter.note(|milestones| milestones.connected = Some(connected));
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).receiver =
            Some(connection.clone());
        Some(connection)
    }

    async fn fetch(self, endpoint: Endpoint, to: SocketAddr, key: [u8; 32]) {
        let now = || self.stage.clock.now();
        let Some(connection) = self.connect(&endpoint, to, key).await else { return };
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
