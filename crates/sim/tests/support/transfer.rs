use fontis_base::{Address, Duration, FlowId, Rate, Time};
use fontis_codes::Code;
use fontis_net::{LinkConfig, LinkStats};
use fontis_proto::dfcp::{CloseReason, DfcpConfig, DfcpStats};

use fontis_sim::World;
use fontis_sim::host::dfcp::{DfcpHost, Fetch, Role, Serve};
use fontis_sim::host::identity::EndpointIdentity;
use fontis_sim::host::object::PatternObject;
use fontis_sim::world::drops;
use fontis_sim::world::element::Element;

use super::hosts::dfcp;

/// One object fetched over one path, in virtual time, with the real protocol code.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Decides the bytes and every random process.
    pub seed: u64,
    /// Bytes of the object.
    pub size: u64,
    /// The link towards the client.
    pub down: LinkConfig,
    /// The link towards the server.
    pub up: LinkConfig,
    /// How both sides behave.
    pub config: DfcpConfig,
    /// Whether every packet passes through the wire format and back.
    pub wire: bool,
}

/// What came of a transfer.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the first SYN to the last byte compared; `None` if it did not end.
    pub duration: Option<Duration>,
    /// Bytes that were not as they should be.
    pub wrong_bytes: u64,
    /// When each block was complete at the client.
    pub block_times: Vec<Time>,
    /// The server's counters.
    pub server: DfcpStats,
    /// The client's counters.
    pub client: DfcpStats,
    /// The link towards the client.
    pub down: LinkStats,
    /// The link towards the server.
    pub up: LinkStats,
    /// How the client's connection ended.
    pub closed: Option<CloseReason>,
    /// Events that the world processed.
    pub events: u64,
}

impl Transfer {
    /// A transfer over a clean path without limits.
    pub fn new(seed: u64, size: u64) -> Self {
        Self {
            seed,
            size,
            down: LinkConfig::default(),
            up: LinkConfig::default(),
            config: DfcpConfig::default(),
            wire: false,
        }
    }

    /// The least time that the transfer could take: two round trips, and the object at the link's
    /// rate in packets of 1500 bytes of which all but the IP and UDP headers is payload.
    pub fn bound(&self, rate: Rate, rtt: Duration) -> Duration {
        let wire_bytes = self.size.saturating_mul(1500) / (1500 - 28);
        rtt * 2 + rate.time_for(wire_bytes)
    }

    /// Runs it.
    pub fn run(&self) -> Outcome {
        let mut world = World::new();
        let (client_id, server_id, flow) = (Address(1), Address(2), FlowId(0));
        let object = PatternObject { seed: self.seed };
        let host = |local: Address, peer, role| {
            let identity = EndpointIdentity { number: local.0, local, peer, flow, class: 0 };
            DfcpHost::new(identity, self.config.clone(), role, object, self.wire, Time::ZERO, [])
        };
        let fetch = Role::Fetch(Fetch { size: self.size, ..Fetch::default() });
        let client = world.add(Element::Host(Box::new(host(client_id, server_id, fetch))));
        let serve = Role::Serve(Serve::new(self.config.params.codes().next(), self.size));
        let server = world.add(Element::Host(Box::new(host(server_id, client_id, serve))));
        let link = |name: &str, config: &LinkConfig| drops::link(name, self.seed, config.clone());
        let down = world.add(Element::Link(Box::new(link("down", &self.down))));
        let up = world.add(Element::Link(Box::new(link("up", &self.up))));
        world.wire(client, up, 0);
        world.wire(up, server, 0);
        world.wire(server, down, 0);
        world.wire(down, client, 0);
        world.start();
        world.run_until(Time::ZERO + PATIENCE, |world| dfcp(world, client).is_finished());
        let Role::Fetch(fetch) = dfcp(&world, client).role() else {
            unreachable!("the client fetches")
        };
        Outcome {
            duration: fetch.completed_at.map(|at| at.since(Time::ZERO)),
            wrong_bytes: fetch.wrong_bytes,
            block_times: fetch.block_times.clone(),
            closed: fetch.closed.clone(),
            server: dfcp(&world, server).stats(),
            client: dfcp(&world, client).stats(),
            down: world.link(down).stats(),
            up: world.link(up).stats(),
            events: world.processed(),
        }
    }

    /// The same transfer with symbols that are only counted.
    pub fn counting(mut self) -> Self {
        self.config.params = self.config.params.with_code(Code::Counting);
        self
    }
}

/// How long a transfer may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(3600);
