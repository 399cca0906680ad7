//! From `[topology]`, `[[link]]`, `[[host]]` and `[[group]]` to a network.

use std::collections::BTreeMap;

use fontis_base::{Duration, Probability, Rate, Size};
use fontis_net::{
    DelayChange, DelaySchedule, DeliveryTrace, LinkConfig, Loss, QueueKind, QueueOptions,
    RateChange, Schedule, SpecError,
};

use crate::experiment::spec::{GroupSpec, InterfaceIndex, LinkSpec, MachineSpec, Subflow};
use crate::settings::error::{ScenarioError, bad, invalid};
use crate::settings::form::BufferSize;
use crate::settings::reader::Reader;
use crate::world::graph::Graph;

/// The routers and the machines, and the links between them.
pub(super) struct Topology {
    pub(super) links: Vec<LinkSpec>,
    pub(super) machines: Vec<MachineSpec>,
    pub(super) groups: Vec<GroupSpec>,
    /// The names of routers and machines, of a network of links.
    pub(super) names: Vec<String>,
    /// How many hosts each `[[host]]` stands for, by its name, of those that stand for several.
    pub(super) families: BTreeMap<String, u64>,
    kind: Kind,
    /// The bottleneck's rate; of several, the first one's; of links of one's own, the highest.
    pub(super) rate: Rate,
    /// The rate of senders' links.
    pub(super) access: Rate,
    /// The random delay of senders' packets.
    pub(super) jitter: Duration,
    /// The round-trip times of the segments.
    rtts: Vec<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dumbbell,
    ParkingLot,
    Links,
}

/// The most subflows: what kernels allow beside the first, and that one.
const MOST_SUBFLOWS: u64 = 9;

/// The way of a flow.
pub(super) struct Way {
    pub(super) from: Place,
    pub(super) to: Place,
    /// The group that it leads to, if it leads to one.
    pub(super) group: Option<usize>,
    /// The round-trip time that the flow has if it asks for no other.
    pub(super) rtt: Duration,
    /// The part of it that the links between the ends take.
    pub(super) inner: Duration,
}

/// One end of a way.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The router or the machine.
    pub(super) vertex: usize,
    /// The interface, of a machine.
    pub(super) interface: Option<InterfaceIndex>,
}

impl Place {
    const fn router(vertex: usize) -> Self {
        Self { vertex, interface: None }
    }
}

impl Topology {
    pub(super) fn read(read: Reader<'_>) -> Result<Self, ScenarioError> {
        let kind = match &*read.text("topology.kind") {
            _ if !read.settings.links.is_empty() => Kind::Links,
            "parking-lot" => Kind::ParkingLot,
            _ => Kind::Dumbbell,
        };
        let mut topology = Self {
            links: Vec::new(),
            machines: Vec::new(),
            groups: Vec::new(),
            names: Vec::new(),
            families: BTreeMap::new(),
            kind,
            rate: Rate::MAX,
            access: Rate::MAX,
            jitter: read.duration("scenario.host_jitter"),
            rtts: Vec::new(),
        };
        match kind {
            Kind::Links => {
                topology.read_families(read)?;
                topology.read_links(read)?;
                topology.read_machines(read)?;
                topology.read_groups(read)?;
            }
            Kind::Dumbbell | Kind::ParkingLot => {
                let settings = read.settings;
                if !settings.hosts.is_empty() || !settings.groups.is_empty() {
                    return invalid(
                        "[[host]] and [[group]] need routers with names: describe the network by \
                         [[link]]"
                            .to_owned(),
                    );
                }
                topology.read_row(read)?;
            }
        }
        topology.access = read
            .get("topology.access")
            .unwrap_or_else(|| topology.rate.mul_ratio(read.count("topology.access_ratio"), 1));
        Ok(topology)
    }

    /// The number of routers and machines.
    pub(super) const fn vertices(&self) -> usize {
        match self.kind {
            Kind::Dumbbell => 2,
            Kind::ParkingLot => 3,
            Kind::Links => self.names.len(),
        }
    }

