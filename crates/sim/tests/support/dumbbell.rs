use fontis_base::{Address, Duration, FlowId, Time};
use fontis_codes::Code;
use fontis_net::LinkConfig;
use fontis_proto::dfcp::{DfcpConfig, Params};

use fontis_sim::World;
use fontis_sim::host::dfcp::{DfcpHost, Fetch, Role, Serve};
use fontis_sim::host::identity::EndpointIdentity;
use fontis_sim::host::object::PatternObject;
use fontis_sim::world::drops::link;
use fontis_sim::world::element::Element;
use fontis_sim::world::switch::NodeIndex;

use super::hosts::dfcp;
use super::timeline::{Moment, Timeline};

/// Objects fetched by DFCP through one bottleneck: as many clients as servers, one link for all of
/// them each way.
///
/// By default symbols are only counted, which makes long runs cheap.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// Decides every random process.
    pub seed: u64,
    /// What is fetched; each by a client of its own from a server of its own.
    pub flows: Vec<Flow>,
    /// The link towards the clients.
    pub down: LinkConfig,
    /// The link towards the servers.
    pub up: LinkConfig,
    /// How all of them behave.
    pub config: DfcpConfig,
    /// When the experiment ends, if not all flows have ended before.
    pub until: Time,
    /// How often the counters are read.
    pub every: Duration,
}

/// One of the flows that share a bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// When its client begins.
    pub start: Time,
    /// Bytes that it fetches.
    pub size: u64,
}

/// What came of an experiment with a shared bottleneck.
#[derive(Clone, Debug)]
pub struct Shared {
    /// When each flow had all that it wanted; `None` if it had not.
    pub completed: Vec<Option<Time>>,
    /// What was counted in the course of it, the end included.
    pub timeline: Timeline,
}

impl Dumbbell {
    /// Flows over a path without limits, for a minute.
    pub fn new(seed: u64, flows: Vec<Flow>) -> Self {
        Self {
            seed,
            flows,
            down: LinkConfig::default(),
            up: LinkConfig::default(),
            config: DfcpConfig {
                params: Params::default().with_code(Code::Counting),
                ..DfcpConfig::default()
            },
            until: Time::ZERO + Duration::from_secs(60),
            every: Duration::from_millis(10),
        }
    }

    /// Runs it.
    pub fn run(&self) -> Shared {
        let mut world = World::new();
        let mut pairs = Vec::new();
        let to_clients = world.add(Element::Switch(Box::default()));
        let to_servers = world.add(Element::Switch(Box::default()));
        for (number, flow) in (0..).zip(&self.flows) {
            let [client, server] = [Address(2 * number + 1), Address(2 * number + 2)];
            let object = PatternObject { seed: self.seed + u64::from(number) };
            let host = |local: Address, peer, role| {
                let config = self.config.clone();
                let flow_id = FlowId(number);
                let identity =
                    EndpointIdentity { number: local.0, local, peer, flow: flow_id, class: 0 };
                let host = DfcpHost::new(identity, config, role, object, false, flow.start, []);
                Element::Host(Box::new(host))
            };
            let fetch = Role::Fetch(Fetch { size: flow.size, ..Fetch::default() });
            let serve = Role::Serve(Serve::new(self.config.params.codes().next(), flow.size));
            let ends =
                (world.add(host(client, server, fetch)), world.add(host(server, client, serve)));
            world.switch_mut(to_clients).route(client, ends.0);
            world.switch_mut(to_servers).route(server, ends.1);
            pairs.push(ends);
        }
        let [down, up] = [("down", &self.down), ("up", &self.up)]
            .map(|(name, config)| Element::Link(Box::new(link(name, self.seed, config.clone()))))
            .map(|link| world.add(link));
        world.wire(down, to_clients, 0);
        world.wire(up, to_servers, 0);
        for (client, server) in &pairs {
            world.wire(*client, up, 0);
            world.wire(*server, down, 0);
        }
        world.start();
        let mut timeline = Timeline::default();
        let mut at = Time::ZERO;
        loop {
            let finished = world.run_until(at, |world| {
                pairs.iter().all(|(client, _)| dfcp(world, *client).is_finished())
            });
            timeline.moments.push(Self::look(&world, at, &pairs, down));
            if finished || at >= self.until {
                break;
            }
            at = (at + self.every).min(self.until);
        }
        let completed = pairs.iter().map(|(client, _)| match dfcp(&world, *client).role() {
            Role::Fetch(fetch) => fetch.completed_at,
            Role::Serve(_) | Role::Carry(_) => unreachable!("the client fetches"),
        });
        Shared { completed: completed.collect(), timeline }
    }

    fn look(world: &World, at: Time, pairs: &[(NodeIndex, NodeIndex)], down: NodeIndex) -> Moment {
        Moment {
            at,
            clients: pairs.iter().map(|(client, _)| dfcp(world, *client).stats()).collect(),
            servers: pairs.iter().map(|(_, server)| dfcp(world, *server).stats()).collect(),
            down: world.link(down).stats(),
        }
    }
}
