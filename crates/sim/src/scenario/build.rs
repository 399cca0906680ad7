use std::collections::BTreeMap;

use fontis_base::{Duration, Probability, Rate, Size, Stream, Time};
use fontis_codes::Code;
use fontis_net::{LinkConfig, Loss, QueueKind, QueueOptions, RateChange, Schedule};
use fontis_proto::{dfcp, published, rate, tcp};

use super::value::BufferSize;
use super::{ScenarioError, Setting, Settings, find};
use crate::source::exponential;
use crate::{
    Application, Control, ControllerConfig, ErrorModel, Experiment, FlowSpec, LinkSpec, Pattern,
    Requests, Transport,
};

/// A run's settings, typed. Every value was checked when it was set, so reading one cannot fail.
struct Reader<'a> {
    settings: &'a Settings,
    flow: Option<&'a BTreeMap<String, Setting>>,
}

impl Reader<'_> {
    fn setting(&self, path: &str) -> Option<Setting> {
        let own = path.strip_prefix("flow.").and_then(|key| self.flow?.get(key).cloned());
        own.or_else(|| self.settings.keys.get(path).cloned()).or_else(|| {
            let default = find(path)?.default;
            (!default.is_empty()).then(|| Setting::One(default.to_owned()))
        })
    }

    fn get<T: core::str::FromStr>(&self, path: &str) -> Option<T> {
        self.setting(path)?.one().parse().ok()
    }

    fn list(&self, path: &str) -> Vec<String> {
        self.setting(path).map_or(Vec::new(), |setting| setting.list().to_vec())
    }

    fn duration(&self, path: &str) -> Duration {
        self.get(path).unwrap_or(Duration::ZERO)
    }

    fn size(&self, path: &str) -> u64 {
        self.get::<Size>(path).map_or(0, Size::as_bytes)
    }

    fn count(&self, path: &str) -> u64 {
        self.get(path).unwrap_or(0)
    }

    fn flag(&self, path: &str) -> bool {
        self.get(path).unwrap_or(false)
    }

    fn text(&self, path: &str) -> String {
        self.setting(path).map_or(String::new(), |setting| setting.text())
    }

    fn buffer(&self, path: &str) -> Option<BufferSize> {
        BufferSize::parse(self.setting(path)?.one()).ok()
    }
}

/// The most flows in a run.
const MOST_FLOWS: u64 = 1_000_000;

/// The experiment that the settings describe.
pub(super) fn experiment(settings: &Settings, seed: u64) -> Result<Experiment, ScenarioError> {
    let read = Reader { settings, flow: None };
    let duration = read.duration("scenario.duration");
    let warmup = read.duration("scenario.warmup");
    let sample = read.duration("scenario.sample");
    if duration == Duration::ZERO {
        return senseless("scenario.duration must be longer than zero".to_owned());
    }
    if warmup >= duration {
        return senseless(format!(
            "scenario.warmup ({warmup}) leaves nothing of scenario.duration ({duration}) to measure"
        ));
    }
    if sample == Duration::ZERO || duration.as_nanos() / sample.as_nanos() > 10_000_000 {
        return senseless(format!(
            "scenario.sample ({sample}) asks for more than ten million samples in {duration}"
        ));
    }
    let rate: Rate = read.get("topology.rate").unwrap_or(Rate::MAX);
    if rate == Rate::ZERO {
        return senseless("topology.rate must be more than zero".to_owned());
    }
    let topology = Topology::read(&read, rate)?;
    let mut flows = Vec::new();
    for (index, flow) in settings.flows.iter().enumerate() {
        let read = Reader { settings, flow: Some(flow) };
        add_flows(&read, &topology, index, seed, duration, &mut flows)?;
    }
    Ok(Experiment {
        seed,
        routers: if topology.parking_lot { 3 } else { 2 },
        links: topology.links(),
        flows,
        duration,
        warmup,
        sample,
        controller: controller(&read),
        measure: read.get::<Size>("scenario.measure").map(Size::as_bytes),
        until_done: read.flag("scenario.until_done"),
        wire: false,
    })
}

