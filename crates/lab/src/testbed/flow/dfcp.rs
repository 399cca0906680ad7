use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Span;

use bytes::Bytes;
use fontis::{Accept, Connection, Endpoint, EndpointConfig, Identity, Received, SendProgress};
use fontis_codes::Code;
use fontis_proto::dfcp::{DfcpConfig, DfcpStats, Held, ObjectShape, SYMBOL_SIZE, SendOptions};
use fontis_sim::host::object::PatternObject;
use fontis_sim::host::{Counters, Milestones};
use tokio::runtime::Runtime;

use super::{Meter, PORT, Place, Stage};
use crate::testbed::error::TestbedError;
use crate::testbed::namespace::Namespace;

/// An object of Fontis's own transport: encoded, encrypted, decoded and compared.
pub(in crate::testbed) struct Dfcp {
    meter: Arc<Meter>,
    ends: Arc<Mutex<Ends>>,
}

/// Both connections, once they are there, and what they had counted when they were last asked.
#[derive(Default)]
struct Ends {
    sender: Option<Connection>,
    receiver: Option<Connection>,
    sent: DfcpStats,
    got: DfcpStats,
}

/// What an object is on this testbed.
pub(in crate::testbed) struct Object {
    /// Its bytes.
    pub(in crate::testbed) size: u64,
    /// Bytes of a block, if not what suits its size.
    pub(in crate::testbed) block: Option<u32>,
    /// Decides its content.
    pub(in crate::testbed) seed: u64,
}

impl Dfcp {
    /// Lets the sender wait for the receiver, which connects when it is time, and is then sent the
    /// object.
    pub(in crate::testbed) fn start(
        stage: &Stage,
        place: &Place<'_>,
        config: &DfcpConfig,
        object: &Object,
        [senders, receivers]: [&Namespace; 2],
        runtime: &Runtime,
    ) -> Result<Self, TestbedError> {
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
        let to = SocketAddr::new(place.sender, PORT);
        let server = bind(senders, to, &identity, Accept::Anyone)?;
        let from = SocketAddr::new(place.receiver, 0);
        let client = bind(receivers, from, &Identity::generate(), Accept::None)?;
        let flow = Self { meter: Arc::default(), ends: Arc::default() };
        let end = End {
            stage: stage.clone(),
            meter: flow.meter.clone(),
            ends: flow.ends.clone(),
            name: place.spec.name.clone(),
            content: PatternObject { seed: object.seed },
        };
        let mut shape = ObjectShape::partition(object.size, SYMBOL_SIZE, Code::RaptorQ);
        shape.block_size = object.block.unwrap_or(shape.block_size);
        let (sending, receiving) = (end.clone(), end);
        runtime.spawn(async move { sending.serve(server, shape).await });
        let (start, key) = (place.spec.start, *identity.public().as_bytes());
        runtime.spawn(async move {
            tokio::time::sleep(start.since(receiving.stage.clock.now()).into()).await;
            receiving.fetch(client, to, key).await;
        });
        Ok(flow)
    }

    /// Asks both connections what they have counted.
    pub(in crate::testbed) async fn refresh(&self) {
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

    fn ends(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counters(&self) -> Counters {
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

    pub(super) fn milestones(&self) -> Milestones {
        self.meter.milestones()
    }
}

/// How long a connection may take to say what it has counted: it is busy, not gone.
const PATIENCE: Span = Span::from_millis(50);

async fn ask(connection: Option<Connection>) -> Option<DfcpStats> {
    let stats = async move { connection?.stats().await };
    tokio::time::timeout(PATIENCE, stats).await.ok().flatten()
}

#[derive(Clone)]
struct End {
    stage: Stage,
    meter: Arc<Meter>,
    ends: Arc<Mutex<Ends>>,
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

    async fn fetch(self, endpoint: Endpoint, to: SocketAddr, key: [u8; 32]) {
        let now = || self.stage.clock.now();
        let start = now();
        self.meter.note(|milestones| milestones.first_sent = Some(start));
        let connection = match endpoint.connect(to, key, None).await {
            Ok(connection) => connection,
            Err(error) => return self.stage.fail(&self.name, error),
        };
        let connected = now();
        self.meter.note(|milestones| milestones.connected = Some(connected));
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).receiver =
            Some(connection.clone());
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