    /// One or two bottlenecks in a row.
    fn read_row(&mut self, read: Reader<'_>) -> Result<(), ScenarioError> {
        let parking_lot = self.kind == Kind::ParkingLot;
        let rtt = read.duration("topology.rtt");
        let buffer = read.buffer("topology.buffer").unwrap_or(BufferSize::Bdp(1.0));
        // A parking lot's hosts have no delay of their own, so each bottleneck has that of its
        // segment; a dumbbell's flows may differ, so the delay is theirs.
        let delay = |rtt: Duration| if parking_lot { rtt / 2 } else { Duration::ZERO };
        let mut first = line(&read, "topology", delay(rtt), rtt, buffer)?;
        first.loss = read.get("topology.loss").unwrap_or(Loss::None);
        self.rate = first.rate;
        let mut bottlenecks = vec![(first, rtt)];
        if parking_lot {
            let rtt2 = read.get("topology.rtt2").unwrap_or(rtt);
            let rate = read.get("topology.rate2").unwrap_or(self.rate);
            let buffer = read.buffer("topology.buffer2").unwrap_or(buffer);
            let second = LinkConfig {
                rate: positive(rate, "topology.rate2")?,
                delay: delay(rtt2),
                queue: read.get("topology.queue").unwrap_or_default(),
                queue_options: queue_options(&read, "topology", rate, rtt2)?,
                buffer: buffer.limit(rate, rtt2),
                loss: read.get("topology.loss2").unwrap_or(Loss::None),
                loss_position: read.get("topology.loss_at").unwrap_or_default(),
                ..LinkConfig::default()
            };
            bottlenecks.push((second, rtt2));
        }
        let back: Option<Rate> = read.get("topology.rate_back");
        if parking_lot && back.is_some() {
            return invalid("topology.rate_back is a dumbbell's".to_owned());
        }
        let back = back.map(|rate| positive(rate, "topology.rate_back")).transpose()?;
        let back = bottlenecks.iter().enumerate().map(|(index, (config, rtt))| LinkSpec {
            name: format!("back{}", index + 1),
            from: index + 1,
            to: index,
            config: LinkConfig {
                rate: back.unwrap_or(config.rate),
                delay: delay(*rtt),
                loss: read.get("topology.loss_back").unwrap_or(Loss::None),
                loss_position: config.loss_position,
                ..LinkConfig::default()
            },
            bottleneck: false,
        });
        let forth = bottlenecks.iter().enumerate().map(|(index, (config, _))| LinkSpec {
            name: if parking_lot { format!("B{}", index + 1) } else { "bottleneck".to_owned() },
            from: index,
            to: index + 1,
            config: config.clone(),
            bottleneck: true,
        });
        self.links = forth.chain(back).collect();
        self.rtts = bottlenecks.iter().map(|(_, rtt)| *rtt).collect();
        Ok(())
    }

    /// Links of one's own.
    fn read_links(&mut self, read: Reader<'_>) -> Result<(), ScenarioError> {
        const SHARED: [&str; 7] =
            ["rate", "rtt", "buffer", "queue", "access", "access_ratio", "overload"];
        for key in read.settings.keys.keys() {
            if key.strip_prefix("topology.").is_some_and(|name| !SHARED.contains(&name)) {
                return invalid(format!(
                    "{key} says nothing where there are [[link]]; what is set of a link is link.KEY, \
                     as in link.delay"
                ));
            }
        }
        let rtt = read.duration("topology.rtt");
        for (number, entry) in (1..).zip(&read.settings.links) {
            let read = read.of("link", entry);
            let ends = [read.text("link.from"), read.text("link.to")];
            if let Some(key) = ["from", "to"].into_iter().zip(&ends).find(|(_, end)| end.is_empty())
            {
                return invalid(format!(
                    "link {number} needs {:?}, the name of a router or a host",
                    key.0
                ));
            }
            if ends[0] == ends[1] {
                return invalid(format!("link {number} leads from {:?} to itself", ends[0]));
            }
            let name = read.text("link.name");
            let buffer = read
                .buffer("link.buffer")
                .or_else(|| read.buffer("topology.buffer"))
                .unwrap_or(BufferSize::Bdp(1.0));
            let mut config = line(&read, "link", read.duration("link.delay"), rtt, buffer)?;
            config.loss = read.get("link.loss").unwrap_or(Loss::None);
            config.jitter = read.duration("link.jitter");
            let is_faster = self.rate == Rate::MAX || config.rate > self.rate;
            if config.rate < Rate::MAX && is_faster {
                self.rate = config.rate;
            }
            let (record, one_way) = (read.flag("link.record"), read.flag("link.one_way"));
            let names = (0..self.count(&ends)?).map(|at| self.of_family(&ends, &name, at));
            for (name, ends) in names.collect::<Vec<_>>() {
                self.add_link(name, ends, &config, record, one_way)?;
            }
        }
        Ok(())
    }