fn controller(read: &Reader<'_>) -> ControllerConfig {
    // An oracle is a controller that is quick and never wrong.
    let is_oracle = read.text("published.rate") == "oracle";
    let error = read.get("sdn.error").map_or(0.0, Probability::get);
    ControllerConfig {
        response: if is_oracle { Duration::ZERO } else { read.duration("sdn.response") },
        poll: read.duration("sdn.poll"),
        error: if is_oracle { 0.0 } else { error },
        model: match &*read.text("sdn.error_model") {
            "uniform" => ErrorModel::Uniform,
            _ => ErrorModel::Over,
        },
    }
}

fn senseless<T>(message: String) -> Result<T, ScenarioError> {
    Err(ScenarioError::Senseless { run: String::new(), message })
}

/// One or two bottlenecks in a row.
struct Topology {
    rate: Rate,
    parking_lot: bool,
    bottlenecks: Vec<LinkConfig>,
    back: Vec<LinkConfig>,
    rtts: Vec<Duration>,
    access: Rate,
    jitter: Duration,
}

impl Topology {
    fn read(read: &Reader<'_>, rate: Rate) -> Result<Self, ScenarioError> {
        let parking_lot = read.text("topology.kind") == "parking-lot";
        let rtt = read.duration("topology.rtt");
        let rate2 = read.get("topology.rate2").unwrap_or(rate);
        let rtt2 = read.get("topology.rtt2").unwrap_or(rtt);
        if rate2 == Rate::ZERO {
            return senseless("topology.rate2 must be more than zero".to_owned());
        }
        let queue: QueueKind = read.get("topology.queue").unwrap_or_default();
        let buffer = read.buffer("topology.buffer").unwrap_or(BufferSize::Bdp(1.0));
        let buffer2 = read.buffer("topology.buffer2").unwrap_or(buffer);
        // A parking lot's hosts have no delay of their own, so each bottleneck has that of its segment; a dumbbell's
        // flows may differ, so the delay is theirs.
        let delay = |rtt: Duration| if parking_lot { rtt / 2 } else { Duration::ZERO };
        let changes = read.list("topology.rate_changes");
        let changes: Result<Vec<RateChange>, _> =
            changes.iter().map(|text| text.replace(' ', "").parse()).collect();
        let changes = changes.map_err(|error| ScenarioError::BadValue {
            place: String::new(),
            key: "topology.rate_changes".to_owned(),
            message: error.to_string(),
        })?;
        let bottleneck = |rate: Rate, rtt: Duration, buffer: BufferSize, loss: &str, changes| {
            let limit = |text: &str| read.buffer(text).map(|buffer| buffer.limit(rate, rtt));
            let options = QueueOptions {
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
            };
            LinkConfig {
                rate,
                rate_changes: Schedule::new(changes),
                delay: delay(rtt),
                queue,
                queue_options: options,
                buffer: buffer.limit(rate, rtt),
                loss: read.get(loss).unwrap_or(Loss::None),
                loss_position: read.get("topology.loss_at").unwrap_or_default(),
                ..LinkConfig::default()
            }
        };
        let back = |rate, rtt| LinkConfig {
            rate,
            delay: delay(rtt),
            loss: read.get("topology.loss_back").unwrap_or(Loss::None),
            loss_position: read.get("topology.loss_at").unwrap_or_default(),
            ..LinkConfig::default()
        };
        let mut topology = Self {
            rate,
            parking_lot,
            bottlenecks: vec![bottleneck(rate, rtt, buffer, "topology.loss", changes)],
            back: vec![back(rate, rtt)],
            rtts: vec![rtt],
            access: read
                .get("topology.access")
                .unwrap_or_else(|| rate.mul_ratio(read.count("topology.access_ratio"), 1)),
            jitter: read.duration("scenario.host_jitter"),
        };
        if parking_lot {
            topology.bottlenecks.push(bottleneck(rate2, rtt2, buffer2, "topology.loss2", vec![]));
            topology.back.push(back(rate2, rtt2));
            topology.rtts.push(rtt2);
        }
        Ok(topology)
    }

    fn links(&self) -> Vec<LinkSpec> {
        let forth = self.bottlenecks.iter().enumerate().map(|(index, config)| LinkSpec {
            name: if self.parking_lot {
                format!("B{}", index + 1)
            } else {
                "bottleneck".to_owned()
            },
            from: index,
            to: index + 1,
            config: config.clone(),
            bottleneck: true,
        });
        let back = self.back.iter().enumerate().map(|(index, config)| LinkSpec {
            name: format!("back{}", index + 1),
            from: index + 1,
            to: index,
            config: config.clone(),
            bottleneck: false,
        });
        forth.chain(back).collect()
    }
}