    /// Adds a link, and the one like it that leads back.
    fn add_link(
        &mut self,
        name: String,
        ends: [String; 2],
        config: &LinkConfig,
        bottleneck: bool,
        one_way: bool,
    ) -> Result<(), ScenarioError> {
        if self.links.iter().any(|link| link.name == name) {
            return invalid(format!("two links are called {name:?}: give them names"));
        }
        let [from, to] = ends.map(|end| self.vertex(end));
        let back = (!one_way).then(|| LinkSpec {
            name: format!("{name}.back"),
            from: to,
            to: from,
            config: config.clone(),
            bottleneck,
        });
        self.links.push(LinkSpec { name, from, to, config: config.clone(), bottleneck });
        self.links.extend(back);
        Ok(())
    }

    /// The number of a router or a machine; a name that is new gets the next.
    fn vertex(&mut self, name: String) -> usize {
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    /// The way of a flow.
    pub(super) fn way(&self, read: &Reader<'_>, flow: &str) -> Result<Way, ScenarioError> {
        if self.kind == Kind::Links {
            return self.way_over_links(read, flow);
        }
        for key in ["from", "to"] {
            if !read.text(&format!("flow.{key}")).is_empty() {
                let message = "needs routers with names: describe the network by [[link]]";
                return invalid(format!("{flow}: flow.{key} {message}"));
            }
        }
        let parking_lot = self.kind == Kind::ParkingLot;
        let (from, to) = match (parking_lot, &*read.text("flow.path")) {
            (true, "first") => (0, 1),
            (true, "second") => (1, 2),
            (true, _) => (0, 2),
            (false, _) => (0, 1),
        };
        let rtt = self.rtts[from..to].iter().fold(Duration::ZERO, |sum, rtt| sum + *rtt);
        // What the bottlenecks do not delay, the flow's own links do, the same both ways.
        let inner = if parking_lot { rtt } else { Duration::ZERO };
        let [from, to] = [from, to].map(Place::router);
        Ok(Way { from, to, group: None, rtt, inner })
    }

    fn way_over_links(&self, read: &Reader<'_>, flow: &str) -> Result<Way, ScenarioError> {
        let [from, to] = ["from", "to"].map(|key| read.text(&format!("flow.{key}")));
        if let Some(group) = self.groups.iter().position(|group| group.name == to) {
            let from = self.place(flow, "flow.from", &from, None)?;
            let (to, zero) = (Place::router(from.vertex), Duration::ZERO);
            return Ok(Way { from, to, group: Some(group), rtt: zero, inner: zero });
        }
        // Each end's interface is the one that leads to the other end, unless the flow names one.
        let ends =
            [self.vertex_of(flow, "flow.from", &from)?, self.vertex_of(flow, "flow.to", &to)?];
        let from = self.place(flow, "flow.from", &from, Some(ends[1]))?;
        let to = self.place(flow, "flow.to", &to, Some(ends[0]))?;
        if from.vertex == to.vertex {
            let kind = if from.interface.is_some() { "host" } else { "router" };
            return invalid(format!("{flow}: flow.from and flow.to are the same {kind}"));
        }
        let mut inner = Duration::ZERO;
        for (from, to) in [(from, to), (to, from)] {
            let links = self.links_between(flow, from, to)?;
            inner = links.iter().fold(inner, |sum, link| sum + self.links[*link].config.delay);
        }
        Ok(Way { from, to, group: None, rtt: inner, inner })
    }

    /// Whether no link of a flow's way is slower than this from the beginning.
    pub(super) fn is_nowhere_slower(&self, flow: &str, way: &Way, rate: Rate) -> bool {
        // A flow to a group has no single way.
        if way.group.is_some() {
            return false;
        }
        let links = self.links_between(flow, way.from, way.to).unwrap_or_default();
        links.iter().map(|link| &self.links[*link].config).all(|link| {
            let has_constant_rate = link.trace.is_none();
            has_constant_rate && link.rate >= rate
        })
    }

    /// The links from one end to another, with those of their interfaces.
    fn links_between(
        &self,
        flow: &str,
        from: Place,
        to: Place,
    ) -> Result<Vec<usize>, ScenarioError> {
        let out = from.interface.map(|at| self.interface(at).out);
        let back = to.interface.map(|at| self.interface(at).back);
        let first = out.map_or(from.vertex, |link| self.links[link].to);
        let last = back.map_or(to.vertex, |link| self.links[link].from);
        let mut links: Vec<usize> = out.into_iter().collect();
        links.extend(self.path(flow, &[first, last])?);
        links.extend(back);
        Ok(links)
    }

    /// The router that a key names.
    fn router_of(&self, flow: &str, key: &str, name: &str) -> Result<usize, ScenarioError> {
        let vertex = self.vertex_of(flow, key, name)?;
        if self.machine_at(vertex).is_some() {
            return invalid(format!("{flow}: {key}: {name:?} is a host, not a router"));
        }
        Ok(vertex)
    }

    /// The links from router to router.
    fn path(&self, flow: &str, routers: &[usize]) -> Result<Vec<usize>, ScenarioError> {
        let mut path = Vec::new();
        let graph = self.graph();
        for leg in routers.windows(2) {
            let Some(links) = graph.route(leg[0], leg[1]) else {
                let name = |router: usize| self.names.get(router).map_or("", String::as_str);
                let [from, to] = [leg[0], leg[1]].map(name);
                return invalid(format!("{flow}: no links lead from {from:?} to {to:?}"));
            };
            path.extend(links);
        }
        Ok(path)
    }

    /// The vertices and links by which ways are found.
    pub(super) fn graph(&self) -> Graph {
        let forwards = (0..self.vertices()).map(|vertex| self.machine_at(vertex).is_none());
        let links = self.links.iter().map(|link| (link.from, link.to)).collect();
        Graph { forwards: forwards.collect(), links }
    }

    /// What the subflows of Multipath TCP cross; none for other flows.
    pub(super) fn subflows(
        &self,
        read: &Reader<'_>,
        flow: &str,
        way: &Way,
    ) -> Result<Vec<Subflow>, ScenarioError> {
        let (count, via) = (read.count("flow.subflows"), read.text("flow.via"));
        let via: Vec<&str> = if via.is_empty() { Vec::new() } else { via.split(',').collect() };
        if count > MOST_SUBFLOWS {
            return invalid(format!("{flow}: at most {MOST_SUBFLOWS} subflows are possible"));
        }
        if !via.is_empty() && self.kind != Kind::Links {
            return invalid(format!(
                "{flow}: flow.via needs routers with names: describe the network by [[link]]"
            ));
        }
        if via.len() as u64 > count {
            return invalid(format!(
                "{flow}: flow.via names {} routers for {count} subflows: set flow.subflows",
                via.len()
            ));
        }
        let subflow = |index: usize| {
            let mut routers = vec![way.from.vertex, way.to.vertex];
            if let Some(name) = via.get(index).map(|name| name.trim()).filter(|n| !n.is_empty()) {
                routers.insert(1, self.router_of(flow, "flow.via", name)?);
            }
            let forth = self.path(flow, &routers)?;
            routers.reverse();
            Ok(Subflow { forth, back: self.path(flow, &routers)? })
        };
        (0..count as usize).map(subflow).collect()
    }
}

/// What tables `topology` and `link` say alike of a line and its queue.
fn line(
    read: &Reader<'_>,
    table: &str,
    delay: Duration,
    rtt: Duration,
    buffer: BufferSize,
) -> Result<LinkConfig, ScenarioError> {
    let key = |name: &str| format!("{table}.{name}");
    let trace = read.trace(&key("rate_trace"));
    let rate = read.get(&key("rate")).or_else(|| read.get("topology.rate"));
    let rate = positive(rate.unwrap_or(Rate::MAX), &key("rate"))?;
    let trace = frames(read, &key("frame"), rate, trace)?;
    let rate = trace.as_ref().map_or(rate, |trace| trace.mean_rate());
    let rate_changes: Vec<RateChange> = read.changes(&key("rate_changes"))?;
    if trace.is_some() && !rate_changes.is_empty() {
        let message = "a link has either a trace, or bursts, or changes of its rate".to_owned();
        return Err(bad(&key("rate_trace"), message));
    }
    let queue = read.get(&key("queue")).or_else(|| read.get("topology.queue"));
    let queue: QueueKind = queue.unwrap_or_default();
    if queue == QueueKind::Cell
        && (trace.is_some() || !rate_changes.is_empty() || rate == Rate::MAX)
    {
        return invalid(format!(
            "a cell needs {0} and takes no changes or trace of it: users have the rates of their \
             radios (flow.radio, queue.fading)",
            key("rate")
        ));
    }
    let mut delay_changes: Vec<DelayChange> = read.changes(&key("delay_changes"))?;
    if table == "topology" {
        // There they come on top of the round-trip time.
        delay_changes.iter_mut().for_each(|change| change.delay += delay);
    }
    let outage = read.text(&key("outage"));
    Ok(LinkConfig {
        rate,
        rate_changes: Schedule::new(rate_changes),
        trace,
        delay,
        delay_changes: DelaySchedule::new(delay_changes),
        queue,
        queue_options: queue_options(read, table, rate, rtt)?,
        buffer: buffer.limit(rate, rtt),
        loss: Loss::None,
        loss_position: read.get(&key("loss_at")).unwrap_or_default(),
        outage: outage.parse().ok(),
        duplicate: read.get(&key("duplicate")).unwrap_or(Probability::ZERO),
        corrupt: read.get(&key("corrupt")).unwrap_or(Probability::ZERO),
        jitter: Duration::ZERO,
        reorder: read.get(&key("reorder")).unwrap_or_default(),
        policer: read.get(&key("policer")),
    })
}

/// The trace of a line that sends in bursts if `key` says so, else the one that the line has.
fn frames(
    read: &Reader<'_>,
    key: &str,
    rate: Rate,
    trace: Option<DeliveryTrace>,
) -> Result<Option<DeliveryTrace>, ScenarioError> {
    let frame = read.duration(key);
    if frame == Duration::ZERO {
        return Ok(trace);
    }
    if trace.is_some() {
        return Err(bad(key, "a link has either a trace or bursts".to_owned()));
    }
    let frames = DeliveryTrace::in_frames(rate, frame);
    frames.map(Some).map_err(|reason| bad(key, reason.to_owned()))
}

fn positive(rate: Rate, key: &str) -> Result<Rate, ScenarioError> {
    if rate == Rate::ZERO {
        return invalid(format!("{key} must be more than zero"));
    }
    Ok(rate)
}

fn queue_options(
    read: &Reader<'_>,
    table: &str,
    rate: Rate,
    rtt: Duration,
) -> Result<QueueOptions, ScenarioError> {
    let own = format!("{table}.quanta");
    let key = if table == "link" && read.sets(&own) { &*own } else { "queue.quanta" };
    let quanta = read.sets(key).then(|| read.text(key).parse()).transpose();
    let quanta = quanta.map_err(|error: SpecError| bad(key, error.to_string()))?;
    let own = |name: &str| {
        let own = format!("{table}.{name}");
        if table == "link" && read.sets(&own) { own } else { format!("queue.{name}") }
    };
    let key = own("class_weights");
    let class_weights = read.sets(&key).then(|| read.text(&key).parse()).transpose();
    let class_weights = class_weights.map_err(|error: SpecError| bad(&key, error.to_string()))?;
    if quanta.is_some() && class_weights.is_some() {
        return Err(bad(&key, "a queue has either weights or quanta".to_owned()));
    }
    let key = own("alpha");
    let alpha: f64 = read.get(&key).unwrap_or(1.0);
    if alpha.is_nan() || alpha <= 0.0 {
        return Err(bad(&key, "it must be above zero".to_owned()));
    }
    let limit = |text: &str| read.buffer(text).map(|buffer| buffer.limit(rate, rtt));
    Ok(QueueOptions {
        quanta,
        class_weights,
        alpha,
        short: Size::from_bytes(read.size("queue.short")),
        radio: Rate::MAX,
        slot: read.duration("queue.slot"),
        average: read.duration("queue.average"),
        fading: read.flag("queue.fading"),
        coherence: read.duration("queue.coherence"),
        by_class: read.text("queue.turns") == "class",
        flows: [].into(),
        quantum: u32::try_from(read.count("queue.quantum")).unwrap_or(u32::MAX),
        per_flow: read.flag("queue.per_flow"),
        buckets: u32::try_from(read.count("queue.buckets")).unwrap_or(u32::MAX),
        mark_above: limit("queue.mark_above").unwrap_or(QueueOptions::default().mark_above),
        min_threshold: limit("queue.min_threshold"),
        max_threshold: limit("queue.max_threshold"),
        max_probability: read.get("queue.max_probability").unwrap_or(Probability::ZERO),
        weight: read.get("queue.weight").unwrap_or(0.0),
        target: read.duration("queue.target"),
        interval: read.duration("queue.interval"),
        share: read.get("queue.share").unwrap_or(Probability::ZERO),
    })
}