fn add_flows(
    read: &Reader<'_>,
    topology: &Topology,
    kind: usize,
    seed: u64,
    duration: Duration,
    flows: &mut Vec<FlowSpec>,
) -> Result<(), ScenarioError> {
    let count = read.count("flow.count");
    if count + flows.len() as u64 > MOST_FLOWS {
        return senseless(format!("there are more than {MOST_FLOWS} flows"));
    }
    let base = match read.text("flow.name") {
        name if name.is_empty() => format!("flow{}", kind + 1),
        name => name,
    };
    let app = read.text("flow.app");
    let mut starts = Stream::new(seed, &format!("{base}/start"));
    let jitter = read.duration("scenario.start_jitter");
    let start = Time::ZERO + read.duration("flow.start");
    // Each is a start and what is transported from then on.
    let mut plans: Vec<(Time, Application)> = Vec::new();
    match &*app {
        "short-flows" => {
            let (rate, mean) =
                (read.get("flow.rate").unwrap_or(Rate::ZERO), read.size("flow.size"));
            if rate == Rate::ZERO || rate == Rate::MAX || mean == 0 {
                return senseless("short-flows need flow.rate and flow.size above zero".to_owned());
            }
            let gap = rate.time_for(mean);
            let end = Time::ZERO + duration;
            let mut at = start;
            loop {
                at += exponential(&mut starts, gap);
                if at >= end {
                    break;
                }
                if plans.len() as u64 + flows.len() as u64 >= MOST_FLOWS {
                    return senseless(format!("there are more than {MOST_FLOWS} short flows"));
                }
                let size = (-libm::log(1.0 - starts.unit()) * mean as f64) as u64;
                plans.push((at, Application::Source(Pattern::Object { size: size.max(1) })));
            }
        }
        "list" => {
            for entry in read.list("flow.list") {
                let parsed = entry.split_once(':').and_then(|(at, size)| {
                    let at: Duration = at.trim().parse().ok()?;
                    Some((at, size.trim().parse::<Size>().ok()?))
                });
                let Some((at, size)) = parsed else {
                    return senseless(format!("flow.list: {entry:?} must be TIME:SIZE"));
                };
                let object = Pattern::Object { size: size.as_bytes() };
                plans.push((start + at, Application::Source(object)));
            }
        }
        _ => {
            let application = application(read, &app);
            for _ in 0..count {
                let offset = starts.below(jitter.as_nanos().saturating_add(1));
                plans.push((start + Duration::from_nanos(offset), application));
            }
        }
    }
    let alone = plans.len() == 1;
    for (index, (start, application)) in plans.into_iter().enumerate() {
        let name = if alone { base.clone() } else { format!("{base}.{}", index + 1) };
        flows.push(flow(read, topology, name, start, application)?);
    }
    Ok(())
}

/// How many flows a kind stands for.
fn count_of(flow: &BTreeMap<String, Setting>) -> u64 {
    flow.get("count").and_then(|count| count.one().parse().ok()).unwrap_or(1)
}

fn application(read: &Reader<'_>, app: &str) -> Application {
    let rate = read.get("flow.rate").unwrap_or(Rate::ZERO);
    let piece = read.size("flow.piece").clamp(1, 65_000) as u32;
    Application::Source(match app {
        "object" => Pattern::Object { size: read.size("flow.size") },
        "constant" => Pattern::ConstantRate { rate, piece },
        "poisson" => Pattern::Poisson { rate, piece },
        "on-off" => {
            let (on, off) = (read.duration("flow.on"), read.duration("flow.off"));
            Pattern::OnOff { rate, piece, on, off }
        }
        "requests" => {
            let count = read.count("flow.requests");
            return Application::Requests(Requests {
                request: read.size("flow.request").max(1),
                response: read.size("flow.size"),
                think: read.duration("flow.think"),
                count: (count > 0).then_some(count),
            });
        }
        _ => Pattern::Bulk,
    })
}

fn flow(
    read: &Reader<'_>,
    topology: &Topology,
    name: String,
    start: Time,
    application: Application,
) -> Result<FlowSpec, ScenarioError> {
    let overload = read.get::<f64>("topology.overload").filter(|overload| *overload > 0.0);
    let all: u64 = read.settings.flows.iter().map(count_of).sum();
    let shared = overload.map(|overload| topology.rate.scale(overload / all.max(1) as f64));
    let rate = read.get("flow.access").or(shared).unwrap_or(topology.access);
    if rate == Rate::ZERO {
        return senseless(format!("{name}: the access link's rate must be more than zero"));
    }
    let transport = transport(read, &read.text("flow.protocol"), rate)?;
    let is_datagrams = matches!(transport, Transport::Datagrams);
    let is_endless = matches!(application, Application::Source(Pattern::Bulk));
    if is_datagrams && (is_endless || matches!(application, Application::Requests(_))) {
        return senseless(format!(
            "{name}: datagrams have no control of their own; use app constant, poisson or on-off"
        ));
    }
    let is_dfcp = matches!(transport, Transport::Dfcp(..) | Transport::Published(..));
    let of_object = matches!(application, Application::Source(Pattern::Object { .. }));
    if is_dfcp && !of_object && !is_endless {
        return senseless(format!("{name}: DFCP transports bulk and object only"));
    }
    let (from, to) = match (topology.parking_lot, &*read.text("flow.path")) {
        (true, "first") => (0, 1),
        (true, "second") => (1, 2),
        (true, _) => (0, 2),
        (false, _) => (0, 1),
    };
    let crossed: Duration =
        topology.rtts[from..to].iter().fold(Duration::ZERO, |sum, rtt| sum + *rtt);
    let rtt = read.get("flow.rtt").unwrap_or(crossed);
    // What the bottlenecks do not delay, the flow's own links do, the same both ways.
    let inner = if topology.parking_lot { crossed } else { Duration::ZERO };
    if rtt < inner {
        return senseless(format!(
            "{name}: flow.rtt ({rtt}) is less than its path takes ({inner})"
        ));
    }
    let delay = (rtt - inner) / 2;
    Ok(FlowSpec {
        name,
        from,
        to,
        start,
        transport,
        application,
        access: LinkConfig {
            rate,
            delay,
            jitter: topology.jitter,
            loss: read.get("flow.loss").unwrap_or(Loss::None),
            ..LinkConfig::default()
        },
        back: LinkConfig { delay, ..LinkConfig::default() },
        class: u8::try_from(read.count("flow.class")).unwrap_or(u8::MAX),
    })
}

fn transport(read: &Reader<'_>, protocol: &str, access: Rate) -> Result<Transport, ScenarioError> {
    Ok(match protocol {
        "datagrams" => Transport::Datagrams,
        "dfcp-published" => published_transport(read, access)?,
        "command" => {
            let (sender, receiver) = (read.text("flow.command"), read.text("flow.peer_command"));
            if sender.trim().is_empty() {
                return senseless("protocol command needs flow.command".to_owned());
            }
            Transport::Command { sender, receiver }
        }
        "dfcp" => {
            let text = read.text("dfcp.rate");
            let rate = match &*text {
                // As fast as the host can is as fast as its link: more would only wait there.
                "greedy" => rate::Kind::Fixed(access),
                text => text.parse().map_err(|_| ScenarioError::BadValue {
                    place: String::new(),
                    key: "dfcp.rate".to_owned(),
                    message: format!("{text:?} must be greedy, auto or a rate"),
                })?,
            };
            let block = u32::try_from(read.size("dfcp.block")).unwrap_or(u32::MAX).max(1);
            let window = read.count("dfcp.window").max(1).saturating_mul(u64::from(block));
            let until = read.text("dfcp.redundancy") == "until-acknowledged";
            let config = dfcp::Config {
                rate,
                redundancy: if until {
                    dfcp::Redundancy::UntilAcknowledged
                } else {
                    dfcp::Redundancy::Measured
                },
                codes: vec![Code::Counting],
                window: u32::try_from(window).unwrap_or(u32::MAX),
                max_block: dfcp::Config::default().max_block.max(block),
                ..dfcp::Config::default()
            };
            Transport::Dfcp(Box::new(config), Some(block))
        }
        name => {
            let delayed_ack = read.duration("tcp.delayed_ack");
            let max_window =
                read.get::<Size>("flow.max_window").or_else(|| read.get("tcp.max_window"));
            Transport::Tcp(tcp::Config {
                mtu: u32::try_from(read.count("tcp.mtu")).unwrap_or(u32::MAX).clamp(88, 65_535),
                congestion: name.parse().unwrap_or_default(),
                recovery: if read.text("tcp.recovery") == "rack-tlp" {
                    tcp::Recovery::RackTlp
                } else {
                    tcp::Recovery::Rfc6675
                },
                sack: read.flag("tcp.sack"),
                timestamps: read.flag("tcp.timestamps"),
                ecn: read.flag("tcp.ecn"),
                pacing: read.flag("tcp.pacing"),
                initial_window: u32::try_from(read.count("tcp.initial_window"))
                    .unwrap_or(u32::MAX)
                    .max(1),
                max_window: max_window.map(Size::as_bytes),
                delayed_ack: (delayed_ack > Duration::ZERO).then_some(delayed_ack),
                min_rto: read.duration("tcp.min_rto"),
                ..tcp::Config::default()
            })
        }
    })
}

fn published_transport(read: &Reader<'_>, access: Rate) -> Result<Transport, ScenarioError> {
    let bad = |key: &str, message: String| {
        Err(ScenarioError::BadValue { place: String::new(), key: key.to_owned(), message })
    };
    let count = |path| u32::try_from(read.count(path)).unwrap_or(u32::MAX).max(1);
    let size = |path| u32::try_from(read.size(path)).unwrap_or(u32::MAX);
    let (block, payload) = (size("published.block"), size("published.payload"));
    if !(16..=63_536).contains(&block) {
        return bad("published.block", format!("{block} bytes must be 16 to 63536"));
    }
    if !(1..=65_000).contains(&payload) {
        return bad("published.payload", format!("{payload} bytes must be 1 to 65000"));
    }
    let redundancy: f64 = read.get("published.redundancy").unwrap_or(0.0);
    if !(0.0..=100.0).contains(&redundancy) {
        return bad("published.redundancy", format!("{redundancy} must be 0 to 100"));
    }
    let text = read.text("published.rate");
    let (rate, control) = match &*text {
        "greedy" | "oracle" | "sdn" => (access, published::Control::Told),
        "marks" => {
            let gain = read.get("published.gain").unwrap_or(0.0);
            (access, published::Control::Marks { gain })
        }
        text => match text.parse() {
            Ok(rate) if rate > Rate::ZERO => (rate, published::Control::Told),
            _ => {
                let message =
                    format!("{text:?} must be greedy, oracle, sdn, marks, or a rate above zero");
                return bad("published.rate", message);
            }
        },
    };
    let rtt = read.duration("topology.rtt") + read.duration("topology.rtt2");
    let config = published::Config {
        block,
        window: count("published.window"),
        redundancy,
        payload,
        sending: match &*read.text("published.sending") {
            "round-robin" => published::Sending::RoundRobin,
            "until-acknowledged" => published::Sending::UntilAcknowledged,
            _ => published::Sending::TwoPhase,
        },
        plan: match &*read.text("published.plan") {
            "fixed" => published::Plan::Fixed,
            _ => published::Plan::Measured,
        },
        need: match &*read.text("published.need") {
            "code" => published::Need::Code,
            _ => published::Need::Redundancy,
        },
        last_packet: match &*read.text("published.last_packet") {
            "full" => published::LastPacket::Full,
            _ => published::LastPacket::Short,
        },
        coding: match &*read.text("published.coding") {
            "real" => published::Coding::Real,
            _ => published::Coding::Counting,
        },
        decode: read.flag("published.decode"),
        acknowledge: read.flag("published.acknowledge"),
        control,
        rate,
        // D-12: in a simulation the round-trip times are known.
        time_wait: rtt + rtt + Duration::from_secs(1),
    };
    let control = Control {
        by_controller: matches!(&*text, "oracle" | "sdn"),
        class: u8::try_from(read.count("published.control_class")).unwrap_or(u8::MAX),
    };
    Ok(Transport::Published(Box::new(config), control))
}
